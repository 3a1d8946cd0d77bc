"""The shim at a site, without Flower: it passes bytes, and nothing of what goes wrong gets out but a code."""
import importlib.util
import pathlib
import socket
import sys
import tempfile
import threading
import types

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
SHIM = ROOT / "python/starfold/flower/app/starfold_shim"
SECRET = "secret value 42 of patient 17"


class App:
    """Flower's ClientApp, as far as the shim uses it."""

    def query(self, _):
        return lambda function: function


@pytest.fixture(scope="module")
def shim():
    stub = types.ModuleType("flwr.app")
    stub.ConfigRecord, stub.RecordDict, stub.Context = dict, dict, object
    stub.Message = lambda content, reply_to: types.SimpleNamespace(content=content, reply_to=reply_to)
    client = types.ModuleType("flwr.clientapp")
    client.ClientApp = App
    before = {name: sys.modules.get(name) for name in ("flwr", "flwr.app", "flwr.clientapp")}
    sys.modules.update({"flwr": types.ModuleType("flwr"), "flwr.app": stub, "flwr.clientapp": client})
    try:
        spec = importlib.util.spec_from_file_location("shim_client_app", SHIM / "client_app.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    finally:
        for name, old in before.items():
            if old is None:
                del sys.modules[name]
            else:
                sys.modules[name] = old


@pytest.fixture
def node():
    """Starts a node that does with its connection what it is told; its socket's path."""
    folder = tempfile.TemporaryDirectory(prefix="sf")
    listeners, threads = [], []

    def start(behave):
        path = f"{folder.name}/{len(listeners)}.sock"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(1)
        listener.settimeout(10)

        def run():
            connection, _ = listener.accept()
            with connection:
                behave(connection)

        listeners.append(listener)
        threads.append(threading.Thread(target=run))
        threads[-1].start()
        return path

    yield start
    for thread in threads:
        thread.join(10)
    for listener in listeners:
        listener.close()
    folder.cleanup()


def message(data, seconds=5.0):
    return types.SimpleNamespace(content={"request": {"bytes": data, "seconds": seconds}})


def read_request(connection):
    stream = connection.makefile("rb")
    return stream.read(int.from_bytes(stream.read(8), "little"))


def test_bytes_go_and_come(shim, node):

    def behave(connection):
        request = read_request(connection)[::-1]
        connection.sendall(len(request).to_bytes(8, "little") + request)

    data = bytes(range(256)) * 9000
    assert shim.exchange(node(behave), message(data)) == (shim.ANSWERED, data[::-1])


def test_the_answer_is_a_record_with_a_code(shim, node):

    def behave(connection):
        connection.sendall(bytes(8) if read_request(connection) == b"" else b"")

    context = types.SimpleNamespace(node_config={"socket": node(behave)})
    assert shim.answer(message(b""), context).content == {"answer": {"code": 0, "bytes": b""}}


@pytest.mark.parametrize("path", ["/no/such.sock", "/dev/null", "/" + "x" * 200, "a\0b"])
def test_no_node(shim, path):
    assert shim.exchange(path, message(b"x")) == (shim.NOT_RUNNING, b"")


@pytest.mark.parametrize("path", [None, "", 7])
def test_no_socket_is_configured(shim, path):
    assert shim.exchange(path, message(b"x")) == (shim.NOT_CONFIGURED, b"")


def test_a_node_that_closes(shim, node):
    assert shim.exchange(node(read_request), message(b"x")) == (shim.CLOSED, b"")


def test_a_node_that_closes_in_the_middle(shim, node):

    def behave(connection):
        read_request(connection)
        connection.sendall((100).to_bytes(8, "little") + b"half")

    assert shim.exchange(node(behave), message(b"x")) == (shim.CLOSED, b"")


def test_a_node_with_a_lying_length(shim, node):

    def behave(connection):
        read_request(connection)
        connection.sendall(b"\xff" * 8)

    assert shim.exchange(node(behave), message(b"x")) == (shim.TOO_LARGE, b"")


def test_a_node_that_never_answers(shim, node):
    done = threading.Event()
    path = node(lambda connection: done.wait(10))
    try:
        assert shim.exchange(path, message(b"x", seconds=0.0)) == (shim.TOO_SLOW, b"")
    finally:
        done.set()


def test_a_node_that_trickles(shim, node):
    """Time is for the whole answer, not for each of its bytes."""
    done = threading.Event()

    def behave(connection):
        read_request(connection)
        try:
            connection.sendall((1000).to_bytes(8, "little"))
            while not done.wait(0.2):
                connection.sendall(b"x")
        except OSError:
            pass

    path = node(behave)
    try:
        assert shim.exchange(path, message(b"x", seconds=1.0)) == (shim.TOO_SLOW, b"")
    finally:
        done.set()


def test_a_request_that_is_too_large(shim, monkeypatch):
    monkeypatch.setattr(shim, "LIMIT", 3)
    assert shim.exchange("/no/such.sock", message(b"four")) == (shim.TOO_LARGE, b"")


@pytest.mark.parametrize("error", [ValueError, OSError, KeyError, MemoryError, RecursionError, UnicodeDecodeError])
def test_no_text_of_an_exception_gets_out(shim, monkeypatch, error):
    arguments = ("utf-8", b"", 0, 1, SECRET) if error is UnicodeDecodeError else (SECRET,)

    def ask(*_):
        raise error(*arguments)

    monkeypatch.setattr(shim, "ask", ask)
    assert shim.exchange("some.sock", message(b"x")) == (shim.FAILED, b"")


@pytest.mark.parametrize("content", [{}, {"request": {}}, {"request": {"bytes": "text", "seconds": 1.0}},
                                     {"request": {"bytes": b"x", "seconds": SECRET}}, {"request": None}, None])
def test_a_message_that_is_no_request(shim, content):
    assert shim.exchange("/no/such.sock", types.SimpleNamespace(content=content))[1] == b""
