"""Values per client, sentence by sentence of the language's contract, against NumPy programs that know the split."""
import subprocess

import numpy as np
import pytest
from conftest import array
from node_federation import hospital, wait_until


def make(seed, sizes, p=2):
    """Clients with x [n, p], y [n]."""
    random = np.random.default_rng(seed)
    return {f"c{i}": {"x": random.normal(size=(n, p)) + i, "y": random.normal(size=n)} for i, n in enumerate(sizes)}


@pytest.fixture
def answers(starfold, federation, program, tmp_path):
    """Runs a program as it is, with one thread, and as the reference; the three must agree. Returns (outputs, kept by client, answer)."""

    def run(text, clients, *more):
        path, arguments = program(text), federation(clients)
        folder = tmp_path / "out"
        results = [starfold("run", path, "--json", *arguments, *more, *way)
                   for way in (["--out", folder], ["--threads", "1"], ["--reference"])]
        for result in results:
            assert result.code == 0, result.err
        outputs = [{name: array(value) for name, value in result.json()["outputs"].items()} for result in results]
        for name, value in outputs[0].items():
            np.testing.assert_array_equal(value, outputs[1][name], err_msg=name)
            np.testing.assert_allclose(value, outputs[2][name], rtol=1e-10, atol=1e-12, err_msg=name)
        kept = {name: {file.stem: np.load(file) for file in (folder / "clients" / name).glob("*.npy")} for name in clients}
        return outputs[0], kept, results[0].json()

    return run


def close(got, want, tolerance=1e-10):
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def test_a_record_per_client_also_without_records(answers):
    """`*client` has exactly one record per client, also for clients without records."""
    clients = make(1, (3, 0, 5, 0, 1))
    out, kept, _ = answers("""
input x : [*, p]
input y : [*]
let (n, total, middle, most) = each client { (records(x), sum[*](x), mean[*](y), max[*](y)) }
output clients = count[*](n)
output also = records(total)
output filled = sum[*](n > 0)
output n = sum[*](n)
output most = max[*](most)
output missing = sum[*](isnan(middle))
keep n
keep total
""", clients)
    assert out["clients"] == out["also"] == 5 and out["filled"] == 3 and out["n"] == 9 and out["missing"] == 2
    close(out["most"], max(c["y"].max() for c in clients.values() if len(c["y"])))
    for name, client in clients.items():
        assert kept[name]["n"].shape == (1,) and kept[name]["n"][0] == len(client["y"])
        assert kept[name]["total"].shape == (1, 2)
        close(kept[name]["total"][0], client["x"].sum(axis=0))


def test_values_per_client_are_federated_like_any_other(answers):
    """Maps, broadcasting, `@`, `grad` as for every star; only a fold lets them out."""
    clients = make(2, (3, 4, 5))
    out, _, _ = answers("""
input x : [*, p]
input b : [p]
let m = each client { mean[*](x) }
let wide = m[:, new] * [1, 2, 3][:, new]
output gram = m' @ m
output scores = sum[*](square(m @ b))
output wide = sum[*](wide)
output logs = logsumexp[*](m)
output spread = var[*](m)
output slope = sum[*](square(grad(square(m @ b), b)))
output by_axis = sum[*](sum[2](exp(m)))
""", clients, "--set", "b=[0.5, -2]")
    m, b = np.array([c["x"].mean(axis=0) for c in clients.values()]), np.array([0.5, -2])
    close(out["gram"], m.T @ m)
    close(out["scores"], np.sum((m @ b) ** 2))
    close(out["wide"], (m[:, None] * np.array([1, 2, 3])[:, None]).sum(axis=0))
    close(out["logs"], np.log(np.exp(m).sum(axis=0)))
    close(out["spread"], m.var(axis=0, ddof=1))
    close(out["slope"], ((2 * (m @ b)[:, None] * m) ** 2).sum(axis=0))
    close(out["by_axis"], np.exp(m).sum())


