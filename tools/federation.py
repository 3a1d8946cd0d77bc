"""A federation on loopback for development and tests: a SuperLink with TLS and node authentication, and per hospital a SuperNode and
a Starfold node with a real file. Everything is in one folder, and `stop` ends exactly what `start` has started."""

import argparse
import csv
import datetime
import ipaddress
import json
import os
import pathlib
import secrets
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request

import numpy as np

import demo

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = ROOT / "build/flower-venv/bin"
READY = 60.0  # seconds for each part to come up, on a machine that has nothing else to do
STOPPING = 20.0  # seconds to end after SIGTERM

NODE = """\
name = "{name}"
socket = "{name}.sock"
ledger = "{name}.ledger"
folder = "kept"

[data.visits]
file = "visits.csv"
columns = {columns}
"""

STUDY = demo.STUDY[:demo.STUDY.index("[[client]]")]
CLIENT = """\
[[client]]
name = "{name}"
source = "visits"
public_key = "{name}/key.pub"

"""
FEDERATION = """\
[federation]
via = "flower"
superlink = "{address}"
root_certificates = "ca.crt"
timeout = "5m"
checkpoint = "run"

[options]
missing = "drop"
out = "results"
"""


def private(path, data):
    """Writes a file that only its owner may read."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)


def pem(key):
    from cryptography.hazmat.primitives import serialization
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def make_certificates(folder):
    """A certificate authority of its own, and with it a certificate for loopback."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    def certificate(subject, key, issuer, signer, extensions):
        now = datetime.datetime.now(datetime.timezone.utc)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(hours=1))
        builder = builder.not_valid_after(now + datetime.timedelta(days=30))
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical)
        return builder.sign(signer, hashes.SHA384()).public_bytes(serialization.Encoding.PEM)

    def name(text):
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

    authority, server = ec.generate_private_key(ec.SECP384R1()), ec.generate_private_key(ec.SECP384R1())
    signs = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
    (folder / "ca.crt").write_bytes(
        certificate(name("starfold test"), authority, name("starfold test"), authority,
                    [(x509.BasicConstraints(True, None), True), (signs, True)]))
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    (folder / "server.crt").write_bytes(
        certificate(name("localhost"), server, name("starfold test"), authority,
                    [(names, False), (x509.BasicConstraints(False, None), True),
                     (x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.SERVER_AUTH]), False)]))
    private(folder / "server.key", pem(server))


def make_key(folder, comment):
    """The key of a SuperNode as Flower wants it: P-384, in OpenSSH's form."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    key = ec.generate_private_key(ec.SECP384R1())
    private(folder / "key",
            key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()))
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    (folder / "key.pub").write_bytes(public + f" {comment}\n".encode())


def free_ports(count):
    """Ports that nobody has at the moment."""
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def birth(pid):
    """When a process was born, which tells it from a later one with the same number; None if there is none or it has ended."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None
    return None if fields[0] == "Z" else fields[19]


class Patience:
    """So many seconds of a machine that has nothing else to do: on a busy one they pass more slowly, up to eight times."""

    def __init__(self, seconds):
        self.left, self.seen = seconds, time.monotonic()

    def over(self):
        now = time.monotonic()
        busy = os.getloadavg()[0] / (os.cpu_count() or 1)
        self.left -= (now - self.seen) / min(max(busy, 1.0), 8.0)
        self.seen = now
        return self.left <= 0


MARK = "STARFOLD_FEDERATION"  # in the environment of all that a federation has started, and of what that starts


def marked(token):
    """[(pid, its session)] of the processes with this mark, wherever they hang: they may have outlived who started them."""
    mark = f"{MARK}={token}".encode()
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0") and birth(entry.name):
                found.append((int(entry.name), os.getsid(int(entry.name))))
        except OSError:  # another user's, or gone
            pass
    return found


