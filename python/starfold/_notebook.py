"""What programs, exposures and results look like in a notebook, and the cell magic %%starfold."""
from __future__ import annotations

import html
import shlex


def colored_source(text: str) -> str:
    """The text of a program as HTML, in colors where Pygments is there."""
    try:
        from pygments import highlight
        from pygments.formatters import HtmlFormatter

        from starfold.pygments import StarfoldLexer
        return highlight(text, StarfoldLexer(), HtmlFormatter(noclasses=True, nobackground=True, linenos=False, prestyles="font-family:monospace;margin:0"))
    except ImportError:
        return f"<pre>{html.escape(text)}</pre>"


def program_html(program) -> str:
    """Its text with the type of every name, and what leaves each client."""
    from starfold._table import Table
    types = Table(["name", "type"], list(program.types.items()))
    return (f'<div class="starfold-program"><div style="display:flex;flex-wrap:wrap;gap:2em;align-items:flex-start"><div style="min-width:22em">{colored_source(program.source)}</div>'
            f"<details{' open' if len(types) <= 12 else ''}><summary>Types</summary>{types._repr_html_()}</details></div>{exposure_html(program)}</div>")


def exposure_html(program) -> str:
    exposure = program.exposure
    if not len(exposure):
        return "<p>No value leaves the clients: the program folds no records.</p>"
    return exposure._repr_html_()


def fit_html(fit) -> str:
    """The results with names, intervals and plots: the report, in a frame of its own so that its style stays inside."""
    if fit._run is None:
        return f"<pre>{html.escape(repr(fit))}</pre>"
    page = fit.report()
    rows = sum(getattr(value, "size", 1) for value in fit.outputs.values())
    height = min(900, 560 + 24 * rows)
    return (f'<iframe srcdoc="{html.escape(page, quote=True)}" style="width:100%;height:{height}px;border:1px solid #ddd;border-radius:6px;box-sizing:border-box;resize:vertical;overflow:auto" '
            f'sandbox="allow-popups" title="results of {html.escape(fit.program.name)}"></iframe>')


def register(ipython) -> None:
    """Makes %%starfold known to a notebook."""
    ipython.register_magic_function(run_cell(ipython), magic_kind="cell", magic_name="starfold")


def run_cell(ipython):
    def starfold(line: str, cell: str):
        """%%starfold [NAME] [CLIENTS] [key=value ...]: checks the program in this cell. NAME keeps it as a variable; with CLIENTS, the name of a
        variable that holds clients, it is also run, and what it gives is shown. Keywords are those of Program.run, as Python expressions."""
        from starfold._program import compile
        values = ipython.user_ns
        parts = shlex.split(line)
        names = [part for part in parts if "=" not in part]
        program = compile(cell, names[0] if names else "cell")
        options = {key: eval(value, values) for key, value in (part.split("=", 1) for part in parts if "=" in part)}  # the user's own cell
        if names:
            ipython.push({names[0]: program})
        if len(names) < 2:
            return program
        fit = program.run(values[names[1]] if names[1] in values else eval(names[1], values), **options)
        if len(names) > 2:
            ipython.push({names[2]: fit})
        return fit
    return starfold
