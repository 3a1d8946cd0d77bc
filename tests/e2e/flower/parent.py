"""Plays `starfold run`: starts the carrier and speaks its protocol."""
import json
import select
import struct
import subprocess
import time


class Parent:
    """A carrier and the pipes to it. Every wait ends."""

    def __init__(self, command, config, errors=None, environment=None):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment)
        text = json.dumps(config).encode()
        self.write(struct.pack("<Q", len(text)) + text)

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def read(self, count, deadline):
        data = b""
        while len(data) < count:
            ready, _, _ = select.select([self.process.stdout], [], [], max(deadline - time.monotonic(), 0))
            if not ready:
                raise TimeoutError(f"{len(data)} of {count} bytes came")
            part = self.process.stdout.raw.read(count - len(data))
            if not part:
                raise EOFError(f"{len(data)} of {count} bytes came")
            data += part
        return data

    def hello(self, seconds):
        """What the carrier says of its start."""
        deadline = time.monotonic() + seconds
        length, = struct.unpack("<Q", self.read(8, deadline))
        return json.loads(self.read(length, deadline))

    def ask(self, client, data):
        self.write(struct.pack("<IQ", client, len(data)) + data)

    def answer(self, seconds):
        """(client, status, bytes) of the next answer."""
        deadline = time.monotonic() + seconds
        client, status, length = struct.unpack("<IBQ", self.read(13, deadline))
        return client, status, self.read(length, deadline)

    def round(self, requests, seconds):
        """Asks {client: bytes}; {client: (status, bytes)} when all have answered."""
        deadline = time.monotonic() + seconds
        for client, data in requests.items():
            self.ask(client, data)
        answers = {}
        while len(answers) < len(requests):
            client, status, data = self.answer(deadline - time.monotonic())
            answers[client] = status, data
        return answers

    def end(self, seconds=30):
        """Closes its input as `starfold run` does; the exit code."""
        self.process.stdin.close()
        try:
            return self.process.wait(seconds)
        finally:
            self.kill()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
