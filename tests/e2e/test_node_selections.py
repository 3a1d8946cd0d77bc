"""Ways to choose few records by a program or by bindings. Each is stopped by the support that every number needs."""
import time

import pytest
from node_federation import ID, hospital, refused

SELECTIONS = {
    "one record by its identifier": "output s = sum[*](where(id == 7, x, 0))",
    "all but one": "output s = sum[*](where(id != 7, x, 0))",
    "one record beside a little of all": "output s = sum[*](where(id == 7, x, 0) + 1e-9 * x)",
    "one record counted twice": "output s = sum[*](where(id == 7, 2 * x, x))",
    "one hot": "output s = one_hot(id, 200)[:, 1:20]' @ x",
    "a gradient of a table": "input w : [200] = zeros(200)\noutput s = grad(sum[*](w[id] * x), w)[1:20]",
    "a kernel around one": "output s = sum[*](exp(-1e6 * square(id - 7)) * x)",
    "powers of two": "output s = sum[*](x * exp(id * 0.6931471805599453))",
    "digits": "output s = sum[*](x * exp(id * 2.302585092994046))",
    "a bit mask": "output s = sum[*](where(x > 50, 1, 0) * exp(id * 0.6931471805599453))",
    "an indicator with one positive": "output s = sum[*](id == 7)",
    "an indicator with one negative": "output s = sum[*](id != 7)",
    "small cells of a histogram": "output s = sum[*](one_hot(min(floor(x / 2), 60) + 1, 61))",
    "a cross table": "output s = one_hot(w, 3)' @ one_hot(min(floor(x / 4), 30) + 1, 31)",
    "a trace over identifiers": "state k : [] = 0\nrepeat 5 {\n  let s = sum[*](where(id == k + 1, x, 0))\n  trace v = s\n  k <- k + 1\n}\noutput k",
    "a bit by until": "state k : [] = 0\nrepeat 5 {\n  let s = sum[*](where(id == 7, x, 0))\n  k <- k + 1\n} until s > 50\noutput k",
    "the moments of one": "output v = var[*](where(id == 7, x, 0))",
    "bisection towards the largest": "state lo : [] = 0\nstate hi : [] = 200\nrepeat 30 {\n  let mid = (lo + hi) / 2\n  let n = sum[*](x > mid)\n"
                                     "  lo <- where(n > 0, mid, lo)\n  hi <- where(n > 0, hi, mid)\n}\noutput lo",
    "conditions that leave one out together": "output s = sum[*](((id < 7) + (id > 7)) * x)",
    "a sign that leaves one out": "output s = sum[*](sign(abs(id - 7)) * x)",
    "a sign that turns one": "output s = sum[*](sign(id - 199.5) * x)",
    "conditions that leave one out across factors": "output s = sum[*](((id < 7) + 0.5) * ((id > 7) + 0.5) * x)",
    "the same beside another condition": "output s = sum[*](((id < 7) + 0.5) * ((id > 7) + 0.5) * (1 + (x > 50)) * x)",
    "the same by functions": "output s = sum[*](exp(id < 7) * exp(id > 7) * x)",
    "the same on two sides": "output s = ((id < 7) + 0.5) @ (((id > 7) + 0.5) * x)",
    "two signs that leave one out": "output s = sum[*](sign(id - 7) * sign(7 - id) * x)",
    "conditions with constant ones among them": "output s = sum[*](((id < 7) + (id > 7) + (x > -1) + (x > -2) + (x > -3)) * x)",
    "logsumexp of one": "output s = logsumexp[*](where(id == 7, x, -1000))",
}


@pytest.mark.parametrize("attack", SELECTIONS)
def test_support(one, attack):
    program = "input x : [*]\ninput id : [*]\ninput w : [*]\n" + SELECTIONS[attack] + "\n"
    if "input w : [200]" in program:
        program = program.replace("input w : [*]\n", "")
    inputs = f'x = "age"\n{ID}' + ('\nw = "ward"' if "input w : [*]" in program else "")
    err = refused(one.run(one.study(program, inputs)))
    assert err.strip().endswith("error: client north refuses: refused by the policy of this client")
    line = one.nodes[0].lines()[-1]
    assert line["decision"] == "refused" and line["rule"] == "min_support" and line["counted"] is True


