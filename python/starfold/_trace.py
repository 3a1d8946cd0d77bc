"""Programs from Python functions: the function is called once, with tensors that write down what is done to them.

>>> import starfold as sf
>>> @sf.program
... def mean(x: sf.fed("p")):
...     return x.mean("*")
>>> print(mean.source, end="")
input x : [*, p]
output mean = mean[*](x)
"""
from __future__ import annotations

import contextvars
import inspect
import itertools
import linecache
import math
import re
import sys
import typing
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from starfold import _engine
from starfold._errors import ProgramError
from starfold._program import Program

AGGREGATIONS = ("sum", "prod", "min", "max", "count", "mean", "var", "std", "logsumexp", "any", "all", "norm", "argmax", "median", "quantile", "cov")
RESULTS = {"eigh": 2, "svd": 3, "qr": 2}
KEYWORDS = {"import", "size", "input", "fn", "let", "state", "repeat", "until", "trace", "output", "keep", "private", "each", "client", "batches", "and", "or",
            "not", "inf", "nan", "pi", "new"}

# How tightly what was written holds together, as the grammar has it.
OR, AND, NOT, COMPARE, ADD, MULTIPLY, MINUS, POWER, POSTFIX, ATOM = range(10)

_tracer: contextvars.ContextVar[Optional["Tracer"]] = contextvars.ContextVar("starfold_tracer", default=None)
_HERE = __file__


# ---- types of parameters

class Shape:
    """The type of a parameter: what `fed` and `shared` give."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return f"<{self.text}>"


def fed(*dims: Union[str, int]) -> Shape:
    """A federated tensor. The star comes first unless it is among the dimensions: fed("p") is [*, p], fed("p", "*") is [p, *]."""
    parts = [str(dim) for dim in dims]
    if not any(part.startswith("*") for part in parts):
        parts.insert(0, "*")
    return Shape(f"[{', '.join(parts)}]")


def shared(*dims: Union[str, int]) -> Shape:
    """A shared tensor: shared() is a number, shared("p", "p") a matrix."""
    return Shape(f"[{', '.join(str(dim) for dim in dims)}]")


class Size:
    """Annotates a parameter that is a size: `k: sf.Size = 3`."""


# ---- what is written down

class Place:
    """A line of Python."""

    def __init__(self, file: str, line: int, function: str):
        self.file, self.line, self.function = file, line, function

    def __str__(self) -> str:
        text = linecache.getline(self.file, self.line).strip()
        return f'  File "{self.file}", line {self.line}, in {self.function}' + (f"\n    {text}" if text else "")


def here() -> Place:
    """The line outside of this file that is being run."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename == _HERE:
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

    # -- NumPy's functions where they have one meaning
    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        if method != "__call__" or options or ufunc.__name__ not in UFUNCS:
            return NotImplemented
        return UFUNCS[ufunc.__name__](*inputs)

    def __array_function__(self, function, types, args, options):
        name = FUNCTIONS.get(function)
        if name is None or options:
            return NotImplemented
        return call(name, *args)

    def __repr__(self) -> str:
        return f"<starfold tensor {self.name or ''}>".replace(" >", ">")


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


def refusal(message: str) -> ProgramError:
    return ProgramError(message, where=str(here()))


def current() -> "Tracer":
    tracer = _tracer.get()
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


def several(node: Tensor, count: int) -> Tuple[Tensor, ...]:
    """The results of a node that has several: each a name."""
    node.kind = "several"
    parts = tuple(Tensor(lambda: "", ATOM, [node], kind="part") for _ in range(count))
    node.group = parts
    return parts


ops = Ops()
_add_methods()


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
FUNCTIONS: Dict[Any, str] = {np.where: "where", np.clip: "clip", np.outer: "outer", np.zeros_like: "zeros_like", np.ones_like: "ones_like", np.round: "round",
                             np.linalg.solve: "solve", np.linalg.det: "det", np.linalg.inv: "inv", np.linalg.cholesky: "cholesky"}


# ---- statements

def let(name: str, value: Any) -> Tensor:
    """Gives a value a name of its own; Python's variables give theirs by themselves."""
    tensor = lift(value)
    if tensor.kind in ("input", "state", "literal") or tensor.name:
        tensor = Tensor(lambda a: a[0], ATOM, [tensor])
    tensor.name = name
    return tensor


