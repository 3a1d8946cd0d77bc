"""pfl's simulation with local steps written by us in NumPy instead of its models: what remains is its way of going from user to user."""

import protocol


def make_rows():
    import numpy as np
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.algorithm.base import FederatedAlgorithm
    from pfl.context import CentralContext
    from pfl.common_types import Population
    from pfl.data.dataset import Dataset
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.metrics import Metrics
    from pfl.stats import MappedVectorStatistics

    class FedAvg(FederatedAlgorithm):
        def __init__(self, epochs):
            super().__init__()
            self.epochs = epochs

        def get_next_central_contexts(self, model, iteration, algorithm_params, model_train_params, model_eval_params=None):
            raise NotImplementedError  # the rounds are counted by who calls

        def simulate_one_user(self, model, user_dataset, central_context):
            x, y = user_dataset.raw_data
            b = model
            for _ in range(self.epochs):
                b = b - 0.5 * (x.T @ (1 / (1 + np.exp(-(x @ b))) - y)) / len(y)
            return MappedVectorStatistics({"b": b * len(y)}, weight=len(y)), Metrics()

        def process_aggregated_statistics(self, central_context, aggregate_metrics, model, statistics):
            return statistics["b"] / statistics.weight, Metrics()

    def fedavg(data, sizes):
        x, y, clients = data.x, data.y, sizes["clients"]
        ends = [len(x) * i // clients for i in range(clients + 1)]

        def user(i):
            own = slice(ends[i], ends[i + 1])
            return Dataset((x[own].copy(), y[own].copy()), user_id=i)

        users = {i: user(i) for i in range(clients)}

        def in_turn():
            while True:
                yield from range(clients)

        def work(turn):
            cohort = FederatedDataset(users.__getitem__, (lambda turns=in_turn(): next(turns)))
            backend = SimulatedBackend(cohort, None)
            algorithm = FedAvg(sizes["epochs"])
            theta = np.zeros(x.shape[1])
            for i in range(sizes["rounds"]):
                context = CentralContext(current_central_iteration=i, do_evaluation=False, cohort_size=clients,
                                         population=Population.TRAIN, model_train_params=None, model_eval_params=None,
                                         algorithm_params=None, seed=i)
                statistics, metrics = backend.gather_results(theta, algorithm, central_context=context)
                theta, _ = algorithm.process_aggregated_statistics(context, metrics, theta, statistics)
            return [theta]

        return work

    return locals()


protocol.main(make_rows)
