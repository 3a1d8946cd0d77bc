"""@starfold.program: Python functions become the text that one would have written by hand."""
import pathlib
import re
import tempfile

import numpy as np
import pytest
import starfold as sf
from starfold import _engine

LOGISTIC = """input x : [*, p]
input y : [*]
input ridge : [] = 1e-6
state beta : [p] = zeros(p)
repeat 25 {
  let eta = x @ beta
  let loss = softplus(eta) - y * eta
  let g = grad(sum[*](loss), beta) + ridge * beta
  let h = hessian(sum[*](loss), beta) + ridge * eye(p)
  let step = solve(h, g)
  trace loss = sum[*](loss)
  beta <- beta - step
} until max(abs(step)) < 1e-9
output beta
"""


def same(traced, text):
    """The text of a hand-written file, and what it identifies."""
    assert traced.source == text and sf.format(traced.source) == traced.source
    assert traced.hash == sf.compile(text).hash


def test_mean():
    @sf.program
    def mean(x: sf.fed("p")):
        return x.mean("*")
    same(mean, "input x : [*, p]\noutput mean = mean[*](x)\n")
    assert mean.run({"a": {"x": np.arange(6.0).reshape(3, 2)}})["mean"].tolist() == [2, 3]


def test_loops_states_and_derivatives(rng):
    @sf.program
    def logistic(x: sf.fed("p"), y: sf.fed(), ridge: sf.shared() = 1e-6):
        beta = sf.state(sf.ops.zeros("p"), sf.shared("p"))
        for loop in sf.repeat(25):
            eta = x @ beta
            loss = sf.ops.softplus(eta) - y * eta
            g = sf.grad(loss.sum("*"), beta) + ridge * beta
            h = sf.hessian(loss.sum("*"), beta) + ridge * sf.ops.eye("p")
            step = sf.ops.solve(h, g)
            sf.trace("loss", loss.sum("*"))
            beta <<= beta - step
            loop.until(abs(step).max() < 1e-9)
        return beta
    same(logistic, LOGISTIC)
    data = {"a": {"x": rng.normal(size=(100, 2)), "y": (rng.random(100) < 0.5).astype(float)}}
    ours, theirs = logistic.run(data), sf.compile(LOGISTIC).run(data)
    assert np.array_equal(ours["beta"], theirs["beta"]) and len(ours.traces["loss"]) == ours.iterations[0]


def test_what_is_read_before_an_update_keeps_its_value():
    @sf.program
    def steps(x: sf.fed()):
        s = sf.state(x.sum("*") * 0 + 1)
        for _ in sf.repeat(3):
            before = s + 0
            s <<= 2 * s
            s <<= s + before * 0 + sf.ops.full(1, )
        return s
    assert "let before = s + 0\n  s <- 2 * s" in steps.source
    assert steps.run({"a": {"x": np.ones(2)}})["s"] == 15


def test_library_functions():
    @sf.program
    def components(x: sf.fed("p")):
        values, vectors = sf.ops.eigh(sf.lib.stats.cov(x))
        return {"variances": values, "directions": vectors}
    same(components, "import stats\ninput x : [*, p]\nlet (values, vectors) = eigh(stats.cov(x))\noutput variances = values\noutput directions = vectors\n")

    @sf.program
    def fit(x: sf.fed("p"), y: sf.fed()):
        beta, se, *_ = sf.lib.glm.binomial(x, y)
        return beta, se
    same(fit, "import glm\ninput x : [*, p]\ninput y : [*]\nlet (beta, se, _, _, _, _) = glm.binomial(x, y)\noutput beta\noutput se\n")


def test_every_function_of_the_library_has_its_number_of_results():
    from starfold._trace import functions_in, result_count

    def errors(text, function, parameters, count):
        names = [name.split(":")[0].strip() for name in re.split(r",(?![^\[]*\])", parameters) if name.strip()]
        results = ", ".join(f"r{i}" for i in range(count))
        left = f"({results})" if count > 1 else results
        lines = [f"input {part.strip()}" for part in re.split(r",(?![^\[]*\])", parameters) if part.strip()]
        return [d for d in sf.check("\n".join(["import probed", *lines, f"let {left} = probed.{function}({', '.join(names)})"]) + "\n", folder=text) if d.severity == "error"]

    for module in ("glm", "stats", "optim"):
        text = _engine.library()[module]
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "probed.fold").write_text(text)
            for function in functions_in(text):
                parameters = re.search(rf"^fn {function}\((.*?)\)( ->| =| \{{)", text, re.MULTILINE | re.DOTALL)[1]
                count = result_count(text, function)
                assert not errors(folder, function, parameters, count), (module, function)
                assert errors(folder, function, parameters, count + 1), (module, function)


