"""JAX: double precision, compiled."""

import protocol


def make_rows():
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp

    def prepared(function, *arrays):
        """`function` takes the factor of the turn and the arrays; compiled, and waited for."""
        compiled = jax.jit(function)
        arrays = [jnp.asarray(array) for array in arrays]
        return lambda turn: [jax.block_until_ready(result) for result in compiled(protocol.factor(turn), *arrays)]

    def loss(beta, x, y):
        eta = x @ beta
        return jnp.sum(jax.nn.softplus(eta) - y * eta)

    def logistic_gradient(data, sizes):
        def work(factor, x, y, beta):
            return [jax.grad(loss)(beta * factor, x, y)]

        return prepared(work, data.x, data.y, data.beta)

    # jax.hessian would make [records, p] intermediates p times; this is what a user who cares writes.
    def newton_step(data, sizes):
        def work(factor, x, y, beta):
            mu = jax.nn.sigmoid(x @ (beta * factor))
            hessian = x.T @ ((mu * (1 - mu))[:, None] * x)
            return [jnp.linalg.solve(hessian, x.T @ (mu - y))]

        return prepared(work, data.x, data.y, data.beta)

    def elementwise(data, sizes):
        def work(factor, x, a, b):
            return [jnp.mean(jnp.log1p(jnp.exp(a * factor * x + b * factor)) * jnp.tanh(x))]

        return prepared(work, data.x, data.a, data.b)

    def mlp_gradient(data, sizes):
        def mlp_loss(weights, x, label):
            w1, b1, w2, b2 = weights
            scores = jax.nn.log_softmax(jax.nn.relu(x @ w1 + b1) @ w2 + b2)
            return -jnp.mean(jnp.take_along_axis(scores, label[:, None], axis=1))

        def work(factor, x, label, *weights):
            return jax.grad(mlp_loss)([weight * factor for weight in weights], x, label)

        return prepared(work, data.x, data.y.astype(int) - 1, data.w1, data.b1, data.w2, data.b2)

    def fedavg(data, sizes):
        clients = sizes["clients"]
        if sizes["records"] % clients:
            raise ImportError("vmap needs clients of equal size")

        def local(theta, x, y):
            step = jax.grad(lambda b: loss(b, x, y) / len(x))
            return jax.lax.fori_loop(0, sizes["epochs"], lambda _, b: b - 0.5 * step(b), theta)

        def work(factor, x, y):
            def one_round(_, theta):
                return jax.vmap(local, in_axes=(None, 0, 0))(theta, x, y).mean(axis=0)

            return [jax.lax.fori_loop(0, sizes["rounds"], one_round, jnp.zeros(x.shape[2]))]

        x, y = data.x, data.y
        return prepared(work, x.reshape(clients, -1, x.shape[1]), y.reshape(clients, -1))

    return locals()


protocol.main(make_rows)
