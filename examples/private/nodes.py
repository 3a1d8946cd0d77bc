"""The mean, the histogram and the logistic regression of utility.py over three node processes: every node requires privacy and masks, adds its
share of the noise, and keeps a budget. Nobody ever sees a sum without noise, nor the sum of one node.

python examples/private/nodes.py [EPSILON]    STARFOLD is the command (build/starfold)
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
COMMAND = os.environ.get("STARFOLD", str(ROOT / "build" / "starfold"))
DELTA = 1e-6
PIXELS = [f"pixel{i}" for i in range(64)]
BOUND = {"x": PIXELS, "y": "digit"}
NODE = """name = "{name}"
socket = "node.sock"
ledger = "node.ledger"
folder = "private"

[data.digits]
file = "digits.csv"
columns = {columns}

[policy]
privacy = "required"
secure_aggregation = "required"
[policy.budget]
epsilon = {budget}
delta = {delta}
"""


def command(*words):
    done = subprocess.run([COMMAND, *map(str, words)], capture_output=True, text=True, timeout=120)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def start(folder, name, x, y, budget):
    """A node with its records; it listens when this returns."""
    site = folder / name
    site.mkdir(mode=0o700)
    np.savetxt(site / "digits.csv", np.column_stack([x, y]), "%d", ",", header=",".join([*PIXELS, "digit"]), comments="")
    (site / "node.toml").write_text(NODE.format(name=name, columns=json.dumps([*PIXELS, "digit"]), budget=budget, delta=3 * DELTA))
    for file in site.iterdir():
        file.chmod(0o600)
    process = subprocess.Popen([COMMAND, "node", "serve", str(site / "node.toml")], stdout=subprocess.PIPE, text=True)
    if process.stdout.readline() != "listening\n":
        sys.exit(f"{name} did not start")
    return process


def study(folder, program, epsilon):
    inputs = {"mean": ["x"], "histogram": ["y"], "logistic": ["x", "y"]}[program]
    lines = [f'program = "{HERE / program}.fold"', "[inputs]", *(f"{name} = {json.dumps(BOUND[name])}" for name in inputs)]
    lines += ["[privacy]", f"epsilon = {epsilon}", f"delta = {DELTA}", 'at = "distributed"']
    lines += ["[secure_aggregation]", "threshold = 2", "[federation]", 'via = "sockets"']
    for site in sorted(path for path in folder.iterdir() if path.is_dir()):
        key = command("node", "key", site / "node.toml").strip()
        lines += ["[[client]]", f'name = "{site.name}"', f'node = "{site}/node.sock"', 'source = "digits"', f'key = "{key}"']
    path = folder / f"{program}.toml"
    path.write_text("\n".join(lines) + "\n")
    return json.loads(command("run", path, "--json"))


def main():
    epsilon = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    data = np.load(ROOT / "tests/data/digits.npz")
    x, y = data["x"].astype(float), data["y"].astype(float)
    design = np.hstack([np.ones((len(x), 1)), x / 16])
    nodes = []
    with tempfile.TemporaryDirectory(prefix="sf") as name:
        folder = pathlib.Path(name)
        try:
            for i, site in enumerate(("east", "north", "south")):
                nodes.append(start(folder, site, x[i::3], y[i::3], 3 * epsilon))
            answers = {program: study(folder, program, epsilon) for program in ("mean", "histogram", "logistic")}
            ledger = [json.loads(line) for line in (folder / "north/node.ledger").read_text().splitlines()]
        finally:
            for node in nodes:
                node.terminate()
                node.wait(60)
    outputs = {program: {name: np.array(value["data"]) for name, value in answer["outputs"].items()} for program, answer in answers.items()}
    beta = outputs["logistic"]["beta"]
    print(json.dumps({
        "epsilon": epsilon, "delta": DELTA,
        "mean": {"private": outputs["mean"]["mean_ink"][0], "plain": x.mean()},
        "histogram": {"private": outputs["histogram"]["counts"].tolist(), "plain": np.bincount(y.astype(int)).tolist()},
        "accuracy": float(np.mean((design @ beta > 0) == (y == 0))),
        "charged_at_north": sum(line.get("epsilon", 0) for line in ledger),
        "masked": all("masked" in line for line in ledger if line.get("kind") == "encode"),
    }, indent=1))


if __name__ == "__main__":
    main()
