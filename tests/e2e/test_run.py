"""`starfold run`: settings, output formats, and everything that can go wrong with data."""
import hashlib
import json
import os
import pty
import resource
import signal
import subprocess
import time

import numpy as np
from conftest import COMMAND, array

MEAN = "input x : [*, p]\noutput m = mean[*](x)\n"
REGRESSION = "input x : [*, p]\ninput y : [*]\ninput ridge : [] = 0\noutput b = solve(x' @ x + ridge * eye(p), x' @ y)\n"


def fails(result, *words, code=3):
    assert result.code == code, (result.code, result.out, result.err)
    for word in words:
        assert word in result.err, (word, result.err)
    assert "Traceback" not in result.err and "terminate" not in result.err


def test_json_is_the_contract(starfold, federation, program):
    text = ("input x : [*]\nstate s = 0\nrepeat 5 {\n  s <- s + sum[*](x)\n  trace t = s\n}\n"
            "output s\noutput v = [s, 0 - inf, nan]\n")
    report = starfold("run", program(text), "--json", *federation({"a": {"x": [1.0, 2]}, "b": {"x": [3.0]}})).json()
    assert report["outputs"]["s"] == {"shape": [], "data": [30.0]}
    assert report["outputs"]["v"] == {"shape": [3], "data": [30.0, "-inf", "nan"]}
    assert report["traces"] == {"t": [6, 12, 18, 24, 30]}
    assert report["iterations"] == [5]
    assert report["rounds"] == 1  # the fold does not change inside the loop
    assert [c["name"] for c in report["clients"]] == ["a", "b"]
    assert [c["records"] for c in report["clients"]] == [2, 1]
    assert set(report["clients"][0]) == {"name", "records", "bytes_sent", "bytes_received"}
    assert report["seconds"] > 0


def test_settings(starfold, federation, program, tmp_path):
    text = "size k = 2\ninput x : [*, p]\ninput w : [p]\ninput s : [] = 1\noutput o = sum[*](x * w) * s * k\n"
    np.save(tmp_path / "w.npy", np.array([1.0, 10]))
    clients = federation({"a": {"x": np.ones((3, 2))}})
    path = program(text)
    for w in ("[1, 10]", f"@{tmp_path / 'w.npy'}"):
        report = starfold("run", path, "--json", *clients, "--set", f"w={w}", "--set", "k=5", "--set", "s=0.5").json()
        assert array(report["outputs"]["o"]).tolist() == [7.5, 75]
    fails(starfold("run", path, *clients), "shared input w has no value")
    fails(starfold("run", path, *clients, "--set", "w=[1,2,3]"), "axis 2", "3", "2")
    fails(starfold("run", path, *clients, "--set", "w=[1,2]", "--set", "kk=2"), "kk")
    fails(starfold("run", path, *clients, "--set", "w=[1,2]", "--set", "x=2"), "comes from the clients")
    fails(starfold("run", path, *clients, "--set", "w=[1,[2]]"), "differ", code=2)
    fails(starfold("run", path, *clients, "--set", "w"), "NAME=VALUE", code=2)
    fails(starfold("run", path, *clients, "--set", "k=2.5"), "positive integer", code=2)


def test_bind_columns(starfold, federation, program):
    columns = {"age": [1.0, 2], "bmi": [3.0, 4], "y": [5.0, 6]}
    clients = federation({"a": columns})
    out = starfold("run", program(MEAN), "--json", *clients, "--bind", "x=bmi,age").json()
    assert array(out["outputs"]["m"]).tolist() == [3.5, 1.5]
    two = "input x : [*, p]\ninput y : [*]\noutput m = mean[*](x)\noutput n = mean[*](y)\n"
    out = starfold("run", program(two), "--json", *clients, "--bind", "x=*").json()
    assert array(out["outputs"]["m"]).tolist() == [1.5, 3.5]
    transposed = "input x : [p, *]\noutput m = mean[*](x)\n"
    out = starfold("run", program(transposed), "--json", *clients, "--bind", "x=age,y").json()
    assert array(out["outputs"]["m"]).tolist() == [1.5, 5.5]
    fails(starfold("run", program(MEAN), *clients, "--bind", "x=agee,bmi"), "client a", "agee", "did you mean age")
    fails(starfold("run", program(MEAN), *clients, "--bind", "z=age"), "no federated input z")


