"""The language from outside: what its operations promise, sizes, intermediate forms."""
import resource

import numpy as np
import pytest
from conftest import ROOT, array

FORMS = ["ast", "ir", "plan", "blocks"]


@pytest.mark.parametrize("form", FORMS)
def test_intermediate_forms(starfold, form):
    result = starfold("check", ROOT / "examples" / "logistic.fold", "--print", form)
    assert result.code == 0 and result.err == ""
    assert {
        "ast": "let eta = (@ x beta)",
        "ir": "param 0.0 : [p]  # beta",
        "plan": "merge %",
        "blocks": "with p = 2\nround 0\nblock of *",
    }[form] in result.out
    again = starfold("check", ROOT / "examples" / "logistic.fold", "--print", form)
    assert again.out == result.out


def test_forms_of_wrong_programs(starfold, program):
    wrong = program("input x : [*]\noutput x\n")
    assert starfold("check", wrong, "--print", "ast").out == "input x : [*]\noutput x\n"
    for form in FORMS:
        result = starfold("check", wrong, "--print", form)
        assert result.code == 1 and "E0301" in result.err
        assert form == "ast" or result.out == ""
    assert starfold("check", wrong, "--print", "bytes").code == 2
    assert starfold("check", wrong, "--print", "ir", "--json").code == 2


def test_blocks_find_sizes_that_fit(starfold, program):
    result = starfold("check", program("input x : [*, p]\noutput s = sum[*](x[:, 4:p - 1])\n"), "--print", "blocks")
    assert result.code == 0 and result.out.startswith("with p = 5\n")


def test_linspace_meets_whole_numbers(starfold, program, federation):
    text = ("input y : [*]\nsize k = 101\noutput a = linspace(0, 100, k)\noutput b = linspace(1, k, k)\n"
            "output n = sum[*](y[:, new] == linspace(1, k, k))\n")
    args = federation({"a": {"y": np.arange(1.0, 102.0)}})
    out = starfold("run", program(text), *args, "--json").json()["outputs"]
    assert array(out["a"]).tolist() == list(range(101))
    assert array(out["b"]).tolist() == list(range(1, 102))
    assert array(out["n"]).tolist() == [1] * 101


@pytest.mark.parametrize("output", [
    "sum[*](one_hot(g, 3))", "one_hot(g, 3)' @ g", "var[*](one_hot(g, 3))",
    # Who only counts, or looks at the shape, still says that a label cannot be.
    "count[*](one_hot(g, 3))", "records(one_hot(g, 3))", "sum[*](g * ones_like(sum[2](one_hot(g, 3))))",
    "sum[*](zeros_like(one_hot(g, 3)))", "mean[*](one_hot(g, 3))"])
def test_labels_outside_are_an_error(starfold, program, federation, output):
    path = program(f"input g : [*]\noutput o = {output}\n")
    good = federation({"a": {"g": np.array([1.0, 3, 2])}})
    assert starfold("run", path, *good).code == 0
    bad = federation({"a": {"g": np.array([1.0, 3, 2])}, "b": {"g": np.array([1.0, 7931, 2.5, 3])}})
    for extra in [[], ["--reference"]]:
        result = starfold("run", path, *bad, *extra)
        assert result.code == 3
        assert "one_hot: 2 labels are not whole numbers from 1 to 3" in result.err
        assert "7931" not in result.err and "2.5" not in result.err  # no record's value
    missing = federation({"a": {"g": np.array([1.0, np.nan, 2])}})
    result = starfold("run", program("input g : [*]\noutput o = sum[*](one_hot(g, 3))\n"), *missing, "--missing", "nan",
                      "--json")
    assert array(result.json()["outputs"]["o"]).tolist() == [1, 1, 0]


def test_covariances_at_all_magnitudes(starfold, program, federation):
    path = program("input x : [*, 3]\noutput c = cov[*](x)\noutput d = cov[*](x, x)\n")
    rows = np.array([[1e200, 1e-200, 1e308], [-1e200, -1e-200, 1e308], [0, 0, 1e308]])
    runs = []
    for parts in [[rows], [rows[:1], rows[1:]], [rows[:2], rows[2:]], [rows[[0, 2]], rows[1:2]]]:
        data = federation({f"c{i}": {"x": part} for i, part in enumerate(parts)})
        runs += [starfold("run", path, *data, "--json", *extra).json()["outputs"] for extra in [[], ["--reference"]]]
    for outputs in runs:
        for name in "cd":
            c = array(outputs[name])
            assert c[0, 0] == np.inf and c[1, 1] == 0  # 1e400 and 1e-400 are no doubles
            np.testing.assert_allclose([c[0, 1], c[1, 0]], 1, rtol=1e-12)
            assert (c[2] == 0).all() and (c[:, 2] == 0).all()  # a constant