def state(value: Any, type: Optional[Shape] = None, name: Optional[str] = None) -> Tensor:
    """A shared value that loops update: `beta = sf.state(sf.ops.zeros("p"))`, then `beta <<= beta - step`."""
    tracer = current()
    first = lift(value)
    tensor = Tensor(lambda: "", ATOM, kind="state", name=name)
    tracer.block.items.append((tracer.next(), ("state", tensor, first, type.text if type else None, here())))
    return tensor


class repeat:
    """A loop: `for loop in sf.repeat(25):` runs its body once while the program is written; `loop.until(condition)` ends it early."""

    def __init__(self, count: Union[int, str, Tensor]):
        self.count = lift(count)
        self.condition: Optional[Tensor] = None
        self.place = here()

    def until(self, condition: Any) -> None:
        """The loop ends after the iteration in which this is not zero."""
        if self.condition is not None:
            raise refusal("a loop has one `until`")
        self.condition = lift(condition)
        self.until_seq = current().next()

    def __enter__(self) -> "repeat":
        tracer = current()
        seq = tracer.next()
        self.block = Block(tracer.block, seq)
        tracer.block.items.append((seq, ("repeat", self)))
        tracer.block = self.block
        return self

    def __exit__(self, *_) -> None:
        tracer = current()
        tracer.block = tracer.block.parent

    def __iter__(self):
        with self:
            yield self


def trace(name: str, value: Any) -> None:
    """Records one number per iteration."""
    tracer = current()
    value = lift(value)
    tracer.block.items.append((tracer.next(), ("trace", name, value, here())))


def output(name: str, value: Any) -> None:
    """An output beside those that the function returns."""
    tracer = current()
    value = lift(value)
    tracer.block.items.append((tracer.next(), ("output", name, value, here())))


def keep(name: str, value: Any) -> None:
    """A result that stays with each client."""
    tracer = current()
    value = lift(value)
    tracer.block.items.append((tracer.next(), ("keep", name, value, here())))


def grad(value: Any, variable: Tensor) -> Tensor:
    """The derivative of a number, or of one per record, in a shared value."""
    return operation("grad", value, variable)


def jacobian(value: Any, variable: Tensor) -> Tensor:
    return operation("jacobian", value, variable)


def hessian(value: Any, variable: Tensor) -> Tensor:
    return operation("hessian", value, variable)


def stop_gradient(value: Any) -> Tensor:
    return operation("stop_gradient", value)


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


# ---- from what was written down to text

class Tracer:
    def __init__(self):
        self.numbers = itertools.count()
        self.block = self.body = Block(None, -1)
        self.imports: set = set()

    def next(self) -> int:
        return next(self.numbers)


