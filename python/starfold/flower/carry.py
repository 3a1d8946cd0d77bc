"""The carrier: a child of `starfold run` that takes requests on standard input and brings answers on standard output.

Starfold's requests are idempotent: the same bytes again get the same answer, at no cost. So whatever Flower loses is sent again, if need be
in a new run. The protocol is in docs/flower.md. What is said to people goes to standard error, a line each.
"""
import json
import os
import queue
import signal
import sys
import threading
import time

from starfold.flower import frames
from starfold.flower.bridge import CONNECTING, STARTING, Bridge, Lost, Place
from starfold.flower.sites import Mistake, find, read_clients

ANSWERED, UNREACHABLE = 0, 1  # what the parent is told
POLL = 0.2  # seconds between looking for answers
PAUSE = 3.0  # seconds before something that failed is tried again
SILENCE = 75.0  # seconds without an answer before a request is sent again; doubled each time
LONGEST_SILENCE = 600.0
TELLING = 30.0  # seconds between lines about who is awaited
CROSSING = 2.0  # seconds in which the same request again may have crossed with its answer
PATIENCE = 60.0  # seconds for the first run to begin, however short the timeout of the study is: Flower may be slow on a busy machine
FIRST = 110.0  # at most; the parent waits two minutes

LOST_BY_FLOWER = {3, 5, 8}  # unknown or expired; node offline; ClientApp died
FLOWER_SAYS = {
    1: "its SuperNode could not load Flower's ClientApp",
    2: "Flower's ClientApp failed at its SuperNode",
    7: "its SuperNode does not trust the app",
}
SHIM_SAYS = {
    1: "its node is not running, or does not let the SuperNode's user in",
    2: "its node closed the connection without an answer",
    3: "its node did not answer in time",
    4: "its message is larger than can be carried",
    5: "its SuperNode has no socket in --node-config",
    6: "the shim at its SuperNode failed",
}


def say(text):
    """A line for people. On a terminal the parent may have a line of progress there, which goes first and is drawn again later."""
    print(("\r\x1b[K" if sys.stderr.isatty() else "") + f"flower: {text}", file=sys.stderr, flush=True)


class Waiting:
    """A request that has no answer yet."""

    def __init__(self, data, now, timeout, not_before):
        self.data = data
        self.since = now
        self.deadline = now + timeout
        self.ids = set()  # of the messages that carry it
        self.push_at = not_before
        self.silence = SILENCE


