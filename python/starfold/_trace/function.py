"""@starfold.program: a Python function becomes a program."""
from __future__ import annotations

import inspect
import json
import sys
import typing
from typing import Any, Callable, Dict, List, Optional, Tuple

from starfold import _engine
from starfold._errors import ProgramError
from starfold._program import Program, compile
from starfold._trace.shapes import Shape, Size
from starfold._trace.tensor import ATOM, Place, Tensor, Tracer, lift, literal, tracing
from starfold._trace.writer import written


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
        if tracing.get() is None:
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
    token = tracing.set(tracer)
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
        tracing.reset(token)


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