def test_folder_and_single_array(starfold, program, tmp_path):
    np.save(tmp_path / "one.npy", np.array([[1, 2], [3, 4]], dtype=np.int32))
    out = starfold("run", program(MEAN), "--json", "--client", f"a={tmp_path / 'one.npy'}").json()
    assert array(out["outputs"]["m"]).tolist() == [2, 3]
    folder = tmp_path / "site"
    folder.mkdir()
    np.save(folder / "x.npy", np.asfortranarray([[1.0, 2], [3, 4], [5, 7]]))
    out = starfold("run", program(MEAN), "--json", "--client", f"a={folder}").json()
    np.testing.assert_allclose(array(out["outputs"]["m"]), [3, 13 / 3])


def test_wrong_rank(starfold, federation, program):
    fails(starfold("run", program(MEAN), *federation({"a": {"x": np.ones(3)}})), "client a", "input x", "[*, p]", "[3]")


def test_wrong_type(starfold, federation, program):
    fails(starfold("run", program(MEAN), *federation({"a": {"x": np.array([["u", "v"]])}})), "client a", "array x", "<U1")


def test_missing_array(starfold, federation, program):
    fails(starfold("run", program(REGRESSION), *federation({"a": {"x": np.ones((2, 2))}})), "client a", "input y", "it has x")


def test_disagreeing_sizes(starfold, federation, program):
    clients = federation({"a": {"x": np.ones((2, 3))}, "b": {"x": np.ones((2, 4))}})
    fails(starfold("run", program(MEAN), *clients), "size p", "client a has 3", "client b has 4")


def test_disagreeing_counts(starfold, federation, program):
    clients = federation({"a": {"x": np.ones((2, 2)), "y": np.ones(3)}})
    fails(starfold("run", program(REGRESSION), *clients), "client a", "inputs x and y", "2 and 3")


def test_two_sizes_in_one_client(starfold, federation, program):
    text = "input x : [*, p]\ninput z : [*, p]\noutput s = sum[*](x * z)\n"
    fails(starfold("run", program(text), *federation({"a": {"x": np.ones((2, 3)), "z": np.ones((2, 5))}})), "client a", "input z, axis 2",
          "5", "3")


def test_undetermined_size(starfold, federation, program):
    text = "input x : [*, p]\ninput w : [q, r] = ones(q, r)\noutput s = sum[*](x) @ ones(p, 1)\noutput t = sum(w)\n"
    fails(starfold("run", program(text), *federation({"a": {"x": np.ones((2, 3))}})), "size q")


def test_singular_solve(starfold, federation, program):
    clients = federation({"a": {"x": np.ones((4, 2)), "y": np.ones(4)}})
    result = starfold("run", program(REGRESSION), *clients)
    fails(result, "singular", "program.fold:4:", "solve(")
    assert result.out == ""


def test_zero_records_everywhere(starfold, federation, program):
    text = ("input x : [*]\noutput a = sum[*](x)\noutput b = prod[*](x)\noutput c = min[*](x)\noutput d = max[*](x)\n"
            "output e = mean[*](x)\noutput f = var[*](x)\noutput g = logsumexp[*](x)\noutput h = any[*](x)\noutput i = all[*](x)\n"
            "output j = count[*](x)\noutput k = records(x)\n")
    report = starfold("run", program(text), "--json", *federation({"a": {"x": np.ones(0)}, "b": {"x": np.ones(0)}})).json()
    values = {name: output["data"][0] for name, output in report["outputs"].items()}
    assert values == {"a": 0, "b": 1, "c": "inf", "d": "-inf", "e": "nan", "f": "nan", "g": "-inf", "h": 0, "i": 1, "j": 0, "k": 0}