def test_sizes_defaults_and_stars():
    @sf.program
    def centres(x: sf.fed("p"), v: sf.fed("*visits"), w: sf.fed("q", "*"), start: sf.shared("k", "p"), k: sf.Size = 3, c: sf.shared(2) = (1, 2)):
        return {"s": x.sum("*") + k + c.sum(), "t": v.sum("*"), "u": w.sum("*"), "start": start}
    assert centres.source.startswith("input x : [*, p]\ninput v : [*visits]\ninput w : [q, *]\ninput start : [k, p]\nsize k = 3\ninput c : [2] = [1, 2]\n")


def test_numpy_functions():
    @sf.program
    def norms(x: sf.fed("p")):
        z = np.exp(x) + np.log1p(np.abs(x)) - np.maximum(x, 0) ** 2 / np.sqrt(2.0)
        return {"s": np.where(z > 1, z, -z).sum("*"), "m": np.minimum(z.max("*"), 5) % 3}
    assert "exp(x) + log1p(abs(x)) - max(x, 0)^2 / 1.4142135623730951" in norms.source
    with pytest.raises(TypeError):
        @sf.program
        def bad(x: sf.fed("p")):
            return np.cumsum(x)


def test_folds_of_numpy():
    @sf.program
    def folds(x: sf.fed("p"), t: sf.shared(2, 3)):
        return {"s": np.sum(x, axis=0), "m": np.mean(x, 0), "r": np.sum(np.max(x, axis=1), axis=0), "a": np.max(t), "b": np.sum(t, axis=(0, 1))}
    same(folds, "input x : [*, p]\ninput t : [2, 3]\noutput s = sum[1](x)\noutput m = mean[1](x)\noutput r = sum[1](max[2](x))\noutput a = max(t)\noutput b = sum[1, 2](t)\n")
    with pytest.raises(TypeError):  # NumPy divides by n, the language by n - 1
        @sf.program
        def spread(x: sf.fed("p")):
            return np.var(x, axis=0)


def test_indices_are_those_of_python():
    @sf.program
    def parts(x: sf.fed("p"), t: sf.shared(4)):
        return {"a": x[:, 0].sum("*"), "b": x[:, 1:3].sum("*"), "c": x[:, None, :].sum("*"), "d": t[2], "e": x.sum(axis=1).sum("*"), "f": x.sum(2).sum("*")}
    x = np.arange(12.0).reshape(3, 4)
    fit = parts.run({"a": {"x": x}}, t=[1, 2, 3, 4])
    assert fit["a"] == x[:, 0].sum() and fit["b"].tolist() == x[:, 1:3].sum(axis=0).tolist() and fit["c"].shape == (1, 4)
    assert fit["d"] == 3 and fit["e"] == fit["f"] == x.sum()


def test_parentheses(rng):
    @sf.program
    def deep(a: sf.shared(), b: sf.shared(), x: sf.fed()):
        r = a - (b - (a + b) * 2) / (a / (b * a)) ** (-b) ** 2
        q = ((a < b) & ~(b > a)) | (a == (b != a))
        return {"r": r, "q": q, "m": -(a ** 2) + (-a) ** 2, "s": x.sum("*")}
    a, b = 1.5, 2.5
    fit = deep.run({"c": {"x": np.ones(1)}}, a=a, b=b)
    assert fit["r"] == pytest.approx(a - (b - (a + b) * 2) / (a / (b * a)) ** ((-b) ** 2), rel=1e-12) and fit["m"] == 0
    assert fit["q"] == float((a < b and not b > a) or (a == (b != a)))


def test_programs_within_programs():
    @sf.program
    def centred(x: sf.fed("p")):
        return (x - x.mean("*")).sum("*")

    @sf.program
    def whole(x: sf.fed("p")):
        return centred(2 * x)
    assert "2 * x" in whole.source
    with pytest.raises(TypeError, match="run"):
        centred(np.ones(3))


# ---- every operation

