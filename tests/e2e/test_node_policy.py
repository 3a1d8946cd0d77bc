"""Every key of a node's policy, from outside."""
import json
import os
import signal
import subprocess
import time

import numpy as np
import pytest
from conftest import ROOT
from node_federation import LIMIT, hospital, wait_until

MEAN = "input x : [*, p]\noutput m = mean[*](x)\n"
X = 'x = ["age", "bmi"]'
LOOP = "input x : [*]\nstate m : [] = 0\nrepeat 5 {\n  m <- m + sum[*](abs(x - m) + 1) / 1000\n}\noutput m\n"


@pytest.fixture
def run(nodes):
    """Runs a program over one node with this policy; the exit code and the rule."""

    def ask(program, inputs, policy="", records=200, again=False, **options):
        if not again:
            for node in nodes.nodes:
                node.stop()
            nodes.nodes.clear()
            nodes.add(f"n{time.monotonic_ns()}", hospital(1, records), policy, **options)
        code, answer, err = nodes.run(nodes.study(program, inputs))
        return code, (answer or {}).get("refused", {}).get("rule")

    return ask


def rule(nodes):
    return nodes.nodes[0].lines()[-1].get("rule")


def test_min_records(run, nodes):
    assert run(MEAN, X, "min_records = 20", records=20) == (0, None)
    assert run(MEAN, X, "min_records = 20", records=19) == (1, "policy") and rule(nodes) == "min_records"


def test_min_support(run, nodes):
    program = "input x : [*]\ninput id : [*]\noutput s = sum[*](where(id <= 6, x, 0))\n"
    inputs = 'x = "age"\nid = "id"'
    assert run(program, inputs) == (0, None)
    assert run(program, inputs, "min_support = 7") == (1, "policy") and rule(nodes) == "min_support"


def test_small_cells_of_a_histogram(run, nodes):
    """Those on the last edge are in the last bin, and are no cell of their own."""
    age = np.sort(hospital(1)["age"])
    program = (ROOT / "lib/programs/histogram.fold").read_text()

    def ask(*edges):
        return run(program, f'x = "age"\nedges = [{", ".join(str(edge) for edge in edges)}]')

    assert ask(age[0], 40, 50, 60, age[-1]) == (0, None)
    assert ask(0, 40, 45, 50, 55, 60, 100) == (0, None)
    assert ask(age[5], 40, 50, 60, age[-6]) == (0, None)  # five below, and five above
    assert ask(age[0], 40, 50, 60, age[-4], age[-1]) == (1, "policy") and rule(nodes) == "min_support"
    assert ask(age[0], 40, 50, 60, age[-2]) == (1, "policy") and rule(nodes) == "min_support"
    assert ask(age[0] + 0.1, 40, 50, 60, age[-1]) == (1, "policy") and rule(nodes) == "min_support"


def test_max_ratio(run, nodes):
    assert run(MEAN, X, "max_ratio = 0.02") == (0, None)  # three numbers of 200 records
    assert run(MEAN, X, "max_ratio = 0.01") == (1, "policy") and rule(nodes) == "max_ratio"


def test_max_total_ratio_counts_reruns(run, nodes):
    assert run(MEAN, X, "max_total_ratio = 0.035") == (0, None)
    assert run(MEAN, X, again=True) == (0, None)
    assert run(MEAN, X, again=True) == (1, "policy") and rule(nodes) == "max_total_ratio"


def test_max_numbers_counts_reruns(run):
    assert run(MEAN, X, "max_numbers = 7") == (0, None)
    assert run(MEAN, X, again=True) == (0, None)
    assert run(MEAN, X, again=True) == (1, "max_numbers")


def test_max_rounds(run):
    assert run(LOOP, 'x = "age"', "max_rounds = 5") == (0, None)
    assert run(LOOP, 'x = "age"', again=True) == (1, "max_rounds")
    assert run(LOOP, 'x = "age"', "max_rounds = 4") == (1, "max_rounds")


def test_merges(run):
    assert run("input x : [*]\noutput v = var[*](x)\n", 'x = "age"', 'merges = ["sum", "count"]') == (1, "merges")
    assert run("input x : [*, p]\noutput v = cov[*](x)\n", X) == (1, "merges")
    assert run("input x : [*, p]\noutput v = cov[*](x)\n", X, 'merges = ["comoments"]') == (0, None)


def test_columns(run):
    # What the owner does not list does not exist: the study is told so before anything starts.
    assert run(MEAN, X, allowed=["age", "y"]) == (3, None)


