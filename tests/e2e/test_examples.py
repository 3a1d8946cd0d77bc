"""Each example equals NumPy on the pooled data, in as many rounds as one derives by hand."""
import numpy as np
import pytest
from conftest import ROOT, array

EXAMPLES = ROOT / "examples"
SIZES = {"oslo": 120, "bergen": 1, "empty": 0, "tromso": 333}


@pytest.fixture
def data():
    rng = np.random.default_rng(7)
    x = {name: rng.normal(size=(n, 4)) * [1, 2, 0.5, 10] + [3, -1, 0, 50] for name, n in SIZES.items()}
    noise = {name: rng.normal(size=n) for name, n in SIZES.items()}
    clients = {name: {"x": x[name], "y": x[name] @ [1, -2, 0.5, 0.1] + 2 + noise[name]} for name in SIZES}
    pooled = {key: np.concatenate([clients[name][key] for name in SIZES]) for key in ("x", "y")}
    return clients, pooled


@pytest.fixture
def run(starfold, federation, data):
    def go(example, *more):
        result = starfold("run", EXAMPLES / f"{example}.fold", "--json", *federation(data[0]), *more)
        assert result.code == 0, result.err
        return result.json()

    return go


def close(actual, expected, tolerance=1e-12):
    np.testing.assert_allclose(array(actual), expected, rtol=tolerance, atol=0)


def test_mean(run, data):
    report = run("mean")
    close(report["outputs"]["m"], data[1]["x"].mean(0))
    assert report["rounds"] == 1


def test_variance(run, data):
    report = run("variance")
    close(report["outputs"]["v"], data[1]["x"].var(0, ddof=1))
    close(report["outputs"]["sd"], data[1]["x"].std(0, ddof=1))
    assert report["rounds"] == 1


def test_variance_is_stable(starfold, federation):
    x = np.array([1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16])[:, None]
    clients = federation({"a": {"x": x[:1]}, "b": {"x": x[1:]}})
    report = starfold("run", EXAMPLES / "variance.fold", "--json", *clients).json()
    close(report["outputs"]["v"], [30.0])


def test_covariance(run, data):
    report = run("covariance")
    close(report["outputs"]["cov"], np.cov(data[1]["x"].T), 1e-11)
    assert report["rounds"] == 2


def test_correlation(run, data):
    report = run("correlation")
    np.testing.assert_allclose(array(report["outputs"]["r"]), np.corrcoef(data[1]["x"].T), rtol=1e-12, atol=1e-14)
    assert report["rounds"] == 2


def test_histogram(run, data):
    report = run("histogram", "--bind", "x=y", "--set", "bins=17")
    counts, edges = np.histogram(data[1]["y"], 17)
    assert array(report["outputs"]["counts"]).tolist() == counts.tolist()
    close(report["outputs"]["edges"], edges)
    assert report["rounds"] == 2


def test_linear_regression(run, data):
    report = run("linear_regression")
    design = np.column_stack([np.ones(len(data[1]["y"])), data[1]["x"]])
    beta, rss, _, _ = np.linalg.lstsq(design, data[1]["y"], rcond=None)
    sigma2 = rss[0] / (len(design) - design.shape[1])
    close(report["outputs"]["beta"], beta, 1e-10)
    close(report["outputs"]["se"], np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * sigma2), 1e-10)
    close(report["outputs"]["r_squared"], 1 - rss[0] / np.sum((data[1]["y"] - data[1]["y"].mean())**2))
    assert report["rounds"] == 2


@pytest.mark.parametrize("q", [0, 0.1, 0.25, 0.5, 0.9, 1])
def test_quantile(run, data, q):
    report = run("quantile", "--bind", "x=y", "--set", f"q={q}")
    close(report["outputs"]["value"], np.quantile(data[1]["y"], q))
    assert report["rounds"] == report["iterations"][0] + 2


def test_quantile_with_ties(starfold, federation):
    x = np.array([3.0, 1, 2, 2, 2, 5, 5, 1e300, -1e300])
    clients = federation({"a": {"x": x[:4]}, "b": {"x": x[4:]}})
    for q in (0, 0.2, 0.375, 0.5, 0.8, 1):
        report = starfold("run", EXAMPLES / "quantile.fold", "--json", *clients, "--set", f"q={q}").json()
        close(report["outputs"]["value"], np.quantile(x, q))


def test_kmeans(run, data):
    x = data[1]["x"]
    centre = x[[0, 50, 100]]
    for iterations in range(1, 101):
        member = ((x[:, None] - centre)**2).sum(2).argmin(1)
        moved = np.array([x[member == k].mean(0) if (member == k).any() else centre[k] for k in range(3)])
        done = np.array_equal(moved, centre)
        close_enough = np.allclose(moved, centre, rtol=1e-15)
        centre = moved
        if done or close_enough:
            break
    report = run("kmeans", "--set", f"start={x[[0, 50, 100]].tolist()}")
    close(report["outputs"]["centre"], centre)
    assert report["rounds"] == report["iterations"][0]
    assert abs(report["iterations"][0] - iterations) <= 1
    assert np.all(np.diff(report["traces"]["inertia"]) <= 1e-9)


def test_power_iteration(run, data):
    report = run("power_iteration")
    values, vectors = np.linalg.eigh(np.cov(data[1]["x"].T))
    v = vectors[:, -1] * np.sign(vectors[:, -1] @ array(report["outputs"]["v"]))
    np.testing.assert_allclose(array(report["outputs"]["v"]), v, rtol=0, atol=1e-12)
    close(report["outputs"]["variance"], values[-1])
    # the mean, one round per iteration, and the variance of the scores
    assert report["rounds"] == report["iterations"][0] + 2


def test_every_example_equals_the_reference(run, data):
    for name in ("mean", "variance", "covariance", "correlation", "linear_regression", "power_iteration"):
        federated, pooled = run(name), run(name, "--reference")
        for key, value in pooled["outputs"].items():
            np.testing.assert_allclose(array(federated["outputs"][key]), array(value), rtol=1e-10, atol=1e-12)


def test_examples_are_short():
    for name in ("mean", "variance", "covariance", "correlation", "histogram", "linear_regression", "quantile", "kmeans",
                 "power_iteration"):
        assert len((EXAMPLES / f"{name}.fold").read_text().splitlines()) <= 20
