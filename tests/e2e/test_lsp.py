"""`starfold lsp`, driven as an editor drives it."""
import json
import pathlib

import pytest
from lsp_client import Editor, applied

LOGISTIC = """\
# Logistic regression by gradient steps.
import stats

input x : [*, p]                 # covariates
input y : [*]
input rate : [] = 0.5

# How a model misses one record.
fn loss_of(eta : [*], y : [*]) -> [*] = softplus(eta) - y * eta

state beta : [p] = zeros(p)
repeat 25 {
  let eta = x @ beta
  let g = grad(mean[*](loss_of(eta, y)), beta)
  let step : [p] = rate * g
  trace loss = sum[*](loss_of(eta, y))
  beta <- beta - step
} until max(abs(step)) < 1e-9
let middle = stats.quantile(y, 0.5)
output beta
output middle
"""


@pytest.fixture
def editor(tmp_path):
    editors = []

    def start(**options):
        editors.append(Editor(tmp_path / "cache", **options))
        return editors[-1]

    yield start
    for one in editors:
        one.close()


@pytest.fixture
def logistic(editor, tmp_path):
    one = editor()
    one.open((tmp_path / "logistic.fold").as_uri(), LOGISTIC)
    assert one.problems() == []
    return one


def hover(editor, needle, which=0, inside=0):
    answer = editor.at("hover", editor.place(needle, which, inside))
    return answer["contents"]["value"] if answer else ""


def test_begins_and_ends_in_order(editor):
    one = editor()
    capabilities = one.server["capabilities"]
    assert capabilities["positionEncoding"] == "utf-16"
    assert {"hoverProvider", "definitionProvider", "completionProvider", "renameProvider", "documentFormattingProvider",
            "inlayHintProvider", "codeLensProvider"} <= set(capabilities)
    assert one.ask("shutdown") is None
    assert "error" in one.answer_to("textDocument/hover", {})
    one.tell("exit", {})
    assert one.process.wait(timeout=30) == 0


def test_an_editor_that_leaves_without_goodbye(editor):
    one = editor()
    one.process.stdin.close()
    assert one.process.wait(timeout=30) == 1


def test_nothing_is_answered_before_initialize(editor):
    one = editor(initialize=False)
    assert one.answer_to("textDocument/hover", {})["error"]["code"] == -32002


def test_problems_as_you_type(logistic):
    line = LOGISTIC.count("\n")
    logistic.type(line, 0, "output x")
    [problem] = logistic.problems()
    assert problem["code"] == "E0301"
    assert problem["severity"] == 1
    assert problem["range"] == {"start": {"line": line, "character": 7}, "end": {"line": line, "character": 8}}
    assert "fold the record axis first" in problem["message"]
    logistic.change(LOGISTIC)
    assert logistic.problems() == []


def test_a_warning_and_where_the_other_side_comes_from(logistic):
    logistic.change(LOGISTIC + "let spare = 1\nlet beta = 2\n")
    spare, twice = sorted(logistic.problems(), key=lambda p: p["severity"], reverse=True)
    assert (spare["severity"], spare["tags"]) == (2, [1])
    assert twice["severity"] == 1
    [other] = twice["relatedInformation"]
    assert other["location"] == {"uri": logistic.uri, "range": {"start": {"line": 10, "character": 6}, "end": {"line": 10, "character": 10}}}


def test_hover_says_type_and_who_knows_it(logistic):
    assert "input x : [*, p]" in hover(logistic, "x @ beta")
    assert "it does not leave" in hover(logistic, "let eta", inside=4)
    assert "state beta : [p]" in hover(logistic, "output beta", inside=7)
    assert "Shared" in hover(logistic, "output beta", inside=7)
    assert "size p" in hover(logistic, "zeros(p)", inside=6)


def test_hover_says_what_leaves(logistic):
    text = hover(logistic, "let g", inside=4)
    assert "let g : [p]" in text
    assert "Leaves each client in round" in text and "in every iteration" in text and "merged by sum. Shows a term of every record: it adds up" in text
    assert "Leaves" not in hover(logistic, "let eta", inside=4)
    fold = hover(logistic, "sum[*](loss_of")
    assert "sum : []" in fold and "Leaves each client" in fold
    assert "Leaves each client" in hover(logistic, "middle")


