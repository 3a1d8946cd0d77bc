"""The rows of the benchmark: data, contestants and goals."""

import dataclasses
import math
import sys

from . import places


@dataclasses.dataclass
class Goal:
    """At most `most` times the limit, at least `least` times as fast as a peer, at most so many seconds or megabytes."""

    against: str = "limit"
    most: float = None
    least: float = None
    seconds: float = None
    megabytes: float = None

    def text(self):
        if self.seconds is not None:
            return f"under {self.seconds * 1000:g} ms"
        if self.megabytes is not None:
            return f"within {self.megabytes:g} MB"
        if self.most is not None:
            return f"<= {self.most:g} x limit"
        return f">= {self.least:g} x {self.against}"

    def met(self, result):
        """True, False, or None when Starfold or whom it is measured against did not take part."""
        starfold = result["starfold_s"]
        if starfold is None:
            return None
        if self.seconds is not None:
            return starfold <= self.seconds
        if self.megabytes is not None:
            return result["starfold_megabytes"] <= self.megabytes
        other = result["limit_s"] if self.most is not None else result["peers"].get(self.against)
        if other is None:
            return None
        return starfold <= self.most * other if self.most is not None else other >= self.least * starfold


@dataclasses.dataclass
class Row:
    name: str
    title: str  # may name sizes: {records}
    limit_is: str
    sizes: dict
    quick: dict  # what differs in a quick run
    arrays: callable = None  # sizes -> {name: "kind:shape"}
    starfold: callable = None  # sizes -> the command of Starfold's contestant
    limit: callable = None  # sizes -> the command of the limit's contestant
    peers: list = dataclasses.field(default_factory=list)
    goals: list = dataclasses.field(default_factory=list)
    tolerance: float = 1e-8  # how far results may differ, relative to the largest
    turns: int = 7
    operations: callable = None  # sizes -> floating-point operations, where the multiply-add peak says something
    commands: dict = dataclasses.field(default_factory=dict)  # of peers that are plain commands
    gigabytes: callable = lambda sizes: 0  # sizes -> what its files take


def number_words(sizes):
    return [f"{key}={value}" for key, value in sizes.items()]


def own(kind, *words):
    """A contestant of bench/contestant.cpp."""
    return [places.built("starfold_contestant"), kind, *words]


def program(name):
    return places.BENCH / "programs" / f"{name}.fold"


def engine(name, *words):
    return lambda sizes: own("engine", f"program={program(name)}", *words)


def support(name):
    return lambda sizes: own("support", f"program={program(name)}")


def federation(name, *words):
    return lambda sizes: own("federation", f"program={program(name)}", *(word.format(**sizes) for word in words))


def command(*words):
    return lambda sizes: [sys.executable, places.BENCH / "harness" / "command.py", *words]


def starfold_run(name, *words):
    return command(places.built("starfold"), "run", program(name), "--json", *words)


def table(sizes):
    return f"{sizes['records']},{sizes['columns']}"


def logistic_arrays(sizes):
    return {
        "x": f"uniform:{table(sizes)}",
        "y": f"binary:{sizes['records']}",
        "beta": f"uniform*0.1:{sizes['columns']}",
    }


def read(passes=1):
    return lambda sizes: own("read", f"numbers={sizes['records'] * (sizes.get('columns', 0) + 1)}", f"passes={passes}")


def dsyrk(with_read):
    openblas = places.threaded_openblas() or ""
    return lambda sizes: own("dsyrk", f"openblas={openblas}", f"read={int(with_read)}", *number_words(sizes))


def multiply_add(operations):
    return lambda sizes: own("multiply_add", f"operations={operations(sizes):g}")


def mlp_arrays(sizes):
    inner, outer = 1 / math.sqrt(sizes["columns"]), 1 / math.sqrt(sizes["hidden"])
    return {
        "x": f"uniform:{table(sizes)}",
        "y": f"labels*{sizes['classes']}:{sizes['records']}",
        "w1": f"uniform*{inner}:{sizes['columns']},{sizes['hidden']}",
        "b1": f"uniform*{inner}:{sizes['hidden']}",
        "w2": f"uniform*{outer}:{sizes['hidden']},{sizes['classes']}",
        "b2": f"uniform*{outer}:{sizes['classes']}",
    }