class Federation:
    """Processes and files of one federation. What runs is written down before anything else happens, for `stop`."""

    def __init__(self, folder, names, node_command=None, residents=()):
        """Sites in `residents` answer by a resident worker instead of the shim."""
        self.folder = pathlib.Path(folder).resolve()
        self.names = list(names)
        self.node_command = node_command or [str(ROOT / "build/starfold"), "node", "serve", "{toml}"]
        self.environment = {
            **os.environ, "PATH": f"{BIN}:{os.environ.get('PATH', '')}", "FLWR_HOME": str(self.folder / "home"),
            "FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1", "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost"
        }
        self.residents = list(residents)
        self.mark(secrets.token_hex(16))
        self.processes = {}  # by name: Popen

    @classmethod
    def open(cls, folder):
        """One that another process has prepared."""
        state = json.loads((pathlib.Path(folder) / "federation.json").read_text())
        federation = cls(folder, state["names"], state["node_command"], state["residents"])
        federation.mark(state["token"])
        federation.port, federation.site_ports, federation.address = state["port"], state["site_ports"], state["address"]
        return federation

    def mark(self, token):
        self.token = self.environment[MARK] = token

    # Files

    def prepare(self):
        """All files: certificates, keys, and per hospital the demo's records; a study over them."""
        os.umask(0o077)
        self.folder.mkdir(parents=True)
        (self.folder / "home").mkdir()
        make_certificates(self.folder)
        random = np.random.default_rng(7)
        records = {name: demo.make_records(random, count) for name, count in demo.HOSPITALS.items()}
        for name in self.names:
            site = self.folder / name
            site.mkdir()
            (site / "home").mkdir()
            make_key(site, name)
            private(site / "secret", secrets.token_bytes(32))
            (site / "NODE.toml").write_text(NODE.format(name=name, columns=json.dumps(demo.COLUMNS)))
            with open(site / "visits.csv", "w", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows([demo.COLUMNS, *records.get(name, [])])
        self.port, *self.site_ports = free_ports(1 + len(self.names))
        self.address = f"127.0.0.1:{self.port}"
        state = {key: getattr(self, key) for key in ("names", "node_command", "residents", "port", "site_ports", "address", "token")}
        (self.folder / "federation.json").write_text(json.dumps(state))
        (self.folder / "home/config.toml").write_text(
            f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "{self.address}"\n'
            f"root-certificates = {json.dumps(str(self.folder / 'ca.crt'))}\n")
        (self.folder / "study.toml").write_text(STUDY + "".join(CLIENT.format(name=name) for name in self.names) +
                                                FEDERATION.format(address=self.address))

    # Processes

    def launch(self, name, words, log, **environment):
        """Starts a process in a session of its own, so that its children can be ended with it."""
        with open(self.folder / log, "ab") as output:
            process = subprocess.Popen(words, cwd=self.folder, env={**self.environment, **environment}, stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        self.processes[name] = process
        record = self.recorded()
        record.append({"name": name, "pid": process.pid, "birth": birth(process.pid)})
        (self.folder / "processes.json").write_text(json.dumps(record))
        return process

    def recorded(self):
        try:
            return json.loads((self.folder / "processes.json").read_text())
        except OSError:
            return []

    def start_superlink(self):
        self.launch("superlink", [
            BIN / "flower-superlink", "--host", "127.0.0.1", "--port", str(self.port), "--ssl-ca-certfile", "ca.crt", "--ssl-certfile",
            "server.crt", "--ssl-keyfile", "server.key", "--enable-supernode-auth", "--database", self.folder / "state.db",
            "--disable-runtime-dependency-installation"
        ], "superlink.log")

    def superlink_answers(self):
        trust = ssl.create_default_context(cafile=str(self.folder / "ca.crt"))
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trust))
        try:
            return opener.open(f"https://{self.address}/health", timeout=5).status == 200
        except OSError:
            return False

    def start_node(self, name):
        site = self.folder / name
        words = [word.format(toml=site / "NODE.toml") for word in self.node_command]
        self.launch(f"node {name}", words, f"{name}/node.log")

    def start_supernode(self, name):
        """The log starts anew, so that it shows whether this one is online."""
        site = self.folder / name
        (site / "supernode.log").unlink(missing_ok=True)
        port = self.site_ports[self.names.index(name)]
        path = site / f"{name}.sock"
        words = self.supernode_words(port, f'socket="{path}"', site / "key")
        if name in self.residents:
            words += ["--isolation", "process", "--superexec-auth-secret-file", site / "secret"]
        self.launch(f"supernode {name}", words, f"{name}/supernode.log", FLWR_HOME=str(site / "home"))

    def start_resident(self, name):
        site = self.folder / name
        address = f"127.0.0.1:{self.site_ports[self.names.index(name)]}"
        self.launch(f"resident {name}", [BIN / "starfold-flower", "resident", "--supernode", address, "--socket", site / f"{name}.sock",
                                         "--secret", site / "secret"], f"{name}/resident.log")

    def supernode_words(self, port, config, key, certificates="ca.crt"):
        return [
            BIN / "flower-supernode", "--superlink", self.address, "--root-certificates", certificates, "--auth-supernode-private-key", key,
            "--host", "127.0.0.1", "--port", str(port), "--node-config", config
        ]

    def online(self, name):
        try:
            return "SuperNode ID" in (self.folder / name / "supernode.log").read_text(errors="replace")
        except OSError:
            return False

    def wait(self, process, what, condition):
        """Until the condition holds; fails when the process has ended, or after a while."""
        patience = Patience(READY)
        while not condition():
            if process in self.processes and self.processes[process].poll() is not None:
                raise RuntimeError(f"{what} ended; see its log in {self.folder}")
            if patience.over():
                raise RuntimeError(f"{what} was not ready in time; see its log in {self.folder}")
            time.sleep(0.2)

    def register(self):
        """Tells the SuperLink the keys of the sites: all at once, since most of it is Python starting."""
        calls = [
            subprocess.Popen([BIN / "flwr", "supernode", "register", self.folder / name / "key.pub", "here", "--name", name, "--format",
                              "json"], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True) for name in self.names
        ]
        for name, call in zip(self.names, calls):
            try:
                said, _ = call.communicate(timeout=8 * READY)
            except subprocess.TimeoutExpired:
                for each in calls:
                    each.kill()
                raise RuntimeError(f"registering {name} took too long") from None
            if '"success": true' not in said:
                raise RuntimeError(f"{name} could not be registered: {said}")

    def start(self):
        """Brings everything up, in order; what has started is stopped again if something fails."""
        self.prepare()
        try:
            self.start_superlink()
            for name in self.names:
                self.start_node(name)
            self.wait("superlink", "the SuperLink", self.superlink_answers)
            self.register()
            for name in self.names:
                self.start_supernode(name)
            for name in self.residents:
                self.start_resident(name)
            for name in self.names:
                self.wait(f"node {name}", f"the node {name}", (self.folder / name / f"{name}.sock").exists)
                self.wait(f"supernode {name}", f"the SuperNode {name}", lambda name=name: self.online(name))
        except BaseException:
            self.stop()
            raise

    def end(self, entries):
        """SIGTERM, and SIGKILL to what is left of each session after a while. Only processes that are still the ones written down, and
        those of their sessions that bear the mark: what was started by one that has died is still there."""
        alive = [entry for entry in entries if entry["birth"] and birth(entry["pid"]) == entry["birth"]]
        for entry in alive:
            os.kill(entry["pid"], signal.SIGTERM)
        patience = Patience(STOPPING)
        while any(birth(entry["pid"]) == entry["birth"] for entry in alive) and not patience.over():
            for process in self.processes.values():
                process.poll()
            time.sleep(0.1)
        sessions = {entry["pid"] for entry in entries}
        # A node lets nobody read its environment, where the mark is.
        left = [entry["pid"] for entry in alive if birth(entry["pid"]) == entry["birth"]]
        self.kill({*left, *(pid for pid, session in marked(self.token) if session in sessions)})

    def kill(self, pids):
        """SIGKILL, and until they are gone."""
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
        patience = Patience(STOPPING)
        while any(birth(pid) for pid in pids) and not patience.over():
            for process in self.processes.values():
                process.poll()
            time.sleep(0.05)

    def stop(self):
        """Sites first, so that they can say goodbye; then whatever still bears the mark."""
        record = self.recorded()
        self.end([entry for entry in record if entry["name"] != "superlink"])
        self.end([entry for entry in record if entry["name"] == "superlink"])
        for _ in range(5):  # one that is ended may have started another meanwhile
            left = [pid for pid, _ in marked(self.token)]
            if not left:
                break
            self.kill(left)
        (self.folder / "processes.json").unlink(missing_ok=True)


