"""Tests of the installed package: `pip install .` into a fresh environment, and nothing of the repository in its path."""
import pathlib

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def clinic(rng, n):
    """Made-up patients of one clinic."""
    age, bmi = rng.normal(50, 10, n), rng.normal(25, 3, n)
    sex = rng.choice(["f", "m"], n)
    chance = 1 / (1 + np.exp(-(0.04 * (age - 50) + 0.1 * (bmi - 25) + 0.5 * (sex == "m"))))
    return {"age": age, "bmi": bmi, "sex": sex, "dx": (rng.random(n) < chance).astype(float)}


@pytest.fixture
def clinics(rng):
    return {name: clinic(rng, n) for name, n in [("athens", 120), ("bern", 80), ("cadiz", 60)]}
