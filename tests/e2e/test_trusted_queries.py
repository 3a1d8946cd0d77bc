"""What a query may do, and what it may not."""
import os

import pytest
from trusted import SECRET, study, sum_of  # noqa: F401 (fixtures)

REFUSED = [
    "select content as y from read_text('/etc/hostname')", "select * from glob('*')", "select * from read_blob('/etc/hostname')",
    "select y from '/etc/passwd'", "select * from read_csv('/etc/passwd')", "select y from '../t.csv'", "from read_csv(['t.csv'])",
    "from read_csv('t.csv', header=false)", "from read_csv_auto('*.csv')", "from '*.csv'", "from 't?.csv'", "from 'h[o]me.csv'",
    "select * from enable_logging(storage='file', storage_path='stolen')", "from duckdb_settings()", "from duckdb_secrets()",
    "from duckdb_logs", "select getenv('HOME') as y", "select current_setting('threads') as y", "from query('select 1 as y')",
    "from query_table('t.csv')", "from json_execute_serialized_sql('')", "from pragma_version()", "from sqlite_scan('a', 'b')",
    "from sniff_csv('t.csv')", "from parquet_metadata('t.parquet')", "from arrow_scan(1, 2, 3)", "from starfold_file_0()",
    "from system.main.read_text('t.csv')", "from information_schema.tables", "from sqlite_master", "from pg_catalog.pg_tables",
    "from 'p.duckdb'", "from 'p.sqlite'", "from 'http://localhost/t.csv'", "from 's3://bucket/t.parquet'", "select y from 't.txt'",
    "copy (select 1 as y) to 'stolen.csv'", "export database 'stolen'", "import database 'stolen'", "attach 'stolen.duckdb' as s",
    "detach memory", "pragma database_list", "set threads = 1", "reset threads", "call pragma_version()", "checkpoint", "force checkpoint",
    "create table t as select 1", "create secret s (type s3)", "install httpfs", "load httpfs", "prepare p as select 1", "execute p",
    "explain select 1", "explain analyze select 1", "vacuum", "begin", "select 1 as y; select 2 as y", "select 1 as y; export database 'stolen'",
    "describe select 1", "summarize select 1", "show tables", "use memory", "update extensions", "create macro f(x) as x", "comment on table t is 'x'",
    "from INFORMATION_SCHEMA.tables", 'from "Information_Schema".TABLES', "from PG_CLASS", "from pg_settings", "from Pg_Catalog.pg_class",
    'from "SQLITE_MASTER"', "from Duckdb_Columns", "from SYSTEM.information_schema.tables", 'select * from "READ_TEXT"(\'t.csv\')',
    "select version() as y", "select pg_sleep(0) as y", "select sleep_ms(0) as y", "select CURRENT_SCHEMA() as y", "select inet_client_addr() as y",
    "select has_table_privilege('a', 'b') as y", "select json_serialize_plan('select 1') as y", 'select "GETENV"(\'HOME\') as y',
    "insert into t values (1)", "delete from t", "drop view data", "alter table t add column x int", "pivot 't.csv' on y", ";", "-- y",
    "select " + "(" * 50_000 + "1" + ")" * 50_000 + " as y", "select " + "+".join(["1"] * 50_000) + " as y", "select 1 as y" + "'" * 9,
]


def test_what_queries_may_not_do(study, duckdb, tmp_path):
    (tmp_path / "t.csv").write_text("y\n1\n")
    (tmp_path / "home.csv").write_text("y\n1\n")
    home = tmp_path / "home"
    home.mkdir()
    (home / "t.csv").write_text("y\n1\n")
    (home / "home.csv").write_text("y\n1\n")
    duckdb(f"copy (select 1 as y) to '{home}/t.parquet'")
    for name in ("p.duckdb", "p.sqlite"):
        (home / name).write_text("x")
    study("select 1 as y", folder=home)
    before = sorted(os.listdir(home))
    for i, sql in enumerate(REFUSED):
        message = study(sql, folder=home, cwd=home, data="t.csv" if i % 2 else None)
        assert isinstance(message, str) and message.startswith("error: client a: "), (sql, message)
    assert sorted(os.listdir(home)) == before


