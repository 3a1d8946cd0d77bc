"""PyTorch: double precision, gradients by autograd."""

import protocol


def make_rows():
    import torch

    def tensors(*arrays):
        return [torch.from_numpy(array) for array in arrays]

    def started(tensor, turn):
        return (tensor * protocol.factor(turn)).requires_grad_()

    def threads(sizes):
        torch.set_num_threads(sizes["threads"])

    def logistic_gradient(data, sizes):
        threads(sizes)
        x, y, start = tensors(data.x, data.y, data.beta)

        def work(turn):
            beta = started(start, turn)
            eta = x @ beta
            torch.nn.functional.binary_cross_entropy_with_logits(eta, y, reduction="sum").backward()
            return [beta.grad.numpy()]

        return work

    def newton_step(data, sizes):
        threads(sizes)
        x, y, start = tensors(data.x, data.y, data.beta)

        def work(turn):
            mu = torch.sigmoid(x @ (start * protocol.factor(turn)))
            hessian = x.T @ ((mu * (1 - mu))[:, None] * x)
            return [torch.linalg.solve(hessian, x.T @ (mu - y)).numpy()]

        return work

    def elementwise(data, sizes):
        threads(sizes)
        x, a, b = tensors(data.x, data.a, data.b)

        def work(turn):
            factor = protocol.factor(turn)
            return [(torch.log1p(torch.exp(a * factor * x + b * factor)) * torch.tanh(x)).mean().numpy()]

        return work

    def mlp_gradient(data, sizes):
        threads(sizes)
        (x,) = tensors(data.x)
        label = torch.from_numpy(data.y).long() - 1
        starts = tensors(data.w1, data.b1, data.w2, data.b2)

        def work(turn):
            w1, b1, w2, b2 = weights = [started(start, turn) for start in starts]
            scores = torch.relu(x @ w1 + b1) @ w2 + b2
            torch.nn.functional.cross_entropy(scores, label).backward()
            return [weight.grad.numpy() for weight in weights]

        return work

    def network_batches(data, sizes):
        threads(sizes)
        (x,) = tensors(data.x)
        label = torch.from_numpy(data.y).long() - 1
        starts = tensors(data.w1, data.b1, data.w2, data.b2)
        clients = sizes["clients"]
        ends = [len(x) * i // clients for i in range(clients + 1)]

        def work(turn):
            for first, last in zip(ends, ends[1:]):
                w1, b1, w2, b2 = weights = [started(start, turn).detach().requires_grad_() for start in starts]
                order = first + torch.randperm(last - first)
                for batch in order.split(32):
                    scores = torch.relu(x[batch] @ w1 + b1) @ w2 + b2
                    torch.nn.functional.cross_entropy(scores, label[batch]).backward()
                    with torch.no_grad():
                        for weight in weights:
                            weight -= 0.1 * weight.grad
                            weight.grad = None
            return []  # the order of its batches is another

        return work

    return locals()


protocol.main(make_rows)
