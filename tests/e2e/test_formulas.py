"""Formulas: the designs that R's model.matrix makes, missing values, mistakes, intercepts, sites."""
import json
import pathlib

import numpy as np
import pytest
from conftest import array

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
FIGURES = json.loads((ROOT / "tests" / "reference" / "formulas.json").read_text())
LEVELS = ["--levels", "ward=a,b,c,d", "--levels", "sex=f,m", "--levels", "arm=p,q"]

# Each record is put where its number says: exact, since every sum has one term that is not zero.
SHOW = "size k = 13\ninput x : [*, p]\n{}input id : [*]\nlet place = one_hot(id, k)\noutput x = place' @ x\noutput seen = sum[*](place)\n{}"
WITH_Y = SHOW.format("input y : [*, q]\n", "output y = place' @ y\n")
WITHOUT_Y = SHOW.format("", "")
WITH_OFFSET = SHOW.format("input y : [*, q]\ninput offset : [*]\n", "output y = place' @ y\noutput offset = place' @ offset\n")


def split(path, folder, sizes=(5, 0, 1, 7)):
    """The records of a table over uneven clients: one without records, one with a single one."""
    head, *records = path.read_text().splitlines()
    arguments = []
    for number, size in enumerate(sizes):
        part, records = records[:size], records[size:]
        file = folder / f"client{number}.csv"
        file.write_text("\n".join([head, *part]) + "\n")
        arguments += ["--client", f"client{number}={file}"]
    assert not records
    return arguments


def design(starfold, program, tmp_path, figure, table, *options):
    left = figure["formula"].split("~")[0].strip()
    text = WITH_OFFSET if "offset" in figure else WITH_Y if left else WITHOUT_Y
    clients = split(DATA / table, tmp_path)
    result = starfold("run", program(text), "--formula", figure["formula"], *LEVELS, "--json", "--out", tmp_path / "out", *clients, *options)
    assert result.code == 0, (figure["formula"], result.err)
    return result.json()["outputs"], json.loads((tmp_path / "out" / "run.json").read_text())


def compare(figure, outputs, run):
    assert run["columns"]["x"] == figure["names"], figure["formula"]
    seen = array(outputs["seen"])
    rows = [record - 1 for record in figure["records"]]
    assert seen[rows].tolist() == [1] * len(rows) and seen.sum() == len(rows), figure["formula"]
    for name in ("x", "y", "offset"):
        if name in figure:
            ours = array(outputs[name])[rows].reshape(-1)
            np.testing.assert_allclose(ours, figure[name], rtol=1e-14, atol=1e-14, err_msg=f"{name} of {figure['formula']}")


@pytest.mark.parametrize("figure", FIGURES["whole"], ids=lambda figure: figure["formula"])
def test_designs_are_those_of_r(starfold, program, tmp_path, figure):
    compare(figure, *design(starfold, program, tmp_path, figure, "formulas.csv"))


@pytest.mark.parametrize("figure", FIGURES["holes"], ids=lambda figure: figure["formula"])
@pytest.mark.parametrize("memory", ["1GB", "1MB"])
def test_records_with_missing_values_are_dropped_as_in_r(starfold, program, tmp_path, figure, memory):
    compare(figure, *design(starfold, program, tmp_path, figure, "formulas_holes.csv", "--missing", "drop", "--memory", memory))


# ---- the intercept

@pytest.mark.parametrize("program, family", [("linear", "gaussian"), ("logistic", "binomial"), ("poisson", "poisson")])
def test_ready_made_programs_follow_the_intercept(starfold, tmp_path, program, family):
    clients = split(DATA / "formulas.csv", tmp_path)
    left = {"gaussian": "y", "binomial": "smoker", "poisson": "n"}[family]
    with_one = starfold("run", program, "--formula", f"{left} ~ x + sex", *LEVELS, "--json", *clients)
    assert with_one.code == 0, with_one.err
    assert with_one.json()["outputs"]["beta"]["shape"] == [3]
    # Without an intercept every level has a column: the same model, the same fit.
    without = starfold("run", program, "--formula", f"{left} ~ x + sex - 1", *LEVELS, "--json", *clients)
    assert without.code == 0, without.err
    beta, other = array(with_one.json()["outputs"]["beta"]), array(without.json()["outputs"]["beta"])
    np.testing.assert_allclose(other, [beta[1], beta[0], beta[0] + beta[2]], rtol=1e-6)
    table = starfold("run", program, "--formula", f"{left} ~ x + sex - 1", *LEVELS, *clients).out
    assert "sexf" in table and "sexm" in table and "(intercept)" not in table
    if family == "gaussian":  # R squared is about zero then, as in R: 1 - 32.33 / 193.9375
        assert array(without.json()["outputs"]["r_squared"]) > array(with_one.json()["outputs"]["r_squared"])