def test_programs_by_hash(run, nodes):
    (nodes.folder / "m.fold").write_text(MEAN)
    plan = json.loads(nodes.command_line("explain", nodes.folder / "m.fold", "--json").stdout)["plan"]
    assert run(MEAN, X, f'programs = ["{plan}"]') == (0, None)
    assert run(LOOP, 'x = "age"', f'programs = ["{plan}"]') == (1, "programs")


def test_programs_that_are_approved(run, nodes):
    assert run(MEAN, X, 'programs = "approved"') == (1, "programs")
    node = nodes.nodes[0]
    listed = nodes.command_line("node", "pending", node.file)
    ident = node.lines()[-1]["agreement"]
    assert ident in listed.stdout and "sum[*](x)" in listed.stdout and "x takes age, bmi" in listed.stdout
    assert run(MEAN, X, again=True) == (1, "programs")
    assert nodes.command_line("node", "approve", ident, node.file).returncode == 0
    assert run(MEAN, X, again=True) == (0, None)
    assert nodes.command_line("node", "deny", ident, node.file).returncode == 0
    assert run(MEAN, X, again=True) == (1, "denied")
    # What a coordinator calls approved is nothing to the node: another program waits.
    assert run(LOOP, 'x = "age"', again=True) == (1, "programs")


def test_what_waits_is_shown_in_full(run, nodes):
    """Levels, formula and the rule for missing values are part of what the owner approves, so they are shown."""
    nodes.add("north", hospital(1), 'programs = "approved"')

    def waits(program, inputs, extra):
        assert nodes.run(nodes.study(program, inputs, extra=extra))[0] == 1
        ident = nodes.nodes[0].lines()[-1]["agreement"]
        listed = json.loads(nodes.command_line("node", "pending", nodes.nodes[0].file, "--json").stdout)["pending"]
        return ident, next(study["exposure"] for study in listed if study["id"] == ident)

    program = "input x : [*, p]\ninput y : [*]\noutput s = x' @ y\n"
    ward = '[categorical.ward]\nlevels = ["3", "a \\", b", "1"]\nreference = "1"\n'
    ident, text = waits(program, 'x = ["ward", "bmi"]\ny = "age"', ward)
    assert 'ward has the levels "3", "a \\", b", "1"; "1" has no column' in text and "missing values: error" in text
    other, text = waits(program, 'x = ["ward", "bmi"]\ny = "age"', ward.replace('reference = "1"', 'reference = "3"'))
    assert other != ident and '"3" has no column' in text
    other, text = waits(program, 'formula = "age ~ factor(ward) + bmi"', '[categorical.ward]\nlevels = ["1", "2", "3"]\n[options]\nmissing = "drop"\n')
    assert "the formula age ~ factor(ward) + bmi" in text and 'ward has the levels "1", "2", "3"; "1" has no column' in text
    assert "missing values: drop" in text
    assert 'epsilon = 2, delta = 1e-06, for each record, added at = "client"' in waits(
        "input x : [*]\noutput s = sum[*](clip(x, 0, 100))\n", 'x = "age"', '[privacy]\nepsilon = 2\ndelta = 1e-6\nat = "client"\n')[1]


def test_local_blocks(run, nodes):
    program = "input x : [*]\nlet m = each client { FOLD }\noutput s = mean[*](m)\n"
    mean = program.replace("FOLD", "mean[*](x)")
    assert run(mean, 'x = "age"') == (1, "local_blocks")
    assert run(mean, 'x = "age"', "local_blocks = true") == (0, None)
    # What a client has made of all of its records rests on them.
    few = "local_blocks = true\nmin_records = 1\nmin_support = 5"
    assert run(mean, 'x = "age"', few, records=5) == (0, None)
    assert run(mean, 'x = "age"', few, records=4) == (1, "policy") and rule(nodes) == "min_support"
    # What shows single records does so inside a block too.
    largest = program.replace("FOLD", "max[*](x)")
    assert run(largest, 'x = "age"', "local_blocks = true") == (1, "merges")
    assert run(largest, 'x = "age"', 'local_blocks = true\nmerges = ["sum", "count", "max"]') == (0, None)
    inner = "input x : [*]\nlet m = each client {\n  state b = 0\n  repeat batches(50, 1) {\n    b <- max[*](x)\n  }\n  b\n}\noutput s = mean[*](m)\n"
    assert run(inner, 'x = "age"', "local_blocks = true") == (1, "merges")