def test_hover_on_operations_functions_and_comments(logistic):
    assert "softplus : [*]" in hover(logistic, "softplus")
    assert "log(1 + exp" in hover(logistic, "softplus")
    assert "fn loss_of(eta : [*], y : [*]) -> [*]" in hover(logistic, "loss_of(eta, y)", 1)
    assert "How a model misses one record." in hover(logistic, "loss_of(eta, y)", 1)
    assert "@ : [*]" in hover(logistic, "@")
    assert "From lib/stats.fold" in hover(logistic, "quantile")
    assert hover(logistic, "# covariates", inside=4) == ""


def test_definitions_in_the_file(logistic):
    def goes_to(needle, target, which=0, inside=0, target_inside=0):
        found = logistic.at("definition", logistic.place(needle, which, inside))
        assert found["uri"] == logistic.uri
        assert found["range"]["start"] == logistic.place(target, 0, target_inside), needle

    goes_to("x @ beta", "input x", target_inside=6)
    goes_to("beta - step", "state beta", target_inside=6)
    goes_to("beta <-", "state beta", target_inside=6)
    goes_to("output beta", "state beta", inside=7, target_inside=6)
    goes_to("loss_of(eta, y)), beta)", "fn loss_of", target_inside=3)
    goes_to("- y * eta", "y : [*]) ->", inside=2)
    goes_to("zeros(p)", "p]", inside=6)
    goes_to("step))", "let step", target_inside=4)


def test_definitions_in_the_library(logistic):
    for word, inside in (("quantile", 2), ("stats.", 1), ("import stats", 8)):
        found = logistic.at("definition", logistic.place(word, 0, inside))
        path = pathlib.Path(found["uri"].removeprefix("file://"))
        lines = path.read_text().splitlines()
        if word == "quantile":
            start = found["range"]["start"]
            assert lines[start["line"]][start["character"]:].startswith("quantile(")
        assert path.name == "stats.fold"
    # What was opened there is a program of its own, and as it should be.
    logistic.open(path.as_uri(), path.read_text())
    assert logistic.problems() == []


def test_modules_beside_the_program_as_the_editor_holds_them(editor, tmp_path):
    (tmp_path / "mine.fold").write_text("fn twice(a : [n]) = 2 * a\n")
    one = editor()
    program = "import mine\ninput v : [q]\noutput w = mine.twice(v)\n"
    uri = (tmp_path / "use.fold").as_uri()
    one.open(uri, program)
    assert one.problems() == []
    found = one.at("definition", one.place("twice"))
    assert found == {"uri": (tmp_path / "mine.fold").as_uri(), "range": {"start": {"line": 0, "character": 3}, "end": {"line": 0, "character": 8}}}
    # A module that is open and changed counts as the editor shows it.
    seen = one.version
    one.open((tmp_path / "mine.fold").as_uri(), "fn thrice(a : [n]) = 3 * a\n")
    one.problems()
    one.uri, one.version = uri, seen
    [problem] = one.problems()
    assert "has no function `twice`" in problem["message"]


def labels(items):
    return {item["label"]: item for item in items}


def test_completion_of_names_in_scope(logistic):
    inside = labels(logistic.at("completion", logistic.place("beta <-")))
    assert inside["eta"]["detail"] == "[*]"
    assert inside["step"]["detail"] == "[p]"
    assert inside["x"]["detail"] == "[*, p]"
    assert inside["p"]["detail"] == "size"
    assert inside["loss_of"]["detail"] == "loss_of(eta : [*], y : [*]) -> [*]"
    assert "middle" not in inside
    after = labels(logistic.at("completion", logistic.place("output middle")))
    assert "middle" in after and "eta" not in after
    body = labels(logistic.at("completion", logistic.place("softplus")))
    assert body["eta"]["detail"] == "[*]" and "x" not in body and "beta" not in body


def test_completion_from_the_signature_and_words(logistic, starfold):
    offered = labels(logistic.at("completion", logistic.place("output middle")))
    rows = starfold("ops", "--json").json()["operations"]
    called = {row["name"] for row in rows if row["name"].isidentifier() and row["name"] not in ("and", "or", "not")}
    assert called <= set(offered)
    assert "sum[" in offered["sum"]["detail"]
    assert {"let", "repeat", "each client", "private state"} <= set(offered)


