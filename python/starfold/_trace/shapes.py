"""Types of the parameters of a traced function."""
from __future__ import annotations

from typing import Union


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
