"""Node processes on this machine, and studies over them. Everything that is started ends with the test."""
import hashlib
import json
import os
import pathlib
import select
import socket
import struct
import subprocess
import tempfile
import time

import numpy as np

LIMIT = 60  # seconds that anything may take on a machine that has nothing else to do


def patient(seconds):
    """The same on this machine as it is: up to eight times as long where it is busy."""
    return seconds * min(max(os.getloadavg()[0] / (os.cpu_count() or 1), 1), 8)


LOGISTIC = """input x : [*, p]
input y : [*]
state beta : [p + 1] = zeros(p + 1)
let z = concat[2](ones(1), x)
repeat 8 {
  let mu = sigmoid(z @ beta)
  let g = z' @ (mu - y)
  let h = z' @ ((mu * (1 - mu))[:, new] * z)
  trace step = norm[1](g)
  beta <- beta - solve(h + 0.001 * eye(p + 1), g)
}
output beta
"""


def hospital(seed, records=200):
    """Columns of one client: an identifier, two measures, a group, an outcome."""
    rng = np.random.default_rng(seed)
    age = rng.normal(50, 10, records).round(1)
    bmi = rng.normal(25, 4, records).round(1)
    ward = rng.integers(1, 4, records)
    y = (rng.random(records) < 1 / (1 + np.exp(-(age - 50) / 10 + (bmi - 25) / 8))).astype(int)
    return {"id": np.arange(1, records + 1), "age": age, "bmi": bmi, "ward": ward, "y": y}


def write_csv(path, columns):
    names = list(columns)
    lines = [",".join(names)] + [",".join(str(v) for v in row) for row in zip(*columns.values())]
    path.write_text("\n".join(lines) + "\n")


