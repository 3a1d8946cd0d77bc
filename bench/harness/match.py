"""One row: its data, its contestants, their turns, and what came of it."""

import dataclasses
import json
import shutil
import subprocess
import sys

from . import contestants, places
from .rows import CONTESTANT, multiply_add


@dataclasses.dataclass
class Bounds:
    prepare: float = 300  # seconds to load and warm
    turn: float = 300
    budget: float = 40  # seconds per contestant, after which it has no further turns


def say(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def data_folder(row, sizes):
    """The row's data, made when it is not there yet."""
    folder = places.DATA / "-".join([row.name, *(f"{key}{value}" for key, value in sizes.items())])
    done = folder / "done.json"
    wanted = generator_words(row, sizes)
    if done.exists() and json.loads(done.read_text()) == wanted:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    say(f"{row.name}: making its data")
    command = [places.built(CONTESTANT), *wanted, f"data={folder}", f"threads={places.THREADS}"]
    subprocess.run(command, check=True, stdout=sys.stderr)
    done.write_text(json.dumps(wanted))
    return folder


def generator_words(row, sizes):
    if row.parquet:
        return ["generate_parquet", *(f"{key}={value}" for key, value in sizes.items())]
    return ["generate", *(f"array:{name}={spec}" for name, spec in row.arrays(sizes).items())]


def peer_command(name):
    python = places.SYSTEM_PYTHON if name == "torch" else places.VENV_PYTHON
    if name == "r":
        return ["Rscript", "--vanilla", places.PEERS / "r_peer.R"]
    return [python, places.PEERS / f"{name}_peer.py"]


def wanted_peers(row, options):
    if options.peers is None:
        return row.peers
    return [name for name in row.peers if name in options.peers.split(",")]


def make_contestants(row, sizes, folder, options):
    logs = folder / "logs"
    logs.mkdir(exist_ok=True)
    common = [f"data={folder}", f"threads={places.THREADS}"]
    own = places.built(CONTESTANT)

    def make(name, command):
        return contestants.Contestant(name, [*command, *common], logs)

    players = [make("starfold", [own, *row.starfold])]
    if row.limit:
        players.append(make("limit", [own, *row.limit(sizes)]))
    if row.operations:
        players.append(make("peak", [own, *multiply_add(row.operations)(sizes)]))
    numbers = [f"{key}={value}" for key, value in sizes.items()]
    players += [make(name, [*peer_command(name), row.name, *numbers]) for name in wanted_peers(row, options)]
    return players


def play(row, options):
    """All turns of a row; its entry of the JSON."""
    sizes = row.sizes | (row.quick if options.quick else {})
    folder = data_folder(row, sizes)
    players = make_contestants(row, sizes, folder, options)
    turns = options.turns or (2 if options.quick else row.turns)
    absent, present = contestants.compete(players, turns, Bounds(), lambda text: say(f"{row.name}: {text}"))
    say("")
    return summary(row, sizes, {player.name: player for player in present}, absent)


def summary(row, sizes, present, absent):
    best = {name: player.best for name, player in present.items()}
    starfold = best.pop("starfold", None)
    limit = best.pop("limit", None)
    peak = best.pop("peak", None)
    result = {"name": row.name, "starfold_s": starfold, "limit_s": limit, "peers": best, "sizes": sizes}
    result["goals"] = [{"goal": goal.text(), "met": goal.met(starfold, limit, best)} for goal in row.goals]
    if peak and starfold:
        result["peak_gigaflops"] = present["peak"].extra("gigaflops")
        result["share_of_peak"] = peak / starfold
    if absent:
        result["absent"] = absent
    notes = {name: player.extra("note") for name, player in present.items() if player.extra("note")}
    if notes:
        result["notes"] = notes
    disagree = disagreements(row, present)
    if disagree:
        result["disagree"] = disagree
    return result


def disagreements(row, present):
    """{name: difference} of those whose results are not Starfold's."""
    if "starfold" not in present:
        return {}
    found = {}
    for name, player in present.items():
        difference = contestants.disagreement(present["starfold"], player)
        if difference is not None and not difference <= row.tolerance:
            found[name] = difference
    return found
