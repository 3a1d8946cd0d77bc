"""`make demo` works, and ends with a report."""
import subprocess

from conftest import ROOT


def test_demo():
    run = subprocess.run([ROOT / "tools/demo"], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr + run.stdout
    report = ROOT / run.stdout.split("The report, for a browser: ")[1].split()[0]
    assert "<h1>logistic.fold</h1>" in report.read_text()
    assert {"study.toml", "north.csv", "south.csv", "island.csv"} <= {path.name for path in report.parents[1].iterdir()}