def test_sizes_of_zero_are_refused(starfold, program, federation):
    one = federation({"a": {"x": np.ones((3, 1)), "y": np.ones(3)}})
    none = federation({"b": {"x": np.ones((3, 0)), "y": np.ones(3)}})
    for text, data, message in [
        ("input x : [*, p]\noutput g = linspace(0, 1, p - 1)\noutput s = sum[*](x)\n", one, "p - 1 is 0"),
        ("input x : [*, p]\noutput s = sum[*](x[:, 1:p - 1])\n", one, "p - 1 is 0"),
        ("input x : [*, p]\noutput s = sum[*](reshape(x, p - 1, 1))\n", one, ""),
        ("input x : [*, p]\noutput s = sum[*](x @ ones(p, p - 1))\n", one, "p - 1 is 0"),
        ("input x : [*, p]\noutput s = sum[*](x)\n", none, "axis 2 is 0; sizes must be positive"),
        ("input x : [*, p]\ninput y : [*]\noutput n = p + sum[*](y)\n", none, "axis 2 is 0; sizes must be positive"),
        ("input x : [*, p + 1]\noutput s = sum[*](x)\n", none, "axis 2 is 0; sizes must be positive"),
        ("input x : [*, p + 1]\noutput s = sum[*](x)\n", one, "no positive p makes p + 1 equal to it"),
    ]:
        for extra in [[], ["--reference"]]:
            result = starfold("run", program(text), *data, *extra)
            assert result.code == (3 if message else 1) and message in result.err, (text, result.err)


@pytest.mark.parametrize("text,shapes,message,line", [
    ("input x : [*, p]\noutput g = linspace(0, 1, p - 1)\noutput s = sum[*](x)\n", [(3, 1)],
     "client c0: g is [p - 1], but p - 1 is 0 here", 2),
    ("input x : [*, p + 1]\noutput s = sum[*](x)\n", [(3, 1)], "client c0, input x, axis 2 is 1, but no positive p", 1),
    ("# x\ninput x : [*, 3]\noutput s = sum[*](x)\n", [(3, 2)], "client c0, input x, axis 2 is 2, but its size 3 is 3", 2),
    ("# x\ninput x : [*, p]\noutput s = sum[*](x)\n", [(3, 0)], "axis 2 is 0; sizes must be positive", 2),
    ("# x\ninput x : [*, p]\noutput s = sum[*](x)\n", [(3,)], "needs an array with 2 axes", 2),
    ("input x : [*, p]\ninput w : [k] = ones(k)\noutput s = sum[*](x) * sum(w)\n", [(3, 1)],
     "client c0: no input determines the size k", 2),
    ("input x : [*, p]\noutput s = sum[*](x)\n", [(3, 1), (3, 2)],
     "clients disagree on the size p: client c0 has 1, client c1 has 2", None),
])
def test_what_does_not_fit_is_told_alike(starfold, program, federation, text, shapes, message, line):
    """A run and the definition say the same of the same data, with the line that asked for something else."""
    data = federation({f"c{i}": {"x": np.ones(shape)} for i, shape in enumerate(shapes)})
    run, pooled = (starfold("run", program(text), *data, *extra) for extra in [[], ["--reference"]])
    assert run.code == pooled.code == 3
    assert run.err == pooled.err
    assert message in run.err
    assert line is None or f"program.fold:{line}:" in run.err


def test_iterations_that_cannot_be_counted(starfold, program, federation):
    data = federation({"a": {"y": np.ones(3)}})
    path = program("input y : [*]\ninput n : []\nstate s = 0\nrepeat n {\n  s <- s + sum[*](y)\n} until s > 5\noutput s\n")
    for value, message in [("1e300", "is too large"), ("-1", "is negative"), ("2.5", "is not a whole number")]:
        for extra in [[], ["--reference"]]:
            result = starfold("run", path, *data, "--set", f"n={value}", *extra)
            assert result.code == 3 and f"the number of iterations {message}" in result.err, result.err
    assert starfold("run", path, *data, "--set", "n=9007199254740992").code == 0


def test_a_long_shared_vector_joins_in_linear_time(starfold, program, federation):
    path = program("input y : [*]\noutput s = max(sum[*](concat[2](zeros(400000), y[:, new])))\n")
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    assert starfold("run", path, *federation({"a": {"y": np.ones(3)}})).code == 0
    # Comparing every entry with every other took 50 seconds.
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 15
