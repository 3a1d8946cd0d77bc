"""Beside the SuperLink: hands Flower's Grid to the analyst's carrier over a Unix socket.

The carrier asks, this answers; every message is the length of a head in 8 bytes, the head as JSON, and the blobs whose lengths are in
head["blobs"]. Which nodes are addressed is the carrier's choice: only those of the study. When the carrier is gone, the run is over.
"""
import json
import socket

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.serverapp import Grid, ServerApp

app = ServerApp()


def write(stream, head, blobs=()):
    text = json.dumps({**head, "blobs": [len(blob) for blob in blobs]}).encode()
    stream.write(len(text).to_bytes(8, "little") + text)
    for blob in blobs:
        stream.write(blob)
    stream.flush()


def read(stream):
    """(head, blobs), or None when the other side has gone, also in the middle."""
    prefix = stream.read(8)
    text = stream.read(int.from_bytes(prefix, "little")) if len(prefix) == 8 else b""
    if not text:
        return None
    head = json.loads(text)
    blobs = [stream.read(length) for length in head["blobs"]]
    return (head, blobs) if [len(blob) for blob in blobs] == head["blobs"] else None


def list_nodes(grid, _head, _blobs):
    nodes = [{"id": node.node_id, "name": node.name, "key": node.public_key.decode("ascii", "replace")} for node in grid.get_nodes()]
    return {"nodes": nodes}, ()


def push(grid, head, blobs):
    messages = [
        Message(RecordDict({"request": ConfigRecord({"bytes": blob, "seconds": float(head["seconds"])})}), dst_node_id=node,
                message_type="query.starfold", ttl=float(head["ttl"])) for node, blob in zip(head["to"], blobs)
    ]
    return {"ids": [identity or "" for identity in grid.push_messages(messages)]}, ()


def unpack(reply):
    """(Flower's own error code or None, the shim's code or None, bytes). What a site sends may be anything; no text of an error is passed on."""
    if reply.has_error():
        return int(reply.error.code), None, b""
    try:
        record = reply.content["answer"]
        code, data = record["code"], record["bytes"]
    except Exception:
        return None, None, b""
    return (None, code, data) if isinstance(code, int) and isinstance(data, bytes) else (None, None, b"")


def pull(grid, head, _blobs):
    """The answers that have arrived."""
    answers, blobs = [], []
    for reply in grid.pull_messages(head["ids"]):
        flower, code, data = unpack(reply)
        answers.append({"id": reply.metadata.reply_to_message_id, "flower": flower, "code": code})
        blobs.append(data)
    return {"answers": answers}, blobs


OPERATIONS = {"nodes": list_nodes, "push": push, "pull": pull}


def serve(stream, grid, context):
    write(stream, {"run": str(context.run_id)})
    while (asked := read(stream)) and asked[0]["op"] in OPERATIONS:
        head, blobs = asked
        write(stream, *OPERATIONS[head["op"]](grid, head, blobs))


@app.main()
def main(grid: Grid, context: Context) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(context.run_config["socket"])
        except OSError:
            raise RuntimeError("the analyst's carrier is not on this machine, or has gone") from None
        try:
            with connection.makefile("rwb") as stream:
                serve(stream, grid, context)
        except ConnectionError:
            pass  # the carrier has gone, and with it the reason for this run