BOUND = "input x : [*, p]\ninput y : [*]\noutput s = x' @ y\noutput t = sum[*](sum[2](x) * y)\n"
EACH_ID = "[categorical.id]\nlevels = [" + ", ".join(f'"{i}"' for i in range(1, 201)) + "]\nreference = \"7\""


@pytest.mark.parametrize("inputs, extra", [
    ('formula = "age ~ 0 + I(1 - (id == 7))"', ""),
    ('formula = "age ~ bmi + ifelse(id != 7, bmi, 0)"', ""),
    ('formula = "age ~ 0 + I(1 - (id > 6 & id < 8))"', ""),
    ('formula = "age ~ bmi + ifelse(id - 7, bmi, 0)"', ""),
    ('formula = "ifelse(id == 7, 0, age) ~ bmi"', ""),
    ('formula = "age ~ bmi:I(id >= 199)"', ""),
    # Conditions that are put together by arithmetic, in one variable or in several.
    ('formula = "age ~ bmi + I((id < 100) + (id > 100))"', ""),
    ('formula = "age ~ bmi + I(3 - (id < 100) - (id > 100))"', ""),
    ('formula = "age ~ bmi:I((id < 100) + (id > 100) + 1)"', ""),
    ('formula = "ifelse(id < 100, age, ifelse(id > 100, age, 0)) ~ bmi"', ""),
    ('formula = "age ~ bmi + I(id < 100):I(id > 98)"', ""),
    ('formula = "age ~ 0 + I(id < 100):I(id > 100)"', ""),
    ('formula = "age ~ bmi:I((id < 100) + 0.5):I((id > 100) + 0.5)"', ""),
    ('formula = "age ~ bmi:I((id < 100) + 0.5):I((id > 100) + 0.5):I((bmi > 25) + 1)"', ""),
    ('formula = "age ~ bmi + I(exp(id < 100) * exp(id > 100) + 1e-9 * (id < 50))"', ""),
    ('formula = "age ~ bmi + I(sign(id - 100)^2)"', ""),
    ('formula = "age ~ bmi + I(sign(id - 100) * sign(100 - id) * bmi)"', ""),
    # What is missing for most records leaves few to choose among.
    ('formula = "age ~ I(id == 160 | id < 100) + log(id - 150.5)"', '[options]\nmissing = "drop"'),
    ('formula = "age ~ I(id == 160 | id < 100) + log(id - 150.5)"', '[options]\nmissing = "nan"'),
    ('formula = "age ~ ifelse(id == 160 | id < 100, bmi, 1) + log(id - 150.5)"', '[options]\nmissing = "nan"'),
    ('x = ["id"]\ny = "age"', EACH_ID),
    ('formula = "age ~ id"', EACH_ID),
    # Levels that only occur multiplied by a number.
    ('formula = "age ~ 0 + bmi:id"', EACH_ID),
    ('formula = "age ~ bmi + log(bmi):id"', EACH_ID),
    ('formula = "age ~ bmi:factor(ward):id"', EACH_ID + '\n[categorical.ward]\nlevels = ["1", "2", "3"]'),
    # Numbers whose squares are 0.
    ('formula = "age ~ 0 + I(1e-170 * ((id < 100) + (id > 100)))"', ""),
    ('formula = "age ~ 0 + I(1e-300 * ((id < 100) + (id > 100)))"', ""),
])
def test_what_bindings_choose_records_by(one, inputs, extra):
    """Comparisons of a formula and levels of columns are conditions like those of a program, which sees only what they have become."""
    err = refused(one.run(one.study(BOUND, inputs, extra=extra)))
    assert not any(c.isdigit() for c in err)
    line = one.nodes[0].lines()[-1]
    assert line["kind"] == "start" and line["rule"] == "min_support" and line["counted"] is True