def test_bad_files(starfold, program, tmp_path):
    path = program(MEAN)
    fails(starfold("run", path, "--client", f"a={tmp_path / 'none.npz'}"), "client a", "none.npz")
    (tmp_path / "bad.npz").write_bytes(b"PK\x03\x04 not really")
    fails(starfold("run", path, "--client", f"a={tmp_path / 'bad.npz'}"), "client a")
    np.save(tmp_path / "whole.npy", np.ones((10, 10)))
    whole = (tmp_path / "whole.npy").read_bytes()
    for length in (0, 5, 9, 40, 130, 500, len(whole) - 1):
        (tmp_path / "cut.npy").write_bytes(whole[:length])
        fails(starfold("run", path, "--client", f"a={tmp_path / 'cut.npy'}"), "client a", "cut.npy")
    np.save(tmp_path / "objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    fails(starfold("run", path, "--client", f"a={tmp_path / 'objects.npy'}"), "not a number")


def test_usage(starfold, federation, program):
    path = program(MEAN)
    fails(starfold("run", path), "no client", code=2)
    fails(starfold("run", "logistics"), "no file logistics", "did you mean logistic?", code=2)
    fails(starfold("run", "zzz"), "no ready-made program", "`starfold lib` lists", code=2)
    clients = federation({"a": {"x": np.ones((1, 1))}})
    fails(starfold("run", path, *clients, *clients), "two clients are named a", code=2)
    fails(starfold("run", path, "--client", "nonsense"), "NAME=VALUE", code=2)
    assert starfold("run").code == 2
    assert starfold("run", "/nowhere/at/all.fold", *clients).code == 2
    wrong = starfold("run", program("output x\n"), "--json", *clients)
    assert wrong.code == 1
    assert json.loads(wrong.out)["ok"] is False


def test_wrong_usage_is_json_too(starfold, federation, program, tmp_path):
    clients = federation({"a": {"x": np.ones((1, 1))}})
    for words in (["run", program(MEAN), "--json"], ["run", tmp_path / "none.fold", "--json", *clients], ["run", "--json"],
                  ["run", program(MEAN), *clients, "--json", "--set", "m"], ["run", tmp_path / "none.toml", "--json"],
                  ["run", program(MEAN), *clients, "--json", "--nonsense"], ["check", tmp_path / "none.fold", "--json"],
                  ["explain", "none", "--json"], ["ops", "nonsense", "--json"], ["check", "--json", "a", "b"], ["--json"]):
        result = starfold(*words)
        told = json.loads(result.out)
        assert result.code == 2 and told["ok"] is False and told["error"] and told["error"] in result.err, (words, result.err)


def test_a_program_without_records_needs_no_client(starfold, program):
    path = program("input k : [] = 2\nstate s = 1\nrepeat 3 {\n  s <- s * k\n}\noutput s\n")
    for words in ([], ["--reference"]):
        report = starfold("run", path, "--json", *words).json()
        assert report["outputs"]["s"]["data"] == [8] and report["clients"] == [] and report["rounds"] == 0
    result = starfold("run", path, "--set", "k=3")
    assert result.code == 0 and "s  27" in result.out and "client" not in result.out


def test_too_little_memory_is_told(program, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2_000_000, 5)))
    room = 150 << 20
    for text, words in ((MEAN, ["--client", "a=x.npy"]), ("output s = sum(normal(1, 40000, 40000))\n", [])):
        done = limited(["run", program(text), *words, "--json"], tmp_path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (room, room)))
        assert done.returncode == 3 and "memory" in json.loads(done.stdout)["error"], (done.stdout, done.stderr)
        assert "internal error" not in done.stderr and "mistake in Starfold" not in done.stderr


def test_too_few_threads_are_told(plain_user):
    """A user who may start none, and asks for four: what is there is used, or the want is named."""
    folder, _ = plain_user
    (folder / "p.fold").write_text(MEAN)
    np.save(folder / "x.npy", np.ones((200_000, 5)))
    np.save(folder / "small.npy", np.ones((3, 5)))
    other = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    for clients in (["--client", "a=x.npy"], ["--client", "a=small.npy", "--client", "b=small.npy"],
                    ["--simulate", "clients=20000,records=10", "--set", "p=3"]):
        def run(threads):
            return limited(["run", "p.fold", *clients, "--threads", threads], folder, **other,
                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (1, 1)))
        done = run("4")
        assert done.returncode == 0 or (done.returncode == 3 and "threads" in done.stderr), (clients, done.stdout, done.stderr)
        assert "internal error" not in done.stderr and "mistake in Starfold" not in done.stderr
        assert run("1").returncode == 0


