"""Private runs from outside: studies with [privacy], what results say of them, what is refused, and owners' budgets."""
import json
import math
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from conftest import COMMAND, array
from node_federation import LIMIT, hospital, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUM = "input y : [*]\noutput s = sum[*](clip(y, 0, 10))\n"
MEAN = "input y : [*]\nlet a = clip(y, 0, 100)\noutput m = mean[*](a)\n"
SIGMA = {(1, 1e-6): 4.224678889, (1, 1e-5): 3.730631635, (0.1, 1e-6): 36.30469043}


@pytest.fixture
def private(starfold, tmp_path):
    """Runs a program as a study of two clients with this [privacy]; y and x are their columns."""
    rng = np.random.default_rng(1)
    data = {}
    for name in ("oslo", "bergen"):
        data[name] = rng.uniform(0, 10, (300, 2)).round(3)
        lines = ["y,x"] + [f"{a},{b}" for a, b in data[name]]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")

    def run(program, privacy, *options, extra="", code=0, as_json=True):
        (tmp_path / "p.fold").write_text(program)
        section = "[privacy]\n" + privacy if privacy is not None else ""
        (tmp_path / "study.toml").write_text(
            f'program = "p.fold"\n{extra}\n{section}\n'
            '[[client]]\nname = "oslo"\ndata = "oslo.csv"\n[[client]]\nname = "bergen"\ndata = "bergen.csv"\n')
        result = starfold("run", tmp_path / "study.toml", *(["--json"] if as_json else []), *options)
        assert result.code == code, result.err
        return result.json() if as_json else result

    run.data = data
    return run


def test_the_record_of_a_private_run(private, tmp_path):
    answer = private(SUM, "epsilon = 1.0\ndelta = 1e-5\n", "--out", tmp_path / "out")
    said = answer["privacy"]
    assert (said["unit"], said["neighbours"], said["epsilon"], said["delta"], said["at"]) == ("record", "add_remove", 1, 1e-5, "server")
    assert said["private"] is True and said["budget"] == {"epsilon": 1, "delta": 1e-5}
    [release] = said["rounds"]
    assert release["mechanism"] == "discrete_gaussian" and release["epsilon"] == 1
    assert 10 <= release["sensitivity"] < 10.01
    assert SIGMA[1, 1e-5] * 10 <= release["scale"] < SIGMA[1, 1e-5] * 10.02
    assert math.log2(release["grid"]) == round(math.log2(release["grid"]))
    value = array(answer["outputs"]["s"]) / release["grid"]
    assert value == round(float(value))
    kept = json.loads((tmp_path / "out/run.json").read_text())
    assert kept["privacy"] == said
    assert "What is guaranteed" in (tmp_path / "out/report.html").read_text()


def test_pure_privacy_has_laplace_noise(private):
    said = private(SUM, "epsilon = 0.5\ndelta = 0\n")["privacy"]
    assert said["rounds"][0]["mechanism"] == "discrete_laplace" and 20 <= said["rounds"][0]["scale"] < 20.05
    replaced = private("input y : [*]\noutput s = sum[*](clip(y, -10, 10))\n", 'epsilon = 1\nneighbours = "replace"\n')["privacy"]
    assert replaced["neighbours"] == "replace" and 20 <= replaced["rounds"][0]["sensitivity"] < 20.05


def test_noise_is_new_in_every_run_and_has_its_size(private):
    plain = sum(np.clip(d[:, 0], 0, 10).sum() for d in private.data.values())
    errors = [float(array(private(SUM, "epsilon = 1\ndelta = 1e-5\n")["outputs"]["s"])) - plain for _ in range(12)]
    assert len(set(errors)) == 12
    spread = math.sqrt(np.mean(np.square(errors)))
    assert 10 < spread < 90  # 37.3; outside once in a million times
    seeded = [private(SUM, "epsilon = 1\ndelta = 1e-5\nseed = 7\n") for _ in range(2)]
    assert seeded[0]["outputs"] == seeded[1]["outputs"] and seeded[0]["privacy"]["private"] is False
    words = private(SUM, "epsilon = 1\nseed = 7\n", as_json=False)
    assert "NOT private" in words.out
    assert "private: epsilon 1 " in private(SUM, "epsilon = 1\n", as_json=False).out


