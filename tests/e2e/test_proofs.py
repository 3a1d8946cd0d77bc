"""What the pages say of proofs/ is there: every theorem they name is in the file they name. Coq itself is asked by `make proofs`."""

import re

import pytest

from conftest import ROOT

PROOFS = ROOT / "proofs"


def defined(name):
    text = (PROOFS / f"{name}.v").read_text()
    return set(re.findall(r"\b(?:Theorem|Lemma|Corollary|Definition|Fixpoint|Inductive|Record|Variable)\s+([A-Za-z_0-9']+)", text)) | \
        set(re.findall(r"^(?:\|\s|  )([A-Za-z_0-9']+) ?[:(]", text, re.MULTILINE)) | \
        set(re.findall(r"^\| ([A-Za-z_0-9']+)", text, re.MULTILINE))


def named_in_theory():
    """(names, file) of the last column of the tables of docs/theory.md."""
    for line in (ROOT / "docs/theory.md").read_text().splitlines():
        if line.startswith("|"):
            last = line.rstrip("|").split("|")[-1]
            for names, file in re.findall(r"((?:`\w+`(?:, | and )?)+) in `([A-Z]\w+)`", last):
                yield re.findall(r"`(\w+)`", names), file


def named_in_readme():
    for line in (PROOFS / "README.md").read_text().splitlines():
        if line.startswith("|"):
            for names, file in re.findall(r"((?:`\w+`(?:, )?)+) \(([A-Z]\w+)\)", line):
                yield re.findall(r"`(\w+)`", names), file


@pytest.mark.parametrize("rows", [named_in_theory, named_in_readme])
def test_every_named_theorem_exists(rows):
    found = list(rows())
    assert len(found) > 10
    missing = [(name, file) for names, file in found for name in names if name not in defined(file)]
    assert not missing


def test_every_file_is_checked_and_listed():
    files = {path.name for path in PROOFS.glob("*.v")}
    assert files == {line for line in (PROOFS / "_CoqProject").read_text().splitlines() if line.endswith(".v")}
    readme = (PROOFS / "README.md").read_text()
    assert all(f"({name})" in readme for name in files)


def test_nothing_is_admitted():
    for path in PROOFS.glob("*.v"):
        assert not re.search(r"\b(Admitted|admit|Axiom|Parameter|Conjecture)\b", path.read_text()), path.name


def test_every_theorem_of_the_readme_has_its_assumptions_listed():
    listed = (PROOFS / "assumptions.txt").read_text().splitlines()
    main = ["federated_execution_is_exact", "virtual_global_consistency", "exposure_discipline", "client_locality"]
    for name in main:
        assert listed[listed.index(name) + 1] == "Closed under the global context"
