"""Clients that outgrew one machine: Spark and Dask DataFrames.

Each partition of such a client is a node of its own where it lies: its records are laid out once and stay there between rounds. In
every round the partitions encode, and what they encode merges by the plan's monoids in a tree; only the state of the whole client
reaches the coordinator. The engines compute again what they lose: a partition that comes back is told the program again, and answers
the same.
"""
from __future__ import annotations

import time
import uuid
from typing import Any, Dict, List, Mapping, Optional, Set

from starfold import _clients, _engine, _parts
from starfold._errors import DataError, RunError, UsageError
from starfold._run import Fit, options_of, watcher

FEW = 16  # answers that are merged at once
PATIENCE = 4  # times in a row that partitions are laid out again for one question


class Spark:
    """A Spark DataFrame as a client. Its partitions are written to files on the workers' machines, once: a worker is one of many processes there, and
    any of them may be asked next. What Spark keeps itself is where they are; when it loses that, or a file is gone, it computes them again."""

    def __init__(self, frame: Any):
        self.frame = frame
        self.places: Optional[Any] = None

    def schema(self) -> Any:
        return self.frame.limit(0).toArrow()

    def ask(self, setup: Dict[str, Any], request: bytes, sequence: Optional[int]) -> bytes:
        for _ in range(PATIENCE):
            if self.places is None:
                self.lay_out(setup)
            reply = self.ask_once(setup, request, sequence)
            if reply[:1] != _parts.LOST:
                return reply
            self.places.unpersist()
            self.places = None
        raise RunError("the partitions of a Spark DataFrame get lost faster than they can be laid out")

    def lay_out(self, setup: Dict[str, Any]) -> None:
        run, client, plain = setup["run"], setup["client"], setup["plain"]

        def stored(batches):
            import pyarrow
            from pyspark import TaskContext

            from starfold import _parts
            place = TaskContext.get().partitionId()
            path, records = _parts.store(run, client, place, batches, plain)
            if records:
                yield pyarrow.RecordBatch.from_pydict({"place": pyarrow.array([place], pyarrow.int64()), "path": pyarrow.array([path], pyarrow.string())})

        frame = self.frame
        if setup["wanted"] is not None:
            frame = frame.select(*[f"`{column.replace('`', '``')}`" for column in frame.columns if column in setup["wanted"]])
        self.places = frame.mapInArrow(stored, "place long, path string").persist()

    def ask_once(self, setup: Dict[str, Any], request: bytes, sequence: Optional[int]) -> bytes:
        def answers(batches):
            import pyarrow

            from starfold import _parts
            for row in [row for batch in batches for row in batch.to_pylist()]:
                reply = _parts.answer(setup, row["place"], lambda: _parts.read_back(row["path"]), request, sequence)
                yield pyarrow.RecordBatch.from_pydict({"place": pyarrow.array([row["place"]], pyarrow.int64()), "reply": pyarrow.array([reply], pyarrow.binary())})

        def joined(table):
            import pyarrow

            from starfold import _parts
            rows = sorted((row["place"], row["reply"]) for row in table.to_pylist())
            reply = _parts.merged(setup["greeting"], [reply for _, reply in rows])
            return pyarrow.Table.from_pydict({"place": pyarrow.array([rows[0][0]], pyarrow.int64()), "reply": pyarrow.array([reply], pyarrow.binary())})

        rows = self.places.mapInArrow(answers, "place long, reply binary")
        width, group = self.partitions(), FEW
        while width > FEW:  # in a tree, where the workers are
            rows = rows.groupBy((rows["place"] / group).cast("long").alias("group")).applyInArrow(joined, "place long, reply binary")
            width, group = -(-width // FEW), group * FEW
        found = sorted((row["place"], bytes(row["reply"])) for row in rows.collect())
        return _parts.merged(setup["greeting"], [reply for _, reply in found])

    def partitions(self) -> int:
        return self.places.rdd.getNumPartitions() if hasattr(self.places, "rdd") else FEW

    def close(self, setup: Dict[str, Any]) -> None:
        """Best effort: the machines forget the records."""
        if self.places is None:
            return
        run = setup["run"]

        def removed(batches):
            from starfold import _parts
            for _ in batches:
                pass
            _parts.remove(run)
            yield from ()
        try:
            self.places.mapInArrow(removed, "place long").collect()
        except Exception:  # the session may be gone, and with it what it kept
            pass
        self.places.unpersist()


class Dask:
    """A Dask DataFrame as a client. Its scheduler brings questions to where partitions are; what is laid out refers to them, and copies nothing."""

    def __init__(self, frame: Any):
        self.frame = frame
        self.parts: Optional[List[Any]] = None

    def schema(self) -> Any:
        return self.frame._meta

    def ask(self, setup: Dict[str, Any], request: bytes, sequence: Optional[int]) -> bytes:
        import dask
        if self.parts is None:
            frame = self.frame if setup["wanted"] is None else self.frame[[column for column in self.frame.columns if str(column) in setup["wanted"]]]
            self.parts = frame.persist().to_delayed()
        one, join = dask.delayed(answer_of, pure=False), dask.delayed(_parts.merged, pure=False)
        replies = [one(setup, place, part, request, sequence) for place, part in enumerate(self.parts)]
        while len(replies) > FEW:  # in a tree, where the workers are
            replies = [join(setup["greeting"], replies[i:i + FEW]) for i in range(0, len(replies), FEW)]
        return _parts.merged(setup["greeting"], list(dask.compute(*replies)))

    def close(self, setup: Dict[str, Any]) -> None:
        run = setup["run"]
        try:
            from distributed import get_client
            get_client().run(_parts.forget, run)
        except (ImportError, ValueError):  # no cluster: the workers were threads of this process
            pass
        _parts.forget(run)


def answer_of(setup: Mapping[str, Any], place: int, frame: Any, request: bytes, sequence: Optional[int]) -> bytes:
    return _parts.answer(setup, place, lambda: frame, request, sequence) if len(frame) else b""


class Whole:
    """A client made of partitions, to the coordinator a node like others."""

    def __init__(self, engine: Any, schema: Any, setup: Dict[str, Any]):
        self.engine, self.schema, self.setup = engine, schema, setup
        self.spare: Optional[Any] = None
        self.records = self.dropped = 0

    def handle(self, request: bytes, sequence: int) -> bytes:
        greeting = "greeting" not in self.setup
        self.setup.setdefault("greeting", request)
        answered = self.engine.ask(self.setup, request, None if greeting else sequence)
        if not answered:  # no partition has a record: a node without any stands in
            if self.spare is None:
                self.spare = _engine.Node(self.setup["client"], self.schema, self.setup["bind"], self.setup["levels"], self.setup["missing"], 1)
            reply = self.spare.handle(request)
            answered = _parts.TROUBLE + self.spare.trouble.encode() if self.spare.trouble else _parts.REPLY + _parts.COUNTS.pack(0, 0) + reply
        if answered[:1] == _parts.TROUBLE:
            words = answered[1:].decode(errors="replace")
            raise (DataError if greeting else RunError)(words)
        self.records, self.dropped, message = _parts.opened(answered)
        return message

    def close(self) -> None:
        self.engine.close(self.setup)


class Here:
    """A client whose data lies in this process, or in a file."""

    def __init__(self, name: str, given: Any, setup: Mapping[str, Any], threads: int):
        self.node = _engine.Node(name, given, setup["bind"], setup["levels"], setup["missing"], threads)
        self.started = False

    @property
    def records(self) -> int:
        return self.node.records

    @property
    def dropped(self) -> int:
        return self.node.dropped

    def handle(self, request: bytes, sequence: int) -> bytes:
        reply = self.node.handle(request)
        if self.node.trouble:
            raise (RunError if self.started else DataError)(self.node.trouble)
        self.started = True
        return reply

    def close(self) -> None:
        pass


def run(program, clients: Mapping[str, Any], *, bind: Dict[str, List[str]], levels: Dict[str, List[str]], missing: str, exact: bool, threads: Optional[int],
        memory: Any, reference: bool, out: Any, sample: Optional[int], sample_seed: Optional[int], values, progress: Any, formula: Optional[str]) -> Fit:
    """A run of which some clients are Spark or Dask DataFrames."""
    if reference:
        raise UsageError("reference gathers all records: it is not for Spark and Dask DataFrames")
    if memory is not None:
        raise UsageError("memory is not for Spark and Dask DataFrames: their engines decide what is kept")
    identity = uuid.uuid4().hex
    common = {"run": identity, "bind": bind, "levels": levels, "missing": str(missing)}
    engines = {name: Spark(data) if _clients.is_spark(data) else Dask(data) for name, data in clients.items() if _clients.is_distributed(data)}
    given = dict(_clients.all_given(program, {name: engines[name].schema() if name in engines else data for name, data in clients.items()}, bind, levels, formula))
    options = options_of(missing=missing, exact=exact, threads=threads, memory=None, out=None, sample=sample, sample_seed=sample_seed, formula=formula)
    machine = _engine.CarriedRun(program._compiled, list(given.items()), bind, values, levels, options, identity)
    wanted: Set[str] = set(machine.columns)
    nodes = [Whole(engines[name], data, {**common, "client": name, "wanted": wanted, "plain": formula is None and not levels}) if name in engines
             else Here(name, data, common, threads or 1) for name, data in given.items()]
    watch, finish = watcher(progress)
    try:
        seconds = carry(machine, nodes, watch)
    finally:
        finish()
        for node in nodes:
            node.close()
    for place, node in enumerate(nodes):
        machine.tell_records(place, node.records, node.dropped)
    done = machine.finish(seconds)
    if out is not None:
        done.save(str(out).rstrip("/"))
    return Fit(program, done.results(), done)


def carry(machine: "_engine.CarriedRun", nodes: List[Any], watch: Any) -> float:
    """Asks until all is done; the seconds that it took."""
    started = last = time.monotonic()
    rounds = 0
    while not machine.done:
        for place, node in enumerate(nodes):
            if machine.awaits(place):
                machine.absorb(place, node.handle(machine.request(place), machine.rounds))
        now = time.monotonic()
        if watch is not None and machine.rounds > rounds:
            rounds = machine.rounds
            watch(rounds, machine.traces(), now - started, now - last)
        last = now
    return time.monotonic() - started
