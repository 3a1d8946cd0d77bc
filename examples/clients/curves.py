"""FedAvg against SCAFFOLD on handwritten digits that are split by label: accuracy after each round, over numbers of local steps.

python examples/clients/curves.py OUT.svg    needs matplotlib; STARFOLD is the command (build/starfold)
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
STEPS = [5, 50]


def split_by_label(folder):
    """Ten clients with two labels each, as many records as there are; every fifth record is held out."""
    data = np.load(ROOT / "tests/data/digits.npz")
    x = np.hstack([np.ones((len(data["x"]), 1)), data["x"] / 16])
    y = data["y"].astype(float) + 1
    test = np.arange(len(x)) % 5 == 0
    np.save(folder / "test_x.npy", x[test])
    np.save(folder / "test_y.npy", y[test])
    x, y = x[~test], y[~test]
    halves = np.zeros(len(x), int)
    for label in range(1, 11):
        own = np.flatnonzero(y == label)
        halves[own[len(own) // 2:]] = 1
    for client in range(10):
        first, second = client + 1, (client + 1) % 10 + 1
        own = ((y == first) & (halves == 0)) | ((y == second) & (halves == 1))
        np.savez(folder / f"c{client}.npz", x=x[own], y=y[own])


def accuracy(folder, program, steps):
    words = [f"--client=c{i}={folder}/c{i}.npz" for i in range(10)]
    words += [f"--set=test_{name}=@{folder}/test_{name}.npy" for name in "xy"]
    run = [COMMAND, "run", HERE / f"{program}.fold", "--json", f"--set=steps={steps}", *words]
    answer = subprocess.run(run, capture_output=True, text=True, check=True)
    return json.loads(answer.stdout)["traces"]["accuracy"]


def draw(curves, out):
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "starfold"})
    plots, axes = plt.subplots(1, len(STEPS), figsize=(9, 3.4), sharey=True)
    for axis, steps in zip(axes, STEPS):
        for program, name, colour in (("fedavg", "FedAvg", "#c05621"), ("scaffold", "SCAFFOLD", "#2b6cb0")):
            curve = curves[f"{program}, {steps} steps"]
            axis.plot(range(1, len(curve) + 1), curve, color=colour, label=name)
        axis.set(title=f"{steps} local steps", xlabel="round", ylim=(0.78, 1))
    axes[0].set_ylabel("accuracy on held-out digits")
    axes[0].legend(frameon=False, loc="lower right")
    plots.tight_layout()
    plots.savefig(out, metadata={"Date": None})


def main():
    out = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        split_by_label(folder)
        curves = {f"{program}, {steps} steps": accuracy(folder, program, steps)
                  for steps in STEPS for program in ("fedavg", "scaffold")}
    for name, curve in curves.items():
        print(f"{name}: {curve[9]:.3f} after 10 rounds, {curve[-1]:.3f} after {len(curve)}")
    out.with_suffix(".json").write_text(json.dumps(curves, indent=1) + "\n")
    draw(curves, out)


if __name__ == "__main__":
    main()