def test_the_study_says_it(starfold, tmp_path):
    split(DATA / "formulas.csv", tmp_path, (6, 7))
    study = tmp_path / "study.toml"
    study.write_text('program = "linear"\n[inputs]\nformula = "log(y) ~ x * sex + relevel(ward, ref = \\"b\\") - 1"\n'
                     '[categorical.sex]\nlevels = ["f", "m"]\n[categorical.ward]\nlevels = ["a", "b", "c"]\n[categorical.arm]\nlevels = ["p", "q"]\n'
                     '[[client]]\nname = "one"\ndata = "client0.csv"\n[[client]]\nname = "two"\ndata = "client1.csv"\n')
    names = ["x", "sexf", "sexm", 'relevel(ward, ref = "b")a', 'relevel(ward, ref = "b")c', "x:sexm"]
    checked = starfold("check", study, "--json").json()["study"]
    assert checked["columns"] == {"x": names, "y": ["log(y)"]} and checked["formula"].startswith("log(y) ~ x * sex")
    assert checked["sizes"] == {"p": 6}
    text = starfold("check", study).out
    assert "formula log(y) ~ x * sex" in text and "x:sexm" in text
    page = tmp_path / "page.html"
    assert starfold("explain", study, "--html", page).code == 0 and "x:sexm" in page.read_text() and "log(y) ~ x * sex" in page.read_text()
    ran = starfold("run", study, "--out", tmp_path / "out")
    assert ran.code == 0 and "x:sexm" in ran.out, ran.err
    record = json.loads((tmp_path / "out/run.json").read_text())
    assert record["formula"].startswith("log(y) ~") and record["columns"]["x"] == names and "model" in record["modules"]
    assert "x:sexm" in (tmp_path / "out/report.html").read_text()
    # An option wins.
    assert starfold("run", study, "--formula", "y ~ z", "--json").json()["outputs"]["beta"]["shape"] == [2]


def test_reference_levels(starfold, program, tmp_path):
    clients = split(DATA / "formulas.csv", tmp_path)
    study = tmp_path / "study.toml"
    program(WITHOUT_Y)
    study.write_text('program = "program.fold"\n[inputs]\nformula = "~ ward + code"\n[categorical.ward]\nlevels = ["a", "b", "c"]\nreference = "c"\n'
                     '[categorical.code]\nlevels = [1, 2, 3]\ncoding = "codes"\n' + "".join(
                         f'[[client]]\nname = "{c.split("=")[0]}"\ndata = "{c.split("=")[1]}"\n' for c in clients[1::2]))
    checked = starfold("check", study, "--json").json()["study"]
    assert checked["columns"]["x"] == ["warda", "wardb", "code"]
    study.write_text(study.read_text().replace("~ ward + code", "~ C(ward, \\\"b\\\") + C(code) - 1"))
    checked = starfold("check", study, "--json").json()["study"]
    assert checked["columns"]["x"] == [f'C(ward, "b"){level}' for level in "abc"] + ["C(code)2", "C(code)3"]


@pytest.mark.parametrize("formula, rows", [
    ('y ~ C(ward, "b") + sex', {'C(ward, "b")': "b", "sex": "f"}),
    ('y ~ relevel(ward, ref = "c")', {'relevel(ward, ref = "c")': "c"}),
    ("y ~ ward", {"ward": "a"}),
    ("y ~ ward - 1", {"ward": "none"}),
    ("y ~ x + site", {"site": "one"}),
    ("y ~ x * sex", {"sex": "f"}),
    ("sex ~ x", {"sex": "f"}),
    ("y ~ x", {}),
])
def test_reports_name_reference_levels(starfold, tmp_path, formula, rows):
    """Those of the formula, not those of the declaration; none of a column that is not used."""
    import html
    import re
    split(DATA / "formulas.csv", tmp_path, (6, 7))
    study = tmp_path / "study.toml"
    escaped = formula.replace('"', '\\"')
    program = "logistic" if formula.startswith("sex") else "linear"
    study.write_text(f'program = "{program}"\n[inputs]\nformula = "{escaped}"\n[categorical.sex]\nlevels = ["f", "m"]\n[categorical.ward]\nlevels = ["a", "b", "c"]\n'
                     '[[client]]\nname = "one"\ndata = "client0.csv"\n[[client]]\nname = "two"\ndata = "client1.csv"\n')
    assert starfold("run", study, "--out", tmp_path / "out").code == 0
    text = html.unescape(re.sub("</?code>", "", (tmp_path / "out/report.html").read_text()))
    assert dict(re.findall(r"<td[^>]*>Reference level of ([^<]*)</td><td[^>]*>([^<]*)</td>", text)) == rows
    page = tmp_path / "page.html"
    assert starfold("explain", study, "--html", page).code == 0
    assert ("Reference level" in page.read_text()) == bool(rows)