@pytest.mark.parametrize("inputs, extra", [
    ('formula = "age ~ I(bmi > 25) + ifelse(id > 100, bmi, 0)"', ""),
    ('formula = "age ~ bmi + I(id == 7 | id > 100)"', ""),  # what is told is where either holds
    ('formula = "age ~ bmi + I(2 * (bmi > 25) - (id > 100)) + sign(bmi - 25)"', ""),
    ('formula = "age ~ I(bmi > 25) * I(id > 100) + bmi:sign(id - 100.5)"', ""),
    ('formula = "age ~ bmi > 25"', ""),
    ('formula = "age ~ 0 + poly(bmi, 2, raw = TRUE) + ifelse(bmi > 25 & id > 20, log(bmi), 0)"', ""),
    ('formula = "age ~ bmi + I(id > 170) + log(id - 150.5)"', '[options]\nmissing = "drop"'),
    ('formula = "age ~ bmi + factor(ward)"', '[categorical.ward]\nlevels = ["1", "2", "3", "4"]'),  # nobody is in the last
    ('x = ["ward", "bmi"]\ny = "age"', '[categorical.ward]\nlevels = ["1", "2", "3"]'),
    ('formula = "age ~ bmi:factor(ward) + I(1e-170 * (bmi > 25))"', '[categorical.ward]\nlevels = ["1", "2", "3"]'),
])
def test_what_bindings_may_choose_by(one, inputs, extra):
    program = BOUND.split("output t")[0]
    code, answer, err = one.run(one.study(program, inputs, extra=extra))
    assert code == 0, err


def test_many_signs_are_refused_soon(one):
    """Cases of choices are bounded before they are made: those of all pairs would take gigabytes."""
    signs = " + ".join(f"sign(bmi - {i})" for i in range(600))
    started = time.monotonic()
    refused(one.run(one.study(BOUND, f'formula = "age ~ I({signs})"')), "merges")
    assert time.monotonic() - started < 20
    assert one.nodes[0].lines()[-1]["rule"] == "merges"


def test_rounding_hides_nothing(nodes):
    """Sums within a record round: what is left of a difference that should be 0 still rests on one record."""
    nodes.add("north", hospital(1, 9000))
    program = ("input x : [*]\ninput id : [*]\nlet v = zeros_like(x)[:, new] + full(0.1, 20000)\n"
               "output s = sum[*]((mean[2](v) - 0.1) * (exp(-1e6 * square(id - 7)) * x))\n")
    refused(nodes.run(nodes.study(program, f'x = "age"\n{ID}')))
    assert nodes.nodes[0].lines()[-1]["rule"] == "min_support"


@pytest.mark.parametrize("output", ["output s = exp(-400 - 1e6 * square(id - 7)) @ exp(-400 + log(x))",
                                    "output v = var[*](exp(-391 + 8 * exp(-1e6 * square(id - 7)) + x / 1000))",
                                    "output s = prod[*](relu(sign(x - 40)) * exp(exp(-1e6 * square(id - 14)) * log(abs(x) + 1)))"])
def test_exact_states_hide_nothing(nodes, output):
    """Integers hold products that no double can."""
    nodes.add("north", hospital(1), 'merges = ["sum", "moments", "prod"]')
    program = "input x : [*]\ninput id : [*]\n" + output + "\n"
    refused(nodes.run(nodes.study(program, f'x = "age"\n{ID}', extra="[options]\nexact = true")))
    assert nodes.nodes[0].lines()[-1]["rule"] == "min_support"


def test_what_is_well_supported_leaves(one):
    program = ("input x : [*]\ninput w : [*]\noutput m = mean[*](x)\noutput v = var[*](x)\noutput g = one_hot(w, 3)' @ x\n"
               "output n = sum[*](x > 50)\noutput l = logsumexp[*](x / 100)\n")
    code, answer, err = one.run(one.study(program, 'x = "age"\nw = "ward"'))
    assert code == 0, err
