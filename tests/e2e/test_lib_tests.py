"""Tests of hypotheses.

Ready-made programs equal R on the pooled data, over uneven clients of which one has a single record and one has none.
"""
import pytest
from ready_made import CARS, INFERT, MTCARS, R, check, table


DIFFERENCE = {"statistic": "t", "lower": "difference_lower", "upper": "difference_upper"}


def test_t_tests(ready):
    check(ready, "t_one_sample", "t_one_sample", "mtcars", ["x=mpg"], {"mu": 18}, 1e-12,
          {"statistic": "t", "lower": "mean_lower", "upper": "mean_upper"})
    check(ready, "t_pooled", "t_test", "mtcars", ["y=mpg", "group=am"], {"pooled": 1}, 1e-12, DIFFERENCE)
    check(ready, "t_welch", "t_test", "mtcars", ["y=mpg", "group=am"], None, 1e-12, DIFFERENCE)
    check(ready, "t_paired", "t_paired", "sleep", ["x=first", "y=second"], None, 1e-12, DIFFERENCE)


def test_analysis_of_variance(ready):
    data = table("insects")
    data["spray"] = [1 + b + 2 * c + 3 * d + 4 * e + 5 * f for b, c, d, e, f in zip(*[data[name] for name in "BCDEF"])]
    check(ready, "anova_one_way", "anova", data, ["y=count", "group=spray"], {"groups": 6}, 1e-11)
    check(ready, "anova_two_way", "anova_two_way", "cars", ["y=mpg", "a=cyl", "b=am"], {"levels_a": 3}, 1e-11)


def test_tables_of_counts(ready):
    _, report = check(ready, "chi_square", "chi_square", "cars", ["row=cyl", "column=am"], {"rows": 3}, 1e-12)
    assert any("below 5" in warning for warning in report["warnings"])
    table_2 = {"row": [am - 1 for am in CARS["am"]], "column": [float(wt > 3.2) for wt in MTCARS["wt"]]}
    check(ready, "fisher", "fisher", table_2, ["row=row", "column=column"], None, 1e-11)
    data = {"y": INFERT["case"], "group": [float(induced > 0) for induced in INFERT["induced"]]}
    check(ready, "proportions", "proportions", data, ["y=y", "group=group"], None, 1e-12)


@pytest.mark.parametrize("program", ["kolmogorov_smirnov", "mann_whitney"])
def test_on_a_grid(ready, program):
    data = {"x": CARS["mpg"], "group": [am - 1 for am in CARS["am"]]}
    check(ready, program, program, data, ["x=x", "group=group"], {"grid": R[program]["grid"]}, 1e-12, skip=["grid"])
