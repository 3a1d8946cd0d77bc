"""What a worker of Spark or Dask does with a part of a client: it lays out its records once, keeps them, and answers with states.

An answer is bytes: one that says what follows (a reply, a trouble in words, or that the records are not here any more), for a reply how
many records the part has and how many lack a value, and the message itself.
"""
from __future__ import annotations

import os
import shutil
import struct
import tempfile
import threading
from collections import OrderedDict
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from starfold import _clients, _engine

TROUBLE, REPLY, LOST = b"\x00", b"\x01", b"\x02"
COUNTS = struct.Struct("<qq")  # records, and those left out
MOST_RUNS = 4  # of which a worker keeps the nodes: what came to an end without a word is let go of

# By run: the nodes of parts that this worker has laid out. One that was started anew has nothing here, and lays out again.
_kept: "OrderedDict[str, Dict[Any, Any]]" = OrderedDict()
_lock = threading.Lock()


def kept_nodes(run: str) -> Dict[Any, Any]:
    with _lock:
        nodes = _kept.setdefault(run, {})
        _kept.move_to_end(run)
        while len(_kept) > MOST_RUNS:
            _kept.popitem(last=False)
        return nodes


def forget(run: str) -> None:
    """Lets go of what was kept for a run."""
    with _lock:
        _kept.pop(run, None)


def node_at(setup: Mapping[str, Any], place: int, table: Callable[[], Any]) -> "_engine.Node":
    """The node of a part on this worker; made when it is first asked for, or after it was lost."""
    nodes = kept_nodes(setup["run"])
    key = (setup["client"], place)
    node = nodes.get(key)
    if node is None:
        given = _clients.given(table(), levels=setup["levels"], wanted=setup["wanted"], table=True)
        node = _engine.Node(setup["client"], given, setup["bind"], setup["levels"], setup["missing"], 1)
        nodes[key] = node
        node.handle(setup["greeting"])
    return node


def answer(setup: Mapping[str, Any], place: int, table: Callable[[], Any], request: bytes, sequence: Optional[int]) -> bytes:
    """What a part says to a request; `sequence` is the number of the request, None for the greeting."""
    try:
        node = node_at(setup, place, table)
    except FileNotFoundError:
        return LOST
    except _clients.DataError as error:
        return TROUBLE + error.message.encode()
    if sequence is None:
        reply = node.handle(setup["greeting"])
    else:
        node.go_on(sequence)
        reply = node.handle(request)
    if node.trouble:
        kept_nodes(setup["run"]).pop((setup["client"], place), None)
        return TROUBLE + node.trouble.encode()
    return REPLY + COUNTS.pack(node.records, node.dropped) + reply


# ---- many answers become one, by the plan's monoids

_mergers: Dict[bytes, Any] = {}


def merger(greeting: bytes) -> "_engine.Merger":
    """What merges answers to the requests after this greeting."""
    with _lock:
        if greeting not in _mergers:
            _mergers.clear()
            _mergers[greeting] = _engine.Merger(greeting)
        return _mergers[greeting]


def merged(greeting: bytes, answers: Sequence[bytes]) -> bytes:
    """One answer of many, in their order; empty when nobody had a record."""
    answers = [bytes(one) for one in answers if one]
    for kind in (TROUBLE, LOST):
        for one in answers:
            if one[:1] == kind:
                return one
    if len(answers) < 2:
        return answers[0] if answers else b""
    counts = [COUNTS.unpack_from(one, 1) for one in answers]
    states = [one[1 + COUNTS.size:] for one in answers]
    own = merger(greeting)
    while len(states) > 1:
        states = [own.merge(*states[i:i + 2]) if i + 1 < len(states) else states[i] for i in range(0, len(states), 2)]
    return REPLY + COUNTS.pack(sum(n for n, _ in counts), sum(n for _, n in counts)) + states[0]


def opened(answered: bytes) -> Tuple[int, int, bytes]:
    """(records, left out, message) of a reply"""
    return *COUNTS.unpack_from(answered, 1), answered[1 + COUNTS.size:]


# ---- records in a file of the worker, which all processes of a machine read where it lies

def folder_of(run: str) -> str:
    """Where this machine's workers keep the records of a run: for nobody but their user."""
    roots = os.environ.get("SPARK_LOCAL_DIRS") or os.environ.get("LOCAL_DIRS") or tempfile.gettempdir()
    return os.path.join(roots.split(",")[0], f"starfold-{run}")


def store(run: str, client: str, place: int, batches: Iterable[Any], plain: bool) -> Tuple[str, int]:
    """Writes the records of a part, as they come; (path, how many they are). With `plain`, numbers become doubles here, once."""
    import pyarrow
    folder = folder_of(run)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, f"{client.encode().hex()}-{place}.arrow")
    records, writer = 0, None
    handle, fresh = tempfile.mkstemp(dir=folder)
    with os.fdopen(handle, "wb") as file:
        for batch in batches:
            batch = doubles(batch) if plain else batch
            if writer is None:
                writer = pyarrow.ipc.new_file(file, batch.schema)
            writer.write_batch(batch.cast(writer.schema) if batch.schema != writer.schema else batch)
            records += batch.num_rows
        if writer is not None:
            writer.close()
    os.replace(fresh, path)  # whoever reads the old one keeps it
    return path, records


def doubles(batch: Any) -> Any:
    """The same numbers as doubles, where every one of their kind is one."""
    import pyarrow
    exact = (pyarrow.types.is_float16, pyarrow.types.is_float32, pyarrow.types.is_int8, pyarrow.types.is_int16, pyarrow.types.is_int32, pyarrow.types.is_uint8,
             pyarrow.types.is_uint16, pyarrow.types.is_uint32)
    columns = [column.cast(pyarrow.float64()) if any(kind(column.type) for kind in exact) else column for column in batch.columns]
    return pyarrow.RecordBatch.from_arrays(columns, names=batch.schema.names)


def read_back(path: str) -> Any:
    """The records of a part, read where they lie. FileNotFoundError when they are not on this machine."""
    import pyarrow
    return pyarrow.ipc.open_file(pyarrow.memory_map(path)).read_all()


def remove(run: str) -> None:
    """Ends what this machine keeps of a run."""
    forget(run)
    shutil.rmtree(folder_of(run), ignore_errors=True)
