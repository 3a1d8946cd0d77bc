"""What end-to-end tests share: the command, and small federations to run it on."""
import json
import os
import pathlib
import subprocess

import numpy as np
import pytest

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