def mlp_operations(sizes):
    """Forward, and backward to the weights of both layers and to the hidden values."""
    inner = sizes["columns"] * sizes["hidden"]
    outer = sizes["hidden"] * sizes["classes"]
    return 2.0 * sizes["records"] * (2 * inner + 3 * outer)


def kmeans_operations(sizes):
    """Scores by a matrix product and sums by addition: the least that gives all nearest centres."""
    return 2.0 * sizes["records"] * sizes["columns"] * sizes["clusters"]


def gram_operations(sizes):
    return 1.0 * sizes["records"] * sizes["columns"] * (sizes["columns"] + 1)


ROWS = [
    Row(
        "logistic_gradient",
        "logistic gradient, {records} x {columns}, in memory",
        "reading the data once",
        {"records": 4_000_000, "columns": 50},
        {"records": 40_000},
        logistic_arrays,
        engine("logistic_gradient"),
        read(),
        ["numpy", "jax", "torch"],
        [Goal("limit", most=1.2), Goal("numpy", least=4), Goal("jax", least=2), Goal("torch", least=2)],
    ),
    Row(
        "newton_step",
        "gradient, Hessian and Newton step, {records} x {columns}",
        "one threaded dsyrk",
        {"records": 1_000_000, "columns": 100},
        {"records": 10_000},
        logistic_arrays,
        engine("newton_step"),
        dsyrk(False),
        ["numpy", "jax", "torch"],
        [Goal("limit", most=0.9), Goal("numpy", least=4)],
        operations=gram_operations,
    ),
    Row(
        "node_support",
        "a policy's look at the gradient's support, {records} x {columns}",
        "the round it looks at",
        {"records": 1_000_000, "columns": 50},
        {"records": 20_000},
        logistic_arrays,
        support("logistic_gradient"),
        engine("logistic_gradient"),
        goals=[Goal("limit", most=1.0)],
    ),
    Row(
        "node_support_newton",
        "the same for gradient, Hessian and Newton step, {records} x {columns}",
        "the round it looks at",
        {"records": 200_000, "columns": 50},
        {"records": 10_000},
        logistic_arrays,
        support("newton_step"),
        engine("newton_step"),
        goals=[Goal("limit", most=1.0)],
    ),
    Row(
        "node_support_scales",
        "the same for columns of sizes from a thousandth to a thousand, {records} x {columns}",
        "the round it looks at",
        {"records": 200_000, "columns": 50},
        {"records": 10_000},
        lambda sizes: {**logistic_arrays(sizes), "beta": f"uniform*0.0001:{sizes['columns']}"},
        support("newton_scales"),
        engine("newton_scales"),
        goals=[Goal("limit", most=1.0)],
    ),
    Row(
        "node_support_rare",
        "the same for one sum over a hundredth of {records} records",
        "the round it looks at",
        {"records": 4_000_000},
        {"records": 20_000},
        lambda sizes: {"x": f"uniform:{sizes['records']}", "y": f"uniform:{sizes['records']}", "limit": "uniform*0.00001:"},
        support("rare_sum"),
        engine("rare_sum"),
        goals=[Goal("limit", most=1.0)],
    ),
    Row(
        "node_support_small",
        "the same for a gradient over {records} x {columns}",
        "the round it looks at",
        {"records": 1_000, "columns": 10},
        {"records": 1_000},
        logistic_arrays,
        support("logistic_gradient"),
        engine("logistic_gradient"),
    ),
    Row(
        "private_logistic",
        "ten private rounds of logistic regression, {records} x {columns}",
        "the same rounds without noise",
        {"records": 4_000_000, "columns": 50},
        {"records": 400_000},
        lambda sizes: {"x": f"uniform:{table(sizes)}", "y": f"binary:{sizes['records']}"},
        engine("private_logistic", "private=1"),
        engine("private_logistic"),
        goals=[Goal("limit", most=1.5)],
        tolerance=0.05,  # noise
    ),
    Row(
        "private_noise",
        "exact Gaussian noise for {numbers} numbers",
        "rounded floating-point noise, which leaks",
        {"numbers": 1_000_000, "deviation": 1 << 24},
        {"numbers": 100_000},
        arrays=lambda sizes: {},  # none
        starfold=lambda sizes: own("noise", *number_words(sizes)),
        limit=lambda sizes: own("rounded_noise", *number_words(sizes)),
        goals=[Goal(seconds=1)],
        tolerance=0.05,  # of variances
    ),
    Row(
        "masked_round",
        "a round of secure aggregation, {clients} clients with {numbers} numbers",
        "their plain sum",
        {"clients": 20, "numbers": 100_000},
        {"numbers": 1_000},
        arrays=lambda sizes: {},  # none
        starfold=lambda sizes: own("masked", *number_words(sizes)),
        limit=lambda sizes: own("unmasked", *number_words(sizes)),
        goals=[Goal(seconds=0.5)],
    ),
    Row(
        "exact_sums",
        "sums of columns in an exact run, {records} x {columns}",
        "the same run when it may round",
        {"records": 4_000_000, "columns": 50},
        {"records": 40_000},
        logistic_arrays,
        engine("column_sums", "exact=1"),
        engine("column_sums"),
        goals=[Goal("limit", most=1.5)],
    ),
    Row(
        "exact_gradient",
        "logistic gradient in an exact run, {records} x {columns}",
        "the same run when it may round",
        {"records": 4_000_000, "columns": 50},
        {"records": 40_000},
        logistic_arrays,
        engine("logistic_gradient", "exact=1"),
        engine("logistic_gradient"),
        goals=[Goal("limit", most=2.0)],
    ),
    Row(
        "exact_newton",
        "gradient, Hessian and Newton step in an exact run, {records} x {columns}",
        "the same run when it may round",
        {"records": 1_000_000, "columns": 100},
        {"records": 10_000},
        logistic_arrays,
        engine("newton_step", "exact=1"),
        engine("newton_step"),
        goals=[Goal("limit", most=4.0)],
    ),
    Row(
        "logistic_fit",
        "full logistic fit to 1e-8, {records} x {columns}",
        "reading the data once per Newton step",
        {"records": 1_000_000, "columns": 30},
        {"records": 10_000},
        logistic_arrays,
        federation("logistic_fit"),
        read(passes=5),
        ["sklearn", "statsmodels", "r"],
        [Goal("sklearn", least=5), Goal("statsmodels", least=5), Goal("r", least=5)],
        tolerance=1e-6,
        turns=3,
    ),
    Row(
        "covariance",
        "covariance and mean, {records} x {columns}",
        "one threaded dsyrk and one read",
        {"records": 10_000_000, "columns": 20},
        {"records": 100_000},
        lambda sizes: {"x": f"uniform:{table(sizes)}"},
        engine("covariance"),
        dsyrk(True),
        ["numpy"],
        [Goal("limit", most=0.35)],
        operations=gram_operations,
    ),
    Row(
        "elementwise",
        "mean[*](log1p(exp(a*x+b)) * tanh(x)), {records}",
        "reading the data once",
        {"records": 50_000_000},
        {"records": 500_000},
        lambda sizes: {"x": f"uniform:{sizes['records']}", "a": "uniform:", "b": "uniform:"},
        engine("elementwise"),
        read(),
        ["numpy", "jax", "torch"],
        [Goal("numpy", least=5), Goal("jax", least=1.5)],
    ),
    Row(
        "mlp_gradient",
        "MLP {columns}-{hidden}-{classes}, full gradient, {records} records",
        "its multiply-adds at the peak",
        {"records": 60_000, "columns": 784, "hidden": 128, "classes": 10},
        {"records": 600},
        mlp_arrays,
        engine("mlp_gradient"),
        multiply_add(mlp_operations),
        ["numpy", "jax", "torch"],
        [Goal("torch", least=1.0)],
        operations=mlp_operations,
    ),
    Row(
        "kmeans_step",
        "k-means step, {records} x {columns}, k = {clusters}",
        "its multiply-adds at the peak",
        {"records": 1_000_000, "columns": 16, "clusters": 32},
        {"records": 10_000},
        lambda sizes: {"x": f"uniform:{table(sizes)}", "centre": f"uniform:{sizes['clusters']},{sizes['columns']}"},
        engine("kmeans_step"),
        multiply_add(kmeans_operations),
        ["sklearn", "numpy"],
        [Goal("sklearn", least=2)],
        operations=kmeans_operations,
    ),
    Row(
        "many_clients",
        "one round of logistic regression, {clients} clients, {records} records x {columns} in all",
        "the same records in one client",
        {"clients": 1_000_000, "records": 20_000_000, "columns": 10},
        {"clients": 1_000, "records": 20_000},
        lambda sizes: {"x": f"uniform:{table(sizes)}", "y": f"binary:{sizes['records']}"},
        federation("logistic_rounds", "time=round", "clients={clients}"),
        federation("logistic_rounds", "time=round", "clients=1"),
        goals=[Goal(most=1.5)],
        turns=3,
    ),
    Row(
        "flower_rounds",
        "{clients} clients, {rounds} rounds of logistic regression, {records} records x {columns} in all",
        "reading the data once per round",
        {"clients": 1_000, "rounds": 20, "records": 100_000, "columns": 10},
        {"clients": 10, "rounds": 2, "records": 1_000},
        lambda sizes: {"x": f"uniform:{table(sizes)}", "y": f"binary:{sizes['records']}"},
        federation("logistic_rounds", "clients={clients}", "size:rounds={rounds}"),
        lambda sizes: read(sizes["rounds"])(sizes),
        ["flower"],
        goals=[Goal("flower", least=100)],
    ),
    Row(
        "fedavg",
        "FedAvg, {clients} clients, {records} records x {columns} in all, {epochs} local epochs, {rounds} rounds",
        "reading the data once per local epoch",
        {"clients": 1_000, "rounds": 50, "epochs": 10, "records": 100_000, "columns": 20},
        {"clients": 20, "rounds": 3, "epochs": 2, "records": 2_000},
        lambda sizes: {"x": f"uniform:{table(sizes)}", "y": f"binary:{sizes['records']}"},
        federation("fedavg", "clients={clients}", "size:rounds={rounds}", "size:epochs={epochs}"),
        lambda sizes: read(sizes["rounds"] * sizes["epochs"])(sizes),
        ["numpy", "jax", "pfl", "pfl_numpy", "flower"],
        [Goal("numpy", least=5), Goal("jax", least=2), Goal("pfl", least=100), Goal("flower", least=100)],
        turns=3,
    ),
    Row(
        "network_batches",
        "MLP {columns}-{hidden}-{classes}, one pass in batches of 32 at each of {clients} clients, {records} records in all",
        "one step over all records of every client",
        {"clients": 100, "records": 60_000, "columns": 784, "hidden": 128, "classes": 10},
        {"clients": 4, "records": 800},
        mlp_arrays,
        federation("network_batches", "clients={clients}"),
        lambda sizes: federation("network_pass", "clients={clients}", "values=none")(sizes),
        ["torch"],
        [Goal("torch", least=1.0), Goal(most=1.5)],
        turns=3,
    ),
    Row(
        "many_blocks",
        "one local step at each of {clients} clients, {records} records x {columns} in all",
        "the same gradient without blocks",
        {"clients": 1_000_000, "records": 20_000_000, "columns": 10},
        {"clients": 1_000, "records": 20_000},
        lambda sizes: {"x": f"uniform:{table(sizes)}", "y": f"binary:{sizes['records']}"},
        federation("local_steps", "time=round", "clients={clients}"),
        federation("logistic_rounds", "time=round", "clients={clients}"),
        goals=[Goal(most=3)],
        turns=3,
    ),
    Row(
        "parquet_stream",
        "sums of {records} x {columns} from Parquet with 1 GB of memory",
        "DuckDB's scan of the same columns",
        {"records": 200_000_000, "columns": 10},
        {"records": 2_000_000},
        starfold=starfold_run(
            "parquet_stream", "--client", "a={data}/x.parquet", "--bind", "x=*", "--memory", "1GB", "--threads", "{threads}"
        ),
        limit=lambda sizes: own("scan", *number_words(sizes)),
        goals=[Goal(megabytes=1000), Goal(most=1.3)],
        turns=3,
        gigabytes=lambda sizes: sizes["records"] * sizes["columns"] * 1.5e-9,
    ),
    Row(
        "startup",
        "start to finish of a tiny program",
        "start to finish of /bin/true",
        {},
        {},
        arrays=lambda sizes: {"x": "uniform:3"},
        starfold=starfold_run("startup", "--client", "a={data}/x.npy"),
        limit=command("/bin/true"),
        peers=["numpy"],
        commands={"numpy": command(places.VENV_PYTHON, "-c", "import numpy")},
        goals=[Goal(seconds=0.015)],
        turns=20,
    ),
]
