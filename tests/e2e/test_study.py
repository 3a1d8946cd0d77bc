"""Study files: what they may say, queries, categorical columns, mistakes, and `starfold init`."""
import json
import os
import resource

import numpy as np
import pytest
from conftest import array

SECRET = "hidden7319"
PROGRAM = ("size k = 2\ninput x : [*, p]\ninput y : [*]\ninput w : [] = 1\n"
           "output s = sum[*](x) * w\noutput t = sum[*](y) * k\noutput n = records(x)\n")
OSLO = "age,bmi,sex,y\n30,20,f,1\n40,25,m,0\n50,30,f,1\n"
BERGEN = "age,bmi,sex,y\n10,1,m,1\n20,2,m,1\n"
CLIENTS = '[[client]]\nname = "oslo"\ndata = "oslo.csv"\n[[client]]\nname = "bergen"\ndata = "bergen.csv"\n'


@pytest.fixture
def study(starfold, tmp_path):
    """Writes files and a study (which gets the two clients unless it has its own) and runs it from elsewhere."""
    (tmp_path / "sums.fold").write_text(PROGRAM)
    (tmp_path / "oslo.csv").write_text(OSLO)
    (tmp_path / "bergen.csv").write_text(BERGEN)

    def run(text, *options, clients=CLIENTS, head='program = "sums.fold"\n'):
        (tmp_path / "study.toml").write_text(head + text + "\n" + clients)
        return starfold("run", tmp_path / "study.toml", "--json", *options, cwd="/")

    return run


def outputs(result):
    assert result.code == 0, result.err
    return [array(result.json()["outputs"][name]).tolist() for name in ("s", "t", "n")]


def test_columns_values_sizes(study, tmp_path):
    assert outputs(study('[inputs]\nx = ["age", "bmi"]\n')) == [[150, 78], 8, 5]
    assert outputs(study('[inputs]\nx = ["bmi"]\ny = "age"\nw = 10\n[sizes]\nk = 3\n')) == [[780], 450, 5]
    np.save(tmp_path / "w.npy", 0.5)
    assert outputs(study('[inputs]\nx = "age"\nw = "@w.npy"\n')) == [[75], 8, 5]
    assert outputs(study('[inputs]\nx = "*"\nw = 2.0\n[categorical.sex]\nlevels = ["f", "m"]\n')) == [[300, 156, 6], 8, 5]


def test_options_win(study, tmp_path):
    text = '[inputs]\nx = ["age"]\nw = 3\n[options]\nthreads = 1\nmemory = "1GB"\nout = "results"\n'
    assert outputs(study(text, "--set", "w=1", "--set", "k=1", "--bind", "x=bmi", "--out", tmp_path / "other")) == [[78], 4, 5]
    assert (tmp_path / "other/outputs.json").exists() and not (tmp_path / "results").exists()
    assert outputs(study(text)) == [[450], 8, 5]
    assert (tmp_path / "results/run.json").exists()


def test_missing_option(study, tmp_path):
    (tmp_path / "oslo.csv").write_text("age,bmi,sex,y\n30,,f,1\n40,25,m,0\n")
    assert outputs(study('[inputs]\nx = ["bmi"]\n[options]\nmissing = "drop"\n')) == [[28], 4, 3]
    result = study('[inputs]\nx = ["bmi"]\n')
    assert result.code == 3 and "client oslo: column bmi has 1 missing value" in result.err


def test_library_program(study, tmp_path):
    result = study('[inputs]\nx = ["age"]\n', head='program = "summary"\n')
    assert result.code == 0, result.err


# ---- categorical columns

def test_codings(study):
    def coded(section):
        return outputs(study(f'[inputs]\nx = ["sex", "age"]\n[categorical.sex]\nlevels = ["m", "f", "x"]\n{section}'))[0]

    assert coded("") == [2, 0, 150]
    assert coded('reference = "f"\n') == [3, 0, 150]
    assert coded("reference = false\n") == [3, 2, 0, 150]
    assert coded('coding = "codes"\n') == [7, 150]


