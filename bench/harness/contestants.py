"""Contestants: child processes that prepare, say "ready", and then answer every "run K" with a line of JSON."""

import json
import os
import select
import subprocess
import time

from . import places


class Absent(Exception):
    """This contestant cannot take part; the text says why."""


SETTLE = 0.02  # seconds before a turn: threads of the one before it still spin for a while after their work
LEAST_FREE = 1.5e9  # bytes of memory that must stay free on the machine


def available_memory():
    with open("/proc/meminfo", encoding="ascii") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))


class Contestant:
    def __init__(self, name, command, log_folder, settings=None):
        self.name = name
        self.environment = places.environment() | (settings or {})
        self.command = [str(word) for word in command]
        self.log = log_folder / f"{name}.log"
        self.seconds = []
        self.answers = {}
        self.spent = 0.0
        self.process = None
        self.buffer = b""

    def start(self, bound):
        """Starts and waits until it is ready. Children stay in the process group of bench/run."""
        if "/" in self.command[0] and not os.path.exists(self.command[0]):
            raise Absent(f"{os.path.basename(self.command[0])} is missing")
        with open(self.log, "wb") as log:
            try:
                self.process = subprocess.Popen(
                    self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=self.environment
                )
            except FileNotFoundError as error:
                raise Absent(f"{self.command[0]} is missing") from error
        line = self.line(bound)
        if line != "ready":
            self.stop()
            raise Absent(line.removeprefix("absent").strip() or f"it ended; see {self.log}")

    def run(self, turn, bound):
        """One turn; its time counts, and its answer is kept."""
        start = time.monotonic()
        try:
            self.process.stdin.write(f"run {turn}\n".encode())
            self.process.stdin.flush()
        except BrokenPipeError as error:
            raise Absent(f"it ended; see {self.log}") from error
        line = self.line(bound)
        try:
            answer = json.loads(line)
        except ValueError as error:
            raise Absent(f"it ended; see {self.log}") from error
        self.spent += time.monotonic() - start
        self.seconds.append(answer["seconds"])
        self.answers[turn] = answer

    def line(self, bound):
        """The next line it prints, empty when it ended. Kills it when that takes longer than `bound` seconds, or when memory
        runs out."""
        deadline = time.monotonic() + bound
        while b"\n" not in self.buffer:
            ready, _, _ = select.select([self.process.stdout], [], [], 0.2)
            if not ready and time.monotonic() > deadline:
                self.stop(kill=True)
                raise Absent(f"stopped after {bound:.0f} s")
            if not ready and available_memory() < LEAST_FREE:
                self.stop(kill=True)
                raise Absent("stopped because memory ran out")
            if not ready:
                continue
            piece = os.read(self.process.stdout.fileno(), 1 << 16)
            if not piece:
                return ""
            self.buffer += piece
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.decode().strip()

    def stop(self, kill=False):
        if self.process is None:
            return
        if kill:
            self.process.kill()
        else:
            self.process.stdin.close()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.process = None

    @property
    def best(self):
        return min(self.seconds) if self.seconds else None

    def extra(self, key):
        """Something it reported beside its time, from its best turn."""
        answers = [answer for answer in self.answers.values() if key in answer]
        return min(answers, key=lambda answer: answer["seconds"])[key] if answers else None


def compete(contestants, turns, bounds, say):
    """Lets all take turns, one at a time. Returns {name: why} of those who could not, and the rest as a list."""
    absent = {}
    present = []
    try:
        for contestant in contestants:
            say(f"preparing {contestant.name}")
            try:
                contestant.start(bounds.prepare)
                present.append(contestant)
            except Absent as why:
                absent[contestant.name] = str(why)
        for turn in range(1, turns + 1):
            for contestant in list(present):
                if contestant.seconds and contestant.spent > bounds.budget:
                    continue  # slow ones have fewer turns
                say(f"turn {turn} of {turns}: {contestant.name}")
                time.sleep(SETTLE)
                try:
                    contestant.run(turn, bounds.turn)
                except Absent as why:
                    if not contestant.seconds:
                        absent[contestant.name] = str(why)
                        present.remove(contestant)
    finally:
        for contestant in contestants:
            contestant.stop()
    return absent, present


def disagreement(one, other):
    """The largest difference of two contestants' values in a turn they share, relative to the largest value; None
    when they cannot be compared."""
    for turn in sorted(set(one.answers) & set(other.answers)):
        a, b = one.answers[turn].get("values"), other.answers[turn].get("values")
        if not a or not b:
            return None
        if len(a) != len(b):
            return float("inf")
        scale = max(abs(value) for value in a) or 1.0
        return max(abs(left - right) for left, right in zip(a, b)) / scale
    return None
