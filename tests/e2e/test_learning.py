"""Learning: optimizers, generalized linear models and networks equal R and PyTorch on the pooled data.

The figures and the scripts that made them are in tests/reference; neither R nor PyTorch is needed here.
"""
import csv
import json
import math
import os
import pathlib
import re
import subprocess

import numpy as np
import pytest
from conftest import COMMAND, ROOT, array

DATA = ROOT / "tests" / "data"
EXAMPLES = ROOT / "examples"
GLM = json.loads((ROOT / "tests" / "reference" / "glm.json").read_text())
TORCH = json.loads((ROOT / "tests" / "reference" / "learning.json").read_text())
FITS = [name for name in GLM if name != "made_by"]


def table(name):
    with open(DATA / f"{name}.csv") as file:
        rows = list(csv.DictReader(file))
    return {key: np.array([float(row[key]) for row in rows]) for key in rows[0]}


def split(parts=4, **arrays):
    """Clients of uneven size, one of them with a single record and one with none."""
    n = len(next(iter(arrays.values())))
    cuts = [0, n // parts, n // parts + 1, n // parts + 1, n]
    return {f"c{i}": {key: value[a:b] for key, value in arrays.items()} for i, (a, b) in enumerate(zip(cuts, cuts[1:]))}


@pytest.fixture
def run(starfold, federation, tmp_path):
    """Runs a program, given as a name or as text, over {client: arrays}; returns outputs as arrays, and the report."""

    def go(program, clients, *more):
        if "\n" in str(program):
            (tmp_path / "program.fold").write_text(program)
            program = tmp_path / "program.fold"
        result = starfold("run", program, "--json", *federation(clients), *more)
        assert result.code == 0, result.err
        report = result.json()
        return {name: array(value) for name, value in report["outputs"].items()}, report

    return go


def close(actual, expected, tolerance):
    """Relative to the largest entry, so that a coefficient near zero does not count more than the others."""
    expected = np.asarray(expected)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * np.abs(expected).max())


# --- generalized linear models against R

FAMILY = {"binomial(logit)": "binomial", "poisson(log)": "poisson", "Gamma(log)": "gamma", "Gamma(inverse)": "gamma_inverse",
          "gaussian(identity)": "gaussian"}


def glm_data(fit):
    data = table(fit["data"])
    y = data[fit["y"]]
    weight = data[fit["weights"]] if fit["weights"] else np.ones_like(y)
    offset = np.log(data[fit["log_offset"]]) if fit["log_offset"] else np.zeros_like(y)
    return {"x": np.column_stack([data[name] for name in fit["x"]]), "y": y, "weight": weight, "offset": offset}


@pytest.mark.parametrize("name", FITS)
def test_glm_equals_r(run, name):
    fit = GLM[name]
    text = ("import glm\ninput x : [*, p]\ninput y : [*]\ninput weight : [*]\ninput offset : [*]\n"
            "let design = concat[2](ones(1), x)\n"
            "let (beta, se, deviance, dispersion, iterations, converged) = "
            f"glm.{FAMILY[fit['family']]}_with(design, y, weight, offset)\n"
            "output beta\noutput se\noutput deviance\noutput dispersion\noutput iterations\noutput converged\n")
    out, report = run(text, split(**glm_data(fit)))
    assert out["converged"] == 1
    assert out["iterations"] == fit["iterations"]  # counted as R counts; then it goes on to the optimum
    assert fit["iterations"] <= report["rounds"] <= fit["iterations"] + 8
    close(out["beta"], fit["tight_beta"], 1e-10)
    np.testing.assert_allclose(out["deviance"], fit["tight_deviance"], rtol=1e-12)
    # R's standard errors belong to the iterate before the last; these are compared with a fit that goes on.
    np.testing.assert_allclose(out["se"], fit["tight_se"], rtol=1e-6)


