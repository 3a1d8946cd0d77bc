"""The folder of results and the pages: they take the place of nothing but what Starfold wrote."""
import json
import os
import signal
import stat
import subprocess
import time

import numpy as np
import pytest
from conftest import COMMAND

PROGRAM = "input x : [*]\noutput s = sum[*](x)\n"
NAMES = ["outputs.json", "report.html", "run.json", "s.npy"]


@pytest.fixture
def run(starfold, tmp_path):
    """Runs the program over one client, with results in a folder."""
    (tmp_path / "sum.fold").write_text(PROGRAM)
    np.save(tmp_path / "x.npy", np.ones(3))

    def go(*words, out="out", data="x.npy"):
        return starfold("run", "sum.fold", "--client", f"a={data}", "--out", out, *words, cwd=tmp_path)

    return go


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def refused(result, *words, code=3):
    assert result.code == code, (result.code, result.out, result.err)
    for word in words:
        assert word in result.err, result.err


def test_results_replace_results_and_nothing_else(starfold, federation, tmp_path):
    program = tmp_path / "sum.fold"
    program.write_text("input x : [*]\noutput s = sum[*](x)\n")
    clients = federation({"a": {"x": np.ones(3)}})
    out = tmp_path / "out"
    assert starfold("run", program, *clients, "--out", out).code == 0
    assert starfold("run", program, *clients, "--out", ".", cwd=out).code == 0
    assert sorted(path.name for path in out.iterdir()) == ["outputs.json", "report.html", "run.json", "s.npy"]
    (out / "notes.txt").write_text("mine")
    refused = starfold("run", program, *clients, "--out", out)
    assert refused.code == 3 and "choose another folder" in refused.err
    assert (out / "notes.txt").read_text() == "mine" and (out / "run.json").exists()
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []


def test_a_file_among_results_is_kept(run, tmp_path):
    """Also when it is named like one of ours."""
    out = tmp_path / "out"
    assert run().code == 0
    for name in ("mine.npy", "Report.html", "s.npy.bak", ".hidden"):
        (out / name).write_text("mine")
        refused(run(), name, "choose another folder")
        assert (out / name).read_text() == "mine" and set(NAMES) < set(names(out))
        (out / name).unlink()
    (out / "folder").mkdir()
    refused(run(), "folder")
    (out / "folder").rmdir()
    (out / "link.npy").symlink_to(tmp_path / "x.npy")
    refused(run(), "link.npy")
    (out / "link.npy").unlink()
    assert run().code == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_result_that_was_changed_is_kept(run, tmp_path, name):
    assert run().code == 0
    path = tmp_path / "out" / name
    written = path.read_bytes()
    edited = written.replace(b'"rounds": 1', b'"rounds": 2') if name == "run.json" else written + b" "
    assert edited != written
    path.write_bytes(edited)
    refused(run(), "as they were written")
    assert path.read_bytes() == edited
    path.write_bytes(written)
    assert run().code == 0


