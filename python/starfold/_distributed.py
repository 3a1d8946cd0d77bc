"""Clients that outgrew one machine: Spark and Dask DataFrames.

Each partition of such a client is a node of its own where it lies: its records are laid out once and stay there between rounds. In
every round the partitions encode, and what they encode merges by the plan's monoids in a tree; only the state of the whole client
reaches the coordinator. The engines keep what they are asked to keep and compute again what they lose: a partition that comes back
is told the program again, and answers the same.
"""
from __future__ import annotations

import time
import uuid
from typing import Any, Dict, List, Mapping, Optional

from starfold import _clients, _engine
from starfold._errors import DataError, RunError, UsageError
from starfold._machines import Coordinator, Node
from starfold._run import Fit, watcher

# What a worker keeps between rounds, by (run, client, partition): a node with its records laid out. A worker that was started anew
# has nothing here, and lays out again.
_nodes: Dict[Any, Any] = {}
MOST_KEPT = 64


def node_at(key: Any, frame: Any, setup: Mapping[str, Any]) -> "_engine.Node":
    """The node of a partition on this worker; made when it is first asked for, or after it was lost."""
    node = _nodes.get(key)
    if node is None:
        while len(_nodes) >= MOST_KEPT:
            _nodes.pop(next(iter(_nodes)))
        table = frame() if callable(frame) else frame
        given = _clients.given(table, levels=setup["levels"], wanted=setup["wanted"])
        node = _engine.Node(setup["client"], given, setup["columns"], setup["levels"], setup["missing"], setup["threads"])
        _nodes[key] = node
        node.handle(setup["greeting"])
    return node


def answer(key: Any, frame: Any, setup: Mapping[str, Any], request: bytes, sequence: Optional[int]) -> bytes:
    """What a partition says to a request, or why it cannot, as bytes that begin with 1 or 0."""
    node = node_at(key, frame, setup)
    if sequence is None:
        reply = node.handle(setup["greeting"])
    else:
        node.go_on(sequence)
        reply = node.handle(request)
    return b"\x00" + node.trouble.encode() if node.trouble else b"\x01" + reply


def merged(own: "_engine.Merger", replies: List[bytes]) -> bytes:
    for reply in replies:
        if reply[:1] == b"\x00":
            return reply
    states = [reply[1:] for reply in replies]
    while len(states) > 1:
        states = [own.merge(*states[i:i + 2]) if i + 1 < len(states) else states[i] for i in range(0, len(states), 2)]
    return b"\x01" + states[0]


_programs: Dict[bytes, Any] = {}


def merger(greeting: bytes):
    """What merges answers to the requests after this greeting, on this worker."""
    if greeting not in _programs:
        _programs.clear()
        _programs[greeting] = _engine.Merger(greeting)
    return _programs[greeting]


