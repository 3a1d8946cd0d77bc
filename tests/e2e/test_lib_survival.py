"""Survival analysis.

Ready-made programs equal R on the pooled data, over uneven clients of which one has a single record and one has none.
"""
import pytest
from ready_made import EVENTS, LUNG, LUNG_STRATA, SURVIVAL, check


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_cox(ready, ties):
    skip = ["cumulative_hazard"] if ties == "efron" else []
    check(ready, f"cox_{ties}", "cox", "lung", ["x=age,male,ecog,karno"] + SURVIVAL, {"grid": EVENTS, "efron": int(ties == "efron")},
          tolerance=1e-10, names={"cumulative_hazard": "breslow_hazard"}, skip=skip)


def test_cox_with_strata(ready):
    check(ready, "cox_strata", "cox_strata", LUNG_STRATA, ["x=age,ecog", "stratum=stratum"] + SURVIVAL, {"grid": EVENTS}, tolerance=1e-10)


def test_kaplan_meier(ready):
    _, report = check(ready, "kaplan_meier", "kaplan_meier", "lung", SURVIVAL, {"grid": EVENTS}, tolerance=1e-12)
    assert report["rounds"] == 1 and report["warnings"] == []
    # Between times of a coarser grid events count at the next one, and that is said.
    _, report = ready("kaplan_meier", LUNG, SURVIVAL, {"grid": [100, 200, 400, 1100]})
    assert any("between times of the grid" in warning for warning in report["warnings"])


def test_logrank(ready):
    check(ready, "logrank", "logrank", LUNG_STRATA, SURVIVAL + ["group=stratum"], {"grid": EVENTS}, tolerance=1e-12)


@pytest.mark.parametrize("program", ["weibull", "exponential"])
def test_parametric_survival(ready, program):
    skip = ["scale", "log_scale_se"] if program == "exponential" else []
    check(ready, program, program, "lung", ["x=age,male,ecog"] + SURVIVAL, tolerance=2e-9, skip=skip)


def test_weibull_far_from_its_start(ready):
    """The likelihood bends downwards where the fit begins; the answer is still that of survreg."""
    out, _ = check(ready, "weibull_far", "weibull", "far_times", ["x=x", "time=time", "status=status"], tolerance=2e-9)
    assert out["converged"] == 1 and out["iterations"] < 20
