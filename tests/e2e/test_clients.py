"""Values per client: what a NumPy program that knows the split computes, what stays at clients, samples, nodes."""
import importlib.util
import json
import subprocess

import numpy as np
from conftest import COMMAND, ROOT, array
from node_federation import hospital, wait_until

FEDAVG = """
input x : [*, p]
input y : [*]
state theta : [p] = zeros(p)
repeat 50 {
  let (local, n) = each client {
    state b : [p] = theta
    repeat 5 {
      let loss = mean[*](softplus(x @ b) - y * (x @ b))
      b <- b - 0.5 * grad(loss, b)
    }
    (b, records(x))
  }
  theta <- sum[*](n[:, new] * local) / sum[*](n)
}
output theta
"""

FEDPROX = FEDAVG.replace("grad(loss, b)", "(grad(loss, b) + 0.3 * (b - theta))")

SCAFFOLD = """
input x : [*, p]
input y : [*]
input rate : [] = 0.2
state theta = zeros(p)
state control = zeros(p)
private state own : [*client, p] = zeros(p)
repeat 30 {
  let (local, next) = each client {
    state b = theta
    repeat 4 {
      let loss = mean[*](softplus(x @ b) - y * (x @ b))
      b <- b - rate * (grad(loss, b) - own + control)
    }
    (b, own - control + (theta - b) / (4 * rate))
  }
  control <- control + mean[*](next - own)
  theta <- mean[*](local)
  own <- next
}
keep predicted = sigmoid(x @ theta)
keep own
output theta
"""


def split(seed=1, sizes=(20, 7, 1, 34), p=3):
    random = np.random.default_rng(seed)
    clients = {}
    for i, n in enumerate(sizes):
        x = random.normal(size=(n, p)) + 0.3 * i
        y = (random.uniform(size=n) < 1 / (1 + np.exp(-(x @ np.array([1.0, -1, 0.5]) + 0.5 * i - 1)))).astype(float)
        clients[f"site{i}"] = {"x": x, "y": y}
    return clients


def gradient(client, b):
    return client["x"].T @ (1 / (1 + np.exp(-client["x"] @ b)) - client["y"]) / len(client["y"])


def fedavg(clients, prox=0.0, p=3, rounds=50):
    theta = np.zeros(p)
    for _ in range(rounds):
        models, counts = [], []
        for client in clients.values():
            b = theta.copy()
            for _ in range(5):
                b = b - 0.5 * (gradient(client, b) + prox * (b - theta))
            models.append(b)
            counts.append(len(client["y"]))
        theta = np.array(counts) @ np.array(models) / sum(counts)
    return theta


def scaffold(clients, rate=0.2, p=3, rounds=30, steps=4):
    theta, control = np.zeros(p), np.zeros(p)
    own = {name: np.zeros(p) for name in clients}
    for _ in range(rounds):
        models, nexts = {}, {}
        for name, client in clients.items():
            b = theta.copy()
            for _ in range(steps):
                b = b - rate * (gradient(client, b) - own[name] + control)
            models[name] = b
            nexts[name] = own[name] - control + (theta - b) / (steps * rate)
        control = control + np.mean([nexts[n] - own[n] for n in clients], axis=0)
        theta = np.mean(list(models.values()), axis=0)
        own = nexts
    return theta, own


def theta_of(result):
    assert result.code == 0, result.err
    return array(result.json()["outputs"]["theta"])


def test_fedavg_and_fedprox_are_numpys(starfold, federation, program):
    clients = split()
    arguments = federation(clients)
    for text, prox in ((FEDAVG, 0.0), (FEDPROX, 0.3)):
        path = program(text)
        want = fedavg(clients, prox)
        for more in ([], ["--reference"], ["--threads", "1"]):
            got = starfold("run", path, "--json", *arguments, *more)
            assert np.abs(theta_of(got) - want).max() < 1e-10
        assert starfold("run", path, "--json", *arguments).json()["rounds"] == 50  # a block costs no round
        for rounds in (1, 2, 9):  # on the way
            got = starfold("run", program(text.replace("repeat 50", f"repeat {rounds}"), "fewer.fold"), "--json", *arguments)
            assert np.abs(theta_of(got) - fedavg(clients, prox, rounds=rounds)).max() < 1e-10


