"""Linear algebra: a library that several threads must not call is refused before anything is built, and the one that is used starts
no threads and changes nothing in the environment."""

import os
import pathlib
import shutil
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
STARFOLD = os.environ.get("STARFOLD", str(ROOT / "build/starfold"))

# What a library says of itself, without its routines: the check reads this first.
SAYS = """
extern "C" {
char* openblas_get_config(void) { static char text[] = "OpenBLAS 0.3.21 %s"; return text; }
int openblas_get_parallel(void) { return %d; }
int openblas_get_num_threads(void) { return 1; }
}
"""
ROUTINES = """
extern "C" {
void LAPACKE_set_nancheck(int) {}
int LAPACKE_dpotrf(int, char, int n, double* a, int) { a[0] = 2; a[2] = 0.5; return n - 2; }
}
"""


def archive(folder, name, text):
    (folder / "part.cpp").write_text(text)
    subprocess.run(["c++", "-c", "part.cpp", "-o", f"{name}.o"], cwd=folder, check=True)
    subprocess.run(["ar", "rcs", f"{name}.a", f"{name}.o"], cwd=folder, check=True)
    return folder / f"{name}.a"


def check(folder, config, parallel):
    """The configure-time check alone, over a library that describes itself so: (passed, what cmake said)."""
    blas = archive(folder, "libopenblas", SAYS % (config, parallel))
    lapacke = archive(folder, "liblapacke", ROUTINES)
    (folder / "CMakeLists.txt").write_text(f"""cmake_minimum_required(VERSION 3.25)
project(check LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(Threads REQUIRED)
set(CMAKE_SOURCE_DIR {ROOT})
include({ROOT}/cmake/StarfoldBlas.cmake)
""")
    run = subprocess.run(["cmake", "-S", folder, "-B", folder / "build", f"-DSTARFOLD_OPENBLAS={blas}", f"-DSTARFOLD_LAPACKE={lapacke}"],
                         capture_output=True, text=True)
    return run.returncode == 0, " ".join((run.stdout + run.stderr).split())


@pytest.mark.parametrize("config, parallel, said", [
    ("Haswell SINGLE_THREADED", 0, "was built without locks: threads that call it share scratch memory, so that results could be wrong"),
    ("USE_OPENMP Haswell MAX_THREADS=64", 2, "was built for applications with threads of OpenMP, so that results could be wrong"),
])
def test_libraries_without_locks_are_refused_when_the_build_is_configured(tmp_path, config, parallel, said):
    passed, told = check(tmp_path, config, parallel)
    assert not passed
    assert said in told
    assert "link the pthread build (Debian: libopenblas-pthread-dev)" in told


@pytest.mark.parametrize("config, parallel", [("Haswell MAX_THREADS=64", 1), ("USE_LOCKING Haswell SINGLE_THREADED", 0)])
def test_libraries_with_locks_pass(tmp_path, config, parallel):
    passed, told = check(tmp_path, config, parallel)
    assert passed, told


def test_a_library_without_locks_is_refused_when_it_is_used(tmp_path):
    """The command of this build, linked anew with a library that says it has no locks."""
    build = ROOT / "build/dev"
    if not (build / "build.ninja").exists() or shutil.which("ninja") is None:
        pytest.skip("there is no build/dev to link from")
    (tmp_path / "says.cpp").write_text(SAYS.replace("int openblas_get_num_threads(void) { return 1; }", "char* openblas_get_corename(void) { return openblas_get_config(); }")
                                       % ("Haswell SINGLE_THREADED", 0))
    subprocess.run(["c++", "-c", "says.cpp", "-o", "says.o"], cwd=tmp_path, check=True)
    line = subprocess.run(["ninja", "-C", build, "-t", "commands", "starfold"], capture_output=True, text=True, check=True).stdout.splitlines()[-1]
    assert " -o starfold " in line
    subprocess.run(line.replace(" -o starfold ", f" -o {tmp_path}/starfold {tmp_path}/says.o "), shell=True, cwd=build, check=True)
    (tmp_path / "solve.fold").write_text("input x : [*]\noutput s = solve(eye(2), [sum[*](x), 1])\n")
    (tmp_path / "a.csv").write_text("x\n1\n2\n")
    run = subprocess.run([tmp_path / "starfold", "run", "solve.fold", "--client", "a=a.csv"], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 3
    assert "linear algebra: this OpenBLAS (OpenBLAS 0.3.21 Haswell SINGLE_THREADED) was built without locks" in run.stderr
    (tmp_path / "sum.fold").write_text("input x : [*]\noutput s = sum[*](x)\n")
    run = subprocess.run([tmp_path / "starfold", "run", "sum.fold", "--client", "a=a.csv"], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_the_command_starts_quickly():
    """The fastest of twenty: others may share the machine."""
    seconds = []
    for _ in range(20):
        started = time.perf_counter()
        subprocess.run([STARFOLD, "--version"], check=True, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - started)
    assert min(seconds) < 0.015, f"{min(seconds) * 1000:.1f} ms"


def test_one_answer_for_every_number_of_threads(tmp_path):
    """What the environment says of other libraries' threads does not matter, nor how many threads there are."""
    (tmp_path / "each.fold").write_text("""input x : [*, p]
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
""")
    answers = set()
    for repetition in range(24):
        run = subprocess.run([STARFOLD, "run", "each.fold", "--simulate", "clients=300,records=poisson(40)", "--set", "p=6", "--threads", str(1 + repetition % 8),
                              "--out", "out"], cwd=tmp_path, env=dict(os.environ, OPENBLAS_NUM_THREADS="8"), capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        answers.add((tmp_path / "out/m.npy").read_bytes())
    assert len(answers) == 1
