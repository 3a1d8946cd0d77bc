"""Linear algebra in a process that has NumPy's as well: each keeps its own threads, and runs beside each other have one answer."""

import concurrent.futures
import subprocess
import sys

import numpy as np

import starfold as sf

NEWTON = """input x : [*, p]
input y : [*]
let b = each client {
  state c = zeros(p)
  repeat 20 {
    let step = solve(x' @ x + eye(p), x' @ (x @ c - y) + c)
    c <- c - 0.5 * step
  } until max(abs(step)) < 1e-9
  c
}
output m = mean[*](b)
"""

# In a process of its own: what is counted starts with it.
ALONE = """
import os
def threads(): return len(os.listdir("/proc/self/task"))
environment = dict(os.environ)
import numpy as np
before = threads()
import starfold as sf
assert threads() == before, "importing the package started threads"
assert dict(os.environ) == environment, "importing the package changed the environment"
x = np.random.default_rng(1).normal(size=(400, 400))
mine = np.linalg.inv(x)
program = sf.compile("input x : [*, p]\\noutput s = solve(x' @ x, sum[*](x))\\n")
program.run({"a": {"x": x}}, threads=1)
assert threads() == before, "linear algebra started threads"
assert (np.linalg.inv(x) == mine).all()
pid = os.fork()
if pid == 0:
    program.run({"a": {"x": x}}, threads=1)
    os._exit(0 if threads() <= before else 1)
assert os.waitpid(pid, 0)[1] == 0, "linear algebra started threads after a fork"
"""


def test_the_package_starts_no_threads_and_leaves_the_environment():
    run = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_runs_beside_each_other_have_one_answer():
    random = np.random.default_rng(2)
    clients = {f"c{i}": {"x": random.normal(size=(40, 6)), "y": random.normal(size=40)} for i in range(20)}
    alone = sf.compile(NEWTON).run(clients, threads=1)["m"]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda i: sf.compile(NEWTON).run(clients, threads=1 + i % 8)["m"], range(40)))
    assert all(np.array_equal(one, alone) for one in found)
