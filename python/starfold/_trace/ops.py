"""Every operation of the language, by its name, and as methods of tensors; derivatives; functions of the library."""
from __future__ import annotations

import re
from typing import Any, Dict, Tuple

from starfold import _engine
from starfold._trace.tensor import AGGREGATIONS, Tensor, aggregate, axes_text, call, current, several

RESULTS = {"eigh": 2, "svd": 3, "qr": 2}


class Ops:
    """Every operation of the language: `ops.softplus(x)`, `ops.sum("*", x)` or `ops.sum(x, axes="*")`, `ops.zeros("p")`. Strings are sizes."""

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in operation_names():
            raise AttributeError(f"the language has no operation {name}; `starfold ops` lists them")
        return lambda *args, **options: operation(name, *args, **options)

    def __dir__(self):
        return sorted(name for name in operation_names() if name.isidentifier())


def operation_names() -> set:
    return {row["name"] for row in _engine.operations()}


def operation(name: str, *args: Any, axes: Any = None, axis: Any = None) -> Any:
    if name in ("grad", "jacobian", "hessian"):
        return call(name, *args, by_name=[1])
    brackets = ""
    if name in AGGREGATIONS or name in ("concat", "softmax", "log_softmax", "cumsum", "permute"):
        chosen = list(axes) if isinstance(axes, (tuple, list)) else [axes] if axes is not None else []
        brackets = axes_text(chosen, axis)
    if name == "concat" and len(args) == 1 and isinstance(args[0], (list, tuple)):
        args = tuple(args[0])
    result = call(name, *args, brackets=brackets)
    return several(result, RESULTS[name]) if name in RESULTS else result


ops = Ops()


def _add_methods():
    def aggregation(name):
        def method(self, *axes, axis=None):
            return aggregate(name, axes, axis, self)
        method.__name__, method.__doc__ = name, f"`{name}[axes](e)`: axes as in the language (\"*\", 1, 2, ...), or axis=0, 1, ... as in NumPy."
        return method
    for name in AGGREGATIONS:
        if name not in ("quantile", "cov"):
            setattr(Tensor, name, aggregation(name))
    Tensor.quantile = lambda self, q, *axes, axis=None: aggregate("quantile", axes, axis, self, q)
    Tensor.cov = lambda self, *axes, axis=None: aggregate("cov", axes or ("*", ), axis, self)
    Tensor.reshape = lambda self, *sizes: ops.reshape(self, *sizes)
    Tensor.permute = lambda self, *axes: ops.permute(self, axes=axes)


_add_methods()


# ---- derivatives

def grad(value: Any, variable: Tensor) -> Tensor:
    """The derivative of a number, or of one per record, in a shared value."""
    return operation("grad", value, variable)


def jacobian(value: Any, variable: Tensor) -> Tensor:
    """The derivatives of every entry of a value in a shared value, whose axes come last."""
    return operation("jacobian", value, variable)


def hessian(value: Any, variable: Tensor) -> Tensor:
    """The second derivatives of a number in a shared value."""
    return operation("hessian", value, variable)


def stop_gradient(value: Any) -> Tensor:
    """The same value, which derivatives take as fixed."""
    return operation("stop_gradient", value)


# ---- functions of the library

def library_function(module: str, function: str):
    """A function of a module of the library, for use under @starfold.program."""
    text = _engine.library().get(module, "")
    if function not in functions_in(text):
        raise AttributeError(f"the module {module} has no function {function}; it has {', '.join(functions_in(text))}")
    count = result_count(text, function)

    def called(*args: Any) -> Any:
        current().imports.add(module)
        result = call(f"{module}.{function}", *args)
        return several(result, count) if count > 1 else result
    called.__name__ = called.__qualname__ = f"{module}.{function}"
    return called


def functions_in(text: str) -> Dict[str, str]:
    """The functions of a module, each with what stands after its parameters."""
    plain = re.sub(r"#.*", "", text)
    parts = re.split(r"^fn (\w+)\(", plain, flags=re.MULTILINE)
    found = {}
    for name, rest in zip(parts[1::2], parts[2::2]):
        depth, at = 1, 0
        while depth:
            depth += (rest[at] in "([") - (rest[at] in ")]")
            at += 1
        found[name] = re.sub(r"^\s*(->\s*\[[^\]]*\])?", "", rest[at:]).strip()
    return found


def result_count(text: str, function: str) -> int:
    """How many results a function of a module has: those of the tuple at its end, or of the function that it ends in."""
    functions = functions_in(text)
    body = functions[function]
    last = body[1:].strip() if body.startswith("=") else body.rstrip("}").rstrip()
    if not last.endswith(")"):
        return 1
    depth, commas = 0, 0
    for i in range(len(last) - 1, -1, -1):
        depth += (last[i] in ")]") - (last[i] in "([")
        commas += depth == 1 and last[i] == ","
        if depth == 0:
            before = re.search(r"(\w*)$", last[:i])[1]
            line = last[:i].rsplit("\n", 1)[-1].strip()
            if not line:
                return commas + 1
            return result_count(text, before) if line == before and before in functions else 1
    return 1
