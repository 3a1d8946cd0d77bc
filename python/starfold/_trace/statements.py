"""Statements of a traced function: names, states, loops, traces, outputs."""
from __future__ import annotations

from typing import Any, Optional, Union

from starfold._trace.shapes import Shape
from starfold._trace.tensor import ATOM, Block, Tensor, current, here, lift, refusal


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