class Node:
    """A folder with a node's file, its data, and the process when it runs."""

    def __init__(self, command, folder, name, columns, policy="", allowed=None, extra=""):
        self.command, self.folder, self.name = command, folder, name
        folder.mkdir(exist_ok=True)
        write_csv(folder / "visits.csv", columns)
        os.chmod(folder / "visits.csv", 0o600)
        self.file = folder / "node.toml"
        self.allowed = allowed or list(columns)
        self.extra = extra
        self.write(policy)
        self.process = None

    def write(self, policy):
        columns = ", ".join(f'"{name}"' for name in self.allowed)
        self.file.write_text(f'name = "{self.name}"\nsocket = "node.sock"\nledger = "node.ledger"\nfolder = "private"\n{self.extra}\n'
                             f'[data.visits]\nfile = "visits.csv"\ncolumns = [{columns}]\n\n[policy]\n{policy}\n')
        os.chmod(self.file, 0o600)

    @property
    def socket(self):
        return self.folder / "node.sock"

    def start(self, **options):
        self.log = open(self.folder / "log", "ab")
        self.process = subprocess.Popen([self.command, "node", "serve", str(self.file)], stdout=subprocess.PIPE, stderr=self.log, **options)
        ready, _, _ = select.select([self.process.stdout], [], [], patient(LIMIT))
        line = self.process.stdout.readline() if ready else b""
        assert line == b"listening\n", (self.folder / "log").read_text()
        return self

    def stop(self):
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.terminate()
        code = self.process.wait(patient(LIMIT))
        self.process.stdout.close()
        self.log.close()
        self.process = None
        return code

    def kill(self):
        self.process.kill()
        self.process.wait(patient(LIMIT))
        self.process.stdout.close()
        self.log.close()
        self.process = None

    def key(self):
        """The public half of its key."""
        return subprocess.run([self.command, "node", "key", str(self.file)], capture_output=True, text=True, check=True, timeout=patient(LIMIT)).stdout.strip()

    def lines(self):
        return [json.loads(line) for line in (self.folder / "node.ledger").read_text().splitlines()]

    def ask(self, message, timeout=LIMIT):
        """The answer to raw bytes on the node's socket."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(patient(timeout))
            s.connect(str(self.socket))
            s.sendall(struct.pack("<Q", len(message)) + message)
            return read_frame(s)


def read_frame(s):
    head = b""
    while len(head) < 8:
        piece = s.recv(8 - len(head))
        if not piece:
            return None
        head += piece
    length, data = struct.unpack("<Q", head)[0], b""
    while len(data) < length:
        piece = s.recv(min(1 << 16, length - len(data)))
        if not piece:
            return None
        data += piece
    return data


def message(kind, body):
    """A message as starfold/federation/message.h lays it out."""
    head = b"STARFOLD" + struct.pack("<HHQ", 4, kind, len(body)) + body
    return head + hashlib.sha256(head).digest()[:8]


def text(value):
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def privacy_terms(epsilon, delta, at, neighbours=0, shares=1):
    """The terms of a private run as privacy/terms.h has them: one client, the unit a record, no inputs."""
    number = ["server", "client", "output", "distributed"].index(at)
    return struct.pack("<BBddBBqqI", 0, neighbours, epsilon, delta, number, 0, 1, shares, 0)


def start_message(plan, program, run, bindings, source="visits", sizes=(), name="p.fold", terms=b"", sampled=False, group=None):
    body = text(plan) + text(name) + text(program) + struct.pack("<I", 0) + struct.pack("<I", len(sizes))
    for key, value in sizes:
        body += text(key) + struct.pack("<q", value)
    planning = b"\x01\x00\x01" if terms else b"\x01\x00\x00"  # private runs have sums only
    told = text(run) + text("a study") + text(source) + text(bindings)
    flags = (b"\x00" if group is None else b"\x01" + group) + bytes([sampled])
    return message(0, body + planning + told + flags + text(terms))


def encode_message(agreement, run, sequence, number, tensors=()):
    body = text(agreement) + struct.pack("<QI", sequence, number) + struct.pack("<I", len(tensors))
    for tensor in tensors:
        array = np.asarray(tensor, dtype="<f8")
        body += struct.pack("<B", array.ndim) + b"".join(struct.pack("<q", n) for n in array.shape) + array.tobytes()
    return message(2, body + text(run))


DESCRIBE = message(5, b"")
REFUSALS = ["unreadable", "not_a_request", "program_errors", "another_plan", "data_misfit", "not_started", "another_program",
            "no_such_round", "values_misfit", "cannot_encode", "no_resources", "internal_error", "another_run", "out_of_order",
            "no_such_source", "columns", "merges", "max_numbers", "max_rounds", "programs", "pending", "denied", "max_refusals",
            "privacy", "budget", "secure_aggregation", "policy", "keys_lost", "broken_protocol"]


def kind(answer):
    """hello, state, description, or the name of a refusal."""
    number = struct.unpack("<H", answer[10:12])[0]
    return REFUSALS[answer[20]] if number == 4 else {1: "hello", 3: "state", 6: "description", 8: "masked"}[number]


def bindings(missing="error", **inputs):
    """Bindings as data/binding_text.h writes them; a column is a name, or all that is said of it."""
    columns = {name: [c if isinstance(c, dict) else {"column": c} for c in given] for name, given in sorted(inputs.items())}
    written = {"inputs": columns, "missing": missing}
    return json.dumps(written, separators=(",", ":"), sort_keys=True) + "\n"


def agreement(plan, bound):
    return hashlib.sha256(f"{plan}\n{bound}".encode()).hexdigest()


class Federation:
    """Nodes in one folder and studies over them."""

    def __init__(self, command, folder):
        self.command, self.folder, self.nodes = command, pathlib.Path(folder), []

    def add(self, name, columns, policy="", start=True, **options):
        node = Node(self.command, self.folder / name, name, columns, policy, **options)
        self.nodes.append(node)
        return node.start() if start else node

    def study(self, program, inputs, federation="", name="study.toml", extra="", keys=False):
        (self.folder / "program.fold").write_text(program)
        lines = ['program = "program.fold"', "[inputs]", inputs, extra]
        for node in self.nodes:
            lines += ["[[client]]", f'name = "{node.name}"', f'node = "{node.socket}"', 'source = "visits"']
            lines += [f'key = "{node.key()}"'] if keys else []
        lines += ["[federation]", 'via = "sockets"', federation]
        path = self.folder / name
        path.write_text("\n".join(lines) + "\n")
        return path

    def local(self, program, inputs, extra=""):
        """The same study over the files themselves."""
        (self.folder / "program.fold").write_text(program)
        lines = ['program = "program.fold"', "[inputs]", inputs, extra]
        for node in self.nodes:
            lines += ["[[client]]", f'name = "{node.name}"', f'data = "{node.folder / "visits.csv"}"']
        path = self.folder / "local.toml"
        path.write_text("\n".join(lines) + "\n")
        return path

    def run(self, study, *options, timeout=LIMIT):
        process = subprocess.run([self.command, "run", str(study), "--json", *options], capture_output=True, text=True,
                                 timeout=patient(timeout))
        return process.returncode, json.loads(process.stdout) if process.stdout.strip() else None, process.stderr

    def command_line(self, *arguments, timeout=LIMIT):
        return subprocess.run([self.command, *map(str, arguments)], capture_output=True, text=True, timeout=patient(timeout))

    def stop(self):
        return [node.stop() for node in self.nodes]


def wait_until(condition, seconds=LIMIT):
    end = time.monotonic() + patient(seconds)
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.01)


ID = 'id = "id"'  # a binding


def refused(result, rule="policy"):
    code, answer, err = result
    assert code == 1, (code, answer, err)
    assert answer["refused"] == {"client": "north", "rule": rule}, answer
    return err