def test_scaffold_is_numpys_and_what_is_kept_stays(starfold, federation, program, tmp_path):
    clients = split(2)
    arguments = federation(clients)
    want, own = scaffold(clients)
    result = starfold("run", program(SCAFFOLD), "--json", *arguments, "--out", tmp_path / "out")
    assert np.abs(theta_of(result) - want).max() < 1e-10
    for rounds in (1, 2, 9):  # on the way
        got = starfold("run", program(SCAFFOLD.replace("repeat 30", f"repeat {rounds}"), "fewer.fold"), "--json", *arguments)
        assert np.abs(theta_of(got) - scaffold(clients, rounds=rounds)[0]).max() < 1e-10
    for name, client in clients.items():
        kept = np.load(tmp_path / "out" / "clients" / name / "predicted.npy")
        assert np.abs(kept - 1 / (1 + np.exp(-client["x"] @ want))).max() < 1e-10
        assert np.abs(np.load(tmp_path / "out" / "clients" / name / "own.npy")[0] - own[name]).max() < 1e-10
    # Again into the same folder: it holds what was written before, and nothing else.
    assert starfold("run", program(SCAFFOLD), *arguments, "--out", tmp_path / "out").code == 0
    # Nothing of it is sent: the messages are those of the program without it.
    without = program("\n".join(line for line in SCAFFOLD.splitlines() if not line.startswith("keep")), "without.fold")
    plain = starfold("run", without, "--json", *arguments).json()
    kept = result.json()
    assert kept["rounds"] == plain["rounds"] + 1  # the results are computed after the last iteration
    numbers = [c["bytes_sent"] for c in kept["clients"]]
    assert max(numbers) - max(c["bytes_sent"] for c in plain["clients"]) < 400  # an empty message
    reference = starfold("run", program(SCAFFOLD), "--json", *arguments, "--reference")
    assert np.abs(theta_of(reference) - want).max() < 1e-10


def test_the_curves_of_the_documentation(tmp_path, monkeypatch):
    """docs/learning.md: accuracy of FedAvg and SCAFFOLD on digits split by label, as drawn and as written."""
    monkeypatch.setenv("STARFOLD", COMMAND)
    place = ROOT / "examples" / "clients" / "curves.py"
    spec = importlib.util.spec_from_file_location("curves", place)
    curves = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(curves)
    drawn = json.loads((ROOT / "docs" / "clients-digits.json").read_text())
    curves.split_by_label(tmp_path)
    held_out = len(np.load(tmp_path / "test_y.npy"))
    for name in ("fedavg", "scaffold"):
        for steps in curves.STEPS:
            got = curves.accuracy(tmp_path, name, steps)
            # Another processor's rounding may turn over a digit that is in between.
            np.testing.assert_allclose(got, drawn[f"{name}, {steps} steps"], rtol=0, atol=1.5 / held_out)
    text = (ROOT / "docs" / "learning.md").read_text()
    assert "](clients-digits.svg)" in text and (ROOT / "docs" / "clients-digits.svg").read_text().count("<path") > 4
    for name, steps, after in (("fedavg", 50, 60), ("scaffold", 50, 60), ("fedavg", 50, 10), ("scaffold", 50, 10),
                               ("fedavg", 5, 60), ("scaffold", 5, 60)):
        assert f"{100 * drawn[f'{name}, {steps} steps'][after - 1]:.1f} %" in text


def test_check_says_that_the_split_matters(starfold, program):
    answer = starfold("check", program(SCAFFOLD), "--json").json()
    assert answer["ok"] is True and answer["split"] is True
    merges = [merge for one in answer["rounds"] for merge in one["merges"]]
    assert merges and all(merge["split"] is True for merge in merges)
    assert [kept["name"] for one in answer["rounds"] for kept in one.get("keeps", [])] == ["predicted", "own"]
    types = {entry["name"]: entry["type"] for entry in answer["types"]}
    assert types["local"] == "[*client, p]" and types["own"] == "[*client, p]" and types["b"] == "[p]"
    text = starfold("check", program(SCAFFOLD)).out
    assert "depends on how the records are split" in text and "stays" in text
    mixed = starfold("check", program("input x : [*]\nlet a = each client { sum[*](x) }\n"
                                      "output t = sum[*](x)\noutput s = sum[*](square(a))\n"), "--json").json()
    assert sorted(bool(m.get("split")) for r in mixed["rounds"] for m in r["merges"]) == [False, True]
    plain = starfold("check", program("input x : [*]\noutput t = sum[*](x)\n"), "--json").json()
    assert "split" not in plain and "split" not in plain["rounds"][0]["merges"][0]
    explained = starfold("explain", program(SCAFFOLD))
    assert explained.code == 0 and "each client" in explained.out and "repeat up to 4 times" in explained.out
    assert "cluster" in starfold("explain", program(SCAFFOLD), "--dot").out
    assert starfold("explain", program(SCAFFOLD), "--json").code == 0
    base = starfold("check", program(SCAFFOLD), "--base", "--json").json()
    assert base["ok"] is False and any("each client" in d["message"] for d in base["diagnostics"])


