"""The command `starfold-flower`."""
import argparse
import shlex

from starfold.flower.bridge import flwr_command
from starfold.flower.carry import carry


def main():
    parser = argparse.ArgumentParser(prog="starfold-flower", description="Carries a study over Flower for `starfold run`, which starts this "
                                     "command and speaks to it over its standard input and output.")
    parser.add_argument("--flwr", type=shlex.split, metavar="COMMAND", help="Flower's own command, if not the one installed beside this one")
    arguments = parser.parse_args()
    return carry(arguments.flwr or flwr_command())


if __name__ == "__main__":
    raise SystemExit(main())
