"""The library: each ready-made program runs and equals NumPy on the pooled data."""
import numpy as np
import pytest
from conftest import ROOT, array
from ready_made import agree

rng = np.random.default_rng(3)
X = rng.normal(size=(200, 3)) @ [[1, 0.5, 0], [0, 1, 0.3], [0, 0, 2]] + [1, 2, 3]
Y = X @ [1, -1, 0.5] + rng.normal(size=200)
GROUP = (rng.random(200) < 0.4).astype(float)


def split(**arrays):
    return {name: {key: value[part] for key, value in arrays.items()}
            for name, part in {"a": slice(0, 90), "b": slice(90, 91), "c": slice(91, 91), "d": slice(91, 200)}.items()}


def outputs(starfold, program, clients):
    result = starfold("run", program, "--json", *clients)
    assert result.code == 0, result.err
    return {name: array(value) for name, value in result.json()["outputs"].items()}


def test_lib_lists_everything(starfold):
    listing = starfold("lib").out
    for name in ("summary", "correlation", "quantiles", "linear", "pca", "stats"):
        assert name in listing
    assert "fn quantile" in starfold("lib", "stats").out
    assert starfold("lib", "nothing").code == 2


@pytest.mark.parametrize("name, programs", [
    ("lm", "linear or weighted"), ("glm", "logistic or poisson or gamma"), ("t.test", "t_test or t_one_sample or t_paired"), ("chisq.test", "chi_square"),
    ("aov", "anova or anova_two_way"), ("wilcox.test", "mann_whitney"), ("coxph", "cox or cox_strata"), ("survfit", "kaplan_meier"),
    ("lmer", "random_intercept or random_slope or client_intercept or client_slope"), ("prcomp", "pca"), ("KMeans", "kmeans"), ("cor", "correlation"),
    ("table", "chi_square or table1"), ("quantile", "quantiles or column_quantiles"), ("LogisticRegression", "logistic"),
    ("sklearn.linear_model.LinearRegression", "linear"), ("scipy.stats.ttest_ind", "t_test"), ("regress", "linear"), ("stcox", "cox or cox_strata")])
def test_names_from_elsewhere(starfold, name, programs):
    for command in ("run", "check") if name == "glm" else ("run", "lib", "check"):  # there is a module glm
        result = starfold(command, name)
        assert result.code == 2 and f"did you mean {programs}?" in result.err, result.err


def test_names_that_mean_nothing(starfold):
    for command in ("run", "lib"):
        result = starfold(command, "zebra")
        assert result.code == 2 and "zebra" in result.err and "`starfold lib` lists what there is" in result.err
    result = starfold("run", "nls")
    assert result.code == 2 and "optim.lm" in result.err


@pytest.mark.parametrize("words, said", [
    (["foo"], "there is no command foo; `starfold --help` lists them"), (["chekc", "a.fold"], "did you mean `starfold check`?"),
    (["logistic"], "did you mean `starfold run logistic`?"), (["study.toml"], "did you mean `starfold run study.toml`?"),
    (["node", "srve"], "did you mean `starfold node serve`?"), (["\x1b[31m"], "there is no command")])
def test_commands_that_do_not_exist(starfold, words, said):
    result = starfold(*words)
    assert result.code == 2 and said in result.err and "\x1b" not in result.err, result.err
    assert starfold(*words, "--json").json()["ok"] is False


def test_summary(starfold, federation):
    out = outputs(starfold, "summary", federation(split(x=X)))
    np.testing.assert_allclose(out["mean"], X.mean(0), rtol=1e-12)
    np.testing.assert_allclose(out["sd"], X.std(0, ddof=1), rtol=1e-12)
    assert out["n"] == 200 and (out["min"] == X.min(0)).all() and (out["max"] == X.max(0)).all()


def test_correlation(starfold, federation):
    out = outputs(starfold, "correlation", federation(split(x=X)))
    np.testing.assert_allclose(out["correlation"], np.corrcoef(X.T), rtol=1e-12, atol=1e-14)


def test_quantiles(starfold, federation):
    out = outputs(starfold, "quantiles", federation(split(x=Y)))
    np.testing.assert_allclose([out["lower"], out["median"], out["upper"]], np.quantile(Y, [0.25, 0.5, 0.75]), rtol=1e-12)


def test_linear(starfold, federation):
    out = outputs(starfold, "linear", federation(split(x=X, y=Y)))
    design = np.column_stack([np.ones(200), X])
    beta, rss, _, _ = np.linalg.lstsq(design, Y, rcond=None)
    se = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * rss[0] / 196)
    np.testing.assert_allclose(out["beta"], beta, rtol=1e-10)
    np.testing.assert_allclose(out["beta_se"], se, rtol=1e-10)
    np.testing.assert_allclose(out["t"], beta / se, rtol=1e-9)
    np.testing.assert_allclose(out["r_squared"], 1 - rss[0] / ((Y - Y.mean())**2).sum(), rtol=1e-10)


