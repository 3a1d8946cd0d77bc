"""pfl's simulation as its own examples write it: a PyTorch model, users with tensors, its FederatedAveraging and its backend.

It computes in single precision, in one process with one thread: a second one makes it slower. A run that takes long ends early and is
scaled to all rounds, which the note says."""

import time

import protocol

PATIENCE = 60  # seconds


def make_rows():
    import numpy as np
    import torch
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.aggregate.weighting import WeightByDatapoints
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.callback.base import TrainingProcessCallback
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.data.pytorch import PyTorchTensorDataset
    from pfl.data.sampling import MinimizeReuseUserSampler
    from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
    from pfl.metrics import Metrics, Weighted
    from pfl.model.pytorch import PyTorchModel

    class Logistic(torch.nn.Module):
        def __init__(self, columns):
            super().__init__()
            self.linear = torch.nn.Linear(columns, 1, bias=False)
            torch.nn.init.zeros_(self.linear.weight)
            self.cost = torch.nn.BCEWithLogitsLoss()

        def forward(self, x):
            return self.linear(x).squeeze(1)

        def loss(self, x, y):
            self.train()
            return self.cost(self(x), y)

        @torch.no_grad()
        def metrics(self, x, y):
            self.eval()
            return {"loss": Weighted(self.cost(self(x), y).item() * len(y), len(y))}

    class Patience(TrainingProcessCallback):
        def __init__(self):
            self.start, self.done = time.perf_counter(), 0

        def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
            self.done += 1
            return time.perf_counter() - self.start > PATIENCE, Metrics()

    def fedavg(data, sizes):
        torch.set_num_threads(1)
        x, y, clients = data.x, data.y, sizes["clients"]
        ends = [len(x) * i // clients for i in range(clients + 1)]

        def user(i):
            own = slice(ends[i], ends[i + 1])
            return PyTorchTensorDataset(tensors=tuple(torch.tensor(part[own], dtype=torch.float32) for part in (x, y)), user_id=str(i))

        users = {i: user(i) for i in range(clients)}

        def work(turn):
            cohort = FederatedDataset(users.__getitem__, MinimizeReuseUserSampler(list(users)))  # each user once in every round
            module = Logistic(x.shape[1])
            model = PyTorchModel(module, local_optimizer_create=torch.optim.SGD,
                                 central_optimizer=torch.optim.SGD(module.parameters(), lr=1.0))
            settings = NNAlgorithmParams(central_num_iterations=sizes["rounds"], evaluation_frequency=sizes["rounds"],
                                         train_cohort_size=clients, val_cohort_size=0)
            local = NNTrainHyperParams(local_num_epochs=sizes["epochs"], local_learning_rate=0.5, local_batch_size=None)
            backend = SimulatedBackend(cohort, cohort, postprocessors=[WeightByDatapoints()])
            patience = Patience()
            FederatedAveraging().run(settings, backend, model, local, model_eval_params=NNEvalHyperParams(local_batch_size=None),
                                     callbacks=[patience], send_metrics_to_platform=False)
            done, rounds = patience.done, sizes["rounds"]
            work.seconds = (time.perf_counter() - patience.start) * rounds / done
            work.extras = {"tolerance": 1e-4}  # of single precision
            if done < rounds:
                work.extras["note"] = f"{done} rounds measured, scaled to {rounds}"
                return []
            return [module.linear.weight.detach().numpy().astype(np.float64)]

        work.warm = False
        return work

    return locals()


protocol.main(make_rows)