def test_a_mean_close_to_the_plain_one(private):
    plain = np.concatenate([d[:, 0] for d in private.data.values()]).mean()
    answer = private(MEAN, "epsilon = 50\ndelta = 1e-6\n")
    assert abs(float(array(answer["outputs"]["m"])) - plain) < 1
    assert len(answer["privacy"]["rounds"][0]["merges"]) == 2


@pytest.mark.parametrize("program, privacy, line", [
    ("input y : [*]\n\noutput s = sum[*](y)\n", "epsilon = 1\n", 3),
    ("input y : [*]\noutput s = min[*](clip(y, 0, 1))\n", "epsilon = 1\n", 2),
    (SUM, "epsilon = 1e-12\n", 2),
    ("input y : [*]\nlet a = clip(y, 0, 1)\noutput s = exp(sum[*](a))\n", 'epsilon = 1\nat = "output"\n', 3),
])
def test_what_cannot_be_private_ends_before_the_first_round(private, program, privacy, line):
    answer = private(program, privacy, code=1)
    assert answer["ok"] is False and answer["line"] == line
    words = private(program, privacy, code=1, as_json=False)
    assert f"p.fold:{line}:" in words.err and words.out == ""


@pytest.mark.parametrize("privacy, word", [
    ("", "epsilon"), ("epsilon = 0\n", "epsilon"), ("epsilon = -1\n", "epsilon"), ("epsilon = 1\ndelta = 1\n", "delta"),
    ('epsilon = 1\nunit = "patient"\n', "unit"), ('epsilon = 1\nat = "moon"\n', "at"), ("epsilon = 1\nseeds = 1\n", "seed"),
    ('epsilon = 1\nneighbours = "all"\n', "neighbours"), ("epsilon = nan\n", "epsilon"), ("epsilon = 1\nseed = 0.5\n", "seed"),
])
def test_mistakes_in_the_study(private, privacy, word):
    result = private(SUM, privacy, code=2, as_json=False)
    assert word in result.err


def test_the_reference_has_no_noise_and_is_refused(private):
    assert "noise" in private(SUM, "epsilon = 1\n", "--reference", code=2, as_json=False).err


@pytest.mark.parametrize("program", [SUM, "input y : [*]\noutput s = sum[*](y)\n"])
def test_exact_mode_has_no_noise_and_is_refused(private, program):
    refused = private(program, "epsilon = 1\n", "--exact", code=2, as_json=False)
    assert "exact mode and [privacy] do not go together" in refused.err


def test_exact_counts_of_records_are_not_told(private, tmp_path, starfold):
    """One record more would show in them."""
    path = tmp_path / "oslo.csv"
    drop = '[options]\nmissing = "drop"\nclient_details = true\n'
    private(SUM, None, extra=drop)  # writes the study
    path.write_text("y,x\n" + "\n".join(f"{i % 7},1" for i in range(433)) + "\n" + ",1\n" * 17)
    plain = private(SUM, None, "--out", tmp_path / "plain", extra=drop)
    assert plain["clients"][0]["records"] == 433 and "433" in (tmp_path / "plain/report.html").read_text()
    answer = private(SUM, "epsilon = 1\n", "--out", tmp_path / "out", extra=drop)
    assert [client["records"] for client in answer["clients"]] == [None, None]
    kept = json.loads((tmp_path / "out/run.json").read_text())
    assert kept["records"] is None
    assert not any(key in client for client in kept["clients"] for key in ("records", "dropped", "missing", "data"))
    said = private(SUM, "epsilon = 1\n", extra=drop, as_json=False)
    for text in ((tmp_path / "out/report.html").read_text(), said.out + said.err):
        assert "433 " not in text and "733" not in text and "left out. " not in text and "missing values:" not in text
    assert "not told" in said.out + said.err


def test_a_record_in_place_of_another_counts(private, tmp_path):
    """A record that replaces another and is dropped, or left out by a query, would change the number of records."""
    replace = 'epsilon = 1\nneighbours = "replace"\n'
    drop = '[options]\nmissing = "drop"\n'
    refused = private(SUM, replace, extra=drop, code=2, as_json=False)
    assert 'missing = "drop"' in refused.err and 'neighbours = "add_remove"' in refused.err
    assert private(SUM, replace)["privacy"]["neighbours"] == "replace"
    assert private(SUM, "epsilon = 1\n", extra=drop)["privacy"]["neighbours"] == "add_remove"
    third = '[[client]]\nname = "voss"\ndata = "oslo.csv"\nquery = "select * from data where y > 5"\n'
    refused = private(SUM, replace + third, code=2, as_json=False)
    assert "query of client voss" in refused.err and 'neighbours = "add_remove"' in refused.err


