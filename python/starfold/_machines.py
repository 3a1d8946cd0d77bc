"""The two sides of a run as machines: bytes in, bytes out. Who has a way to carry bytes can carry a run."""
from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from starfold import _clients, _engine
from starfold._errors import RunError, UsageError
from starfold._run import Fit, settings_of

LIMIT = 256 << 20  # bytes of one message


class Coordinator:
    """The server's side of a run: what to send next, and what came back. It sees no record.

    >>> import numpy as np, starfold as sf
    >>> program = sf.compile("input x : [*]\\noutput mean = mean[*](x)\\n")
    >>> coordinator = sf.Coordinator(program, ["athens", "bern"])
    >>> nodes = {"athens": sf.Node("athens", {"x": np.array([1.0, 2.0])}), "bern": sf.Node("bern", {"x": np.array([6.0])})}
    >>> while not coordinator.done:
    ...     for name, request in coordinator.requests().items():
    ...         coordinator.absorb(name, nodes[name].handle(request))
    >>> float(coordinator.fit()["mean"])
    3.0

    Over nodes that read their own tables, `bind`, `levels` and `missing` say which columns become which input, and `sources` the name of
    each node's table. With `exact` the answer is the same bits for every split of the records. Keywords are shared inputs and sizes, as in `Program.run`.
    """

    def __init__(self, program, clients: Sequence[str], *, bind: Optional[Mapping[str, Any]] = None, levels: Optional[Mapping[str, Any]] = None,
                 missing: str = "error", sources: Optional[Sequence[str]] = None, study: str = "", run: Optional[str] = None,
                 exact: bool = False, set: Optional[Mapping[str, Any]] = None, **inputs: Any):
        self.program = program
        self.clients: List[str] = list(clients)
        columns = _clients.bound_columns(bind)
        values = settings_of(program, {**(set or {}), **inputs})
        identity = run if run is not None else secrets.token_hex(16) if sources or columns else ""
        self._machine = _engine.Coordinator(program._compiled, self.clients, values, columns, _clients.level_lists(levels), missing, identity, study, list(sources or []), bool(exact))
        self._sent = {name: 0 for name in self.clients}
        self._received = {name: 0 for name in self.clients}
        self._numbers = {name: 0 for name in self.clients}

    @property
    def done(self) -> bool:
        return self._machine.done

    @property
    def rounds(self) -> int:
        return self._machine.rounds

    def requests(self) -> Dict[str, bytes]:
        """What to send now, by client: to those whose answer is still needed."""
        if self.done:
            return {}
        return {name: self.request(name) for i, name in enumerate(self.clients) if self._machine.awaits(i)}

    def request(self, client: Union[str, int]) -> bytes:
        """What to send to a client now; empty when the run is done."""
        return b"" if self.done else self._machine.request(self._place(client))

    def absorb(self, client: Union[str, int], answer: bytes) -> None:
        """Takes a client's answer; in whatever order they come, the result is the same. PolicyError when the client says no, RunError
        when its answer cannot be used: another one is welcome then."""
        place = self._place(client)
        request = self._machine.request(place) if not self.done else b""
        numbers_in = self._machine.absorb(place, bytes(answer))
        name = self.clients[place]
        self._sent[name] += len(answer)
        self._received[name] += len(request)
        self._numbers[name] += numbers_in

    def leave(self, client: Union[str, int]) -> None:
        """Goes on without a client."""
        self._machine.leave(self._place(client))

    def save(self) -> bytes:
        """Everything it knows, to go on later with `resume`."""
        return self._machine.save()

    def resume(self, saved: bytes) -> None:
        """Becomes the coordinator that was saved: of the same program, settings and clients."""
        self._machine.resume(bytes(saved))

    def fit(self) -> Fit:
        """What the run gave. RunError while it is not done."""
        if not self.done:
            raise RunError("the run is not done")
        rows = [{"name": name, "records": None, "bytes_sent": self._sent[name], "bytes_received": self._received[name], "numbers_sent": self._numbers[name],
                 "dropped": None} for name in self.clients]
        return Fit(self.program, self._machine.results(), rounds=self.rounds, clients=rows)

    def run(self, nodes: Mapping[str, Any]) -> Fit:
        """Runs to the end over nodes in this process: anything with `handle(bytes) -> bytes`, by name."""
        while not self.done:
            for name, request in self.requests().items():
                self.absorb(name, nodes[name].handle(request))
        return self.fit()

    def _place(self, client: Union[str, int]) -> int:
        if isinstance(client, int):
            return client
        if client not in self.clients:
            raise UsageError(f"there is no client {client}")
        return self.clients.index(client)