def test_levels_of_numbers_and_words(study, duckdb, tmp_path):
    (tmp_path / "oslo.csv").write_text("age,g,y\n1,01,1\n1,2,1\n1,NA,1\n")
    duckdb(f"copy (select 1 as age, 2.0::double as g, 1 as y) to '{tmp_path}/bergen.parquet'")
    clients = CLIENTS.replace("bergen.csv", "bergen.parquet")
    head = '[inputs]\nx = ["g"]\n[categorical.g]\n'
    assert outputs(study(head + 'levels = [1, 2]\ncoding = "codes"\n[options]\nmissing = "drop"', clients=clients)) == [[5], 6, 3]
    # A level may be called NA.
    (tmp_path / "oslo.csv").write_text("age,g,y\n1,EU,1\n1,NA,1\n")
    (tmp_path / "bergen.csv").write_text("age,g,y\n1,,1\n")
    result = study(head + 'levels = ["EU", "NA"]\n[options]\nmissing = "drop"')
    assert outputs(result) == [[1], 4, 2]


@pytest.mark.parametrize("coding", ["codes", "onehot"])
def test_a_hundred_thousand_levels(study, tmp_path, coding):
    levels = [f"level{i}" for i in range(100_000)]
    records = levels if coding == "codes" else levels[-3:]
    (tmp_path / "oslo.csv").write_text("g,y\n" + "".join(f"{level},1\n" for level in records))
    (tmp_path / "bergen.csv").write_text(f"g,y\n{levels[-1]},1\n")
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    result = study(f'[inputs]\nx = ["g"]\n[categorical.g]\ncoding = "{coding}"\nlevels = {json.dumps(levels)}\n')
    spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    total = outputs(result)[0]
    assert (total == [5000150000]) if coding == "codes" else (total[-4:] == [0, 1, 1, 2] and len(total) == 99_999)
    # Comparing every level with every other takes far longer.
    assert spent < 10


def test_unseen_level(study, tmp_path):
    (tmp_path / "bergen.csv").write_text(f"age,bmi,sex,y\n10,1,{SECRET},1\n20,2,{SECRET},1\n20,2,f,1\n")
    result = study('[inputs]\nx = ["sex"]\n[categorical.sex]\nlevels = ["f", "m"]\n')
    assert result.code == 3
    assert "client bergen: column sex has 2 values that are no declared level" in result.err
    assert SECRET not in result.err


def test_categorical_mistakes(study):
    def wrong(section, *words, code=2):
        result = study(f'[inputs]\nx = ["sex"]\n{section}')
        assert result.code == code, result.err
        for word in words:
            assert word in result.err, result.err

    wrong("", "column sex is text", "[categorical.sex]", code=3)
    wrong("[categorical.sex]\n", "needs levels")
    wrong('[categorical.sex]\nlevels = "f"\n', "must be an array")
    wrong('[categorical.sex]\nlevels = ["f", "f"]\n', "twice")
    wrong('[categorical.sex]\nlevels = ["f", 2.5]\n', "strings or integers")
    wrong('[categorical.sex]\nlevels = ["f", "m"]\nreference = "x"\n', "none of its levels")
    wrong('[categorical.sex]\nlevels = ["f", "m"]\ncoding = "dummy"\n', "onehot")
    wrong('[categorical.sex]\nlevels = ["f", "m"]\n[categorical.seks]\nlevels = ["a"]\n', "only its reference")
    wrong('[categorical.sex]\nlevels = ["f", "m"]\n[categorical.seks]\nlevels = ["a", "b"]\n', "no input uses it", code=3)


# ---- queries

def query(sql, more=""):
    return CLIENTS.replace('data = "bergen.csv"', f"query = '''{sql}'''\n{more}")


