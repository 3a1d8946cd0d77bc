import pathlib
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from conftest import COMMAND  # noqa: E402  (the one of tests/e2e)
from federation import Federation, hospital  # noqa: E402


@pytest.fixture
def nodes():
    """A federation without nodes; whatever is added to it ends with the test. Paths of sockets must be short."""
    with tempfile.TemporaryDirectory(prefix="sf-") as folder:
        federation = Federation(COMMAND, folder)
        yield federation
        federation.stop()


@pytest.fixture
def three(nodes):
    """Three nodes that run, each with 200 records and the policy as it is by default."""
    for i, name in enumerate(("north", "east", "south")):
        nodes.add(name, hospital(i), 'max_total_ratio = 1000')
    return nodes
