"""tools/federation ends every process that it has started, and none that it has not."""
import os
import subprocess
import sys
import time

from parent import Patience

from federation import MARK, Federation, birth, marked

# Starts a process of another session and one of its own, says which, and ends or waits.
PARENT = """import subprocess, sys, time
words = [sys.executable, "-c", "import time; time.sleep(600)"]
away, near = subprocess.Popen(words, start_new_session=True), subprocess.Popen(words)
print(away.pid, near.pid, flush=True)
time.sleep(float(sys.argv[1]))
"""


def test_what_outlives_its_parent_is_ended(tmp_path):
    federation = Federation(tmp_path, [])
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], env={**os.environ, MARK: "another federation"})
    try:
        for name, seconds in (("dead", "0"), ("alive", "600")):
            federation.launch(name, [sys.executable, "-c", PARENT, seconds], f"{name}.log")
        patience = Patience(60)
        while any((tmp_path / f"{name}.log").read_text().count("\n") == 0 for name in ("dead", "alive")) or birth(federation.processes["dead"].pid):
            assert not patience.over()
            federation.processes["dead"].poll()
            time.sleep(0.05)
        children = [int(word) for name in ("dead", "alive") for word in (tmp_path / f"{name}.log").read_text().split()]
        assert len(children) == 4 and all(birth(pid) for pid in children)
        assert {pid for pid, _ in marked(federation.token)} == {*children, federation.processes["alive"].pid}

        # One part of a federation, as when it is replaced: with those of its session, though it died long ago.
        federation.end([entry for entry in federation.recorded() if entry["name"] == "dead"])
        assert [bool(birth(pid)) for pid in children] == [True, False, True, True]

        federation.stop()
        assert marked(federation.token) == [] and not any(birth(pid) for pid in children)
        assert birth(stranger.pid)
    finally:
        for pid, _ in marked(federation.token):
            os.kill(pid, 9)
        stranger.kill()
        stranger.wait()


def test_patience_ends():
    patience, begin = Patience(0.2), time.monotonic()
    while not patience.over():
        assert time.monotonic() - begin < 10
        time.sleep(0.01)
