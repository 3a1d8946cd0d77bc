"""`starfold ops`: the table of operations."""
from conftest import ROOT


def test_text(starfold):
    result = starfold("ops")
    assert result.code == 0
    for heading in ("Unary maps", "Aggregations", "Matrix product", "Client-local operations", "Shared-only operations"):
        assert f"{heading}\n" in result.out
    assert "solve(a, b)" in result.out


def test_one_operation(starfold):
    result = starfold("ops", "min")
    assert result.code == 0
    assert "min(a, b)" in result.out and "min[axes](e)" in result.out
    assert "solve" not in result.out
    result = starfold("ops", "sulve")
    assert result.code == 2
    assert "did you mean solve?" in result.err


def test_json(starfold):
    rows = starfold("ops", "--json").json()["operations"]
    assert all({"name", "family", "surface", "rule", "doc"} <= set(row) for row in rows)
    assert {row["name"] for row in rows} >= {"+", "==", "sum", "permute", "@", "where", "solve", "grad"}
    assert [row["merge"] for row in rows if row["name"] == "var"] == ["moments"]


def test_documentation_is_up_to_date(starfold):
    assert starfold("ops", "--markdown").out == (ROOT / "docs" / "operations.md").read_text(), "run `make docs`"