# ---- arrays, streaming, one process and the definition

def test_arrays_are_columns_too(starfold, program, federation, tmp_path):
    x, g = np.arange(1.0, 7.0), np.array([1.0, 2, 3, 1, 2, 3])
    clients = federation({"a": {"u": x[:4], "g": g[:4]}, "b": {"u": x[4:], "g": g[4:]}, "c": {"u": x[:0], "g": g[:0]}})
    text = program("input x : [*, p]\noutput s = sum[*](x)\n")
    result = starfold("run", text, "--formula", "~ log(u) + u:C(g)", "--levels", "g=1,2,3", "--json", *clients)
    assert result.code == 0, result.err
    np.testing.assert_allclose(array(result.json()["outputs"]["s"]), [np.log(x).sum(), 1 + 4, 2 + 5, 3 + 6], rtol=1e-14)
    result = starfold("run", text, "--formula", "~ log(u - 1)", "--json", *clients)
    assert result.code == 3 and "log(u - 1) of the formula is infinite" in result.err


def test_memory_threads_and_reference_agree(starfold, program, tmp_path):
    rng = np.random.default_rng(5)
    rows = "".join(f"{rng.normal():.6f},{rng.normal():.6f},{'abc'[rng.integers(3)]}\n" for _ in range(30000))
    (tmp_path / "big.csv").write_text("y,x,g\n" + rows)
    base = ["run", "linear", "--client", f"a={tmp_path}/big.csv", "--formula", "y ~ x * g + I(x^2)", "--levels", "g=a,b,c", "--json"]
    outputs = [starfold(*base, *more).json()["outputs"]["beta"]["data"] for more in
               ([], ["--memory", "1MB"], ["--threads", "1"])]
    assert outputs[0] == outputs[1] == outputs[2]
    pooled = starfold(*base, "--reference").json()["outputs"]["beta"]["data"]
    np.testing.assert_allclose(outputs[0], pooled, rtol=1e-9)


# ---- sites

def test_site_is_a_factor_of_the_clients(starfold, tmp_path):
    for name, level in (("oslo", 1.0), ("bergen", 3.0), ("alta", 7.0)):
        (tmp_path / f"{name}.csv").write_text("y,x\n" + "".join(f"{level + 2 * x},{x}\n" for x in (0, 1, 5)))
    clients = [word for name in ("oslo", "bergen", "alta") for word in ("--client", f"{name}={tmp_path / name}.csv")]
    result = starfold("run", "linear", "--formula", "y ~ x + site", "--json", "--out", tmp_path / "out", *clients)
    assert result.code == 0, result.err
    np.testing.assert_allclose(array(result.json()["outputs"]["beta"]), [1, 2, 2, 6], atol=1e-10)
    assert json.loads((tmp_path / "out/run.json").read_text())["columns"]["x"] == ["x", "sitebergen", "sitealta"]


# ---- over nodes

SUMS = "input x : [*, p]\ninput y : [*]\noutput s = x' @ y\noutput t = sum[*](x)\n"