@pytest.mark.parametrize("rows", [0, 2, 3])
def test_an_input_per_client_has_exactly_one_row(starfold, federation, program, rows):
    text = "input x : [*]\ninput w : [*client, q]\noutput s = sum[*](each client { sum[*](x) * w })\n"
    clients = {f"c{i}": {"x": np.arange(3.0), "w": np.ones((1, 2))} for i in range(3)}
    clients["c1"]["w"] = np.ones((rows, 2))
    for more in ([], ["--reference"]):
        wrong = starfold("run", program(text), *federation(clients), *more)
        assert wrong.code == 3 and "c1" in wrong.err and "exactly one row" in wrong.err and str(rows) in wrong.err
    alone = {name: {"x": c["x"], "w": np.ones(1)} for name, c in clients.items()}  # a single number per client
    right = starfold("run", program(text.replace("[*client, q]", "[*client]")), "--json", *federation(alone))
    assert right.code == 0 and array(right.json()["outputs"]["s"]) == 9


def test_a_body_is_an_ordinary_program(answers):
    """Folds without a star, `solve`, loops with `until`, states of its own; shared and federated names as they are, rows as [s]."""
    clients = make(3, (6, 9, 4))
    for i, c in enumerate(clients.values()):
        c["w"] = np.array([[0.5 + i]])
    out, kept, answer = answers("""
input x : [*, p]
input y : [*]
input w : [*client, 1]
let shared = mean[*](x)
let centred = x - shared
let (b, steps, fitted) = each client {
  state b = zeros(p)
  state steps = 0
  repeat 500 {
    let g = centred' @ (centred @ b - y) + w[1] * b
    let step = solve(centred' @ centred + w[1] * eye(p) + 3 * eye(p), g)
    b <- b - step
    steps <- steps + 1
  } until max(abs(step)) < 1e-13
  (b, steps, centred @ b)
}
output total = sum[*](b)
output loss = sum[*](square(y - fitted))
keep fitted
keep steps
""", clients)
    mean = np.vstack([c["x"] for c in clients.values()]).mean(axis=0)
    total, loss, counts = 0, 0, []
    for name, c in clients.items():
        z, b, steps = c["x"] - mean, np.zeros(2), 0
        while steps < 500:
            step = np.linalg.solve(z.T @ z + (c["w"][0, 0] + 3) * np.eye(2), z.T @ (z @ b - c["y"]) + c["w"][0, 0] * b)
            b, steps = b - step, steps + 1
            if abs(step).max() < 1e-13:
                break
        total, loss = total + b, loss + ((c["y"] - z @ b) ** 2).sum()
        close(kept[name]["fitted"], z @ b)
        assert abs(kept[name]["steps"][0] - steps) <= 1  # one more or less where the last step is rounding
        counts.append(steps)
    close(out["total"], total)
    close(out["loss"], loss)
    assert len(set(counts)) > 1  # each client stopped for itself
    assert answer["rounds"] <= 3  # the mean, the folds, what is kept