def test_queries(study, duckdb, tmp_path):
    duckdb(f"copy (select range as age, 2 * range as bmi, 1 as y, 2015 + range as year from range(10)) to '{tmp_path}/visits.parquet'")
    inputs = '[inputs]\nx = ["age", "bmi"]\n'
    good = ["select age, bmi, y from 'visits.parquet' where year >= 2020",
            "select age, bmi, y from read_parquet('visits.parquet') where year >= 2020;  -- recent\n",
            f"with v as (from '{tmp_path}/visits.parquet') select *, 1 as y from (select age, bmi from v where year >= 2020)"]
    for sql in good:
        assert outputs(study(inputs, clients=query(sql))) == [[155, 145], 14, 8], sql
    sql = "select a.age, b.bmi, a.y from 'oslo.csv' a join 'bergen.csv' b on a.age = b.age + 20"
    assert outputs(study(inputs, clients=query(sql))) == [[190, 78], 6, 5]


def test_query_over_data(study, duckdb, tmp_path):
    inputs = '[inputs]\nx = ["age", "bmi"]\n'
    sql = "select age * 2 as age, bmi, y from data where age > 10"
    assert outputs(study(inputs, clients=query(sql, 'data = "bergen.csv"\n'))) == [[160, 77], 6, 4]
    (tmp_path / "b.jsonl").write_text('{"age": 11, "bmi": 2, "y": 1, "note": "n", "list": [1]}\n')
    assert outputs(study(inputs, clients=query(sql, 'data = "b.jsonl"\n'))) == [[142, 77], 6, 4]
    import sqlite3
    database = sqlite3.connect(tmp_path / "b.sqlite")
    database.execute("create table visits (age integer, bmi real, y integer)")
    database.execute("insert into visits values (11, 2, 1)")
    database.commit()
    database.close()
    assert outputs(study(inputs, clients=query(sql.replace("data", "visits"), 'data = "b.sqlite"\n'))) == [[142, 77], 6, 4]
    from conftest import Duckdb
    database = Duckdb(tmp_path / "b.duckdb")
    database("create table visits as select 11 as age, 2 as bmi, 1 as y")
    database("create table other as select 1 as z")
    database.close()
    assert outputs(study(inputs, clients=query(sql.replace("data", "visits"), 'data = "b.duckdb"\n'))) == [[142, 77], 6, 4]


def test_queries_cannot_write(study, tmp_path):
    before = sorted(os.listdir(tmp_path))
    for sql in ("copy (select 1) to 'stolen.csv'", "create table t as select 1", "attach 'new.duckdb'", "insert into t values (1)",
                "delete from t", "drop table t", "update t set a = 1", "pragma database_list", "set threads = 1", "load httpfs",
                "install httpfs", "export database 'folder'", "call pragma_version()", "vacuum", "explain select 1",
                "select age, bmi, y from 'bergen.csv'; copy (select 1) to 'stolen.csv'",
                "select age, bmi, y from 'bergen.csv'; select 1", "create temp table t as select 1", "begin transaction"):
        result = study('[inputs]\nx = ["age", "bmi"]\n', clients=query(sql))
        assert result.code == 3, (sql, result.out, result.err)
        assert "client bergen: the query" in result.err, (sql, result.err)
    assert sorted(os.listdir(tmp_path)) == sorted(before + ["study.toml"])


def test_failing_queries(study, tmp_path):
    (tmp_path / "secret.csv").write_text(f"age,bmi,y\n{SECRET},2,1\n")
    (tmp_path / "bare.csv").write_text(f"{SECRET},7319\n{SECRET},7319\n")
    for sql, word in [("select age, bmi, y from 'bergen.csv' wehre x", "wrong"), ("selct 1", "wrong"), ("", "needs data"),
                      ("select agee, bmi, y from 'bergen.csv'", "agee"), ("select * from 'none.parquet'", "query"),
                      ("select * from nothing", "nothing"), ("select 1 as age, 1 as age, 2 as bmi, 3 as y", "query"),
                      ("select age::integer as age, bmi, y from 'secret.csv'", "converted"),
                      ("select age::integer as age, bmi, y from 'bergen.csv', (select 1 / 0) where error(age)", "query"),
                      ("select age from 'bare.csv'", "query"), ("-- nothing", "query")]:
        result = study('[inputs]\nx = ["age", "bmi"]\n', clients=query(sql))
        assert result.code == (2 if sql == "" else 3), (sql, result.out, result.err)
        assert word in result.err, (sql, result.err)
        assert SECRET not in result.err and "7319" not in result.err, (sql, result.err)


