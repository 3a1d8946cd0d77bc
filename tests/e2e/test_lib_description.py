"""Description, judging and imputation.

Ready-made programs equal R on the pooled data, over uneven clients of which one has a single record and one has none.
"""
import numpy as np
from conftest import array
from ready_made import BINARY, CARS, INFERT, IRIS, MTCARS, R, agree, check, kept, table


def test_table1(ready):
    data = table("iris")
    data["sepal_length"] = [float("nan") if i % 7 == 3 else v for i, v in enumerate(data["sepal_length"])]
    out, _ = ready("table1", data, ["x=sepal_length,petal_width", "group=species"], {"groups": 3}, "--missing", "nan")
    x = np.column_stack([data["sepal_length"], data["petal_width"]])
    group = np.array(data["species"])
    for name, expected in (("mean", np.nanmean(x, 0)), ("sd", np.nanstd(x, 0, ddof=1)), ("lower_quartile", np.nanquantile(x, 0.25, 0)),
                           ("median", np.nanmedian(x, 0)), ("upper_quartile", np.nanquantile(x, 0.75, 0)), ("missing", np.isnan(x).sum(0))):
        agree(out[name], expected, 1e-12, name)
    for g in range(3):
        own = x[group == g + 1]
        agree(out["mean_by_group"][:, g], np.nanmean(own, 0), 1e-12, "mean by group")
        agree(out["sd_by_group"][:, g], np.nanstd(own, 0, ddof=1), 1e-12, "sd by group")
        agree(out["median_by_group"][:, g], np.nanmedian(own, 0), 1e-12, "median by group")
        agree(out["missing_by_group"][:, g], np.isnan(own).sum(0), 0, "missing by group")


def test_table1_by_site(starfold, tmp_path):
    """All columns, by a factor, by the client: what stands behind `|`."""
    (tmp_path / "a.csv").write_text("age,sex,bmi\n50,m,20\n60,f,\n55,m,30\n")
    (tmp_path / "b.csv").write_text("age,sex,bmi\n41,f,22\n66,f,25\n58,m,31\n")
    clients = ["--client", f"north={tmp_path / 'a.csv'}", "--client", f"south={tmp_path / 'b.csv'}", "--levels", "sex=f,m", "--missing", "nan"]
    result = starfold("run", "table1", "--json", "--formula", "~ . | site", *clients)
    assert result.code == 0, result.err
    out = {name: array(value) for name, value in result.json()["outputs"].items()}
    agree(out["mean_by_group"], [[55, 55], [2 / 3, 1 / 3], [25, 26]], 1e-14, "means by site")
    assert out["missing_by_group"].tolist() == [[0, 0], [0, 0], [1, 0]]
    result = starfold("run", "table1", "--json", "--formula", "~ age + bmi | sex", *clients)
    agree(array(result.json()["outputs"]["median_by_group"]), [[60, 55], [23.5, 30]], 1e-14, "medians by sex")
    wrong = starfold("run", "linear", "--formula", "bmi ~ age | sex", *clients)
    assert wrong.code != 0 and "is for an input group, cluster or stratum" in wrong.err
    for formula, why in (("~ age | sex | site", "one `|`"), ("~ age | .", "no group"), ("~ age | poly(bmi, 2, raw = TRUE)", "one column")):
        wrong = starfold("run", "table1", "--formula", formula, *clients)
        assert wrong.code == 2 and why in wrong.err


def test_correlation(ready):
    out, _ = ready("correlation", CARS, ["x=mpg,wt"])
    agree(out["p_value"][0, 1], R["correlation"]["p_value"], 1e-11, "p value")
    agree(out["correlation_lower"][0, 1], R["correlation"]["lower"], 1e-11, "interval")


def test_histogram_and_quantiles(ready):
    edges = [10, 15, 20, 25, 35]
    out, _ = ready("histogram", CARS, ["x=mpg"], {"edges": edges})
    assert out["counts"].tolist() == np.histogram(CARS["mpg"], edges)[0].tolist()
    data = table("iris")
    out, _ = ready("column_quantiles", data, IRIS, {"q": [0.1, 0.5, 0.9]})
    x = np.column_stack([data[name] for name in IRIS[0][2:].split(",")])
    agree(out["quantile"], np.quantile(x, [0.1, 0.5, 0.9], axis=0), 1e-14, "quantiles")