class Node:
    """A client's side of a run: it compiles the program itself, encodes its own records and refuses the rest. `data` is anything that
    `Program.run` takes for a client. It has no policy: that is for `starfold node`, see NodeProcess."""

    def __init__(self, name: str, data: Any, *, bind: Optional[Mapping[str, Any]] = None, levels: Optional[Mapping[str, Any]] = None, missing: str = "error",
                 threads: int = 1):
        self.name = name
        named = _clients.level_lists(levels)
        self._machine = _engine.Node(name, _clients.given(data, levels=named), _clients.bound_columns(bind), named, missing, int(threads))

    def handle(self, request: bytes) -> bytes:
        """The answer to a request: always a message, if only one that says no. `trouble` then has the reason, for the owner alone."""
        return self._machine.handle(bytes(request))

    @property
    def trouble(self) -> Optional[str]:
        return self._machine.trouble or None


class NodeProcess:
    """A node that runs in a process of its own, under its owner's policy: `starfold node serve`. This talks to its socket.

    `NodeProcess.serve("north.toml")` starts one and ends it at the end of a `with` block.
    """

    def __init__(self, path: Union[str, os.PathLike], *, timeout: float = 60.0):
        self.path = os.fspath(path)
        self.timeout = timeout
        self._process: Optional[subprocess.Popen] = None

    @classmethod
    def serve(cls, config: Union[str, os.PathLike], *, timeout: float = 60.0) -> "NodeProcess":
        """Starts the node of a NODE.toml. RunError when it does not begin to listen."""
        from starfold._command import path
        folder, file = os.path.split(os.path.abspath(os.fspath(config)))
        process = subprocess.Popen([str(path()), "node", "serve", file], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if process.stdout.readline().strip() != "listening":
            process.kill()
            raise RunError(f"the node did not start: {process.communicate()[1].strip()}")
        node = cls(os.path.join(folder, socket_of(os.path.join(folder, file))), timeout=timeout)
        node._process = process
        return node

    def handle(self, request: bytes) -> bytes:
        """The node's answer to a request. RunError when it cannot be reached, or does not answer in time."""
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(self.timeout)
                connection.connect(self.path)
                connection.sendall(len(request).to_bytes(8, "little") + bytes(request))
                length = int.from_bytes(self._receive(connection, 8), "little")
                if length > LIMIT:
                    raise RunError("the node's answer is longer than any message")
                return self._receive(connection, length)
        except TimeoutError:
            raise RunError(f"the node at {self.path} did not answer within {self.timeout:g} s") from None
        except OSError as error:
            raise RunError(f"the node at {self.path} cannot be reached: {error.strerror or error}") from None

    def describe(self) -> Dict[str, Any]:
        """What the node has, and what it lets out: its sources with their columns, and its policy."""
        kind = _engine.message_kind(self.handle(_engine.describe_request()))
        if not kind.startswith("description: "):
            raise RunError(f"the node did not describe itself ({kind})")
        return json.loads(kind.removeprefix("description: "))

    def close(self) -> None:
        """Ends the process, if `serve` started it."""
        if self._process is not None:
            self._process.terminate()
            self._process.communicate()
            self._process = None

    def __enter__(self) -> "NodeProcess":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    @staticmethod
    def _receive(connection: socket.socket, count: int) -> bytes:
        parts = []
        while count:
            part = connection.recv(min(count, 1 << 20))
            if not part:
                raise RunError("the node closed the connection")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)


def socket_of(config: str) -> str:
    """The socket that a NODE.toml names."""
    import re
    with open(config, encoding="utf-8") as file:
        found = re.search(r'^\s*socket\s*=\s*["\']([^"\']+)["\']', file.read(), re.MULTILINE)
    if not found:
        raise UsageError(f"{config} names no socket")
    return found[1]
