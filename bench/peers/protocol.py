"""The contestant's side of bench/run: prepare, say "ready", answer "run K" with a line of JSON.

A peer is called as `peer.py ROW key=value ...`. Its rows are functions of (data, sizes) that prepare and return a function of
the turn, which returns seconds and results, or only results, which then is timed here."""

import json
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

    flat = numpy.concatenate([numpy.asarray(result, dtype=float).ravel() for result in results])
    return flat[:: max(1, len(flat) // 128)].tolist()


def timed(work, turn):
    start = time.perf_counter()
    results = work(turn)
    return time.perf_counter() - start, results


def serve(rows):
    """`rows` maps names to functions that prepare."""
    row, *words = sys.argv[1:]
    sizes = dict(word.split("=", 1) for word in words)
    folder = sizes.pop("data", "")
    work = rows[row](Data(folder), {key: int(value) for key, value in sizes.items()})
    extras = getattr(work, "extras", {})
    work(0)
    print("ready", flush=True)
    for line in sys.stdin:
        seconds, results = timed(work, int(line.split()[1]))
        answer = {"seconds": seconds, "values": numbers(results)} | extras
        print(json.dumps(answer), flush=True)


def main(make_rows):
    """`make_rows` imports the peer and returns its rows; without the peer, that is said and all is well."""
    try:
        rows = make_rows()
    except ImportError as error:
        print(f"absent not installed ({error})", flush=True)
        return
    serve(rows)