def test_roc(ready):
    out, _ = ready("roc", INFERT, ["score=spontaneous", "y=case"], {"grid": [0, 1, 2]})
    score, y = np.array(INFERT["spontaneous"]), np.array(INFERT["case"])
    wins = np.sign(score[y == 1][:, None] - score[y == 0]) / 2 + 0.5
    agree(out["auc"], wins.mean(), 1e-14, "AUC")
    delong = wins.mean(1).var(ddof=1) / (y == 1).sum() + wins.mean(0).var(ddof=1) / (y == 0).sum()
    agree(out["auc_se"], np.sqrt(delong), 1e-13, "its error")
    agree(out["sensitivity"], [(score[y == 1] >= t).mean() for t in (0, 1, 2)], 1e-14, "sensitivity")
    agree(out["specificity"], [(score[y == 0] < t).mean() for t in (0, 1, 2)], 1e-14, "specificity")


def test_calibration_and_cross_validation(ready):
    data = {**INFERT, "p": [0.1 + 0.3 * s for s in INFERT["spontaneous"]], "fold": [float(1 + i % 5) for i in range(len(INFERT["case"]))]}
    check(ready, "calibration", "calibration", data, ["prediction=p", "y=case"], None, 1e-10)
    check(ready, "cross_validation", "cross_validation", data, BINARY + ["fold=fold"], None, 1e-10)


def test_confusion(ready):
    data = {"truth": [1.0, 1, 2, 2, 2, 3, 3, 1], "prediction": [1.0, 2, 2, 2, 3, 3, 3, 1]}
    out, _ = ready("confusion", data, ["truth=truth", "prediction=prediction"], {"labels": 3})
    assert out["counts"].tolist() == [[2, 1, 0], [0, 2, 1], [0, 0, 2]]
    agree(out["accuracy"], 0.75, 1e-15, "accuracy")
    agree(out["f1"], [0.8, 2 / 3, 0.8], 1e-15, "F1")


# --- imputation

def air_quality():
    data = table("airquality")
    data["temp"] = [float("nan") if i % 17 == 4 else v for i, v in enumerate(data["temp"])]
    return data


def test_imputation_by_mean(ready, tmp_path):
    data = air_quality()
    out, _ = ready("impute_mean", data, ["x=*"], None, "--missing", "nan", "--out", tmp_path / "out")
    x = np.column_stack(list(data.values()))
    agree(out["mean"], np.nanmean(x, 0), 1e-13, "means")
    agree(kept(tmp_path / "out", "imputed"), np.where(np.isnan(x), np.nanmean(x, 0), x), 1e-13, "what clients keep")
    assert out["missing"].tolist() == np.isnan(x).sum(0).tolist()


def test_imputation_by_chained_equations(ready, tmp_path):
    out, _ = ready("impute_chained", air_quality(), ["x=*"], None, "--missing", "nan", "--out", tmp_path / "out")
    for name in ("mean", "sd", "missing"):
        agree(out[name], R["impute_chained"][name], 1e-10, name)
    agree(kept(tmp_path / "out", "imputed"), R["impute_chained"]["imputed"], 1e-9, "what clients keep")


def test_imputation_says_what_it_cannot_do(ready):
    data = {**MTCARS, "gone": [float("nan")] * 32, "few": [1.0, 2.0] + [float("nan")] * 30}
    assert "columns without a value: gone" in ready("impute_mean", data, ["x=wt,gone"], None, "--missing", "nan", fails=True)
    assert "fewer known values" in ready("impute_chained", data, ["x=wt,hp,few"], None, "--missing", "nan", fails=True)
    # A whole table is left as it is.
    out, report = ready("impute_chained", MTCARS, ["x=wt,hp"], None, "--missing", "nan")
    assert report["warnings"] == [] and out["missing"].tolist() == [0, 0]