def test_noise_of_each_client(private):
    said = private(SUM, 'epsilon = 1\ndelta = 1e-6\nat = "client"\n')["privacy"]
    assert said["at"] == "client" and SIGMA[1, 1e-6] * 10 <= said["rounds"][0]["scale"] < SIGMA[1, 1e-6] * 10.02


def test_noise_at_the_outputs(private):
    program = "input y : [*]\nlet s = sum[*](clip(y, 0, 10))\noutput half = s / 2 + 3\noutput both = concat[1](full(1, 1) * s, zeros(1))\n"
    plain = sum(np.clip(d[:, 0], 0, 10).sum() for d in private.data.values())
    answer = private(program, 'epsilon = 100\ndelta = 1e-6\nat = "output"\n')
    assert abs(float(array(answer["outputs"]["half"])) - plain / 2 - 3) < 10
    assert answer["privacy"]["at"] == "output" and len(answer["privacy"]["rounds"]) == 1
    # What no record is in has no noise, and takes nothing of the budget.
    alone = private(SUM, 'epsilon = 1\nat = "output"\n')["privacy"]["rounds"][0]["merges"]
    beside = private(SUM + "output c = 5\n", 'epsilon = 1\nat = "output"\n')
    assert beside["outputs"]["c"]["data"] == [5]
    assert beside["privacy"]["rounds"][0]["merges"][0]["scale"] == pytest.approx(alone[0]["scale"], rel=1e-3)
    looped = "input y : [*]\nstate t : [] = 0\nrepeat 2 {\n  t <- t + sum[*](clip(y, 0, 1))\n}\noutput t\n"
    assert private(looped, 'epsilon = 1\nat = "output"\n', code=1)["line"] == 3


def test_loops_cost_what_they_ran(private):
    loop = "input y : [*]\nstate t : [] = 5\nrepeat 10 {{\n  t <- t + 0.001 * sum[*](clip(y - t, -1, 1))\n}}{}\noutput t\n"
    every = private(loop.format(""), "epsilon = 1\ndelta = 1e-6\n")["privacy"]
    assert every["epsilon"] == 1 and len(every["rounds"]) == 10
    spent = [r["epsilon"] for r in every["rounds"]]
    assert spent == sorted(spent) and spent[-1] == 1
    early = private(loop.format(" until t > -100"), "epsilon = 1\ndelta = 1e-6\n")["privacy"]
    assert len(early["rounds"]) == 1 and early["epsilon"] == pytest.approx(spent[0]) and early["budget"]["epsilon"] == 1


def test_explain_says_what_is_guaranteed(private, starfold, tmp_path):
    private(SUM, "epsilon = 1\ndelta = 1e-6\n")
    text = starfold("explain", tmp_path / "study.toml")
    assert text.code == 0 and "does not protect against the server" in text.out
    page = starfold("explain", tmp_path / "study.toml", "--html", tmp_path / "e.html")
    assert page.code == 0 and "What would be guaranteed" in (tmp_path / "e.html").read_text()


def test_what_stays_at_the_clients(private, tmp_path):
    """Results that clients keep, and states of their own, leave nothing that would need noise."""
    program = "input y : [*]\nlet a = clip(y, 0, 10)\nlet m = mean[*](a)\nkeep left = a - m\noutput m\n"
    answer = private(program, "epsilon = 5\ndelta = 1e-6\n", "--out", tmp_path / "out")
    assert [release["round"] for release in answer["privacy"]["rounds"]] == [1]  # the second releases nothing
    for name, data in private.data.items():
        kept = np.load(tmp_path / f"out/clients/{name}/left.npy")
        np.testing.assert_allclose(kept, data[:, 0] - float(array(answer["outputs"]["m"])), atol=1e-12)
    assert private(program, 'epsilon = 5\nat = "output"\n', code=1)["line"] == 4  # a second round, with values before noise

    states = "input y : [*]\nprivate state own : [*client] = 0\nstate t : [] = 0\nrepeat 4 {\n" \
             "  own <- own + 1\n  t <- t + sum[*](clip(own, 0, 3))\n}\noutput t\n"
    answer = private(states, "epsilon = 2000\ndelta = 1e-6\n")  # 2 x (1 + 2 + 3 + 3)
    assert abs(float(array(answer["outputs"]["t"])) - 18) < 2 and len(answer["privacy"]["rounds"]) == 4


