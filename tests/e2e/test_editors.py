"""The folders under editors/: the extension of VS Code and its package, the grammars."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import xml.etree.ElementTree
import zipfile

import pytest
from lsp_client import COMMAND

ROOT = pathlib.Path(__file__).resolve().parents[2]
VSCODE = ROOT / "editors" / "vscode"
HERE = pathlib.Path(__file__).parent / "editors"

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


@pytest.fixture
def package(tmp_path):
    path = tmp_path / "starfold.vsix"
    subprocess.run([ROOT / "tools" / "vscode-extension", path], check=True, capture_output=True)
    return path


def test_the_package_holds_what_its_manifest_says(package):
    with zipfile.ZipFile(package) as archive:
        assert archive.testzip() is None
        files = {name: archive.read(name) for name in archive.namelist()}
    described = json.loads(files["extension/package.json"])
    contributes = described["contributes"]
    named = [described["main"], contributes["languages"][0]["configuration"], contributes["grammars"][0]["path"], contributes["snippets"][0]["path"]]
    for path in named:
        assert "extension/" + path.removeprefix("./") in files
    manifest = xml.etree.ElementTree.fromstring(files["extension.vsixmanifest"])
    space = {"v": "http://schemas.microsoft.com/developer/vsx-schema/2011"}
    identity = manifest.find(".//v:Identity", space)
    assert (identity.get("Id"), identity.get("Version"), identity.get("Publisher")) == (described["name"], described["version"], described["publisher"])
    for asset in manifest.findall(".//v:Asset", space):
        assert asset.get("Path") in files
    types = {row.get("Extension") for row in xml.etree.ElementTree.fromstring(files["[Content_Types].xml"])}
    assert {pathlib.Path(name).suffix for name in files if name != "[Content_Types].xml"} <= types
    assert described["version"] == re.search(r"project\(starfold VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


def test_the_same_files_give_the_same_package(package, tmp_path):
    again = tmp_path / "again.vsix"
    subprocess.run([ROOT / "tools" / "vscode-extension", again], check=True, capture_output=True)
    assert again.read_bytes() == package.read_bytes()


PROGRAM = "input x : [*, p]\nlet beta = sum[*](x)\noutput  beta\n"


@pytest.fixture
def seen(package, tmp_path):
    """What a user of the packaged extension sees, with a given command."""

    def start(command):
        folder = tmp_path / "unpacked"
        with zipfile.ZipFile(package) as archive:
            archive.extractall(folder)
        program = tmp_path / "sum.fold"
        program.write_text(PROGRAM)
        process = subprocess.run(["node", HERE / "vscode.js", folder / "extension", command, program], capture_output=True, text=True, timeout=120,
                                 env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)})
        assert process.returncode == 0, process.stderr
        return json.loads(process.stdout)

    return start


@needs_node
def test_the_extension_in_a_stand_in_for_the_editor(seen):
    found = seen(COMMAND)
    assert found["shown"] == [] and found["problems"] == []
    assert "let beta : [p]" in found["hover"]["contents"]["value"]
    assert found["definition"]["range"]["start"] == {"line": 1, "character": 4}
    kinds = {item["label"]: item["kind"] for item in found["completion"]}
    assert kinds["beta"] == 5 and kinds["sum"] == 2 and kinds["let"] == 13  # Variable, Function, Keyword of VS Code
    assert [edit["newText"] for edit in found["rename"]["edits"]] == ["other", "other"]
    assert "built-in operation" in found["refused"]
    assert found["format"][0]["newText"] == "output beta\n"
    assert [hint["label"] for hint in found["hints"]] == [" : [p]"]
    [lens] = found["lenses"]
    assert lens["command"]["title"] == "leaves each client in round 1: [p] by sum" and lens["range"]["start"]["line"] == 1
    [problem] = found["after"]
    assert (problem["code"], problem["severity"]) == ("E0301", 0)
    assert found["restarted"] == found["after"]


@needs_node
def test_the_extension_without_the_command_says_so(seen):
    [sentence] = seen("/nowhere/starfold")["shown"]
    assert "starfold.command" in sentence


def test_snippets_are_programs(starfold, program):
    """A snippet with its placeholders filled in parses, and formats to itself."""
    snippets = json.loads((VSCODE / "snippets" / "starfold.json").read_text())
    for name, snippet in snippets.items():
        text = re.sub(r"\$\{\d+:([^}]*)\}", r"\1", "\n".join(snippet["body"])).replace("$0", "beta") + "\n"
        result = starfold("fmt", "-", input=text)
        assert (result.code, result.out) == (0, text), name


# The TextMate grammar.
GRAMMAR = json.loads((VSCODE / "syntaxes" / "starfold.tmLanguage.json").read_text())


def test_the_grammar_knows_every_operation_and_word(starfold):
    rows = starfold("ops", "--json").json()["operations"]
    called = {row["name"] for row in rows if row["name"].isidentifier()} - {"and", "or", "not"}
    listed = re.search(r"\(\?:([a-z0-9_|]+)\)", GRAMMAR["repository"]["operation"]["match"])[1].split("|")
    assert set(listed) == called
    tokens = (ROOT / "starfold" / "syntax" / "token.cpp").read_text()
    words = set(re.findall(r'TokenKind::kw_\w+, "(\w+)"', tokens))
    assert len(words) > 10
    patterns = json.dumps(GRAMMAR["repository"])
    for word in words:
        assert re.search(rf"\b{word}\b", patterns.replace("\\b", " ")), word


def tokens_of(text):
    """The grammar by hand: at each place the first pattern that matches, as an editor does for patterns of one line."""
    rules = []

    def add(rule):
        if "include" in rule:
            add(GRAMMAR["repository"][rule["include"][1:]])
        for inner in rule.get("patterns", []):
            add(inner)
        if "match" in rule:
            rules.append((re.compile(rule["match"], re.MULTILINE), rule))

    for pattern in GRAMMAR["patterns"]:
        add(pattern)
    found, at = [], 0
    while at < len(text):
        best = min(((match.start(), order, match, rule) for order, (regex, rule) in enumerate(rules) if (match := regex.search(text, at)) and match.end() > match.start()),
                   key=lambda entry: entry[:2], default=None)
        if best is None:
            break
        _, _, match, rule = best
        if "name" in rule:
            found.append((match[0], rule["name"].removesuffix(".starfold")))
        for group, capture in rule.get("captures", {}).items():
            if match[int(group)]:
                found.append((match[int(group)], capture["name"].removesuffix(".starfold")))
        at = match.end()
    return found


def test_the_grammar_colors_a_program():
    text = 'import stats  # moments\nfn f(x : [*visits, p]) = sum[*](x)\nprivate state c = 0\nlet y = stats.cov(x)\' @ sum\nrepeat 25 {\n  b <- b - 2.5e-3 * inf\n}\nrequire n > 0, "some sum[*]"\n'
    found = tokens_of(text)
    for expected in [("import", "keyword.control.import"), ("stats", "entity.name.namespace"), ("# moments", "comment.line.number-sign"), ("f", "entity.name.function"),
                     ("*", "storage.modifier.star"), ("visits", "storage.modifier.star"), ("sum", "support.function"), ("private state", "storage.type"),
                     ("c", "variable.other.definition"), ("cov", "entity.name.function.call"), ("'", "keyword.operator"), ("repeat", "keyword.control"),
                     ("<-", "keyword.operator"), ("2.5e-3", "constant.numeric"), ("inf", "constant.language"), ("require", "keyword.other"),
                     ('"some sum[*]"', "string.quoted.double"), ("sum", "variable.other")]:
        assert expected in found, expected
    assert ("*", "keyword.operator") in found  # of a product
    assert found.count(("sum", "support.function")) == 1


# The tree-sitter grammar.
TREE_SITTER = ROOT / "editors" / "tree-sitter-starfold"


def programs():
    folders = [ROOT / "lib", ROOT / "examples", ROOT / "tests" / "golden"]
    return [path for folder in folders for path in sorted(folder.rglob("*.fold")) if not path.name.startswith("fail_")]


@pytest.mark.skipif(shutil.which("tree-sitter") is None or shutil.which("node") is None, reason="the tree-sitter command is not installed")
def test_the_tree_sitter_grammar_reads_its_corpus_and_every_program(tmp_path, starfold):
    folder = tmp_path / "grammar"
    shutil.copytree(TREE_SITTER, folder)
    run = {"cwd": folder, "capture_output": True, "text": True, "timeout": 300, "env": {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)}}
    generated = subprocess.run(["tree-sitter", "generate"], **run)
    assert generated.returncode == 0, generated.stderr
    corpus = subprocess.run(["tree-sitter", "test"], **run)
    assert corpus.returncode == 0, corpus.stdout + corpus.stderr
    listed = tmp_path / "paths"
    read = [path for path in programs() if starfold("fmt", "--check", path).err.count("error[") == 0]
    assert len(read) > 100
    listed.write_text("\n".join(map(str, read)))
    parsed = subprocess.run(["tree-sitter", "parse", "--quiet", "--paths", listed], **run)
    assert parsed.returncode == 0, parsed.stdout