# How each operation is written in Python, over x : [*, p], v : [*], a : [3, 3], b : [3], s : []. What is not here is called by its name with one argument.
WRITTEN = {
    "-": lambda o, x, v, a, b, s: [-x, x - 1], "not": lambda o, x, v, a, b, s: [~x], "+": lambda o, x, v, a, b, s: [x + 1], "*": lambda o, x, v, a, b, s: [2 * x],
    "/": lambda o, x, v, a, b, s: [x / 2], "^": lambda o, x, v, a, b, s: [x ** 2], "and": lambda o, x, v, a, b, s: [x & 1], "or": lambda o, x, v, a, b, s: [x | 0],
    "==": lambda o, x, v, a, b, s: [x == 1], "!=": lambda o, x, v, a, b, s: [x != 1], "<": lambda o, x, v, a, b, s: [x < 1], "<=": lambda o, x, v, a, b, s: [x <= 1],
    ">": lambda o, x, v, a, b, s: [x > 1], ">=": lambda o, x, v, a, b, s: [x >= 1], "min": lambda o, x, v, a, b, s: [o.min(x, 1), x.min("*")],
    "max": lambda o, x, v, a, b, s: [o.max(x, 1), o.max(x, axes="*")], "mod": lambda o, x, v, a, b, s: [o.mod(x, 2), x % 2], "atan2": lambda o, x, v, a, b, s: [o.atan2(x, 2)],
    "@": lambda o, x, v, a, b, s: [a @ b, v @ v], "records": lambda o, x, v, a, b, s: [o.records(x)], "cov": lambda o, x, v, a, b, s: [x.cov(), o.cov(x, x, axes="*")],
    "permute": lambda o, x, v, a, b, s: [a.T, o.permute(a, axes=(2, 1))], "median": lambda o, x, v, a, b, s: [o.median(b)], "quantile": lambda o, x, v, a, b, s: [o.quantile(b, 0.5)],
    "argmax": lambda o, x, v, a, b, s: [o.argmax(x, axes=2)], "concat": lambda o, x, v, a, b, s: [o.concat(x, x, axes=2), o.concat([b, b], axes=1)],
    "reshape": lambda o, x, v, a, b, s: [o.reshape(a, 9), a.reshape(9)], "outer": lambda o, x, v, a, b, s: [o.outer(b, b)], "where": lambda o, x, v, a, b, s: [o.where(x > 0, x, 0)],
    "clip": lambda o, x, v, a, b, s: [o.clip(x, 0, 1)], "clip_norm": lambda o, x, v, a, b, s: [o.clip_norm(x, 1)], "one_hot": lambda o, x, v, a, b, s: [o.one_hot(v, 2)],
    "softmax": lambda o, x, v, a, b, s: [o.softmax(x, axes=2)], "log_softmax": lambda o, x, v, a, b, s: [o.log_softmax(x, axes=2)], "solve": lambda o, x, v, a, b, s: [o.solve(a, b)],
    "cholesky": lambda o, x, v, a, b, s: [o.cholesky(a)], "logdet": lambda o, x, v, a, b, s: [o.logdet(a)], "det": lambda o, x, v, a, b, s: [o.det(a)],
    "inv": lambda o, x, v, a, b, s: [o.inv(a)], "eigh": lambda o, x, v, a, b, s: list(o.eigh(a)), "svd": lambda o, x, v, a, b, s: list(o.svd(a)), "qr": lambda o, x, v, a, b, s: list(o.qr(a)),
    "dependent": lambda o, x, v, a, b, s: [o.dependent(a)], "diag": lambda o, x, v, a, b, s: [o.diag(a)], "trace_of": lambda o, x, v, a, b, s: [o.trace_of(a)], "zeros": lambda o, x, v, a, b, s: [o.zeros("p", 2)],
    "ones": lambda o, x, v, a, b, s: [o.ones(2)], "full": lambda o, x, v, a, b, s: [o.full(s, 2, "p")], "eye": lambda o, x, v, a, b, s: [o.eye("p")],
    "linspace": lambda o, x, v, a, b, s: [o.linspace(0, 1, 5)], "normal": lambda o, x, v, a, b, s: [o.normal(1, 3)], "uniform": lambda o, x, v, a, b, s: [o.uniform(1, 3)],
    "sort": lambda o, x, v, a, b, s: [o.sort(b)], "cumsum": lambda o, x, v, a, b, s: [o.cumsum(b, axes=1)], "normal_cdf": lambda o, x, v, a, b, s: [o.normal_cdf(b)],
    "normal_sf": lambda o, x, v, a, b, s: [o.normal_sf(b)], "normal_quantile": lambda o, x, v, a, b, s: [o.normal_quantile(s)], "t_cdf": lambda o, x, v, a, b, s: [o.t_cdf(b, 3)],
    "t_sf": lambda o, x, v, a, b, s: [o.t_sf(b, 3)], "t_quantile": lambda o, x, v, a, b, s: [o.t_quantile(s, 3)], "chi2_cdf": lambda o, x, v, a, b, s: [o.chi2_cdf(b, 3)],
    "chi2_sf": lambda o, x, v, a, b, s: [o.chi2_sf(b, 3)], "f_cdf": lambda o, x, v, a, b, s: [o.f_cdf(b, 2, 3)], "f_sf": lambda o, x, v, a, b, s: [o.f_sf(b, 2, 3)],
    "grad": lambda o, x, v, a, b, s: [sf.grad((b * b).sum(), b), o.grad((b * b).sum(), b)], "jacobian": lambda o, x, v, a, b, s: [sf.jacobian(a @ b, b)],
    "hessian": lambda o, x, v, a, b, s: [sf.hessian((b * b).sum(), b)],
}
NAMELESS = {"slices": lambda o, x, v, a, b, s: [x[:, 0], a[0:2], b[:, None]], "lookup": lambda o, x, v, a, b, s: [b[v]], "list": lambda o, x, v, a, b, s: [o.sort([s, s, 1])]}
AGGREGATIONS = {"sum", "prod", "count", "mean", "var", "std", "logsumexp", "any", "all", "norm"}


