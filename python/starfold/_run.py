"""Running programs, and what comes out."""
from __future__ import annotations

import json
import os
import pathlib
import sys
import time
from typing import Any, Dict, List, Mapping, Optional, Union

import numpy as np

from starfold import _clients, _engine
from starfold._errors import UsageError
from starfold._table import Table, frame


class Fit(Mapping):
    """What a run gave: its outputs by name, and how it came to them.

    >>> import numpy as np, starfold as sf
    >>> fit = sf.lib.summary.run({"a": {"x": np.array([[1.0], [3.0]])}})
    >>> fit["mean"], float(fit["n"]), fit.rounds
    (array([2.]), 2.0, 1)
    """

    def __init__(self, program, results: Mapping[str, Any], run: Optional["_engine.Run"] = None, *, rounds: int = 0, clients=(), seconds: float = 0.0):
        self.program = program
        self._run = run
        self.outputs: Dict[str, Any] = {name: value[()] if value.ndim == 0 else value for name, value in results["outputs"].items()}
        self.traces: Dict[str, np.ndarray] = dict(results["traces"])
        self.iterations: List[int] = list(results["iterations"])
        self.rounds: int = run.rounds if run is not None else rounds
        self.seconds: float = run.seconds if run is not None else seconds
        rows = run.clients() if run is not None else list(clients)
        names = ["name", "records", "bytes_sent", "bytes_received", "numbers_sent", "dropped"]
        self.clients = Table(names, [[row.get(name) for name in names] for row in rows])

    def __getitem__(self, name: str):
        return self.outputs[name]

    def __iter__(self):
        return iter(self.outputs)

    def __len__(self) -> int:
        return len(self.outputs)

    @property
    def sizes(self) -> Dict[str, int]:
        """What data and settings made of the sizes."""
        return dict(self._need_run().sizes)

    @property
    def columns(self) -> Dict[str, List[str]]:
        """What the columns of each input are called, where they have names."""
        return {name: list(names) for name, names in self._run.columns.items()} if self._run is not None else {}

    def to_frame(self, name: Optional[str] = None):
        """Outputs with the names of their rows and columns, as the summary prints them: the vectors that belong together side by side.
        `name` asks for the table that this output is in. A pandas DataFrame."""
        groups = self._groups()
        if name is not None:
            groups = [group for group in groups if any(entry["name"] == name for entry in group)]
            if not groups:
                raise KeyError(name)
        if not groups:
            return frame({})
        ranks = [np.ndim(self.outputs[group[0]["name"]]) for group in groups]
        return self._group_frame(groups[ranks.index(1) if 1 in ranks else ranks.index(max(ranks))])

    def to_frames(self) -> List[Any]:
        """All tables of the summary, one DataFrame each."""
        return [self._group_frame(group) for group in self._groups()]

    def _groups(self):
        return self._run.groups() if self._run is not None else [[{"name": name, "rows": [], "columns": []}] for name in self.outputs]

    def _group_frame(self, group):
        values = {entry["name"]: np.asarray(self.outputs[entry["name"]]) for entry in group}
        first = values[group[0]["name"]]
        if first.ndim == 0:
            return frame({"value": [float(value) for value in values.values()]}, index=list(values))
        rows, columns = group[0]["rows"], group[0]["columns"]
        if first.ndim == 1:
            return frame(values, index=labels(rows, len(first)))
        matrix = first.reshape(-1, first.shape[-1])
        table = frame(matrix, index=labels(rows, len(matrix)))
        table.columns = labels(columns, matrix.shape[1])
        return table

    def summary(self) -> str:
        """What the command prints after a run."""
        return self._need_run().text()

    def report(self, path: Union[str, os.PathLike, None] = None) -> str:
        """The report of the run, one page of HTML; written to `path` where one is given."""
        run = self._need_run()
        if path is not None:
            run.write_page(os.fspath(path))
        return run.page()

    def save(self, folder: Union[str, os.PathLike]) -> None:
        """Writes outputs.json, one .npy per output, run.json and report.html into a folder, as `--out` does."""
        self._need_run().save(os.fspath(folder).rstrip("/"))

    def to_json(self) -> str:
        """The object of `starfold run --json`."""
        return self._need_run().json()

    @property
    def privacy(self) -> Optional[Dict[str, Any]]:
        """What a private run promised and spent, round by round, as `--json` says it; None where the run was not private."""
        return json.loads(self.to_json()).get("privacy") if self._run is not None else None

    @property
    def warnings(self) -> List[str]:
        """What the summary warns of: fits that did not converge, results without a value."""
        return json.loads(self.to_json()).get("warnings", []) if self._run is not None else []

    def _need_run(self) -> "_engine.Run":
        if self._run is None:
            raise UsageError("this run went over another engine: it has outputs, traces, rounds and clients, but no report")
        return self._run

    def __repr__(self) -> str:
        if self._run is not None:
            return self._run.text().rstrip("\n")
        return "\n".join(f"{name} = {value}" for name, value in self.outputs.items())

    def _repr_html_(self) -> str:
        from starfold._notebook import fit_html
        return fit_html(self)


def labels(names: List[str], count: int) -> List[Any]:
    return [names[i] if i < len(names) else i + 1 for i in range(count)]