class Carrier:
    """Requests in, answers out. `start(seconds)` gives a new Bridge within that time; what waits is bounded by the study's timeout."""

    def __init__(self, clients, timeout, start, answer):
        self.clients = clients
        self.timeout = timeout
        self.start = start
        self.answer = answer
        self.bridge = None
        self.waiting = {}  # by client
        self.node_of = {}  # by client: only those online
        self.not_before = {}  # by client: when it may be asked again after a failure
        self.answered = {}  # by client: the request that was answered last, and when
        self.looked_at = self.told_at = self.start_at = float("-inf")
        self.backoff = PAUSE

    def open(self, seconds):
        """Starts the first run and looks at who is there."""
        self.bridge = self.start(seconds)
        try:
            self.look(time.monotonic())
        except Lost:
            self.bridge.close()
            self.bridge = None
            raise

    def request(self, client, data):
        """A request replaces what its client has not answered yet; the same once more only has more time. One that may have crossed with its
        answer waits a little: sent again it would keep the site from the next."""
        now = time.monotonic()
        same = self.waiting.get(client)
        if same and same.data == data:
            same.deadline = now + self.timeout
            return
        before, when = self.answered.get(client, (None, 0.0))
        not_before = max(self.not_before.get(client, now), when + CROSSING if before == data else now)
        self.waiting[client] = Waiting(data, now, self.timeout, not_before)
        self.told_at = max(self.told_at, now)

    def step(self):
        """Sends what is due and passes on what has come."""
        if not self.waiting:
            return
        now = time.monotonic()
        try:
            if self.bridge is None and now >= self.start_at:
                self.bridge = self.start(STARTING + CONNECTING)
                self.backoff = PAUSE
                self.looked_at = float("-inf")
            if self.bridge:
                self.send(time.monotonic())
                self.collect()
        except Lost as lost:
            self.forget_run(lost)
        self.give_up(time.monotonic())
        self.tell(time.monotonic())

    def forget_run(self, lost):
        say(f"{lost}; starting another run")
        if self.bridge:
            self.bridge.close()
            self.bridge = None
        now = time.monotonic()
        self.start_at, self.backoff = now + self.backoff, min(self.backoff * 2, 30.0)
        self.node_of = {}
        for waiting in self.waiting.values():
            waiting.ids.clear()
            waiting.push_at = now
            waiting.silence = SILENCE

    def look(self, now):
        """Who is online. A client that cannot be told from another is nobody."""
        nodes = self.bridge.nodes()
        self.looked_at = now
        self.node_of = {}
        for index, client in enumerate(self.clients):
            node = find(client, nodes)
            if node in self.node_of.values():
                raise Mistake(f"client {client.name} and another client are the same SuperNode")
            if node is not None:
                self.node_of[index] = node

    def send(self, now):
        due = [client for client, waiting in self.waiting.items() if waiting.push_at <= now]
        if not due:
            return
        if now - self.looked_at >= PAUSE:
            try:
                self.look(now)
            except Mistake as mistake:
                for client in due:
                    self.fail(client, str(mistake))
                return
        due = [client for client in due if client in self.node_of]
        if not due:
            return
        # The message outlives the request a little, so that the clocks of the sites do not matter much.
        ids = self.bridge.push([(self.node_of[client], self.waiting[client].data) for client in due], self.timeout, self.timeout + 60)
        for client, identity in zip(due, ids):
            waiting = self.waiting[client]
            if not identity:
                waiting.push_at = now + PAUSE
                continue
            waiting.ids.add(identity)
            waiting.push_at = now + waiting.silence
            waiting.silence = min(waiting.silence * 2, LONGEST_SILENCE)

    def collect(self):
        owner = {identity: client for client, waiting in self.waiting.items() for identity in waiting.ids}
        if not owner:
            return
        for identity, flower, code, data in self.bridge.pull(owner):
            client = owner.get(identity)
            if client not in self.waiting:  # answered by an earlier message of the same request
                continue
            self.take(client, identity, flower, code, data)

    def take(self, client, identity, flower, code, data):
        name = self.clients[client].name
        if flower in LOST_BY_FLOWER:
            waiting = self.waiting[client]
            waiting.ids.discard(identity)
            if not waiting.ids:
                say(f"{name}: Flower lost the request (code {flower}); sending it again")
                waiting.push_at = time.monotonic() + PAUSE
        elif flower is not None:
            self.fail(client, f"{name}: {FLOWER_SAYS.get(flower, 'Flower failed at its SuperNode')} (code {flower})")
        elif code == 0:
            self.answered[client] = self.waiting.pop(client).data, time.monotonic()
            self.answer(client, ANSWERED, data)
        else:
            self.fail(client, f"{name}: {SHIM_SAYS.get(code, 'its SuperNode sent something that is no answer')}")

    def fail(self, client, sentence):
        """Tells the parent, which may ask again; it is then not asked at once."""
        del self.waiting[client]
        self.not_before[client] = time.monotonic() + PAUSE
        say(sentence)
        self.answer(client, UNREACHABLE, sentence.encode())

    def give_up(self, now):
        for client in [client for client, waiting in self.waiting.items() if waiting.deadline <= now]:
            self.fail(client, f"{self.clients[client].name}: no answer over Flower within {self.timeout:g} s")

    def tell(self, now):
        """A line about who is awaited, now and then."""
        if not self.waiting or now - self.told_at < TELLING:
            return
        self.told_at = now
        names = []
        for client in sorted(self.waiting):
            offline = self.bridge and client not in self.node_of
            names.append(self.clients[client].name + (" (its SuperNode is not online)" if offline else ""))
        longest = max(now - waiting.since for waiting in self.waiting.values())
        say(f"waiting for {', '.join(names)}; {longest:.0f} s" + ("" if self.bridge else "; no run on the SuperLink"))

    def end(self):
        if self.bridge:
            self.bridge.end()


