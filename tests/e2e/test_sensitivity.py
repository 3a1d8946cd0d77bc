"""`starfold check --privacy`: how much one record can change each release, and what has no bound."""
import math

import pytest

INPUTS = "input x : [*, p]\ninput y : [*]\ninput g : [*]\n"


@pytest.fixture
def privacy(starfold, program):
    """Checks a program over x : [*, p], y : [*] and g : [*]; options are those of the command."""
    def run(text, *options):
        return starfold("check", program(INPUTS + text), "--privacy", "--json", *options)
    return run


def round_of(result, code=0):
    assert result.code == code, result.err
    return result.json()["rounds"][0]


# What PRIVACY.md promises: L1, L2 and Linf when a record is added or removed, and when it is replaced.
CASES = [
    ("sum[*](clip(y, 0, 10))", (10, 10, 10), (10, 10, 10)),
    ("sum[*](clip(y, -10, 10))", (10, 10, 10), (20, 20, 20)),
    ("count[*](y)", (1, 1, 1), (0, 0, 0)),
    ("records(x)", (1, 1, 1), (0, 0, 0)),
    ("sum[*](clip_norm(x, 3))", (None, 3, 3), (None, 6, 6)),
    ("sum[*](one_hot(g, 4))", (1, 1, 1), (2, math.sqrt(2), 1)),
    ("clip_norm(x, 2)' @ clip_norm(x, 2)", (None, 4, 4), (None, None, None)),
    ("sum[*](y > 3)", (1, 1, 1), (1, 1, 1)),
    ("sum[*](sigmoid(y))", (1, 1, 1), (1, 1, 1)),
    ("sum[*](softmax[2](x))", (1, 1, 1), (2, math.sqrt(2), 1)),
]


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("expression, added, replaced", CASES)
def test_known_sensitivities(privacy, expression, added, replaced, neighbours):
    merge = round_of(privacy(f"output s = {expression}\n", "--neighbours", neighbours))["merges"][0]
    for norm, expected in zip(("l1", "l2", "linf"), added if neighbours == "add_remove" else replaced):
        if expected is not None:
            assert expected <= merge["sensitivity"][norm] <= expected * 1.001
    assert set(merge["sensitivity"]) == {"l1", "l2", "linf"}


def test_expressions_in_sizes(privacy):
    merge = round_of(privacy("output s = sum[*](clip(x, -1, 1))\n"))["merges"][0]
    assert merge["sensitivity"] == {"l1": "p", "l2": "sqrt(p)", "linf": 1}
    merge = round_of(privacy("output s = sum[*](clip(x, -1, 1))\n", "--set", "p=4"))["merges"][0]
    assert merge["sensitivity"] == {"l1": 4, "l2": 2, "linf": 1}


def test_lines_of_bounds(privacy):
    result = privacy("let age = clip(y, 0, 120)\nlet w = 2 * age\noutput m = mean[*](w)\n")
    merges = {merge["merge"]: merge for merge in round_of(result)["merges"]}
    assert merges["sum"]["bound"] == {"from": 4}
    assert merges["count"]["bound"] == {"from": 6}
    assert merges["sum"]["sensitivity"]["l2"] == 120  # the 2 is the server's business


def test_all_that_a_round_releases(privacy):
    result = privacy("output v = var[*](clip(y, 0, 10))\n")
    entry = round_of(result)
    assert sorted(merge["sensitivity"]["l1"] for merge in entry["merges"]) == [1, 10, 100]
    assert entry["sensitivity"]["l1"] == 111
    assert entry["sensitivity"]["l2"] == pytest.approx(math.sqrt(1 + 100 + 10000))
    assert entry["sensitivity"]["linf"] == 100
    assert result.json()["privacy"] == {"unit": "record", "neighbours": "add_remove", "assumed": []}


def test_clipped_gradients(privacy):
    text = ("input c : [] = 2\nstate t : [p] = zeros(p)\nrepeat 3 {\n  let loss = softplus(x @ t) - y * (x @ t)\n"
            "  t <- t - 0.1 * sum[*](clip_norm(grad(loss, t), c))\n}\noutput t\n")
    result = privacy(text)
    merge = round_of(result)["merges"][0]
    assert merge["sensitivity"]["l2"] == 2
    assert merge["bound"] == {"from": 8}
    assert result.json()["privacy"]["assumed"] == ["c = 2"]
    assert round_of(privacy(text, "--set", "c=0.5"))["merges"][0]["sensitivity"]["l2"] == 0.5


def test_unbounded_values_are_refused(privacy):
    result = privacy("let z = 2 * y\noutput s = sum[*](z)\noutput n = count[*](y)\n")
    entry = round_of(result, code=1)
    report = result.json()
    assert report["ok"] is False
    unbounded = [merge for merge in entry["merges"] if "unbounded" in merge]
    assert len(unbounded) == 1
    assert set(unbounded[0]["unbounded"]) == {"expr", "line", "help"}
    assert "clip(y, lo, hi)" in unbounded[0]["unbounded"]["help"]
    assert "sensitivity" not in unbounded[0]
    assert "sensitivity" not in entry
    assert [d["code"] for d in report["diagnostics"]] == ["E0801"]
    assert "E0801" in result.err


@pytest.mark.parametrize("fold, hint", [("max", "grid"), ("min", "grid"), ("prod", "log")])
def test_folds_that_do_not_add_up(privacy, fold, hint):
    merge = round_of(privacy(f"output s = {fold}[*](clip(y, 1, 2))\n"), code=1)["merges"][0]
    assert hint in merge["unbounded"]["help"]


