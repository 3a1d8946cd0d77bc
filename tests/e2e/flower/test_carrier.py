"""The carrier of a study over Flower, against a stub of Flower: what it says to its parent, and what it does when Flower loses things."""
import json
import os
import pathlib
import struct
import sys
import tempfile
import time

import pytest
from parent import Parent

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAUSE = 0.4  # seconds before the carrier tries again what failed
STUB = pathlib.Path(__file__).parent / "stub_flwr.py"
sys.path.insert(0, str(ROOT / "python"))

from starfold.flower import bridge, carry, frames, sites  # noqa: E402


def nodes(*names):
    return [{"id": 100 + number, "name": name, "key": ""} for number, name in enumerate(names)]


@pytest.fixture
def short():
    """A folder with a short name: the path of a socket has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="sf") as name:
        yield pathlib.Path(name)


@pytest.fixture
def start(tmp_path, short):
    """Starts a carrier over the stub, for clients north and south, both online unless `online` says otherwise."""
    parents = []

    def run(online=("north", "south"), timeout=30, config=None):
        (tmp_path / "nodes").write_text(json.dumps(nodes(*online)))
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "STUB_FOLDER": str(tmp_path), "TMPDIR": str(short)}
        # In less of a hurry with real sites than with a stub.
        quick = f"import sys; from starfold.flower import carry, main; carry.PAUSE = {PAUSE}; sys.exit(main.main())"
        command = [sys.executable, "-c", quick, "--flwr", f"{sys.executable} {STUB}"]
        with open(tmp_path / "errors", "wb") as errors:
            clients = [{"name": name, "public_key": ""} for name in ("north", "south")]
            first = {"superlink": "127.0.0.1:1", "root_certificates": "", "timeout": timeout, "clients": clients, **(config or {})}
            parents.append(Parent(command, first, errors, environment))
        return parents[-1]

    yield run
    for parent in parents:
        parent.kill()


def test_requests_and_answers(start, tmp_path, short):
    parent = start()
    assert parent.hello(60) == {"ok": True}
    assert len(list(short.iterdir())) == 1
    big = os.urandom(3 << 20)
    assert parent.round({0: b"", 1: big}, 60) == {0: (0, b""), 1: (0, big)}
    assert parent.round({1: b"once more"}, 60) == {1: (0, b"once more")}
    assert parent.end() == 0
    assert (tmp_path / "ended").exists()
    assert not list(short.iterdir()), "it leaves nothing behind"
    assert (tmp_path / "errors").read_text() == ""


def test_what_flower_loses_is_sent_again(start, tmp_path):
    parent = start()
    assert parent.hello(60)["ok"]
    assert parent.round({0: b"lost 3", 1: b"lost 8"}, 60) == {0: (0, b"lost 3"), 1: (0, b"lost 8")}
    assert parent.round({0: b"lost 5"}, 60) == {0: (0, b"lost 5")}
    assert sorted((tmp_path / "pushed").read_text().splitlines()) == ["100 b'lost 3'"] * 2 + ["100 b'lost 5'"] * 2 + ["101 b'lost 8'"] * 2
    said = (tmp_path / "errors").read_text()
    for name, code in ("north", 3), ("north", 5), ("south", 8):
        assert f"flower: {name}: Flower lost the request (code {code}); sending it again\n" in said
    assert parent.end() == 0


def test_a_lost_run_is_followed_by_another(start, tmp_path):
    parent = start()
    assert parent.hello(60)["ok"]
    assert parent.round({0: b"die", 1: b"hello"}, 30) == {0: (0, b"die"), 1: (0, b"hello")}
    assert "the ServerApp of the run has ended; starting another run" in (tmp_path / "errors").read_text()
    assert parent.end() == 0


def test_a_superlink_that_comes_late(start, tmp_path):
    (tmp_path / "fail").write_text("1")
    parent = start()
    assert parent.hello(60) == {"ok": True}
    assert "flower: Flower did not start a run: SuperLink is unavailable; trying again\n" == (tmp_path / "errors").read_text()
    assert parent.end() == 0


@pytest.mark.parametrize("request_, sentence", [
    (b"code 1", b"north: its node is not running, or does not let the SuperNode's user in"),
    (b"code 2", b"north: its node closed the connection without an answer"),
    (b"code 77", b"north: its SuperNode sent something that is no answer"),
    (b"flower 2", b"north: Flower's ClientApp failed at its SuperNode (code 2)"),
    (b"flower 7", b"north: its SuperNode does not trust the app (code 7)"),
    (b"flower 99", b"north: Flower failed at its SuperNode (code 99)"),
])
def test_failures_at_a_site_are_fixed_sentences(start, request_, sentence):
    parent = start()
    assert parent.hello(60)["ok"]
    assert parent.round({0: request_, 1: b"x"}, 60) == {0: (1, sentence), 1: (0, b"x")}
    assert parent.end() == 0


def test_a_client_that_is_not_there(start, tmp_path):
    parent = start(online=["south"], timeout=2)
    assert parent.hello(60)["ok"]
    assert parent.round({0: b"x", 1: b"y"}, 60) == {0: (1, b"north: no answer over Flower within 2 s"), 1: (0, b"y")}
    assert parent.end() == 0


def test_a_client_that_comes_late(start, tmp_path):
    parent = start(online=["south"])
    assert parent.hello(60)["ok"]
    parent.ask(0, b"x")
    time.sleep(0.6)
    (tmp_path / "nodes").write_text(json.dumps(nodes("south", "north")))
    assert parent.answer(60) == (0, 0, b"x")
    assert (tmp_path / "pushed").read_text() == "101 b'x'\n", "its own node, and nobody else"
    assert parent.end() == 0


def test_a_new_request_takes_the_place_of_an_old_one(start):
    parent = start()
    assert parent.hello(60)["ok"]
    parent.ask(0, b"silent")
    time.sleep(0.5)
    parent.ask(0, b"loud")
    assert parent.answer(60) == (0, 0, b"loud")
    assert parent.end() == 0


def test_names_that_are_not_unique_are_refused(start):
    parent = start(online=["north", "south", "north"])
    assert parent.hello(60) == {"ok": False, "error": "2 SuperNodes are called north: give the client's public_key in the study"}
    assert parent.end() == 1


def test_an_impostor_that_comes_later_gets_nothing(start, tmp_path):
    parent = start()
    assert parent.hello(60)["ok"]
    (tmp_path / "nodes").write_text(json.dumps(nodes("south", "north", "north")))
    time.sleep(PAUSE)
    status, sentence = parent.round({0: b"x"}, 60)[0]
    assert status == 1 and b"2 SuperNodes are called north" in sentence
    assert not (tmp_path / "pushed").exists()
    assert parent.end() == 0


@pytest.mark.parametrize("config, sentence", [
    ({"root_certificates": 7}, "the first frame is not a configuration"),
    ({"superlink": 7}, "the first frame is not a configuration"),
    ({"clients": [{"name": "north", "public_key": "/no/key.pub"}]}, "client north: its public_key is not a public key"),
])
def test_mistakes_of_the_set_up_are_told(start, config, sentence):
    if "public_key is not" in sentence:
        pytest.importorskip("cryptography")  # Flower brings it
    parent = start(config=config)
    assert parent.hello(60) == {"ok": False, "error": sentence}
    assert parent.end() == 1


def test_a_torn_frame_ends_the_carrier(start, tmp_path):
    parent = start()
    assert parent.hello(60)["ok"]
    parent.write(struct.pack("<IQ", 0, 100) + b"only this")
    assert parent.end() == 1
    assert "flower: the stream ended in the middle of a frame\n" == (tmp_path / "errors").read_text()


@pytest.mark.parametrize("frame, sentence", [
    (struct.pack("<IQ", 0, 1 << 60), f"flower: a frame of {1 << 60} bytes is longer than {frames.LIMIT}\n"),
    (struct.pack("<IQ", 2, 0), "flower: there is no client 2\n"),
], ids=["length", "client"])
def test_a_lying_frame_ends_the_carrier(start, tmp_path, frame, sentence):
    parent = start()
    assert parent.hello(60)["ok"]
    parent.write(frame)
    assert parent.process.wait(60) == 1
    assert (tmp_path / "errors").read_text() == sentence


def test_a_parent_that_dies_ends_the_run(start, tmp_path):
    parent = start()
    assert parent.hello(60)["ok"]
    parent.ask(0, b"silent")
    parent.process.stdout.close()
    parent.process.stdin.close()
    assert parent.process.wait(60) == 0
    assert (tmp_path / "ended").exists()


@pytest.mark.parametrize("where", ["hang", "deaf"])
def test_an_end_while_flower_hangs(start, tmp_path, short, where):
    """`flwr run` that does not return, a ServerApp that does not connect: the carrier ends all the same, and soon."""
    (tmp_path / where).touch()
    parent = start()
    time.sleep(1.5)
    began = time.monotonic()
    assert parent.end() == 1
    assert time.monotonic() - began < 5
    assert not list(short.iterdir())


class Bridge:
    """A run in this process that loses what it is told to."""

    def __init__(self, silent_for=0):
        self.pushed = []
        self.silent_for = silent_for

    def nodes(self):
        return nodes("north")

    def push(self, requests, seconds, ttl):
        self.pushed += requests
        return [str(len(self.pushed))]

    def pull(self, ids):
        return [(identity, None, 0, b"late") for identity in ids if int(identity) > self.silent_for]


def test_a_request_without_any_answer_is_sent_again(monkeypatch):
    """A message that was with a SuperNode when it was killed: Flower never says anything about it."""
    monkeypatch.setattr(carry, "SILENCE", 0.05)
    run, answers = Bridge(silent_for=2), []
    carrier = carry.Carrier([sites.Client("north")], 20.0, lambda _: run, lambda *answer: answers.append(answer))
    carrier.open(1.0)
    carrier.request(0, b"x")
    deadline = time.monotonic() + 10
    while not answers and time.monotonic() < deadline:
        carrier.step()
        time.sleep(0.01)
    assert answers == [(0, 0, b"late")]
    assert run.pushed == [(100, b"x")] * 3


def test_the_same_request_again_is_not_sent_twice():
    run, answers = Bridge(silent_for=1000), []
    carrier = carry.Carrier([sites.Client("north")], 20.0, lambda _: run, lambda *answer: answers.append(answer))
    carrier.open(1.0)
    for _ in range(5):
        carrier.request(0, b"x")
        carrier.step()
    assert run.pushed == [(100, b"x")]


def test_a_request_that_crossed_with_its_answer_waits_a_little(monkeypatch):
    run, answers = Bridge(), []
    carrier = carry.Carrier([sites.Client("north")], 20.0, lambda _: run, lambda *answer: answers.append(answer))
    carrier.open(1.0)
    for request in b"x", b"x", b"y":
        carrier.request(0, request)
        carrier.step()
    assert run.pushed == [(100, b"x"), (100, b"y")]
    monkeypatch.setattr(carry, "CROSSING", 0.0)  # and is sent after all
    carrier.request(0, b"y")
    carrier.step()
    assert run.pushed[2:] == [(100, b"y")] and len(answers) == 3


def test_who_is_awaited_is_told(monkeypatch, capsys):
    monkeypatch.setattr(carry, "TELLING", 0.0)
    run = Bridge(silent_for=1000)
    carrier = carry.Carrier([sites.Client("north"), sites.Client("south")], 20.0, lambda _: run, print)
    carrier.open(1.0)
    carrier.request(0, b"x")
    carrier.request(1, b"y")
    carrier.step()
    assert capsys.readouterr().err == "flower: waiting for north, south (its SuperNode is not online); 0 s\n"


def test_the_socket_has_a_secret_name_in_a_folder_that_cannot_be_listed(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    place = bridge.Place("127.0.0.1:1", "")
    try:
        listener, path, config = place.listen()
        listener.close()
        assert place.folder.stat().st_mode & 0o777 == 0o711
        assert place.home.stat().st_mode & 0o077 == 0
        assert len(path.name) == 32 and path.name in config.read_text()
    finally:
        place.remove()


def test_the_command_sends_what_files_hold(tmp_path):
    """The carrier may run on another machine (STARFOLD_FLOWER="ssh ..."), so it gets no paths."""
    import subprocess
    from conftest import COMMAND
    (tmp_path / "carrier.py").write_text(
        "import struct, sys\nn, = struct.unpack('<Q', sys.stdin.buffer.read(8))\nopen(sys.argv[1], 'wb').write(sys.stdin.buffer.read(n))\n"
        "said = b'{\"ok\": false, \"error\": \"that is all\"}'\nsys.stdout.buffer.write(struct.pack('<Q', len(said)) + said)\n")
    (tmp_path / "ca.crt").write_text("-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n")
    (tmp_path / "north.pub").write_text("ecdsa-sha2-nistp384 AAAA north\n")
    (tmp_path / "mean.fold").write_text("input x : [*]\noutput m = mean[*](x)\n")
    (tmp_path / "study.toml").write_text(
        'program = "mean.fold"\n[inputs]\nx = "age"\n[[client]]\nname = "north"\nsource = "visits"\npublic_key = "north.pub"\n'
        '[federation]\nvia = "flower"\nsuperlink = "127.0.0.1:1"\nroot_certificates = "ca.crt"\ntimeout = "7s"\n')

    def run():
        return subprocess.run([COMMAND, "run", tmp_path / "study.toml"], capture_output=True, text=True, timeout=60, cwd="/",
                              env={**os.environ, "STARFOLD_FLOWER": f"{sys.executable} {tmp_path}/carrier.py {tmp_path}/frame"})

    done = run()
    assert done.returncode == 3 and "messages cannot be carried: that is all" in done.stderr
    assert json.loads((tmp_path / "frame").read_text()) == {
        "superlink": "127.0.0.1:1", "root_certificates": (tmp_path / "ca.crt").read_text(), "timeout": 7.0,
        "clients": [{"name": "north", "public_key": (tmp_path / "north.pub").read_text()}]}
    (tmp_path / "north.pub").unlink()
    done = run()
    assert done.returncode == 3 and "the public key of client north: " in done.stderr and "north.pub" in done.stderr
