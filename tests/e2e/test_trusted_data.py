"""What is read is what was written, or an error: files and messages that someone bent on trouble would make."""
import csv
import gzip
import io
import json
import os
import pathlib
import random
import re
import struct
import time
import warnings
import zipfile

import numpy as np
import pytest
from conftest import Duckdb, array
from trusted import SECRET, SUM, study, sum_of  # noqa: F401 (fixtures)

# ---- exactly the file that was named

@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("name", ["y=5/t", "a[b]", "a?", "v*", "a,b", "{x,y}", "a#b", "a'b", 'a"b', " x", "é"])
def test_names_of_files_mean_nothing(sum_of, study, duckdb, tmp_path, kind, name):
    """No pattern, no partition, no list: also where a pattern would find another file."""
    for decoy in ("v1", "ab", "a", "b", "x", "y"):
        (tmp_path / f"{decoy}.csv").write_text("y\n99\n")
        duckdb(f"copy (select 99 as y) to '{tmp_path}/{decoy}.parquet'")
    path = tmp_path / f"{name}.{kind}"
    path.parent.mkdir(exist_ok=True)
    (tmp_path / "t.csv").write_text("y\n1\n2\n")
    (tmp_path / "t.jsonl").write_text('{"y": 1}\n{"y": 2}\n')
    duckdb(f"copy (select unnest([1, 2]) as y) to '{tmp_path}/t.parquet'")
    (tmp_path / f"t.{kind}").rename(path)
    assert sum_of(path) == (3, 2)
    quoted = f"{name}.{kind}".replace("'", "''")
    assert study(f"select y from '{quoted}'") == (3, 2)


def test_a_query_reads_beside_its_study(study, tmp_path):
    """Not in the folder where the command runs, and commas in paths are part of them."""
    home = tmp_path / "home,with,commas"
    home.mkdir()
    (tmp_path / "visits.csv").write_text("y\n99\n")
    (home / "visits.csv").write_text("y\n1\n2\n")
    for query in ("select y from 'visits.csv'", "from read_csv('visits.csv')", f"select y from '{home}/visits.csv'"):
        assert study(query, cwd=tmp_path, folder=home) == (3, 2), query
    for query in ("select y from '../visits.csv'", f"select y from '{tmp_path}/visits.csv'", "select y from 'x/../../visits.csv'"):
        assert "folder of the study" in study(query, cwd=tmp_path, folder=home)


