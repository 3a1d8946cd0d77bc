"""What is larger than the memory that is given: refused, or read in pieces to the same bits."""
import os
import subprocess
import time

import numpy as np
import pytest
from conftest import COMMAND, Duckdb


@pytest.mark.parametrize("reference", [[], ["--reference"]])
def test_shared_values_are_within_the_budget(starfold, program, tmp_path, reference):
    (tmp_path / "a.csv").write_text("y\n1\n")
    data = ["--client", f"a={tmp_path}/a.csv", "--memory", "1GB", *reference]
    for text in ("normal(1, 300000000)", "zeros(100000, 100000)", "eye(30000) @ eye(30000)", "uniform(1, 1000000, 1000000, 1000000)"):
        fold = program(f"input y : [*]\nlet z = {text}\noutput s = sum[*](y) + sum(z)\n")
        began = time.monotonic()
        result = starfold("run", fold, *data)
        assert result.code == 3 and "--memory" in result.err and ":2:" in result.err, result.err
        assert time.monotonic() - began < 5
    fold = program("input y : [*]\nlet z = normal(1, 1000000)\noutput s = sum[*](y) + sum(z)\n")
    assert starfold("run", fold, *data).code == 0


def test_values_from_files_are_within_the_budget(starfold, program, tmp_path):
    """Of --set and of studies, whatever the order in which they say so; a lower number wins over the study's."""
    fold = program("input w : [q]\noutput s = sum(w)\n")
    np.save(tmp_path / "w.npy", np.ones(30_000_000))
    result = starfold("run", fold, "--set", f"w=@{tmp_path}/w.npy", "--memory", "200MB")
    assert result.code == 3 and "too large" in result.err and "--memory" in result.err
    study = tmp_path / "s.toml"
    study.write_text(f'program = "{fold}"\n[inputs]\nw = "@w.npy"\n[options]\nmemory = "200MB"\n')
    assert "too large" in starfold("run", study).err
    assert starfold("run", study, "--memory", "2GB").code == 0
    assert starfold("run", study, "--set", "w=[1, 2]").code == 0


def test_a_module_that_is_too_large(starfold, program, tmp_path):
    program("import big\ninput y : [*]\noutput s = big.f(sum[*](y))\n", "p.fold")
    with open(tmp_path / "big.fold", "wb") as out:
        out.truncate(20_000_000_000)
    result = starfold("check", tmp_path / "p.fold")
    assert result.code == 1 and "too large" in result.err


@pytest.mark.parametrize("threads", [1, 8])
def test_the_smallest_budgets(starfold, program, duckdb, tmp_path, threads):
    """Too little is refused, little is enough, and nothing hangs or crashes where it is not."""
    columns = ", ".join(f"random() as c{i}" for i in range(400))
    duckdb(f"copy (select 1 as y, {columns} from range(20000)) to '{tmp_path}/t.parquet'")
    fold = program("input x : [*, p]\ninput y : [*]\nstate b : [] = 0\nrepeat 2 { b <- b + sum[*](y) + sum(sum[*](x)) }\noutput b\n")
    words = ["run", fold, "--client", f"a={tmp_path}/t.parquet", "--bind", "x=*", "--threads", threads, "--memory"]
    for memory in ("1B", "1KB", "999999", "0.1MB"):
        result = starfold(*words, memory)
        assert result.code == 2 and "1MB" in result.err
    for _ in range(3):
        result = starfold(*words, "1MB")
        assert result.code == 0 or (result.code == 3 and "--memory" in result.err), (result.code, result.err)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv", "jsonl", "json", "parquet", "duckdb", "sqlite", "query"])
