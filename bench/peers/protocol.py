"""The contestant's side of bench/run: prepare, say "ready", answer "run K" with a line of JSON.

A peer is called as `peer.py ROW key=value ...`. Its rows are functions of (data, sizes) that prepare and return the work: a
function of the turn that returns results. The work may carry attributes: `extras` for the answer, `seconds` when it knows better
how long it took, and `warm = False` when it must not run once beforehand."""

import json
import os
import sys
import time


class Data:
    """The arrays of a row, read when asked for."""

    def __init__(self, folder):
        self.folder = folder

    def __getattr__(self, name):
        import numpy

        return numpy.load(f"{self.folder}/{name}.npy")


def factor(turn):
    """Shared values of turn k are those of turn 0 times this."""
    return 1 + turn / 1000


def numbers(results):
    """All numbers of the results, in order; a sample of them when there are many."""
    import numpy

    if not results:
        return []
    flat = numpy.concatenate([numpy.asarray(result, dtype=float).ravel() for result in results])
    return flat[:: max(1, len(flat) // 128)].tolist()


def answer(work, turn):
    start = time.perf_counter()
    results = work(turn)
    seconds = time.perf_counter() - start
    seconds = getattr(work, "seconds", seconds)
    return {"seconds": seconds, "values": numbers(results)} | getattr(work, "extras", {})


def serve(make_work):
    """Talks to bench/run. What libraries print goes to standard error, away from the answers."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(text):
        print(text, file=out, flush=True)

    try:
        work = make_work()
    except ImportError as error:
        say(f"absent not installed ({error})")
        return
    if getattr(work, "warm", True):
        work(0)
    say("ready")
    for line in sys.stdin:
        say(json.dumps(answer(work, int(line.split()[1]))))


def main(make_rows):
    """`make_rows` imports the peer and returns its rows; without the peer, that is said and all is well."""
    row, *words = sys.argv[1:]
    sizes = dict(word.split("=", 1) for word in words)
    folder = sizes.pop("data", "")
    serve(lambda: make_rows()[row](Data(folder), {key: int(value) for key, value in sizes.items()}))