def test_renamed_columns(study, tmp_path):
    (tmp_path / "bergen.csv").write_text("alder,bmi,y\n10,1,1\n")
    clients = CLIENTS + 'columns = { age = "alder" }\n'
    assert outputs(study('[inputs]\nx = ["age", "bmi"]\n', clients=clients)) == [[130, 76], 6, 4]
    result = study('[inputs]\nx = ["age"]\n', clients=CLIENTS + 'columns = { age = "older" }\n')
    assert result.code == 3 and "client bergen" in result.err and "older" in result.err


# ---- mistakes

@pytest.mark.parametrize("text, line, words", [
    ('[input]\nx = "age"\n', 2, ["no key input", "did you mean inputs?"]),
    ('[inputs]\nx = "age"\n[option]\n', 4, ["did you mean options?"]),
    ('[options]\nmising = "drop"\n', 3, ["mising", "did you mean missing?"]),
    ('[options]\nmissing = "skip"\n', 3, ["error, drop or nan"]),
    ('[options]\nmemory = "much"\n', 3, ["512MB"]),
    ('[options]\nthreads = "two"\n', 3, ["threads must be an integer, not a string"]),
    ('[options]\nthreads = 0\n', 3, ["at least 1"]),
    ('[inputs]\nx = ["age"]\nz = 2\n', 4, ["no input or size z"]),
    ('[inputs]\nxx = ["age"]\n', 3, ["no input or size xx"]),
    ('[inputs]\nx = 3\n', 3, ["takes columns"]),
    ('[inputs]\nx = "age"\nw = ["age"]\n', 4, ["takes a value"]),
    ('[inputs]\nx = ["age", 3]\n', 3, ["must be a string, not an integer"]),
    ('[inputs]\nx = ["age", "age"]\n', 3, ["twice"]),
    ('[inputs]\nw = [[1, 2], [3]]\n', 3, ["differ in length"]),
    ('[inputs]\nw = true\n', 3, ["true or false"]),
    ('[sizes]\nk = 2.5\n', 3, ["sizes.k must be an integer"]),
    ('inputs = 3\n', 2, ["section [inputs]"]),
    ('[inputs\nx = "age"\n', 2, []),
    ('[inputs]\nx = age\n', 3, []),
    ('[[client]]\nname = "oslo"\ndata = "a.csv"\n', 6, ["two clients are named oslo"]),
    ('[[client]]\ndata = "a.csv"\n', 2, ["needs a name"]),
    ('[[client]]\nname = "x"\n', 2, ["needs data"]),
    ('[[client]]\nname = "x"\ndat = "a.csv"\n', 4, ["did you mean data?"]),
])
def test_mistakes(study, text, line, words):
    result = study(text)
    assert result.code == 2, (result.code, result.out, result.err)
    for word in [f"study.toml:{line}: ", *words]:
        assert word in result.err, (word, result.err)
    told = result.json()
    assert told["ok"] is False and f"study.toml:{line}: " in told["error"]


def test_more_mistakes(study, starfold, tmp_path):
    assert "program is missing" in study("", head="").err
    result = study("", clients="")
    assert result.code == 2 and "no client" in result.err
    assert starfold("run", tmp_path / "none.toml").code == 2
    assert study("", head='program = "none.fold"\n').code == 2
    result = study('[inputs]\nx = "age"\nw = "@none.npy"\n')
    assert result.code == 3 and "none.npy" in result.err
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe\x00")
    assert starfold("run", tmp_path / "bad.toml").code == 2


# ---- check and explain of a study

LOOP = ("input x : [*, p]\ninput y : [*]\nstate b : [p] = zeros(p)\nrepeat 4 {\n  b <- b + x' @ (y - x @ b) / 1000\n}\noutput b\noutput v = var[*](x)\n")