@pytest.mark.parametrize("leaves, stays", [
    ("let m = each client { mean[*](x) }\nlet top = each client { max[*](x) }\noutput s = mean[*](m)\n", "keep top\n"),
    ("let (m, top) = each client {\n  let t = max[*](x)\n  (mean[*](x), t)\n}\noutput s = mean[*](m)\n", "keep top\n"),
])
def test_what_stays_in_blocks_may_show_records(run, leaves, stays):
    """A largest value that is kept at the client shows nothing; one that a fold takes out does, by whatever way."""
    assert run("input x : [*]\n" + leaves + stays, 'x = "age"', "local_blocks = true") == (0, None)
    for way in ("output t = mean[*](top)\n", "let high = each client { sum[*](x > top) }\noutput t = sum[*](high)\n",
                "let n = each client {\n  state k = 0\n  repeat 100 {\n    k <- k + 1\n  } until k > top\n  k\n}\noutput t = mean[*](n)\n"):
        assert run("input x : [*]\n" + leaves + way, 'x = "age"', "local_blocks = true") == (1, "merges"), way


def test_privacy_and_secure_aggregation(run):
    assert run(MEAN, X, 'privacy = "required"') == (1, "privacy")
    assert run(MEAN, X, 'secure_aggregation = "required"') == (1, "secure_aggregation")


def test_max_refusals(run, nodes):
    program = "input x : [*]\ninput id : [*]\noutput s = sum[*](where(id == 7, x, 0))\n"
    inputs = 'x = "age"\nid = "id"'
    assert run(program, inputs, "max_refusals = 1") == (1, "policy")
    assert run(program, inputs, again=True) == (1, "max_refusals")
    assert run(MEAN, X, again=True) == (0, None)  # another study has not been refused


def test_reloading(run, nodes):
    assert run(MEAN, X) == (0, None)
    node = nodes.nodes[0]
    node.write("max_ratio = 0.001")
    node.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "read again" in (node.folder / "log").read_text())
    assert run(MEAN, X, again=True) == (1, "policy")
    node.write("nonsense = 1")
    node.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "stays as it was" in (node.folder / "log").read_text())
    assert run(MEAN, X, again=True) == (1, "policy")


def test_try(nodes):
    nodes.add("north", hospital(1), start=False)
    node = nodes.nodes[0]
    good = nodes.command_line("node", "try", node.file, nodes.study(MEAN, X))
    assert good.returncode == 0 and "to its end" in good.stdout and "sum[*](x)" in good.stdout
    program = "input x : [*]\ninput id : [*]\noutput a = mean[*](x)\noutput s = sum[*](where(id == 7, x, 0))\n"
    bad = nodes.command_line("node", "try", node.file, nodes.study(program, 'x = "age"\nid = "id"'))
    assert bad.returncode == 1 and "min_support" in bad.stdout and "line 4" in bad.stdout, bad.stdout
    assert not (node.folder / "node.ledger").exists()


def test_try_where_states_are_masked_and_noise_is_shared(nodes):
    for name in ("north", "south", "west"):
        nodes.add(name, hospital(1), "[policy.budget]\nepsilon = 2\ndelta = 1e-5" if name == "north" else "", start=False)
    node = nodes.nodes[0]
    program = "input x : [*]\noutput m = mean[*](clip(x, 0, 100))\n"
    extra = '[secure_aggregation]\nthreshold = 2\n[privacy]\nepsilon = 1\ndelta = 1e-6\nat = "distributed"'
    good = nodes.command_line("node", "try", node.file, nodes.study(program, 'x = "age"', extra=extra))
    assert good.returncode == 0 and "to its end" in good.stdout, good.stdout + good.stderr
    bad = nodes.command_line("node", "try", node.file, nodes.study(program, 'x = "age"', extra=extra.replace("epsilon = 1", "epsilon = 3")))
    assert bad.returncode == 1 and "budget" in bad.stdout, bad.stdout + bad.stderr
    alone = nodes.command_line("node", "try", node.file, nodes.study(program, 'x = "age"', extra=extra.split("\n", 2)[2]))
    assert alone.returncode == 1 and "secure_aggregation" in alone.stderr, alone.stdout + alone.stderr
    assert not (node.folder / "node.ledger").exists()


def test_disk_full(nodes):
    """What cannot be written down does not leave."""
    import resource
    nodes.add("north", hospital(1), start=False)
    node = nodes.nodes[0]
    node.start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)))
    code, answer, err = nodes.run(nodes.study(LOOP, 'x = "age"'))
    assert code == 3 and "not enough memory" in err, err
    node.stop()
    assert nodes.command_line("node", "ledger", node.file, "--verify").returncode == 0
    node.start()
    code, answer, err = nodes.run(nodes.study(LOOP, 'x = "age"'), "--resume")
    assert code == 0, err
