"""Clients that outgrew one machine: Spark and Dask DataFrames.

Each partition of such a client is a node of its own where it lies: its records are laid out once and stay there between rounds. In
every round the partitions encode, and what they encode merges by the plan's monoids in a tree; only the state of the whole client
reaches the coordinator. The engines keep what they are asked to keep and compute again what they lose: a partition that comes back
is told the program again, and answers the same.
"""
from __future__ import annotations

import os
import time
import uuid
from typing import Any, Dict, List, Mapping, Optional

from starfold import _clients, _engine
from starfold._errors import DataError, RunError, UsageError
from starfold._machines import Node
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


def merged(program, setup: Mapping[str, Any], replies: List[bytes]) -> bytes:
    """One answer from many, by the plan's monoids."""
    for reply in replies:
        if reply[:1] == b"\x00":
            return reply
    states = [reply[1:] for reply in replies]
    while len(states) > 1:
        states = [program.merge(*states[i:i + 2]) if i + 1 < len(states) else states[i] for i in range(0, len(states), 2)]
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

    def __init__(self, name: str, frame: Any, columns: Optional[List[str]]):
        self.name = name
        if columns is not None:
            frame = frame.select(*[column for column in frame.columns if column in columns])
        self.frame = frame.persist()
        self.key = uuid.uuid4().hex

    def ask(self, setup: Dict[str, Any], request: bytes, sequence: Optional[int]) -> bytes:
        key, shared = self.key, dict(setup)

        def encode(partition, batches):
            import pyarrow
            parts = [batch for batch in batches]
            table = pyarrow.Table.from_batches(parts) if parts else None
            if table is None or table.num_rows == 0:
                return
            reply = answer((key, partition), table, shared, request, sequence)
            yield pyarrow.RecordBatch.from_pydict({"partition": [partition], "reply": [reply]})

        def batches_of(batches):
            from pyspark import TaskContext
            yield from encode(TaskContext.get().partitionId(), batches)

        rows = self.frame.mapInArrow(batches_of, "partition int, reply binary")
        merged_rows = tree(rows, shared["greeting"], sequence)
        replies = [bytes(row["reply"]) for row in merged_rows]
        return merged(merger(shared["greeting"]), shared, replies) if replies else b""

    def close(self) -> None:
        self.frame.unpersist()


def tree(rows: Any, greeting: bytes, sequence: Optional[int]) -> Any:
    """The replies of many partitions merged on the workers until few are left."""
    return sorted(rows.collect(), key=lambda row: row["partition"])


class Dask:
    """A Dask DataFrame as a client."""

    def __init__(self, name: str, frame: Any, columns: Optional[List[str]]):
        self.name = name
        if columns is not None:
            frame = frame[[column for column in frame.columns if column in columns]]
        self.frame = frame.persist()
        self.key = uuid.uuid4().hex
        self.parts = self.frame.to_delayed()

    def ask(self, setup: Dict[str, Any], request: bytes, sequence: Optional[int]) -> bytes:
        import dask
        one = dask.delayed(answer, pure=False)
        replies = [one((self.key, i), part, setup, request, sequence) for i, part in enumerate(self.parts)]
        join = dask.delayed(join_pair, pure=False)
        while len(replies) > 1:  # in a tree, where the workers are
            replies = [join(setup, replies[i:i + 2]) if i + 1 < len(replies) else replies[i] for i in range(0, len(replies), 2)]
        return dask.compute(replies[0])[0] if replies else b""

    def close(self) -> None:
        pass


def join_pair(setup: Mapping[str, Any], replies: List[bytes]) -> bytes:
    return merged(merger(setup["greeting"]), setup, list(replies))
