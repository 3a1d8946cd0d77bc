"""Made-up federations: --simulate, and many small clients with data of their own."""

import json
import re

import numpy as np
import pytest

PROGRAM = """
input x : [*, p]
input y : [*]
let d = x - mean[*](x)
output n = records(x)
output s = sum[*](x)
output v = d' @ d / (records(x) - 1)
output most = max[*](y)
output share = mean[*](y)
"""


def simulated(starfold, program, spec, *more, code=0):
    run = starfold("run", program, "--simulate", spec, *more, "--json")
    assert run.code == code, run.err
    return run.json() if code == 0 else run


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "moments.fold"
    path.write_text(PROGRAM)
    return path


def values(report, name):
    output = report["outputs"][name]
    return np.array(output["data"], dtype=float).reshape(output["shape"])


def test_counts_and_values_are_those_asked_for(starfold, program):
    report = simulated(starfold, program, "clients=5000,records=poisson(20),y=bernoulli(0.3)", "--set", "p=3")
    counts = np.array([client["records"] for client in report["clients"]])
    assert len(counts) == 5000 and counts.sum() == values(report, "n")
    assert abs(counts.mean() - 20) < 0.4 and abs(counts.var() - 20) < 2
    assert abs(values(report, "share") - 0.3) < 0.01
    np.testing.assert_allclose(values(report, "v"), np.eye(3), atol=0.03)
    assert len({client["name"] for client in report["clients"]}) == 5000
    assert len({client["bytes_sent"] for client in report["clients"]}) == 1


def test_a_seed_means_the_same_records(starfold, program):
    def sums(*more, seed=1):
        spec = f"clients=50,records=uniform(0,9),seed={seed}"
        return values(simulated(starfold, program, spec, "--set", "p=2", *more), "s").tolist()

    assert sums() == sums("--threads", "1")
    assert sums() != sums(seed=2)


