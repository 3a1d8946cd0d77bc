"""Learning: components, discriminants, clusters, networks, planes.

Ready-made programs equal R on the pooled data, over uneven clients of which one has a single record and one has none.
"""
import numpy as np
import pytest
from ready_made import BINARY, INFERT, IRIS, R, agree, check, kept, table


def test_discriminant_analysis(ready):
    for program in ("lda", "qda"):
        out, _ = ready(program, table("iris"), IRIS + ["group=species"])
        assert round(float(out["accuracy"]) * 150) == R[program]["correct"]
    out, _ = ready("lda", table("iris"), IRIS + ["group=species"])
    agree(out["means"], R["lda"]["means"], 1e-13, "means")
    x = np.array([table("iris")[name][70] for name in IRIS[0][2:].split(",")])
    score = out["constant"] + out["coefficient"] @ x
    agree(np.exp(score - score.max()) / np.exp(score - score.max()).sum(), R["lda"]["first"], 1e-9, "posterior")


def test_naive_bayes(ready):
    data = table("iris")
    out, _ = ready("naive_bayes", data, IRIS + ["group=species"])
    x, group = np.column_stack([data[name] for name in IRIS[0][2:].split(",")]), np.array(data["species"])
    means = np.array([x[group == g].mean(0) for g in (1, 2, 3)])
    sds = np.array([x[group == g].std(0, ddof=1) for g in (1, 2, 3)])
    agree(out["means"], means, 1e-13, "means")
    agree(out["sd"], sds, 1e-12, "sd")
    score = -np.log(sds).sum(1) - (((x[:, None] - means) / sds)**2).sum(2) / 2
    agree(out["accuracy"], (score.argmax(1) + 1 == group).mean(), 1e-14, "accuracy")


def test_principal_components_and_factors(ready):
    out, _ = ready("pca", table("iris"), IRIS, {"scaled": 1})
    agree(out["variances"], R["pca_scaled"]["variances"], 1e-12, "variances")
    agree(np.abs(out["directions"]), np.abs(R["pca_scaled"]["directions"]), 1e-11, "directions")
    every = ["x=rating,complaints,privileges,learning,raises,critical,advance"]
    # R's optimizer stops at 1e-8 of the uniquenesses.
    out, _ = check(ready, "factor_analysis", "factor_analysis", "attitude", every, {"factors": 2}, 1e-6, skip=["loadings"])
    agree(np.abs(out["loadings"]), np.abs(R["factor_analysis"]["loadings"]), 1e-6, "loadings")


def test_clusters(ready):
    data = table("iris")
    x = np.column_stack([data[name] for name in IRIS[0][2:].split(",")])
    out, _ = ready("kmeans", data, IRIS, {"starts": 5})
    assert out["inertia"] < 78.86  # the best known, 78.8514
    nearest = ((x[:, None] - out["centre"])**2).sum(2).argmin(1)
    agree(out["centre"], [x[nearest == g].mean(0) for g in range(3)], 1e-12, "centres")
    out, report = ready("gaussian_mixture", data, IRIS, {"k": 3})
    agree(out["log_likelihood"], -180.18547, 1e-5, "the likelihood of mclust's and sklearn's best fit")
    assert np.all(np.diff(report["traces"]["log_likelihood"]) > -1e-6)


def test_starts_of_k_means(ready, tmp_path):
    """Two of three clusters lie close: boxes are drawn where distances are large, and a start finds what one at random would miss."""
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.normal(c, 0.3, (n, 2)) for c, n in (((0, 0), 60), ((2, 0), 60), ((40, 40), 20), ((40, 44), 20))])
    x = x[np.argsort(np.arange(160) * 37 % 160)]
    out, report = ready("kmeans", {"a": x[:, 0].tolist(), "b": x[:, 1].tolist()}, ["x=a,b"], {"k": 4}, "--out", tmp_path / "out")
    nearest = ((x[:, None] - out["centre"])**2).sum(2).argmin(1)
    assert sorted(out["n"].tolist()) == [20, 20, 60, 60] and (kept(tmp_path / "out", "cluster") == nearest + 1).all()
    agree(out["inertia"], ((x - out["centre"][nearest])**2).sum(), 1e-12, "inertia")
    assert out["inertia"] == out["inertia_of_starts"].min() and (out["inertia_of_starts"] < 1.001 * out["inertia"]).sum() >= 3
    assert report["rounds"] == report["iterations"][-1] + 4 * 6 + 2
    assert "fewer records than clusters" in ready("kmeans", {"a": [1.0, 2.0]}, ["x=a"], fails=True)


