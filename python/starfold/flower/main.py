"""The command `starfold-flower`."""
import argparse
import os
import shlex


def main():
    parser = argparse.ArgumentParser(prog="starfold-flower", description="Carries studies over Flower. Without `resident` it is the child of "
                                     "`starfold run`, which speaks to it over its standard input and output.")
    parser.add_argument("--flwr", type=shlex.split, metavar="COMMAND", help="Flower's own command, if not the one installed beside this one")
    resident = parser.add_subparsers(dest="what").add_parser("resident", help="answer for a SuperNode with --isolation process")
    resident.add_argument("--supernode", required=True, metavar="HOST:PORT", help="where the SuperNode listens: its --host and --port")
    resident.add_argument("--socket", required=True, type=os.path.abspath, help="the node's socket")
    resident.add_argument("--secret", metavar="FILE", help="the SuperNode's --superexec-auth-secret-file")
    arguments = parser.parse_args()
    if arguments.what == "resident":
        from starfold.flower.resident import reside
        return reside(arguments.supernode, arguments.socket, arguments.secret)
    from starfold.flower.bridge import flwr_command
    from starfold.flower.carry import carry
    return carry(arguments.flwr or flwr_command())


if __name__ == "__main__":
    raise SystemExit(main())