def test_ready_made_fits_equal_r(run):
    for program, name in (("logistic", "infert"), ("logistic", "mtcars_am"), ("poisson", "warpbreaks"), ("gamma", "mtcars_log")):
        fit = GLM[name]
        data = glm_data(fit)
        out, _ = run(program, split(x=data["x"], y=data["y"]))
        close(out["beta"], fit["tight_beta"], 1e-10)
        statistic = out["z"] if "z" in out else out["t"]
        np.testing.assert_allclose(out["beta_se"], fit["tight_se"], rtol=1e-6)
        np.testing.assert_allclose(statistic, fit["tight_z"], rtol=1e-6)
        np.testing.assert_allclose(out["p_value"], fit["tight_p"], rtol=1e-5)
        assert out["iterations"] == fit["iterations"] and out["converged"] == 1
    fit = GLM["mtcars_carb"]
    data = glm_data(fit)
    out, _ = run("rates", split(x=data["x"], y=data["y"], exposure=np.exp(data["offset"])))
    close(out["beta"], fit["tight_beta"], 1e-10)


def test_separated_groups_do_not_converge(run):
    """No coefficients are best: R gives up after 25 iterations, with probabilities of 0 and 1. We give up too, and say why."""
    data = table("mtcars")
    out, report = run("logistic", split(x=np.column_stack([data["wt"], data["qsec"]]), y=data["am"]))
    assert out["converged"] == 0 and report["rounds"] < 45
    assert any("separates the outcomes" in warning for warning in report["warnings"])
    assert out["deviance"] < 1e-6 and (out["p_value"] > 0.9).all()


@pytest.mark.parametrize("name", ["infert", "mtcars_am"])
def test_the_first_program_equals_r(run, name):
    """The program of the README, without its ridge, against R's glm with start = 0, which is where the program starts."""
    fit = GLM[name]
    data = glm_data(fit)
    design = np.column_stack([np.ones(len(data["y"])), data["x"]])
    out, report = run(EXAMPLES / "logistic.fold", split(x=design, y=data["y"]), "--set", "ridge=0")
    close(out["beta"], fit["tight_beta"], 1e-10)
    # By the program's rule, no coefficient moves by 1e-9, both take equally many iterations through the same points.
    assert report["iterations"] == [fit["zero_settled"]] and report["rounds"] == fit["zero_settled"]
    text = (EXAMPLES / "logistic.fold").read_text()
    for k in range(1, fit["zero_settled"]):
        stopped, _ = run(text.replace("repeat 25", f"repeat {k}"), split(x=design, y=data["y"]), "--set", "ridge=0")
        close(stopped["beta"], fit["zero_path"][k], 1e-10)
    np.testing.assert_allclose(report["traces"]["loss"], np.array(fit["zero_deviance"]) / 2, rtol=1e-12)
    # By R's rule, the deviance settles to 1e-8, too: it can be read off the trace.
    deviance = 2 * np.array(report["traces"]["loss"])
    settled = np.abs(np.diff(deviance)) < 1e-8 * (np.abs(deviance[1:]) + 0.1)
    assert np.argmax(settled) + 1 == fit["zero_iterations"] and settled.any()
    # R's own start, which looks at the response, is nearer on one of the two sets, by one iteration.
    assert fit["zero_iterations"] - fit["iterations"] == {"infert": 1, "mtcars_am": 0}[name]


# --- optimizers against PyTorch

def infert():
    data = table("infert")
    x = np.column_stack([np.ones(248), data["age"] / 30, data["parity"] / 2, data["induced"], data["spontaneous"]])
    return {"x": x, "y": data["case"]}


STEPS = {
    "gradient_descent": ("zeros(p)", "theta", "optim.gradient_descent(opt, g, {rate})"),
    "momentum": ("optim.momentum_start(zeros(p))", "opt[1]", "optim.momentum(opt, g, {rate}, {mu})"),
    "nesterov": ("optim.nesterov_start(zeros(p))", "opt[1]", "optim.nesterov(opt, g, {rate}, {mu})"),
    "adagrad": ("optim.adagrad_start(zeros(p))", "opt[1]", "optim.adagrad(opt, g, {rate})"),
    "adam": ("optim.adam_start(zeros(p))", "opt[1]", "optim.adam(opt, g, {rate})"),
}