class Writer:
    """The text of a traced function, with the line of Python behind each of its lines."""

    def __init__(self, tracer: Tracer, names: Dict[int, str], taken: Sequence[str]):
        self.tracer, self.hints = tracer, names
        self.reserved = KEYWORDS | {name for name in operation_names() if name.isidentifier()}
        self.taken = set(taken)
        self.uses: Dict[int, List[Tuple[Block, int]]] = {}
        self.must: set = set()
        self.lines: List[Tuple[str, Optional[Place]]] = []
        self.final: Dict[int, str] = {}
        self.only_output: set = set()

    def count_uses(self, block: Block) -> None:
        seen: set = set()

        def use(tensor: Tensor, where: Block, seq: int) -> None:
            if not where.inside(tensor.block) and tensor.kind not in ("literal", "input"):
                raise ProgramError("a value that is made inside a loop is used outside: make it a state", where=str(tensor.place))
            self.uses.setdefault(id(tensor), []).append((where, seq))
            if id(tensor) in seen:
                return
            seen.add(id(tensor))
            for i, arg in enumerate(tensor.args):
                use(arg, tensor.block, tensor.seq)
                if i in tensor.by_name:
                    self.must.add(id(arg))

        def walk(own: Block) -> None:
            for seq, item in own.items:
                if not isinstance(item, tuple):
                    continue
                if item[0] == "repeat":
                    use(item[1].count, own, seq)
                    walk(item[1].block)
                    if item[1].condition is not None:
                        use(item[1].condition, item[1].block, 1 << 60)
                else:
                    use(item[2], own, seq)
        walk(block)

    def is_let(self, tensor: Tensor) -> bool:
        uses = self.uses.get(id(tensor))
        if tensor.kind == "several":
            return any(id(part) in self.uses for part in tensor.group)
        if tensor.kind != "value" or not uses:
            return False
        if len(uses) > 1 or id(tensor) in self.must:
            return True
        block, seq = uses[0]
        if block is not tensor.block or any(tensor.seq < update < seq for update in block.updates):
            return True
        named = tensor.name or self.hints.get(id(tensor))
        return named is not None and id(tensor) not in self.only_output

    def name_of(self, tensor: Tensor) -> str:
        if tensor.kind == "input":
            return tensor.name
        known = self.final.get(id(tensor))
        if known is None:
            wanted = tensor.name or self.hints.get(id(tensor)) or "t"
            wanted = re.sub(r"\W", "_", wanted)
            known, number = wanted, 2
            if wanted == "t" or wanted in self.reserved:
                known, number = f"{wanted}1", 2
            while known in self.taken or known in self.reserved:
                known, number = f"{wanted}{number}" if wanted == "t" else f"{wanted}_{number}", number + 1
            self.taken.add(known)
            self.final[id(tensor)] = known
        return known

    def text(self, tensor: Tensor) -> Tuple[str, int]:
        if tensor.kind in ("input", "state", "part") or self.is_let(tensor):
            return self.name_of(tensor), ATOM
        return self.expression(tensor), tensor.level

    def expression(self, tensor: Tensor) -> str:
        return tensor.write(*(self.text(arg) for arg in tensor.args))

    def say(self, depth: int, text: str, place: Optional[Place]) -> None:
        self.lines.append(("  " * depth + text, place))

    def write_block(self, block: Block, depth: int) -> None:
        for _, item in sorted(block.items, key=lambda pair: pair[0]):
            if isinstance(item, Tensor):
                if not self.is_let(item):
                    continue
                if item.kind == "several":
                    names = ", ".join(self.name_of(part) if id(part) in self.uses else "_" for part in item.group)
                    self.say(depth, f"let ({names}) = {self.expression(item)}", item.place)
                else:
                    self.say(depth, f"let {self.name_of(item)} = {self.expression(item)}", item.place)
                continue
            kind = item[0]
            if kind == "state":
                _, tensor, first, type_text, place = item
                self.say(depth, f"state {self.name_of(tensor)}{' : ' + type_text if type_text else ''} = {self.text(first)[0]}", place)
            elif kind == "update":
                self.say(depth, f"{self.name_of(item[1])} <- {self.text(item[2])[0]}", item[3])
            elif kind == "trace":
                self.say(depth, f"trace {item[1]} = {self.text(item[2])[0]}", item[3])
            elif kind in ("output", "keep"):
                written = self.text(item[2])[0]
                self.say(depth, f"{kind} {item[1]}" + (f" = {written}" if written != item[1] or item[2].kind == "literal" else ""), item[3])
            else:
                loop = item[1]
                self.say(depth, f"repeat {self.text(loop.count)[0]} {{", loop.place)
                self.write_block(loop.block, depth + 1)
                self.say(depth, "}" + (f" until {self.text(loop.condition)[0]}" if loop.condition is not None else ""),
                         loop.condition.place if loop.condition is not None else loop.place)


class Traced(Program):
    """A program that was made of a Python function. It can be run; called on tensors, it becomes part of another program."""

    def __init__(self, function: Callable, compiled, where: str):
        self.function = function
        super().__init__(compiled, where)
        self.__name__, self.__doc__ = function.__name__, function.__doc__

    def __reduce__(self):
        from starfold._program import compile
        return compile, (self.source, self.name)

    def __call__(self, *args: Any, **options: Any):
        if _tracer.get() is None:
            raise TypeError(f"{self.__name__} is a program: {self.__name__}.run(clients) runs it")
        return self.function(*[lift(arg) for arg in args], **{name: lift(value) for name, value in options.items()})


def program(function: Callable) -> Traced:
    """Makes a program of a function over annotated tensors: `fed(...)`, `shared(...)`, `Size`. What it returns are the outputs: a tensor, which is
    called like its variable or the function; several; or a dict of them by name."""
    text, places = trace_function(function)
    laid_out, trouble = _engine.format(text, function.__name__)
    final = laid_out if not trouble else text
    code = function.__code__
    compiled = _engine.compile(final, function.__name__, ".", False)
    where = str(Place(code.co_filename, code.co_firstlineno, function.__name__))
    if not compiled.ok:
        plain = compiled if trouble else _engine.compile(text, function.__name__, ".", False)
        import json
        errors = [d for d in json.loads(plain.check())["diagnostics"] if d["severity"] == "error"]
        if errors and errors[0]["line"] in places:
            where = str(places[errors[0]["line"]])
    return Traced(function, compiled, where)