class Spark:
    """A Spark DataFrame as a client."""

    def __init__(self, name: str, frame: Any, wanted: Optional[Any]):
        self.name = name
        if wanted is not None:
            frame = frame.select(*[column for column in frame.columns if column in wanted])
        self.frame = frame.persist()
        self.key = uuid.uuid4().hex

    def empty(self) -> Any:
        return self.frame.limit(0).toArrow()

    def ask(self, setup: Dict[str, Any], request: bytes, sequence: Optional[int]) -> bytes:
        key = self.key

        def replies_of(batches):
            import pyarrow
            from pyspark import TaskContext

            from starfold import _distributed
            partition = TaskContext.get().partitionId()
            parts = list(batches)
            if sum(part.num_rows for part in parts):
                reply = _distributed.answer((key, partition), lambda: pyarrow.Table.from_batches(parts), setup, request, sequence)
                yield pyarrow.RecordBatch.from_pydict({"place": pyarrow.array([partition], pyarrow.int64()), "reply": pyarrow.array([reply], pyarrow.binary())})

        def joined(batches):
            import pyarrow

            from starfold import _distributed
            rows = sorted((row["place"], row["reply"]) for part in batches for row in part.to_pylist())
            if rows:
                reply = _distributed.join_replies(setup, [reply for _, reply in rows])
                yield pyarrow.RecordBatch.from_pydict({"place": pyarrow.array([rows[0][0]], pyarrow.int64()), "reply": pyarrow.array([reply], pyarrow.binary())})

        rows = self.frame.mapInArrow(replies_of, "place long, reply binary")
        width = self.frame.rdd.getNumPartitions() if hasattr(self.frame, "rdd") else 1
        while width > FEW:  # in a tree, where the workers are
            width = -(-width // FEW)
            rows = rows.coalesce(width).mapInArrow(joined, "place long, reply binary")
        return join_replies(setup, [bytes(row["reply"]) for row in sorted(rows.collect(), key=lambda row: row["place"])])

    def close(self) -> None:
        self.frame.unpersist()


class Dask:
    """A Dask DataFrame as a client."""

    def __init__(self, name: str, frame: Any, wanted: Optional[Any]):
        self.name = name
        if wanted is not None:
            frame = frame[[column for column in frame.columns if column in wanted]]
        self.frame = frame.persist()
        self.parts = self.frame.to_delayed()
        self.key = uuid.uuid4().hex

    def empty(self) -> Any:
        return self.frame._meta

    def ask(self, setup: Dict[str, Any], request: bytes, sequence: Optional[int]) -> bytes:
        import dask
        one, join = dask.delayed(answer_if_any, pure=False), dask.delayed(join_replies, pure=False)
        replies = [one((self.key, i), part, setup, request, sequence) for i, part in enumerate(self.parts)]
        while len(replies) > FEW:  # in a tree, where the workers are
            replies = [join(setup, replies[i:i + FEW]) for i in range(0, len(replies), FEW)]
        return join_replies(setup, list(dask.compute(*replies)))

    def close(self) -> None:
        pass


FEW = 8  # replies that are merged at once


def answer_if_any(key: Any, frame: Any, setup: Mapping[str, Any], request: bytes, sequence: Optional[int]) -> bytes:
    return answer(key, frame, setup, request, sequence) if len(frame) else b""


def join_replies(setup: Mapping[str, Any], replies: List[bytes]) -> bytes:
    """One reply of many, by the plan's monoids; empty when nobody had a record."""
    replies = [bytes(reply) for reply in replies if reply]
    return merged(merger(setup["greeting"]), replies) if replies else b""


class Whole:
    """A client made of partitions, to the coordinator a node like others."""

    def __init__(self, engine: Any, setup: Dict[str, Any]):
        self.engine, self.setup = engine, setup
        self.sequence: Optional[int] = None
        self.spare: Optional[Any] = None

    def handle(self, request: bytes) -> bytes:
        if "greeting" not in self.setup:
            self.setup["greeting"] = request
        reply = self.engine.ask(self.setup, request, self.sequence)
        if not reply:  # no partition has a record: a node without any stands in
            if self.spare is None:
                given = _clients.given(self.engine.empty(), levels=self.setup["levels"])
                self.spare = _engine.Node(self.engine.name, given, self.setup["columns"], self.setup["levels"], self.setup["missing"], 1)
            reply = b"\x01" + self.spare.handle(request)
            if self.spare.trouble:
                reply = b"\x00" + self.spare.trouble.encode()
        if reply[:1] == b"\x00":
            words = reply[1:].decode(errors="replace")
            raise (DataError if self.sequence is None else RunError)(words)
        self.sequence = 0 if self.sequence is None else self.sequence + 1
        return reply[1:]


def run(program, clients: Mapping[str, Any], *, columns, levels, missing: str, exact: bool, threads: Optional[int], values, progress: Any,
        formula: Optional[str]) -> Fit:
    """A run of which some clients are Spark or Dask DataFrames."""
    if exact:
        raise UsageError("exact runs are not taken for Spark and Dask DataFrames")
    if formula is not None:
        raise UsageError("a formula is not taken for Spark and Dask DataFrames: bind columns")
    if any(names == ["*"] for names in columns.values()):
        raise UsageError("name the columns of each input for Spark and Dask DataFrames")
    wanted = _clients.wanted(program, columns, None)
    watch, finish = watcher(progress)
    nodes: Dict[str, Any] = {}
    started = time.monotonic()
    try:
        for name, data in clients.items():
            if _clients.is_distributed(data):
                kind = Spark if _clients.is_spark(data) else Dask
                nodes[name] = Whole(kind(name, data, wanted), {"client": name, "columns": columns, "levels": levels, "missing": missing, "threads": 1, "wanted": wanted})
            else:
                nodes[name] = Node(name, data, bind=columns, levels=levels, missing=missing, threads=threads or 1)
        coordinator = Coordinator(program, list(nodes), set=values)
        last = started
        while not coordinator.done:
            for name, request in coordinator.requests().items():
                reply = nodes[name].handle(request)
                trouble = getattr(nodes[name], "trouble", None)
                if trouble:
                    raise (DataError if coordinator.rounds == 0 else RunError)(trouble)
                coordinator.absorb(name, reply)
            now = time.monotonic()
            if watch is not None:
                watch(coordinator.rounds, {}, now - started, now - last)
            last = now
        fit = coordinator.fit()
        fit.seconds = time.monotonic() - started
        return fit
    finally:
        finish()
        for node in nodes.values():
            if isinstance(node, Whole):
                node.engine.close()
