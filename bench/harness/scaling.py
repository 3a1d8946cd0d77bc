"""How the cost grows: the exponent of a power law, fitted to Starfold's times at growing sizes."""

import math

from . import contestants, match, places
from .rows import Row, engine, federation, logistic_arrays

BOUNDS = match.Bounds(prepare=120, turn=120, budget=10)


def slope(sizes, seconds):
    """Least squares of log(seconds) on log(size)."""
    xs, ys = [math.log(size) for size in sizes], [math.log(value) for value in seconds]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys)) / sum((x - mean_x) ** 2 for x in xs)


def row(name, starfold):
    return Row(f"scaling_{name}", "", "", {}, {}, logistic_arrays, starfold)


# What grows, what stays, the contestant, the exponent it should have.
CASES = {
    "records": (
        [125_000, 250_000, 500_000, 1_000_000, 2_000_000],
        {"columns": 20},
        engine("logistic_gradient"),
        1,
    ),
    "clients": (
        [1, 10, 100, 1_000, 10_000],
        {"records": 400_000, "columns": 10},
        federation("logistic_rounds", "time=round", "clients={clients}"),
        0,
    ),
    "columns": (
        [10, 20, 40, 80],
        {"records": 400_000},
        engine("logistic_gradient"),
        1,
    ),
    "rounds": (
        [20, 40, 80, 160],
        {"records": 400_000, "columns": 10},
        federation("logistic_rounds", "size:rounds={rounds}"),
        1,
    ),
}


def shrunk(value):
    return max(1, value // 20)


def measure(name, options, say):
    """The fit of one case, as an entry of the JSON."""
    values, fixed, starfold, expected = CASES[name]
    if options.quick:
        fixed = {key: shrunk(value) if key == "records" else value for key, value in fixed.items()}
        values = [shrunk(value) for value in values] if name == "records" else values[:3]
    players = {}
    for value in values:
        sizes = fixed | {name: value}
        only_data = {key: sizes[key] for key in ["records", "columns"]}
        folder = match.data_folder(row(name, starfold), only_data)
        command = [*starfold(sizes), f"data={folder}", f"threads={places.THREADS}"]
        players[value] = contestants.Contestant(f"{name}-{value}", command, folder)
    turns = 3 if options.quick else 9
    contestants.compete(list(players.values()), turns, BOUNDS, say)
    best = {value: player.best for value, player in players.items() if player.best}
    result = {"sizes": list(best), "seconds": list(best.values()), "expected": expected, "fixed": fixed}
    result["exponent"] = slope(list(best), list(best.values())) if len(best) > 1 else None
    return result


def print_scaling(results):
    print("\nHow the time grows with the size, as an exponent:")
    for name, result in results.items():
        fixed = ", ".join(f"{value:,} {key}" for key, value in result["fixed"].items())
        sizes = f"{result['sizes'][0]:,} to {result['sizes'][-1]:,}" if result["sizes"] else "none measured"
        exponent = "-" if result["exponent"] is None else f"{result['exponent']:.2f}"
        print(f"{name:18} {exponent:>6} (should be {result['expected']}; {sizes}, with {fixed})")