def test_closed_streams(program, federation, tmp_path):
    """No abort, and what is printed goes into no file that happens to be opened."""
    clients = federation({"a": {"x": np.ones((3, 2))}})
    before = (tmp_path / "a.npz").read_bytes()

    def run(closed, *words):
        close = lambda: [os.close(number) for number in closed]
        return subprocess.run([COMMAND, *map(str, words)], preexec_fn=close, timeout=60, stderr=subprocess.PIPE if 2 not in closed else None,
                              stdout=subprocess.PIPE if 1 not in closed else None)

    for words, code in ((["run", program(MEAN), *clients], 3), (["run", "none"], 2), (["check", program(MEAN)], 3), (["--version"], 3)):
        for closed in ((0, 1, 2), (1, 2), (1, )):
            assert run(closed, *words).returncode == code, (words, closed)
    assert b"cannot be written" in run((1, ), "run", program(MEAN), *clients).stderr
    assert run((2, ), "run", "none").returncode == 2
    assert (tmp_path / "a.npz").read_bytes() == before


def test_run_errors_are_json_too(starfold, federation, program):
    result = starfold("run", program(REGRESSION), "--json", *federation({"a": {"x": np.ones((4, 2)), "y": np.ones(4)}}))
    assert result.code == 3
    assert "singular" in json.loads(result.out)["error"]


def test_out_is_whole_or_nothing(starfold, federation, program, tmp_path):
    clients = federation({"a": {"x": np.arange(6.0).reshape(3, 2)}})
    folder = tmp_path / "results"
    assert starfold("run", program(MEAN), *clients, "--out", folder).code == 0
    assert np.load(folder / "m.npy").tolist() == [2, 3]
    assert json.loads((folder / "outputs.json").read_text())["m"]["data"] == [2, 3]
    run = json.loads((folder / "run.json").read_text())
    assert run["rounds"] == 1 and len(run["plan"]) == 64
    assert starfold("run", program(MEAN), *clients, "--out", folder).code == 0  # our own results may be replaced
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.txt").write_text("do not lose")
    fails(starfold("run", program(MEAN), *clients, "--out", precious), "precious")
    assert (precious / "thesis.txt").read_text() == "do not lose"
    singular = federation({"a": {"x": np.ones((4, 2)), "y": np.ones(4)}})
    fails(starfold("run", program(REGRESSION), *singular, "--out", tmp_path / "never"), "singular")
    assert not (tmp_path / "never").exists()
    fails(starfold("run", program(MEAN), *clients, "--out", "/proc/nowhere/results"), "cannot be written")
    assert not list(tmp_path.glob("*.partial*"))


def limited(command, cwd, **changes):
    """Runs a command with limits that the test sets in the new process."""
    return subprocess.run([COMMAND, *map(str, command)], capture_output=True, text=True, cwd=cwd, timeout=60, **changes)


def test_a_full_disk_loses_nothing(starfold, federation, program, tmp_path):
    """Files may not grow beyond 2000 bytes: report.html cannot be written."""
    def small_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    words = ["run", program(MEAN), *federation({"a": {"x": np.arange(6.0).reshape(3, 2)}}), "--out", "results"]
    done = limited(words, tmp_path, preexec_fn=small_files)
    assert done.returncode == 3
    assert "results cannot be written: File too large" in done.stderr
    assert "m" in done.stdout.split()  # what was computed is shown
    assert not (tmp_path / "results").exists() and not list(tmp_path.glob("*partial*"))
    # Earlier results stay as they were.
    assert starfold(*words, cwd=tmp_path).code == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "results").iterdir()}
    assert limited(words, tmp_path, preexec_fn=small_files).returncode == 3
    assert {path.name: path.read_bytes() for path in (tmp_path / "results").iterdir()} == before
    assert not list(tmp_path.glob("*partial*"))


def test_a_folder_that_cannot_be_written_is_found_before_the_run(plain_user):
    """LONG would run for hours."""
    folder, run = plain_user
    (folder / "p.fold").write_text(LONG)
    np.save(folder / "x.npy", np.ones(3))
    folder.chmod(0o555)
    for target in ("results", "deep/results"):
        result = run("run", folder / "p.fold", "--client", f"a={folder}/x.npy", "--out", folder / target)
        fails(result, "results cannot be written: Permission denied")
        assert result.out == "" and sorted(os.listdir(folder)) == ["p.fold", "x.npy"]