def test_over_nodes(nodes):
    from node_federation import hospital
    for seed, name in enumerate(("north", "south", "west")):
        nodes.add(name, hospital(seed), allowed=["age", "bmi", "ward", "y"])
    formula = 'formula = "y ~ log(age) * C(ward, 2) + site + poly(bmi, 2, raw = TRUE) - 1"'
    levels = '[categorical.ward]\nlevels = [1, 2, 3]\n'
    code, over, err = nodes.run(nodes.study(SUMS, formula, extra=levels))
    assert code == 0, err
    code, here, err = nodes.run(nodes.local(SUMS, formula, extra=levels))
    assert code == 0, err
    assert over["outputs"] == here["outputs"]
    assert len(over["outputs"]["t"]["data"]) == 1 + 3 + 2 + 2 + 2
    # A column that the owner does not list does not exist for formulas either.
    code, answer, err = nodes.run(nodes.study(SUMS, 'formula = "y ~ age + id"'))
    assert code == 2 and "no column id" in answer["error"]


def test_nodes_check_formulas_themselves(nodes):
    """What a careful server would not send."""
    from node_federation import agreement, hospital, kind, start_message
    node = nodes.add("north", hospital(1), allowed=["age", "y"])
    program = "input x : [*, p]\noutput s = sum[*](x)\n"
    (nodes.folder / "program.fold").write_text(program)
    plan = json.loads(nodes.command_line("explain", nodes.folder / "program.fold", "--json").stdout)["plan"]

    def start(text, **more):
        formula = {"text": text, "factors": {}, "truths": [], "sites": [], **more}
        bound = json.dumps({"inputs": {}, "missing": "error", "formula": formula}, separators=(",", ":"), sort_keys=True) + "\n"
        return kind(node.ask(start_message(plan, program, "%032x" % abs(hash(text + str(more))), bound)))

    assert start("~age") == "hello", node.lines()[-1]
    assert start("~id") == "columns" and start("~log(id)") == "columns" and start("~poly(id, 2, raw = TRUE)") == "columns"
    assert start("~ age") == "unreadable" and start("~.") == "unreadable" and start("~(") == "unreadable"
    assert start("~site") == "data_misfit"
    assert start("~age + site", sites=[["a", "north", "visits"], ["b", "south", "visits"]]) == "hello"
    assert start("~age + site", sites=[["a", "other", "visits"], ["b", "south", "visits"]]) == "policy"
    assert start("~C(age)") == "data_misfit" and start("~nothing(age)") == "data_misfit"
    assert start("y ~ age") == "data_misfit"
    assert start("~C(age)", factors={"age": {"levels": [], "codes": False, "reference": 0}}) == "unreadable"


# ---- mistakes

@pytest.mark.parametrize("formula, code, words", [
    ("y ~ lg(x)", 2, "did you mean log?"),
    ("y ~ heigth", 2, "no column heigth"),
    ("y ~ wards", 2, "did you mean ward?"),
    ("y x", 2, "does not belong here|has a response"),
    ("y ~ ward", 3, "declare its levels with --levels ward=a,b"),
    ("y ~ C(z)", 2, "--levels z=a,b"),
    ("y ~ log(sex)", 2, "as.numeric(sex)"),
    ("y ~ x + offset(z)", 3, "for an input offset"),
    ("Surv(y, n) ~ x", 3, "inputs time and status"),
    ("cbind(y, n) ~ x", 3, "makes 2 columns for it"),
    ("y ~ 1", 2, "no column is left for input x"),
    ("y ~ log(x - 0.5)", 3, "log(x - 0.5) of the formula is infinite for 1 record"),
    ("y ~ sqrt(x - 1)", 3, "sqrt(x - 1) of the formula has no value for"),
    ("y ~ poly(x, 2)", 2, "raw = TRUE"),
    ("y ~ (1 | sex)", 2, "random effects"),
    ("y ~ x + 1e999", 2, "no number"),
    ("(" * 3000, 2, "too deep"),
    ("y ~ " + "(" * 50 + "x", 2, "not closed"),
    ("y ~ (" + "+".join(f"I(x^{i})" for i in range(40)) + ")^5", 2, "terms"),
    ("y ~ x + \x1b[31m", 2, "no text"),
])
def test_mistakes(starfold, program, tmp_path, formula, code, words):
    clients = split(DATA / "formulas.csv", tmp_path)
    text = program("input x : [*, p]\ninput y : [*]\noutput s = x' @ y\n")
    levels = ["--levels", "sex=f,m"] if "sex" in formula else []
    result = starfold("run", text, "--formula", formula, *levels, "--json", *clients)
    assert result.code == code, result.err
    assert any(word in result.err for word in words.split("|")), result.err
    assert json.loads(result.out)["ok"] is False and "\x1b" not in result.err


