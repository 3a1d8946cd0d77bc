"""What a user needs to try Starfold is little: `make demo` installs and builds no test, no browser, no clang."""
import json
import os
import pathlib
import shutil
import subprocess

import pytest
from conftest import ROOT

ONLY_FOR_TESTS = ("clang", "gtest", "benchmark", "chromium", "playwright", "pytest", "ccache")


@pytest.fixture
def setup(tmp_path):
    """Runs tools/setup where nothing is installed, and gives what it would install from Debian."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "build/venv").mkdir(parents=True)
    for name in ("tools/setup", "tools/requirements.txt", "tests/requirements.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "tests/requirements.txt", tmp_path / "build/venv/requirements.installed")
    stubs = tmp_path / "stubs"
    stubs.mkdir()
    for path, text in ((stubs / "dpkg-query", "true"), (stubs / "apt-get", f'echo "$@" >>"{tmp_path}/log"'), (stubs / "sudo", '"$@"'),
                       (tmp_path / "tools/fetch-duckdb", "true")):
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def run(*words):
        (tmp_path / "log").write_text("")
        environment = dict(os.environ, PATH=f"{stubs}:{os.environ['PATH']}")
        done = subprocess.run([tmp_path / "tools/setup", *words], env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr + done.stdout
        installs = [line for line in (tmp_path / "log").read_text().splitlines() if " install " in line]
        return {word for line in installs for word in line.split(" install ")[1].split() if not word.startswith("-")}

    return run


def test_a_user_installs_no_test_no_browser_no_clang(setup):
    user, everything = setup("user"), setup()
    assert {"g++", "cmake", "libfmt-dev"} <= user < everything
    assert [package for package in user if any(word in package for word in ONLY_FOR_TESTS)] == []
    assert {"clang-14", "libgtest-dev", "chromium"} <= everything


def test_a_user_gets_only_numpy():
    lines = lambda name: {line.split("#")[0].strip() for line in (ROOT / name).read_text().splitlines()} - {""}
    assert {line.split("==")[0] for line in lines("tools/requirements.txt")} == {"numpy"}
    assert lines("tools/requirements.txt") < lines("tests/requirements.txt")  # so that the first is there with the second


def test_make_demo_builds_the_command_only():
    """What make would do, without doing it."""
    plan = subprocess.run(["make", "--dry-run", "demo"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    steps = [line.strip() for line in plan.splitlines() if line.startswith("tools/")]
    assert steps == ["tools/setup user", "tools/build dev command", "tools/demo"]


@pytest.mark.parametrize("precompile", ["ON", "OFF"])
def test_the_command_is_built_without_what_tests_need(tmp_path, precompile):
    folder = tmp_path / "build"
    configured = subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DSTARFOLD_COMMAND_ONLY=ON", f"-DSTARFOLD_PRECOMPILE={precompile}",
                                 "-DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_benchmark=ON"],
                                capture_output=True, text=True, timeout=120)
    assert configured.returncode == 0, configured.stderr
    commands = json.loads((folder / "compile_commands.json").read_text())
    folders = {pathlib.Path(os.path.relpath(entry["file"], ROOT)).parts[0] for entry in commands if entry["file"].startswith(f"{ROOT}/")}
    assert folders == {"starfold", "cli"}
    assert all(("ccache" in entry["command"]) <= (precompile == "OFF") for entry in commands)
    # CLI11 takes as long to compile as ten files of ours.
    users = [path.name for path in (ROOT / "cli").iterdir() if "#include <CLI/" in path.read_text()]
    assert users == ["command_line.cpp"]