def test_the_reference_gives_the_same(starfold, program):
    spec = "clients=40,records=geometric(4),x=uniform(-1,1)"
    fast = simulated(starfold, program, spec, "--set", "p=2")
    slow = simulated(starfold, program, spec, "--set", "p=2", "--reference")
    assert [c["records"] for c in fast["clients"]] == [c["records"] for c in slow["clients"]]
    for name in fast["outputs"]:
        np.testing.assert_allclose(values(fast, name), values(slow, name), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("spec, code, words", [
    ("clients=3", 2, ["records"]),
    ("clients=0,records=3", 2, ["whole number"]),
    ("clients=3,records=possion(3)", 2, ["did you mean poisson?"]),
    ("clients=3,records=poisson(-1)", 2, ["poisson(mean)"]),
    ("clients=3,records=5,z=1", 2, ["no federated input z"]),
    ("clients=3,records=5,clients=4", 2, ["twice"]),
    ("clients=3,records=normal(-50,1)", 3, ["fewer than 0"]),
    ("clients=100000000,records=100000", 3, ["GB"]),
    ("clients=10000,records=1e12", 3, ["counted"]),
])
def test_mistakes(starfold, program, spec, code, words):
    run = simulated(starfold, program, spec, "--set", "p=2", code=code)
    for word in words:
        assert word in run.err


def test_a_size_that_nothing_fixes(starfold, program):
    run = simulated(starfold, program, "clients=3,records=5", code=3)
    assert "--set p=10" in run.err


def test_a_simulation_says_that_its_messages_are_computed(starfold, program, tmp_path):
    arguments = ("run", program, "--simulate", "clients=50,records=3", "--set", "p=2")
    report = starfold(*arguments, "--json").json()
    assert report["packed_clients"] == 50 and len({client["bytes_sent"] for client in report["clients"]}) == 1
    shown = starfold(*arguments, "--out", tmp_path / "out").out
    assert "the records of all clients were folded together" in shown and "would have sent" in shown
    page = (tmp_path / "out" / "report.html").read_text()
    assert "the records of all clients were folded together" in page and "They sent summaries" not in page
    # One client alone is no pack: its message is a message.
    alone = starfold("run", program, "--simulate", "clients=1,records=3", "--set", "p=2", "--json").json()
    assert alone["packed_clients"] == 0


def test_a_failure_in_a_simulation_names_client_and_line(starfold, tmp_path):
    path = tmp_path / "p.fold"
    path.write_text("input x : [*]\ninput t : [3] = [1, 2, 3]\noutput s = sum[*](\n  t[x])\n")
    run = starfold("run", path, "--simulate", "clients=200,records=uniform(0,4),x=integers(1,3)")
    assert run.code == 0, run.err
    run = starfold("run", path, "--simulate", "clients=200,records=uniform(0,4),x=poisson(1.2),seed=3")
    assert run.code == 3
    assert re.search(r"error: client \d+: ", run.err) and "p.fold:4:3" in run.err, run.err


def test_a_failure_names_client_and_line(starfold, federation, tmp_path):
    path = tmp_path / "p.fold"
    path.write_text("input x : [*]\ninput t : [3] = [1, 2, 3]\noutput s = sum[*](\n  t[x])\n")
    clients = {f"c{i}": {"x": np.array([1.0, 2, 4 if i == 23 else 3])} for i in range(30)}
    run = starfold("run", path, *federation(clients))
    assert run.code == 3
    assert "client c23: " in run.err and "p.fold:4:3" in run.err, run.err


def test_clients_with_data_are_asked_one_by_one(starfold, program, federation):
    clients = federation({f"c{i}": {"x": np.ones((2, 2)), "y": np.zeros(2)} for i in range(40)})
    assert starfold("run", program, *clients, "--json").json()["packed_clients"] == 0


def test_many_small_clients_with_data(starfold, program, tmp_path):
    random = np.random.default_rng(1)
    parts, arguments = [], []
    for i in range(40):
        x = random.normal(size=(i % 5, 3))
        np.savez(tmp_path / f"{i}.npz", x=x, y=x[:, 0])
        parts.append(x)
        arguments += ["--client", f"c{i}={tmp_path / f'{i}.npz'}"]
    run = starfold("run", program, *arguments, "--json")
    assert run.code == 0, run.err
    report = run.json()
    pooled = np.concatenate(parts)
    assert [c["records"] for c in report["clients"]] == [i % 5 for i in range(40)]
    assert [c["name"] for c in report["clients"]] == [f"c{i}" for i in range(40)]
    np.testing.assert_allclose(values(report, "s"), pooled.sum(0), rtol=1e-12)
    np.testing.assert_allclose(values(report, "v"), np.cov(pooled.T), rtol=1e-12)


def test_clients_keep_their_order(starfold, program, federation, tmp_path):
    sizes = [3] * 10 + [40_000] + [5] * 10
    clients = federation({f"c{i}": {"x": np.ones((n, 2)), "y": np.zeros(n)} for i, n in enumerate(sizes)})
    run = starfold("run", program, *clients, "--out", tmp_path / "out", "--json", "--client-details")
    assert [client["records"] for client in run.json()["clients"]] == sizes
    written = json.loads((tmp_path / "out" / "run.json").read_text())["clients"]
    assert [client["name"] for client in written] == [f"c{i}" for i in range(len(sizes))]
    for i, client in enumerate(written):
        assert f"c{i}." in client["data"]["file"]


def test_many_clients_that_are_all_wrong(starfold, program, federation):
    clients = federation({f"c{i}": {"x": np.ones((2, 2, 2)), "y": np.zeros(2)} for i in range(30)})
    run = starfold("run", program, *clients)
    assert run.code == 3 and "client c0" in run.err


def test_what_is_for_data_only(starfold, program):
    run = simulated(starfold, program, "clients=3,records=5", "--set", "p=2", "--missing", "drop", code=2)
    assert "--missing" in run.err


def test_among_many_clients_the_wrong_one_is_named(starfold, program, tmp_path):
    arguments = []
    for i in range(30):
        x = np.ones((2, 3 if i != 17 else 4))
        np.savez(tmp_path / f"{i}.npz", x=x, y=x[:, 0])
        arguments += ["--client", f"c{i}={tmp_path / f'{i}.npz'}"]
    run = starfold("run", program, *arguments)
    assert run.code == 3 and "client c17" in run.err


def test_a_client_is_not_blamed_for_what_another_remembers(starfold, program):
    """What private states hold when a round fails is not what they held at first: only the part is named."""
    text = """input x : [*, p]
input id : [*client]
private state own : [*client] = 0
state t = 0
repeat 3 {
  let (r, next) = each client { (sum(one_hot(where(t == 0, 1, own), 3)), where(id > 1, 9, 1)) }
  own <- next
  t <- t + sum[*](r)
}
output t
"""
    program.write_text(text)
    run = starfold("run", program, "--simulate", "clients=24,records=6,seed=3", "--set", "p=2")
    assert run.code == 3 and "client 1 to client 24: one_hot" in run.err, run.err


def test_an_error_in_a_block_of_many_is_that_of_one(starfold, program):
    """A wrong index comes before what would follow from it, as in the definition."""
    program.write_text("input x : [*, p]\ninput t : [2] = [1, 2]\nlet r = each client {\n  let j = 9 + 0 * records(x)\n"
                       "  solve(diag(t[j] * ones(p)), mean[*](x) * 0 + 1)\n}\noutput s = sum[*](r)\n")
    words = ["run", program, "--simulate", "clients=24,records=6,seed=3", "--set", "p=2"]
    for options in ([], ["--reference"]):
        run = starfold(*words, *options)
        assert run.code == 3 and "1 index of a table of length 2" in run.err, run.err
    assert "client 1: 1 index" in starfold(*words).err


def test_blocks_of_more_clients_than_run_at_once(starfold, program):
    """A second group and a second block of clients, with results of records, rows and private states."""
    program.write_text("""input x : [*, p]
private state own : [*client, p] = zeros(p)
state t = zeros(p)
repeat 2 {
  let (m, c, g) = each client { (mean[*](x + 1) + own, x - mean[*](x), x' @ x) }
  own <- tanh(m) / 3
  t <- t / 7 + mean[*](m * g[:, 1, :]) + sum[*](square(c)) / 100
}
output t
""")
    for p, records in ((3, 4), (40, 2)):
        words = ["run", program, "--json", "--simulate", f"clients=1300,records={records},seed=5", "--set", f"p={p}"]
        run, reference = starfold(*words).json(), starfold(*words, "--reference").json()
        assert run["packed_clients"] == 1300
        np.testing.assert_allclose(run["outputs"]["t"]["data"], reference["outputs"]["t"]["data"], rtol=1e-9)
        one, two = (starfold(*words, "--threads", str(n)).json()["outputs"] for n in (1, 2))
        assert one == two