def test_pca(starfold, federation):
    out = outputs(starfold, "pca", federation(split(x=X)))
    values, vectors = np.linalg.eigh(np.cov(X.T))
    np.testing.assert_allclose(out["variances"], values[::-1], rtol=1e-12)
    np.testing.assert_allclose(np.abs(out["directions"].T @ vectors[:, ::-1]), np.eye(3), atol=1e-12)


def test_stats_functions(starfold, federation, tmp_path):
    program = tmp_path / "stats_functions.fold"
    program.write_text("import stats\ninput x : [*, p]\ninput y : [*]\ninput g : [*]\n"
                       "let (difference, t, df, p_value) = stats.t_test(y, g)\n"
                       "output difference\noutput t\noutput df\noutput p_value\n"
                       "output skew = stats.skewness(x)\noutput kurt = stats.kurtosis(x)\n"
                       "output counts = stats.histogram(y, linspace(-3, 5, 9))\n"
                       "output table = stats.tabulate(g + 1, zeros(2))\noutput groups = stats.group_mean(y, g + 1, zeros(2))\n"
                       "output cross = stats.crosstab(g + 1, (y > 0) + 1, zeros(2, 2))\n"
                       "output weighted = stats.weighted_mean(x, g)\noutput cov = stats.cov(x)\n"
                       "let z = stats.standardize(x)\noutput zero = mean[*](z)\noutput one = std[*](z)\n")
    out = outputs(starfold, program, federation(split(x=X, y=Y, g=GROUP)))
    one, zero = Y[GROUP == 1], Y[GROUP == 0]
    v1, v0 = one.var(ddof=1) / len(one), zero.var(ddof=1) / len(zero)
    np.testing.assert_allclose(out["difference"], one.mean() - zero.mean(), rtol=1e-11)
    np.testing.assert_allclose(out["t"], (one.mean() - zero.mean()) / np.sqrt(v1 + v0), rtol=1e-11)
    np.testing.assert_allclose(out["df"], (v1 + v0)**2 / (v1**2 / (len(one) - 1) + v0**2 / (len(zero) - 1)), rtol=1e-11)
    c = X - X.mean(0)
    np.testing.assert_allclose(out["skew"], (c**3).mean(0) / (c**2).mean(0)**1.5, rtol=1e-10)
    np.testing.assert_allclose(out["kurt"], (c**4).mean(0) / (c**2).mean(0)**2, rtol=1e-10)
    assert out["counts"].tolist() == np.histogram(Y, np.linspace(-3, 5, 9))[0].tolist()
    assert out["table"].tolist() == [len(zero), len(one)]
    np.testing.assert_allclose(out["groups"], [zero.mean(), one.mean()], rtol=1e-12)
    expected = [[((GROUP == a) & ((Y > 0) == b)).sum() for b in (0, 1)] for a in (0, 1)]
    assert out["cross"].tolist() == expected
    np.testing.assert_allclose(out["weighted"], X[GROUP == 1].mean(0), rtol=1e-12)
    np.testing.assert_allclose(out["cov"], np.cov(X.T), rtol=1e-11)
    np.testing.assert_allclose(out["zero"], 0, atol=1e-13)
    np.testing.assert_allclose(out["one"], 1, rtol=1e-12)


# --- the library as a whole

def test_every_program_is_described(starfold):
    """A sentence, and the same fields in the same order: what docs/library.md is made of."""
    listing = starfold("lib").out
    for path in sorted((ROOT / "lib" / "programs").glob("*.fold")):
        head = [line[2:] for line in path.read_text().split("\n") if line.startswith("#")]
        keys = [line.split(":")[0] for line in head[2:] if not line.startswith(" ")]
        assert keys[:6] == ["Kind", "Model", "Inputs", "Rounds", "Exposure", "Law"], path
        assert f"  {path.stem} " in listing and head[0] in listing
        assert starfold("fmt", "--check", path).code == 0, path


def test_the_page_is_current(starfold):
    assert starfold("lib", "--markdown").out == (ROOT / "docs" / "library.md").read_text(), "run `make docs`"


# --- the worked study

@pytest.mark.parametrize("study", ["table1", "kaplan_meier", "logrank", "cox", "weibull"])
def test_worked_study(starfold, tmp_path, study):
    folder = ROOT / "examples" / "lung"
    result = starfold("run", folder / f"{study}.toml", "--out", tmp_path / "out", "--json")
    assert result.code == 0, result.err
    report = (tmp_path / "out" / "report.html").read_text()
    assert "Lung cancer at three hospitals" in report and "north" in report
    out = {name: array(value) for name, value in result.json()["outputs"].items()}
    if study == "cox":
        # R: coxph(Surv(ifelse(status == 1, 30 * ceiling(time / 30), time), status) ~ age + sex + ecog)
        agree(out["beta"], [0.0102832, -0.5497573, 0.4722566], 1e-6, "coefficients")
        assert "Reference level of <code>sex</code>" in report and "Records left out for a missing value" in report