class ProgressLine:
    """One line on a terminal, rewritten after rounds; in a notebook the text of one output; elsewhere a line now and then."""

    def __init__(self):
        self.shell = notebook_shell()
        self.terminal = not self.shell and on_terminal()
        self.handle = None
        self.drawn = False
        self.last = 0.0

    def __call__(self, rounds: int, traces: Mapping[str, float], seconds: float, round_seconds: float) -> None:
        if time.monotonic() - self.last < (0.1 if self.shell or self.terminal else 2):
            return
        self.last = time.monotonic()
        values = "".join(f"  {name} {value:.6g}" for name, value in traces.items())
        self.say(f"round {rounds}{values}  {round_seconds:.3g} s/round  {seconds:.1f} s")

    def say(self, text: str) -> None:
        if self.shell:
            from IPython.display import display
            bundle = {"text/plain": text}
            if self.handle is None:
                self.handle = display(bundle, raw=True, display_id=True)
            else:
                self.handle.update(bundle, raw=True)
        elif self.terminal:
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)
        self.drawn = True

    def clear(self) -> None:
        if not self.drawn:
            return
        if self.shell:
            self.handle.update({"text/plain": ""}, raw=True)
        elif self.terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def on_terminal() -> bool:
    return hasattr(sys.stderr, "isatty") and sys.stderr.isatty()


def notebook_shell() -> bool:
    """Whether this runs in a notebook, where lines cannot be rewritten."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    return type(shell).__name__ == "ZMQInteractiveShell"


def watcher(progress: Any):
    """(what is called after rounds, what is called at the end)"""
    if callable(progress):
        return progress, lambda: None
    if progress is None:
        progress = notebook_shell() or on_terminal()
    if not progress:
        return None, lambda: None
    line = ProgressLine()
    return line, line.clear


def numbers(name: str, value: Any) -> np.ndarray:
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "fiub":
            raise ValueError
        return np.ascontiguousarray(array, dtype=np.float64) if array.ndim else np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"{name}: a number or an array of numbers is needed, not {type(value).__name__}") from None


def settings_of(program, values: Mapping[str, Any]) -> Dict[str, np.ndarray]:
    """Shared inputs and sizes; UsageError for what the program does not have."""
    known = [row["name"] for row in program._compiled.inputs() if not row["federated"]] + list(program._compiled.sizes())
    for name in values:
        if name not in known:
            raise UsageError(f"run() has no option {name}, and the program no shared input or size of that name; it has {', '.join(known) or 'none'}")
    return {name: numbers(name, value) for name, value in values.items()}


def whole_number(name: str, value: Any, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not least <= value <= most:
        raise UsageError(f"{name} is a whole number from {least} to {most}")
    return int(value)


def options_of(*, missing, exact, threads, memory, out, sample, sample_seed, formula) -> Dict[str, Any]:
    options: Dict[str, Any] = {"missing": str(missing)}
    if sample is not None:
        options["sample"] = whole_number("sample", sample, 1, 1_000_000_000)
    if sample_seed is not None:
        options["sample_seed"] = float(whole_number("sample_seed", sample_seed, -(1 << 53), 1 << 53))
    if exact:
        options["exact"] = True
    if threads is not None:
        options["threads"] = whole_number("threads", threads, 1, 1024)
    if memory is not None:
        options["memory"] = memory if isinstance(memory, str) else f"{int(memory)}"
    if out is not None:
        options["out"] = os.fspath(out).rstrip("/")
    if formula is not None:
        options["formula"] = str(formula)
    return options


def run_program(program, clients, *, bind, formula, levels, missing, exact, threads, memory, progress, reference, out, sample, sample_seed, values) -> Fit:
    columns = _clients.bound_columns(bind)
    level_lists = _clients.level_lists(levels)
    settings = settings_of(program, values)
    if any(_clients.is_distributed(data) for data in _clients.named(clients).values()):
        from starfold import _distributed
        return _distributed.run(program, _clients.named(clients), bind=columns, levels=level_lists, missing=missing, exact=exact, threads=threads,
                                memory=memory, reference=reference, out=out, sample=sample, sample_seed=sample_seed, values=settings, progress=progress,
                                formula=formula)
    options = options_of(missing=missing, exact=exact, threads=threads, memory=memory, out=out, sample=sample, sample_seed=sample_seed, formula=formula)
    given = _clients.all_given(program, clients, columns, level_lists, formula)
    watch, finish = watcher(progress)
    try:
        run = _engine.run(program._compiled, given, columns, settings, level_lists, options, bool(reference), watch or False)
    finally:
        finish()
    return Fit(program, run.results(), run)


def run(study: Union[str, os.PathLike], *, reference: bool = False, resume: bool = False, progress: Any = None) -> Fit:
    """Runs a study file, as `starfold run STUDY.toml` does: results are also written where it says."""
    from starfold._program import Program
    path = os.fspath(study)
    if pathlib.PurePath(path).suffix != ".toml":
        raise UsageError(f"{path} is no study (.toml); programs are loaded and run with load(...).run(...)")
    compiled, opened = _engine.open_study(path)
    program = Program(compiled)
    watch, finish = watcher(progress)
    try:
        done = _engine.run_study(compiled, opened, bool(reference), bool(resume), watch or False)
    finally:
        finish()
    return Fit(program, done.results(), done)


