"""A resident worker at a site, beside a SuperNode with `--isolation process`: it takes the SuperNode's tasks and passes their requests to the
node's socket as the shim does, but never runs the bundle that came with them. So no foreign code runs at the site, and no Python starts
per message.

Flower has no public interface for this. What is used of its inside is that of one version, and another is refused.
"""
import os
import signal
import sys
import threading
import time
from importlib.metadata import version

from starfold.flower.app.starfold_shim import client_app as shim
from starfold.flower.bridge import environment

WRITTEN_FOR = "1.41.0"
BUSY, IDLE = 0.1, 1.0  # seconds between looking for work, shortly after a message and later
BUSY_FOR = 60.0
HEARTBEAT = 20.0  # seconds; the SuperNode gives a task up after 60 without one
PAUSE = 3.0  # seconds after a failure


def say(text):
    print(f"resident: {text}", file=sys.stderr, flush=True)


def runtime(address, *interceptors):
    """A client of the SuperNode's Runtime API. It does not try again by itself: Flower's way of doing so ends the process."""
    from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor
    from flwr.supercore.runtime import RuntimeHttpClient
    return RuntimeHttpClient.from_server_address(address, True, None, [RuntimeVersionHttpInterceptor(component_name="SuperExec"), *interceptors])


class Heartbeat:
    """Tells the SuperNode that a task is being worked on, as long as it is."""

    def __init__(self, client):
        self.client = client
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.beat, daemon=True)

    def beat(self):
        from flwr.proto.runtime_pb2 import SendTaskHeartbeatRequest
        while not self.done.is_set():
            try:
                self.client.SendTaskHeartbeat(SendTaskHeartbeatRequest())
            except Exception:
                pass  # the SuperNode is away; the task's own calls will show it
            self.done.wait(HEARTBEAT)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()


def work(address, token, path):
    """One task: pull the message, ask the node, push its answer. The bundle is in what is pulled, and left alone."""
    from flwr.supercore.interceptors import RuntimeTokenHttpInterceptor
    from flwr.supernode.runtime.run_clientapp import pull_task_input, push_message, push_task_output
    client = runtime(address, RuntimeTokenHttpInterceptor(token))
    try:
        with Heartbeat(client):
            message, context, _, _ = pull_task_input(client)
            if message.metadata.message_type == "query.starfold":
                code, data = shim.exchange(path, message)
            else:
                code, data = shim.FAILED, b""
            push_message(client, shim.reply(message, code, data), context)
            push_task_output(client, context, "completed", "")
    finally:
        client.close()


def serve(address, path, secret):
    """Works until the process is ended. Whatever fails is tried again, with a word about it when it begins and when it is over."""
    from flwr.proto.runtime_pb2 import AcquireTaskRequest
    from flwr.supercore.interceptors import SuperExecAuthHttpInterceptor
    auth = [SuperExecAuthHttpInterceptor(master_secret=secret, protected_methods=frozenset({"/flwr.proto.Runtime/AcquireTask"}))] if secret else []
    boss = runtime(address, *auth)
    trouble, busy_until = None, 0.0
    while True:
        try:
            task = boss.AcquireTask(AcquireTaskRequest(supported_task_types=["flwr-clientapp"]))
            if task.token:
                work(address, task.token, path)
                busy_until = time.monotonic() + BUSY_FOR
            if trouble:
                say("the SuperNode answers again")
                trouble = None
        except Exception as error:  # its name is told, its text is not: it may hold anything
            if type(error).__name__ != trouble:
                trouble = type(error).__name__
                say(f"the SuperNode at {address} could not be worked for ({trouble}); trying again")
            time.sleep(PAUSE)
            continue
        if not task.token:
            time.sleep(BUSY if time.monotonic() < busy_until else IDLE)


def reside(address, path, secret_file):
    """The process as a whole; returns its exit code."""
    if version("flwr") != WRITTEN_FOR:
        say(f"this needs flwr {WRITTEN_FOR}, found {version('flwr')}: use the shim (a SuperNode without --isolation process)")
        return 1
    secret = None
    if secret_file:
        try:
            with open(secret_file, "rb") as file:
                secret = file.read()
        except OSError:
            say(f"the secret cannot be read: {secret_file}")
            return 1
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = environment("")["NO_PROXY"]  # Flower would ask a proxy even for loopback
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    say(f"working for the SuperNode at {address}")
    try:
        serve(address, path, secret)
    except KeyboardInterrupt:
        return 0
