"""An installed tree works by itself, and DuckDB is loaded only when a table is opened."""
import os
import pathlib
import shutil
import signal
import subprocess

import numpy as np
import pytest
from conftest import COMMAND, ROOT
from node_federation import wait_until

BUILD = pathlib.Path(COMMAND).resolve().parent
PROGRAM = "input x : [*]\noutput s = sum[*](x)\n"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    if not (BUILD / "cmake_install.cmake").exists():
        pytest.skip(f"{BUILD} is no build tree")
    prefix = tmp_path_factory.mktemp("installed")
    subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix], check=True, capture_output=True)
    return prefix


@pytest.fixture
def files(tmp_path, duckdb):
    (tmp_path / "sum.fold").write_text(PROGRAM)
    (tmp_path / "t.csv").write_text("x\n1\n2\n4\n")
    duckdb(f"copy (select unnest([1, 2, 4]) as x) to '{tmp_path}/t.parquet'")
    np.save(tmp_path / "t.npy", np.array([1.0, 2, 4]))
    return tmp_path


def run(command, *words, cwd):
    """Code, standard output, and the libraries that were loaded."""
    environment = dict(os.environ, LD_DEBUG="files")
    done = subprocess.run([command, *words], capture_output=True, text=True, cwd=cwd, env=environment, timeout=60)
    loaded = {line.split("calling init: ")[1] for line in done.stderr.splitlines() if "calling init: " in line}
    errors = "\n".join(line for line in done.stderr.splitlines() if line.startswith("error"))
    return done.returncode, done.stdout, loaded, errors


def test_setup_ends_with_all_that_it_started(tmp_path):
    """Ctrl-C also ends what is fetched beside the rest: a shell's background jobs would go on."""
    def script(path, text):
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/usr/bin/env bash\n" + text)
        path.chmod(0o755)

    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools/setup", tmp_path / "tools/setup")
    (tmp_path / "tools/requirements.txt").write_text("")
    script(tmp_path / "bin/dpkg-query", 'for package in "$@"; do echo "$package installed"; done\n')
    script(tmp_path / "tools/fetch-duckdb", "sleep 600 &\necho $! >child.tmp\nmv child.tmp child\nwait\n")
    environment = dict(os.environ, PATH=f"{tmp_path}/bin:{os.environ['PATH']}")
    # As from a terminal, also where the tests run in the background and ignore Ctrl-C themselves.
    setup = subprocess.Popen([tmp_path / "tools/setup", "user"], env=environment, start_new_session=True, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    try:
        wait_until((tmp_path / "child").exists)
        os.killpg(setup.pid, signal.SIGINT)
        assert setup.wait(60) == 130
        child = int((tmp_path / "child").read_text())
        wait_until(lambda: not os.path.exists(f"/proc/{child}") or " Z " in pathlib.Path(f"/proc/{child}/stat").read_text())
    finally:
        setup.kill()


def test_installed_tree(installed, files):
    command = installed / "bin/starfold"
    code, out, loaded, errors = run(command, "run", "sum.fold", "--client", "a=t.parquet", cwd=files)
    assert code == 0 and "s  7" in out, errors
    assert {os.path.realpath(path) for path in loaded if "duckdb" in path} == {str(installed / "lib/starfold/libduckdb.so")}
    assert run(command, "lib", cwd=files)[0] == 0
    assert not any(str(ROOT) in path for path in loaded)
    assert (installed / "include/starfold/data/table.h").exists()


def test_installed_tree_reads_sqlite(installed, files):
    import sqlite3
    if not (installed / "lib/starfold/sqlite_scanner.duckdb_extension").exists():
        pytest.skip("this DuckDB has no extension for SQLite beside it")
    database = sqlite3.connect(files / "t.sqlite")
    database.execute("create table t (x real)")
    database.execute("insert into t values (5), (6)")
    database.commit()
    database.close()
    code, out, _, errors = run(installed / "bin/starfold", "run", "sum.fold", "--client", "a=t.sqlite", cwd=files)
    assert code == 0 and "s  11" in out, errors


def test_without_the_library(installed, files):
    (files / "bin").mkdir()
    shutil.copy(installed / "bin/starfold", files / "bin/starfold")
    code, out, _, errors = run(files / "bin/starfold", "run", "sum.fold", "--client", "a=t.parquet", cwd=files)
    assert code == 3 and out == "" and "libduckdb.so" in errors
    assert run(files / "bin/starfold", "run", "sum.fold", "--client", "a=t.npy", cwd=files)[0] == 0
    assert run(files / "bin/starfold", "run", "sum.fold", "--client", "a=t.csv", cwd=files)[0] == 0  # read without it


def test_duckdb_is_loaded_only_for_tables(files):
    for words in (["check", "sum.fold"], ["run", "sum.fold", "--client", "a=t.npy"], ["run", "sum.fold", "--client", "a=t.csv"], ["lib"], ["explain", "sum.fold"]):
        code, _, loaded, errors = run(COMMAND, *words, cwd=files)
        assert code == 0 and not any("duckdb" in path for path in loaded), (words, errors)
    assert any("duckdb" in path for path in run(COMMAND, "run", "sum.fold", "--client", "a=t.parquet", cwd=files)[2])
