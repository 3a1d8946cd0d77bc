"""Small tables that show themselves: what leaves a client, who took part."""
from __future__ import annotations

import html
from typing import Any, Dict, Iterator, List, Sequence


class Table(Sequence):
    """Rows by the names of columns.

    >>> table = Table(["name", "records"], [["athens", 12], ["bern", 7]])
    >>> table[0]["records"], table["name"], len(table)
    (12, ['athens', 'bern'], 2)
    >>> print(table)
    name    records
    athens       12
    bern          7
    """

    def __init__(self, columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str = ""):
        self.columns = list(columns)
        self._rows = [list(row) for row in rows]
        self.title = title

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, which):
        """A row by its number, as a dict; a column by its name, as a list."""
        if isinstance(which, str):
            at = self.columns.index(which) if which in self.columns else None
            if at is None:
                raise KeyError(which)
            return [row[at] for row in self._rows]
        if isinstance(which, slice):
            return Table(self.columns, self._rows[which], self.title)
        return dict(zip(self.columns, self._rows[which]))

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        return (dict(zip(self.columns, row)) for row in self._rows)

    def to_dicts(self) -> List[Dict[str, Any]]:
        return list(self)

    def to_frame(self):
        """A pandas DataFrame."""
        return frame({name: self[name] for name in self.columns})

    def __repr__(self) -> str:
        cells = [self.columns, *([_text(value) for value in row] for row in self._rows)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.columns))]
        numbers = [self._is_number(i) for i in range(len(self.columns))]
        lines = []
        for row in cells:
            fields = [cell.rjust(width) if number else cell.ljust(width) for cell, width, number in zip(row, widths, numbers)]
            lines.append("  ".join(fields).rstrip())
        return "\n".join(lines)

    def _is_number(self, at: int) -> bool:
        return bool(self._rows) and all(isinstance(row[at], (int, float)) and not isinstance(row[at], bool) or row[at] is None for row in self._rows)

    def _repr_html_(self) -> str:
        numbers = [self._is_number(i) for i in range(len(self.columns))]
        side = ["right" if number else "left" for number in numbers]
        head = "".join(f'<th style="text-align:{s}">{html.escape(c)}</th>' for c, s in zip(self.columns, side))
        body = "".join("<tr>" + "".join(self._cell(v, s, n) for v, s, n in zip(row, side, numbers)) + "</tr>" for row in self._rows)
        caption = f'<caption style="text-align:left;caption-side:top">{html.escape(self.title)}</caption>' if self.title else ""
        return f'<table class="starfold">{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'

    @staticmethod
    def _cell(value: Any, side: str, number: bool) -> str:
        # Said at the text itself too: pages that notebooks are exported to let code wrap.
        text, wrap = html.escape(_text(value)), ";white-space:nowrap" if len(_text(value)) <= SHORT else ""
        return f'<td style="text-align:{side}{wrap}">{text}</td>' if number else f'<td style="text-align:{side}{wrap}"><code style="{wrap[1:]}">{text}</code></td>'


SHORT = 24  # characters that stay on one line: shapes, names


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def frame(columns, index=None):
    """A pandas DataFrame; ImportError in words where pandas is missing."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("to_frame() gives a pandas DataFrame; install pandas") from error
    return pandas.DataFrame(columns, index=index)
