"""Figures of other accountants: python tests/reference/privacy.py (needs dp-accounting 0.6 and opendp 0.16, from PyPI)."""

import json
import math
import pathlib

import dp_accounting
import opendp.prelude as dp
from dp_accounting import pld, rdp

dp.enable_features("contrib")


def gaussian(mu, delta):
    """Privacy loss distributions, composed twice."""
    accountant = pld.PLDAccountant(value_discretization_interval=1e-4)
    accountant.compose(dp_accounting.GaussianDpEvent(math.sqrt(2) / mu), 2)
    return {"mu": mu, "delta": delta, "epsilon": accountant.get_epsilon(delta)}


def analytic(epsilon, delta):
    return {"epsilon": epsilon, "delta": delta, "sigma": dp_accounting.get_sigma_gaussian(epsilon, delta)}


def zcdp(rho, delta):
    """OpenDP's conversion from concentrated privacy: the curve of a Gaussian measurement."""
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    measurement = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=1 / math.sqrt(2 * rho)))
    return {"rho": rho, "delta": delta, "epsilon": measurement.map(1.0).epsilon(delta)}


def renyi(rho, delta):
    """dp-accounting's Renyi orders: a Gaussian of this rho in ten releases."""
    accountant = rdp.RdpAccountant(orders=[1 + x / 50 for x in range(1, 5000)])
    accountant.compose(dp_accounting.GaussianDpEvent(math.sqrt(10 / (2 * rho))), 10)
    return {"rho": rho, "delta": delta, "epsilon": accountant.get_epsilon(delta)}


def discrete(variance, sensitivity, epsilon):
    loss = pld.privacy_loss_mechanism.DiscreteGaussianPrivacyLoss(
        math.sqrt(variance), sensitivity=sensitivity)
    return {"variance": variance, "sensitivity": sensitivity, "epsilon": epsilon,
            "delta": loss.get_delta_for_epsilon(epsilon)}


pairs = [(m, d) for m in (0.05, 0.3, 1.0, 2.5) for d in (1e-8, 1e-5)]
figures = {
    "gaussian": [gaussian(m, d) for m, d in pairs],
    "analytic": [analytic(e, d) for e in (0.1, 1.0, 4.0) for d in (1e-8, 1e-5)],
    "zcdp": [zcdp(r, d) for r in (0.001, 0.025, 0.5) for d in (1e-8, 1e-5)],
    "rdp": [renyi(r, d) for r in (0.025, 0.5, 2.0) for d in (1e-8, 1e-5)],
    "discrete_gaussian": [discrete(v, s, e) for v, s in ((1, 1), (4, 1), (9, 2), (100, 5)) for e in (0.2, 1.0, 2.0)],
}
path = pathlib.Path(__file__).with_suffix(".json")
path.write_text(json.dumps(figures, indent=1) + "\n")
