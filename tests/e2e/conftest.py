"""What end-to-end tests share: the command, and small federations to run it on."""
import csv
import json
import os
import pathlib
import subprocess
import tempfile

import numpy as np
import pytest
from node_federation import Federation, hospital

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = os.environ.get("STARFOLD", str(ROOT / "build" / "starfold"))


class Result:
    def __init__(self, process):
        self.code = process.returncode
        self.out = process.stdout
        self.err = process.stderr

    def json(self):
        return json.loads(self.out)


@pytest.fixture
def starfold():
    """Runs the command; the result has code, out, err and json()."""

    def run(*arguments, cwd=None, timeout=60, input=None):
        return Result(
            subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, cwd=cwd,
                           timeout=timeout, input=input))

    return run


@pytest.fixture
def plain_user():
    """(a folder, run): run is the command as a user to whom permissions apply; the folder is within that user's reach."""

    def run(*arguments):
        # Root may do everything, so nobody runs it.
        other = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        return Result(subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, cwd="/", timeout=60, **other))

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        try:
            run("--version")
        except PermissionError:
            pytest.skip("the command is out of reach for other users")
        yield folder, run
        folder.chmod(0o755)


@pytest.fixture
def program(tmp_path):
    """Saves a program's text and returns its path."""

    def write(text, name="program.fold"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def federation(tmp_path):
    """Saves {client: {input: array}} as .npz files and returns the --client arguments."""

    def save(clients):
        arguments = []
        for name, arrays in clients.items():
            np.savez(tmp_path / f"{name}.npz", **arrays)
            arguments += ["--client", f"{name}={tmp_path / f'{name}.npz'}"]
        return arguments

    return save


def array(output):
    """An output of `run --json` as a NumPy array."""
    return np.array([float(v) for v in output["data"]]).reshape(output["shape"])


@pytest.fixture
def ready(starfold, tmp_path):
    """Runs a library program over the rows of a table, bound by column; returns outputs as arrays, and the report."""

    def go(program, data, binds, sets=None, *more, fails=False):
        rows = list(zip(*data.values()))
        n = len(rows)
        cuts = [0, n // 4, n // 4 + 1, n // 4 + 1, n]
        arguments = []
        for i, (a, b) in enumerate(zip(cuts, cuts[1:])):
            with open(tmp_path / f"c{i}.csv", "w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(data)
                writer.writerows([[repr(v) for v in row] for row in rows[a:b]])
            arguments += ["--client", f"c{i}={tmp_path / f'c{i}.csv'}"]
        for bind in binds:
            arguments += ["--bind", bind]
        for name, value in (sets or {}).items():
            arguments += ["--set", f"{name}={json.dumps(value)}"]
        result = starfold("run", program, "--json", *arguments, *more)
        if fails:
            assert result.code == 3, result.out + result.err
            return result.err
        assert result.code == 0, result.err
        report = result.json()
        return {name: array(value) for name, value in report["outputs"].items()}, report

    return go


class Duckdb:
    """Runs SQL in the DuckDB that the command itself uses, to make files for tests."""

    def __init__(self, path=None):
        import ctypes
        self.library = ctypes.CDLL(str(ROOT / "build/deps/duckdb/libduckdb.so"))
        self.library.duckdb_result_error.restype = ctypes.c_char_p
        self.database, self.connection = ctypes.c_void_p(), ctypes.c_void_p()
        assert self.library.duckdb_open(path and str(path).encode(), ctypes.byref(self.database)) == 0
        assert self.library.duckdb_connect(self.database, ctypes.byref(self.connection)) == 0

    def __call__(self, sql):
        import ctypes
        result = (ctypes.c_uint64 * 8)()  # larger than duckdb_result
        state = self.library.duckdb_query(self.connection, sql.encode(), ctypes.byref(result))
        message = self.library.duckdb_result_error(ctypes.byref(result)) if state else b""
        self.library.duckdb_destroy_result(ctypes.byref(result))
        assert state == 0, message.decode()

    def close(self):
        import ctypes
        self.library.duckdb_disconnect(ctypes.byref(self.connection))
        self.library.duckdb_close(ctypes.byref(self.database))


@pytest.fixture
def duckdb():
    database = Duckdb()
    yield database
    database.close()


@pytest.fixture
def nodes():
    """A federation without nodes; whatever is added to it ends with the test. Paths of sockets must be short."""
    with tempfile.TemporaryDirectory(prefix="sf-") as folder:
        over = Federation(COMMAND, folder)
        yield over
        over.stop()


@pytest.fixture
def three(nodes):
    """Three nodes that run, each with 200 records."""
    for i, name in enumerate(("north", "east", "south")):
        nodes.add(name, hospital(i), "max_total_ratio = 100000\nmax_rounds = 1000000\nmax_numbers = 100000000")
    return nodes


@pytest.fixture
def one(nodes):
    """One node that runs."""
    nodes.add("north", hospital(1))
    return nodes