def test_results_on_the_way_out(answers):
    """[s] becomes [*client, s], [*, s] stays what it is, wherever its star stands; tuples component by component; two record sets."""
    clients = make(4, (3, 0, 5))
    random = np.random.default_rng(5)
    for i, c in enumerate(clients.values()):
        c["v"] = random.normal(size=(2 + i, 3))
    out, kept, _ = answers("""
input x : [*, p]
input v : [*visits, q]
let (centred, turned, cross, both, visits) = each client {
  let m = mean[*](x)
  let s = sum[*](v)
  (x - m, (x - m)' * 2, outer(s, sum[*](x)), x @ m + sum(s), v - s)
}
output c = sum[*](square(centred))
output t = sum[*](abs(turned))
output cross = sum[*](cross)
output both = sum[*](both)
output visits = sum[*](visits)
output folded = turned @ centred
keep centred
keep turned
keep cross
keep visits
""", clients)
    each = []
    for name, c in clients.items():
        m = c["x"].mean(axis=0) if len(c["x"]) else np.zeros(2)
        s = c["v"].sum(axis=0)
        centred = c["x"] - m
        each.append(((centred**2).sum(axis=0), np.abs(2 * centred).sum(axis=0), np.outer(s, c["x"].sum(axis=0)),
                     (c["x"] @ m + s.sum()).sum(), (c["v"] - s).sum(axis=0), 2 * centred.T @ centred))
        close(kept[name]["centred"], centred)
        close(kept[name]["turned"], 2 * centred.T)
        assert kept[name]["cross"].shape == (1, 3, 2) and kept[name]["visits"].shape == c["v"].shape
    for name, parts in zip(("c", "t", "cross", "both", "visits", "folded"), zip(*each)):
        close(out[name], sum(parts))


def test_a_block_costs_no_round(starfold, program):
    text = """
input x : [*, p]
input y : [*]
let scale = max[*](abs(y))
let (a, b) = each client {
  let m = mean[*](x)
  state c = m
  repeat 5 { c <- c / 2 + sum[*](x) / scale } until max(abs(c)) < 1e-3
  (c, sum[*](square(x - m)))
}
output a = sum[*](a)
output b = sum[*](b)
"""
    rounds = starfold("check", program(text), "--json").json()["rounds"]
    assert len(rounds) == 2  # scale, and then everything of the block


def order_of(answers, n, seed):
    """The order in which `batches` takes n records, seen through batches of one record."""
    clients = {"a": {"x": np.arange(1.0, n + 1)[:, None]}}
    out, _, _ = answers(f"""
input x : [*, p]
let order = each client {{
  state seen = zeros({n})
  state at = 1
  repeat batches(1, {seed}) {{
    seen <- seen + where(linspace(1, {n}, {n}) == at, sum[*](x)[1], 0)
    at <- at + 1
  }}
  seen
}}
output order = sum[*](order)
""", clients)
    return out["order"].astype(int) - 1


def test_batches_against_numpy(answers):
    """One pass in batches of k, the last smaller, in an order drawn from the seed; every value of `*` is restricted to the batch."""
    n, k = 11, 4
    orders = {seed: order_of(answers, n, seed) for seed in (3, 4)}
    assert sorted(orders[3]) == sorted(orders[4]) == list(range(n)) and list(orders[3]) != list(orders[4])
    clients = make(6, (n,))
    out, _, answer = answers("""
input x : [*, p]
input y : [*]
let z = x / max[*](abs(x))
state theta = zeros(p)
state seed = 3
repeat 2 {
  let local = each client {
    state b = theta
    repeat batches(4, seed) {
      let r = z @ b - y
      b <- b - 0.3 * z' @ r / records(y) - 0.01 * (max[*](y) - sum[*](r) / records(z))
    }
    b
  }
  seed <- seed + 1
  theta <- mean[*](local)
}
output theta
""", clients)
    x, y = clients["c0"]["x"], clients["c0"]["y"]
    z, b = x / np.abs(x).max(axis=0), np.zeros(2)
    for seed in (3, 4):
        for start in range(0, n, k):
            at = orders[seed][start:start + k]
            r = z[at] @ b - y[at]
            b = b - 0.3 * z[at].T @ r / len(at) - 0.01 * (y[at].max() - r.sum() / len(at))
    close(out["theta"], b)
    assert answer["rounds"] == 3


