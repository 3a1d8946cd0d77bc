"""Mixed models, and models of each client.

Ready-made programs equal R on the pooled data, over uneven clients of which one has a single record and one has none.
"""
import numpy as np
import pytest
from conftest import array
from ready_made import R, agree, check, shuffled, table


@pytest.mark.parametrize("reml", [1, 0])
def test_random_intercept(ready, reml):
    data = table("sleepstudy")
    order = sorted(range(180), key=lambda i: i * 37 % 180)
    data = {name: [values[i] for i in order] for name, values in data.items()}
    # lmer's optimizer finds the ratio of variances to about 1e-7.
    _, report = check(ready, f"random_intercept_{'reml' if reml else 'ml'}", "random_intercept", data,
                      ["x=days", "y=reaction", "group=subject"], {"groups": 18, "reml": reml}, 1e-7)
    assert report["rounds"] == 1


def test_groups_that_hardly_differ(ready):
    """The likelihood bends downwards where the fit begins; the answer is still lmer's."""
    check(ready, "random_intercept_near", "random_intercept", "near_groups", ["x=x", "y=y", "group=group"], {"groups": 10}, 1e-6)


def test_groups_behind_the_bar(ready):
    """The formula of a mixed model, and of clusters."""
    out, _ = ready("random_intercept", shuffled("sleepstudy"), [], {"groups": 18}, "--formula", "reaction ~ days | subject")
    agree(out["sd_between"], R["random_intercept_reml"]["sd_between"], 1e-7, "deviation")
    out, _ = ready("gee_linear_exchangeable", shuffled("sleepstudy"), [], {"clusters": 18}, "--formula", "reaction ~ days | subject")
    agree(out["beta_se"], R["gee_linear_exchangeable"]["beta_se"], 1e-8, "errors")


@pytest.mark.parametrize("reml", [1, 0])
def test_random_slope(ready, reml):
    """lmer's optimizer finds deviations to about 1e-6, what depends on their square to more."""
    key = f"random_slope_all_{'reml' if reml else 'ml'}"
    out, report = check(ready, key, "random_slope", shuffled("sleepstudy"), ["x=days", "y=reaction", "slope=days", "group=subject"],
                        {"groups": 18, "reml": reml}, 2e-6, skip=["group_intercepts"])
    agree(out["group_intercepts"], R[key]["group_intercepts"], 1e-5, "small beside the largest of them")
    agree(out["log_likelihood"], R[key]["log_likelihood"], 1e-11, "log-likelihood")
    assert report["rounds"] == 1 and report["warnings"] == []


@pytest.mark.parametrize("reml", [1, 0])
def test_random_slope_by_client(starfold, federation, tmp_path, reml):
    """Every subject is a client; one has a single record, and one client has none."""
    data = {name: np.array(values) for name, values in table("sleepstudy").items()}
    parts = {f"s{g:02}": (data["subject"] == g) & ((g > 1) | (data["days"] == 0)) for g in range(1, 19)}
    parts["empty"] = data["subject"] < 0
    clients = federation({name: {"x": data["days"][part][:, None], "y": data["reaction"][part], "slope": data["days"][part]} for name, part in parts.items()})
    result = starfold("run", "client_slope", "--json", "--out", tmp_path / "out", "--set", f"reml={reml}", *clients)
    assert result.code == 0, result.err
    expected = R[f"random_slope_few_{'reml' if reml else 'ml'}"]
    out = {name: array(value) for name, value in result.json()["outputs"].items()}
    for name in ("beta", "beta_se", "sd_intercept", "sd_slope", "correlation", "sd_within", "log_likelihood", "aic", "bic"):
        agree(out[name], expected[name], 2e-6, name)
    own = np.array([[np.load(tmp_path / "out" / "clients" / f"s{g:02}" / f"own_{name}.npy").item() for name in ("intercept", "slope")] for g in range(1, 19)])
    agree(own[:, 0], expected["group_intercepts"], 1e-5, "intercepts of clients")
    agree(own[:, 1], expected["group_slopes"], 2e-6, "slopes of clients")


@pytest.mark.parametrize("program, name, columns, outcome, by", [("linear_by_client", "cars", ["wt", "hp"], "mpg", "cyl"),
                                                                   ("logistic_by_client", "education", ["spontaneous", "induced"], "case", "education")])
def test_models_of_each_client(starfold, federation, tmp_path, program, name, columns, outcome, by):
    """A level is a client. One with a single record and one with none have no model and count nothing; every other keeps its own."""
    data = {key: np.array(values) for key, values in table(name).items()}
    parts = {f"c{int(level)}": data[by] == level for level in np.unique(data[by])}
    parts |= {"single": np.arange(len(data[by])) == 3, "empty": data[by] < 0}
    clients = federation({key: {"x": np.column_stack([data[c][part] for c in columns]), "y": data[outcome][part]} for key, part in parts.items()})
    result = starfold("run", program, "--json", "--out", tmp_path / "out", *clients)
    assert result.code == 0, result.err
    out = {key: array(value) for key, value in result.json()["outputs"].items()}
    for key in ("beta", "beta_se", "p_value", "fixed", "fixed_se", "q", "q_p_value", "between"):
        agree(out[key], R[program][key], 1e-8, key)
    assert out["clients"] == len(parts) - 2
    for i in range(len(parts) - 2):
        for key in ("own_beta", "own_se"):
            agree(np.load(tmp_path / "out" / "clients" / f"c{i + 1}" / f"{key}.npy").ravel(), R[program][key][i], 1e-8, key)
    assert np.isnan(np.load(tmp_path / "out" / "clients" / "single" / "own_beta.npy")).all()