def test_a_folder_that_fills_during_the_run_is_kept(starfold, tmp_path):
    """What someone puts there while it runs is not lost, nor is what was computed."""
    (tmp_path / "p.fold").write_text("input x : [*]\nstate s = 0\nrepeat 30000 {\n  s <- s + sum[*](x * (1 + s * 0))\n}\noutput s\n")
    np.save(tmp_path / "x.npy", np.ones(3))
    process = subprocess.Popen([COMMAND, "run", "p.fold", "--client", "a=x.npy", "--out", "out"], cwd=tmp_path, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(0.1)
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").write_text("mine")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 3 and "mine" in err and "s  90000" in out
    assert names(tmp_path / "out") == ["mine"] and not list(tmp_path.glob("*partial*"))


def test_inputs_are_never_replaced(run, starfold, tmp_path):
    out = tmp_path / "out"
    assert run().code == 0
    refused(run(data="out/s.npy"), "out/s.npy is read by this run")
    refused(starfold("run", "sum.fold", "--client", "a=x.npy", "--out", "sum.fold", cwd=tmp_path), "sum.fold")
    (tmp_path / "w.fold").write_text("input x : [*]\ninput w : []\noutput t = w * sum[*](x)\n")
    refused(starfold("run", "w.fold", "--client", "a=x.npy", "--set", "w=@out/s.npy", "--out", "out", cwd=tmp_path), "out/s.npy")
    assert names(out) == NAMES
    (tmp_path / "link").symlink_to(out)
    refused(run(data="link/s.npy"), "is read by this run")


def test_permissions_stay(run, tmp_path):
    out = tmp_path / "out"
    assert run().code == 0
    out.chmod(0o2710)
    (out / "s.npy").chmod(0o640)
    assert run().code == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o2710 and stat.S_IMODE((out / "s.npy").stat().st_mode) == 0o640
    out.chmod(0o555)
    assert run().code == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o555 and not list(tmp_path.glob("*partial*"))
    out.chmod(0o755)


def test_folders_of_killed_runs_are_removed(run, tmp_path):
    dead = subprocess.Popen(["true"])
    dead.wait()
    stale, alive = tmp_path / f"out.partial-{dead.pid}", tmp_path / f"out.partial-{os.getpid()}"
    precious, other = tmp_path / f"out.partial-{dead.pid}0000", tmp_path / "out.partial-notes"
    for folder in (stale, alive, precious, other):
        folder.mkdir()
        (folder / "outputs.json").write_text("{}")
    (precious / "thesis.txt").write_text("mine")
    assert run().code == 0
    assert not stale.exists() and alive.exists() and precious.exists() and other.exists()


def test_a_signal_leaves_no_half_folder(tmp_path):
    """Signals at any moment of a run that mostly writes: the folder is whole or not there, and nothing stays beside it."""
    (tmp_path / "p.fold").write_text("input x : [*]\noutput s = sum[*](x) * ones(400, 400)\n")
    np.save(tmp_path / "x.npy", np.ones(3))
    whole = 0
    for i in range(24):
        out = tmp_path / f"out{i}"
        process = subprocess.Popen([COMMAND, "run", "p.fold", "--client", "a=x.npy", "--out", out], cwd=tmp_path, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        time.sleep(0.01 * i)
        process.send_signal((signal.SIGTERM, signal.SIGINT, signal.SIGHUP)[i % 3])
        process.wait(timeout=60)
        if out.exists():
            whole += 1
            run = json.loads((out / "run.json").read_text())
            assert names(out) == sorted([*run["files"], "run.json"])
        assert not list(tmp_path.glob("*partial*")), i
    assert whole < 24


# ---- what files say of single clients

def test_counts_of_clients_are_told_only_when_asked(run, starfold, tmp_path):
    (tmp_path / "hidden-name.csv").write_text("x\n" + "1\n" * 7319)
    (tmp_path / "b.csv").write_text("x\n" + "1\n" * 1000)
    study = 'program = "sum.fold"\n[[client]]\nname = "a"\ndata = "hidden-name.csv"\n[[client]]\nname = "b"\ndata = "b.csv"\n[options]\nout = "out"\n'
    for details in (False, True):
        (tmp_path / "study.toml").write_text(study + ("client_details = true\n" if details else ""))
        result = starfold("run", "study.toml", "--json", cwd=tmp_path)
        assert result.code == 0, result.err
        assert [c["records"] for c in result.json()["clients"]] == [7319, 1000]  # whoever runs it has the files
        record = json.loads((tmp_path / "out/run.json").read_text())
        assert record["records"] == {"used": 8319, "dropped": 0}
        report = (tmp_path / "out/report.html").read_text()
        assert ("7\u202f319" in report) == details and "8\u202f319" in report and "hidden-name" not in report
        assert [set(client) for client in record["clients"]] == [
            {"name", "bytes_sent", "bytes_received", "numbers_sent"} | ({"records", "dropped", "data"} if details else set())] * 2
        assert ("hidden-name" in json.dumps(record)) == details


# ---- pages

def test_a_page_takes_the_place_of_a_page_only(starfold, tmp_path):
    program = tmp_path / "sum.fold"
    program.write_text(PROGRAM)
    (tmp_path / "study.toml").write_text('program = "sum.fold"\n[options]\nsimulate = "clients=2,records=3"\n')
    explain = lambda file, out: starfold("explain", file, "--html", out, cwd=tmp_path)
    refused(explain("sum.fold", "sum.fold"), "is read here", code=2)
    refused(explain("study.toml", "sum.fold"), "is read here", code=2)
    refused(explain("study.toml", "study.toml"), "is read here", code=2)
    (tmp_path / "link.html").symlink_to(program)
    refused(explain("sum.fold", "link.html"), "is read here", code=2)
    (tmp_path / "thesis.html").write_text("<p>mine")
    refused(explain("sum.fold", "thesis.html"), "choose another file")
    assert (tmp_path / "thesis.html").read_text() == "<p>mine" and program.read_text() == PROGRAM
    page = tmp_path / "page.html"
    page.touch()
    page.chmod(0o640)
    for _ in range(2):
        assert explain("sum.fold", "page.html").code == 0
        assert "</html>" in page.read_text() and stat.S_IMODE(page.stat().st_mode) == 0o640
    page.write_text(page.read_text().replace("sum.fold", "sum.fold, as I see it"))
    refused(explain("sum.fold", "page.html"), "choose another file")
    assert explain("sum.fold", "/dev/null").code == 0
    refused(explain("sum.fold", "nowhere/page.html"), "cannot be written")