def test_what_queries_may_do(study, duckdb, tmp_path):
    (tmp_path / "t.csv").write_text("y,d,w,n\n1,1970-01-02,a,1\n2,1970-01-03,b,\n")
    (tmp_path / "t.jsonl").write_text('{"y": 1, "l": [1, 2], "s": "x"}\n{"y": 2, "s": null}\n')
    duckdb(f"copy (select unnest([1, 2]) as y) to '{tmp_path}/t.parquet'")
    for sql, expected in [
        ("select * from 't.csv'", (3, 2)), ("from 't.parquet'", (3, 2)), ("select y from 't.jsonl'", (3, 2)),
        ("select sum(y) as y from 't.csv'", (3, 1)), ("select epoch(d) / 86400 as y from 't.csv'", (3, 2)),
        ("select a.y from 't.csv' a join 't.parquet' b on a.y = b.y", (3, 2)), ("select range as y from range(4)", (6, 4)),
        ("select unnest([1, 2]) as y", (3, 2)), ("select y from 't.csv' where w = 'a'", (1, 1)), ("select n as y from 't.csv' where n is not null", (1, 1)),
        ("with t as (select y from 't.csv') select y from t order by y desc limit 1;", (2, 1)), ("select count(*) as y from 't.csv'", (2, 1)),
        ("select json_array_length(l) as y from 't.jsonl' where l is not null", (2, 1)), ("select y from 't.csv' union all from 't.parquet'", (6, 4)),
        ("select y from read_parquet('t.parquet')", (3, 2)), ("from (values (1), (2)) as t(y)", (3, 2)),
    ]:
        assert study(sql) == expected, sql
        assert study(sql, "--memory", "1MB") == expected, sql


def test_sizes_of_letters_in_queries(study, sum_of, duckdb, tmp_path):
    """SQL does not tell y from Y. Files do, and one may not be read as the other."""
    (tmp_path / "t.csv").write_text("y,Y\n1,10\n2,20\n")
    (tmp_path / "t.jsonl").write_text('{"y": 1, "Y": 10}\n')
    for sql in ("select Y as y from 't.csv'", "select y from 't.csv'", "select \"Y\" as y from 't.jsonl'"):
        assert "differ only in the size of letters" in study(sql), sql
    assert sum_of(tmp_path / "t.csv", "--bind", "y=Y") == (30, 2)
    (tmp_path / "T.csv").write_text("y\n5\n")
    (tmp_path / "t.csv").write_text("y\n1\n")
    assert study("select y from 'T.csv'") == (5, 1) and study("select y from 't.csv'") == (1, 1)
    assert "two files of the query" in study("select y from 'T.csv' union all select y from 't.csv'")
    (tmp_path / "t.csv").write_text("é,É\n1,2\n")
    assert study("select \"É\" as y from 't.csv'") == (2, 1)


@pytest.mark.parametrize("second", ["Y", "y"])
def test_two_columns_of_one_name_in_parquet(study, sum_of, duckdb, tmp_path, second):
    duckdb(f"copy (select 1 as y, {{'z': 3}} as s, 10 as z, 7 as y_1) to '{tmp_path}/t.parquet'")
    assert sum_of(tmp_path / "t.parquet") == (1, 1)
    data = (tmp_path / "t.parquet").read_bytes()
    # The names of columns stand behind their length; the one inside s stays.
    at = data.index(b"\x01z", data.index(b"\x01z", data.index(b"duckdb_schema")) + 1)
    (tmp_path / "t.parquet").write_bytes(data[:at + 1] + second.encode() + data[at + 2:])
    assert "same name" in sum_of(tmp_path / "t.parquet")
    assert "same name" in study("select y from 't.parquet'")


def test_errors_of_files_in_queries(study, tmp_path):
    (tmp_path / "t.csv").write_text(f"y,w\n1,a\n2,{SECRET},{SECRET}\n")
    assert "t.csv, line 3 has 3 fields" in study("select y from 't.csv'")
    (tmp_path / "t.csv").write_text("y,w\n" + "1,a\n" * 30_000 + f"{SECRET},b\n")
    assert "line 30002: column y holds something that is not a number" in study("select y from 't.csv'")
    assert study("select count(w) as y from 't.csv'") == (30_001, 1)


REPEATED = "input y : [*]\nstate s : [] = 0\nrepeat 30 { s <- sum[*](y) + 0 * s }\noutput s\noutput n = records(y)\n"


@pytest.mark.parametrize("query", ["select y from 't.parquet' using sample 50%", "select random() as y from range(9000)",
                                   "select y + random() as y from 't.parquet'"])
def test_a_query_that_draws_anew(study, duckdb, tmp_path, query):
    # Samples are taken by 2048 records: of many such parts never all or none.
    duckdb(f"copy (select sin(range) as y from range(90000)) to '{tmp_path}/t.parquet'")
    (tmp_path / "sum.fold").write_text(REPEATED)
    assert isinstance(study(query), tuple)
    message = study(query, "--memory", "1MB")
    assert isinstance(message, str) and "other records every time" in message