def descent(name, gradient):
    start, point, step = STEPS[name]
    return ("import optim\nsize steps = 50\ninput x : [*, p]\ninput y : [*]\n"
            f"state opt = {start}\nrepeat steps {{\n"
            f"  let theta = {point.replace('theta', 'opt')}\n  let eta = x @ theta\n  let g = {gradient}\n"
            f"  opt <- {step.format(**TORCH[name])}\n}}\n"
            f"output theta = {point.replace('theta', 'opt')}\n")


BY_HAND = "x' @ (sigmoid(eta) - y) / records(y)"
DERIVED = "grad(mean[*](softplus(eta) - y * eta), theta)"


@pytest.mark.parametrize("name", STEPS)
def test_first_order_equals_pytorch(run, name):
    clients = split(**infert())
    for gradient in (BY_HAND, DERIVED):
        for steps in (1, 2, 10, 50):
            out, report = run(descent(name, gradient), clients, "--set", f"steps={steps}")
            close(out["theta"], TORCH[name]["path"][steps - 1], 1e-12)
        assert report["rounds"] <= 51  # one per step, and the record count


def test_damped_newton_equals_pytorch(run):
    text = ("import optim\nsize steps = 10\ninput x : [*, p]\ninput y : [*]\nstate theta = zeros(p)\nrepeat steps {\n"
            "  let eta = x @ theta\n  let loss = sum[*](softplus(eta) - y * eta)\n"
            "  theta <- optim.newton(theta, grad(loss, theta), hessian(loss, theta), 0.5, 0.1)\n}\noutput theta\n")
    for steps in (1, 5, 10):
        out, report = run(text, split(**infert()), "--set", f"steps={steps}")
        close(out["theta"], TORCH["damped_newton"]["path"][steps - 1], 1e-12)
        assert report["rounds"] == steps


def test_lbfgs_reaches_the_minimum(run):
    text = ("import optim\ninput x : [*, p]\ninput y : [*]\n"
            "state opt = optim.lbfgs_start(zeros(p), zeros(10, p))\nrepeat 100 {\n"
            "  let theta = opt[1]\n  let eta = x @ theta\n"
            "  let loss = mean[*](softplus(eta) - y * eta)\n  let g = grad(loss, theta)\n"
            "  opt <- optim.lbfgs(opt, loss, g)\n} until max(abs(g)) < 1e-10\noutput theta = opt[2]\noutput loss = opt[5, 1]\n")
    out, report = run(text, split(**infert()))
    close(out["theta"], TORCH["minimum"]["theta"], 1e-8)
    np.testing.assert_allclose(out["loss"], TORCH["minimum"]["mean_loss"], rtol=1e-14)
    assert report["iterations"][0] <= 30


def test_lbfgs_on_a_curved_valley(run):
    text = ("import optim\ninput x : [*]\nstate opt = optim.lbfgs_start([-1.2, 1], zeros(5, 2))\nrepeat 200 {\n  let b = opt[1]\n"
            "  let loss = square(1 - b[1]) + 100 * square(b[2] - square(b[1])) + 0 * sum[*](x)\n"
            "  let g = grad(loss, b)\n  opt <- optim.lbfgs(opt, loss, g)\n} until max(abs(g)) < 1e-9\noutput b = opt[2]\n")
    out, report = run(text, {"a": {"x": np.zeros(1)}})
    np.testing.assert_allclose(out["b"], [1, 1], rtol=1e-8)
    assert report["iterations"][0] <= 60


