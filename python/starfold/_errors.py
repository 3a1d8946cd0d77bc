"""What can go wrong, by whose fault it is."""
from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Optional, Tuple


@dataclass(frozen=True)
class Diagnostic:
    """What the checker has to say about one place of a program."""

    code: str
    severity: str  # "error" or "warning"
    message: str
    help: str
    line: int
    column: int
    end_line: int
    end_column: int

    @property
    def span(self) -> Tuple[int, int, int, int]:
        """Line and column, end line and end column; all count from 1."""
        return self.line, self.column, self.end_line, self.end_column

    def __str__(self) -> str:
        return f"{self.severity}[{self.code}]: {self.message} ({self.line}:{self.column})"


def colored() -> bool:
    """Whether messages may be colored: on a terminal, unless NO_COLOR says no."""
    return "NO_COLOR" not in os.environ and hasattr(sys.stderr, "isatty") and sys.stderr.isatty()


class Error(Exception):
    """Everything that Starfold raises. `code` is a short word for it, `span` its place in the program, where there is one, and
    `rendered` the message as the command prints it."""

    code: Optional[str] = None
    span: Optional[Tuple[int, int, int, int]] = None
    file: Optional[str] = None
    _rendered: str = ""

    @property
    def message(self) -> str:
        return str(self.args[0]) if self.args else ""

    @property
    def rendered(self) -> str:
        return self._rendered or f"error: {self.message}\n"

    @rendered.setter
    def rendered(self, text: str) -> None:
        self._rendered = text

    def __str__(self) -> str:
        return self.rendered.rstrip("\n").removeprefix("error: ")


class ProgramError(Error):
    """A program has mistakes. `diagnostics` holds all of them."""

    def __init__(self, message: str, diagnostics=(), rendered: str = "", colored_text: str = "", where: str = ""):
        super().__init__(message)
        self.diagnostics = list(diagnostics)
        self.rendered = rendered
        self.colored_text = colored_text
        self.where = where  # the line of Python that made the program, where there is one
        errors = [d for d in self.diagnostics if d.severity == "error"]
        if errors:
            self.code, self.span = errors[0].code, errors[0].span

    def __str__(self) -> str:
        if not self._rendered:
            return f"{self.message}\n{self.where}" if self.where else self.message
        text = (self.colored_text if self.colored_text and colored() else self.rendered).rstrip("\n")
        # The drawing begins on a line of its own, where its columns stay below each other.
        return f"{self.where}\n{text}"

    def __reduce__(self):
        return type(self), (self.message, self.diagnostics, self._rendered, self.colored_text, self.where)


class DataError(Error):
    """Data that cannot be read, or does not fit the program."""
    code = "data"


class PolicyError(Error):
    """A client's policy says no; `client` and `rule` tell whose and which."""
    code = "policy"
    client: Optional[str] = None
    rule: Optional[str] = None


class RunError(Error):
    """A run that cannot go on: numerics, or clients that do not answer."""
    code = "run"


class UsageError(Error, ValueError):
    """Something that was asked for in a wrong way: an option, a name, a study file."""
    code = "usage"