def test_sampled_rounds_cost_as_much_as_all(private):
    """Nobody keeps secret who was drawn, so nothing is claimed for it."""
    every = private(SUM, "epsilon = 1\ndelta = 1e-6\n")["privacy"]
    drawn = private(SUM, "epsilon = 1\ndelta = 1e-6\n", "--sample", "1")
    assert drawn["privacy"]["rounds"] == every["rounds"]
    own = "input y : [*]\nlet c = each client { clip(mean[*](y), 0, 10) }\noutput s = sum[*](c)\n"
    client = 'unit = "client"\nepsilon = 1\n'
    refused = private(own, client, "--sample", "1", code=2, as_json=False)
    assert "replace" in refused.err
    assert private(own, client + 'neighbours = "replace"\n', "--sample", "1")["privacy"]["unit"] == "client"


# --- nodes ------------------------------------------------------------------------------------------

NODE_SUM = "input x : [*]\noutput s = sum[*](clip(x, 0, 100))\noutput n = records(x)\n"
X = 'x = "age"'


def study(nodes, privacy, program=NODE_SUM, name="study.toml", **options):
    return nodes.study(program, X, extra="[privacy]\n" + privacy if privacy else "", name=name, **options)


@pytest.mark.parametrize("at", ["server", "client"])
def test_over_nodes(three, at):
    code, answer, err = three.run(study(three, f'epsilon = 20\ndelta = 1e-6\nat = "{at}"\n'))
    assert code == 0, err
    plain = three.run(three.local(NODE_SUM, X))[1]
    assert abs(float(array(answer["outputs"]["s"])) - float(array(plain["outputs"]["s"]))) < 3000
    assert answer["outputs"] != plain["outputs"] and answer["privacy"]["epsilon"] == 20
    for node in three.nodes:
        line = node.lines()[-1]
        assert line["decision"] == "sent" and line["epsilon"] == pytest.approx(20) and line["delta"] == 1e-6


@pytest.mark.parametrize("at", ["client", "distributed"])
@pytest.mark.parametrize("question", [
    "sum[*](one_hot(where(id == 7, where(x > {}, 9, 1), 1), 3))",
    "sum[*](clip([1, 2, 3][where(id == 7, where(x > {}, 9, 1), 1)], 0, 3))",
    "sum[*](one_hot(where(id == 7, where(x > {}, 1.5, 1), 1), 3))",
])
def test_no_record_decides_whether_a_run_ends(nodes, question, at):
    """A program that fails where one record is so would tell it, as often as it is asked, and pay nothing."""
    for i, name in enumerate(("a", "b", "c")):
        nodes.add(name, hospital(i))
    age = hospital(0)["age"][6]
    for threshold in (age - 1, age + 1):
        program = f"input x : [*]\ninput id : [*]\noutput s = {question.format(threshold)}\n"
        path = nodes.study(program, X + '\nid = "id"', extra=f'[privacy]\nepsilon = 50\ndelta = 1e-6\nat = "{at}"\n' + MASKS, keys=True)
        code, answer, err = nodes.run(path)
        assert code == 0, err
        assert abs(array(answer["outputs"]["s"]).ravel()[0] - 600) < 25
        assert nodes.nodes[0].lines()[-1]["decision"] == "sent"