class Parent:
    """What the parent asks, read beside the work; `gone` is set when it has closed its end."""

    def __init__(self, stream, clients):
        self.stream = stream
        self.clients = clients
        self.asked = queue.Queue()
        self.gone = threading.Event()
        self.torn = None
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        try:
            while (request := frames.read_request(self.stream)) is not None:
                if request[0] >= self.clients:
                    raise frames.Torn(f"there is no client {request[0]}")
                self.asked.put(request)
        except (frames.Torn, OSError) as torn:
            self.torn = str(torn)
        self.gone.set()
        self.asked.put(None)

    def take(self, seconds):
        """The requests that have come, after at most so many seconds."""
        requests = []
        try:
            requests.append(self.asked.get(timeout=seconds))
            while True:
                requests.append(self.asked.get_nowait())
        except queue.Empty:
            pass
        return [request for request in requests if request is not None]


def read_config(stream):
    """(superlink, text of the root certificates, clients, timeout) of the parent's first frame."""
    try:
        config = json.loads(frames.read_blob(stream) or b"")
        superlink, certificates = config["superlink"], config.get("root_certificates") or ""
        entries, timeout = config["clients"], float(config.get("timeout") or 600)
        well = isinstance(superlink, str) and isinstance(certificates, str) and timeout > 0 and all(
            isinstance(entry["name"], str) and isinstance(entry.get("public_key") or "", str) for entry in entries)
    except (ValueError, KeyError, TypeError, AttributeError, frames.Torn):
        well = False
    if not well:
        raise Mistake("the first frame is not a configuration")
    return superlink, certificates, read_clients(entries), timeout


def first_run(carrier, parent, limit):
    """Starts the first run; tries again for so many seconds, since a SuperLink may be starting too."""
    deadline = time.monotonic() + limit
    while True:
        try:
            return carrier.open(deadline - time.monotonic())
        except Lost as lost:
            if time.monotonic() + 2 * PAUSE >= deadline or parent.gone.is_set():
                raise
            say(f"{lost}; trying again")
        parent.gone.wait(PAUSE)


def work(carrier, parent):
    while not parent.gone.is_set():
        for client, data in parent.take(POLL if carrier.waiting else 3600.0):
            carrier.request(client, data)
        if not parent.gone.is_set():
            carrier.step()


def carry(flwr):
    """The process as a whole; returns its exit code."""
    # Frames have standard output to themselves, whatever a library may print.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    # Not sys.stdin: Python aborts at its end if a thread is still reading that.
    asked = os.fdopen(os.dup(0), "rb", buffering=0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then closes its end
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    place = carrier = None
    try:
        superlink, certificates, clients, timeout = read_config(asked)
        parent = Parent(asked, len(clients))
        place = Place(superlink, certificates)
        carrier = Carrier(clients, timeout, lambda seconds: Bridge(place, flwr, parent.gone.is_set, seconds),
                          lambda client, status, data: frames.write_answer(out, client, status, data))
        first_run(carrier, parent, min(max(timeout, PATIENCE), FIRST))
        frames.write_blob(out, json.dumps({"ok": True}).encode())
        work(carrier, parent)
        if parent.torn:
            say(parent.torn)
        return 1 if parent.torn else 0
    except (Mistake, Lost) as trouble:
        frames.write_blob(out, json.dumps({"ok": False, "error": str(trouble)}).encode())
        return 1
    except BrokenPipeError:
        return 1  # the parent has gone
    finally:
        if carrier:
            carrier.end()
        if place:
            place.remove()
