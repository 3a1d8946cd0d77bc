"""Coordinator and node as machines, nodes in processes of their own, and notebooks."""
import numpy as np
import pytest
import starfold as sf

PROGRAM = sf.lib.logistic


@pytest.fixture
def data(clinics):
    return {name: {"x": np.column_stack([clinic["age"], clinic["bmi"]]), "y": clinic["dx"]} for name, clinic in clinics.items()}


def test_a_run_by_hand(data):
    nodes = {name: sf.Node(name, arrays) for name, arrays in data.items()}
    coordinator = sf.Coordinator(PROGRAM, list(data))
    while not coordinator.done:
        for name, request in reversed(coordinator.requests().items()):  # in any order
            assert isinstance(request, bytes)
            coordinator.absorb(name, nodes[name].handle(request))
    fit, whole = coordinator.fit(), PROGRAM.run(data, threads=1)
    assert np.array_equal(fit["beta"], whole["beta"]) and fit.rounds == whole.rounds
    assert fit.clients["bytes_sent"] == whole.clients["bytes_sent"]


def test_save_and_resume(data):
    nodes = {name: sf.Node(name, arrays) for name, arrays in data.items()}
    first = sf.Coordinator(PROGRAM, list(data))
    for _ in range(3):
        for name, request in first.requests().items():
            first.absorb(name, nodes[name].handle(request))
    second = sf.Coordinator(PROGRAM, list(data))
    second.resume(first.save())
    assert np.array_equal(second.run(nodes)["beta"], PROGRAM.run(data, threads=1)["beta"])


def test_hostile_bytes(data):
    node = sf.Node("a", next(iter(data.values())))
    for request in (b"", b"nonsense", bytes(1000)):
        assert isinstance(node.handle(request), bytes) and node.trouble
    coordinator = sf.Coordinator(PROGRAM, ["a"])
    for answer in (b"", b"nonsense"):
        with pytest.raises(sf.RunError):
            coordinator.absorb("a", answer)
    with pytest.raises(sf.UsageError):
        coordinator.request("b")
    with pytest.raises(sf.RunError, match="not done"):
        coordinator.fit()


def test_a_node_that_cannot_answer_says_why_to_its_owner_alone():
    node = sf.Node("a", {"x": np.ones((3, 2)), "y": np.ones(4)})
    reply = node.handle(sf.Coordinator(PROGRAM, ["a"]).request("a"))
    assert "3 and 4" in node.trouble and b"3 and 4" not in reply


def test_notebooks(data):
    pytest.importorskip("pygments")
    program = sf.compile("input x : [*, p]\noutput total = sum[*](x)\n")
    assert "<table" in program._repr_html_() and "sum[*](x)" in program._repr_html_()
    assert "<iframe" in program.run({"a": {"x": np.ones((3, 2))}})._repr_html_()
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell.instance()
    shell.run_line_magic("load_ext", "starfold")
    shell.push({"clients": {"a": {"x": np.ones((3, 2))}}})
    fit = shell.run_cell_magic("starfold", "mine clients", "input x : [*, p]\noutput total = sum[*](x)\n")
    assert fit["total"].tolist() == [3, 3] and shell.user_ns["mine"].types["total"] == "[p]"


def test_pygments():
    pytest.importorskip("pygments")
    from pygments.lexers import get_lexer_by_name
    from pygments.token import Token
    tokens = list(get_lexer_by_name("starfold").get_tokens("# a mean\ninput x : [*, p]\noutput m = mean[*](x) + 1.5e-3\n"))
    assert not any(kind is Token.Error for kind, _ in tokens)
    assert (Token.Name.Builtin, "mean") in tokens and (Token.Comment.Single, "# a mean") in tokens


def weighted(data):
    return {name: {**arrays, "weight": 1.0 + np.arange(len(arrays["y"])) % 3} for name, arrays in data.items()}


def test_weights_among_arrays_are_taken(data):
    """An array named like an input that may be left out is that input: by itself where clients are given, by `bind` where others hold them."""
    import pandas as pd
    clients = weighted(data)
    tables = {name: pd.DataFrame({"a": one["x"][:, 0], "b": one["x"][:, 1], "y": one["y"], "w": one["weight"]}) for name, one in clients.items()}
    columns = {"x": ["a", "b"], "y": "y", "weight": "w"}
    expected = PROGRAM.run(tables, bind=columns)["beta"]
    assert not np.allclose(expected, PROGRAM.run(data)["beta"])
    assert np.array_equal(PROGRAM.run(clients)["beta"], expected)
    assert np.array_equal(PROGRAM.run(clients, bind={"weight": "weight"})["beta"], expected)
    by_hand = sf.Coordinator(PROGRAM, list(tables), bind=columns).run({name: sf.Node(name, table) for name, table in tables.items()})
    assert np.array_equal(by_hand["beta"], expected)
    arrays = sf.Coordinator(PROGRAM, list(clients), bind={"weight": "weight"}).run({name: sf.Node(name, one) for name, one in clients.items()})
    assert np.array_equal(arrays["beta"], expected)
    exact = sf.Coordinator(PROGRAM, list(tables), bind=columns, exact=True).run({name: sf.Node(name, table) for name, table in tables.items()})
    assert np.array_equal(exact["beta"], PROGRAM.run(clients, exact=True)["beta"])


def test_weights_that_one_client_lacks(data):
    clients = weighted(data)
    del clients["bern"]["weight"]
    with pytest.raises(sf.DataError, match="bern.*weight"):
        PROGRAM.run(clients)


def test_a_coordinator_with_an_input_that_is_none():
    with pytest.raises(sf.Error, match="wieght"):
        sf.Coordinator(PROGRAM, ["a"], bind={"x": ["a"], "y": "y", "wieght": "w"})