def test_line_search_in_one_round(run):
    """Newton's method with a ladder of step lengths: from a bad start, where full steps diverge."""
    text = ("import optim\ninput x : [*, p]\ninput y : [*]\ninput start : [p]\n"
            "state theta : [p] = start\nlet steps = optim.ladder(zeros(12))\n"
            "repeat 50 {\n  let eta = x @ theta\n  let loss = sum[*](softplus(eta) - y * eta)\n  let g = grad(loss, theta)\n"
            "  let direction = -solve(hessian(loss, theta) + 1e-8 * eye(p), g)\n"
            "  let etas = x @ optim.points(theta, direction, steps)'\n"
            "  let losses = sum[*](softplus(etas) - y[:, new] * etas)\n"
            "  theta <- theta + optim.armijo(losses, steps, loss, g @ direction) * direction\n"
            "  trace loss = loss\n} until max(abs(g)) < 1e-9\noutput theta\n")
    out, report = run(text, split(**infert()), "--set", "start=[3,-3,3,-3,3]")
    close(out["theta"], TORCH["minimum"]["theta"], 1e-10)
    assert (np.diff(report["traces"]["loss"]) <= 1e-9).all()
    assert report["rounds"] == 2 * report["iterations"][0]


def test_gauss_newton(run):
    rng = np.random.default_rng(5)
    x = rng.uniform(0, 4, 60)
    y = 3 * np.exp(-0.7 * x) + 0.01 * rng.normal(size=60)
    text = ("import optim\ninput x : [*]\ninput y : [*]\nstate b = [2, 0.5]\nrepeat 30 {\n  let r = y - b[1] * exp(-b[2] * x)\n"
            "  let j = jacobian(r, b)\n  let next = optim.gauss_newton(b, j' @ j, j' @ r)\n  let change = max(abs(next - b))\n"
            "  b <- next\n} until change < 1e-12\noutput b\noutput g = grad(sum[*](square(y - b[1] * exp(-b[2] * x))), b)\n")
    out, _ = run(text, split(x=x, y=y))
    assert np.abs(out["g"]).max() < 1e-11


# --- the paper's examples

@pytest.mark.parametrize("example, settings", [("paper_logistic", []),
                                               ("paper_newton", ["--set", "sigma2=0.7", "--set", "rate=0.6"])])
def test_derived_equals_written(run, example, settings):
    data = infert()
    by_hand, written = run(EXAMPLES / f"{example}.fold", split(**data), *settings)
    derived, report = run(EXAMPLES / f"{example}_grad.fold", split(**data), *settings)
    close(derived["theta"], by_hand["theta"], 1e-14)
    np.testing.assert_allclose(report["traces"]["loss"], written["traces"]["loss"], rtol=1e-14)
    assert report["rounds"] == written["rounds"]
    pooled, _ = run(EXAMPLES / f"{example}_grad.fold", {"all": data}, *settings)
    close(derived["theta"], pooled["theta"], 1e-12)


def test_the_newton_example_solves_the_normal_equations(run):
    data = infert()
    out, _ = run(EXAMPLES / "paper_newton.fold", split(**data))
    expected = np.linalg.lstsq(data["x"], data["y"], rcond=None)[0]
    close(out["theta"], expected, 1e-12)


def test_programs_of_the_documentation(starfold, tmp_path):
    text = (ROOT / "docs" / "learning.md").read_text()
    programs = [block for block in re.findall(r"```\n(.*?)```", text, re.DOTALL) if block.startswith("import")]
    assert len(programs) >= 4
    for program in programs:
        (tmp_path / "p.fold").write_text(program)
        result = starfold("check", tmp_path / "p.fold")
        assert result.code == 0 and "error" not in result.err, program + result.err


# --- a network

def glorot(inputs, hidden, outputs):
    rng = np.random.RandomState(0)
    parts = []
    for a, b in ((inputs, hidden), (hidden, outputs)):
        bound = math.sqrt(6 / (a + b))
        parts += [rng.uniform(-bound, bound, a * b), rng.uniform(-bound, bound, b)]
    return np.concatenate(parts)