def test_streamed_is_kept(starfold, duckdb, tmp_path, kind, threads):
    rows = 12_345
    table = f"select sin(range) as a, cos(range * 3) as y, case when range % 97 = 3 then null else range end as m from range({rows})"
    path = tmp_path / f"t.{kind}"
    if kind in ("csv", "csv.gz"):
        duckdb(f"copy ({table}) to '{path}' (format csv, header)")  # which compresses by the name, too
    elif kind == "tsv":
        duckdb(f"copy ({table}) to '{path}' (format csv, header, delimiter '\t')")
    elif kind in ("json", "jsonl"):
        duckdb(f"copy ({table}) to '{path}' (format json, array {'true' if kind == 'json' else 'false'})")
    elif kind == "duckdb":
        database = Duckdb(path)
        database(f"create table t as {table}")
        database.close()
    elif kind == "sqlite":
        import sqlite3
        database = sqlite3.connect(path)
        database.execute("create table t (a real, y real, m real)")
        database.executemany("insert into t values (?, ?, ?)", [(float(np.sin(i)), float(np.cos(3 * i)), None if i % 97 == 3 else i) for i in range(rows)])
        database.commit()
        database.close()
    else:
        path = tmp_path / "t.parquet"
        duckdb(f"copy ({table}) to '{path}' (row_group_size 2048)")
    (tmp_path / "p.fold").write_text("input x : [*, p]\ninput y : [*]\nstate b : [p] = zeros(p)\nrepeat 3 { b <- 0.5 * b + x' @ (y - tanh(x @ b)) / 1e6 }\n"
                                     "output b\noutput m = mean[*](x)\noutput v = var[*](y)\noutput n = records(y)\n")
    source = f'data = "{path.name}"\n'
    if kind == "query":
        source = "query = \"select a, m, avg(y) over (order by m rows 3 preceding) as y from 't.parquet' where m > 5\"\n"
    (tmp_path / "study.toml").write_text(f'program = "p.fold"\n[inputs]\nx = ["a", "m"]\n[[client]]\nname = "a"\n{source}')
    results = []
    for missing in ("drop", "nan"):
        for memory in ("1MB", "50MB", "4GB"):
            result = starfold("run", tmp_path / "study.toml", "--json", "--memory", memory, "--missing", missing, "--threads", threads)
            assert result.code == 0, result.err
            results.append((missing, result.json()["outputs"]))
    assert all(outputs == results[0][1] for missing, outputs in results if missing == "drop")
    assert all(outputs == results[3][1] for missing, outputs in results if missing == "nan")


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("way", ["in place", "renamed", "same time"])
def test_a_file_that_is_replaced(program, duckdb, tmp_path, kind, way):
    """By one of equal length while a run streams it: the answer of one of them, or an error."""
    rows = 50_000
    paths = {}
    for digit in (1, 2):
        paths[digit] = tmp_path / f"{digit}.{kind}"
        option = {"csv": "(format csv, header)", "parquet": "(compression uncompressed)", "jsonl": "(format json)"}[kind]
        duckdb(f"copy (select {digit} + (range % 7) / 8 as y from range({rows})) to '{paths[digit]}' {option}")
    data, other = paths[1].read_bytes(), paths[2].read_bytes()
    if len(data) != len(other):
        pytest.skip("the files differ in length")
    target = tmp_path / f"t.{kind}"
    target.write_bytes(data)
    fold = program("input y : [*]\nstate s : [] = 0\nrepeat 20000 { s <- s + sum[*](tanh(y + s)) }\noutput s\n")
    run = subprocess.Popen([COMMAND, "run", fold, "--json", "--client", f"a={target}", "--memory", "1MB"], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
    time.sleep(0.7)
    assert run.poll() is None
    before = target.stat()
    if way == "renamed":
        (tmp_path / "new").write_bytes(other)
        os.replace(tmp_path / "new", target)
    else:
        with open(target, "r+b") as out:
            out.write(other)
        if way == "same time":
            os.utime(target, ns=(before.st_atime_ns, before.st_mtime_ns))
    out, err = run.communicate(timeout=120)
    assert run.returncode == 3, (run.returncode, out)
    assert "client a: " in err and "changed" in err or "not the same" in err, err