def test_batches_are_the_same_everywhere(starfold, federation, program):
    text = """
input x : [*, p]
input y : [*]
state theta = zeros(p)
state turn = 0
repeat 5 {
  let (local, steps, seen) = each client {
    state b = theta
    state steps = 0
    state seen = 0
    repeat batches(4, turn) {
      b <- b - 0.1 * grad(mean[*](square(x @ b - y)), b)
      steps <- steps + 1
      seen <- seen + records(x)
    }
    (b, steps, seen)
  }
  turn <- turn + 1
  theta <- mean[*](local)
}
output theta
"""
    text = text.replace("  theta <- mean[*](local)\n", "  trace steps = sum[*](steps)\n  trace seen = sum[*](seen)\n  theta <- mean[*](local)\n")
    clients = split(3, (10, 0, 1, 8))
    arguments = federation(clients)
    path = program(text)
    runs = [starfold("run", path, "--json", *arguments, *more).json() for more in ([], ["--threads", "1"], ["--reference"])]
    assert runs[0]["outputs"] == runs[1]["outputs"]
    assert np.abs(array(runs[0]["outputs"]["theta"]) - array(runs[2]["outputs"]["theta"])).max() < 1e-12
    assert runs[0]["traces"]["steps"] == [3 + 0 + 1 + 2] * 5  # the last batch may be smaller; no records, no iterations
    assert runs[0]["traces"]["seen"] == [19] * 5
    whole = text.replace("batches(4, turn)", "batches(1000, turn)")  # one batch of all
    steps = starfold("run", program(whole, "whole.fold"), "--json", *arguments).json()
    assert steps["traces"]["steps"] == [3] * 5
    wrong = starfold("run", program(text.replace("batches(4", "batches(0.5"), "wrong.fold"), *arguments)
    assert wrong.code == 3 and "whole number of at least 1" in wrong.err


def test_one_row_per_client(starfold, federation, program):
    text = ("input x : [*]\ninput w : [*client, q]\nlet s = each client { sum[*](x) * w }\n"
            "output total = sum[*](s)\noutput n = records(w)\n")
    random = np.random.default_rng(4)
    clients = {f"c{i}": {"x": random.normal(size=i), "w": random.normal(size=(1, 2))} for i in range(3)}
    answer = starfold("run", program(text), "--json", *federation(clients)).json()
    want = sum(c["x"].sum() * c["w"][0] for c in clients.values())
    assert np.abs(array(answer["outputs"]["total"]) - want).max() < 1e-12
    assert array(answer["outputs"]["n"]) == 3
    clients["c1"]["w"] = random.normal(size=(2, 2))
    wrong = starfold("run", program(text), *federation(clients))
    assert wrong.code == 3 and "exactly one row" in wrong.err and "c1" in wrong.err


def test_derivatives_of_a_marginal_likelihood(starfold, federation, program):
    """The likelihood of a random intercept by client, and its gradient, against differences."""
    text = """
input x : [*, p]
input y : [*]
input theta : [q]
let marginal = each client {
  let r = y - x @ theta[1:p]
  let s2 = exp(theta[p + 1])
  let t2 = exp(theta[p + 2])
  let n = records(x)
  let total = sum[*](r)
  -0.5 * (n * log(s2) + log(1 + n * t2 / s2) + (sum[*](square(r)) - t2 / (s2 + n * t2) * total^2) / s2)
}
output value = sum[*](marginal)
output g = grad(sum[*](marginal), theta)
output h = hessian(sum[*](marginal), theta)
output rows = sum[*](outer(grad(marginal, theta), grad(marginal, theta)))
"""
    text = text.replace("[q]", "[p + 2]")
    arguments = federation(split(5))
    path = program(text)
    theta = np.array([0.3, -0.2, 0.1, 0.4, -0.6])

    def run(at, *more):
        result = starfold("run", path, "--json", *arguments, "--set", f"theta={json.dumps(list(at))}", *more)
        assert result.code == 0, result.err
        return {name: array(value) for name, value in result.json()["outputs"].items()}

    got = run(theta)
    reference = run(theta, "--reference")
    for name in got:
        assert np.abs(got[name] - reference[name]).max() < 1e-9
    step = 1e-5
    for i in range(5):
        up, down = theta.copy(), theta.copy()
        up[i] += step
        down[i] -= step
        high, low = run(up), run(down)
        assert abs((high["value"] - low["value"]) / (2 * step) - got["g"][i]) < 1e-6
        assert np.abs((high["g"] - low["g"]) / (2 * step) - got["h"][i]).max() < 1e-6


