"""docs/r.md, run as a reader would run it."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "r.md"


def has_reticulate():
    if shutil.which("Rscript") is None:
        return False
    return subprocess.run(["Rscript", "-e", "library(reticulate)"], capture_output=True).returncode == 0


@pytest.mark.skipif(not has_reticulate(), reason="R with reticulate is not installed")
def test_the_page_for_r_runs(tmp_path):
    blocks = re.findall(r"^```r\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 5
    script = tmp_path / "page.R"
    script.write_text("\n".join(blocks))
    process = subprocess.run(["Rscript", script], capture_output=True, text=True, timeout=300, cwd=tmp_path, env={**os.environ, "STARFOLD_PYTHON": sys.executable})
    assert process.returncode == 0, process.stderr
    assert "gear5" in process.stdout and "design' @ design" in process.stdout