@pytest.fixture
def described(starfold, study, tmp_path):
    """Writes a study over a loop and describes it with a command."""
    (tmp_path / "loop.fold").write_text(LOOP)

    def run(*words, text='[inputs]\nx = ["sex", "age"]\n[categorical.sex]\nlevels = ["f", "m", "x"]\n[options]\nmissing = "drop"',
            clients=query("select * from data where age > 1", 'data = "bergen.csv"\n')):
        (tmp_path / "study.toml").write_text('program = "loop.fold"\n' + text + "\n" + clients)
        return starfold(words[0], tmp_path / "study.toml", *words[1:], cwd="/")

    return run


def test_check_speaks_of_the_study(described, starfold, tmp_path):
    for command in ("check", "explain"):
        result = described(command)
        assert result.code == 0, result.err
        assert result.out.startswith(starfold(command, tmp_path / "loop.fold").out)
        for line in ("The study study.toml:", "client oslo: oslo.csv", "client bergen: bergen.csv, query select * from data where age > 1",
                     "input x [*, p]: sex=m, sex=x, age", "input y [*]: y", "size p = 3", "records with a missing value: drop"):
            assert f"{line}\n" in result.out, (line, result.out)
        told = described(command, "--json").json()
        study = told.pop("study")
        assert told == starfold(command, tmp_path / "loop.fold", "--json").json()
        assert study["clients"] == [{"name": "oslo", "data": "oslo.csv"},
                                    {"name": "bergen", "data": "bergen.csv", "query": "select * from data where age > 1"}]
        assert study["columns"] == {"x": ["sex=m", "sex=x", "age"], "y": ["y"]}
        assert (study["sizes"], study["missing"], study["file"]) == ({"p": 3}, "drop", "study.toml")
        # What is announced is what the run sends: a vector and the moments of three columns (n, means, squared deviations).
        assert sum(study["round_numbers"]) == 3 + 7
        for count in study["round_numbers"]:
            assert f"a client sends {count} numbers" in result.out
    assert str(tmp_path) not in described("check").out


def test_explain_of_a_study_is_a_page(described, tmp_path):
    assert described("explain", "--html", tmp_path / "page.html").code == 0
    page = (tmp_path / "page.html").read_text()
    section = page.split('<section id="study">')[1].split("</section>")[0]
    assert "oslo" in page.split('<section id="rounds">')[1].split("</section>")[0]  # its clients are drawn
    for word in ("oslo.csv", "bergen", "select * from data where age &gt; 1", "sex=m", "age", "left out", "3 numbers", "7 numbers"):
        assert word in section, (word, section)
    assert str(tmp_path) not in page


def test_check_of_a_simulation_and_of_arrays(described, starfold, tmp_path):
    simulated = described("check", "--json", text='[sizes]\np = 5\n[options]\nsimulate = "clients=10,records=20"', clients="").json()["study"]
    assert simulated["simulation"] == "clients=10,records=20" and simulated["sizes"] == {"p": 5} and simulated["clients"] == []
    np.savez(tmp_path / "a.npz", x=np.ones((4, 6)), y=np.ones(4))
    arrays = described("check", text="", clients='[[client]]\nname = "a"\ndata = "a.npz"\n')
    assert arrays.code == 0 and "input x [*, p]: the array of its name" in arrays.out and "size p = 6" in arrays.out, arrays.err


@pytest.mark.parametrize("command", ["check", "explain"])
def test_mistakes_of_a_study_are_told_by_check(described, command):
    for text, code, word in [('[inputs]\nx = ["agee"]\n', 3, "did you mean age?"), ('[inputs]\nz = 2\n', 2, "no input or size z"),
                             ('[inputs]\nx = ["sex"]\n', 3, "is text"), ("[option]\n", 2, "did you mean options?")]:
        result = described(command, "--json", text=text)
        assert result.code == code and word in result.json()["error"] and result.json()["ok"] is False, (text, result.err)


@pytest.mark.parametrize("command", ["check", "explain"])
def test_a_program_with_mistakes_says_so_before_its_data(described, tmp_path, command):
    (tmp_path / "loop.fold").write_text("input x : [*, p]\noutput x\n")
    result = described(command, "--json", text='[inputs]\nx = ["agee"]\n')
    assert result.code == 1 and result.json()["ok"] is False and result.json()["diagnostics"][0]["code"] == "E0301"


