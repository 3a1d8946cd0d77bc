"""How much privacy costs: a mean, a histogram and a logistic regression of handwritten digits, with noise and without.

python examples/private/utility.py OUT.svg    needs matplotlib; STARFOLD is the command (build/starfold)
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
EPSILONS = [0.1, 0.2, 0.5, 1, 2, 5, 10]
DELTA = 1e-6
RUNS = 20


def study(folder, program, privacy):
    lines = [f'program = "{HERE / program}"']
    if privacy:
        lines += ["[privacy]", f"epsilon = {privacy[0]}", f"delta = {privacy[1]}"]
    for i in range(3):
        lines += ["[[client]]", f'name = "c{i}"', f'data = "c{i}.npz"']
    path = folder / "study.toml"
    path.write_text("\n".join(lines) + "\n")
    answer = subprocess.run([COMMAND, "run", path, "--json"], capture_output=True, text=True, check=True)
    return {name: np.array(value["data"]) for name, value in json.loads(answer.stdout)["outputs"].items()}


def main():
    data = np.load(ROOT / "tests/data/digits.npz")
    x, y = data["x"].astype(float), data["y"].astype(float)
    design = np.hstack([np.ones((len(x), 1)), x / 16])
    design *= np.minimum(1, 4 / np.linalg.norm(design, axis=1))[:, None]

    def accuracy(beta):
        return np.mean((design @ beta > 0) == (y == 0))

    figures = {"epsilon": EPSILONS, "delta": DELTA, "runs": RUNS, "mean": [], "histogram": [], "logistic": []}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for i in range(3):
            np.savez(folder / f"c{i}.npz", x=x[i::3], y=y[i::3])
        plain = {p: study(folder, f"{p}.fold", None) for p in ("mean", "histogram", "logistic")}
        figures["plain"] = {"mean": float(plain["mean"]["mean_ink"][0]), "records": len(x),
                            "accuracy": accuracy(plain["logistic"]["beta"]), "share_of_others": float(np.mean(y != 0))}
        for epsilon in EPSILONS:
            errors, cells, right = [], [], []
            for _ in range(RUNS):
                errors.append(abs(study(folder, "mean.fold", (epsilon, DELTA))["mean_ink"][0] - plain["mean"]["mean_ink"][0]))
                counts = study(folder, "histogram.fold", (epsilon, 0))["counts"]
                cells.append(np.mean(abs(counts - plain["histogram"]["counts"])))
                right.append(accuracy(study(folder, "logistic.fold", (epsilon, DELTA))["beta"]))
            figures["mean"].append(float(np.mean(errors)))
            figures["histogram"].append(float(np.mean(cells)))
            figures["logistic"].append([float(np.mean(right)), float(np.min(right)), float(np.max(right))])
            print(epsilon, figures["mean"][-1], figures["histogram"][-1], figures["logistic"][-1], flush=True)
    out = pathlib.Path(sys.argv[1])
    out.with_suffix(".json").write_text(json.dumps(figures, indent=1) + "\n")
    draw(figures, out)


def draw(figures, out):
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "starfold"})
    plots, axes = plt.subplots(1, 3, figsize=(11, 3.4))
    e = figures["epsilon"]
    axes[0].plot(e, figures["mean"], "o-", color="#2b6cb0")
    axes[0].set(title=f"mean ink (plain: {figures['plain']['mean']:.2f})", ylabel="mean error", yscale="log")
    axes[1].plot(e, figures["histogram"], "o-", color="#2b6cb0")
    axes[1].set(title="histogram of 10 digits, pure", ylabel="mean error of a count", yscale="log")
    middle, low, high = np.array(figures["logistic"]).T
    axes[2].fill_between(e, low, high, color="#2b6cb0", alpha=0.2, linewidth=0)
    axes[2].plot(e, middle, "o-", color="#2b6cb0", label="private")
    axes[2].axhline(figures["plain"]["accuracy"], color="#c05621", label="plain")
    axes[2].axhline(figures["plain"]["share_of_others"], color="#718096", linestyle=":", label="always no")
    axes[2].set(title="logistic regression: is it a 0?", ylabel="accuracy", ylim=(0.7, 1.01))
    axes[2].legend(frameon=False, loc="lower right")
    for axis in axes:
        axis.set(xscale="log", xlabel="epsilon", xticks=e)
        axis.set_xticklabels([f"{x:g}" for x in e])
        axis.minorticks_off()
    plots.tight_layout()
    plots.savefig(out, metadata={"Date": None})


if __name__ == "__main__":
    main()