@pytest.mark.parametrize("row", _engine.operations(), ids=lambda row: row["surface"])
def test_every_operation(row):
    """Each row of the signature can be written in Python, and gives a program that checks and holds it."""
    name, surface = row["name"], row["surface"]
    if surface.startswith("e[:"):
        write = NAMELESS["slices"]
    elif surface == "table[e]":
        write = NAMELESS["lookup"]
    elif surface.startswith("["):
        write = NAMELESS["list"]
    elif name in WRITTEN:
        write = WRITTEN[name]
    elif name in AGGREGATIONS:
        write = lambda o, x, v, a, b, s: [getattr(x, name)("*"), getattr(o, name)(x, axes=(2, )), getattr(o, name)(b)]  # noqa: E731
    else:
        write = lambda o, x, v, a, b, s: [getattr(o, name)(x)] if row["family"] != "shared-only" else [getattr(o, name)(b)]  # noqa: E731

    def function(x: sf.fed("p"), v: sf.fed(), a: sf.shared(3, 3), b: sf.shared(3), s: sf.shared()):
        for i, value in enumerate(write(sf.ops, x, v, a, b, s)):
            from starfold._trace import call
            star = any(t in ("x", "v") for t in names_in(value)) and not folded(value)
            sf.output(f"r{i}", call("sum", value, brackets="[*]") if star else value)
    made = sf.program(function)
    assert sf.format(made.source) == made.source and made.hash
    assert (name in made.source) or not name.isidentifier() or name == "permute"


def names_in(value):
    return {value.name} | {name for arg in value.args for name in names_in(arg)}


def folded(value):
    text = value.write(*[("v", 9) for _ in value.args]) if value.kind == "value" else ""
    return any(text.startswith(f"{name}[*]") for name in [*AGGREGATIONS, "min", "max", "cov"]) or text.startswith("records(") or text == "v @ v" or value.kind == "part"


# ---- errors

def test_errors_point_at_the_line_of_python():
    with pytest.raises(sf.ProgramError) as caught:
        @sf.program
        def wrong(x: sf.fed("p")):
            a = x.sum("*")
            b = a @ np.array([[1.0, 2.0]]) + x
            return b
    assert "test_program.py" in str(caught.value) and "b = a @ np.array([[1.0, 2.0]]) + x" in str(caught.value) and caught.value.code == "E0402"


@pytest.mark.parametrize("body, word", [
    (lambda x: bool(x > 1), "where"), (lambda x: float(x), "not known"), (lambda x: list(x), "iterated"), (lambda x: x[-1], "from 0"), (lambda x: x[::2], "no step"),
    (lambda x: x.update(1), "state"), (lambda x: x + "q r", None), (lambda x: x + object(), "no number"), (lambda x: x.sum(0), "from 1")])
def test_what_cannot_be_written(body, word):
    def function(x: sf.fed("p")):
        return body(x)
    with pytest.raises(sf.ProgramError, match=word):
        sf.program(function)


def test_a_value_of_a_loop_stays_in_it():
    with pytest.raises(sf.ProgramError, match=r"(?s)make it a state.*test_program.py.*t = x.sum\("):  # and the line of Python
        @sf.program
        def leaks(x: sf.fed()):
            for _ in sf.repeat(3):
                t = x.sum("*") + 1
            return t * 2


def test_parameters_need_types():
    with pytest.raises(sf.ProgramError, match="needs a type"):
        @sf.program
        def untyped(x):
            return x
    with pytest.raises(sf.ProgramError, match="@starfold.program"):
        sf.state(1)
