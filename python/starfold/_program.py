"""Programs: loaded, compiled, checked, laid out."""
from __future__ import annotations

import json
import os
import pathlib
from typing import Any, Dict, Iterator, List, Mapping, Optional, Union

from starfold import _engine
from starfold._errors import Diagnostic, ProgramError
from starfold._table import Table


class Program:
    """A program without errors. Made by `load`, `compile`, `lib` and `@program`.

    >>> import starfold as sf
    >>> program = sf.compile("input x : [*, p]\\noutput total = sum[*](x)\\n")
    >>> program.types
    {'x': '[*, p]', 'total': '[p]'}
    >>> program.exposure
    round  value      shape  merge  line
        1  sum[*](x)  [p]    sum       2
    """

    def __init__(self, compiled: "_engine.Program", where: str = ""):
        checked = json.loads(compiled.check())
        self._compiled = compiled
        self._checked = checked
        self.diagnostics: List[Diagnostic] = [Diagnostic(**{k: d[k] for k in Diagnostic.__dataclass_fields__}) for d in checked["diagnostics"]]
        if not compiled.ok:
            errors = [d for d in self.diagnostics if d.severity == "error"]
            raise ProgramError(errors[0].message if errors else "the program has errors", self.diagnostics, compiled.rendered(False),
                               compiled.rendered(True), where)

    @property
    def name(self) -> str:
        return self._compiled.name

    @property
    def source(self) -> str:
        """The text that a data owner reviews."""
        return self._compiled.text

    @property
    def hash(self) -> str:
        """What identifies the plan: all parts of a federation must arrive at the same."""
        return self._compiled.hash

    @property
    def types(self) -> Dict[str, str]:
        """The type of every name."""
        types: Dict[str, str] = {}
        for row in self._checked["types"]:
            types.setdefault(row["name"], row["type"])
        return types

    @property
    def inputs(self) -> Table:
        return Table(["name", "type", "federated", "default"], [[i[k] for k in ("name", "type", "federated", "default")] for i in self._compiled.inputs()])

    @property
    def rounds(self) -> List[Dict[str, Any]]:
        """The rounds as `starfold check --json` has them."""
        return self._checked["rounds"]

    @property
    def exposure(self) -> Table:
        """What leaves each client: round, value, shape, merge, line."""
        rows = []
        for number, one in enumerate(self._checked["rounds"], 1):
            rows += [[number, m["expr"], f"[{', '.join(m['shape'])}]", m["merge"], m["line"]] for m in one["merges"]]
        return Table(["round", "value", "shape", "merge", "line"], rows, "What leaves each client")

    def explain(self) -> str:
        """The text of `starfold explain`: encoders, merges and decoders of each round."""
        return self._compiled.explain()

    def html(self, path: Union[str, os.PathLike, None] = None) -> str:
        """The page of `starfold explain --html`; written to `path` where one is given."""
        page = self._compiled.page(pathlib.PurePath(self.name).name or "program")
        if path is not None:
            pathlib.Path(path).write_text(page, encoding="utf-8")
        return page

    def run(self, clients: Any = None, *, bind: Optional[Mapping[str, Any]] = None, formula: Optional[str] = None,
            levels: Optional[Mapping[str, Any]] = None, missing: str = "error", exact: bool = False, threads: Optional[int] = None,
            memory: Optional[str] = None, progress: Any = None, reference: bool = False, out: Union[str, os.PathLike, None] = None,
            sample: Optional[int] = None, sample_seed: Optional[int] = None, set: Optional[Mapping[str, Any]] = None, **inputs: Any):
        """Runs the program over clients, and returns what it gave: a `Fit`.

        clients   a dict of tables by the names of clients, or a list of them: pandas, Polars, pyarrow, DuckDB relations, Spark or Dask
                  DataFrames, paths of files, {"query": "select ..."}, or dicts of NumPy arrays named like the inputs
        bind      the columns of inputs: {"x": ["age", "bmi"], "y": "dx"}; "*" for every column not bound elsewhere
        formula   instead: "dx ~ age * sex", in the notation of R
        levels    of text columns: {"sex": ["f", "m"]}; categorical columns bring their own
        missing   what becomes of records with a missing value: "error", "drop", or "nan"
        threads, memory, progress, reference, out, sample, sample_seed   as for the command
        exact     True: the same bits for every split of the records
        Other keywords are shared inputs and sizes; one whose name is taken here goes into `set`.

        >>> import numpy as np, starfold as sf
        >>> x = np.arange(6.0).reshape(3, 2)
        >>> fit = sf.compile("input x : [*, p]\\noutput total = sum[*](x)\\n").run({"a": {"x": x}, "b": {"x": x}})
        >>> fit["total"]
        array([12., 18.])
        """
        from starfold import _run
        return _run.run_program(self, clients, bind=bind, formula=formula, levels=levels, missing=missing, exact=exact, threads=threads,
                                memory=memory, progress=progress, reference=reference, out=out, sample=sample, sample_seed=sample_seed,
                                values={**(set or {}), **inputs})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and (self.source, self.hash) == (other.source, other.hash)

    def __hash__(self) -> int:
        return hash((self.source, self.hash))

    def __reduce__(self):
        return compile, (self.source, self.name)

    def __repr__(self) -> str:
        return f"<starfold program {self.name}: {len(self.rounds)} round{'s' if len(self.rounds) != 1 else ''}>"

    def _repr_html_(self) -> str:
        from starfold._notebook import program_html
        return program_html(self)