def test_a_formula_and_other_columns(starfold, program, tmp_path):
    clients = split(DATA / "formulas.csv", tmp_path)
    text = program("input x : [*, p]\ninput y : [*]\ninput w : [*]\noutput s = x' @ (w * y)\n")
    result = starfold("run", text, "--formula", "y ~ x", "--bind", "w=z", "--json", *clients)
    assert result.code == 0, result.err
    for more, words in ((["--bind", "x=z"], "columns of its own"), (["--bind", "w=*"], "name its columns")):
        result = starfold("run", text, "--formula", "y ~ x", "--bind", "w=z" if "w=*" not in more else "w=*", *(more if "w=*" not in more else []), *clients)
        assert result.code == 3 and words in result.err, result.err
    result = starfold("run", text, "--formula", "y ~ x", "--simulate", "clients=3,records=5")
    assert result.code == 2 and "simulated" in result.err


def test_a_one_sided_formula_leaves_y_to_its_column(starfold, program, tmp_path):
    clients = split(DATA / "formulas.csv", tmp_path)
    text = program("input x : [*, p]\ninput y : [*]\noutput s = x' @ y\n")
    one = starfold("run", text, "--formula", "~ x", "--json", *clients).json()["outputs"]
    assert one == starfold("run", text, "--formula", "y ~ x", "--json", *clients).json()["outputs"]


# ---- records that are dropped

def test_missing_values_are_counted(starfold, tmp_path):
    (tmp_path / "a.csv").write_text("y,x,z\n1,2,3\n2,,1\n3,4,NA\n5,-1,2\n4,1,\n")
    (tmp_path / "b.csv").write_text("y,x,z\n1,2,3\n2,5,1\n")
    base = ["run", "linear", "--formula", "y ~ sqrt(x)", "--client", f"a={tmp_path}/a.csv", "--client", f"b={tmp_path}/b.csv", "--missing", "drop"]
    result = starfold(*base, "--json", "--out", tmp_path / "out", "--client-details")
    assert result.code == 0, result.err
    assert [(c["records"], c.get("dropped"), c.get("missing")) for c in result.json()["clients"]] == [
        (3, 2, {"x": 1, "sqrt(x)": 1}), (2, None, None)]
    record = json.loads((tmp_path / "out/run.json").read_text())
    assert record["clients"][0]["missing"] == {"x": 1, "sqrt(x)": 1} and record["records"] == {"used": 5, "dropped": 2}
    assert "Missing values of a" in (tmp_path / "out/report.html").read_text()
    assert "missing values: a sqrt(x) 1, x 1" in starfold(*base).out
    # Files that are passed on say it only where the study asks for it.
    assert starfold(*base, "--out", tmp_path / "other").code == 0
    assert "missing" not in json.loads((tmp_path / "other/run.json").read_text())["clients"][0]
    assert "Missing values of" not in (tmp_path / "other/report.html").read_text()


# ---- columns that cannot be told apart

@pytest.mark.parametrize("formula, words", [
    ("y ~ x + I(2 * x)", ["I(2 * x) of x follows from the columns before it"]),
    ("y ~ x + I(0 * x)", ["I(0 * x) of x has the same value in all records"]),
    ("y ~ ward + x", ["wardd of x has the same value in all records"]),
    ("y ~ x + z + I(x + z) + I(x * 0 + 3)", ["I(x * 0 + 3) of x has the same value", "I(x + z) of x follows"]),
    ("y ~ poly(x, 20, raw = TRUE)", ["x has 20 columns, and all clients together have 13 records"]),
])
def test_a_singular_matrix_names_its_columns(starfold, program, tmp_path, formula, words):
    clients = split(DATA / "formulas.csv", tmp_path)
    text = program("input x : [*, p]\ninput y : [*]\nlet z = concat[2](ones(1), x)\noutput b = solve(z' @ z, z' @ y)\n")
    result = starfold("run", text, "--formula", formula, *LEVELS, *clients)
    assert result.code == 3 and "singular" in result.err, result.err
    assert all(word in result.err for word in words), result.err


def test_no_records_are_left(starfold, tmp_path):
    (tmp_path / "a.csv").write_text("y,x\n1,\n,2\n")
    result = starfold("run", "linear", "--formula", "y ~ x", "--client", f"a={tmp_path}/a.csv", "--missing", "drop")
    assert result.code == 3 and "no records are left: all 2 lack a value" in result.err