def test_digits_equal_pytorch(run, tmp_path):
    """The loss curve of the first 50 steps; the whole run, which takes longer, is in docs/learning.md."""
    reference = TORCH["digits"]
    data = np.load(DATA / "digits.npz")
    x, y, train = data["x"] / 16, data["y"].astype(float), reference["train"]
    cuts = [(0, 400), (400, 401), (401, train)]
    tests = [(train, train + 100), (train + 100, len(x)), (len(x), len(x))]
    clients = {f"c{i}": {"x": x[a:b], "y": y[a:b], "x_test": x[c:d], "y_test": y[c:d]}
               for i, ((a, b), (c, d)) in enumerate(zip(cuts, tests))}
    np.save(tmp_path / "start.npy", glorot(64, reference["hidden"], 10))
    out, report = run(EXAMPLES / "digits.fold", clients, "--set", f"start=@{tmp_path / 'start.npy'}", "--set", "steps=50")
    np.testing.assert_allclose(report["traces"]["loss"], reference["losses"][:50], rtol=1e-10)
    assert out["accuracy"] > 0.89


# --- k-means and robust least squares

def test_kmeans_program(run):
    rng = np.random.default_rng(2)
    centres = np.array([[0, 0], [10, 0], [0, 10.0]])
    x = np.concatenate([c + rng.normal(size=(40, 2)) for c in centres])
    out, _ = run("kmeans", split(x=x), "--set", "seed=3")
    order = np.argsort(out["centre"] @ [1, 2])
    np.testing.assert_allclose(out["centre"][order], [x[:40].mean(0), x[40:80].mean(0), x[80:].mean(0)], rtol=1e-10, atol=1e-12)
    assert sorted(out["n"]) == [40, 40, 40]


def test_collinear_columns_are_an_error(starfold, federation, tmp_path):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(50, 3))
    x[:, 2] = x[:, 0] - 2 * x[:, 1]
    for function in ("ols_summary", "ols_qr"):
        (tmp_path / "p.fold").write_text("import stats\ninput x : [*, p]\ninput y : [*]\n"
                                         f"let (b, _, _, _) = stats.{function}(x, y)\noutput b\n")
        result = starfold("run", tmp_path / "p.fold", *federation(split(x=x, y=x[:, 0])))
        assert result.code == 3 and ("singular" in result.err or "positive definite" in result.err), result.err


# --- memory

def peak_in_loop(arguments, rounds=8):
    """Most memory the command held, in MB, during rounds 2 to `rounds` of a longer run. Its progress says when they are: the
    data is laid out by then. Nothing depends on the time that takes, and so not on the load of the machine."""
    watched, terminal = os.openpty()  # progress is for terminals
    process = subprocess.Popen([COMMAND, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=terminal)
    os.close(terminal)
    said = ""

    def wait_for(round_number):
        nonlocal said
        while max([int(n) for n in re.findall(r"round (\d+) ", said)], default=0) < round_number:
            said += os.read(watched, 4096).decode()  # OSError when the command has ended

    try:
        wait_for(1)
        folder = pathlib.Path(f"/proc/{process.pid}")
        (folder / "clear_refs").write_text("5")  # the peak begins anew
        wait_for(rounds)
        return int(re.search(r"VmHWM:\s*(\d+)", (folder / "status").read_text())[1]) / 1024
    finally:
        process.kill()
        process.wait()
        os.close(watched)


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="peaks of memory cannot be measured here")
def test_a_gradient_needs_no_array_as_wide_as_the_data(tmp_path):
    """Written out, the gradients of all records would be 160 MB here, as large as the data, and curvatures 100 times that."""
    rng = np.random.default_rng(1)
    np.savez(tmp_path / "a.npz", x=rng.normal(size=(200_000, 100)), y=rng.integers(0, 2, 200_000).astype(float))

    def peak(update):
        source = tmp_path / "program.fold"
        source.write_text("input x : [*, p]\ninput y : [*]\nstate beta = zeros(p)\n"
                          "repeat 1000000 {\n  let eta = x @ beta\n  let loss = softplus(eta) - y * eta\n"
                          f"  beta <- beta - {update}\n}}\noutput beta\n")
        return peak_in_loop(["run", source, "--threads", "2", "--client", f"a={tmp_path / 'a.npz'}"])

    plain = peak("1e-6 * sum[*](x) * sum[*](loss)")
    assert peak("1e-6 * grad(sum[*](loss), beta)") < plain + 8
    assert peak("solve(hessian(sum[*](loss), beta), grad(sum[*](loss), beta))") < plain + 8