# ---- init

def test_init(starfold, study, tmp_path):
    written = tmp_path / "new.toml"
    result = starfold("init", "sums.fold", "oslo.csv", "north=bergen.csv", "--out", "new.toml", cwd=tmp_path)
    assert result.code == 0, result.err
    text = written.read_text()
    assert 'x = ["age", "bmi"]' in text and 'y = "y"' in text and "[categorical" in text and 'name = "north"' in text
    assert "# k = 2" in text and '"f"' not in text
    assert outputs(starfold("run", written, "--json", cwd="/")) == [[150, 78], 8, 5]
    again = starfold("init", "sums.fold", "oslo.csv", "--out", "new.toml", cwd=tmp_path)
    assert again.code == 2 and "exists" in again.err and written.read_text() == text


@pytest.mark.parametrize("program", ["summary", "correlation", "pca", "kmeans", "linear", "logistic", "poisson", "quantiles"])
def test_init_runs_as_it_is(starfold, tmp_path, program):
    """For ready-made programs and a table that does not know their inputs' names."""
    random = np.random.default_rng(3)
    rows = "".join(f"2020-01-{1 + i % 28:02},{20 + i % 61},{random.normal(26, 4):.1f},{'fm'[i % 2]},{i % 3},{int(random.random() < .4)}\n"
                   for i in range(300))
    for name in ("north", "south"):
        (tmp_path / f"{name}.csv").write_text('admitted,age,bmi,sex,"left home",died\n' + rows)
    result = starfold("init", program, "north.csv", "south.csv", "--out", "new.toml", cwd=tmp_path)
    assert result.code == 0, result.err
    text = (tmp_path / "new.toml").read_text()
    if program in ("linear", "logistic", "poisson"):
        assert 'y = "died"' in text and "none is called y, so this is a guess" in text
        assert 'x = ["age", "bmi", "left home"]' in text and "left out: admitted" in text
    assert "[categorical.sex]" in text
    result = starfold("run", "new.toml", "--json", cwd=tmp_path)
    assert result.code == 0, result.err
    assert [c["records"] for c in result.json()["clients"]] == [300, 300]
    # What it says in comments is right, too.
    text = text.replace('# query = "select * from data where age >= 18"', 'query = "select * from data where age >= 50"')
    text = text.replace("# [categorical", "[categorical").replace('# levels = ["f", "m"]', 'levels = ["f", "m"]').replace('x = ["age",', 'x = ["sex", "age",')
    text = text.replace("# missing", "missing").replace("# memory", "memory").replace("# threads", "threads").replace("# out", "out")
    (tmp_path / "more.toml").write_text(text)
    result = starfold("run", "more.toml", "--json", cwd=tmp_path)
    if program == "quantiles":  # it has no use for the column sex
        assert result.code == 3 and "no input uses it" in result.err
        return
    assert result.code == 0, (result.err, text)
    assert result.json()["clients"][0]["records"] < 300 and (tmp_path / "results/report.html").exists()


def test_init_and_strange_names(starfold, tmp_path):
    (tmp_path / "p.fold").write_text("input x : [*, p]\noutput s = sum[*](x)\n")
    (tmp_path / "a.csv").write_text('"a ""b"" \\","line\nbreak",text # [x]\n1,2,u\n3,4,v\n')
    result = starfold("init", "p.fold", "a.csv", "--out", "new.toml", cwd=tmp_path)
    assert result.code == 0, result.err
    result = starfold("run", "new.toml", "--json", cwd=tmp_path)
    assert result.code == 0 and array(result.json()["outputs"]["s"]).tolist() == [4, 6], result.err
    # A first line that may be a record is not copied.
    (tmp_path / "b.csv").write_text(f"{SECRET},7319\n{SECRET},7319\n")
    result = starfold("init", "p.fold", "b.csv", cwd=tmp_path)
    assert result.code == 3 and "first line" in result.err and SECRET not in result.out + result.err