def test_completion_of_modules_and_their_functions(logistic):
    text = LOGISTIC + "let q = stats."
    logistic.change(text)
    place = {"line": LOGISTIC.count("\n"), "character": len("let q = stats.")}
    offered = labels(logistic.at("completion", place))
    assert {"quantile", "mean"} & set(offered) and "sum" not in offered
    assert offered["quantile"]["detail"].startswith("quantile(")
    logistic.change("import st")
    offered = labels(logistic.at("completion", {"line": 0, "character": 9}))
    assert "stats" in offered and "sum" not in offered
    logistic.change(LOGISTIC)
    assert logistic.at("completion", logistic.place("# covariates", 0, 5)) == []


def test_rename(logistic):
    answer = logistic.at("rename", logistic.place("beta <-"), newName="weights")
    renamed = applied(LOGISTIC, answer["changes"][logistic.uri])
    assert renamed == LOGISTIC.replace("beta", "weights")
    # Of two names spelled alike only the one that is meant.
    answer = logistic.at("rename", logistic.place("eta : [*]"), newName="score")
    renamed = applied(LOGISTIC, answer["changes"][logistic.uri])
    assert renamed == LOGISTIC.replace("fn loss_of(eta : [*], y : [*]) -> [*] = softplus(eta) - y * eta",
                                       "fn loss_of(score : [*], y : [*]) -> [*] = softplus(score) - y * score")
    answer = logistic.at("rename", logistic.place("p]"), newName="columns")
    assert applied(LOGISTIC, answer["changes"][logistic.uri]).count("columns") == 4
    assert logistic.at("prepareRename", logistic.place("rate * g"))["placeholder"] == "rate"


@pytest.mark.parametrize("word, to, why", [
    ("beta <-", "x", "another meaning"),  # would be defined twice
    ("let g", "rate", "another meaning"),  # would hide an input that is used
    ("beta <-", "sum", "built-in operation"),
    ("beta <-", "let", "not a name"),
    ("beta <-", "two words", "not a name"),
    ("beta <-", "", "not a name"),
    ("quantile", "q", "other programs"),
    ("stats.", "q", "other programs"),
    ("25", "q", "no name here"),
])
def test_a_rename_that_would_change_the_meaning_is_refused(logistic, word, to, why):
    inside = 4 if word.startswith("let") else 0
    answer = logistic.answer_to("textDocument/rename", {"textDocument": {"uri": logistic.uri}, "position": logistic.place(word, 0, inside), "newName": to})
    assert why in answer["error"]["message"]


def test_format(logistic, tmp_path, starfold):
    untidy = "# keep\ninput   x:[*,p]\nlet  a=sum[*]( x )\noutput a\n"
    logistic.change(untidy)
    edits = logistic.whole("formatting")
    path = tmp_path / "untidy.fold"
    path.write_text(untidy)
    assert starfold("fmt", path).code == 0
    assert applied(untidy, edits) == path.read_text()
    assert edits[0]["range"] == {"start": {"line": 1, "character": 0}, "end": {"line": 3, "character": 0}}  # what is tidy stays
    logistic.change(path.read_text())
    assert logistic.whole("formatting") == []
    logistic.change("let a = (")
    assert logistic.whole("formatting") is None


def hints(editor):
    lines = editor.text.split("\n")
    return {lines[h["position"]["line"]][: h["position"]["character"]].split()[-1].strip("(,"): h["label"] for h in editor.whole("inlayHint")}


def test_inlay_types_of_every_let(logistic):
    assert hints(logistic) == {"eta": " : [*]", "g": " : [p]", "middle": " : []"}  # that of `step` is written
    logistic.change("input m : [n, n]\nlet (w, v) = eigh(m)\noutput w\noutput v\n")
    assert hints(logistic) == {"w": " : [n]", "v": " : [n, n]"}
    logistic.change("input x : [*, p]\nlet a = each client {\n  let m = mean[*](x)\n  m\n}\noutput b = sum[*](a)\n")
    assert hints(logistic) == {"a": " : [*client, p]", "m": " : [p]"}


def lenses(editor):
    lines = editor.text.split("\n")
    return {lines[lens["range"]["start"]["line"]].strip(): lens["command"]["title"] for lens in editor.whole("codeLens")}