def test_batches_are_the_same_bits_for_the_same_records(starfold, federation, program):
    """Same bits everywhere: whoever the other clients are, in one process or packed, with any number of threads."""
    text = """
input x : [*, p]
input y : [*]
let b = each client {
  state b = zeros(p)
  repeat 2 {
    repeat batches(3, 7) { b <- b - 0.1 * grad(mean[*](square(x @ b - y)), b) }
  }
  b
}
output b = max[*](b)
"""
    own = make(7, (20,))["c0"]
    few = {"own": own, "empty": {"x": np.zeros((0, 2)), "y": np.zeros(0)}}
    one = starfold("run", program(text), "--json", *federation({"own": own})).json()["outputs"]["b"]["data"]
    nothing = np.maximum(array({"shape": [2], "data": one}), 0)
    for more in ([], ["--threads", "1"]):
        with_empty = starfold("run", program(text), "--json", *federation(few), *more).json()["outputs"]["b"]
        assert (array(with_empty) == nothing).all()  # no records, no iterations: the empty client stays at zero
    many = {f"m{i}": own for i in range(20)}
    assert starfold("run", program(text), "--json", *federation(many)).json()["outputs"]["b"]["data"] == one
    exact = [starfold("run", program(text), "--json", *federation(which), "--exact").json()["outputs"]["b"]["data"]
             for which in ({"own": own}, many)]
    assert exact[0] == exact[1]


def test_private_states_of_both_kinds(answers):
    """`[*client, p]` and `[*]`; the first value shared, and repeated, or federated; used before and after they are updated."""
    clients = make(8, (4, 0, 6))
    out, kept, _ = answers("""
input x : [*, p]
input y : [*]
private state c : [*client, p] = 1 + cumsum[1](ones(p)) - 1
private state a : [*] = 0.5
private state from_data : [*] = y
private state turned : [p, *] = x'
state s = zeros(p)
repeat 4 {
  let m = each client { sum[*](x) / max(records(x), 1) + c }
  s <- s + sum[*](c * m)
  a <- a / 2 + x @ s
  c <- (m + c) / 2
  from_data <- from_data + a
  turned <- turned * 2 - s[:, new]
}
output s
output a = sum[*](square(a))
output d = sum[*](from_data)
output t = sum[*](turned)
keep c
keep a
keep turned
""", clients)
    c = {n: np.array([1.0, 2]) for n in clients}
    a = {n: np.full(len(v["y"]), 0.5) for n, v in clients.items()}
    d = {n: v["y"].copy() for n, v in clients.items()}
    t = {n: v["x"].T.copy() for n, v in clients.items()}
    s = np.zeros(2)
    for _ in range(4):
        m = {n: v["x"].sum(axis=0) / max(len(v["y"]), 1) + c[n] for n, v in clients.items()}
        s = s + sum(c[n] * m[n] for n in clients)
        for n, v in clients.items():
            a[n] = a[n] / 2 + v["x"] @ s
            c[n] = (m[n] + c[n]) / 2
            d[n] = d[n] + a[n]
            t[n] = t[n] * 2 - s[:, None]
    close(out["s"], s)
    close(out["a"], sum((v**2).sum() for v in a.values()))
    close(out["d"], sum(v.sum() for v in d.values()))
    close(out["t"], sum(v.sum(axis=1) for v in t.values()))
    for n in clients:
        close(kept[n]["c"][0], c[n])
        close(kept[n]["a"], a[n])
        close(kept[n]["turned"], t[n])


def test_private_states_in_nested_loops_begin_anew_where_they_are_written(answers):
    clients = make(9, (3, 5))
    out, kept, _ = answers("""
input y : [*]
private state outer_state : [*client] = 0
state s = 0
repeat 3 {
  let own = each client { sum[*](y) }
  repeat 2 {
    outer_state <- outer_state + own + s
    s <- s + 1
  }
}
output s = sum[*](outer_state)
keep outer_state
""", clients)
    total, count = {n: 0.0 for n in clients}, 0
    for _ in range(3):
        for _ in range(2):
            for n, c in clients.items():
                total[n] += c["y"].sum() + count
            count += 1
    close(out["s"], sum(total.values()))
    for n in clients:
        close(kept[n]["outer_state"], [total[n]])


