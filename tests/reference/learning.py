"""Iterates of PyTorch's optimizers on pooled data, in double precision: tests/reference/learning.json.

Needs PyTorch and NumPy (Debian's python3-torch 1.13 was used). From the root of the repository:

    /usr/bin/python3 tests/reference/learning.py
"""
import csv
import json
import math
import pathlib

import numpy as np
import torch

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent / "data"
torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)


def infert():
    """Design with an intercept, columns of about equal size, and the response."""
    with open(DATA / "infert.csv") as file:
        rows = list(csv.DictReader(file))
    x = [[1.0, float(r["age"]) / 30, float(r["parity"]) / 2, float(r["induced"]), float(r["spontaneous"])] for r in rows]
    return torch.tensor(x), torch.tensor([float(r["case"]) for r in rows])


def first_order(make, steps=50):
    """The iterates on the mean logistic loss."""
    x, y = infert()
    theta = torch.zeros(x.shape[1], requires_grad=True)
    optimizer = make([theta])
    path = []
    for _ in range(steps):
        optimizer.zero_grad()
        eta = x @ theta
        loss = (torch.nn.functional.softplus(eta) - y * eta).mean()
        loss.backward()
        optimizer.step()
        path.append(theta.detach().tolist())
    return path


def damped_newton(rate=0.5, damping=0.1, steps=10):
    """theta - rate * solve(H + damping * I, g) on the summed logistic loss."""
    x, y = infert()

    def loss(theta):
        eta = x @ theta
        return (torch.nn.functional.softplus(eta) - y * eta).sum()

    theta = torch.zeros(x.shape[1])
    path = []
    for _ in range(steps):
        g = torch.autograd.functional.jacobian(loss, theta)
        h = torch.autograd.functional.hessian(loss, theta)
        theta = theta - rate * torch.linalg.solve(h + damping * torch.eye(len(theta)), g)
        path.append(theta.tolist())
    return path


def minimum():
    """The minimum of the mean logistic loss, by Newton's method to the end."""
    x, y = infert()
    return damped_newton(1.0, 0.0, 30)[-1], float((torch.nn.functional.softplus(x @ torch.tensor(
        damped_newton(1.0, 0.0, 30)[-1])) - y * (x @ torch.tensor(damped_newton(1.0, 0.0, 30)[-1]))).mean())


def start(inputs, hidden, outputs):
    """Glorot's uniform start, all parameters in one vector: w1, b1, w2, b2."""
    rng = np.random.RandomState(0)
    parts = []
    for a, b in ((inputs, hidden), (hidden, outputs)):
        bound = math.sqrt(6 / (a + b))
        parts += [rng.uniform(-bound, bound, a * b), rng.uniform(-bound, bound, b)]
    return np.concatenate(parts)


def digits(hidden=32, steps=200, rate=0.01, train=1347):
    """Loss before each step of full-batch Adam, and the accuracy on the held-out images after the last."""
    data = np.load(DATA / "digits.npz")
    x = torch.tensor(data["x"] / 16.0)
    y = torch.tensor(data["y"].astype(np.int64))
    theta = torch.tensor(start(64, hidden, 10), requires_grad=True)
    optimizer = torch.optim.Adam([theta], lr=rate)

    def logits(x):
        w1, b1, w2, b2 = torch.split(theta, [64 * hidden, hidden, hidden * 10, 10])
        return torch.tanh(x @ w1.reshape(64, hidden) + b1) @ w2.reshape(hidden, 10) + b2

    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(logits(x[:train]), y[:train])
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    with torch.no_grad():
        right = (logits(x[train:]).argmax(1) == y[train:]).double().mean().item()
    return {"hidden": hidden, "steps": steps, "rate": rate, "train": train, "losses": losses, "accuracy": right}


def sgd(**options):
    return lambda parameters: torch.optim.SGD(parameters, **options)


figures = {
    "made_by": f"tests/reference/learning.py with PyTorch {torch.__version__}",
    "gradient_descent": {"rate": 0.5, "path": first_order(sgd(lr=0.5))},
    "momentum": {"rate": 0.2, "mu": 0.9, "path": first_order(sgd(lr=0.2, momentum=0.9))},
    "nesterov": {"rate": 0.2, "mu": 0.9, "path": first_order(sgd(lr=0.2, momentum=0.9, nesterov=True))},
    "adagrad": {"rate": 0.5, "path": first_order(lambda p: torch.optim.Adagrad(p, lr=0.5))},
    "adam": {"rate": 0.1, "path": first_order(lambda p: torch.optim.Adam(p, lr=0.1))},
    "damped_newton": {"rate": 0.5, "damping": 0.1, "path": damped_newton()},
    "minimum": dict(zip(("theta", "mean_loss"), minimum())),
    "digits": digits(),
}
(HERE / "learning.json").write_text(json.dumps(figures, indent=1) + "\n")
