"""Tensors that write down what is done to them, and the lines of Python where it is done."""
from __future__ import annotations

import contextvars
import itertools
import linecache
import math
import os
import re
import sys
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

from starfold._errors import ProgramError

AGGREGATIONS = ("sum", "prod", "min", "max", "count", "mean", "var", "std", "logsumexp", "any", "all", "norm", "argmax", "median", "quantile", "cov")

# How tightly what was written holds together, as the grammar has it.
OR, AND, NOT, COMPARE, ADD, MULTIPLY, MINUS, POWER, POSTFIX, ATOM = range(10)

tracing: contextvars.ContextVar[Optional["Tracer"]] = contextvars.ContextVar("starfold_tracer", default=None)
_OWN = os.path.dirname(__file__) + os.sep


class Place:
    """A line of Python."""

    def __init__(self, file: str, line: int, function: str):
        self.file, self.line, self.function = file, line, function

    def __str__(self) -> str:
        text = linecache.getline(self.file, self.line).strip()
        return f'  File "{self.file}", line {self.line}, in {self.function}' + (f"\n    {text}" if text else "")


def here() -> Place:
    """The line outside of this folder that is being run."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    return Place(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


class Block:
    """The statements of a program or of a loop."""

    def __init__(self, parent: Optional["Block"], seq: int):
        self.parent, self.seq = parent, seq
        self.items: List[Tuple[int, Any]] = []
        self.updates: List[int] = []

    def inside(self, other: "Block") -> bool:
        block: Optional[Block] = self
        while block is not None:
            if block is other:
                return True
            block = block.parent
        return False


class Tracer:
    def __init__(self):
        self.numbers = itertools.count()
        self.block = self.body = Block(None, -1)
        self.imports: set = set()

    def next(self) -> int:
        return next(self.numbers)


class Tensor:
    """A value of the program that is being written. Operators, NumPy's functions and methods such as `x.mean("*")` write expressions."""

    __slots__ = ("write", "level", "args", "place", "seq", "block", "name", "kind", "group", "by_name")
    __array_priority__ = 1000

    def __init__(self, write: Callable[..., str], level: int, args: Sequence["Tensor"] = (), kind: str = "value", name: Optional[str] = None,
                 by_name: Sequence[int] = ()):
        tracer = current()
        self.write, self.level, self.args = write, level, tuple(args)
        self.place, self.seq, self.block = here(), tracer.next(), tracer.block
        self.name, self.kind, self.group = name, kind, None
        self.by_name = tuple(by_name)
        if kind == "value":
            self.block.items.append((self.seq, self))

    # -- operators
    def __add__(self, other): return infix("+", ADD, self, other)
    def __radd__(self, other): return infix("+", ADD, other, self)
    def __sub__(self, other): return infix("-", ADD, self, other)
    def __rsub__(self, other): return infix("-", ADD, other, self)
    def __mul__(self, other): return infix("*", MULTIPLY, self, other)
    def __rmul__(self, other): return infix("*", MULTIPLY, other, self)
    def __truediv__(self, other): return infix("/", MULTIPLY, self, other)
    def __rtruediv__(self, other): return infix("/", MULTIPLY, other, self)
    def __matmul__(self, other): return infix("@", MULTIPLY, self, other)
    def __rmatmul__(self, other): return infix("@", MULTIPLY, other, self)
    def __mod__(self, other): return call("mod", self, other)
    def __rmod__(self, other): return call("mod", other, self)
    def __pow__(self, other): return infix("^", POWER, self, other)
    def __rpow__(self, other): return infix("^", POWER, other, self)
    def __and__(self, other): return infix("and", AND, self, other)
    def __rand__(self, other): return infix("and", AND, other, self)
    def __or__(self, other): return infix("or", OR, self, other)
    def __ror__(self, other): return infix("or", OR, other, self)
    def __invert__(self): return Tensor(lambda a: f"not {wrap(a, NOT)}", NOT, [self])
    def __neg__(self): return Tensor(lambda a: f"-{wrap(a, MINUS)}", MINUS, [self])
    def __pos__(self): return self
    def __abs__(self): return call("abs", self)
    def __round__(self): return call("round", self)
    def __floor__(self): return call("floor", self)
    def __ceil__(self): return call("ceil", self)
    def __eq__(self, other): return infix("==", COMPARE, self, other)
    def __ne__(self, other): return infix("!=", COMPARE, self, other)
    def __lt__(self, other): return infix("<", COMPARE, self, other)
    def __le__(self, other): return infix("<=", COMPARE, self, other)
    def __gt__(self, other): return infix(">", COMPARE, self, other)
    def __ge__(self, other): return infix(">=", COMPARE, self, other)
    __hash__ = object.__hash__

    def __ilshift__(self, other):
        """`beta <<= e` updates a state, as `beta <- e` does in the language."""
        return self.update(other)

    def update(self, value):
        """Gives a state its next value."""
        if self.kind != "state":
            raise refusal("only a state can be updated: make one with starfold.state(...)")
        tracer = current()
        value = lift(value)
        seq = tracer.next()
        tracer.block.items.append((seq, ("update", self, value, here())))
        block: Optional[Block] = tracer.block
        while block is not None:
            block.updates.append(seq)
            block = block.parent
        return self

    # -- what Python would decide at once cannot be known yet
    def __bool__(self):
        raise refusal("the truth of a tensor is not known while a program is written: use starfold.ops.where, or `until` of a loop")

    def __float__(self):
        raise refusal("the value of a tensor is not known while a program is written")

    __int__ = __index__ = __len__ = __float__

    def __iter__(self):
        if self.group is not None:
            return iter(self.group)
        raise refusal("a tensor cannot be iterated over: its sizes are not known while a program is written")

    # -- indices are Python's: from 0, the end excluded
    def __getitem__(self, index):
        if isinstance(index, Tensor):
            return Tensor(lambda t, i: f"{wrap(t, POSTFIX)}[{i[0]}]", POSTFIX, [self, index])
        parts = [slice_text(part) for part in (index if isinstance(index, tuple) else (index, ))]
        return Tensor(lambda a: f"{wrap(a, POSTFIX)}[{', '.join(parts)}]", POSTFIX, [self])

    @property
    def T(self):
        return Tensor(lambda a: f"{wrap(a, POSTFIX)}'", POSTFIX, [self])

    def __repr__(self) -> str:
        return f"<starfold tensor {self.name or ''}>".replace(" >", ">")


