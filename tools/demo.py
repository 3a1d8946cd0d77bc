"""The demonstration behind `make demo`: three hospitals, one model, compared with NumPy on the pooled records."""

import json
import pathlib
import shlex
import subprocess
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = pathlib.Path("build/demo")
PROGRAM = "examples/logistic.fold"
HOSPITALS = {"north": 1200, "south": 700, "island": 40}
COLUMNS = ["intercept", "age", "bmi", "smoker"]
RIDGE = 1e-6  # the default in PROGRAM


def make_records(random, count):
    """Covariates in COLUMNS and a response, drawn from a logistic model."""
    age, bmi = random.normal(0, 1, (2, count)).round(4)
    smoker = random.random(count) < 0.3
    x = np.column_stack([np.ones(count), age, bmi, smoker])
    chance = 1 / (1 + np.exp(-(x @ [-1.0, 0.8, 0.4, 1.1])))
    return x, (random.random(count) < chance).astype(float)


def fit_pooled(x, y):
    """The same Newton's method on all records in one place."""
    beta = np.zeros(x.shape[1])
    for _ in range(25):
        mean = 1 / (1 + np.exp(-(x @ beta)))
        gradient = x.T @ (mean - y) + RIDGE * beta
        hessian = (x.T * (mean * (1 - mean))) @ x + RIDGE * np.eye(len(beta))
        step = np.linalg.solve(hessian, gradient)
        beta -= step
        if np.max(np.abs(step)) < 1e-9:
            break
    return beta


def starfold(*words):
    """Shows the command as a person would type it, runs it, and returns what it printed."""
    print(f"$ starfold {shlex.join(words)}", flush=True)
    run = subprocess.run([ROOT / "build/starfold", *words], cwd=ROOT, text=True, stdout=subprocess.PIPE)
    if run.returncode:
        print(run.stdout)
        sys.exit(f"demo: the command above failed with exit code {run.returncode}")
    return run.stdout


def main():
    random = np.random.default_rng(7)
    folder = ROOT / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    records = {name: make_records(random, count) for name, count in HOSPITALS.items()}
    for name, (x, y) in records.items():
        np.savetxt(folder / f"{name}.csv", np.column_stack([x, y]), fmt="%.10g", delimiter=",",
                   header=",".join([*COLUMNS, "y"]), comments="")
    pooled = fit_pooled(*(np.concatenate(parts) for parts in zip(*records.values())))

    print(f"{len(HOSPITALS)} hospitals, {sum(HOSPITALS.values())} patients. First, what would leave a hospital:\n")
    print(starfold("check", PROGRAM))
    print("Now the run. Each hospital reads only its own file:\n")
    clients = [word for name in HOSPITALS for word in ("--client", f"{name}={FOLDER}/{name}.csv")]
    result = json.loads(starfold("run", PROGRAM, *clients, "--bind", f"x={','.join(COLUMNS)}", "--json"))
    federated = np.array(result["outputs"]["beta"]["data"])

    print(f"\n{'':12}{'federated':>14}{'pooled, NumPy':>16}{'difference':>13}")
    for row in zip(COLUMNS, federated, pooled, federated - pooled):
        print("{:12}{:14.8f}{:16.8f}{:13.1e}".format(*row))
    print(f"\n{result['rounds']} rounds; sent by each hospital:",
          ", ".join(f"{client['name']} {client['bytes_sent']} bytes" for client in result["clients"]))
    if not np.allclose(federated, pooled, rtol=1e-9, atol=1e-9):
        sys.exit("demo: the federated answer differs from the pooled one")


if __name__ == "__main__":
    main()
