"""Where things are, and how many threads everyone gets."""

import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = ROOT / "bench"
PEERS = BENCH / "peers"
DATA = ROOT / "build" / "bench-data"
VENV_PYTHON = ROOT / "build" / "bench-venv" / "bin" / "python"
PFL_PYTHON = ROOT / "build" / "bench-pfl-venv" / "bin" / "python"
SYSTEM_PYTHON = pathlib.Path("/usr/bin/python3")
THREADS = len(os.sched_getaffinity(0))


def built(name):
    """A program of the build that BENCH_BUILD names, the release build by default."""
    return ROOT / os.environ.get("BENCH_BUILD", "build/release") / name


def threaded_openblas():
    """The newest threaded OpenBLAS at hand: the one that NumPy brings along. Debian's own would take the serial one's
    place for every program, so it is not installed."""
    site = ROOT / "build" / "bench-venv" / "lib"
    return next(iter(sorted(site.glob("python*/site-packages/numpy.libs/*openblas*.so*"))), None)


def debian_openblas():
    """The folder of Debian's threaded OpenBLAS, unpacked by bench/setup; None without it."""
    return next((ROOT / "build" / "bench-openblas").glob("usr/lib/*/openblas-pthread"), None)


def environment():
    """What children see: the same number of threads for all, and nothing that phones home."""
    number = str(THREADS)
    names = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS"]
    settings = {name: number for name in names}
    settings |= {"PYTHONUNBUFFERED": "1", "JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "1"}
    settings |= {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1", "RAY_DEDUP_LOGS": "0"}
    return os.environ | settings
