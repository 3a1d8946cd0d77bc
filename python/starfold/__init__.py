"""Federated statistics and learning: write as if all records were in one place, see what leaves each client.

>>> import numpy as np
>>> import starfold as sf
>>> program = sf.compile("input x : [*]\\noutput mean = mean[*](x)\\n")
>>> program.types["x"]
'[*]'
>>> fit = program.run({"athens": {"x": np.array([1.0, 2.0])}, "bern": {"x": np.array([6.0])}})
>>> float(fit["mean"])
3.0

`load`, `compile` and `lib` give programs; `Program.run` runs one over clients' tables; `run` runs a study file as the command does;
`check` and `format` are what `starfold check` and `starfold fmt` do; `program` makes a program of a Python function; `Coordinator` and
`Node` are the two sides of a run for who carries messages himself.
"""
from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starfold._errors import DataError, Diagnostic, Error, PolicyError, ProgramError, RunError, UsageError
    from starfold._machines import Coordinator, Node, NodeProcess
    from starfold._program import Library, Program, check, compile, format, lib, load
    from starfold._run import Fit, run
    from starfold._table import Table
    from starfold._trace import (Size, Tensor, fed, grad, hessian, jacobian, keep, let, ops, output, program, repeat, shared, state, stop_gradient, trace)

__version__ = "0.1.0"

# Where each name is; loaded when it is first asked for, so that starfold.flower needs neither NumPy nor the engine.
_HOMES = {
    "_errors": ("Error", "ProgramError", "DataError", "PolicyError", "RunError", "UsageError", "Diagnostic"),
    "_program": ("Program", "Library", "load", "compile", "check", "format", "lib"),
    "_run": ("Fit", "run"),
    "_table": ("Table", ),
    "_machines": ("Coordinator", "Node", "NodeProcess"),
    "_trace": ("program", "fed", "shared", "Size", "Tensor", "ops", "let", "state", "repeat", "trace", "output", "keep", "grad", "jacobian", "hessian", "stop_gradient"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
__all__ = sorted(_HOME_OF)


def _load(name: str):
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'starfold' has no attribute {name!r}")
    value = getattr(_import_module(f"starfold.{home}"), name)
    globals()[name] = value
    return value


if not TYPE_CHECKING:  # who checks types sees the names above, and no others
    __getattr__ = _load


def __dir__():
    return sorted([*globals(), *__all__])


def load_ipython_extension(ipython):
    """`%load_ext starfold` gives notebooks the cell magic %%starfold."""
    from starfold._notebook import register
    register(ipython)