def test_a_lens_on_every_line_that_leaves_a_client(logistic, starfold, tmp_path):
    found = lenses(logistic)
    assert set(found) == {"let g = grad(mean[*](loss_of(eta, y)), beta)", "trace loss = sum[*](loss_of(eta, y))",
                          "let middle = stats.quantile(y, 0.5)"}
    assert "in every iteration: [] by sum" in found["trace loss = sum[*](loss_of(eta, y))"]
    # As many values as `check` lists, on the lines of the file or at the call of a library function.
    (tmp_path / "same.fold").write_text(LOGISTIC)
    rounds = starfold("check", tmp_path / "same.fold", "--json").json()["rounds"]
    merges = sum(len(each["merges"]) for each in rounds)
    assert merges == sum(title.count(" by ") for title in found.values())


BROKEN = [
    LOGISTIC.replace("let eta = x @ beta", "let eta = x @ ("),
    LOGISTIC.replace("let eta = x @ beta", "let eta = x @"),
    LOGISTIC.replace("} until", "until"),
    LOGISTIC.replace("repeat 25 {", "repeat 25 {{{"),
    LOGISTIC.replace("let g =", "let g = grad(mean[*](loss_of(et\n  let h ="),
    LOGISTIC[: LOGISTIC.index("let g") + 8],
    "@@@ (((" + LOGISTIC,
]


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_file_keeps_what_is_known(logistic, text):
    logistic.change(text)
    assert any(problem["severity"] == 1 for problem in logistic.problems())
    assert "input y : [*]" in hover(logistic, "input y", inside=6)
    assert "rate" in labels(logistic.at("completion", logistic.place("state beta")))
    if "output middle" in text:  # behind the mistake, the last good version answers
        assert "let middle : []" in hover(logistic, "output middle", inside=8)
        assert "let middle = stats.quantile(y, 0.5)" in lenses(logistic)
        assert hints(logistic)["middle"] == " : []"
        found = logistic.at("definition", logistic.place("quantile"))
        assert found["uri"].endswith("/stats.fold")
    logistic.change(LOGISTIC)
    assert logistic.problems() == []


def test_every_prefix_of_a_program_gets_an_answer(logistic):
    for end in range(0, len(LOGISTIC), 7):
        logistic.change(LOGISTIC[:end])
        place = {"line": LOGISTIC[:end].count("\n"), "character": len(LOGISTIC[:end].split("\n")[-1])}
        logistic.at("completion", place)
        logistic.at("hover", place)
        logistic.whole("inlayHint")
        logistic.whole("codeLens")
        logistic.problems()


