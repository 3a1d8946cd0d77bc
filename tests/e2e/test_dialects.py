"""Files that are written otherwise: marks of missing values, delimiters, decimal commas, encodings, dates, Excel; levels."""
import json
import zipfile

import pytest
from conftest import array

SUM = "input x : [*, p]\noutput s = sum[*](x)\noutput n = records(x)\n"


@pytest.fixture
def total(starfold, program, tmp_path):
    """Sums of columns of one file."""
    text = program(SUM)

    def run(content, columns, *options, name="a.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return starfold("run", text, "--client", f"a={path}", "--bind", f"x={columns}", "--json", *options)

    return run


def sums(result):
    assert result.code == 0, result.err
    return array(result.json()["outputs"]["s"]).tolist()


def test_marks_of_missing_values(total):
    content = "age,chol\n" + "".join(f"{20 + i},{200 + i}\n" for i in range(50)) + "80,?\n90, ? \n70,-9\n"
    result = total(content, "age,chol")
    assert result.code == 3 and "client a: column chol is text: it holds numbers and, first in line 52, ?" in result.err
    assert "--na '?'" in result.err and 'na = ["?"]' in result.err
    assert sums(total(content, "age,chol", "--na", "?", "--missing", "drop")) == [sum(range(20, 70)) + 70, sum(range(200, 250)) - 9]
    assert sums(total(content, "age,chol", "--na", "?", "--na", "-9", "--missing", "drop")) == [sum(range(20, 70)), sum(range(200, 250))]
    result = total(content, "chol", "--na", "?")
    assert result.code == 3 and "column chol has 2 missing values" in result.err


def test_what_is_no_common_mark_is_not_shown(total):
    result = total("age,chol\n1,2\n3,hidden7319\n", "chol")
    assert result.code == 3 and "first in line 3, something that is none" in result.err and "hidden7319" not in result.err
    result = total("age,chol\n" + "1,2\n" * 25000 + "3,hidden7319\n", "chol")
    assert result.code == 3 and "line 25002" in result.err and "hidden7319" not in result.err
    result = total("age,chol\n" + "1,2\n" * 25000 + "3,?\n", "chol")
    assert result.code == 3 and "line 25002: column chol holds ? that is not a number" in result.err and "--na '?'" in result.err


def test_a_mark_at_one_client_only(starfold, program, tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n2\n")
    (tmp_path / "b.csv").write_text("x\n1\n.\n")
    result = starfold("run", program(SUM), "--client", f"a={tmp_path}/a.csv", "--client", f"b={tmp_path}/b.csv", "--bind", "x=x")
    assert result.code == 3 and "client b: column x is text: it holds numbers and, first in line 3, ." in result.err, result.err


def test_delimiters_and_decimal_commas(total):
    content = "age;bmi\n30;20,5\n40;21\n"
    result = total(content, "age,bmi")
    assert result.code == 3 and "--delimiter ';'" in result.err
    result = total(content, "age,bmi", "--delimiter", ";")
    assert result.code == 3 and "decimal comma, first in line 2; say --decimal ," in result.err
    assert sums(total(content, "age,bmi", "--delimiter", ";", "--decimal", ",")) == [70, 41.5]
    result = total("a;b\n1.5;2\n", "a", "--delimiter", ";", "--decimal", ",")
    assert result.code == 3
    assert sums(total("a|b\n1|2\n", "a,b", "--delimiter", "|")) == [1, 2]
    assert sums(total("a\tb\n1\t2\n", "a,b", "--delimiter", "tab")) == [1, 2]
    for wrong in ("ab", '"', "x"):
        assert total("a,b\n1,2\n", "a", "--delimiter", wrong).code == 2
    assert total("a,b\n1,2\n", "a", "--delimiter", "").code == 0  # as if it were not given


def test_encodings(total, tmp_path):
    text = "größe,ort\n1,Bodø\n2,Åsa\n"
    result = total(text.encode("latin1"), "größe")
    assert result.code == 3 and "--encoding latin1" in result.err
    assert sums(total(text.encode("latin1"), "größe", "--encoding", "latin1")) == [3]
    assert sums(total("€uro,b\n4,5\n".encode("cp1252"), "€uro", "--encoding", "windows-1252")) == [4]
    assert total("a\n1\n", "a", "--encoding", "ebcdic").code == 2
    result = total(text.encode("latin1"), "größe,ort", "--encoding", "latin1", "--levels", "ort=Bodø,Åsa")
    assert sums(result) == [3, 1]


def test_dates(total):
    content = "day,x\n01.02.1970,1\n3.1.1970,2\n"
    result = total(content, "day")
    assert result.code == 3 and "seems to hold dates, first in line 2" in result.err and "--dates %d.%m.%Y" in result.err
    assert sums(total(content, "day", "--dates", "%d.%m.%Y")) == [31 + 2]
    assert sums(total("t\n02/01/1970 12:00\n", "t", "--dates", "%d/%m/%Y %H:%M")) == [1.5]
    assert total("t\n31/02/1970\n", "t", "--dates", "%d/%m/%Y").code == 3
    for wrong in ("%d.%m", "%q", "year"):
        assert total(content, "day", "--dates", wrong).code == 2


def test_in_studies_and_queries(starfold, program, tmp_path):
    program(SUM)
    (tmp_path / "a.csv").write_text("x;y\n1,5;?\n2;3\n")
    (tmp_path / "b.csv").write_text("x,y\n1,2\n-9,4\n")
    study = tmp_path / "study.toml"
    study.write_text('program = "program.fold"\n[inputs]\nx = ["x", "y"]\n[options]\nmissing = "drop"\nna = ["?"]\n'
                     '[[client]]\nname = "a"\ndata = "a.csv"\ndelimiter = ";"\ndecimal = ","\n'
                     '[[client]]\nname = "b"\ndata = "b.csv"\nna = "-9"\n')
    assert sums(starfold("run", study, "--json")) == [3, 5]
    study.write_text(study.read_text().replace('data = "a.csv"', 'data = "a.csv"\nquery = "select x + 1 as x, y from data"'))
    assert sums(starfold("run", study, "--json")) == [4, 5]
    study.write_text(study.read_text().replace('";"', '";;"'))
    result = starfold("run", study)
    assert result.code == 2 and "client.delimiter" in result.err and "study.toml:" in result.err


def test_whole_numbers_beyond_doubles_are_told(total):
    result = total("x\n9007199254740993\n", "x")
    assert result.code == 3 and "2^53" in result.err


# ---- Excel

def write_xlsx(path, sheets):
    """A workbook by hand: numbers and texts."""
    def cell(value):
        return f"<c><v>{value}</v></c>" if isinstance(value, (int, float)) else f'<c t="inlineStr"><is><t>{value}</t></is></c>'

    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    with zipfile.ZipFile(path, "w") as book:
        parts = "".join(f'<Override PartName="/xl/worksheets/sheet{i + 1}.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>' for i in range(len(sheets)))
        book.writestr("[Content_Types].xml", f'<?xml version="1.0"?><Types xmlns="{package}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>{parts}</Types>')
        book.writestr("_rels/.rels", f'<?xml version="1.0"?><Relationships xmlns="{package}/relationships"><Relationship Id="rId1" Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>')
        book.writestr("xl/workbook.xml", f'<?xml version="1.0"?><workbook xmlns="{main}" xmlns:r="{office}"><sheets>' + "".join(
            f'<sheet name="{name}" sheetId="{i + 1}" r:id="rId{i + 1}"/>' for i, name in enumerate(sheets)) + "</sheets></workbook>")
        book.writestr("xl/_rels/workbook.xml.rels", f'<?xml version="1.0"?><Relationships xmlns="{package}/relationships">' + "".join(
            f'<Relationship Id="rId{i + 1}" Type="{office}/worksheet" Target="worksheets/sheet{i + 1}.xml"/>' for i in range(len(sheets))) + "</Relationships>")
        for i, rows in enumerate(sheets.values()):
            book.writestr(f"xl/worksheets/sheet{i + 1}.xml", f'<?xml version="1.0"?><worksheet xmlns="{main}"><sheetData>' + "".join(
                "<row>" + "".join(cell(value) for value in row) + "</row>" for row in rows) + "</sheetData></worksheet>")


def test_excel(starfold, program, tmp_path):
    text = program(SUM)
    path = tmp_path / "visits.xlsx"
    write_xlsx(path, {"first": [["x", "g"], [1, "a"], [2.5, "b"]], "second": [["x", "g"], [10, "b"], [20, "b"]]})
    base = ["run", text, "--client", f"a={path}", "--bind", "x=x,g", "--levels", "g=a,b", "--json"]
    result = starfold(*base)
    if result.code == 3 and "Excel files need DuckDB's extension" in result.err:
        pytest.skip("no extension for Excel beside this DuckDB")
    assert sums(result) == [3.5, 1]
    assert sums(starfold(*base, "--sheet", "second")) == [30, 2]
    result = starfold(*base, "--sheet", "third")
    assert result.code == 3 and "no sheet third" in result.err
    path.write_text("x,g\n1,a\n")
    assert starfold(*base).code == 3


# ---- levels

def clinics(tmp_path):
    (tmp_path / "a.csv").write_text("y,sex,ward,age\n" + "1,m,b,30\n0,f,a,40\n" * 10)
    (tmp_path / "b.csv").write_text("y,sex,ward,age\n" + "1,f,c,35\n0,f,10,45\n" * 10)
    return '[[client]]\nname = "a"\ndata = "a.csv"\n[[client]]\nname = "b"\ndata = "b.csv"\n'


def test_levels_are_asked_of_all_clients(starfold, tmp_path):
    study = tmp_path / "study.toml"
    study.write_text('program = "logistic"\n[inputs]\nformula = "y ~ age + sex"\n' + clinics(tmp_path))
    assert starfold("run", study).code == 3
    result = starfold("levels", study)
    assert result.code == 0 and "sex: f, m" in result.out and "ward" not in result.out, result.err
    assert '[categorical.sex]\nlevels = ["f", "m"]' in study.read_text() and study.read_text().startswith('program = "logistic"')
    assert starfold("run", study, "--json").code == 0
    assert starfold("levels", study).out == "no column of text that the study uses lacks levels\n"
    assert "sex: declared already, and complete" in starfold("levels", study, "sex").out
    result = starfold("levels", study, "ward", "--print")
    assert '[categorical.ward]\nlevels = ["10", "a", "b", "c"]' in result.out and "ward" not in study.read_text()
    result = starfold("levels", study, "none")
    assert result.code == 3 and "no column none" in result.err
    study.write_text(study.read_text().replace('["f", "m"]', '["f"]'))
    study.write_text(study.read_text().replace('levels = ["f"]', 'levels = ["f", "x"]'))
    assert "sex: declared already, but clients also have m" in starfold("levels", study, "sex").out


def test_levels_of_numbers_have_their_order(starfold, tmp_path):
    (tmp_path / "a.csv").write_text("y,dose\n1,10\n2,9\n3,2.5\n")
    study = tmp_path / "study.toml"
    study.write_text('program = "linear"\n[inputs]\nformula = "y ~ C(dose)"\n[[client]]\nname = "a"\ndata = "a.csv"\n')
    assert starfold("levels", study).code == 0
    assert 'levels = ["2.5", "9", "10"]' in study.read_text()


def test_levels_of_other_tables(starfold, duckdb, tmp_path):
    duckdb(f"copy (select i as y, case when i % 2 = 0 then 'a' else 'b' end as g from range(10) t(i)) to '{tmp_path}/a.parquet' (format parquet)")
    study = tmp_path / "study.toml"
    study.write_text('program = "linear"\n[inputs]\nformula = "y ~ g"\n[[client]]\nname = "a"\ndata = "a.parquet"\n')
    assert starfold("levels", study).code == 0 and '["a", "b"]' in study.read_text()


def test_too_many_levels(starfold, tmp_path):
    (tmp_path / "a.csv").write_text("y,name\n" + "".join(f"{i},person{i}\n" for i in range(2000)))
    study = tmp_path / "study.toml"
    study.write_text('program = "linear"\n[inputs]\nformula = "y ~ name"\n[[client]]\nname = "a"\ndata = "a.csv"\n')
    before = study.read_text()
    result = starfold("levels", study)
    assert result.code == 3 and "hardly a factor" in result.err and "person" not in result.err and study.read_text() == before


def test_init_proposes_levels(starfold, tmp_path):
    clinics(tmp_path)
    result = starfold("init", "logistic", "a.csv", "b.csv", cwd=tmp_path)
    assert result.code == 0 and '# levels = ["f", "m"]' in result.out and '# levels = ["10", "a", "b", "c"]' in result.out


def test_nodes_tell_levels_as_their_policy_says(nodes):
    from node_federation import hospital
    for seed, name in enumerate(("north", "south")):
        columns = hospital(seed)
        columns["sex"] = ["f" if i % 2 else "m" for i in range(200)]
        columns["sex"][0] = "rare7319"
        node = nodes.add(name, columns, start=False)
        node.file.write_text(node.file.read_text().replace("columns = [", 'levels = ["sex"]\ncolumns = ['))
        node.start()
    study = nodes.study("input x : [*, p]\noutput s = sum[*](x)\n", 'formula = "~ sex"')
    result = nodes.command_line("levels", study)
    assert result.returncode == 0, result.stderr
    assert '[categorical.sex]\nlevels = ["f", "m"]' in study.read_text() and "rare7319" not in result.stdout
    result = nodes.command_line("levels", study, "ward")
    assert result.returncode == 3 and "does not tell the levels of ward" in result.stderr