def test_init_with_headers_only(starfold, tmp_path):
    """A client without records: its names are those of another client, or read like names."""
    (tmp_path / "full.csv").write_text("age,bmi,y\n50,20,1\n60,25,0\n")
    (tmp_path / "empty.csv").write_text("age,bmi,y\n")
    result = starfold("init", "linear", "empty.csv", "full.csv", "--out", "both.toml", cwd=tmp_path)
    assert result.code == 0, result.err
    assert 'x = ["age", "bmi"]' in (tmp_path / "both.toml").read_text()
    result = starfold("init", "linear", "empty.csv", cwd=tmp_path)
    assert result.code == 0 and 'x = ["age", "bmi"]' in result.out, result.err
    (tmp_path / "record.csv").write_text("Smith 77,2020-01-02\n")
    result = starfold("init", "linear", "record.csv", cwd=tmp_path)
    assert result.code == 3 and "Smith" not in result.err + result.out


def test_init_elsewhere(starfold, study, tmp_path):
    (tmp_path / "sub").mkdir()
    result = starfold("init", "sums.fold", "oslo.csv", "--out", "sub/new.toml", cwd=tmp_path)
    assert result.code == 0, result.err
    assert outputs(starfold("run", tmp_path / "sub/new.toml", "--json", cwd="/")) == [[120, 75], 4, 3]
    (tmp_path / "printed.toml").write_text(starfold("init", "sums.fold", "oslo.csv", cwd=tmp_path).out)
    assert outputs(starfold("run", "printed.toml", "--json", cwd=tmp_path)) == [[120, 75], 4, 3]
    other = starfold("init", "sums.fold", "bergen.csv", "oslo.csv", "bergen.csv", cwd=tmp_path)
    assert other.code == 2 and "NAME=PATH" in other.err
    assert starfold("init", "sums.fold", "none.csv", cwd=tmp_path).code == 3
    assert starfold("init", "none.fold", "oslo.csv", cwd=tmp_path).code == 2


