"""NumPy's functions where they have one meaning: np.exp(x) of a tensor is exp(x) in the program. var and std do not: NumPy divides by n, the language by n - 1."""
from __future__ import annotations

from typing import Any, Callable, Dict

import numpy as np

from starfold._trace.tensor import ADD, AND, COMPARE, MULTIPLY, OR, POWER, Tensor, aggregate, call, infix, lift


def _named(function):
    return lambda *args: call(function, *args)


UFUNCS: Dict[str, Callable[..., Tensor]] = {
    **{name: _named(name) for name in ("sqrt", "exp", "expm1", "log", "log1p", "sin", "cos", "tan", "tanh", "square", "reciprocal", "floor", "ceil", "isnan", "sign")},
    "absolute": _named("abs"), "fabs": _named("abs"), "rint": _named("round"), "maximum": _named("max"), "minimum": _named("min"), "mod": _named("mod"),
    "remainder": _named("mod"), "arctan2": _named("atan2"),
    "add": lambda a, b: infix("+", ADD, a, b), "subtract": lambda a, b: infix("-", ADD, a, b), "multiply": lambda a, b: infix("*", MULTIPLY, a, b),
    "divide": lambda a, b: infix("/", MULTIPLY, a, b), "true_divide": lambda a, b: infix("/", MULTIPLY, a, b), "power": lambda a, b: infix("^", POWER, a, b),
    "float_power": lambda a, b: infix("^", POWER, a, b), "matmul": lambda a, b: infix("@", MULTIPLY, a, b), "negative": lambda a: -lift(a), "positive": lambda a: lift(a),
    "equal": lambda a, b: infix("==", COMPARE, a, b), "not_equal": lambda a, b: infix("!=", COMPARE, a, b), "less": lambda a, b: infix("<", COMPARE, a, b),
    "less_equal": lambda a, b: infix("<=", COMPARE, a, b), "greater": lambda a, b: infix(">", COMPARE, a, b), "greater_equal": lambda a, b: infix(">=", COMPARE, a, b),
    "logical_and": lambda a, b: infix("and", AND, a, b), "logical_or": lambda a, b: infix("or", OR, a, b), "logical_not": lambda a: ~lift(a),
}
# Functions of all their arguments in order, and folds along `axis`, which NumPy counts from 0.
FUNCTIONS: Dict[Any, str] = {np.where: "where", np.clip: "clip", np.outer: "outer", np.zeros_like: "zeros_like", np.ones_like: "ones_like", np.round: "round",
                             np.linalg.solve: "solve", np.linalg.det: "det", np.linalg.inv: "inv", np.linalg.cholesky: "cholesky"}
FOLDS: Dict[Any, str] = {np.sum: "sum", np.prod: "prod", np.mean: "mean", np.min: "min", np.max: "max", np.any: "any", np.all: "all", np.median: "median"}


def array_ufunc(self, ufunc, method, *inputs, **options):
    if method != "__call__" or options or ufunc.__name__ not in UFUNCS:
        return NotImplemented
    return UFUNCS[ufunc.__name__](*inputs)


def array_function(self, function, types, args, options):
    if function in FOLDS and len(args) + len(options) <= 2 and set(options) <= {"axis"}:
        axis = args[1] if len(args) == 2 else options.get("axis")
        return aggregate(FOLDS[function], (), axis, args[0])
    if function in FUNCTIONS and not options:
        return call(FUNCTIONS[function], *args)
    return NotImplemented


Tensor.__array_ufunc__, Tensor.__array_function__ = array_ufunc, array_function
