"""Flower's simulation: the same gradient descent or FedAvg, one message to every client per round.

Only the rounds count, not the start of Ray. A run that takes long ends early and is scaled to all rounds, which the note says."""

import time

import protocol

PATIENCE = 60  # seconds


def make_client_app(folder, clients, epochs=None):
    from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
    from flwr.clientapp import ClientApp

    app = ClientApp()

    @app.train()
    def train(message, context):
        import numpy as np

        x, y = (np.load(f"{folder}/{name}.npy", mmap_mode="r") for name in "xy")
        client = int(context.node_config["partition-id"])
        own = slice(len(x) * client // clients, len(x) * (client + 1) // clients)
        (beta,) = message.content["beta"].to_numpy_ndarrays()
        if epochs is None:
            residual = 1 / (1 + np.exp(-(x[own] @ beta))) - y[own]
            gradient = ArrayRecord([x[own].T @ residual])
        else:
            records, label = np.array(x[own]), np.array(y[own])
            for _ in range(epochs):
                beta = beta - 0.5 * (records.T @ (1 / (1 + np.exp(-(records @ beta))) - label)) / len(label)
            gradient = ArrayRecord([beta * len(label)])
        counts = MetricRecord({"records": own.stop - own.start})
        return Message(RecordDict({"gradient": gradient, "counts": counts}), reply_to=message)

    return app


def make_rows():
    import numpy as np
    from flwr.app import ArrayRecord, Message, RecordDict
    from flwr.serverapp import ServerApp
    from flwr.simulation import run_simulation

    def one_round(grid, nodes, beta, local):
        content = RecordDict({"beta": ArrayRecord([beta])})
        replies = list(grid.send_and_receive([Message(content, dst_node_id=node, message_type="train") for node in nodes]))
        if len(replies) < len(nodes) or any(reply.has_error() for reply in replies):
            raise RuntimeError("a client did not answer")
        total = sum(reply.content["gradient"].to_numpy_ndarrays()[0] for reply in replies)
        mean = total / sum(reply.content["counts"]["records"] for reply in replies)
        return mean if local else beta - 0.5 * mean

    def flower_rounds(data, sizes):
        return simulated(data, sizes, None)

    def fedavg(data, sizes):
        return simulated(data, sizes, sizes["epochs"])

    def simulated(data, sizes, epochs):
        client_app = make_client_app(data.folder, sizes["clients"], epochs)
        rounds = sizes["rounds"]

        def work(turn):
            outcome = {}
            server_app = ServerApp()

            @server_app.main()
            def main(grid, context):
                while len(list(grid.get_node_ids())) < sizes["clients"]:
                    time.sleep(0.1)
                nodes = list(grid.get_node_ids())
                beta = np.zeros(sizes["columns"])
                start = time.perf_counter()
                done = 0
                while done < rounds and time.perf_counter() - start < PATIENCE:
                    beta = one_round(grid, nodes, beta, epochs is not None)
                    done += 1
                outcome.update(done=done, beta=beta, seconds=time.perf_counter() - start)

            backend = {"client_resources": {"num_cpus": 1}, "init_args": {"num_cpus": sizes["threads"]}}
            run_simulation(server_app, client_app, sizes["clients"], backend_config=backend)
            done = outcome["done"]
            work.seconds = outcome["seconds"] * rounds / done
            work.extras = {"note": f"{done} rounds measured, scaled to {rounds}"} if done < rounds else {}
            return [outcome["beta"]] if done == rounds else []

        work.warm = False
        return work

    return locals()


protocol.main(make_rows)
