"""Tables: every kind of file, how columns become inputs, missing values, and everything that can be wrong with them."""
import gzip
import os
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from conftest import COMMAND, Duckdb, array

SECRET = "hidden7319"
PROGRAM = "input x : [*, p]\ninput y : [*]\noutput s = sum[*](x)\noutput t = sum[*](y)\noutput n = records(x)\n"
ROWS = [(30, 21.5, 1), (41, 25.25, 0), (52, 30.0, 1)]
CSV = "age,bmi,y\n" + "".join(f"{a},{b},{c}\n" for a, b, c in ROWS)


@pytest.fixture
def sums(starfold, tmp_path):
    """Runs PROGRAM over files (name -> file or text of a CSV file) and returns (s, t, n)."""
    (tmp_path / "sums.fold").write_text(PROGRAM)

    def run(clients, *options):
        words = []
        for name, data in clients.items():
            if isinstance(data, str) and "\n" in data:
                (tmp_path / f"{name}.csv").write_text(data)
                data = tmp_path / f"{name}.csv"
            words += ["--client", f"{name}={data}"]
        result = starfold("run", tmp_path / "sums.fold", "--json", *words, *options)
        assert result.code == 0, result.err
        outputs = result.json()["outputs"]
        return array(outputs["s"]).tolist(), array(outputs["t"]).tolist(), array(outputs["n"]).tolist()

    return run


@pytest.fixture
def refused(starfold, tmp_path):
    """Runs PROGRAM, which must fail with words and without a record's value."""
    (tmp_path / "sums.fold").write_text(PROGRAM)

    def run(data, *words, bind="x=age,bmi", options=(), name="a.csv"):
        if isinstance(data, (str, bytes)) :
            (tmp_path / name).write_bytes(data.encode() if isinstance(data, str) else data)
            data = {"a": tmp_path / name}
        clients = [word for client, path in data.items() for word in ("--client", f"{client}={path}")]
        result = starfold("run", tmp_path / "sums.fold", *clients, "--bind", bind, "--out", tmp_path / "never", *options)
        assert result.code == 3, (result.code, result.out, result.err)
        for word in words:
            assert word in result.err, (word, result.err)
        assert SECRET not in result.err and "terminate" not in result.err and "Traceback" not in result.err
        assert result.out == "" and not (tmp_path / "never").exists()

    return run


# ---- every kind of file

EXPECTED = ([123, 76.75], 2, 3)


def test_csv(sums):
    assert sums({"a": CSV}, "--bind", "x=age,bmi") == EXPECTED
    assert sums({"a": CSV}, "--bind", "x=*") == EXPECTED
    assert sums({"a": CSV.replace("\n", "\r\n")}, "--bind", "x=*") == EXPECTED
    assert sums({"a": "\ufeff" + CSV.rstrip("\n")}, "--bind", "x=*") == EXPECTED
    assert sums({"a": '"age"," bmi ","y"\n"30",21.5,1\n+41,2525e-2,0\n 52 ,30,1\n'}, "--bind", "x=*") == EXPECTED