def trace_function(function: Callable) -> Tuple[str, Dict[int, Place]]:
    tracer = Tracer()
    token = _tracer.set(tracer)
    try:
        head, arguments, names = parameters(function)
        locals_at_end: Dict[str, Any] = {}

        def notice(frame, event, _):
            if event == "return" and frame.f_code is function.__code__:
                locals_at_end.update(frame.f_locals)
        before = sys.getprofile()
        sys.setprofile(notice)
        try:
            result = function(*arguments)
        finally:
            sys.setprofile(before)
        hints = {id(value): name for name, value in locals_at_end.items() if isinstance(value, Tensor) and not name.startswith("_")}
        add_outputs(function, tracer, result, hints)
        return written(tracer, head, hints, names)
    finally:
        _tracer.reset(token)


def annotations_of(function: Callable) -> Dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except Exception:
        found = dict(function.__annotations__)
        for name, value in found.items():
            if isinstance(value, str):
                found[name] = eval(value, function.__globals__, inspect.getclosurevars(function).nonlocals)  # as typing does
        return found


def parameters(function: Callable):
    """(lines of declarations, a tensor for each parameter, their names)"""
    head: List[Tuple[str, Optional[Place]]] = []
    arguments: List[Tensor] = []
    annotations = annotations_of(function)
    place = Place(function.__code__.co_filename, function.__code__.co_firstlineno, function.__name__)
    for name, parameter in inspect.signature(function).parameters.items():
        kind = annotations.get(name)
        default = parameter.default
        if kind is Size:
            if not isinstance(default, int):
                raise ProgramError(f"the size {name} needs a value: {name}: sf.Size = 3", where=str(place))
            head.append((f"size {name} = {default}", place))
        elif isinstance(kind, Shape):
            value = "" if default is inspect.Parameter.empty else f" = {literal(default).write()}"
            head.append((f"input {name} : {kind.text}{value}", place))
        else:
            raise ProgramError(f"parameter {name} needs a type: sf.fed(...) or sf.shared(...)", where=str(place))
        arguments.append(Tensor(lambda: "", ATOM, kind="input", name=name))
    return head, arguments, [argument.name for argument in arguments]


def add_outputs(function: Callable, tracer: Tracer, result: Any, hints: Dict[int, str]) -> None:
    place = Place(function.__code__.co_filename, function.__code__.co_firstlineno, function.__name__)
    if result is None:
        return
    if isinstance(result, dict):
        pairs = [(str(name), lift(value)) for name, value in result.items()]
    else:
        several_results = isinstance(result, (tuple, list))
        values = [lift(value) for value in (result if several_results else [result])]
        pairs = []
        for i, value in enumerate(values, 1):
            own = value.name or hints.get(id(value))
            pairs.append((own or (f"{function.__name__}_{i}" if several_results else function.__name__), value))
    for name, value in pairs:
        tracer.body.items.append((tracer.next(), ("output", name, value, value.place if value.kind != "literal" else place)))


def written(tracer: Tracer, head, hints: Dict[int, str], names: Sequence[str]) -> Tuple[str, Dict[int, Place]]:
    writer = Writer(tracer, hints, names)
    writer.count_uses(tracer.body)
    writer.only_output = {id(item[2]) for _, item in walk_items(tracer.body)
                          if isinstance(item, tuple) and item[0] == "output" and len(writer.uses.get(id(item[2]), [])) == 1
                          and (item[2].name or hints.get(id(item[2]))) == item[1]}
    writer.lines = [(f"import {module}", None) for module in sorted(tracer.imports)] + list(head)
    writer.write_block(tracer.body, 0)
    text = "\n".join(line for line, _ in writer.lines) + "\n"
    return text, {number: place for number, (_, place) in enumerate(writer.lines, 1) if place is not None}


def walk_items(block: Block):
    for seq, item in block.items:
        yield seq, item
        if isinstance(item, tuple) and item[0] == "repeat":
            yield from walk_items(item[1].block)

