"""`explain`: the rounds of a program as its reader would write them."""
import json
import re

import pytest
from conftest import ROOT

PROGRAMS = sorted([*(ROOT / "lib/programs").glob("*.fold"), *(ROOT / "examples").glob("*.fold")])
NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?![\w(\[])|(?<![\w.])[A-Za-z_]\w*(?=\[)")

LOGISTIC = """\
One round of encode, merge, decode.
  the server computes first
    beta = zeros(p)  [p]

repeat up to 25 times

  round 1
    every client receives
      beta  [p]
    every client computes on its own records
      eta  = x @ beta                 [*]
      loss = softplus(eta) - y * eta  [*]
    every client sends p*p + p + 1 numbers, merged over clients
      sum[*](loss)  []  added up (merge sum)
      x' @ (sigmoid(eta) - y)  [p]  added up (merge sum)
      v1 = x' @ (x * (sigmoid(eta) * (1 - sigmoid(eta)))[:, new])  [p, p]  added up (merge sum)
    the server decodes
      g    = x' @ (sigmoid(eta) - y) + ridge * beta  [p]
      h    = v1 + ridge * eye(p)                     [p, p]
      step = solve(h, g)                             [p]
    at the end of each iteration
      beta <- beta - step          [p]
      trace loss = sum[*](loss)    []
      until max(abs(step)) < 1e-9  []

outputs
    beta  [p]
"""


def test_derivatives_are_written_as_one_would_write_them(starfold):
    assert starfold("explain", ROOT / "examples/logistic.fold").out == LOGISTIC


def operations(starfold):
    return set(re.findall(r"[a-z_]\w*", starfold("ops").out)) | {"new", "inf", "nan", "pi"}


def lines(block):
    """All lines of a block of `explain --json`, in order, as (name, expression)."""
    found = [(line["name"], line["expr"]) for line in block["prelude"]]
    for step in block["steps"]:
        found += [(line["name"], line["expr"]) for line in step.get("encoders", [])]
        found += [(merge["name"], merge["expr"]) for merge in step.get("merges", [])]
        if step["kind"] == "repeat":
            found += lines(step["body"])
            found += [(line["name"].removesuffix(" <-"), line["expr"]) for line in step["iteration"]]
        found += [(line["name"], line["expr"]) for line in step["decoder"]]
    return found


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_name_has_a_line_and_no_line_is_long(starfold, program):
    result = starfold("explain", program)
    assert result.code == 0 and "..." not in re.sub(r"(each client|batches) \{ \.\.\. \}", "", result.out)
    text = program.read_text()
    # Sizes such as levels*p + levels - p - 1 stand in every type of a model with many levels; local steps make no line long.
    assert max(map(len, result.out.splitlines())) <= (130 if "import fl" in text else 230)
    explained = json.loads(starfold("explain", program, "--json").out)
    declared = set(re.findall(r"^(?:input|size|state) (\w+)", text, re.M))
    # A state of a library function has its line in the loop that updates it.
    modules = "".join(path.read_text() for path in (ROOT / "lib").glob("*.fold"))
    declared |= set(re.findall(r"^ *state (\w+)", modules, re.M)) | {"each", "client", "batches", "tau2_reml"}
    sizes = {name for types in re.findall(r"\[([^\]]*)\]", text) for name in re.findall(r"[a-z]\w*", types)}
    all_lines = lines(explained["program"])
    known = {name for name, _ in all_lines} | declared | sizes | operations(starfold)
    for _, expr in all_lines + [(o["name"], o["expr"]) for o in explained["outputs"]]:
        for name in NAME.findall(expr):
            assert name in known or re.sub(r"_\d+$", "", name) in known, (name, expr)


def test_names_of_functions_are_kept_apart_by_number(starfold, tmp_path):
    source = tmp_path / "p.fold"
    source.write_text("""\
fn spread(a : [*]) -> [] {
  let centred = a - mean[*](a)
  sum[*](abs(centred)^3)
}
input x : [*]
input y : [*]
let centred = x + y
output sx = spread(x)
output sy = spread(y)
output both = sum[*](centred^5)
""")
    out = starfold("explain", source).out
    assert "centred_2 = x - sum[*](x) / records(x)" in out
    assert "centred_3 = y - sum[*](y) / records(x)" in out
    assert "both = sum[*](centred^5)" in out


def test_lines_fit(starfold):
    """Also of programs with sizes that are long formulas."""
    for path in sorted((ROOT / "lib" / "programs").glob("*.fold")):
        out = starfold("explain", path.stem).out
        longest = max(out.split("\n"), key=len)
        assert len(longest) <= 120, (path.stem, longest)


def test_sizes_in_expressions_have_parentheses(starfold, tmp_path):
    source = tmp_path / "p.fold"
    source.write_text("fn rest(x : [*, q]) = records(x) - q\ninput x : [*, p]\noutput a = rest(concat[2](ones(1), x))\n")
    out = starfold("explain", source).out
    assert "a = records(x) - (p + 1)" in out


def test_names_of_a_block_stay_on_each_client(starfold, tmp_path):
    page = tmp_path / "page.html"
    assert starfold("explain", "fedavg", "--html", page).code == 0
    names = page.read_text().split("Names and types")[-1]
    rows = {re.sub("<[^>]*>", "", row.split("</td>")[0]).strip(): row for row in names.split("<tr>")}
    assert "stays on each client" in rows["b"] and "stays on each client" in rows["eta"]
    assert "shared: known to the server" in rows["theta"]


def test_deep_loops_end(starfold, program):
    """Lines that begin beyond the width of the page are left as they are."""
    depth = 60
    text = "input x : [*]\nstate s = 0\n" + "repeat 2 {\n" * depth + "s <- s + sum[*](x * (1 + s)) + sum[*](x * s) + 1\n" + "}\n" * depth + "output s\n"
    result = starfold("explain", program(text), timeout=60)
    assert result.code == 0 and len(result.out) < 200_000
