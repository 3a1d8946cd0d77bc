"""The command `starfold`: the program inside the package, in the place of this process."""
import os
import pathlib
import sys


def path():
    """Where the program lies."""
    return pathlib.Path(__file__).parent / "bin" / "starfold"


def main():
    command = str(path())
    os.environ.setdefault("STARFOLD_FLOWER", str(pathlib.Path(sys.executable).parent / "starfold-flower"))
    os.execv(command, ["starfold", *sys.argv[1:]])