def test_samples_of_clients(starfold, federation, program, tmp_path):
    clients = split(6, (5,) * 8)
    arguments = federation(clients)
    path = program("input x : [*, p]\nstate s = zeros(p)\nrepeat 20 {\n  let m = sum[*](x + 0 * s)\n"
                   "  trace n = sum[*](1 + 0 * (x @ s))\n  s <- s + m\n}\noutput s\n")
    run = ["run", path, "--json", *arguments, "--sample", "3", "--sample-seed", "7"]
    one, two = starfold(*run, "--out", tmp_path / "out"), starfold(*run)
    assert one.code == 0, one.err
    assert one.json()["outputs"] == two.json()["outputs"]
    assert one.json()["traces"]["n"] == [15.0] * 20
    other = starfold("run", path, "--json", *arguments, "--sample", "3", "--sample-seed", "8").json()
    assert other["outputs"] != one.json()["outputs"]
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["options"]["sample"] == 3 and record["options"]["sample_seed"] == 7
    assert isinstance(record["options"]["sample_seed"], int)
    report = (tmp_path / "out" / "report.html").read_text()
    assert "Every round was asked of 3 of the 8 clients" in report and "the messages of all clients" not in report
    assert "the 3 clients drawn for the round" in report
    said = starfold("run", path, *arguments, "--sample", "3")
    assert "every round was asked of 3 of the 8 clients" in said.out + said.err
    refused = starfold("run", path, *arguments, "--sample", "3", "--reference")
    assert refused.code == 2 and "--sample" in refused.err
    assert starfold("run", path, *arguments, "--sample", "9").code == 2
    study = tmp_path / "study.toml"
    study.write_text(f'program = "{path}"\n[federation]\nsample = 3\nsample_seed = 7\n' +
                     "".join(f'[[client]]\nname = "{n}"\ndata = "{tmp_path / n}.npz"\n' for n in clients))
    from_study = starfold("run", study, "--json")
    assert from_study.code == 0, from_study.err
    assert from_study.json()["outputs"] == one.json()["outputs"]
    # SCAFFOLD over a sample: who is not asked keeps its control variate.
    assert starfold("run", program(SCAFFOLD, "scaffold.fold"), "--json", *arguments, "--sample", "4").code == 0


SMALL = SCAFFOLD.replace("x : [*, p]", "raw : [*, p]").replace("input y", "let x = raw / 100\ninput y").replace("repeat 30", "repeat 6")
NODE_INPUTS = 'raw = ["age", "bmi"]\ny = "y"'


def test_nodes_keep_private_states_and_results(three):
    local = three.run(three.local(SMALL, NODE_INPUTS))
    assert local[0] == 0, local[2]
    refused = three.run(three.study(SMALL, NODE_INPUTS))
    assert refused[0] == 1 and refused[1]["refused"]["rule"] == "local_blocks"


def test_going_on_with_private_states(nodes):
    for i, name in enumerate(("a", "b")):
        nodes.add(name, hospital(i), policy="local_blocks = true\nmax_ratio = 1e9\nmax_total_ratio = 1e9")
    local = nodes.run(nodes.local(SMALL, NODE_INPUTS))
    code, answer, err = nodes.run(nodes.study(SMALL, NODE_INPUTS))
    assert code == 0, err
    assert answer["outputs"] == local[1]["outputs"]
    kept = [list(node.folder.glob("**/kept/*/predicted.npy")) for node in nodes.nodes]
    assert all(len(files) == 1 for files in kept)
    assert [len(np.load(files[0])) for files in kept] == [len(hospital(i)["y"]) for i in range(2)]