def test_unit_client(privacy):
    merge = round_of(privacy("output s = sum[*](clip(y, 0, 1))\n", "--unit", "client"), code=1)["merges"][0]
    assert "each client" in merge["unbounded"]["help"]


def test_what_each_client_bounds_on_its_own(privacy):
    """What the refusal above advises is accepted: bounds pass out of a client's block."""
    program = "let own = each client { clip_norm(sum[*](x), 5) }\nlet m = each client { clip(mean[*](y), 0, 3) }\n" \
              "output total = sum[*](own)\noutput gram = own' @ own\noutput average = mean[*](m)\n"

    def bounds(*options):
        return {merge["expr"]: merge["sensitivity"]["l2"] for merge in round_of(privacy(program, *options))["merges"]}

    client = bounds("--unit", "client")
    assert client["sum[*](own)"] == pytest.approx(5) and client["own' @ own"] == pytest.approx(25) and client["sum[*](m)"] == 3
    assert bounds("--unit", "client", "--neighbours", "replace")["sum[*](own)"] == pytest.approx(10)
    # A record changes what its client sends, but not that it sends.
    record = bounds()
    assert record["sum[*](own)"] == pytest.approx(10) and record["sum[*](m)"] == 3


def test_local_steps_that_are_clipped(privacy):
    """DP-FedAvg, also where a client goes over its records in batches."""
    program = "state t : [p] = zeros(p)\nrepeat 5 {{\n  let step = each client {{\n    state b : [p] = t\n    repeat {} {{\n" \
              "      b <- b - 0.5 * grad(mean[*](softplus(x @ b) - y * (x @ b)), b)\n    }}\n    clip_norm(b - t, 1)\n  }}\n" \
              "  t <- t + sum[*](step)\n}}\noutput t\n"
    for loop in ("3", "batches(4, 1)"):
        [merge] = round_of(privacy(program.format(loop), "--unit", "client"))["merges"]
        assert merge["sensitivity"]["l2"] == pytest.approx(1)


def test_several_results_of_a_block(privacy):
    program = "let (a, b) = each client {\n  let s = sum[*](x)\n  (clip_norm(s, 2), s)\n}\noutput t = sum[*](a)\n"
    assert round_of(privacy(program, "--unit", "client"))["merges"][0]["sensitivity"]["l2"] == pytest.approx(2)
    free = round_of(privacy(program.replace("sum[*](a)", "sum[*](b)"), "--unit", "client"), code=1)["merges"][0]
    assert free["unbounded"]["line"] > 0


def test_private_states(privacy):
    """A record's own state depends on the record alone; one that was mixed with others at its client does not."""
    program = "private state r : [*] = 0\nstate t : [] = 0\nrepeat 3 {{\n  r <- {}\n  t <- sum[*](clip(r, 0, 1))\n}}\noutput t\n"
    assert round_of(privacy(program.format("r + y + t")))["merges"][0]["sensitivity"]["l1"] == 1
    mixed = round_of(privacy(program.format("r + each client { y - sum[*](y) }")), code=1)["merges"][0]
    assert "each client" in mixed["unbounded"]["help"]


def test_as_text(starfold, program):
    result = starfold("check", program(INPUTS + "output s = sum[*](clip(y, 0, 10))\n"), "--privacy")
    assert result.code == 0
    lines = result.out.splitlines()
    row = next(line for line in lines if line.startswith("  sum[*](clip(y, 0, 10))  10"))
    assert row.split()[-5:] == ["10", "10", "10", "line", "4"]
    assert any("one record more or less" in line for line in lines)


def test_a_study_says_sizes_and_values(starfold, tmp_path):
    (tmp_path / "p.fold").write_text("input x : [*, p]\ninput c : []\noutput s = sum[*](clip(x, -c, c))\n")
    (tmp_path / "a.csv").write_text("u,v,w,z\n1,2,3,4\n")
    (tmp_path / "s.toml").write_text('program = "p.fold"\n[inputs]\nx = "*"\nc = 3\n[[client]]\nname = "a"\ndata = "a.csv"\n')
    result = starfold("check", tmp_path / "s.toml", "--privacy", "--json")
    assert round_of(result)["merges"][0]["sensitivity"] == {"l1": 12, "l2": 6, "linf": 3}


def test_without_privacy_nothing_changes(starfold, program):
    report = starfold("check", program(INPUTS + "output v = var[*](y)\n"), "--json").json()
    assert report["rounds"][0]["merges"][0]["merge"] == "moments"
    assert "sensitivity" not in report["rounds"][0]
    assert "privacy" not in report


def test_wrong_words(privacy):
    assert privacy("output n = count[*](y)\n", "--unit", "patient").code == 2
    assert privacy("output n = count[*](y)\n", "--neighbours", "none").code == 2
    assert privacy("output n = count[*](y)\n", "--set", "nothing=1").code == 3


def test_nan_in_factors_that_depend_on_each_other(starfold, program):
    """In a fold nan becomes 1 in each of the factors, and 1 * 1 lies below every x * (3 - x)."""
    path = program("input e : [*]\nlet x = clip(e, 1, 2)\noutput s = sum[*](x * (3 - x))\n")
    merge = starfold("check", path, "--privacy", "--neighbours", "replace", "--json").json()["rounds"][0]["merges"][0]
    assert 1.25 <= merge["sensitivity"]["l2"] < 1.2513
