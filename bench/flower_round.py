"""Time per round over Flower to three sites: Flower alone with an empty message, Starfold's carrier with one of a byte or two, and a
logistic regression over three Starfold nodes; with the shim or resident workers.

    tools/setup flower && build/flower-venv/bin/python bench/flower_round.py [ROUNDS [regression]]

With `regression` only that, beside Flower alone. The contestants take turns on deployments with TLS and node authentication on loopback; nodes
echo, but for the regression. The median of all rounds but the first of each turn counts: that one waits for processes to start.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests/e2e/flower")]

from federation import BIN, Federation  # noqa: E402
from parent import Parent  # noqa: E402

NAMES = ["north", "south", "island"]
TURNS = 2

PROJECT = """\
[project]
name = "empty"
version = "1.0.0"
dependencies = []
[tool.flwr.app]
publisher = "starfold"
[tool.flwr.app.components]
serverapp = "empty.server_app:app"
clientapp = "empty.client_app:app"
[tool.flwr.app.config]
out = ""
rounds = 1
patient = false
"""
CLIENT = """\
from flwr.app import Message, RecordDict
from flwr.clientapp import ClientApp
app = ClientApp()
@app.query("empty")
def answer(message, context):
    return Message(RecordDict(), reply_to=message)
"""
# `patient` is Flower's own way to wait, which looks every 3 seconds; else as often as the carrier does.
SERVER = """\
import json, time
from flwr.app import Message, RecordDict
from flwr.serverapp import ServerApp
app = ServerApp()
@app.main()
def main(grid, context):
    times = []
    for _ in range(context.run_config["rounds"]):
        begin = time.monotonic()
        messages = [Message(RecordDict(), dst_node_id=node, message_type="query.empty") for node in grid.get_node_ids()]
        if context.run_config["patient"]:
            grid.send_and_receive(messages, timeout=300)
        else:
            ids = set(grid.push_messages(messages))
            while ids:
                ids -= {reply.metadata.reply_to_message_id for reply in grid.pull_messages(ids)}
                time.sleep(0.2)
        times.append(time.monotonic() - begin)
    open(context.run_config["out"], "w").write(json.dumps(times))
"""


def flower(federation, rounds, patient):
    """Seconds of each round of an app that does nothing."""
    app = federation.folder / "app"
    (app / "empty").mkdir(parents=True, exist_ok=True)
    for name, text in ("pyproject.toml", PROJECT), ("empty/__init__.py", ""), ("empty/client_app.py", CLIENT), ("empty/server_app.py", SERVER):
        (app / name).write_text(text)
    out = federation.folder / "times.json"
    out.unlink(missing_ok=True)
    config = f'out="{out}" rounds={rounds} patient={"true" if patient else "false"}'
    subprocess.run([BIN / "flwr", "run", app, "here", "--run-config", config, "--format", "json"], env=federation.environment, check=True,
                   stdout=subprocess.DEVNULL, timeout=100)
    deadline = time.monotonic() + 60 * (rounds + 2)
    while not out.exists() or not out.read_text():
        if time.monotonic() > deadline:
            raise TimeoutError("the empty app did not end")
        time.sleep(1)
    return json.loads(out.read_text())


def starfold(federation, rounds):
    """Seconds of each round through the carrier and the nodes."""
    clients = [{"name": name, "public_key": (federation.folder / name / "key.pub").read_text()} for name in NAMES]
    parent = Parent([BIN / "starfold-flower"], {"superlink": federation.address, "root_certificates": (federation.folder / "ca.crt").read_text(),
                                                "clients": clients, "timeout": 300})
    times = []
    try:
        assert parent.hello(200)["ok"]
        for number in range(rounds):
            begin = time.monotonic()
            data = b"%d" % number  # requests of different rounds differ
            assert parent.round(dict.fromkeys(range(3), data), 300) == dict.fromkeys(range(3), (0, data))
            times.append(time.monotonic() - begin)
        parent.end()
    finally:
        parent.kill()
    return times


# A gradient step per round, as often as is asked for.
REGRESSION = """\
input x : [*, p]
input y : [*]
state beta : [p] = zeros(p)
repeat {rounds} {{
  beta <- beta - 1e-6 * grad(sum[*](softplus(x @ beta) - y * (x @ beta)), beta)
}}
output beta
"""


def regression(federation, rounds):
    """Seconds per round of a study, from its start to its result: what a run of one round takes, then what each further one adds."""
    def seconds(count):
        (federation.folder / "steps.fold").write_text(REGRESSION.format(rounds=count))
        study = 'program = "steps.fold"\n[options]\nmissing = "drop"\n[inputs]\nx = ["age", "bmi", "smoker"]\ny = "readmitted"\n'
        for name in NAMES:
            study += f'[[client]]\nname = "{name}"\nsource = "visits"\npublic_key = "{federation.folder / name}/key.pub"\n'
        study += f'[federation]\nvia = "flower"\nsuperlink = "{federation.address}"\nroot_certificates = "ca.crt"\ntimeout = "5m"\n'
        (federation.folder / "steps.toml").write_text(study)
        done = subprocess.run([ROOT / "build/starfold", "run", federation.folder / "steps.toml", "--json"], capture_output=True, text=True,
                              timeout=60 * (count + 4), env={**os.environ, "STARFOLD_FLOWER": str(BIN / "starfold-flower")})
        assert done.returncode == 0, done.stdout + done.stderr
        result = json.loads(done.stdout)
        assert result["rounds"] == count
        return result["seconds"]

    first = seconds(1)
    return [first] + [(seconds(rounds) - first) / (rounds - 1)] * (rounds - 1)


ECHOING = [str(BIN / "python"), str(ROOT / "tests/e2e/flower/fake_node.py"), "{toml}"]


def measure(residents, contestants, rounds, node=ECHOING):
    with tempfile.TemporaryDirectory(prefix="sf") as short:
        federation = Federation(pathlib.Path(short) / "f", NAMES, node, residents)
        federation.start()
        try:
            times = {name: [] for name in contestants}
            for _ in range(TURNS):
                for name, run in contestants.items():
                    times[name] += run(federation, rounds + 1)[1:]
        finally:
            federation.stop()
    for name, seconds in times.items():
        print(f"{name:34} median {statistics.median(seconds):5.2f} s  ({min(seconds):.2f} to {max(seconds):.2f}, {len(seconds)} rounds)  "
              f"load {os.getloadavg()[1]:.1f}", flush=True)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    empty = {"Flower alone, looking every 0.2 s": lambda federation, count: flower(federation, count, False)}
    if sys.argv[2:] != ["regression"]:
        measure([], {"Flower alone, send_and_receive": lambda federation, count: flower(federation, count, True), **empty,
                     "Starfold's carrier, the shim": starfold}, rounds)
        measure(NAMES, {"Starfold's carrier, residents": starfold}, rounds)
    measure([], {**empty, "logistic regression, the shim": regression}, rounds, None)
    measure(NAMES, {"logistic regression, residents": regression}, rounds, None)


if __name__ == "__main__":
    main()