def test_shares_of_noise_over_nodes(three):
    """Every node adds its share under masks. Any two have what was promised, so three have half as much again."""
    extra = '[privacy]\nepsilon = 20\ndelta = 1e-6\nat = "distributed"\n'
    code, answer, err = three.run(three.study(NODE_SUM, X, extra=extra))
    assert code != 0 and "secure_aggregation" in err + json.dumps(answer)
    masked = three.study(NODE_SUM, X, extra=extra + "[secure_aggregation]\nthreshold = 2\n", keys=True)
    plain = float(array(three.run(three.local(NODE_SUM, X))[1]["outputs"]["s"]))
    errors = []
    for _ in range(12):
        code, answer, err = three.run(masked)
        assert code == 0, err
        [release] = answer["privacy"]["rounds"]
        value = float(array(answer["outputs"]["s"]))
        [summed] = [merge for merge in release["merges"] if merge["sensitivity"] > 50]  # of s, not of n
        assert value / summed["grid"] == round(value / summed["grid"])
        errors.append(value - plain)
    assert answer["privacy"]["at"] == "distributed" and answer["privacy"]["epsilon"] == 20
    # 12 squares of deviations, between the quantiles at one in a million of what all three shares add up to.
    assert 0.6 < sum(e * e for e in errors) / (1.5 * summed["scale"]**2) < 55
    for node in three.nodes:
        line = [line for line in node.lines() if line.get("kind") == "encode"][-1]
        assert line["masked"] == "3 clients, threshold 2" and line["epsilon"] == pytest.approx(20) and "words" in line["shapes"]


def test_real_data_over_nodes_that_require_both():
    """The example of the docs: a mean, a histogram and a logistic regression of digits, with shares of noise under masks."""
    script = ROOT / "examples/private/nodes.py"
    done = subprocess.run([sys.executable, script, "5"], capture_output=True, text=True, timeout=300, env={**os.environ, "STARFOLD": COMMAND})
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert abs(said["mean"]["private"] - said["mean"]["plain"]) < 0.1
    assert max(abs(np.subtract(said["histogram"]["private"], said["histogram"]["plain"]))) < 25
    assert said["accuracy"] > 0.95 and said["masked"] and said["charged_at_north"] == pytest.approx(15, rel=1e-3)


@pytest.mark.parametrize("masks", ["", "[secure_aggregation]\nthreshold = 2\n"])
@pytest.mark.parametrize("privacy", ["", "[privacy]\nepsilon = 500\ndelta = 1e-6\n", '[privacy]\nepsilon = 500\ndelta = 1e-6\nat = "client"\n'])
def test_what_stays_at_nodes(nodes, privacy, masks):
    """States and results of a client's own under masks and noise."""
    for i, name in enumerate(("a", "b", "c")):
        nodes.add(name, hospital(i), policy="local_blocks = true\nmin_support = 1\n")
    program = "input x : [*]\nprivate state own : [*client] = 0\nstate t : [] = 0\nrepeat 4 {\n" \
              "  own <- own + 1\n  t <- t + sum[*](clip(own, 0, 3))\n}\noutput t\nkeep left = x - t\n"
    code, answer, err = nodes.run(nodes.study(program, X, extra=privacy + masks, keys=bool(masks)))
    assert code == 0, err
    t = float(array(answer["outputs"]["t"]))
    assert t == 27 if not privacy else abs(t - 27) < 5
    for i, node in enumerate(nodes.nodes):
        [left] = (node.folder / "private/kept").rglob("left.npy")
        np.testing.assert_allclose(np.load(left), hospital(i)["age"] - t, atol=1e-9)