def test_compressed_and_tabs(sums, tmp_path):
    (tmp_path / "z.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    assert sums({"a": tmp_path / "z.csv.gz"}, "--bind", "x=*") == EXPECTED
    (tmp_path / "t.tsv").write_text(CSV.replace(",", "\t"))
    assert sums({"a": tmp_path / "t.tsv"}, "--bind", "x=*") == EXPECTED


def test_json(sums, tmp_path):
    rows = [f'{{"age": {a}, "bmi": {b}, "y": {c}, "note": "{SECRET}"}}' for a, b, c in ROWS]
    for name in ("t.jsonl", "t.ndjson", "t.json"):
        (tmp_path / name).write_text("\n".join(rows))
        assert sums({"a": tmp_path / name}, "--bind", "x=age,bmi") == EXPECTED
    (tmp_path / "t.json").write_text("[" + ",\n".join(rows) + "]")
    assert sums({"a": tmp_path / "t.json"}, "--bind", "x=age,bmi") == EXPECTED


VALUES = "(values (30, 21.5, true), (41, 25.25, false), (52, 30.0, true)) as t(age, bmi, y)"


def test_parquet(sums, duckdb, tmp_path):
    duckdb(f"copy (select age::smallint as age, bmi::decimal(9,3) as bmi, y from {VALUES}) to '{tmp_path}/t.parquet'")
    assert sums({"a": tmp_path / "t.parquet"}, "--bind", "x=*") == EXPECTED


def test_duckdb_file(sums, refused, tmp_path):
    database = Duckdb(tmp_path / "t.duckdb")
    database(f"create table visits as select * from {VALUES}")
    database.close()
    assert sums({"a": tmp_path / "t.duckdb"}, "--bind", "x=*") == EXPECTED
    database = Duckdb(tmp_path / "t.duckdb")
    database("create view old as select age - 1 as age, bmi, y from visits")
    database.close()
    assert sums({"a": f"{tmp_path}/t.duckdb#visits"}, "--bind", "x=*") == EXPECTED
    assert sums({"a": f"{tmp_path}/t.duckdb#old"}, "--bind", "x=*")[0] == [120, 76.75]
    refused({"a": tmp_path / "t.duckdb"}, "several tables", "old, visits")
    refused({"a": f"{tmp_path}/t.duckdb#visit"}, "no table visit", "old, visits")
    refused(b"nothing of the kind", "not a DuckDB database", name="b.duckdb")


def test_sqlite_file(sums, refused, tmp_path):
    database = sqlite3.connect(tmp_path / "t.sqlite")
    database.execute("create table visits (age integer, bmi real, y integer)")
    database.executemany("insert into visits values (?, ?, ?)", ROWS)
    database.commit()
    database.close()
    assert sums({"a": tmp_path / "t.sqlite"}, "--bind", "x=*") == EXPECTED
    (tmp_path / "t.db").write_bytes((tmp_path / "t.sqlite").read_bytes())
    assert sums({"a": tmp_path / "t.db"}, "--bind", "x=*") == EXPECTED
    refused(b"nothing of the kind", "b.sqlite", name="b.sqlite")


def test_kinds_of_numbers(starfold, duckdb, tmp_path):
    """Integers, decimals, truth values, dates and times of day in Parquet, CSV and JSON."""
    (tmp_path / "p.fold").write_text("input x : [*, p]\noutput s = sum[*](x)\n")
    duckdb(f"""copy (select 7::utinyint as a, -3::hugeint as b, 1.25::decimal(6,2) as c, true as d, date '1970-01-03' as e,
               timestamp '1970-01-02 12:00:00' as f, 0.5::float as g) to '{tmp_path}/t.parquet'""")
    (tmp_path / "t.csv").write_text("a,b,c,d,e,f,g\n7,-3,1.25,True,1970-01-03,1970-01-02T12:00:00,0.5\n")
    (tmp_path / "t.jsonl").write_text(
        '{"a": 7, "b": -3, "c": 1.25, "d": true, "e": "1970-01-03", "f": "1970-01-02 12:00:00", "g": 0.5}\n')
    clients = [word for end in ("parquet", "csv", "jsonl") for word in ("--client", f"{end}={tmp_path}/t.{end}")]
    report = starfold("run", tmp_path / "p.fold", "--json", *clients, "--bind", "x=*").json()
    np.testing.assert_allclose(array(report["outputs"]["s"]), 3 * np.array([7, -3, 1.25, 1, 2, 1.5, 0.5]))


# ---- binding

def test_columns_in_any_order(sums):
    other = "y,bmi,extra,age\n1,1.0,9,2\n"
    assert sums({"a": CSV, "b": other}, "--bind", "x=age,bmi") == ([125, 77.75], 3, 4)
    assert sums({"a": CSV, "b": "bmi,y,age\n1.0,1,2\n"}, "--bind", "x=*") == ([125, 77.75], 3, 4)


def test_transposed(starfold, tmp_path):
    (tmp_path / "p.fold").write_text("input x : [p, *]\ninput y : [*]\noutput s = x @ y\n")
    (tmp_path / "a.csv").write_text(CSV)
    report = starfold("run", tmp_path / "p.fold", "--json", "--client", f"a={tmp_path}/a.csv", "--bind", "x=*").json()
    assert array(report["outputs"]["s"]).tolist() == [82, 51.5]


def test_transposed_with_missing_values(starfold, tmp_path):
    """Columns of a table as rows, in blocks and as a whole array, without the records that miss a value."""
    (tmp_path / "p.fold").write_text("input x : [p, *]\ninput y : [*]\noutput g = x @ x'\noutput s = x @ y\n")
    rows = [[i % 7 + 0.5, i % 11 - 3.25, i % 5] for i in range(1500)]
    kept = [row for i, row in enumerate(rows) if i % 10 != 3]
    text = "".join(f"{a},{'' if i % 10 == 3 else b},{y}\n" for i, (a, b, y) in enumerate(rows))
    (tmp_path / "a.csv").write_text("a,b,y\n" + text)
    words = ["--client", f"a={tmp_path}/a.csv", "--bind", "x=a,b", "--missing", "drop", "--json"]
    for options in ([], ["--reference"], ["--exact"], ["--memory", "20MB"]):
        outputs = starfold("run", tmp_path / "p.fold", *words, *options).json()["outputs"]
        gram = [sum(row[i] * row[j] for row in kept) for i in range(2) for j in range(2)]
        assert outputs["g"]["data"] == gram, options
        assert outputs["s"]["data"] == [sum(row[i] * row[2] for row in kept) for i in range(2)], options


def test_binding_mistakes(refused, starfold, tmp_path):
    refused(CSV, "client a", "no column agee", "input x", "did you mean age?", bind="x=agee,bmi")
    refused(CSV, "no column weight", "it has age, bmi, y", bind="x=weight")
    refused(CSV, "no federated input z", bind="z=age")
    refused(CSV, "input y is [*]", "takes one column", options=("--bind", "y=age,bmi"))
    result = starfold("run", tmp_path / "sums.fold", "--client", f"a={tmp_path}/a.csv")
    assert result.code == 3 and "input x is [*, p]" in result.err and "--bind" in result.err
    refused('"",age,y\n1,2,3\n', "without a name", bind="x=*")


def test_clients_disagree(refused, duckdb, tmp_path):
    (tmp_path / "a.csv").write_text(CSV)
    (tmp_path / "b.csv").write_text(f"age,bmi,y\n{SECRET},1,0\n")
    (tmp_path / "c.csv").write_text("age,y,weight\n1,1,70\n")
    duckdb(f"copy (select 1 as age, 2 as bmi, 0 as y) to '{tmp_path}/d.parquet'")
    clients = {name: next(tmp_path.glob(f"{name}.*")) for name in "abcd"}
    refused(clients, "clients disagree", "column", "text", "absent", "age", "bmi")
    refused(clients, "weight", bind="x=*")
    refused({"a": clients["a"], "b": clients["b"]}, "column  a       b\n", "age     number  text\n")
    refused({name: clients["a"] for name in ("u", "v", "w", "x", "y")} | {"b": clients["b"]}, "u, v, w and 2 more")


# ---- missing values

HOLES = "age,bmi,y\n30,21.5,1\n,25.25,0\n52,NA,1\nNaN,,1\n"


def test_missing(sums, refused):
    refused(HOLES, "client a", "column age has 2 missing values", "column bmi has 2 missing values", "--missing drop")
    refused("age,bmi,y\n1,,1\n", "column bmi has 1 missing value;")
    assert sums({"a": HOLES}, "--bind", "x=age,bmi", "--missing", "drop") == ([30, 21.5], 1, 1)
    s, t, n = sums({"a": HOLES}, "--bind", "x=age,bmi", "--missing", "nan")
    assert np.isnan(s).all() and (t, n) == (3, 4)
    # A hole in a column that no input uses does not matter.
    assert sums({"a": HOLES.replace("bmi", "note")}, "--bind", "x=y") == ([3], 3, 4)


def test_missing_in_every_kind(sums, refused, duckdb, tmp_path):
    table = "(values (30, 21.5, 1), (null, 2, 0), (52, 'nan'::double, 1)) as t(age, bmi, y)"
    duckdb(f"copy (select * from {table}) to '{tmp_path}/t.parquet'")
    duckdb(f"copy (select age, nullif(bmi, 'nan'::double) as bmi, y from {table}) to '{tmp_path}/t.jsonl' (format json)")
    for name in ("t.parquet", "t.jsonl"):
        refused({"a": tmp_path / name}, "column age has 1 missing value", "column bmi has 1 missing value")
        assert sums({"a": tmp_path / name}, "--bind", "x=age,bmi", "--missing", "drop") == ([30, 21.5], 1, 1)
    np.savez(tmp_path / "t.npz", x=[[1.0, np.nan], [2, 3], [4, 5]], y=[1, np.nan, 3])
    assert sums({"a": tmp_path / "t.npz"}, "--missing", "drop") == ([4, 5], 3, 1)
    assert np.isnan(sums({"a": tmp_path / "t.npz"})[0][1])


def test_many_records_and_late_holes(sums, refused, tmp_path):
    lines = [f"{i},{i / 2},1" for i in range(50_000)]
    lines[40_000] = "40000,,1"
    text = "age,bmi,y\n" + "\n".join(lines) + "\n"
    refused(text, "column bmi has 1 missing value")
    n = 50_000
    total = n * (n - 1) / 2 - 40_000
    assert sums({"a": text}, "--bind", "x=age,bmi", "--missing", "drop") == ([total, total / 2], n - 1, n - 1)


# ---- tables that do not fit in memory

def streamed_and_kept(starfold, *words):
    """The same run with records read in every round, and with records kept."""
    runs = [starfold("run", *words, "--json", "--memory", memory, timeout=120) for memory in ("1MB", "4GB")]
    for result in runs:
        assert result.code == 0, result.err
        assert SECRET not in result.err
    return [result.json() for result in runs]


NEWTON = """input x : [*, p]
input y : [*]
state b : [p] = zeros(p)
repeat 4 {
  let m = sigmoid(x @ b)
  let g = x' @ (m - y) + 0.1 * b
  let h = x' @ (x * (m * (1 - m))[:, new]) + 0.1 * eye(p)
  b <- b - solve(h, g)
}
output b
output n = records(x)
"""


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl", "duckdb"])
@pytest.mark.parametrize("missing", ["error", "drop", "nan"])
def test_streamed_results_are_the_same_to_the_last_bit(starfold, duckdb, tmp_path, kind, missing):
    hole = "case when range % 1000 = 77 then null else {} end" if missing == "drop" else "{}"
    table = (f"select {hole.format('sin(range)')} as age, cos(range * 3) as bmi, (sin(range) + sin(range * 7) > 0)::int as y "
             "from range(30000)")
    path = tmp_path / f"t.{kind}"
    if kind == "duckdb":
        database = Duckdb(path)
        database(f"create table t as {table}")
        database.close()
    else:
        options = {"parquet": "(row_group_size 2048)", "csv": "", "jsonl": "(format json)"}[kind]
        duckdb(f"copy ({table}) to '{path}' {options}")
    (tmp_path / "newton.fold").write_text(NEWTON)
    streamed, kept = streamed_and_kept(starfold, tmp_path / "newton.fold", "--client", f"a={path}", "--bind", "x=age,bmi",
                                       "--missing", missing)
    assert streamed["outputs"] == kept["outputs"]
    assert streamed["rounds"] >= 4 and streamed["clients"][0]["records"] == (29970 if missing == "drop" else 30000)


def test_streamed_missing_values(sums, refused, duckdb, tmp_path):
    """What is not read before the first round is still refused with all counts, dropped, or nan."""
    duckdb(f"copy (select case when range % 50000 = 7 then null else 1 end as age, case when range % 70000 = 9 then 'nan'::double "
           f"else 2 end as bmi, 1 as y from range(300000)) to '{tmp_path}/t.parquet'")
    data = {"a": tmp_path / "t.parquet"}
    refused(data, "client a: column age has 6 missing values, column bmi has 5 missing values; to go on", options=("--memory", "1MB"))
    streamed = "--bind", "x=age,bmi", "--memory", "1MB", "--missing"
    assert sums(data, *streamed, "drop") == ([299989, 599978], 299989, 299989)
    s, t, n = sums(data, *streamed, "nan")
    assert np.isnan(s).all() and (t, n) == (300000, 300000)


def test_streamed_unseen_level(starfold, duckdb, tmp_path):
    duckdb(f"copy (select case when range % 90000 = 7 then '{SECRET}' else 'f' end as sex, 1 as y from range(300000)) "
           f"to '{tmp_path}/t.parquet'")
    (tmp_path / "sums.fold").write_text(PROGRAM)
    (tmp_path / "s.toml").write_text('program = "sums.fold"\n[inputs]\nx = "sex"\n[categorical.sex]\nlevels = ["f", "m"]\n'
                                     '[[client]]\nname = "a"\ndata = "t.parquet"\n')
    result = starfold("run", tmp_path / "s.toml", "--memory", "1MB", "--out", tmp_path / "never")
    assert result.code == 3 and "client a: column sex has 4 values that are no declared level" in result.err
    assert SECRET not in result.err and not (tmp_path / "never").exists()


def test_streamed_damage_is_found(refused, duckdb, tmp_path):
    """A Parquet file whose end is whole, but not what is in the middle."""
    duckdb(f"copy (select range::double as age, range / 7 as bmi, '{SECRET}' as note, 1 as y from range(200000)) "
           f"to '{tmp_path}/t.parquet'")
    whole = (tmp_path / "t.parquet").read_bytes()
    middle = len(whole) // 3
    refused(whole[:middle] + b"\xff" * 5000 + whole[middle + 5000:], "client a: ", "a.parquet", name="a.parquet",
            options=("--memory", "1MB"))


def test_a_name_that_looks_like_a_pattern(starfold, duckdb, tmp_path):
    for name, value in (("v*", 1), ("v2", 5)):
        duckdb(f"copy (select {value} as x from range(4)) to '{tmp_path}/t.parquet'")
        (tmp_path / "t.parquet").rename(tmp_path / f"{name}.parquet")
    (tmp_path / "sum.fold").write_text("input x : [*]\noutput s = sum[*](x)\n")
    run = starfold("run", tmp_path / "sum.fold", "--client", f"a={tmp_path}/v*.parquet", "--json")
    assert run.json()["outputs"]["s"]["data"] == [4]


def test_memory_stays_within_the_budget(duckdb, tmp_path):
    """2 million records of 20 columns are 320 MB; the run may take 200 MB."""
    columns = ", ".join(f"((range * {2 * j + 3}) % 1009)::double / 1009 as c{j}" for j in range(20))
    duckdb(f"copy (select {columns}, (range * 37 % 101 < 50)::int as y from range(2000000)) to '{tmp_path}/t.parquet'")
    (tmp_path / "newton.fold").write_text(NEWTON.replace("repeat 4", "repeat 2"))

    # From a small process: the peak of a child begins with the size of whoever started it.
    measured = ("import resource, subprocess, sys; code = subprocess.run(sys.argv[1:]).returncode; "
                "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr); sys.exit(code)")

    def peak(memory):
        words = [COMMAND, "run", tmp_path / "newton.fold", "--client", f"a={tmp_path}/t.parquet", "--bind", "x=*", "--memory", memory]
        run = subprocess.run([sys.executable, "-c", measured, *words], capture_output=True, text=True)
        assert run.returncode == 0
        assert "c19" in run.stdout and "2000000" in run.stdout
        return int(run.stderr.split()[-1]) * 1024

    assert peak("200MB") < 200e6
    assert peak("1GB") > 320e6  # kept where it fits


# ---- bad input

def test_missing_and_unreadable_files(refused, tmp_path):
    refused({"a": tmp_path / "none.csv"}, "client a", "none.csv", "does not exist")
    (tmp_path / "folder.csv").mkdir()
    refused({"a": tmp_path / "folder.csv"}, "folder")
    refused(CSV, "files of this kind", name="a.ods")


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl", "duckdb", "sqlite", "npz"])
def test_permissions(plain_user, kind):
    folder, run = plain_user
    (folder / "p.fold").write_text("input y : [*]\noutput s = sum[*](y)\n")
    (folder / f"a.{kind}").write_text(CSV)
    (folder / f"a.{kind}").chmod(0)
    result = run("run", folder / "p.fold", "--client", f"a={folder}/a.{kind}", "--out", "/tmp/never-written")
    assert result.code == 3 and "client a: " in result.err and "Permission denied" in result.err, result.err
    assert result.out == "" and not os.path.exists("/tmp/never-written")


def test_empty_and_header_only(sums, refused):
    refused("", "a.csv is empty", "column names")
    refused("\n\n", "a.csv is empty")
    refused("", "Parquet", name="a.parquet")
    refused("", "a.jsonl", name="a.jsonl")
    assert sums({"a": "age,bmi,y\n"}, "--bind", "x=age,bmi") == ([0, 0], 0, 0)
    assert sums({"a": "age,bmi,y\n", "b": CSV}, "--bind", "x=*") == EXPECTED


def test_no_header(refused):
    refused("7319,2,3\n4,5,6\n", "first line holds numbers")
    refused(f"{SECRET},7319,3\n{SECRET},5,6\n", "no column age")


def test_ragged(refused):
    refused(CSV + "1,2\n", "line 5 has 2 fields", "header names 3")
    refused(CSV + f"1,2,3,{SECRET}\n", "line 5 has 4 fields", "header names 3")
    refused(CSV + f'1,"{SECRET},3\n4,5,6\n', "line 5", "quotation mark")


def test_wrong_delimiter(refused):
    refused(CSV.replace(",", ";"), "semicolons", "commas")
    refused(CSV.replace(",", "\t"), "tabs", "commas")
    refused(CSV, "commas", "tabs", name="a.tsv")


def test_duplicated_column(refused):
    refused("age,bmi,age,y\n1,2,3,4\n", "two columns are named age")


def test_not_text(refused):
    refused(b"age,bmi,y\n1,2,3\n4,\xff\xfe,6\n", "a.csv", "UTF-8")
    refused(bytes(range(256)) * 20, "UTF-8")
    refused("age,bmi,y\n1,2,3\n".encode("utf-16"), "UTF-8")


def test_text_where_numbers_are_needed(refused):
    refused(f"age,bmi,y\n1,{SECRET},1\n", "client a", "column bmi is text", "[categorical.bmi]", "levels")


def test_ten_thousand_columns(sums, refused, tmp_path):
    names = [f"c{i}" for i in range(9_999)]
    text = ",".join(["y", *names]) + "\n" + 3 * (",".join(["1"] * 10_000) + "\n")
    s, t, n = sums({"a": text}, "--bind", "x=*")
    assert s == [3] * 9_999 and t == 3 and n == 3
    refused(text, "no column age", "and 9980 more", bind="x=age")


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_another_type_at_row_one_million(refused, sums, tmp_path, kind):
    row = {"csv": "{},2,1\n", "jsonl": '{{"age": {}, "bmi": 2, "y": 1}}\n'}[kind]
    head = "age,bmi,y\n" if kind == "csv" else ""
    text = head + "".join(row.format(i % 100) for i in range(1_000_000))
    bad = f'"{SECRET}"' if kind == "jsonl" else SECRET
    line = "line 1000002" if kind == "csv" else "line 1000001"
    refused(text + row.format(bad), f"a.{kind}, {line}", name=f"a.{kind}")
    # A decimal number after a million integers is no other type.
    (tmp_path / f"b.{kind}").write_text(text + row.format(0.5))
    assert sums({"a": tmp_path / f"b.{kind}"}, "--bind", "x=age")[0] == [49_500_000.5]


def test_damaged_parquet(refused, duckdb, tmp_path):
    duckdb(f"copy (select range::double as age, range / 7 as bmi, '{SECRET}' as note, 1 as y from range(200000)) "
           f"to '{tmp_path}/t.parquet'")
    whole = (tmp_path / "t.parquet").read_bytes()
    for length in (0, 3, 100, len(whole) // 2, len(whole) - 1):
        refused(whole[:length], "a.parquet", "Parquet", name="a.parquet")
    middle = len(whole) // 3
    refused(whole[:middle] + b"\xff" * 5000 + whole[middle + 5000:], "a.parquet", name="a.parquet")
    refused(CSV, "a.parquet", "Parquet", name="a.parquet")


def test_bad_json(refused):
    refused(f'{{"age": 1, "bmi": 2, "y": 1}}\n{{"age": {SECRET}}}\n', "a.jsonl", "not JSON", name="a.jsonl")
    refused('[1, 2, 3]', "a.json", name="a.json")
    refused('{"age": [1, 2], "bmi": 2, "y": 1}\n', "column age is a list", name="a.jsonl")