def test_run_json_says_what_ran(starfold, tmp_path):
    folder = tmp_path / "private place"
    folder.mkdir()
    (folder / "p.fold").write_text("import helpers\nsize k = 2\ninput x : [*, p]\ninput w : [] = 1\noutput m = helpers.twice(mean[*](x)) * w * k\n")
    (folder / "helpers.fold").write_text("fn twice(v : [n]) = 2 * v\n")
    (folder / "a.csv").write_text("age,bmi\n1,7319\n3,7319\n,7319\n")
    (folder / "study.toml").write_text('program = "p.fold"\n[inputs]\nx = ["age", "bmi"]\nw = 0.5\n[sizes]\nk = 3\n'
                                       '[[client]]\nname = "a"\ndata = "a.csv"\n[[client]]\nname = "b"\n'
                                       'query = "select * from \'a.csv\' where bmi = 7319"\n[options]\nmissing = "drop"\nclient_details = true\n')
    result = starfold("run", folder / "study.toml", "--out", tmp_path / "out", "--memory", "1GB", cwd="/")
    assert result.code == 0, result.err
    run = json.loads((tmp_path / "out/run.json").read_text())
    text = json.dumps({key: value for key, value in run.items() if key not in ("files", "seal")})
    sha = lambda data: hashlib.sha256(data).hexdigest()
    assert (run["program"], run["study"]) == ("p.fold", "study.toml")
    assert run["program_sha256"] == sha((folder / "p.fold").read_bytes())
    assert run["modules"] == {"helpers": sha((folder / "helpers.fold").read_bytes())}
    assert run["plan"] == starfold("explain", folder / "p.fold", "--json").json()["plan"]
    assert run["versions"]["starfold"] in starfold("--version").out and run["versions"]["duckdb"].startswith("v1.")
    assert run["sizes"] == {"k": 3, "p": 2} and run["columns"] == {"x": ["age", "bmi"]}
    assert {name: value["data"] for name, value in run["settings"].items()} == {"w": [0.5], "k": [3]}
    assert run["options"] == {"missing": "drop", "memory": 10**9, "client_details": True}
    assert [(c["name"], c["records"], c["dropped"]) for c in run["clients"]] == [("a", 2, 1), ("b", 2, 1)]
    assert run["records"] == {"used": 4, "dropped": 2}
    assert run["clients"][0]["data"] == {"file": "a.csv", "bytes": (folder / "a.csv").stat().st_size}
    assert list(run["clients"][1]["data"]) == ["query_sha256"]
    assert run["packed_clients"] == 0 and run["rounds"] == 1 and set(run["times"]) == {"compile", "load", "clients", "server"} and min(run["times"].values()) >= 0
    # No place on this machine, and nothing of a record.
    assert "private" not in text and "7319" not in text and str(tmp_path) not in text


def test_summary_is_tables_with_names(starfold, tmp_path):
    (tmp_path / "a.csv").write_text("age,bmi,y\n" + "".join(f"{20 + i % 50},{20 + i * 7 % 13},{int(i * 13 % 7 > 3)}\n" for i in range(20000)))
    result = starfold("run", "logistic", "--client", f"north={tmp_path}/a.csv", "--client", f"south={tmp_path}/a.csv", "--bind", "x=age,bmi")
    assert result.code == 0, result.err
    lines = [line.split() for line in result.out.splitlines()]
    assert lines[0] == ["beta", "beta_lower", "beta_upper", "beta_se", "z", "p_value", "odds_ratio"]
    assert [line[0] for line in lines[1:4]] == ["(intercept)", "age", "bmi"] and all(len(line) == 8 for line in lines[1:4])
    beta = array(starfold("run", "logistic", "--client", f"north={tmp_path}/a.csv", "--client", f"south={tmp_path}/a.csv", "--bind",
                          "x=age,bmi", "--json").json()["outputs"]["beta"])
    np.testing.assert_allclose([float(line[1]) for line in lines[1:4]], beta, atol=1e-4)
    clients = lines.index(["client", "records", "bytes", "sent", "received"])
    assert lines[clients + 1][:2] == ["north", "20000"] and int(lines[clients + 1][2]) > 0 and lines[clients + 2][0] == "south"
    assert " rounds " in result.out.splitlines()[-1] and "reading data" in result.out.splitlines()[-1]