def start(arguments):
    folder = pathlib.Path(arguments.folder)
    federation = Federation(folder, list(demo.HOSPITALS), arguments.node and shlex.split(arguments.node),
                            [name for name in demo.HOSPITALS if name in arguments.resident or "all" in arguments.resident])
    if federation.recorded():
        sys.exit(f"federation: {folder} is in use; first: tools/federation stop {folder}")
    if folder.exists() and any(folder.iterdir()):
        if not (folder / "federation.json").exists():
            sys.exit(f"federation: {folder} holds something else; not touched")
        shutil.rmtree(folder)
    elif folder.exists():
        folder.rmdir()
    print("federation: starting a SuperLink, three SuperNodes and three nodes (half a minute)", flush=True)
    try:
        federation.start()
    except RuntimeError as trouble:
        sys.exit(f"federation: {trouble}")
    carrier = os.path.relpath(BIN / "starfold-flower", ROOT)
    print(f"""federation: running, on {federation.address}

Run the study over it:     STARFOLD_FLOWER={carrier} build/starfold run {folder}/study.toml
What a hospital would say: build/starfold node check {folder}/north/NODE.toml
What left it:              build/starfold node ledger {folder}/north/NODE.toml
Logs:                      {folder}/superlink.log, {folder}/north/node.log, {folder}/north/supernode.log
End it:                    tools/federation stop{'' if arguments.folder == DEFAULT else f' {folder}'}""")


def stop(arguments):
    if not Federation(arguments.folder, []).recorded():
        sys.exit(f"federation: nothing runs in {arguments.folder}")
    Federation.open(arguments.folder).stop()
    print("federation: stopped")


DEFAULT = "build/federation"


def main():
    parser = argparse.ArgumentParser(prog="tools/federation", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["start", "stop"], default="start")
    parser.add_argument("folder", nargs="?", default=DEFAULT, help=f"by default {DEFAULT}")
    parser.add_argument("--node", metavar="COMMAND", help="instead of `build/starfold node serve {toml}`")
    parser.add_argument("--resident", metavar="NAMES", type=lambda text: text.split(","), default=[],
                        help="sites that answer by a resident worker, not by the shim: names with commas between them, or `all`")
    arguments = parser.parse_args()
    {"start": start, "stop": stop}[arguments.what](arguments)


if __name__ == "__main__":
    main()
