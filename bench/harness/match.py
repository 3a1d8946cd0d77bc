"""One row: its data, its contestants, their turns, and what came of it."""

import dataclasses
import json
import shutil
import statistics
import subprocess
import sys

from . import contestants, places
from .rows import multiply_add


@dataclasses.dataclass
class Bounds:
    prepare: float = 300  # seconds to load and warm
    turn: float = 300
    budget: float = 40  # seconds per contestant, after which it has no further turns


def say(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def data_folder(row, sizes):
    """The row's data, made when it is not there yet, and kept."""
    folder = places.DATA / "-".join([row.name, *(f"{key}{value}" for key, value in sizes.items())])
    done = folder / "done.json"
    wanted = generator_words(row, sizes)
    if done.exists() and json.loads(done.read_text()) == wanted:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    free = shutil.disk_usage(folder).free * 1e-9
    if free < row.gigabytes(sizes) + 2:
        raise contestants.Absent(f"its data needs {row.gigabytes(sizes):.0f} GB of disk, {free:.0f} GB are free")
    say(f"{row.name}: making its data")
    if wanted:
        subprocess.run([*wanted, f"data={folder}", f"threads={places.THREADS}"], check=True, stdout=sys.stderr)
    done.write_text(json.dumps(wanted))
    return folder


def generator_words(row, sizes):
    """The command that makes the data: arrays where the row has them, a Parquet file otherwise."""
    contestant = str(places.built("starfold_contestant"))
    if row.arrays:
        return [contestant, "generate", *(f"array:{name}={spec}" for name, spec in row.arrays(sizes).items())]
    return [contestant, "generate_parquet", *(f"{key}={value}" for key, value in sizes.items())] if sizes else []


def peer_command(row, sizes, name):
    if name in row.commands:
        return row.commands[name](sizes)
    numbers = [row.name, *(f"{key}={value}" for key, value in sizes.items())]
    if name == "r":
        return ["Rscript", "--vanilla", places.PEERS / "r_peer.R", *numbers]
    python = {"torch": places.SYSTEM_PYTHON, "pfl": places.PFL_PYTHON}.get(name, places.VENV_PYTHON)
    return [python, places.PEERS / f"{name}_peer.py", *numbers]


def peer_settings(name):
    """Peers from Debian find the threaded BLAS first."""
    openblas = places.debian_openblas()
    return {"LD_LIBRARY_PATH": str(openblas)} if name in ["torch", "pfl", "r"] and openblas else {}


def wanted_peers(row, options):
    if options.peers is None:
        return row.peers
    return [name for name in row.peers if name in options.peers.split(",")]


def make_contestants(row, sizes, folder, options):
    logs = folder / "logs"
    logs.mkdir(exist_ok=True)
    common = [f"data={folder}", f"threads={places.THREADS}"]
    commands = {"starfold": row.starfold(sizes), "limit": row.limit(sizes)}
    if row.operations:
        commands["peak"] = multiply_add(row.operations)(sizes)
    commands |= {name: peer_command(row, sizes, name) for name in wanted_peers(row, options)}
    return [
        contestants.Contestant(name, [*command, *common], logs, peer_settings(name)) for name, command in commands.items()
    ]


def play(row, options):
    """All turns of a row; its entry of the JSON."""
    sizes = row.sizes | (row.quick if options.quick else {})
    try:
        folder = data_folder(row, sizes)
    except contestants.Absent as why:
        return summary(row, sizes, {}, {"starfold": str(why)})
    players = make_contestants(row, sizes, folder, options)
    turns = options.turns or (2 if options.quick else row.turns)
    absent, present = contestants.compete(players, turns, Bounds(), lambda text: say(f"{row.name}: {text}"))
    say("")
    return summary(row, sizes, {player.name: player for player in present}, absent)


def summary(row, sizes, present, absent):
    best = {name: player.best for name, player in present.items()}
    starfold, limit, peak = (best.pop(name, None) for name in ["starfold", "limit", "peak"])
    result = {"name": row.name, "starfold_s": starfold, "limit_s": limit, "peers": best, "sizes": sizes}
    if starfold and present["starfold"].extra("megabytes"):
        result["starfold_megabytes"] = present["starfold"].extra("megabytes")
    if starfold and peak:
        result["peak_gigaflops"] = present["peak"].extra("gigaflops")
        result["share_of_peak"] = peak / starfold
    turns = by_turn(present)
    if turns:
        result["by_turn"] = turns
    result["goals"] = [{"goal": goal.text(), "met": goal.met(result)} for goal in row.goals]
    notes = {name: player.extra("note") for name, player in present.items() if player.extra("note")}
    disagree = disagreements(row, present)
    result |= {key: value for key, value in [("absent", absent), ("notes", notes), ("disagree", disagree)] if value}
    return result


def by_turn(present):
    """The quartiles of Starfold's ratio to the limit in turns that stood side by side: the speed of memory may change from one
    turn to the next, and the best of each may have met another one."""
    if not {"starfold", "limit"} <= present.keys():
        return None
    starfold, limit = (present[name].answers for name in ["starfold", "limit"])
    both = [(answer["seconds"], limit[turn]["seconds"]) for turn, answer in starfold.items() if turn in limit]
    ratios = [ours / least for ours, least in both if least > 0]
    return statistics.quantiles(ratios, n=4) if len(ratios) >= 4 else None


def disagreements(row, present):
    """{name: difference} of those whose results are not Starfold's."""
    if "starfold" not in present:
        return {}
    found = {}
    for name, player in present.items():
        difference = contestants.disagreement(present["starfold"], player)
        tolerance = max(row.tolerance, player.extra("tolerance") or 0)  # a peer may compute in single precision, and says so
        if difference is not None and not difference <= tolerance:
            found[name] = difference
    return found