@pytest.mark.parametrize("encodings, chosen, units", [
    (None, "utf-16", lambda s: len(s.encode("utf-16-le")) // 2),
    (["utf-16"], "utf-16", lambda s: len(s.encode("utf-16-le")) // 2),
    (["utf-8", "utf-16"], "utf-8", lambda s: len(s.encode())),
    (["utf-32", "utf-8"], "utf-32", len),
    (["utf-7"], "utf-16", lambda s: len(s.encode("utf-16-le")) // 2),
])
def test_places_count_as_negotiated(editor, encodings, chosen, units):
    one = editor(encodings=encodings)
    assert one.server["capabilities"]["positionEncoding"] == chosen
    line = "require 1 == 1, \"ü € 𝔽\" + wrong"
    one.open("untitled:Untitled-1", "# 𝔽\n" + line + "\n")
    problems = one.problems()
    after = units(line[: line.index("+")])
    assert any(p["range"]["start"] == {"line": 1, "character": after} for p in problems), problems
    # And back: a change in the middle of such a line.
    begin = units("require 1 == 1, \"ü € ")
    one.version += 1
    one.tell("textDocument/didChange", {"textDocument": {"uri": one.uri, "version": one.version}, "contentChanges": [{
        "range": {"start": {"line": 1, "character": begin}, "end": {"line": 1, "character": units(line)}}, "text": "F\""}]})
    assert one.problems() == []


def test_lines_end_as_the_editor_ends_them(editor):
    for end in ("\n", "\r\n", "\r"):
        one = editor()
        one.open("untitled:1", end.join(["input x : [*]", "", "output x", ""]))
        assert any(p["range"]["start"]["line"] == 2 for p in one.problems()), repr(end)


# What no editor sends.
def test_unknown_methods(editor):
    one = editor()
    assert one.answer_to("textDocument/astrology", {})["error"]["code"] == -32601
    one.tell("$/astrology", {"a": 1})
    one.tell("workspace/didChangeConfiguration", {"settings": None})
    assert one.answer_to("initialize", {"capabilities": {}})["error"]["code"] == -32600
    one.send({"jsonrpc": "2.0", "id": 99, "result": None})  # an answer to a question that was not asked
    assert one.ask("shutdown") is None


def test_messages_that_are_no_messages(editor):
    one = editor()

    def body(data):
        one.send_bytes(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        return one.receive()["error"]["code"]

    assert body(b"") == -32700
    assert body(b"{") == -32700
    assert body(b"\xff\xfe{}") == -32700
    assert body(b'{"jsonrpc": "2.0", "method": "exit\xff"}') == -32700
    assert body(b"[" * 100_000) == -32700
    assert body(b"[]") == -32600
    assert body(b"3") == -32600
    assert body(b'{"method": 3}') == -32600
    assert body(b'{"jsonrpc": "2.0", "id": {}, "method": "shutdown"}') == -32600
    assert one.ask("shutdown") is None


@pytest.mark.parametrize("params", [
    None, [], 3, {"textDocument": 3}, {"textDocument": {"uri": 3}}, {"textDocument": {"uri": "file:///nowhere.fold"}},
    {"textDocument": {"uri": "untitled:1"}}, {"textDocument": {"uri": "untitled:1"}, "position": {"line": -1, "character": 0}},
    {"textDocument": {"uri": "untitled:1"}, "position": {"line": 1e300, "character": 0.5}},
    {"textDocument": {"uri": "untitled:1"}, "position": {"line": "1", "character": None}},
])
def test_params_of_the_wrong_kind(editor, params):
    one = editor()
    one.open("untitled:1", LOGISTIC)
    for method in ("hover", "definition", "completion", "rename", "prepareRename"):
        assert one.answer_to("textDocument/" + method, params)["error"]["code"] == -32602
    for method in ("didOpen", "didChange", "didClose"):
        one.tell("textDocument/" + method, params)
    one.open("untitled:2", "output a = 1\n")
    assert one.problems() == []


def test_places_outside_the_text(editor):
    one = editor()
    one.open("untitled:1", LOGISTIC)
    for line, character in ((10**6, 0), (0, 10**6), (2**32 + 1, 2**63), (2**64 - 1, 2**64 - 1)):
        place = {"line": line, "character": character}
        one.at("hover", place)
        one.at("completion", place)
        one.type(line, character, " ")
    backwards = {"start": {"line": 3, "character": 0}, "end": {"line": 1, "character": 0}}
    one.version += 1
    one.tell("textDocument/didChange", {"textDocument": {"uri": one.uri, "version": one.version}, "contentChanges": [{"range": backwards, "text": ""}]})
    one.problems()


@pytest.mark.parametrize("header", [
    b"Content-Length: -5\r\n\r\n", b"Content-Length: 0x10\r\n\r\n", b"Content-Length:\r\n\r\n", b"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
    b"Content-Length: 9999999999999999999999\r\n\r\n", b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n", b"\r\n\r\n", b"x" * 5000, b"\x00" * 5000,
])
def test_a_header_that_is_none_ends_the_server(editor, header):
    one = editor()
    one.send_bytes(header)
    assert one.receive()["error"]["code"] == -32700
    assert one.receive() is None
    assert one.process.wait(timeout=30) == 1


def test_a_message_that_is_too_long_is_skipped(editor):
    one = editor()
    length = 40 << 20
    one.send_bytes(b"Content-Length: %d\r\n\r\n" % length)
    assert one.receive()["error"]["code"] == -32700
    for _ in range(length >> 20):
        one.send_bytes(b" " * (1 << 20))
    assert one.ask("shutdown") is None
    peak = next(line for line in pathlib.Path(f"/proc/{one.process.pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    assert int(peak.split()[1]) < 30_000


def test_messages_in_pieces_and_with_other_fields(editor):
    one = editor()
    body = json.dumps({"jsonrpc": "2.0", "id": "a", "method": "shutdown"}).encode()
    for byte in b"content-type: application/vscode-jsonrpc; charset=utf-8\r\ncontent-length:  %d \r\n\r\n" % len(body) + body:
        one.send_bytes(bytes([byte]))
    assert one.receive() == {"jsonrpc": "2.0", "id": "a", "result": None}


def test_files_that_are_not_text(editor, tmp_path):
    (tmp_path / "noise.fold").write_bytes(bytes(range(256)))
    one = editor()
    one.open((tmp_path / "use.fold").as_uri(), "import noise\noutput a = noise.f(1)\n")
    problems = one.problems()
    assert problems and problems[0]["range"]["start"]["line"] in (0, 1)
    for uri in ("file:///%00", "file:///%zz", "file://", "file://elsewhere/a.fold", "", "http://here/a.fold", "file:///a%20b%C3%A9.fold"):
        one.open(uri, "import noise\nimport stats\ninput x : [*]\noutput q = stats.quantile(x, 0.5)\n")
        [problem] = one.problems()
        assert "there is no module named `noise`" in problem["message"]


def test_hostile_programs(editor):
    one = editor()
    for text in ("(" * 100_000, "let a = " + "-" * 100_000 + "1", "{" * 10_000, "\x00" * 1000, "é" * 1000, "fn f(a : []) = f(a)\noutput b = f(1)\n",
                 "let a = 1\n" * 5000, "# " + "x" * (5 << 20)):
        one.open("untitled:1", text)
        assert one.problems()
        one.at("completion", {"line": 0, "character": 50})
        one.at("hover", {"line": 0, "character": 8})
        one.whole("formatting")


def test_closing_a_document(logistic):
    logistic.tell("textDocument/didClose", {"textDocument": {"uri": logistic.uri}})
    assert logistic.receive()["params"] == {"uri": logistic.uri, "diagnostics": []}
    assert logistic.answer_to("textDocument/hover", {"textDocument": {"uri": logistic.uri}, "position": {"line": 0, "character": 0}})["error"]


def thousand_lines():
    """Functions, folds, loops and library calls, as programs have them."""
    lines = ["import stats", "import glm", "input x : [*, p]", "input y : [*]"]
    for i in range(60):
        lines += [f"# Part {i} of many.", f"fn part{i}(x : [*, p], y : [*], b : [p]) -> [p] {{", "  let eta = x @ b", "  let r = (sigmoid(eta) - y)[:, new] * x",
                  "  sum[*](r) / records(x)", "}"]
    for i in range(60):
        lines += [f"let a{i} = x @ mean[*](x) + {i}", f"let b{i} = sum[*](a{i} * y)", f"let c{i} = var[*](x) * b{i} / {i + 1}", f"output o{i} = c{i} + {i}"]
    for i in range(40):
        lines += [f"state s{i} : [p] = zeros(p)", "repeat 10 {", f"  let g = part{i}(x, y, s{i})", f"  let h = grad(sum[*](softplus(x @ s{i}) - y * (x @ s{i})), s{i})",
                  f"  trace t{i} = max(abs(g))", f"  s{i} <- s{i} - 0.1 * (g + h)", "} until 1 < 0", f"output s{i}"]
    lines += [f"output q{i} = stats.quantile(y, {i + 1} / 20)" for i in range(10)]
    lines += ["# the end"] * (1000 - len(lines))
    return "\n".join(lines) + "\n"


def test_under_50_ms_per_key_on_a_thousand_lines(editor):
    """Processor time of the server, so that other processes do not count."""
    one = editor()
    text = thousand_lines()
    assert text.count("\n") == 1000
    one.open("untitled:1", text)
    one.problems()
    keys = "let zz = sum[*](y)\n"

    def seconds():
        fields = pathlib.Path(f"/proc/{one.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100

    line = 364  # between two statements
    each = []
    for _ in range(3):  # the best of three: other processes take caches away too
        before = seconds()
        for place, key in enumerate(keys):
            one.type(line, place, key)
            one.problems()  # each key is checked on its own
            one.at("completion", {"line": line, "character": place + 1})
            one.whole("codeLens")
            one.whole("inlayHint")
        each.append((seconds() - before) / len(keys))
        one.change(text)
        one.problems()
    print(f"{1000 * min(each):.1f} ms per key")
    assert min(each) < 0.05