def adam(theta, gradient, steps, rate):
    m = v = np.zeros_like(theta)
    for t in range(1, steps + 1):
        g = gradient(theta)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        theta = theta - rate / (1 - 0.9**t) * m / (np.sqrt(v) / np.sqrt(1 - 0.999**t) + 1e-8)
    return theta


def layers(theta, *units):
    """Weights of three layers, a row of biases first."""
    ends = np.cumsum([0] + [(a + 1) * b for a, b in zip(units, units[1:])])
    return [theta[a:b].reshape(-1, h) for a, b, h in zip(ends, ends[1:], units[1:])]


@pytest.mark.parametrize("program", ["perceptron", "perceptron_regression"])
def test_perceptrons(ready, program, tmp_path):
    """Adam on the pooled records, with gradients by hand."""
    data = table("iris")
    labels = program == "perceptron"
    columns = IRIS[0][2:].split(",")[: 4 if labels else 3]
    binds = ["x=" + ",".join(columns), "y=species" if labels else "y=petal_width"]
    sets = {"hidden": 5, "second": 4, **({"classes": 3} if labels else {})}
    first, _ = ready(program, data, binds, {**sets, "rounds": 1, "rate": 0})
    out, report = ready(program, data, binds, {**sets, "rounds": 60}, "--out", tmp_path / "out")
    x = np.column_stack([data[name] for name in columns])
    z, n, c = (x - x.mean(0)) / x.std(0, ddof=1), 150, 3 if labels else 1
    y = np.array(data["species" if labels else "petal_width"])
    target = (y[:, None] == [1, 2, 3]).astype(float) if labels else ((y - y.mean()) / y.std(ddof=1))[:, None]

    def forward(theta):
        w1, w2, w3 = layers(theta, len(columns), 5, 4, c)
        one = np.tanh(z @ w1[1:] + w1[0])
        two = np.tanh(one @ w2[1:] + w2[0])
        return one, two, two @ w3[1:] + w3[0], w2, w3

    def gradient(theta):
        one, two, scores, w2, w3 = forward(theta)
        chances = np.exp(scores - scores.max(1, keepdims=True))
        back = ((chances / chances.sum(1, keepdims=True) if labels else scores) - target) / n
        back2 = back @ w3[1:].T * (1 - two**2)
        back1 = back2 @ w2[1:].T * (1 - one**2)
        parts = [back1.sum(0), z.T @ back1, back2.sum(0), one.T @ back2, back.sum(0), two.T @ back]
        return np.concatenate([part.ravel() for part in parts]) + 1e-4 * theta

    def flat(results):
        return np.concatenate([results[name].ravel() for name in ("w1", "w2", "w3")])

    theta = adam(flat(first), gradient, 60, 0.02)
    agree(flat(out), theta, 1e-9, "weights")
    scores = forward(theta)[2]
    expected = scores.argmax(1) + 1 if labels else y.mean() + y.std(ddof=1) * scores[:, 0]
    agree(kept(tmp_path / "out", "predicted"), expected, 1e-9, "what clients keep")
    assert report["rounds"] == 62 and report["traces"]["loss"][-1] < 0.3 * report["traces"]["loss"][0]


def test_svm(ready):
    out, _ = ready("svm", INFERT, BINARY)
    x, s = np.column_stack([INFERT[name] for name in ("age", "parity", "induced", "spontaneous")]), 2 * np.array(INFERT["case"]) - 1
    slack = np.maximum(0, 1 - s * (x @ out["beta"] + out["intercept"]))
    agree(out["objective"], out["beta"] @ out["beta"] / 2 + (slack**2).sum(), 1e-12, "objective")
    # The gradient is zero at the optimum.
    assert np.abs(out["beta"] - 2 * x.T @ (slack * s)).max() < 1e-8 and abs((slack * s).sum()) < 1e-9