def refusal(message: str) -> ProgramError:
    return ProgramError(message, where=str(here()))


def current() -> "Tracer":
    tracer = tracing.get()
    if tracer is None:
        raise refusal("this is for functions under @starfold.program")
    return tracer


def wrap(written: Tuple[str, int], least: int) -> str:
    text, level = written
    return text if level >= least else f"({text})"


def number_text(value: float) -> Tuple[str, int]:
    if math.isnan(value):
        return "nan", ATOM
    if math.isinf(value):
        return ("inf", ATOM) if value > 0 else ("-inf", MINUS)
    text = str(int(value)) if value == int(value) and abs(value) < 1e15 else re.sub(r"e([+-])0*(\d)", lambda m: f"e{'-' if m[1] == '-' else ''}{m[2]}", repr(float(value)))
    return text, MINUS if value < 0 or text.startswith("-") else ATOM


def literal(value: Any) -> Tensor:
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise refusal(f"{type(value).__name__} is no number")
    def text(part):
        return number_text(float(part))[0] if part.ndim == 0 else f"[{', '.join(text(row) for row in part)}]"
    if array.ndim > 2:
        raise refusal("an array in a program has at most two axes: give it as a shared input")
    level = number_text(float(array))[1] if array.ndim == 0 else ATOM
    return Tensor(lambda: text(array), level, kind="literal")


def lift(value: Any) -> Tensor:
    """A tensor of what was given: a tensor, a number, an array, the name of a size, or a list of tensors."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, str):
        return Tensor(lambda: value, ATOM if re.fullmatch(r"\w+", value) else ADD, kind="literal")
    if isinstance(value, (list, tuple)) and any(isinstance(part, Tensor) for part in value):
        return Tensor(lambda *parts: f"[{', '.join(part[0] for part in parts)}]", ATOM, [lift(part) for part in value])
    return literal(value)


def infix(sign: str, level: int, a: Any, b: Any) -> Tensor:
    # Equal signs stand together from the left, powers from the right, comparisons not at all.
    left = level + 1 if level in (COMPARE, POWER) else level
    right = level if level == POWER else level + 1
    return Tensor(lambda x, y: f"{wrap(x, left)} {sign} {wrap(y, right)}", level, [lift(a), lift(b)])


def call(name: str, *args: Any, brackets: str = "", by_name: Sequence[int] = ()) -> Tensor:
    tensors = [lift(arg) for arg in args]
    return Tensor(lambda *parts: f"{name}{brackets}({', '.join(part[0] for part in parts)})", POSTFIX, tensors, by_name=by_name)


def axes_text(axes: Sequence[Any], axis: Any) -> str:
    if axis is not None:
        if axes:
            raise refusal("axes are given twice")
        axes = [a + 1 if isinstance(a, (int, np.integer)) and not isinstance(a, bool) and a >= 0 else a for a in (axis if isinstance(axis, (tuple, list)) else [axis])]
    for a in axes:
        if not (isinstance(a, str) and a.startswith("*")) and not (isinstance(a, (int, np.integer)) and a >= 1):
            raise refusal("axes are \"*\" or numbers from 1; with axis=, numbers from 0")
    return f"[{', '.join(str(a) for a in axes)}]" if axes else ""


def aggregate(name: str, axes: Sequence[Any], axis: Any, *args: Any) -> Tensor:
    return call(name, *args, brackets=axes_text(axes, axis))


def slice_text(part: Any) -> str:
    def bound(value, add):
        if isinstance(value, str):
            return value
        if not isinstance(value, (int, np.integer)) or value < 0:
            raise refusal("an index is a number from 0; sizes are not known while a program is written")
        return str(int(value) + add)
    if part is None:
        return "new"
    if isinstance(part, slice):
        if part.step not in (None, 1):
            raise refusal("a slice has no step")
        if part.start is None and part.stop is None:
            return ":"
        if part.stop is None:
            raise refusal("a slice needs its end: sizes are not known while a program is written")
        return f"{bound(part.start or 0, 1)}:{bound(part.stop, 0)}"
    return bound(part, 1)


def several(node: Tensor, count: int) -> Tuple[Tensor, ...]:
    """The results of a node that has several: each a name."""
    node.kind = "several"
    parts = tuple(Tensor(lambda: "", ATOM, [node], kind="part") for _ in range(count))
    node.group = parts
    return parts