def test_message_size_depends_on_program_and_sizes_only(starfold, federation, program):
    text = "input x : [*, p]\nlet c = x - mean[*](x)\noutput s = c' @ c\noutput v = var[*](x)\noutput l = logsumexp[*](x)\n"
    sizes = set()
    for counts in ((1, ), (0, 5, 1000), (3, ) * 20):
        clients = federation({f"c{i}": {"x": np.random.default_rng(i).normal(size=(n, 3))} for i, n in enumerate(counts)})
        report = starfold("run", program(text), "--json", *clients).json()
        sizes |= {(c["bytes_sent"], c["bytes_received"]) for c in report["clients"]}
    assert len(sizes) == 1


LONG = "input x : [*]\nstate s = 0\nrepeat 1000000000 {\n  s <- s + sum[*](x * (1 + s * 0))\n}\noutput s\n"


def test_interrupt_leaves_cleanly(federation, program, tmp_path):
    arguments = [COMMAND, "run", str(program(LONG)), *federation({"a": {"x": np.ones(10)}}), "--out", str(tmp_path / "never")]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=10)
    assert process.returncode == 3
    assert "stopped" in err and out == ""
    assert not (tmp_path / "never").exists()


def processor_seconds(process):
    """What it has used so far."""
    with open(f"/proc/{process.pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def seconds_to_stop(arguments, busy):
    """Processor time from Ctrl-C, sent when the run has used `busy` seconds, to the end: other work on the machine does not count."""
    words = [COMMAND, "run", *map(str, arguments), "--threads", "1"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while processor_seconds(process) < busy:
        time.sleep(0.01)
        assert process.poll() is None, process.communicate()
    start = processor_seconds(process)
    process.send_signal(signal.SIGINT)
    out, err = process.stdout.read(), process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 3 and err.count("stopped") == 1 and out == ""
    return usage.ru_utime + usage.ru_stime - start


# Each of these would go on for many seconds. The system counts processor time in steps of 10 ms, for user and system.
PATIENCE = 0.1 + 0.02


def test_interrupt_within_a_round(program):
    text = "input x : [*, 10]\noutput s = sum[*](" + "tanh(" * 400 + "x" + ")" * 400 + ")\n"
    assert seconds_to_stop([program(text), "--simulate", "clients=1,records=4000000"], 3) < PATIENCE


def test_interrupt_within_a_block_of_a_client(program):
    text = """input x : [*]
let m = each client {
  state c = 0
  repeat 1000000000 { c <- c + 1e-9 * mean[*](x - c) }
  c
}
output s = mean[*](m)
"""
    assert seconds_to_stop([program(text), "--simulate", "clients=3,records=2000"], 0.5) < PATIENCE


def test_interrupt_within_one_operation_of_the_server(program):
    text = "input a : [n, n]\ninput x : [*]\nlet s = sum[*](x)\noutput v = sum(inv(a + s) @ inv(a - s))\n"
    setting = "a=@" + str(program("").parent / "a.npy")
    np.save(setting[3:], np.random.default_rng(1).normal(size=(2500, 2500)))
    assert seconds_to_stop([program(text), "--set", setting, "--simulate", "clients=1,records=10"], 0.6) < PATIENCE


def test_progress_only_on_a_terminal(starfold, federation, program):
    text = LONG.replace("1000000000", "30000")
    clients = federation({"a": {"x": np.ones(10)}})
    assert starfold("run", program(text), *clients).err == ""
    master, slave = pty.openpty()
    process = subprocess.Popen([COMMAND, "run", str(program(text)), *clients], stdout=subprocess.DEVNULL, stderr=slave)
    process.wait(timeout=60)
    os.close(slave)
    seen = os.read(master, 1 << 16)
    assert b"reading data" in seen and b"round " in seen and b" s/round" in seen
    os.close(master)


def test_a_name_that_is_no_text(starfold, federation, tmp_path):
    program = tmp_path / "sum.fold"
    program.write_text("input x : [*]\noutput s = sum[*](x)\n")
    _, client = federation({"a": {"x": np.ones(3)}})
    file = client.split("=", 1)[1]
    words = ["run", str(program), "--client", b"c\xff=" + file.encode(), "--json"]
    run = subprocess.run([COMMAND, *words], capture_output=True)
    assert run.returncode == 0 and json.loads(run.stdout)["outputs"]["s"]["data"] == [3]
