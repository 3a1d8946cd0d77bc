"""A real Flower deployment on loopback with TLS and node authentication: a SuperLink, three SuperNodes, and three nodes that echo.

One site answers by the shim, the others by resident workers. The tests named `long` kill parts of it and take many minutes:
STARFOLD_FLOWER_LONG=1 build/venv/bin/python -m pytest tests/e2e/flower -k long
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest
from conftest import COMMAND
from parent import Parent, Patience

ROOT = pathlib.Path(__file__).resolve().parents[3]
HERE = pathlib.Path(__file__).parent
BIN = ROOT / "build/flower-venv/bin"
NAMES = ["north", "south", "island"]
sys.path.insert(0, str(ROOT / "tools"))

pytestmark = pytest.mark.skipif(not (BIN / "starfold-flower").exists(), reason="Flower is not installed: tools/setup flower")
long = pytest.mark.skipif(os.environ.get("STARFOLD_FLOWER_LONG") != "1", reason="takes many minutes: STARFOLD_FLOWER_LONG=1")


@pytest.fixture(scope="module")
def federation():
    from federation import Federation, birth, marked
    with tempfile.TemporaryDirectory(prefix="sf") as short:
        folder = pathlib.Path(short) / "f"
        node = f"{sys.executable} {HERE / 'fake_node.py'} {{toml}}"
        subprocess.run([ROOT / "tools/federation", "start", folder, "--resident", "north,island", "--node", node], check=True, timeout=2000,
                       stdout=subprocess.DEVNULL)
        started = Federation.open(folder)
        record = started.recorded()
        assert {entry["name"] for entry in record} >= {"superlink", "resident north", "resident island", *(f"supernode {name}" for name in NAMES)}
        try:
            yield started
        finally:
            record = started.recorded()
            subprocess.run([ROOT / "tools/federation", "stop", folder], check=True, timeout=600, stdout=subprocess.DEVNULL)
            assert not [entry["name"] for entry in record if entry["birth"] and birth(entry["pid"]) == entry["birth"]]
            assert marked(started.token) == []


@pytest.fixture
def carrier(federation):
    """Starts a carrier for the three sites; it has said hello."""
    parents = []

    def start(timeout=200, command=(BIN / "starfold-flower", ), environment=None, **config):
        clients = [{"name": name, "public_key": (federation.folder / name / "key.pub").read_text()} for name in NAMES]
        first = {"superlink": federation.address, "root_certificates": (federation.folder / "ca.crt").read_text(), "clients": clients, **config}
        parents.append(Parent(list(command), {**first, "timeout": timeout}, environment=environment))
        return parents[-1]

    yield start
    for parent in parents:
        parent.kill()


def pid_of(federation, name):
    return [entry["pid"] for entry in federation.recorded() if entry["name"] == name][-1]


def test_bytes_come_back_as_they_were(federation, carrier):
    parent = carrier()
    assert parent.hello(150) == {"ok": True}
    requests = {0: os.urandom(200_000), 1: b"", 2: bytes(range(256))}
    assert parent.round(requests, 220) == {client: (0, data) for client, data in requests.items()}

    # A node that does not run, one that says nothing, one whose answer claims to be longer than anything.
    os.kill(pid_of(federation, "node north"), signal.SIGTERM)
    assert parent.round({0: b"x", 1: b"close", 2: b"long"}, 220) == {
        0: (1, b"north: its node is not running, or does not let the SuperNode's user in"),
        1: (1, b"south: its node closed the connection without an answer"),
        2: (1, b"island: its message is larger than can be carried"),
    }
    federation.start_node("north")
    assert parent.round({0: b"x"}, 220) == {0: (0, b"x")}
    assert parent.end() == 0


def test_strangers_are_kept_out(federation, carrier, tmp_path):
    """A SuperNode with a key that is not registered, one that trusts another authority, and analysts with the wrong one or another key."""
    make = "import sys, pathlib; sys.path.insert(0, sys.argv[1]); import federation as f; p = pathlib.Path(sys.argv[2]); " \
           "f.make_certificates(p); f.make_key(p, 'stranger')"
    subprocess.run([BIN / "python", "-c", make, ROOT / "tools", tmp_path], check=True, timeout=60)
    deceived = carrier(timeout=1, root_certificates=(tmp_path / "ca.crt").read_text())
    mistaken = carrier(timeout=8, clients=[{"name": "north", "public_key": (tmp_path / "key.pub").read_text()}])
    from federation import free_ports
    ports = free_ports(2)
    known = federation.folder / "south/key"
    strangers = {
        "unregistered": federation.supernode_words(ports[0], 'x="1"', tmp_path / "key"),
        "wrong authority": federation.supernode_words(ports[1], 'x="1"', known, certificates=tmp_path / "ca.crt"),
    }
    running = {}
    for name, words in strangers.items():
        (tmp_path / name).mkdir()
        with open(tmp_path / f"{name}.log", "wb") as log:
            running[name] = subprocess.Popen(words, cwd=federation.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                             env={**federation.environment, "FLWR_HOME": str(tmp_path / name)}, start_new_session=True)
    try:
        for name, process in running.items():
            assert process.wait(1600) != 0
            said = (tmp_path / f"{name}.log").read_text()
            assert "SuperNode ID" not in said
            assert ("CERTIFICATE_VERIFY_FAILED" if name == "wrong authority" else "2004") in said
    finally:
        for process in running.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    assert mistaken.hello(150) == {"ok": True}
    assert mistaken.round({0: b"x"}, 60) == {0: (1, b"north: no answer over Flower within 8 s")}
    assert mistaken.end() == 0
    refused = deceived.hello(150)
    assert not refused["ok"] and refused["error"].startswith(("Flower did not start a run: ", "`flwr run` took too long"))


def test_no_text_of_an_exception_reaches_the_server(federation, carrier, tmp_path):
    """The bundle with a shim in which something fails with a record in its text."""
    package = tmp_path / "starfold/flower"
    shutil.copytree(ROOT / "python/starfold/flower", package, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "starfold/__init__.py").touch()
    shim = package / "app/starfold_shim/client_app.py"
    # Put together when it runs, so that it is not in the bundle itself.
    shim.write_text(shim.read_text() + "\n\ndef ask(*_):\n    raise ValueError(f'value {6 * 7} of patient {10 + 7}')\n")
    # The package is installed in place: a folder that comes first wins.
    own = "import sys; sys.path.insert(0, sys.argv.pop(1)); import starfold.flower.bridge as b; assert sys.path[0] in str(b.APP); " \
          "from starfold.flower.main import main; sys.exit(main())"
    parent = carrier(command=(BIN / "python", "-c", own, str(tmp_path)))
    assert parent.hello(150) == {"ok": True}
    # North's resident worker does not run the bundle at all.
    assert parent.round({0: b"x", 1: b"y"}, 220) == {0: (0, b"x"), 1: (1, b"south: the shim at its SuperNode failed")}
    assert parent.end() == 0
    files = [federation.folder / "superlink.log", *federation.folder.glob("state.db*")]
    assert not [file for file in files if b"patient 17" in file.read_bytes()]


@pytest.fixture
def real_nodes(federation):
    """The command's own nodes, with the demo's records, in place of those that echo."""
    if subprocess.run([COMMAND, "node", "--help"], capture_output=True, timeout=60).returncode:
        pytest.skip("this command has no `node`")
    echoing, federation.node_command = federation.node_command, [COMMAND, "node", "serve", "{toml}"]
    try:
        replace_nodes(federation)
        yield
    finally:
        federation.node_command = echoing
        replace_nodes(federation)


def replace_nodes(federation):
    federation.end([entry for entry in federation.recorded() if entry["name"].startswith("node ")])
    for name in federation.names:
        federation.start_node(name)
        federation.wait(f"node {name}", f"the node {name}", (federation.folder / name / f"{name}.sock").exists)


def run_study(study, seconds=2400):
    done = subprocess.run([COMMAND, "run", study, "--json"], capture_output=True, text=True, timeout=seconds,
                          env={**os.environ, "STARFOLD_FLOWER": str(BIN / "starfold-flower")})
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)["outputs"]


def test_a_study_over_flower_gives_the_bits_of_a_local_run(federation, real_nodes, tmp_path):
    (tmp_path / "spread.fold").write_text("input x : [*]\noutput m = mean[*](x)\noutput v = var[*](x)\n")
    head = 'program = "spread.fold"\n[inputs]\nx = "age"\n'
    here, away = head, head
    for name in NAMES:
        site = federation.folder / name
        here += f'[[client]]\nname = "{name}"\ndata = "{site}/visits.csv"\n'
        away += f'[[client]]\nname = "{name}"\nsource = "visits"\npublic_key = "{site}/key.pub"\n'
    away += f'[federation]\nvia = "flower"\nsuperlink = "{federation.address}"\n' \
            f'root_certificates = "{federation.folder}/ca.crt"\ntimeout = "2m"\n'
    (tmp_path / "here.toml").write_text(here)
    (tmp_path / "away.toml").write_text(away)
    assert run_study(tmp_path / "away.toml") == run_study(tmp_path / "here.toml")


def test_masks_over_flower(federation, real_nodes, tmp_path):
    """Secure aggregation and shares of noise with Flower in between: the integers of a run in one process, and no state that is not masked."""
    (tmp_path / "counts.fold").write_text("input x : [*]\noutput n = count[*](x)\noutput old = sum[*](x > 60)\noutput m = mean[*](clip(x, 0, 100))\n")
    head = 'program = "counts.fold"\n[inputs]\nx = "age"\n'
    masks = "[secure_aggregation]\nthreshold = 2\n"
    away = f'[federation]\nvia = "flower"\nsuperlink = "{federation.address}"\n' \
           f'root_certificates = "{federation.folder}/ca.crt"\ntimeout = "5m"\n'
    here = head + masks
    for name in NAMES:
        site = federation.folder / name
        key = subprocess.run([COMMAND, "node", "key", site / "NODE.toml"], capture_output=True, text=True, timeout=60, check=True).stdout.strip()
        here += f'[[client]]\nname = "{name}"\ndata = "{site}/visits.csv"\n'
        away += f'[[client]]\nname = "{name}"\nsource = "visits"\npublic_key = "{site}/key.pub"\nkey = "{key}"\n'
    noise = '[privacy]\nepsilon = 50.0\ndelta = 1e-6\nat = "distributed"\n'
    (tmp_path / "here.toml").write_text(here)
    (tmp_path / "away.toml").write_text(head + masks + away)
    (tmp_path / "noised.toml").write_text(head + masks + noise + away)
    plain = run_study(tmp_path / "here.toml")
    assert run_study(tmp_path / "away.toml") == plain
    noised = run_study(tmp_path / "noised.toml")
    assert noised != plain and abs(noised["m"]["data"][0] - plain["m"]["data"][0]) < 5
    for name in NAMES:
        lines = [json.loads(line) for line in (federation.folder / name / f"{name}.ledger").read_text().splitlines()]
        sent = [line for line in lines if line.get("kind") == "encode" and line.get("decision") == "sent"][-2:]
        assert all(line["masked"] == "3 clients, threshold 2" for line in sent)


@long
def test_long_the_demo_over_flower(federation, real_nodes, tmp_path):
    import demo
    for name in NAMES:
        shutil.copy(federation.folder / name / "visits.csv", tmp_path / f"{name}.csv")
    (tmp_path / "study.toml").write_text(demo.STUDY)
    assert run_study(federation.folder / "study.toml") == run_study(tmp_path / "study.toml")


@long
def test_long_a_node_killed_inside_the_masking(federation, real_nodes, tmp_path):
    """It has given its masked state and then forgets its keys: the others end the round without it, and it takes part in the next. The result
    is that of a run in one process."""
    (tmp_path / "steps.fold").write_text("input x : [*]\nstate m : [] = 0\nrepeat 2 {\n  m <- m + sum[*](x > 40 + m / 1000)\n}\noutput m\n")
    head = 'program = "steps.fold"\n[inputs]\nx = "age"\n[secure_aggregation]\nthreshold = 2\n'
    here = away = head
    away += f'[federation]\nvia = "flower"\nsuperlink = "{federation.address}"\nroot_certificates = "{federation.folder}/ca.crt"\ntimeout = "5m"\n'
    for name in NAMES:
        site = federation.folder / name
        key = subprocess.run([COMMAND, "node", "key", site / "NODE.toml"], capture_output=True, text=True, timeout=60, check=True).stdout.strip()
        here += f'[[client]]\nname = "{name}"\ndata = "{site}/visits.csv"\n'
        away += f'[[client]]\nname = "{name}"\nsource = "visits"\npublic_key = "{site}/key.pub"\nkey = "{key}"\n'
    (tmp_path / "here.toml").write_text(here)
    (tmp_path / "away.toml").write_text(away)
    ledger = federation.folder / "island/island.ledger"
    before = ledger.read_text().count('"kind":"encode"')
    process = subprocess.Popen([COMMAND, "run", tmp_path / "away.toml", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "STARFOLD_FLOWER": str(BIN / "starfold-flower")})
    try:
        patience = Patience(400)
        while ledger.read_text().count('"kind":"encode"') == before:
            assert process.poll() is None and not patience.over()
            time.sleep(0.02)
        os.kill(pid_of(federation, "node island"), signal.SIGKILL)
        federation.start_node("island")
        out, err = process.communicate(timeout=2400)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert json.loads(out)["outputs"] == run_study(tmp_path / "here.toml")


def restart_supernode(federation, name, seconds=200):
    """As a supervisor does: again and again, since Flower refuses the key until the lease of the dead one has ended."""
    patience = Patience(seconds)
    while not federation.online(name):
        assert not patience.over()
        federation.start_supernode(name)
        process = federation.processes[f"supernode {name}"]
        while process.poll() is None and not federation.online(name):
            assert not patience.over()
            time.sleep(0.5)
        time.sleep(2)


def forget_log(federation, name):
    (federation.folder / name / "supernode.log").unlink(missing_ok=True)


@long
@pytest.mark.parametrize("name", ["south", "north"])
def test_long_supernode_killed(federation, carrier, name):
    """In the middle of a request, which is answered in the end: at a site with the shim, and at one with a resident worker."""
    parent = carrier(timeout=500)
    assert parent.hello(150)["ok"]
    client = NAMES.index(name)
    parent.ask(client, b"slow 15")
    time.sleep(12)
    os.kill(pid_of(federation, f"supernode {name}"), signal.SIGKILL)
    forget_log(federation, name)
    restart_supernode(federation, name)
    assert parent.answer(500) == (client, 0, b"slow 15")
    assert parent.round({0: b"a", 1: b"b", 2: b"c"}, 200) == {0: (0, b"a"), 1: (0, b"b"), 2: (0, b"c")}
    assert parent.end() == 0


@long
def test_long_resident_killed(federation, carrier):
    parent = carrier(timeout=500)
    assert parent.hello(150)["ok"]
    parent.ask(0, b"slow 15")
    time.sleep(10)
    os.kill(pid_of(federation, "resident north"), signal.SIGKILL)
    federation.start_resident("north")
    assert parent.answer(500) == (0, 0, b"slow 15")
    assert parent.end() == 0


@long
def test_long_request_of_more_than_a_lease(federation, carrier):
    """A task that works longer than Flower waits for a sign of life."""
    parent = carrier(timeout=500)
    assert parent.hello(150)["ok"]
    assert parent.round({0: b"slow 100", 1: b"slow 100"}, 400) == {0: (0, b"slow 100"), 1: (0, b"slow 100")}
    assert parent.end() == 0


@long
def test_long_superlink_killed(federation, carrier):
    """With its database it comes back, but the run does not: the carrier starts another."""
    parent = carrier(timeout=500)
    assert parent.hello(150)["ok"]
    assert parent.round({0: b"a", 1: b"b", 2: b"c"}, 200) == {0: (0, b"a"), 1: (0, b"b"), 2: (0, b"c")}
    for client in range(3):
        parent.ask(client, b"slow 5")
    time.sleep(4)
    os.kill(pid_of(federation, "superlink"), signal.SIGKILL)
    time.sleep(5)
    federation.start_superlink()
    federation.wait("superlink", "the SuperLink", federation.superlink_answers)
    answers = {client: (status, data) for client, status, data in (parent.answer(500) for _ in range(3))}
    assert answers == {client: (0, b"slow 5") for client in range(3)}
    assert parent.end() == 0


@long
def test_long_carrier_killed(federation, carrier):
    """The run ends by itself, and a new carrier does the work."""
    parent = carrier()
    assert parent.hello(150)["ok"]
    parent.ask(1, b"slow 5")
    time.sleep(2)
    parent.kill()
    again = carrier()
    assert again.hello(150)["ok"]
    assert again.round({1: b"slow 5"}, 200) == {1: (0, b"slow 5")}
    assert again.end() == 0
    patience = Patience(120)
    while True:
        listed = subprocess.run([BIN / "flwr", "ls", "here", "--format", "json"], env=federation.environment, capture_output=True, text=True,
                                timeout=480).stdout
        running = [run for run in json.loads(listed)["runs"] if not run["status"].startswith("finished")]
        if not running:
            break
        assert not patience.over(), running
        time.sleep(5)