def test_private_states_of_a_node_that_is_started_anew(nodes):
    """A node that is killed in the middle of a private run goes on with the states it had: without them, ten thousand would be missing."""
    for i, name in enumerate(("a", "b", "c")):
        nodes.add(name, hospital(i), policy="local_blocks = true\nmin_support = 1\n")
    program = "input x : [*]\nprivate state own : [*client] = 0\nstate t : [] = 0\nrepeat 200 {\n" \
              "  own <- own + 1\n  t <- t + sum[*](clip(own, 0, 200))\n}\noutput t\n"
    path = nodes.study(program, X, 'timeout = "60s"', extra='[privacy]\nepsilon = 20000\ndelta = 1e-6\nat = "client"\n')
    process = subprocess.Popen([nodes.command, "run", str(path), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def sent():
        return (nodes.nodes[1].folder / "node.ledger").read_bytes().count(b'"kind":"encode"')

    wait_until(lambda: process.poll() is not None or sent() >= 100)
    assert process.poll() is None
    nodes.nodes[1].kill()
    nodes.nodes[1].start()
    out, err = process.communicate(timeout=2 * LIMIT)
    assert process.returncode == 0, err
    answer = json.loads(out)
    scale = answer["privacy"]["rounds"][0]["scale"]
    # The deviation of 200 rounds with the noise of three clients each.
    assert abs(float(array(answer["outputs"]["t"])) - 3 * 200 * 201 / 2) < 5 * scale * math.sqrt(600) < 5000
    charged = [line for line in nodes.nodes[1].lines() if line.get("epsilon", 0) > 0]
    assert len(charged) == 200 and sum(line["epsilon"] for line in charged) == pytest.approx(20000)


def test_an_owner_requires_privacy(nodes, starfold):
    nodes.add("north", hospital(1), 'privacy = "required"')
    code, answer, _ = nodes.run(study(nodes, ""))
    assert code == 1 and answer["refused"] == {"client": "north", "rule": "privacy"}
    code, answer, _ = nodes.run(study(nodes, "epsilon = 1\nseed = 3\n"))
    assert code == 1 and answer["refused"]["rule"] == "privacy"
    assert nodes.run(study(nodes, "epsilon = 1\n"))[0] == 0


def test_a_budget_over_all_studies(nodes):
    policy = 'privacy = "required"\n[policy.budget]\nepsilon = 2.5\ndelta = 3e-6\n'
    nodes.add("north", hospital(1), policy)
    north = nodes.nodes[0]
    one = study(nodes, "epsilon = 1\ndelta = 1e-6\n")
    assert nodes.run(one)[0] == 0
    assert north.lines()[-1]["epsilon_left"] == pytest.approx(1.5) and north.lines()[-1]["delta_left"] == pytest.approx(2e-6)
    assert nodes.run(study(nodes, "epsilon = 1\ndelta = 1e-6\nat = \"client\"\n", NODE_SUM + "output t = sum[*](clip(x, 0, 1))\n", "other.toml"))[0] == 0
    north.stop()
    north.start()  # what was spent is on the disk
    code, answer, _ = nodes.run(one)
    assert code == 1 and answer["refused"] == {"client": "north", "rule": "budget"}
    assert nodes.run(study(nodes, "epsilon = 0.5\n", name="rest.toml"))[0] == 0
    code, answer, _ = nodes.run(study(nodes, "epsilon = 0.01\n", name="rest.toml"))
    assert code == 1 and answer["refused"]["rule"] == "budget"
    assert nodes.command_line("node", "ledger", north.file, "--verify").returncode == 0


def test_rounds_are_charged_as_they_run(nodes):
    nodes.add("north", hospital(1), "max_rounds = 1000\n[policy.budget]\nepsilon = 3\ndelta = 1e-5\n")
    loop = "input x : [*]\nstate t : [] = 50\nrepeat 8 {\n  t <- t + 0.001 * sum[*](clip(x - t, -1, 1))\n}\noutput t\n"
    code, answer, err = nodes.run(study(nodes, "epsilon = 2\ndelta = 1e-6\n", loop))
    assert code == 0, err
    charges = [line for line in nodes.nodes[0].lines() if line.get("kind") == "encode"]
    assert len(charges) == 8 and sum(line["epsilon"] for line in charges) == pytest.approx(2, rel=1e-6)
    assert [line.get("delta", 0) for line in charges] == [1e-6] + [0] * 7
    spent = np.cumsum([line["epsilon"] for line in charges])
    assert spent == pytest.approx([r["epsilon"] for r in answer["privacy"]["rounds"]], rel=1e-6)


def test_what_costs_nothing_is_not_charged(nodes):
    """Where records are replaced their number is known: a round that releases it costs neither epsilon nor delta."""
    nodes.add("north", hospital(1), "[policy.budget]\nepsilon = 1\ndelta = 1e-6\n")
    program = "input x : [*]\nlet n = records(x)\noutput s = sum[*](clip(x - n, 0, 100))\noutput n\n"
    code, answer, err = nodes.run(study(nodes, 'epsilon = 1\ndelta = 1e-6\nneighbours = "replace"\n', program))
    assert code == 0, err
    assert answer["outputs"]["n"]["data"] == [200]
    charges = [(line.get("epsilon", 0), line.get("delta", 0)) for line in nodes.nodes[0].lines() if line.get("kind") == "encode"]
    assert charges == [(0, 0), (1, 1e-6)]


def test_thin_cells_may_leave_with_the_clients_own_noise(nodes):
    columns = hospital(1)
    nodes.add("north", columns)
    thin = f"input x : [*]\noutput s = sum[*](x > {sorted(columns['age'])[-3]})\n"  # two records, or one
    assert nodes.run(study(nodes, "epsilon = 1\n", thin))[0] == 1  # the server would see it
    assert nodes.run(study(nodes, 'epsilon = 1\nat = "client"\n', thin))[0] == 0


def test_an_owner_tries_a_private_study(nodes):
    node = nodes.add("north", hospital(1), 'privacy = "required"\n[policy.budget]\nepsilon = 0.5\ndelta = 0\n', start=False)
    refused = nodes.command_line("node", "try", node.file, study(nodes, "epsilon = 1\n"))
    assert refused.returncode == 1 and "budget" in refused.stdout
    allowed = nodes.command_line("node", "try", node.file, study(nodes, "epsilon = 0.5\n"))
    assert allowed.returncode == 0, allowed.stdout + allowed.stderr


SHARES = '[privacy]\nepsilon = {}\ndelta = 1e-6\nat = "distributed"\n'
MASKS = "[secure_aggregation]\nthreshold = 2\n"


def test_an_owner_tries_a_study_with_shares_of_noise(nodes):
    """What the trial says is what the node does, also where the decision rests on the group, or on what other studies have spent."""
    policy = 'privacy = "required"\nsecure_aggregation = "required"\n[policy.budget]\nepsilon = 3\ndelta = 1e-5\n'
    for i, name in enumerate(("a", "b", "c")):
        nodes.add(name, hospital(i), policy)
    node = nodes.nodes[0]
    study = nodes.study(NODE_SUM, X, extra=SHARES.format(2) + MASKS, keys=True)

    def tried(path=study):
        before = (node.folder / "node.ledger").read_bytes()
        done = nodes.command_line("node", "try", node.file, path)
        assert (node.folder / "node.ledger").read_bytes() == before
        return done.returncode, done.stdout + done.stderr

    code, said = tried()
    assert code == 0 and "1 round would be answered, 2 numbers" in said and "lets this study run to its end" in said, said
    assert nodes.run(study)[0] == 0
    code, said = tried()  # of 3, 1 is left
    assert code == 1 and "rule budget" in said and nodes.run(study)[1]["refused"]["rule"] == "budget", said
    code, said = tried(nodes.study(NODE_SUM, X, extra=SHARES.format(0.5), name="open.toml"))
    assert code == 1 and "[secure_aggregation]" in said, said

    node.stop()
    node.write(policy.replace("[policy", "minimum_clients = 4\n[policy"))
    code, said = tried()
    assert code == 1 and "rule secure_aggregation" in said and "`minimum_clients` asks for 4" in said, said
    keys = [other.key() for other in nodes.nodes]
    rest = nodes.study(NODE_SUM, X, extra=SHARES.format(1) + MASKS, keys=True, name="rest.toml")
    node.write(policy.replace("[policy", f'peers = ["{keys[1]}"]\n[policy'))
    code, said = tried(rest)
    assert code == 1 and "key of client c is not among the `peers`" in said, said
    node.write(policy.replace("[policy", f"peers = {json.dumps(keys[1:])}\n[policy"))
    assert tried(rest)[0] == 0
    code, said = tried(nodes.study(NODE_SUM, X, extra=SHARES.format(1) + MASKS, name="free.toml"))
    assert code == 0 and "does not pin the keys" in said, said


def test_an_owner_tries_what_waits_for_approval(nodes):
    node = nodes.add("north", hospital(1), 'programs = "approved"')
    path = study(nodes, "epsilon = 1\n")
    assert nodes.run(path)[1]["refused"]["rule"] == "programs"
    tried = nodes.command_line("node", "try", node.file, path)
    assert tried.returncode == 0 and "waits for that" in tried.stdout, tried.stdout + tried.stderr
    ident = node.lines()[-1]["agreement"]
    assert nodes.command_line("node", "deny", ident, node.file).returncode == 0
    assert nodes.run(path)[1]["refused"]["rule"] == "denied"
    tried = nodes.command_line("node", "try", node.file, path)
    assert tried.returncode == 1 and "denied" in tried.stdout, tried.stdout + tried.stderr