def holds(data, value):
    """Whether bytes have a number close to this one anywhere."""
    return any(abs(number - value) < 1e-6 for at in range(8) for number in np.frombuffer(data[at:at + (len(data) - at) // 8 * 8], "<f8"))


def test_private_states_are_not_in_a_checkpoint(nodes):
    """They are not part of what the server can save: what only a client has is nowhere in a checkpoint, and is in the client's folder."""
    text = """
input age : [*]
private state secret : [*client] = 0
state s = 0
repeat 100000 {
  let own = each client { sum[*](age) }
  secret <- where(secret > 0, secret, own + 123456.0625 + min(s, 0))
  s <- s + sum[*](secret > 0)
}
output s
"""
    policy = "local_blocks = true\nmax_ratio = 1e9\nmax_total_ratio = 1e9\nmax_rounds = 1000000"
    for i, name in enumerate(("a", "b")):
        nodes.add(name, hospital(i), policy=policy)
    study = nodes.study(text, 'age = "age"', 'checkpoint = "run"\ntimeout = "60s"')
    process = subprocess.Popen([nodes.command, "run", str(study), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: len(nodes.nodes[0].lines()) > 20 or process.poll() is not None)
    process.kill()
    process.communicate()
    for node in nodes.nodes:
        node.stop()
    saved = b"".join(file.read_bytes() for file in (nodes.folder / "run").rglob("*") if file.is_file())
    assert len(saved) > 100
    for i, node in enumerate(nodes.nodes):
        own = b"".join(file.read_bytes() for file in (node.folder / "private").rglob("*") if file.is_file())
        value = hospital(i)["age"].sum() + 123456.0625
        assert holds(own, value) and not holds(saved, value)


def test_keep_is_shown_and_nothing_leaves(starfold, federation, program, tmp_path):
    text = "input x : [*, p]\noutput m = mean[*](x)\nkeep centred = x - mean[*](x)\nkeep most = each client { max[*](x) }\n"
    clients = make(10, (5, 300))
    answer = starfold("check", program(text), "--json").json()
    plain = text.split("keep")[0]
    merges = [[m for r in which["rounds"] for m in r["merges"]] for which in (answer, starfold("check", program(plain), "--json").json())]
    assert merges[0] == merges[1]  # the mean alone leaves
    assert "stays" in starfold("check", program(text)).out
    sent = {}
    for which, source in (("kept", text), ("plain", plain)):
        out = starfold("run", program(source), "--json", *federation(clients), "--out", tmp_path / which)
        assert out.code == 0, out.err
        sent[which] = out.json()
    # Whatever is kept, a client with 300 records sends as many bytes as one with 5, and at most an empty message more than without.
    assert len({c["bytes_sent"] for c in sent["kept"]["clients"]}) == 1
    assert sent["kept"]["clients"][0]["bytes_sent"] - sent["plain"]["clients"][0]["bytes_sent"] < 300
    mean = np.vstack([c["x"] for c in clients.values()]).mean(axis=0)
    for name, c in clients.items():
        close(np.load(tmp_path / "kept" / "clients" / name / "centred.npy"), c["x"] - mean)
        close(np.load(tmp_path / "kept" / "clients" / name / "most.npy"), c["x"].max(axis=0)[None])
    assert not (tmp_path / "plain" / "clients").exists()
    assert list(sent["kept"]["outputs"]) == ["m"]
    value = (clients["c0"]["x"] - mean)[0, 0]
    for file in (tmp_path / "kept").iterdir():  # nothing of it in what is passed on
        if file.is_file():
            assert value.tobytes() not in file.read_bytes() and f"{value:.6f}".encode() not in file.read_bytes()


@pytest.mark.parametrize("text, split", [
    ("output t = sum[*](y)\n", [None]),
    ("output t = sum[*](each client { sum[*](y) })\n", [True]),
    ("private state c : [*client] = 0\nrepeat 2 {\n  c <- c + 1\n}\noutput t = sum[*](c)\n", [True]),
    ("private state c : [*] = 0\nrepeat 2 {\n  c <- c + y\n}\noutput t = sum[*](c)\n", [True]),
    ("let a = each client { y - mean[*](y) }\noutput t = sum[*](a)\noutput u = sum[*](square(y))\n", [None, True]),
    ("let b = each client {\n  state s = 0\n  repeat batches(2, 1) { s <- s + 1 }\n  s\n}\noutput t = sum[*](b)\n", [True]),
])
def test_check_says_where_the_split_matters(starfold, program, text, split):
    answer = starfold("check", program("input y : [*]\n" + text), "--json").json()
    assert answer["ok"] is True
    assert sorted((m.get("split") for r in answer["rounds"] for m in r["merges"]), key=bool) == split
    assert answer.get("split") == (True if True in split else None)
    said = starfold("check", program("input y : [*]\n" + text)).out
    assert said.count("depends on how the records are split") == (1 if True in split else 0)


def test_derivatives_through_blocks_against_numpy(answers):
    """`grad`, `jacobian` and `hessian` through a block without loops, by a shared name, with solve and logdet inside."""
    clients = make(11, (4, 6, 0))
    out, _, _ = answers("""
input x : [*, p]
input y : [*]
input b : [p]
let (value, vector) = each client {
  let r = y - x @ b
  let a = x' @ x + (1 + b @ b) * eye(p)
  (logdet(a) + sum[*](square(r)) / 2, solve(a, x' @ r))
}
output g = grad(sum[*](value), b)
output h = hessian(sum[*](value), b)
output j = jacobian(sum[*](vector), b)
output rows = sum[*](square(grad(value, b)))
""", clients, "--set", "b=[0.3, -0.7]")

    def of(client, b):
        r = client["y"] - client["x"] @ b
        a = client["x"].T @ client["x"] + (1 + b @ b) * np.eye(2)
        return np.linalg.slogdet(a)[1] + (r**2).sum() / 2, np.linalg.solve(a, client["x"].T @ r)

    b, step = np.array([0.3, -0.7]), 1e-4
    units = np.eye(2) * step
    gradients = {n: np.array([(of(c, b + u)[0] - of(c, b - u)[0]) / (2 * step) for u in units]) for n, c in clients.items()}
    close(out["g"], sum(gradients.values()), 1e-6)
    close(out["rows"], sum(g**2 for g in gradients.values()), 1e-6)
    jacobian = sum(np.array([(of(c, b + u)[1] - of(c, b - u)[1]) / (2 * step) for u in units]).T for c in clients.values())
    close(out["j"], jacobian, 1e-6)
    second = [[sum(of(c, b + u + v)[0] - of(c, b + u - v)[0] - of(c, b - u + v)[0] + of(c, b - u - v)[0] for c in clients.values())
               / (4 * step**2) for v in units] for u in units]
    close(out["h"], second, 1e-5)


def test_samples_are_refused_where_the_pooled_answer_is_promised(starfold, federation, program, tmp_path):
    path = program("input y : [*]\noutput t = sum[*](y)\n")
    clients = make(12, (3,) * 6)
    arguments = federation(clients)
    for more, why in ((["--reference"], "--reference"), (["--exact"], "--exact")):
        refused = starfold("run", path, *arguments, "--sample", "3", *more)
        assert refused.code == 2 and "--sample" in refused.err and why in refused.err.replace("an exact run", "--exact")
    study = tmp_path / "study.toml"
    listed = "".join(f'[[client]]\nname = "{n}"\ndata = "{tmp_path / n}.npz"\n' for n in clients)
    study.write_text(f'program = "{path}"\n[options]\nexact = true\n[federation]\nsample = 3\n' + listed)
    assert starfold("run", study).code == 2
    for wrong in ("sample = 0", "sample = 7", 'sample = "some"', "sample = 3\nsample_seed = -1"):
        study.write_text(f'program = "{path}"\n[federation]\n{wrong}\n' + listed)
        got = starfold("run", study)
        assert got.code == 2 and "sample" in got.err, wrong
    for wrong in (["--sample", "0"], ["--sample", "7"], ["--sample", "-1"], ["--sample", "x"]):
        assert starfold("run", path, *arguments, *wrong).code == 2, wrong


def test_each_round_of_a_sample_is_drawn_anew(starfold, federation, program):
    """Folds are over the clients of the round: K of them, others in every round, all of them in the long run."""
    clients = {f"c{i}": {"y": np.array([10.0**i])} for i in range(6)}
    path = program("input y : [*]\nstate s = 0\nrepeat 40 {\n  let t = sum[*](y + 0 * s)\n  trace t = t\n  s <- s + t\n}\noutput s\n")
    traces = starfold("run", path, "--json", *federation(clients), "--sample", "2", "--sample-seed", "5").json()["traces"]["t"]
    asked = [f"{int(t):06d}" for t in traces]
    assert all(sorted(digits) == list("000011") for digits in asked)
    assert len(set(asked)) > 8  # of 15 pairs
    assert all(any(digits[i] == "1" for digits in asked) for i in range(6))


@pytest.mark.parametrize("body, code, words", [
    ("let a = each client {\n  input z : [*]\n  1\n}\n", "E0901", "`input` cannot stand inside"),
    ("let a = each client {\n  output z = 1\n  1\n}\n", "E0901", "`output` cannot stand inside"),
    ("let a = each client {\n  trace z = 1\n  1\n}\n", "E0901", "`trace` cannot stand inside"),
    ("let a = each client {\n  keep z = y\n  1\n}\n", "E0901", "`keep` cannot stand inside"),
    ("let a = each client {\n  let b = each client { 1 }\n  b\n}\n", "E0902", "cannot stand inside `each client`"),
    ("fn f(v : [*]) = each client { sum[*](v) }\nlet a = each client { f(y) }\n", "E0902", "cannot stand inside `each client`"),
    ("state s = 0\nrepeat 2 {\n  let a = each client {\n    s <- 1\n    s\n  }\n  s <- sum[*](a)\n}\n", "E0903", "a state from outside"),
    ("private state s : [*client] = 0\nrepeat 2 {\n  let a = each client {\n    s <- 1\n    s\n  }\n  s <- a\n}\n", "E0903", "a state from outside"),
    ("state s = 0\nrepeat batches(2, 1) { s <- s + 1 }\n", "E0904", "`batches` can only stand inside"),
    ("private state s : [p] = zeros(p)\n", "E0905", "has no star"),
    ("keep s = sum[*](y)\n", "E0906", "not a client's own"),
    ("let a = each client { sum[*](y) }\noutput a\n", "E0301", "federated value cannot be an output"),
    ("state a = each client { sum[*](y) }\n", "E0302", ""),
    ("private state s : [*client] = 0\ns <- each client { 1 }\n", None, ""),
    ("let b = zeros(p)\nlet a = each client {\n  state c = b\n  repeat 3 { c <- c / 2 + b }\n  sum(c)\n}\noutput g = grad(sum[*](a), b)\n",
     "E0503", "cannot differentiate through a `repeat` loop"),
])
def test_every_misuse_has_its_message(starfold, program, body, code, words):
    answer = starfold("check", program(f"input x : [*, p]\ninput y : [*]\n{body}output n = records(x)\n"), "--json")
    assert answer.code == 1
    errors = [d for d in answer.json()["diagnostics"] if d["severity"] == "error"]
    assert len(errors) == 1, errors  # one mistake does not cascade
    if code:
        assert errors[0]["code"] == code
    assert words in errors[0]["message"] and errors[0]["help"]