def load(path: Union[str, os.PathLike], *, base: bool = False) -> Program:
    """The program in a file, or a ready-made one by its name. ProgramError when it has mistakes.

    >>> import starfold as sf
    >>> sf.load("logistic").types["beta"]
    '[p + 1]'
    """
    return Program(_engine.open(os.fspath(path), base))


def compile(text: str, name: str = "program", *, base: bool = False, folder: Union[str, os.PathLike] = ".") -> Program:
    """A program from its text; modules are looked for in `folder`. ProgramError when it has mistakes.

    >>> import starfold as sf
    >>> sf.compile("input x : [*]\\noutput x\\n")
    Traceback (most recent call last):
    ...
    starfold._errors.ProgramError:
    error[E0301]: a federated value cannot be an output
      --> program:2:8
       |
     2 | output x
       |        ^ [*] is split across clients by its record axis
       = help: fold the record axis first, for example: output total = sum[*](x)
    """
    return Program(_engine.compile(text, name, os.fspath(folder), base))


def check(text: str, name: str = "program", *, base: bool = False, folder: Union[str, os.PathLike] = ".") -> List[Diagnostic]:
    """Everything that the checker says of a text; an empty list when it is a program and nothing is odd.

    >>> import starfold as sf
    >>> [d.code for d in sf.check("input x : [*]\\noutput x\\n")]
    ['E0301']
    """
    compiled = _engine.compile(text, name, os.fspath(folder), base)
    return [Diagnostic(**{k: d[k] for k in Diagnostic.__dataclass_fields__}) for d in json.loads(compiled.check())["diagnostics"]]


def format(text: str, name: str = "program") -> str:
    """The text in its one layout. ProgramError when it is no program.

    >>> import starfold as sf
    >>> sf.format("input x:[*]\\noutput s=sum[*]( x )")
    'input x : [*]\\noutput s = sum[*](x)\\n'
    """
    laid_out, trouble = _engine.format(text, name)
    if trouble:
        raise ProgramError("this is no program", check(text, name), trouble)
    return laid_out


class Module:
    """A module of the library. Its functions are called inside `@starfold.program`; `source` is its text."""

    def __init__(self, name: str, source: str):
        self._name, self.source = name, source

    def __getattr__(self, function: str):
        if function.startswith("_"):
            raise AttributeError(function)
        from starfold._trace import library_function
        return library_function(self._name, function)

    def __repr__(self) -> str:
        return f"<starfold module {self._name}>"


class Library(Mapping):
    """What comes with Starfold: `lib.logistic` is a program, `lib.stats` a module.

    >>> import starfold as sf
    >>> "logistic" in sf.lib, sf.lib.summary.types["n"]
    (True, '[]')
    """

    def _texts(self) -> Dict[str, str]:
        return {name.removeprefix("programs/"): text for name, text in _engine.library().items() if name.startswith("programs/")}

    def __getitem__(self, name: str) -> Program:
        text = self._texts()[name]
        return compile(text, f"lib/programs/{name}.fold")

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._texts():
            return self[name]
        modules = {n: t for n, t in _engine.library().items() if not n.startswith("programs/")}
        if name in modules:
            return Module(name, modules[name])
        raise AttributeError(f"the library has no program and no module named {name}; it has {', '.join([*self._texts(), *modules])}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts())

    def __len__(self) -> int:
        return len(self._texts())

    def __dir__(self):
        return [*super().__dir__(), *(name.removeprefix("programs/") for name in _engine.library())]

    def __repr__(self) -> str:
        return f"<starfold library: {', '.join(self)}>"


lib = Library()
