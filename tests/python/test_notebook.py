"""examples/hospitals.ipynb, executed as a reader would."""
import pathlib

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

NOTEBOOK = pathlib.Path(__file__).resolve().parents[2] / "examples" / "hospitals.ipynb"


def shown(cell, kind):
    """What a cell shows, of one kind."""
    texts = []
    for output in cell.outputs:
        if output.output_type == "stream" and kind == "text/plain":
            texts.append(output.text)
        texts += [output.data[kind]] if kind in output.get("data", {}) else []
    return "".join(texts)


def test_the_example_notebook_runs(tmp_path):
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert all(not cell.get("outputs") for cell in notebook.cells)  # kept without results, which each reader makes
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    program, fit, clients, pooled, refused = code[2:7]
    page = shown(program, "text/html")
    assert "[*, p + 1]" in page and "merge" in page and "design" in page  # types, and what leaves
    assert '<code style="white-space:nowrap">[p + 1, p + 1]</code>' in page  # a shape stays on one line
    assert "font-family:monospace" in page  # a notebook's own style takes it away
    assert 'title="results of logistic"' in shown(fit, "text/html")  # the name that the cell gave it
    assert "iframe" in shown(fit, "text/html") and "beta" in shown(fit, "text/html")
    assert "athens" in shown(clients, "text/html")
    assert "largest difference" in shown(pooled, "text/plain")
    assert "a federated value cannot be an output" in shown(refused, "text/plain")