def test_killed_with_private_states_and_resumed_to_the_same_bits(nodes):
    """A node and the coordinator are killed in the middle, three times: control variates go on where they were."""
    for i, name in enumerate(("a", "b")):
        nodes.add(name, hospital(i), policy="local_blocks = true\nmax_ratio = 1e9\nmax_total_ratio = 1e9\nmax_rounds = 100000")
    program = SMALL.replace("repeat 6", "repeat 120")
    expected = nodes.run(nodes.local(program, NODE_INPUTS))[1]["outputs"]
    study = nodes.study(program, NODE_INPUTS, 'checkpoint = "run"\ntimeout = "60s"')
    for turn in range(3):
        resume = ["--resume"] if (nodes.folder / "run/checkpoint").exists() else []
        before = len(nodes.nodes[0].lines())
        process = subprocess.Popen([nodes.command, "run", str(study), "--json", *resume], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_until(lambda: len(nodes.nodes[0].lines()) > before + 10 or process.poll() is not None)
        nodes.nodes[turn % 2].kill()
        process.kill()
        process.communicate()
        nodes.nodes[turn % 2].start()
    code, answer, err = nodes.run(study, "--resume")
    assert code == 0, err
    assert answer["outputs"] == expected


def table(name):
    lines = (ROOT / "tests" / "data" / name).read_text().split()
    return {key: np.array([float(row.split(",")[i]) for row in lines[1:]]) for i, key in enumerate(lines[0].split(","))}


def test_mixed_models_and_meta_analysis_are_rs(starfold, federation):
    """lme4's random intercept by site and metafor's meta-analyses, to 1e-7."""
    figures = json.loads((ROOT / "tests" / "reference" / "clients.json").read_text())
    cars = table("mtcars.csv")
    sites = {f"carb{int(c)}": cars["carb"] == c for c in sorted(set(cars["carb"]))}
    clients = {name: {"x": np.stack([cars["qsec"], cars["am"]], axis=1)[of], "y": cars["mpg"][of]} for name, of in sites.items()}
    got = starfold("run", "client_intercept", "--json", *federation(clients))
    assert got.code == 0, got.err
    for name, want in figures["random_intercept"].items():
        np.testing.assert_allclose(array(got.json()["outputs"][name]), want, rtol=1e-7)
    insects = table("insects.csv")
    spray = sum((i + 1) * insects[name] for i, name in enumerate("BCDEF"))
    clients = {f"spray{int(s)}": {"y": insects["count"][spray == s]} for s in sorted(set(spray))}
    out = {name: array(value) for name, value in starfold("run", "meta", "--json", *federation(clients)).json()["outputs"].items()}
    np.testing.assert_allclose([out["fixed"], out["fixed_se"], out["q"]], [figures["fixed"][k] for k in ("mean", "se", "q")], rtol=1e-7)
    for method in ("dl", "reml"):
        np.testing.assert_allclose([out[method], out[method + "_se"], out["tau2_" + method]],
                                   [figures[method][k] for k in ("mean", "se", "tau2")], rtol=1e-7)
    # Clients without a variance take no part, and the answer says how many do.
    clients |= {"empty": {"y": np.zeros(0)}, "single": {"y": np.array([40.0])}, "constant": {"y": np.array([3.0, 3.0])}}
    more = {name: array(value) for name, value in starfold("run", "meta", "--json", *federation(clients)).json()["outputs"].items()}
    assert more["clients"] == len(set(spray))
    for name, value in out.items():
        np.testing.assert_allclose(more[name], value, rtol=1e-12, err_msg=name)


def test_a_random_intercept_needs_two_clients_with_records(starfold, federation):
    clients = {"full": {"x": np.arange(6.0)[:, None], "y": np.arange(6.0) ** 2}, "empty": {"x": np.zeros((0, 1)), "y": np.zeros(0)}}
    result = starfold("run", "client_intercept", *federation(clients))
    assert result.code == 3 and "there are too few clients or records" in result.err


def test_ready_made_programs_run(starfold, federation):
    arguments = federation(split(9))
    losses = {}
    for name in ("fedavg", "fedprox", "scaffold", "fedadam"):
        result = starfold("run", name, "--json", *arguments)
        assert result.code == 0, (name, result.err)
        losses[name] = result.json()["traces"]["loss"]
        assert losses[name][-1] < losses[name][0], name
    clients = split(9)
    for client in clients.values():
        client["y"] = client["y"] + 1
    result = starfold("run", "network", "--json", *federation(clients))
    assert result.code == 0, result.err
    assert result.json()["traces"]["loss"][-1] < result.json()["traces"]["loss"][0]


def newton(client, ridge=1.0, start=0.0):
    x = np.hstack([np.ones((len(client["x"]), 1)), client["x"]])
    b = np.full(x.shape[1], start)
    for _ in range(100):
        mu = 1 / (1 + np.exp(-x @ b))
        h = x.T @ ((mu * (1 - mu))[:, None] * x) + ridge * np.eye(x.shape[1])
        b = b - np.linalg.solve(h, x.T @ (mu - client["y"]) + ridge * b)
    return b


def test_one_shot_averaging_is_numpys(starfold, federation, tmp_path):
    clients = split(4)
    counts = np.array([len(c["y"]) for c in clients.values()])
    want = counts @ np.array([newton(c) for c in clients.values()]) / counts.sum()
    got = starfold("run", "one_shot", "--json", *federation(clients), "--out", tmp_path / "out")
    assert np.abs(theta_of(got) - want).max() < 1e-10
    assert got.json()["rounds"] <= 2  # one, and one after which the models are kept
    own = np.load(tmp_path / "out" / "clients" / "site0" / "own.npy")[0]
    assert np.abs(own - newton(clients["site0"])).max() < 1e-10


def fedopt(clients, server, rounds, steps=5):
    """FedAdam or FedYogi, of clients that have a column of ones where there is an intercept."""
    counts = np.array([len(c["y"]) for c in clients.values()])
    p = next(iter(clients.values()))["x"].shape[1]
    theta, m, v = np.zeros(p), np.zeros(p), np.full(p, 1e-6 if server == "yogi" else 0.0)
    for turn in range(1, rounds + 1):
        models = []
        for client in clients.values():
            b = theta
            for _ in range(steps):
                b = b - 0.5 * gradient(client, b)
            models.append(b)
        g = theta - counts @ np.array(models) / counts.sum()
        m = 0.9 * m + 0.1 * g
        if server == "yogi":
            v = v - 0.01 * g**2 * np.sign(v - g**2)
            theta = theta - 0.1 * m / (np.sqrt(v) + 1e-3)
        else:
            v = 0.999 * v + 0.001 * g**2
            theta = theta - 0.1 / (1 - 0.9**turn) * m / (np.sqrt(v) / np.sqrt(1 - 0.999**turn) + 1e-8)
    return theta


def with_ones(clients):
    return {name: {"x": np.hstack([np.ones((len(c["x"]), 1)), c["x"]]), "y": c["y"]} for name, c in clients.items()}


def test_ready_made_programs_are_numpys(starfold, federation):
    """Those that run by name, with the intercept that they add; empty clients take no part where clients are weighted by records."""
    clients = split(5)
    rows = with_ones(clients)
    want = {"fedavg": fedavg(rows, p=4), "fedprox": fedavg(rows, 0.1, p=4), "scaffold": scaffold(rows, p=4, rounds=50, steps=5)[0],
            "fedadam": fedopt(rows, "adam", 50), "fedyogi": fedopt(rows, "yogi", 50)}
    for name, theta in want.items():
        for more in ([], ["--reference"]):
            got = theta_of(starfold("run", name, "--json", *federation(clients), *more))
            assert np.abs(got - theta).max() < 1e-10, (name, more)
    empty = {"none": {"x": np.zeros((0, 3)), "y": np.zeros(0)}}
    for name in ("fedavg", "fedprox", "fedadam", "fedyogi"):
        assert np.abs(theta_of(starfold("run", name, "--json", *federation(clients | empty))) - want[name]).max() < 1e-10, name


def test_a_network_is_numpys(starfold, federation, program):
    """`network` with one batch per client, and `personal`, from the weights that they begin with."""
    clients = split(9, sizes=(20, 7, 31))
    for client in clients.values():
        client["y"] = client["y"] + 1
    begin = program("size hidden = 16\ninput x : [*, p]\noutput w1 = normal(1, p, hidden) / sqrt(p)\n"
                    "output w2 = normal(2, hidden, 2) / sqrt(hidden)\noutput layer = normal(1, p + 1, 8) / sqrt(p + 1)\noutput n = records(x)\n")
    first = {name: array(v) for name, v in starfold("run", begin, "--json", *federation(clients)).json()["outputs"].items()}
    w = [first["w1"], np.zeros(16), first["w2"], np.zeros(2)]
    counts = np.array([len(c["y"]) for c in clients.values()])
    for _ in range(20):
        locals_ = []
        for c in clients.values():
            w1, b1, w2, b2 = w
            h = np.tanh(c["x"] @ w1 + b1)
            e = np.exp(h @ w2 + b2)
            d = (e / e.sum(axis=1, keepdims=True) - np.eye(2)[c["y"].astype(int) - 1]) / len(c["y"])
            back = d @ w2.T * (1 - h**2)
            steps = [c["x"].T @ back, back.sum(axis=0), h.T @ d, d.sum(axis=0)]
            locals_.append([a - 0.1 * g for a, g in zip(w, steps)])
        w = [sum(n * model[i] for n, model in zip(counts, locals_)) / counts.sum() for i in range(4)]
    got = starfold("run", "network", "--json", *federation(clients), "--set", "batch=100").json()["outputs"]
    for name, want in zip(("w1", "b1", "w2", "b2"), w):
        assert np.abs(array(got[name]) - want).max() < 1e-10, name
    layer, heads = first["layer"], [np.zeros(9) for _ in clients]
    for _ in range(30):
        models = []
        for i, c in enumerate(clients.values()):
            x, a, b = np.hstack([np.ones((len(c["x"]), 1)), c["x"]]), layer, heads[i]
            for _ in range(5):
                h = np.tanh(x @ a)
                full = np.hstack([np.ones((len(x), 1)), h])
                r = (1 / (1 + np.exp(-full @ b)) - (c["y"] - 1)) / len(x)
                a, b = a - 0.5 * x.T @ (r[:, None] * b[1:] * (1 - h**2)), b - 0.5 * full.T @ r
            models.append(a)
            heads[i] = b
        layer = sum(n * model for n, model in zip(counts, models)) / counts.sum()
    truth = {name: {"x": c["x"], "y": c["y"] - 1} for name, c in clients.items()}
    got = starfold("run", "personal", "--json", *federation(truth)).json()["outputs"]
    assert np.abs(array(got["layer"]) - layer).max() < 1e-10


def test_personal_layers_stay_and_fit_better(starfold, federation, tmp_path):
    clients = split(6, sizes=(40, 50, 60))
    for i, client in enumerate(clients.values()):
        if i == 1:
            client["y"] = 1 - client["y"]  # the same covariates mean the opposite here
    got = starfold("run", "personal", "--json", *federation(clients), "--out", tmp_path / "out", "--set", "rounds=60")
    assert got.code == 0, got.err
    together = starfold("run", "fedavg", "--json", *federation(clients)).json()["traces"]["loss"][-1]
    assert got.json()["traces"]["loss"][-1] < 0.8 * together
    heads = [np.load(tmp_path / "out" / "clients" / name / "head.npy") for name in clients]
    assert np.abs(heads[0] - heads[1]).max() > 0.5
    predicted = np.load(tmp_path / "out" / "clients" / "site1" / "predicted.npy")
    assert np.mean((predicted > 0.5) == clients["site1"]["y"]) > 0.75
    assert list(got.json()["outputs"]) == ["layer"]


def test_the_within_estimator_is_least_squares_with_a_constant_per_client(starfold, federation):
    clients = split(7, sizes=(20, 7, 11, 34))
    random = np.random.default_rng(1)
    for i, client in enumerate(clients.values()):
        client["y"] = client["x"] @ np.array([1.0, -2, 0.5]) + 10 * i + random.normal(size=len(client["y"]))
    constants = [np.repeat(np.arange(4) == i, len(c["y"]), axis=0).reshape(4, -1).T for i, c in enumerate(clients.values())]
    x = np.hstack([np.vstack([c["x"] for c in clients.values()]), np.vstack(constants)])
    y = np.concatenate([c["y"] for c in clients.values()])
    beta, rest, _, _ = np.linalg.lstsq(x, y, rcond=None)
    errors = np.sqrt(np.diag(np.linalg.inv(x.T @ x)) * rest / (len(y) - x.shape[1]))
    out = starfold("run", "within", "--json", *federation(clients)).json()["outputs"]
    np.testing.assert_allclose(array(out["beta"]), beta[:3], rtol=1e-10)
    np.testing.assert_allclose(array(out["beta_se"]), errors[:3], rtol=1e-10)


def test_simulated_clients_stand_together(starfold, program):
    """A simulation packs clients that a program tells apart; samples do not."""
    path = program(SCAFFOLD)
    simulation = ["--set", "p=3", "--simulate", "clients=40,records=integers(1, 18),y=bernoulli(0.4)"]
    packed = starfold("run", path, "--json", *simulation)
    assert packed.code == 0, packed.err
    assert packed.json()["packed_clients"] == 40
    apart = starfold("run", path, "--json", *simulation, "--sample", "40")
    assert apart.json()["packed_clients"] == 0
    assert np.abs(theta_of(packed) - theta_of(apart)).max() < 1e-12
    assert [c["bytes_sent"] for c in packed.json()["clients"]] == [c["bytes_sent"] for c in apart.json()["clients"]]


ANY_LOSS = """
import fl
import optim
input x : [*, p]
input y : [*]
fn loss(x : [*, p], y : [*], b : [p]) -> [*] = softplus(x @ b) - y * (x @ b)
fn shifted(x : [*, p], y : [*], b : [p], c : [1]) -> [*] = softplus(x @ b + c[1]) - y * (x @ b + c[1])
state plain = zeros(p)
state near = zeros(p)
repeat 50 {
  plain <- fl.fedavg(loss, x, y, plain, 0.5, 5)
  near <- fl.fedprox(loss, x, y, near, 0.5, 5, 0.3)
}
state theta = zeros(p)
state control = zeros(p)
private state own : [*client, p] = zeros(p)
repeat 30 {
  let (t, c, o) = fl.scaffold(loss, x, y, theta, control, own, 0.2, 4)
  theta <- t
  control <- c
  own <- o
}
state common = zeros(p)
private state part : [*client, 1] = zeros(1)
repeat 20 {
  let (b, c) = fl.personalized(shifted, x, y, common, part, 0.5, 5)
  common <- b
  part <- c
}
state adam = optim.adam_start(zeros(p))
state yogi = fl.yogi_start(zeros(p))
repeat 20 {
  adam <- fl.fedadam(loss, x, y, adam, 0.5, 5, 0.1)
  yogi <- fl.fedyogi(loss, x, y, yogi, 0.5, 5, 0.1)
}
output plain
output near
output theta
output common
output adam = adam[1]
output yogi = yogi[1]
output once = fl.one_shot(loss, x, y, zeros(p), 1)
keep part
"""


def test_any_loss_is_given_as_a_function(starfold, federation, program, tmp_path):
    clients = split(8)
    got = starfold("run", program(ANY_LOSS), "--json", *federation(clients), "--out", tmp_path / "out")
    assert got.code == 0, got.err
    out = {name: array(value) for name, value in got.json()["outputs"].items()}
    assert np.abs(out["plain"] - fedavg(clients)).max() < 1e-10
    assert np.abs(out["near"] - fedavg(clients, 0.3)).max() < 1e-10
    assert np.abs(out["theta"] - scaffold(clients)[0]).max() < 1e-10
    for server in ("adam", "yogi"):
        assert np.abs(out[server] - fedopt(clients, server, 20)).max() < 1e-10
    counts = np.array([len(c["y"]) for c in clients.values()])
    models = []
    for client in clients.values():
        b = np.zeros(3)
        for _ in range(100):
            mu = 1 / (1 + np.exp(-client["x"] @ b))
            h = client["x"].T @ ((mu * (1 - mu))[:, None] * client["x"]) + np.eye(3)
            b = b - np.linalg.solve(h, client["x"].T @ (mu - client["y"]) + b)
        models.append(b)
    assert np.abs(out["once"] - counts @ np.array(models) / counts.sum()).max() < 1e-10
    common, parts = np.zeros(3), [0.0] * len(clients)
    for _ in range(20):
        models = []
        for i, client in enumerate(clients.values()):
            b, c = common, parts[i]
            for _ in range(5):
                r = (1 / (1 + np.exp(-(client["x"] @ b + c))) - client["y"]) / len(client["y"])
                b, c = b - 0.5 * client["x"].T @ r, c - 0.5 * r.sum()
            models.append(b)
            parts[i] = c
        common = counts @ np.array(models) / counts.sum()
    assert np.abs(out["common"] - common).max() < 1e-10
    for name, want in zip(clients, parts):
        assert abs(np.load(tmp_path / "out" / "clients" / name / "part.npy")[0, 0] - want) < 1e-10


def test_names_of_columns_pass_through_blocks(starfold, program, tmp_path):
    random = np.random.default_rng(3)
    arguments = []
    for name in "ab":
        rows = random.normal(size=(30, 3))
        lines = [f"{age},{bmi},{int(z > 0)}" for age, bmi, z in rows]
        (tmp_path / f"{name}.csv").write_text("\n".join(["age,bmi,y", *lines]) + "\n")
        arguments += ["--client", f"{name}={tmp_path / name}.csv"]
    text = FEDAVG + "output means = mean[*](each client { mean[*](x) })\n"
    shown = starfold("run", program(text), *arguments, "--bind", "x=age,bmi", "--bind", "y=y")
    assert shown.code == 0, shown.err
    table = [line.split() for line in shown.out.splitlines()[:3]]
    assert table[0] == ["theta", "means"] and [row[0] for row in table[1:]] == ["age", "bmi"]


def test_the_reference_tells_clients_apart(starfold, federation, program):
    """Also those that are simulated, and in exact runs."""
    path = program("input x : [*, p]\nlet n = each client { records(x) }\noutput s = sum[*](n * n)\n")
    simulated = ["run", path, "--simulate", "clients=300,records=poisson(6),seed=3", "--set", "p=2", "--json"]
    assert starfold(*simulated).json()["outputs"] == starfold(*simulated, "--reference").json()["outputs"]
    files = ["run", path, "--json", *federation({name: {"x": np.ones((n, 2))} for name, n in (("a", 10), ("b", 20), ("c", 0))})]
    for options in ([], ["--reference"], ["--exact"], ["--exact", "--reference"]):
        assert starfold(*files, *options).json()["outputs"]["s"]["data"] == [500], options
