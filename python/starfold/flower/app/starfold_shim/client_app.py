"""At a site: passes one request to the node's socket and its answer back.

Flower sends the text of an exception to the server, so nothing may escape: whatever goes wrong becomes one of the codes below, and the
sentence for it is written on the other side.
"""
import socket
import time

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

ANSWERED, NOT_RUNNING, CLOSED, TOO_SLOW, TOO_LARGE, NOT_CONFIGURED, FAILED = range(7)
LIMIT = 256 << 20  # bytes of a request or an answer
PATIENCE = 3600.0  # seconds, whatever the server asks for

app = ClientApp()


class Trouble(Exception):
    """Carries a code, never a text."""

    def __init__(self, code):
        super().__init__()
        self.code = code


def receive(connection, count, deadline):
    """Exactly count bytes, by the deadline."""
    parts = []
    while count:
        connection.settimeout(max(deadline - time.monotonic(), 0.001))
        part = connection.recv(min(count, 1 << 20))
        if not part:
            raise Trouble(CLOSED)
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def connect(path, deadline):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(max(deadline - time.monotonic(), 0.001))
        connection.connect(path)
    except TimeoutError:
        connection.close()
        raise Trouble(TOO_SLOW) from None
    except (OSError, ValueError):  # no such socket, nobody listens, not let in, not a path
        connection.close()
        raise Trouble(NOT_RUNNING) from None
    return connection


def ask(path, request, seconds):
    """The node's answer to a request: each is its length in 8 bytes, least significant first, and then its bytes."""
    if len(request) > LIMIT:
        raise Trouble(TOO_LARGE)
    deadline = time.monotonic() + min(max(seconds, 1.0), PATIENCE)
    with connect(path, deadline) as connection:
        try:
            connection.sendall(len(request).to_bytes(8, "little"))
            if request:  # even nothing cannot be sent to one that has answered and left
                connection.sendall(request)
            length = int.from_bytes(receive(connection, 8, deadline), "little")
            if length > LIMIT:
                raise Trouble(TOO_LARGE)
            return receive(connection, length, deadline)
        except TimeoutError:
            raise Trouble(TOO_SLOW) from None
        except OSError:
            raise Trouble(CLOSED) from None


def exchange(path, message):
    """(code, bytes): the bytes are the node's answer if the code is ANSWERED, else none."""
    try:
        if not isinstance(path, str) or not path:
            return NOT_CONFIGURED, b""
        request = message.content["request"]
        return ANSWERED, ask(path, request["bytes"], float(request["seconds"]))
    except Trouble as trouble:
        return trouble.code, b""
    except Exception:
        return FAILED, b""


def reply(message, code, data):
    return Message(RecordDict({"answer": ConfigRecord({"code": code, "bytes": data})}), reply_to=message)


@app.query("starfold")
def answer(message: Message, context: Context) -> Message:
    return reply(message, *exchange(context.node_config.get("socket"), message))