def test_only_regular_files(sum_of, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("p.csv", "p.parquet", "p.jsonl", "p.npz", "p.npy", "p.duckdb", "p.sqlite"):
        (tmp_path / name).symlink_to(tmp_path / "pipe")
        assert "not a regular file" in sum_of(tmp_path / name)
    (tmp_path / "t.csv").write_text("y\n1\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "t.csv")
    assert sum_of(tmp_path / "link.csv") == (1, 1)
    (tmp_path / "null.csv").symlink_to("/dev/null")
    assert "not a regular file" in sum_of(tmp_path / "null.csv")


# ---- CSV

@pytest.mark.parametrize("text, expected", [
    ('"a\nb",y\n1,2\n3,4\n', (6, 2)),
    ('\ufeff"a,b",y\n1,2\n', (2, 1)),
    ('"x ""quoted"" name",y\r\n"a ""b"", c",2\r\n,3', (5, 2)),
    ("x,y\r1,2\r3,4\r", (6, 2)),
    ("x,y\n\n1,2\n\n\n3,4\n\n", (6, 2)),
    ("y\n1\n2\n\n\n", (3, 2)),
    ('y\n1\n""\n', "missing"),
    ("y\n1\n\n2\n", "line 3 is empty"),
    ("y\n 5 \n+7\n-0.5\n.5\n3.\n1e2\n", (115, 6)),
    ("y\n1\n+-5\n", "text"), ("y\n1\n1_000\n", "text"), ("y\n1\n0x10\n", "text"), ("y\n1\n1 000\n", "text"),
    ("y\n1\n1e400\n", "line 3: column y holds something that is larger than any double"),
    ("y\n1\n-1e400\n", "larger than any double"),
    ("y\n1\n1e-400\n", (1, 2)),
    ("y\n9007199254740992\n", (2.0**53, 1)),
    ("y\n9007199254740993\n", "2^53"), ("y\n-9007199254740993\n", "2^53"), ("y\n12345678901234567891\n", "2^53"),
    ("y\n9007199254740993.0\n", "2^53"), ("y\n9007199254740993.5\n", (2.0**53 + 2, 1)), ("y\n9007199254740993e0\n", (2.0**53, 1)),
    ("y\n18014398509481984\n", (2.0**54, 1)), ("y\n2020-01-01 12:00+02:\n", "text"),
    ('x,y\n1,2\n"open,3\n', "quotation mark"), ('x,y\n1,a"b\n', "quotation mark"), ('x,y\n1,"a"b\n', "quotation mark"),
    ("x,y\n1\n", "line 2 has 1 fields, but the header names 2"),
    ("x,y\n1,2\0\n", "UTF-8"),
])
def test_csv(sum_of, text, expected):
    result = sum_of(text)
    if isinstance(expected, str):
        assert isinstance(result, str) and expected in result, result
    else:
        assert result == expected


def test_late_values_of_another_kind(sum_of):
    """What the first records do not show is still read as written, or an error with its line."""
    head = "y\n" + "1\n" * 30_000
    for late in ("1_000", "+-5", "1e400", "9007199254740993", SECRET, "2020-01-01", "true"):
        assert "line 30002: column y holds" in sum_of(head + late + "\n"), late
    days = "y\n" + "1970-01-02\n" * 30_000
    assert sum_of(days + "1970-01-02 12:00:00\n") == (30_001.5, 30_001)
    for late in ("infinity", "1970-02-30", "1970-01-02 25:00", "1970-01-02 12:00Z", "1"):
        assert "line 30002: column y holds" in sum_of(days + late + "\n"), late


def test_a_last_line_of_40_megabytes(sum_of):
    assert sum_of("note,y\na,1\n" + "b" * 40_000_000 + ",2") == (3, 2)
    assert sum_of('note,y\na,1\n"' + "b,\n" * 14_000_000 + '",2') == (3, 2)


def test_damaged_gzip(sum_of):
    text = "y\n" + "".join(f"{i % 7}\n" for i in range(100_000))
    packed = gzip.compress(text.encode())
    total = sum(i % 7 for i in range(100_000)), 100_000
    assert sum_of(packed, name="t.csv.gz") == total
    half = len(text) // 2
    two = gzip.compress(text[:half].encode()) + gzip.compress(text[half:].encode())
    assert sum_of(two, name="t.csv.gz") == total
    for bad in (packed[:len(packed) // 2], packed[:-1], packed[:-8], packed[:-4] + b"\0\0\0\0", packed + b"junk", packed[:20], b"",
                packed[:-8] + struct.pack("<I", 1) + packed[-4:], text.encode()):
        message = sum_of(bad, name="t.csv.gz")
        assert isinstance(message, str) and ("cut short" in message or "damaged" in message), message
    middle = len(packed) // 2
    for bit in range(8):
        flipped = packed[:middle] + bytes([packed[middle] ^ 1 << bit]) + packed[middle + 1:]
        assert isinstance(sum_of(flipped, name="t.csv.gz"), str)
    assert "gzip" in sum_of(packed, name="t.csv")


def random_csv(random):
    """Rows of random fields, and how some program might write them."""
    columns = random.randint(1, 5)
    words = ["", "a", "x y", "é", 'q"q', "c,c", "l\nl", "r\r\nr", "0", "-1.5", "NA", "'", "\t", "日本", "1e3", '"', '""', ",", "\n"]
    rows = [[random.choice(words) for _ in range(columns - 1)] + [random.choice(["1", "2.5", "-3", "1e2", "0.1"])]
            for _ in range(random.randint(0, 6))]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=random.choice(["\n", "\r\n", "\r"]), quoting=random.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    writer.writerow([f"c{i}" for i in range(columns - 1)] + ["y"])
    writer.writerows(rows)
    text = out.getvalue()
    for _ in range(random.choice([0] * 10 + [1, 2])):  # and how it may be spoilt
        at = random.randrange(len(text))
        text = text[:at] + random.choice(['"', ",", "\n", "\r", "", "5", "x", '""']) + text[at + random.randint(0, 1):]
    return random.choice(["", "\ufeff"]) + text


NUMBER = re.compile(r"[ \t]*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[ \t]*")


def as_python_reads_it(text):
    """The sum of y and the number of records by Python's csv module; None where it has another opinion on what is valid."""
    try:
        rows = [row for row in csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True) if row]
        names = [name.strip(" \t") for name in rows[0]]
        at = names.index("y")
        if any(len(row) != len(names) for row in rows):
            return None
        if any(not NUMBER.fullmatch(row[at]) for row in rows[1:]):
            return None
        return [float(row[at]) for row in rows[1:]]
    except (csv.Error, ValueError, IndexError):
        return None


def test_thousands_of_random_csv_files(starfold, program, tmp_path):
    """Each is read as Python's csv module reads it, or refused; and most of them are not refused."""
    chance = random.Random(7)
    texts = [random_csv(chance) for _ in range(3000)]
    fold = program("input y : [*]\noutput s = sum[*](y)\noutput n = records(y)\noutput q = sum[*](square(y))\n")
    readable = [text for text in texts if as_python_reads_it(text) is not None]
    assert len(readable) > 1500

    def run(batch):
        words = []
        for i, text in enumerate(batch):
            (tmp_path / f"{i}.csv").write_bytes(text.encode())
            words += ["--client", f"c{i}={tmp_path}/{i}.csv"]
        return starfold("run", fold, "--json", "--missing", "nan", *words)

    refused = []

    def check(batch):
        """All at once; where that is refused, the file that is named alone."""
        while batch:
            result = run(batch)
            values = [value for text in batch for value in as_python_reads_it(text)]
            if result.code == 0:
                outputs = {name: array(out).tolist() for name, out in result.json()["outputs"].items()}
                assert outputs["n"] == len(values)
                np.testing.assert_allclose([outputs["s"], outputs["q"]], [sum(values), sum(v * v for v in values)], rtol=1e-9, atol=1e-9)
                records = [client["records"] for client in result.json()["clients"]]
                assert records == [len(as_python_reads_it(text)) for text in batch]
                return
            assert result.code == 3
            named = re.search(r"client c(\d+)", result.err)
            assert named, result.err
            refused.append(batch.pop(int(named.group(1))))

    for first in range(0, len(readable), 250):
        check(readable[first:first + 250])
    assert len(refused) < 100, len(refused)
    # What Python does not read either is refused here, or read as one of its rows would be: never more than is there.
    for text in [text for text in texts if as_python_reads_it(text) is None][:40]:
        result = run([text])
        assert result.code in (0, 3) and "mistake in Starfold" not in result.err


# ---- times and numbers

def test_times(sum_of, duckdb, tmp_path):
    def in_zone(zone):
        return {**os.environ, "TZ": zone}

    duckdb("set timezone = 'UTC'")
    duckdb(f"copy (select timestamptz '1970-01-02 00:00:00+00' as y) to '{tmp_path}/tz.parquet'")
    database = Duckdb(tmp_path / "tz.duckdb")
    database("create table t as select timestamptz '1970-01-02 00:00:00+00' as y")
    database.close()
    for zone in ("UTC", "America/New_York", "Asia/Tokyo"):
        assert sum_of(tmp_path / "tz.parquet", env=in_zone(zone)) == (1, 1)
        assert sum_of(tmp_path / "tz.duckdb", env=in_zone(zone)) == (1, 1)
    for written in ("1970-01-02T12:00Z", "1970-01-02 14:00:00+02:00", "1970-01-02 07:00:00.000-05", "1970-01-02 12:00:00 +0000"):
        assert sum_of(f"y\n{written}\n") == (1.5, 1), written
        assert sum_of(json.dumps({"y": written}), name="t.jsonl") == (1.5, 1)
    assert "offset" in sum_of("y\n1970-01-02T12:00Z\n1970-01-02T12:00\n")
    for kind in ("date", "timestamp", "timestamptz", "timestamp_ns"):
        for end in ("infinity", "-infinity"):
            duckdb(f"copy (select {kind} '{end}' as y) to '{tmp_path}/inf.parquet'") if kind != "timestamp_ns" else None
            if kind != "timestamp_ns":
                assert "infinite" in sum_of(tmp_path / "inf.parquet"), kind


@pytest.mark.parametrize("kind, value", [("bigint", 2**53 + 1), ("ubigint", 2**53 + 1), ("hugeint", 2**53 + 1), ("decimal(38,0)", 2**53 + 1),
                                         ("bigint", 2**63 - 1), ("ubigint", 2**64 - 1), ("hugeint", 10**30), ("bigint", -2**53 - 1)])
def test_whole_numbers_that_no_double_holds(sum_of, duckdb, tmp_path, kind, value):
    database = Duckdb(tmp_path / "t.duckdb")
    database(f"create table bad as select {value}::{kind} as y")
    database(f"create table good as select unnest([4::{kind}, null]) as y")
    database.close()
    message = sum_of(pathlib.Path(f"{tmp_path}/t.duckdb#bad"))
    assert isinstance(message, str) and ("2^53" in message or "cannot become a number" in message), message
    assert sum_of(pathlib.Path(f"{tmp_path}/t.duckdb#good"), "--missing", "drop") == (4, 1)
    assert "2^53" in sum_of(json.dumps({"y": value}), name="t.json")


def test_decimals_become_the_nearest_double(starfold, program, duckdb, tmp_path):
    """Also those with more digits than a double has."""
    chance = random.Random(3)
    fold = program("input x : [*, p]\noutput s = sum[*](x)\n")
    for digits, after in ((9, 3), (15, 7), (16, 1), (18, 2), (18, 17), (38, 2), (38, 20), (38, 37)):
        written = []
        for _ in range(50):
            number = str(chance.randrange(10 ** chance.randint(1, digits))).rjust(after + 1, "0")
            written.append(chance.choice(["", "-"]) + number[:-after] + "." + number[-after:])
        columns = ", ".join(f"'{text}'::decimal({digits}, {after}) as c{i}" for i, text in enumerate(written))
        duckdb(f"copy (select {columns}) to '{tmp_path}/t.parquet'")
        result = starfold("run", fold, "--json", "--client", f"a={tmp_path}/t.parquet", "--bind", "x=*")
        assert array(result.json()["outputs"]["s"]).tolist() == [float(text) + 0.0 for text in written], (digits, after)


def test_whole_numbers_of_settings(starfold, program, tmp_path):
    fold = program("input v : [q]\noutput s = sum(v)\n")
    for number in ("9007199254740993", "-9007199254740993", "18446744073709551617", "100000000000000000000001"):
        result = starfold("run", fold, "--set", f"v=[1, {number}]")
        assert result.code == 2 and "2^53" in result.err
        (tmp_path / "s.toml").write_text(f'program = "{fold}"\n[inputs]\nv = [1, {number}]\n')
        assert starfold("run", tmp_path / "s.toml").code == 2
    assert starfold("run", fold, "--set", "v=[9007199254740992, 1e22, 1.5e300]").code == 0


def test_whole_numbers_in_arrays(sum_of, tmp_path):
    for kind, value in (("<i8", 2**53 + 1), ("<u8", 2**64 - 1), (">i8", -2**53 - 1)):
        np.save(tmp_path / "t.npy", np.array([value], dtype=kind))
        assert "2^53" in sum_of(tmp_path / "t.npy")
        np.save(tmp_path / "t.npy", np.array([2**53, 2**54] if value > 0 else [-2**53, -2**54], dtype=kind))
        assert sum_of(tmp_path / "t.npy") == (3 * 2.0**53 * (1 if value > 0 else -1), 2)


# ---- JSON

@pytest.mark.parametrize("text, expected", [
    ('[{"y": 1}, {"y": 2.5}]', (3.5, 2)), ('{"y": 1}\n{"y": 2}', (3, 2)), ('{"y":\n 1}\n\n{"x": 3,\n "y": 2}\n', (3, 2)),
    ('{"\\u0079": 1, "x": "\\ud83d\\ude00"}', (1, 1)), ('{"y": 1, "x": [1, {"a": [[]]}, {}]}', (1, 1)),
    ('[{"y": 1}, {"y": 2},', "not JSON"), ('[{"y": 1}, {"y": 2}', "not JSON"), ('[{"y": 1},]', "not a JSON object"),
    ('[{"y": 1}] x', "not JSON"), ('{"y": 1} {"y": 2}', "not JSON"), ('{"y": 01}', "not JSON"), ('{"y": +1}', "not JSON"),
    ('{"y": 1, "y": 2}', "two values for one key"), ('{"y": NaN}', "not JSON"), ('{"y": 1e400}', "larger than any double"),
    ('{"y": "\\ud800"}', "not JSON"), ('{"y": "a\nb"}', "not JSON"), ("[]", "no records"), ("{}", "no records"),
    ('{"y": 1, "x": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
    ('{"y": 1, "x": ' + '{"a":' * 100_000 + "1" + "}" * 100_000 + "}", "nested too deeply"),
    ('{"x": 1}\n' * 30_000 + '{"y": 5}', "missing"),
], ids=lambda value: str(value)[:20])
def test_json(sum_of, text, expected):
    result = sum_of(text, name="t.json")
    if isinstance(expected, str):
        assert isinstance(result, str) and expected in result, result
    else:
        assert result == expected


# ---- arrays

def test_archives(sum_of, tmp_path):
    def archive(entries):
        with zipfile.ZipFile(tmp_path / "t.npz", "w", zipfile.ZIP_DEFLATED) as out:
            for name, data in entries:
                out.writestr(name, data)
        return tmp_path / "t.npz"

    def npy(values):
        out = io.BytesIO()
        np.save(out, np.array(values))
        return out.getvalue()

    assert sum_of(archive([("y.npy", npy([1.0, 2.0]))])) == (3, 2)
    for length in (255, 511, 512, 513, 5000, 60000):
        message = sum_of(archive([("n" * length, npy([1.0])), ("z.npy", npy([1.0]))]))
        assert isinstance(message, str) and "nnn" not in message and len(message) < 500
    assert "longer" in sum_of(archive([("y.npy", npy([1.0]) + b"x")]))
    with pytest.warns(UserWarning, match="Duplicate"):
        assert "same name" in sum_of(archive([("y.npy", npy([1.0])), ("y.npy", npy([2.0]))]))
    assert "\\x1b" not in sum_of(archive([("a\x1b[31mb.npy", npy([1.0]))]))
    # What would inflate to much more than there is room for is not begun.
    bomb = npy(np.zeros(1))[:128].replace(b"(1,)", b"(300000000,)"[:4]) + bytes(300_000_000)
    path = archive([("y.npy", bomb)])
    began = time.monotonic()
    assert "too large" in sum_of(path, "--memory", "300MB")
    assert time.monotonic() - began < 5
    # A size that lies.
    data = bytearray(archive([("y.npy", npy(np.arange(1000.0)))]).read_bytes())
    at = data.rfind(b"PK\x01\x02")
    data[at + 24:at + 28] = struct.pack("<I", 100)
    (tmp_path / "lie.npz").write_bytes(data)
    assert isinstance(sum_of(tmp_path / "lie.npz"), str)


def random_npy(chance):
    """An array in one of the ways NumPy writes it, or with something changed; and whether that is so."""
    spoilt = False
    kinds = ["<f8", ">f8", "<f4", "<i8", ">i4", "<u2", "|i1", "|u1", "|b1", "<f2", "<c16", "|S3", "<M8[D]"]
    values = np.array([chance.randrange(0, 100) for _ in range(chance.choice([0, 1, 6, 12]))])
    kind = chance.choice(kinds[:9] * 4 + kinds)
    shape = chance.choice([(len(values),)] * 3 + [(len(values), 1), (1, len(values))])
    header = str({"descr": kind, "fortran_order": chance.random() < 0.3, "shape": shape})
    if chance.random() < 0.5:
        spoilt = True
        at = chance.randrange(len(header))
        header = header[:at] + chance.choice(["", " ", ",", "'", "0", "1", "L", ")", "T", "\\", "}", "x"]) + header[at + chance.randint(0, 1):]
    header += chance.choice(["", "  ", "\n", " \n"])
    with np.errstate(all="ignore"):
        data = values.astype(kind).tobytes()
    if chance.random() < 0.1:
        spoilt = True
        data = data[:-1] if data and chance.random() < 0.5 else data + b"x"
    major = chance.choice([1, 1, 1, 2, 3, 0, 4])
    length = struct.pack("<H" if major < 2 else "<I", len(header))
    minor = chance.choice([0] * 9 + [1])
    return b"\x93NUMPY" + bytes([major, minor]) + length + header.encode() + data, spoilt or minor == 1 or major in (0, 4)


def test_random_arrays_are_read_as_numpy_reads_them(starfold, program, tmp_path):
    """Or refused; and what NumPy refuses is refused here."""
    chance = random.Random(5)
    fold = program("input y : [*]\noutput s = sum[*](y * y)\noutput n = records(y)\n")
    accepted = 0
    for _ in range(250):
        data, spoilt = random_npy(chance)
        (tmp_path / "y.npy").write_bytes(data)
        try:
            stream = io.BytesIO(data)
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                theirs = np.lib.format.read_array(stream, allow_pickle=False)
            theirs = None if stream.read(1) else theirs
        except Exception:  # whatever NumPy throws at what is no array
            theirs = None
        result = starfold("run", fold, "--json", "--client", f"a={tmp_path}/y.npy")
        if result.code == 0:
            assert theirs is not None and theirs.ndim == 1 and theirs.dtype.kind in "fiub", data
            ours = array(result.json()["outputs"]["s"]), array(result.json()["outputs"]["n"])
            assert ours[1] == len(theirs) and ours[0] == (theirs.astype(float) ** 2).sum(), data
            accepted += 1
        else:
            assert result.code == 3, result.err
            # Python reads more than NumPy writes: what was changed may be refused here alone.
            plain = theirs is not None and theirs.ndim == 1 and theirs.dtype.kind in "fiub" and theirs.dtype != np.float16
            assert spoilt or not plain, data
    assert accepted > 40


# ---- messages

def test_headers_that_are_records(sum_of):
    for text in (f"{SECRET},a\nb,c\n", f"{SECRET}\n{SECRET}\n", f"{SECRET},2020-01-01\nx,2020-01-02\n", f"{SECRET},NA\nx,1\n", f"{SECRET},true\nx,false\n",
                 f'"y,{SECRET}\n1,2\n3,4"\n1\n', f'x,"{SECRET}\n' + "1,2\n" * 1000, f'x,"{SECRET}\n' + "1,2\n" * 1000 + '",z\n1,2,3\n',
                 f"{SECRET}\n", f"{SECRET},{'x' * 3000}\n1,2\n"):
        message = sum_of(text)
        assert isinstance(message, str) and len(message) < 700, message


def test_escape_sequences_stay_out_of_terminals(starfold, sum_of, program, duckdb, tmp_path):
    evil = "a\x1b[31mb"
    assert "\x1b" not in sum_of(f"{evil},z\n1,2\n")
    (tmp_path / f"{evil}.csv").write_text("z\n1\n")
    fold = program(SUM)
    for words in (["--client", f"a={tmp_path}/{evil}.csv"], ["--client", f"{evil}={tmp_path}/{evil}.csv"], ["--client", f"a={tmp_path}/{evil}.none"],
                  ["--client", f"a={tmp_path}/{evil}.csv", "--bind", f"y={evil}"], ["--client", evil], ["--set", f"{evil}=1"]):
        result = starfold("run", fold, *words)
        assert result.code != 0 and "\x1b" not in result.err + result.out, words


def test_deep_nesting(starfold, program, tmp_path):
    fold = program("input w : []\noutput s = w\n")
    result = starfold("run", fold, "--set", "w=" + "[" * 60_000 + "1" + "]" * 60_000)
    assert result.code == 2 and "deeply" in result.err
    for text in ("a." * 50_000 + "b = 1\n", "[" + "a." * 50_000 + "b]\n", "x = {" + "a." * 50_000 + "b = 1}\n", "x = " + "[" * 50_000 + "]" * 50_000 + "\n",
                 "x = " + "{a = " * 50_000 + "1" + "}" * 50_000 + "\n", ("a . " * 50_000) + "b = 1\n", '"a".' * 50_000 + "b = 1\n",
                 "[[" + "a." * 50_000 + "b]]\n"):
        (tmp_path / "s.toml").write_text(text)
        assert starfold("run", tmp_path / "s.toml").code == 2