def clinic(tmp_path, name, count, seed, missing):
    """A table as people have them: row numbers, identifiers, text, holes."""
    random = np.random.default_rng(seed)
    rows = [(i + 1, 5000 + 13 * i, f"p{i}", int(random.integers(20, 80)), missing if i % 9 == 4 else f"{random.normal(26, 4):.1f}",
             "fm"[int(random.integers(2))], int(random.integers(2))) for i in range(count)]
    (tmp_path / name).write_text("row,patientId,subject_id,age,bmi,sex,died\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))


@pytest.mark.parametrize("marks", [("?", "?"), ("?", ""), ("", "?"), (".", "-"), ("NA", "25.0")])
def test_init_with_marks_for_missing_numbers(starfold, tmp_path, marks):
    for i, (name, mark) in enumerate(zip(("north.csv", "south.csv"), marks)):
        clinic(tmp_path, name, 60, i, mark)
    result = starfold("init", "logistic", "north.csv", "south.csv", "--out", "new.toml", cwd=tmp_path)
    assert result.code == 0, result.err
    text = (tmp_path / "new.toml").read_text()
    assert 'x = ["age", "bmi"]' in text and 'y = "died"' in text and '\nmissing = "drop"' in text, text
    for name in ("row", "patientId"):
        assert f"# left out: {name}; it looks like" in text
    result = starfold("run", "new.toml", "--json", cwd=tmp_path)
    assert result.code == 0, (result.err, text)
    assert [c["records"] for c in result.json()["clients"]] == [53, 60 if marks[1] == "25.0" else 53]


def test_init_leaves_out_what_only_names_records(starfold, tmp_path):
    (tmp_path / "p.fold").write_text("input x : [*, p]\noutput s = sum[*](x)\n")
    columns = {"": lambda i: i, "id": lambda i: i * 3 % 40, "row": lambda i: 7, "Unnamed: 0": lambda i: i, "index": lambda i: i // 2, "visit_id": lambda i: i // 3,
               "caseID": lambda i: i % 5, "serial": lambda i: 100 + (i * 7) % 97, "counter": lambda i: i + 1,
               "paid": lambda i: i % 7, "humid": lambda i: i % 3, "age": lambda i: 20 + i % 31, "score": lambda i: i + 0.5, "day": lambda i: i // 2}
    header = ",".join(columns) + "\n"
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text(header + "".join(",".join(str(make(i)) for make in columns.values()) + "\n" for i in range(80)))
    result = starfold("init", "p.fold", "a.csv", "b.csv", "--out", "new.toml", cwd=tmp_path)
    assert result.code == 0, result.err
    text = (tmp_path / "new.toml").read_text()
    assert 'x = ["paid", "humid", "age", "score", "day"]' in text, text
    assert starfold("run", "new.toml", cwd=tmp_path).code == 0


def test_init_keeps_what_is_asked_for_by_name(starfold, tmp_path):
    (tmp_path / "p.fold").write_text("input id : [*]\noutput s = sum[*](id)\n")
    (tmp_path / "a.csv").write_text("id\n" + "".join(f"{i}\n" for i in range(50)))
    (tmp_path / "new.toml").write_text(starfold("init", "p.fold", "a.csv", cwd=tmp_path).out)
    result = starfold("run", "new.toml", "--json", cwd=tmp_path)
    assert result.code == 0 and result.json()["outputs"]["s"]["data"] == [1225], result.err


def test_init_over_files_of_different_kinds(starfold, duckdb, tmp_path):
    (tmp_path / "p.fold").write_text("input x : [*, p]\ninput y : [*]\noutput s = sum[*](x)\noutput t = sum[*](y)\n")
    (tmp_path / "a.csv").write_text("bmi,age,y,note\n?,30,1,u\n25,40,0,v\n")
    duckdb(f"copy (select 50 as age, 2.5 as bmi, true as y, 'w' as note) to '{tmp_path}/b.parquet'")
    (tmp_path / "c.jsonl").write_text('{"age": 10, "bmi": 1, "y": 1, "note": "z"}\n')
    np.savez(tmp_path / "d.npz", age=[1.0, 2], bmi=[3.0, 4], y=[5.0, 6])
    (tmp_path / "e").mkdir()
    for name, value in (("age", 100.0), ("bmi", 200.0), ("y", 0.0)):
        np.save(tmp_path / f"e/{name}.npy", np.array([value]))
    for order in (["a.csv", "b.parquet", "c.jsonl", "d.npz", "e"], ["e", "d.npz", "c.jsonl", "b.parquet", "a.csv"]):
        (tmp_path / "new.toml").unlink(missing_ok=True)
        assert starfold("init", "p.fold", *order, "--out", "new.toml", cwd=tmp_path).code == 0
        result = starfold("run", "new.toml", "--json", cwd=tmp_path)
        assert result.code == 0, (result.err, (tmp_path / "new.toml").read_text())
        assert sorted(array(result.json()["outputs"]["s"]).tolist()) == sorted([40 + 50 + 10 + 3 + 100, 25 + 2.5 + 1 + 7 + 200])
        assert array(result.json()["outputs"]["t"]).tolist() == 0 + 1 + 1 + 11 + 0
    # One number per record may come from an array of its own.
    (tmp_path / "one.fold").write_text("input y : [*]\noutput t = sum[*](y)\n")
    np.save(tmp_path / "y.npy", np.array([7.0]))
    for order in (["a.csv", "y.npy"], ["y.npy", "a.csv"]):
        (tmp_path / "one.toml").write_text(starfold("init", "one.fold", *order, cwd=tmp_path).out)
        assert starfold("run", "one.toml", "--json", cwd=tmp_path).json()["outputs"]["t"]["data"] == [8]
    # A table has names for its columns, an array has none: who is who cannot be guessed.
    np.savez(tmp_path / "f.npz", x=np.ones((2, 2)), y=np.ones(2))
    result = starfold("init", "p.fold", "a.csv", "f.npz", cwd=tmp_path)
    assert result.code == 3 and "client f" in result.err and "client a" in result.err and result.out == ""
