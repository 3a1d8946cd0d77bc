"""Plays `starfold run`: starts the carrier and speaks its protocol."""
import json
import pathlib
import select
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools"))
from federation import Patience  # noqa: E402


class Parent:
    """A carrier and the pipes to it. Every wait ends; seconds are those of a machine that has nothing else to do."""

    def __init__(self, command, config, errors=None, environment=None):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment)
        text = json.dumps(config).encode()
        self.write(struct.pack("<Q", len(text)) + text)

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def read(self, count, patience):
        data = b""
        while len(data) < count:
            if not select.select([self.process.stdout], [], [], 0.5)[0]:
                if patience.over():
                    raise TimeoutError(f"{len(data)} of {count} bytes came")
                continue
            part = self.process.stdout.raw.read(count - len(data))
            if not part:
                raise EOFError(f"{len(data)} of {count} bytes came")
            data += part
        return data

    def hello(self, seconds):
        """What the carrier says of its start."""
        patience = Patience(seconds)
        length, = struct.unpack("<Q", self.read(8, patience))
        return json.loads(self.read(length, patience))

    def ask(self, client, data):
        self.write(struct.pack("<IQ", client, len(data)) + data)

    def answer(self, seconds):
        """(client, status, bytes) of the next answer."""
        return self.next_answer(Patience(seconds))

    def next_answer(self, patience):
        client, status, length = struct.unpack("<IBQ", self.read(13, patience))
        return client, status, self.read(length, patience)

    def round(self, requests, seconds):
        """Asks {client: bytes}; {client: (status, bytes)} when all have answered."""
        patience = Patience(seconds)
        for client, data in requests.items():
            self.ask(client, data)
        answers = {}
        while len(answers) < len(requests):
            client, status, data = self.next_answer(patience)
            answers[client] = status, data
        return answers

    def end(self, seconds=30):
        """Closes its input as `starfold run` does; the exit code."""
        self.process.stdin.close()
        try:
            return self.process.wait(8 * seconds)
        finally:
            self.kill()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
