"""`starfold check`, and what all commands share: exit codes, hostile files, speed."""
import json
import os
import resource
import subprocess

import pytest
from conftest import COMMAND, ROOT

LOGISTIC = ROOT / "examples" / "logistic.fold"
KEYS = {"code", "severity", "message", "help", "line", "column", "end_line", "end_column"}


def test_example_of_the_reference(starfold, program):
    program("input x : [*, p]\n\noutput x\n", "mean.fold")
    result = starfold("check", "mean.fold", cwd=program("").parent)
    assert result.code == 1
    assert result.out == ""
    assert result.err == """\
error[E0301]: a federated value cannot be an output
  --> mean.fold:3:8
   |
 3 | output x
   |        ^ [*, p] is split across clients by its record axis
   = help: fold the record axis first, for example: output total = sum[*](x)
"""


def test_types_as_text(starfold):
    result = starfold("check", LOGISTIC)
    assert result.code == 0
    assert result.err == ""
    lines = result.out.splitlines()
    assert lines[0].split() == ["name", "type", "line"]
    assert lines[1].split() == ["x", "[*,", "p]", "2"]
    assert len({line.index("[") for line in lines[1:10]}) == 1  # aligned
    assert "sum[*](loss)" in result.out  # what leaves a client


def test_types_as_json(starfold):
    result = starfold("check", LOGISTIC, "--json")
    assert result.code == 0
    report = result.json()
    assert list(report) == ["ok", "diagnostics", "types", "rounds"]
    assert report["ok"] is True
    assert report["diagnostics"] == []
    types = {row["name"]: row["type"] for row in report["types"]}
    assert types == {"x": "[*, p]", "y": "[*]", "ridge": "[]", "beta": "[p]", "eta": "[*]", "loss": "[*]", "g": "[p]",
                     "h": "[p, p]", "step": "[p]"}
    assert all(set(row) == {"name", "type", "line"} for row in report["types"])


def test_diagnostics_as_json(starfold, program):
    result = starfold("check", program("input x : [*, p]\nlet a = é\noutput b = zz\noutput x\n"), "--json")
    assert result.code == 1
    report = result.json()
    assert report["ok"] is False
    assert report["rounds"] == []
    assert all(set(d) == KEYS for d in report["diagnostics"])
    assert [d["code"] for d in report["diagnostics"]] == ["E0101", "E0201", "E0301"]
    last = report["diagnostics"][-1]
    assert (last["line"], last["column"], last["end_line"], last["end_column"]) == (4, 8, 4, 9)
    assert last["severity"] == "error"
    assert last["help"].startswith("fold the record axis first")


def test_warnings_do_not_fail(starfold, program):
    result = starfold("check", program("let a = 1\noutput b = 2\n"), "--json")
    assert result.code == 0
    report = result.json()
    assert report["ok"] is True
    assert [(d["code"], d["severity"]) for d in report["diagnostics"]] == [("W0001", "warning")]


def test_modules_beside_the_program(starfold, program):
    program("fn f(v : [n]) = v[3]\nfn g(a : []) = a + b\n", "helpers.fold")
    result = starfold("check", program("import helpers\noutput y = helpers.f([1, 2])\n"), "--json")
    report = result.json()
    assert [d["code"] for d in report["diagnostics"]] == ["E0410", "E0201"]
    assert all(d["file"].endswith("helpers.fold") for d in report["diagnostics"])
    assert "in this call" in result.err


def test_base(starfold, program):
    inside = program("input x : [*, p]\ninput w : [p, q]\noutput m = mean[*](exp(x) @ w)\n")
    assert starfold("check", inside, "--base").code == 0
    result = starfold("check", LOGISTIC, "--base", "--json")
    assert result.code == 1
    assert {d["code"] for d in result.json()["diagnostics"]} == {"E0601"}
    messages = " ".join(d["message"] for d in result.json()["diagnostics"])
    for name in ("grad", "hessian", "solve", "eye", "zeros", "@"):
        assert f"`{name}`" in messages


def test_standard_input(starfold):
    result = starfold("check", "-", input="output a = b\n")
    assert result.code == 1
    assert "E0201" in result.err


@pytest.mark.parametrize("arguments", [
    [], ["check"], ["check", "a", "b"], ["check", "--nonsense", "a"], ["nonsense"], ["fmt"], ["ops", "--json", "--markdown"],
    ["check", ""], ["check", "no/such/file.fold"], ["check", "."], ["fmt", ""], ["fmt", "."], ["fmt", "no.fold"],
    ["ops", "sums"], ["ops", "frobnicate"],
])
def test_wrong_usage(starfold, arguments, tmp_path):
    result = starfold(*arguments, cwd=tmp_path)
    assert result.code == 2
    assert "--json" in arguments or result.out == ""
    assert result.err != ""
    assert "terminate" not in result.err


