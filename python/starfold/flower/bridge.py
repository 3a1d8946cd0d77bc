"""A Flower run as the carrier sees it: started through Flower's own command, spoken to through the ServerApp of the bundle in app/."""
import json
import os
import pathlib
import secrets
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from starfold.flower import frames

APP = pathlib.Path(__file__).parent / "app"
STARTING = 60.0  # seconds that `flwr run` may take
CONNECTING = 60.0  # seconds from a started run to its ServerApp: a new Python process on a busy machine
CALLING = 90.0  # seconds for one call, of which the ServerApp may spend some on reconnecting


class Lost(Exception):
    """There is no run to talk to; the text is one sentence that says why. A new run may do."""


def environment(home):
    """Flower's own processes: nothing is reported or looked up, and loopback is reached directly."""
    own = {"FLWR_HOME": str(home), "FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
    direct = ",".join(filter(None, [os.environ.get("NO_PROXY", os.environ.get("no_proxy", "")), "127.0.0.1,localhost"]))
    return {**os.environ, **own, "NO_PROXY": direct, "no_proxy": direct}


class Place:
    """A folder for one carrier: Flower's configuration, and a socket that only those who know its name can reach.

    The ServerApp runs as the SuperLink's user, which need not be the analyst's. So the folder can be passed by everyone, but not
    listed, and the socket in it has a name that cannot be guessed.
    """

    def __init__(self, superlink, root_certificates):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="starfold-"))
        if len(str(self.folder)) > 60:  # the path of a socket has at most 107 bytes
            self.folder.rmdir()
            self.folder = pathlib.Path(tempfile.mkdtemp(prefix="starfold-", dir="/tmp"))
        self.home = self.folder / "home"
        self.home.mkdir(mode=0o700)
        lines = ["[superlink]", 'default = "study"', "[superlink.study]", f"address = {json.dumps(superlink)}"]
        if root_certificates:
            (self.home / "ca.crt").write_text(root_certificates)
            lines.append(f"root-certificates = {json.dumps(str(self.home / 'ca.crt'))}")
        (self.home / "config.toml").write_text("\n".join(lines) + "\n")
        self.folder.chmod(0o711)

    def listen(self):
        """A new listening socket, and the file that tells the ServerApp where it is: arguments of a command can be seen by others."""
        path = self.folder / secrets.token_hex(16)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        path.chmod(0o666)
        listener.listen(1)
        config = self.home / "run.toml"
        config.write_text(f"socket = {json.dumps(str(path))}\n")
        return listener, path, config

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class Bridge:
    """A run that has begun. Every call either answers or raises Lost; all give up early when abandoned() says so."""

    def __init__(self, place, flwr, abandoned=lambda: False, seconds=STARTING + CONNECTING):
        """Starts a run on the SuperLink and waits for its ServerApp, at most so many seconds."""
        deadline = time.monotonic() + seconds
        self.abandoned = abandoned
        listener, path, config = place.listen()
        try:
            start_run(place, flwr, config, abandoned, min(deadline, time.monotonic() + STARTING))
            self.connection = accept(listener, abandoned, min(deadline, time.monotonic() + CONNECTING))
        finally:
            listener.close()
            path.unlink(missing_ok=True)
        self.connection.settimeout(CALLING)
        self.stream = self.connection.makefile("rwb")
        self.read()

    def write(self, head, blobs=()):
        text = json.dumps({**head, "blobs": [len(blob) for blob in blobs]}).encode()
        try:
            frames.write_blob(self.stream, text)
            for blob in blobs:
                self.stream.write(blob)
            self.stream.flush()
        except (OSError, ValueError):
            raise Lost("the ServerApp of the run has ended") from None

    def read(self):
        deadline = time.monotonic() + CALLING
        while not select.select([self.connection], [], [], 0.2)[0]:
            if self.abandoned():
                raise Lost("nobody waits for the run any more")
            if time.monotonic() > deadline:
                raise Lost(f"the ServerApp of the run has been silent for {CALLING:.0f} s")
        try:
            text = frames.read_blob(self.stream)
            if text is None:
                raise Lost("the ServerApp of the run has ended")
            head = json.loads(text)
            return head, [frames.read_bytes(self.stream, length) for length in head["blobs"]]
        except (OSError, ValueError, KeyError, TypeError, frames.Torn):
            raise Lost("the ServerApp of the run has ended") from None

    def nodes(self):
        """The nodes that are online: id, name, key."""
        self.write({"op": "nodes"})
        return self.read()[0]["nodes"]

    def push(self, requests, seconds, ttl):
        """Sends [(node, bytes)]; the ids of the messages in the same order, empty where there is no such node."""
        self.write({"op": "push", "to": [node for node, _ in requests], "seconds": seconds, "ttl": ttl}, [data for _, data in requests])
        ids = self.read()[0]["ids"]
        return ids if len(ids) == len(requests) else [""] * len(requests)

    def pull(self, ids):
        """[(id, Flower's error or None, the shim's code or None, bytes)] of the answers that have arrived."""
        self.write({"op": "pull", "ids": list(ids)})
        head, blobs = self.read()
        return [(answer["id"], answer["flower"], answer["code"], blob) for answer, blob in zip(head["answers"], blobs)]

    def end(self, seconds=10.0):
        """Ends the run, and waits a little until it has."""
        try:
            self.write({"op": "end"})
            self.connection.settimeout(seconds)
            self.stream.read(1)
        except (Lost, OSError):
            pass
        self.close()

    def close(self):
        for part in (self.stream, self.connection):
            try:
                part.close()
            except OSError:
                pass


def start_run(place, flwr, config, abandoned, deadline):
    """Starts a run by Flower's own command, whose output as JSON is the stablest of its interfaces."""
    words = [*flwr, "run", str(APP), "study", "--run-config", str(config), "--format", "json"]
    try:
        # A session of its own: Ctrl-C is for the parent, which ends this process by closing its input.
        process = subprocess.Popen(words, cwd=place.home, env=environment(place.home), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True)
    except OSError:
        raise Lost(f"Flower's command cannot be started: {words[0]}") from None
    while True:
        try:
            out, errors = process.communicate(timeout=0.2)
            break
        except subprocess.TimeoutExpired:
            if abandoned() or time.monotonic() > deadline:
                process.kill()
                process.communicate()
                raise Lost("`flwr run` took too long") from None
    try:
        said = json.loads(out)
        if said.get("success") and said.get("run-id"):
            return
        reason = said.get("error-message") or ""
    except (ValueError, AttributeError):
        reason = errors
    raise Lost("Flower did not start a run: " + (" ".join(str(reason).split())[:300] or "it does not say why"))


def accept(listener, abandoned, deadline):
    while time.monotonic() < deadline and not abandoned():
        if select.select([listener], [], [], 0.2)[0]:
            return listener.accept()[0]
    raise Lost("the ServerApp did not connect: starfold-flower must run on the machine of the SuperLink, where `flwr log` says more")


def flwr_command():
    """The `flwr` of this Python's environment."""
    beside = pathlib.Path(sys.executable).parent / "flwr"
    return [str(beside)] if beside.exists() else ["flwr"]
