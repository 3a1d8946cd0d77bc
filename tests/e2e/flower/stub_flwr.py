"""Stands for Flower's command in tests of the carrier: `flwr run` starts a process that speaks as the bundle's ServerApp does.

STUB_FOLDER is a folder. There a file `fail` has how many starts fail at first, `hang` makes the command hang, `deaf` lets no ServerApp start,
`nodes` lists the nodes as JSON. What is asked says how it is answered:

    lost N    Flower's error N the first time
    die       the ServerApp ends the first time
    code N    the shim's code N
    flower N  Flower's error N, always
    silent    not at all
    else      the same bytes
"""
import json
import os
import pathlib
import socket
import sys
import time
import tomllib

FOLDER = pathlib.Path(os.environ["STUB_FOLDER"])


def first(what):
    """Whether this has not happened yet in this test."""
    try:
        (FOLDER / f"seen {what}").touch(exist_ok=False)
        return True
    except FileExistsError:
        return False


def read(stream):
    prefix = stream.read(8)
    if len(prefix) < 8:
        sys.exit()
    head = json.loads(stream.read(int.from_bytes(prefix, "little")))
    return head, [stream.read(length) for length in head["blobs"]]


def write(stream, head, blobs=()):
    text = json.dumps({**head, "blobs": [len(blob) for blob in blobs]}).encode()
    stream.write(len(text).to_bytes(8, "little") + text + b"".join(blobs))
    stream.flush()


def answer(identity, data):
    """(answer, blob), or None if there is none."""
    word, _, rest = data.partition(b" ")
    if word == b"silent":
        return None
    if word == b"lost" and first(data.decode()):
        return {"id": identity, "flower": int(rest), "code": None}, b""
    if word == b"flower":
        return {"id": identity, "flower": int(rest), "code": None}, b""
    if word == b"code":
        return {"id": identity, "flower": None, "code": int(rest)}, b""
    return {"id": identity, "flower": None, "code": 0}, data


def serve(path):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    stream = connection.makefile("rwb")
    write(stream, {"run": "1"})
    messages = {}
    while True:
        head, blobs = read(stream)
        if head["op"] == "nodes":
            write(stream, {"nodes": json.loads((FOLDER / "nodes").read_text())})
        elif head["op"] == "push":
            if any(blob == b"die" and first("die") for blob in blobs):
                sys.exit()
            ids = [f"{len(messages) + number}" for number in range(len(blobs))]
            messages.update(zip(ids, blobs))
            with open(FOLDER / "pushed", "a") as file:
                file.writelines(f"{node} {blob!r}\n" for node, blob in zip(head["to"], blobs))
            write(stream, {"ids": ids})
        elif head["op"] == "pull":
            found = [pair for identity in head["ids"] if (pair := answer(identity, messages[identity]))]
            write(stream, {"answers": [one for one, _ in found]}, [blob for _, blob in found])
        else:
            (FOLDER / "ended").touch()
            sys.exit()


def main():
    assert sys.argv[1] == "run" and sys.argv[sys.argv.index("--format") + 1] == "json"
    failures = int((FOLDER / "fail").read_text()) if (FOLDER / "fail").exists() else 0
    if failures:
        (FOLDER / "fail").write_text(str(failures - 1))
        print(json.dumps({"success": False, "error-message": "SuperLink\nis unavailable"}))
        sys.exit(1)
    if (FOLDER / "hang").exists():
        time.sleep(30)
    config = tomllib.loads(pathlib.Path(sys.argv[sys.argv.index("--run-config") + 1]).read_text())
    if not (FOLDER / "deaf").exists() and os.fork() == 0:
        os.setsid()
        for descriptor in (0, 1, 2):
            os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)
        serve(config["socket"])
    print(json.dumps({"success": True, "run-id": "1"}))


if __name__ == "__main__":
    main()
