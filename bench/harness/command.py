"""A command as a contestant: `command.py WORD ... data=FOLDER threads=N`. A turn is one start to finish; {data} and {threads} in
its words are filled in. Numbers are taken from the JSON that `starfold run --json` prints."""

import json
import os
import sys
import tempfile
import time


def run(words):
    """Seconds, peak memory in megabytes, and what it printed."""
    with tempfile.TemporaryFile() as out:
        actions = [(os.POSIX_SPAWN_DUP2, out.fileno(), 1)]
        start = time.perf_counter()
        process = os.posix_spawnp(words[0], words, os.environ, file_actions=actions)
        _, status, usage = os.wait4(process, 0)
        seconds = time.perf_counter() - start
        out.seek(0)
        text = out.read().decode()
    if status != 0:
        raise RuntimeError(f"{words[0]} ended with {os.waitstatus_to_exitcode(status)}")
    return seconds, usage.ru_maxrss / 1024, text


def values(text):
    try:
        outputs = json.loads(text)["outputs"]
    except (ValueError, KeyError, TypeError):
        return []
    return [number for name in sorted(outputs) for number in outputs[name]["data"]]


def main():
    *words, data, threads = sys.argv[1:]
    filled = {"{data}": data.removeprefix("data="), "{threads}": threads.removeprefix("threads=")}
    for key, value in filled.items():
        words = [word.replace(key, value) for word in words]
    try:
        run(words)
    except (OSError, RuntimeError) as error:
        print(f"absent {error}", flush=True)
        return
    print("ready", flush=True)
    for _ in sys.stdin:
        seconds, megabytes, text = run(words)
        print(json.dumps({"seconds": seconds, "megabytes": megabytes, "values": values(text)}), flush=True)


main()
