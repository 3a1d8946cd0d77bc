"""What XGBoost grows from the pooled data of tests/data, on histograms whose cuts lie between all distinct values.

Needs xgboost-cpu 3.2.0 (PyPI). From the root of the repository:
    python tests/reference/boosting.py
writes tests/reference/boosting.json. It keeps derivatives in single precision: its leaves are good to about 1e-6.
"""
import csv
import json
import pathlib

import numpy as np
import xgboost

ROOT = pathlib.Path(__file__).resolve().parents[2]
TREES, RATE = 10, 0.3
TASKS = {
    "boosted_trees": ("cars", "mpg", ["wt", "hp", "qsec", "cyl"], "reg:squarederror"),
    "boosted_logistic": ("infert", "case", ["age", "parity", "induced", "spontaneous"], "binary:logistic"),
    "boosted_poisson": ("quine", "days", ["aboriginal", "male", "F1", "F2", "F3", "slow"], "count:poisson"),
}


def read(name):
    with open(ROOT / "tests/data" / f"{name}.csv") as file:
        rows = list(csv.DictReader(file))
    return {key: np.array([float(row[key]) for row in rows]) for key in rows[0]}


def base_margin(program, y):
    return {"boosted_trees": lambda m: m, "boosted_logistic": lambda m: np.log(m / (1 - m)), "boosted_poisson": np.log}[program](y.mean())


def heap(tree, edges, width):
    """A tree of XGBoost's in heap order: columns (from 1, 0 for none), thresholds as cuts of ours, leaves."""
    column, threshold, value = np.zeros(2 * width - 1), np.full(2 * width - 1, np.inf), np.zeros(2 * width)

    def walk(node, place):
        if "leaf" in node:
            while place < 2 * width:
                place *= 2
            value[place - 2 * width] = node["leaf"] / RATE
            return
        j = int(node["split"][1:])
        column[place - 1] = j + 1
        # Theirs are values from which on records go to the right, ours the cuts just below.
        threshold[place - 1] = max(e for e in edges[j] if e < node["split_condition"])
        walk(node["children"][0], 2 * place)
        walk(node["children"][1], 2 * place + 1)

    walk(tree, 1)
    return column.tolist(), [t if np.isfinite(t) else "inf" for t in threshold], value.tolist()


figures = {"made_by": f"tests/reference/boosting.py with XGBoost {xgboost.__version__}"}
for program, (name, outcome, columns, objective) in TASKS.items():
    data = read(name)
    x, y = np.column_stack([data[c] for c in columns]), data[outcome]
    base = base_margin(program, y)
    edges = [[(a + b) / 2 for a, b in zip(np.unique(x[:, j]), np.unique(x[:, j])[1:])] for j in range(x.shape[1])]
    settings = {"objective": objective, "tree_method": "hist", "max_depth": 3, "eta": RATE, "lambda": 1, "min_child_weight": 1, "max_bin": 256,
                "base_score": 0.5, "nthread": 1, "max_delta_step": 0}
    matrix = xgboost.DMatrix(x, y, base_margin=np.full(len(y), base))
    booster = xgboost.train(settings, matrix, TREES)
    trees = [heap(json.loads(tree), edges, 4) for tree in booster.get_dump(dump_format="json")]
    figures[program] = {"columns": columns, "outcome": outcome, "data": name, "trees": TREES, "rate": RATE, "edges": edges,
                        "column": [t[0] for t in trees], "threshold": [t[1] for t in trees], "value": [t[2] for t in trees],
                        "xgboost": booster.predict(matrix, output_margin=True).astype(float).tolist()}
(ROOT / "tests/reference/boosting.json").write_text(json.dumps(figures, indent=1) + "\n")
