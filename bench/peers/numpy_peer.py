"""NumPy, as its users write it."""

import protocol


def make_rows():
    import numpy as np

    def logistic_gradient(data, sizes):
        x, y, beta = data.x, data.y, data.beta

        def work(turn):
            eta = x @ (beta * protocol.factor(turn))
            return [x.T @ (1 / (1 + np.exp(-eta)) - y)]

        return work

    def newton_step(data, sizes):
        x, y, beta = data.x, data.y, data.beta

        def work(turn):
            mu = 1 / (1 + np.exp(-(x @ (beta * protocol.factor(turn)))))
            hessian = x.T @ ((mu * (1 - mu))[:, None] * x)
            return [np.linalg.solve(hessian, x.T @ (mu - y))]

        return work

    def covariance(data, sizes):
        x = data.x

        def work(turn):
            mean = x.mean(axis=0)
            centred = x - mean
            return [centred.T @ centred / (len(x) - 1), mean]

        return work

    def elementwise(data, sizes):
        x, a, b = data.x, data.a, data.b

        def work(turn):
            scale = protocol.factor(turn)
            return [np.mean(np.log1p(np.exp(a * scale * x + b * scale)) * np.tanh(x))]

        return work

    def mlp_gradient(data, sizes):
        x, label = data.x, data.y.astype(int) - 1
        weights = data.w1, data.b1, data.w2, data.b2

        def work(turn):
            w1, b1, w2, b2 = (weight * protocol.factor(turn) for weight in weights)
            before = x @ w1 + b1
            hidden = np.maximum(before, 0)
            scores = hidden @ w2 + b2
            scores -= scores.max(axis=1, keepdims=True)
            d2 = np.exp(scores)
            d2 /= d2.sum(axis=1, keepdims=True)
            d2[np.arange(len(x)), label] -= 1
            d2 /= len(x)
            d1 = (d2 @ w2.T) * (before > 0)
            return [x.T @ d1, d1.sum(axis=0), hidden.T @ d2, d2.sum(axis=0)]

        return work

    def kmeans_step(data, sizes):
        x, start = data.x, data.centre

        def work(turn):
            centre = start * protocol.factor(turn)
            nearest = np.argmax(x @ centre.T - 0.5 * np.square(centre).sum(axis=1), axis=1)
            n = np.bincount(nearest, minlength=len(centre))
            sums = np.stack([np.bincount(nearest, column, len(centre)) for column in x.T], axis=1)
            return [np.where(n[:, None] > 0, sums / np.maximum(n, 1)[:, None], centre)]

        return work

    def fedavg(data, sizes):
        x, y, clients = data.x, data.y, sizes["clients"]
        ends = [len(x) * i // clients for i in range(clients + 1)]
        shares = [(x[a:b].copy(), y[a:b].copy()) for a, b in zip(ends, ends[1:])]

        def work(turn):
            theta = np.zeros(x.shape[1])
            for _ in range(sizes["rounds"]):
                total = np.zeros_like(theta)
                for own, label in shares:
                    b = theta
                    for _ in range(sizes["epochs"]):
                        b = b - 0.5 * (own.T @ (1 / (1 + np.exp(-(own @ b))) - label)) / len(own)
                    total += len(own) * b
                theta = total / len(x)
            return [theta]

        return work

    return locals()


protocol.main(make_rows)