def test_unreadable_file(starfold, program):
    path = program("output a = 1\n")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("root reads everything")
    assert starfold("check", path).code == 2


def test_help_and_version(starfold):
    assert starfold("--version").out.startswith("starfold ")
    help_text = starfold("--help")
    assert help_text.code == 0
    for command in ("check", "fmt", "ops", "run", "explain", "lib"):
        assert f"  {command} " in help_text.out
        own = starfold(command, "--help")
        assert own.code == 0
        assert own.out != ""


HOSTILE = {
    "invalid utf-8": b"let a = 1 \xff\xfe\n",
    "nul": b"let a = 1\0\n",
    "random": bytes(range(256)) * 100,
    "parentheses": b"let a = " + b"(" * 10_000 + b"1" + b")" * 10_000,
    "brackets": b"let a = " + b"[" * 10_000,
    "minus": b"let a = " + b"-" * 10_000 + b"1",
    "long line": b"let a = " + b"1 + " * 2_500_000 + b"1",
    "long name": b"let " + b"a" * 1_000_000 + b" = 1\n",
    "long number": b"let a = " + b"9" * 1_000_000 + b"\n",
    "deep loops": b"repeat 2 {\n" * 10_000,
    "many errors": b"".join(b"let a%d = x%d + 1\n" % (i, i) for i in range(50_000)),
    "not statements": b"= = =\n" * 100_000,
    "doubling calls": b"fn f0(a : []) = a + 1\n" +
                      b"".join(b"fn f%d(a : []) = f%d(f%d(a))\n" % (i + 1, i, i) for i in range(60)) + b"output a = f60(1)\n",
    "doubling sums": b"fn f0(a : []) = a + 1\n" +
                     b"".join(b"fn f%d(a : []) = f%d(a) + f%d(a)\n" % (i + 1, i, i) for i in range(60)) + b"output a = f60(1)\n",
    "size polynomial": b"input x : [(a+b+c+d+e+f+g+h)^16]\n",
    "size overflow": b"input x : [9007199254740992 * 9007199254740992]\n",
}


# Hostile to the checker alone: the formatter only reads their syntax.
WELL_FORMED = {"many errors", "doubling calls", "doubling sums", "size polynomial", "size overflow"}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("command", ["check", "fmt"])
def test_hostile_file(starfold, program, name, command):
    path = program(HOSTILE[name])
    result = starfold(command, path, timeout=60)
    if command == "check":
        assert result.code == 1
        assert result.err.startswith("error[E")
    else:
        assert result.code == (0 if name in WELL_FORMED else 1)
        assert result.code == 0 or path.read_bytes() == HOSTILE[name]
    assert len(result.err) < 1_000_000


def test_endless_file(starfold):
    result = starfold("check", "/dev/zero", timeout=60)
    assert result.code == 1
    assert "E0106" in result.err


def test_reader_that_leaves(program):
    path = program("".join(f"output o{i} = {i}\n" for i in range(20_000)))
    with subprocess.Popen([COMMAND, "check", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.read(10)
        process.stdout.close()
        errors = process.stderr.read()
    assert b"terminate" not in errors and b"internal" not in errors
    assert process.returncode in (0, -13)


def test_full_disk():
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    with open("/dev/full", "w") as full:
        process = subprocess.run([COMMAND, "ops"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert process.returncode == 3
    assert "terminate" not in process.stderr


def test_speed(starfold, program):
    """Processor time, since the machine may be busy; bounds are generous."""

    def seconds(*arguments):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert starfold("check", *arguments).code == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(seconds(LOGISTIC) for _ in range(10)) < 0.1
    lines = ["input x : [*, p]", "let a0 = sum[*](x)"]
    lines += [f"let a{i} = a{i - 1} * 2 + mean[*](x * {i})" for i in range(1, 10_000)]
    path = program("\n".join([*lines, "output a9999", ""]))
    assert seconds(path) < 10


def test_json_is_always_json(starfold, program):
    for text in (b"\xff", b"", b"let a = '\n", b"output a = \"\xc3\xa9\"\n", b"let \x1b[31m = 1\n"):
        result = starfold("check", program(text), "--json")
        assert json.loads(result.out)["ok"] is (result.code == 0)
