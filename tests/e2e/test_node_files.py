"""A node's files from outside: NODE.toml and what `node check` says of it, the ledger and what `node ledger --verify` finds,
approvals. The ledger is written here a second time, from its description in docs/node.md alone."""
import hashlib
import json
import os

import pytest

NODE = """name = "north"
socket = "north.sock"
ledger = "north.ledger"
folder = "north"

[data.visits]
file = "visits.csv"
columns = ["age", "sex"]

[policy]
min_records = 5
merges = ["sum", "count", "moments"]
"""


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


STUDY, OTHER = sha256("study"), sha256("other")


@pytest.fixture
def node(tmp_path):
    """A folder with a node's file and its data."""
    folder = tmp_path / "site"
    folder.mkdir(mode=0o700)
    (folder / "visits.csv").write_text("age,sex,patient_id\n" + "".join(f"{30 + i % 7},f,{i * i}\n" for i in range(30)))
    (folder / "visits.csv").chmod(0o600)
    write_node(folder, NODE)
    return folder


def write_node(folder, text):
    (folder / "NODE.toml").write_text(text)
    (folder / "NODE.toml").chmod(0o600)


def head_text(lines):
    seq, last = len(lines) - 1, sha256(lines[-1])
    text = json.dumps({"seq": seq, "hash": last, "check": sha256(f"{seq} {last}")[:16]}, separators=(",", ":"))
    return text.ljust(159) + "\n"


def write_ledger(folder, entries, node="north"):
    """The lines of a ledger with these entries, written to the node's files."""
    lines, prev = [], "0" * 64
    for seq, entry in enumerate([{"kind": "ledger", "node": node, "format": 1}, *entries]):
        time = f"2026-11-17T01:{seq // 60 % 60:02}:{seq % 60:02}.000Z"
        lines.append(json.dumps({"seq": seq, "time": time, **entry, "prev": prev}, separators=(",", ":"), ensure_ascii=False))
        prev = sha256(lines[-1])
    (folder / "north").mkdir(mode=0o700, exist_ok=True)
    save(folder, lines)
    (folder / "north/ledger.head").write_text(head_text(lines))
    return lines


def save(folder, lines):
    (folder / "north.ledger").write_text("".join(line + "\n" for line in lines))
    (folder / "north.ledger").chmod(0o600)


def encode(i):
    return {"kind": "encode", "study": "sums", "agreement": STUDY, "peer": "hub", "run": "a" * 32, "sequence": i + 1, "round": i,
            "decision": "sent", "numbers": 3, "bytes": 24, "shapes": "[3]", "sent": sha256(f"reply {i}"), "numbers_left": 97 - 3 * i}


def test_check_says_what_would_leave(starfold, node):
    result = starfold("node", "check", node / "NODE.toml", cwd="/")
    assert result.code == 0, result.err
    assert "visits.csv, 30 records" in result.out and "age (number), sex (text)" in result.out
    assert "at least 5 usable records" in result.out and "warning" not in result.out
    result = starfold("node", "check", "NODE.toml", "--json", cwd=node)
    said = result.json()
    assert said["policy"]["min_support"] == 5 and said["policy"]["merges"] == ["count", "moments", "sum"]
    canonical = json.dumps(said["policy"], separators=(",", ":"), sort_keys=True)
    assert said["policy_hash"] == sha256(canonical)
    assert not (node / "north").exists() and not (node / "north.ledger").exists()  # looking leaves nothing behind


def test_check_warns_of_identifiers(starfold, node):
    write_node(node, NODE.replace('"sex"', '"patient_id"'))
    result = starfold("node", "check", node / "NODE.toml")
    assert result.code == 0 and "NODE.toml:8: data.visits: column patient_id looks like an identifier" in result.out


@pytest.mark.parametrize("old, new, line, words", [
    ('name = "north"', 'nmae = "north"', 1, "did you mean name?"),
    ('"north.sock"', '"' + "s" * 120 + '"', 2, "sockets may have at most 107"),
    ('"north.ledger"', '"visits.csv"', 3, "is the data of visits already"),
    ("[data.visits]", '[data."../visits"]', 6, "must be a name"),
    ('"visits.csv"', '"gone.csv"', 7, "does not exist"),
    ('"visits.csv"', '"/dev/zero"', 7, "must be a table"),
    ('"sex"', '"weight"', 8, "data.visits has no column weight"),
    ("min_records = 5", "min_records = -5", 11, "must be at least 1"),
    ("min_records = 5", "min_recrods = 5", 11, "did you mean min_records?"),
    ("min_records = 5", "max_ratio = nan", 11, "finite"),
    ('"moments"]', '"moment"]', 12, "there is no merge moment; did you mean moments?"),
])
def test_mistakes_have_their_place(starfold, node, old, new, line, words):
    write_node(node, NODE.replace(old, new))
    result = starfold("node", "check", node / "NODE.toml")
    assert result.code == 2 and f"NODE.toml:{line}: " in result.err and words in result.err, result.err
    assert len(result.err.splitlines()) == 1


def test_a_node_without_its_columns_does_not_start(starfold, node):
    write_node(node, NODE.replace('"sex"', '"weight"'))
    result = starfold("node", "serve", node / "NODE.toml", timeout=60)
    assert result.code == 2 and "data.visits has no column weight" in result.err and "listening" not in result.out
    assert not (node / "north.sock").exists()


def test_a_pipe_is_no_file(starfold, node):
    os.mkfifo(node / "pipe.csv")
    write_node(node, NODE.replace("visits.csv", "pipe.csv"))
    assert "not a regular file" in starfold("node", "check", node / "NODE.toml", timeout=10).err
    os.mkfifo(node / "PIPE.toml")
    assert starfold("node", "check", node / "PIPE.toml", timeout=10).code == 2


@pytest.mark.parametrize("name", ["NODE.toml", "north", "north.ledger"])
def test_loose_permissions(starfold, node, name):
    write_ledger(node, [])
    (node / name).chmod(0o722)
    result = starfold("node", "check", node / "NODE.toml")
    assert result.code == 2 and "others than its owner may write" in result.err
    (node / name).chmod(0o700)
    assert starfold("node", "check", node / "NODE.toml").code == 0


def test_a_file_of_someone_else(plain_user):
    folder, run = plain_user
    site = folder / "site"
    site.mkdir(mode=0o755)
    (site / "visits.csv").write_text("age,sex\n30,f\n")
    write_node(site, NODE)
    (site / "NODE.toml").chmod(0o644)
    if os.geteuid() == 0:
        os.chown(site / "NODE.toml", 1234, 1234)
        assert "belongs to another user" in run("node", "check", site / "NODE.toml").err
        os.chown(site / "NODE.toml", 0, 0)  # root's is fine: who could change it owns the machine
    assert run("node", "check", site / "NODE.toml").code == 0
    (site / "visits.csv").chmod(0o600)
    if os.geteuid() == 0:
        assert "visits.csv cannot be read" in run("node", "check", site / "NODE.toml").err


def test_the_ledger_is_shown(starfold, node):
    assert "nothing was asked yet" in starfold("node", "ledger", node / "NODE.toml").out
    refused = {"kind": "encode", "study": "zu viel", "agreement": OTHER, "decision": "refused", "rule": "min_support", "counted": True,
               "detail": "cell 3 of s"}
    lines = write_ledger(node, [encode(0), encode(1), refused])
    text = starfold("node", "ledger", node / "NODE.toml").out
    assert len(text.splitlines()) == 4
    assert "round 1" in text and "3 numbers [3]" in text and "94 left" in text and "rule min_support  (cell 3 of s)" in text
    said = starfold("node", "ledger", node / "NODE.toml", "--json").json()
    assert said["entries"] == [json.loads(line) for line in lines] and said["damaged"] == 0
    verdict = starfold("node", "ledger", node / "NODE.toml", "--verify")
    assert verdict.code == 0 and "4 lines, each following" in verdict.out and "cannot show" in verdict.out


def test_the_folder_of_the_socket_may_be_gone(starfold, node):
    """A service makes it when it starts and removes it when it ends; the owner looks at the ledger all the same."""
    write_ledger(node, [encode(0)])
    write_node(node, NODE.replace('"north.sock"', '"gone/north.sock"'))
    assert starfold("node", "ledger", node / "NODE.toml", "--verify").code == 0
    assert "nothing waits" in starfold("node", "pending", node / "NODE.toml").out
    said = starfold("node", "check", node / "NODE.toml")
    assert said.code == 0 and "NODE.toml:2: socket: there is no folder" in said.out
    served = starfold("node", "serve", node / "NODE.toml", timeout=30)
    assert served.code == 3 and "cannot be made" in served.err


def test_verify_finds_what_was_done_to_it(starfold, node):
    lines = write_ledger(node, [encode(i) for i in range(6)])

    def verify():
        result = starfold("node", "ledger", node / "NODE.toml", "--verify", "--json")
        said = result.json()
        assert result.code == (0 if said["ok"] else 1) and said["ok"] == (said["problems"] == [])
        return said

    assert verify()["ok"] and verify()["lines"] == 7
    for changed in (lines[:3] + lines[4:], lines[:2] + [lines[3], lines[2]] + lines[4:], lines[:3] + lines[2:], lines[:-1], lines[:1], [],
                    lines[:2] + [lines[2].replace('"numbers":3', '"numbers":2')] + lines[3:],
                    lines[:-1] + [lines[-1].replace('"numbers":3', '"numbers":2')], lines + ["{}"], lines + [lines[-1]]):
        save(node, changed)
        assert not verify()["ok"], changed
        assert starfold("node", "ledger", node / "NODE.toml").code == 0  # shown as far as it can be read
    save(node, lines[:-1])
    assert "rolled back" in verify()["problems"][0]
    (node / "north/ledger.head").write_text(head_text(lines[:-1]))
    assert verify()["ok"]  # both put back: the one thing it cannot show, and says so
    assert "both put back" in verify()["limits"]
    save(node, lines)
    assert verify()["ok"] and "1 line(s) behind" in verify()["notes"][0]
    (node / "north/ledger.head").unlink()
    assert not verify()["ok"]
    (node / "north/ledger.head").write_text(head_text(lines))
    (node / "north.ledger").open("a").write(lines[-1][:40])
    assert verify()["ok"] and "torn" in verify()["notes"][0]


def test_a_long_ledger(starfold, node):
    write_ledger(node, [encode(i) for i in range(20000)])
    result = starfold("node", "ledger", node / "NODE.toml", "--verify", timeout=30)
    assert result.code == 0 and "20001 lines" in result.out


def test_the_owner_decides(starfold, node):
    (node / "north/pending").mkdir(parents=True, mode=0o700)
    (node / "north").chmod(0o700)
    assert "nothing waits" in starfold("node", "pending", node / "NODE.toml").out
    for study, name in ((STUDY, "sums"), (OTHER, "\x1b[2Jhidden")):
        (node / f"north/pending/{study}.json").write_text(json.dumps(
            {"study": name, "peer": "hub", "plan": sha256("plan"), "time": "2026-11-17T01:00:00.000Z", "reason": "not seen before",
             "exposure": "s: 3 numbers, added up\n"}))
    text = starfold("node", "pending", node / "NODE.toml").out
    assert STUDY in text and "s: 3 numbers, added up" in text and "waits for you" in text and "\x1b" not in text
    for wrong in ("zz" * 8, "abc", "0" * 10, "../../x", STUDY[:63], STUDY + "0", STUDY.upper(), ""):
        assert starfold("node", "approve", wrong, node / "NODE.toml").code == 2, wrong
    assert starfold("node", "approve", STUDY, node / "NODE.toml").code == 0
    assert starfold("node", "deny", OTHER, node / "NODE.toml").code == 0
    for study, word in ((STUDY, "approve"), (OTHER, "deny")):
        file = node / f"north/approvals/{study}.json"
        assert json.loads(file.read_text())["decision"] == word and file.stat().st_mode & 0o777 == 0o600
    states = {each["id"]: each["state"] for each in starfold("node", "pending", node / "NODE.toml", "--json").json()["pending"]}
    assert states[STUDY].startswith("approved") and states[OTHER].startswith("denied")
    ahead = sha256("not asked yet")
    assert starfold("node", "approve", ahead, node / "NODE.toml").code == 0
    assert sorted(os.listdir(node / "north/approvals")) == sorted(f"{study}.json" for study in (STUDY, OTHER, ahead))


def test_a_beginning_names_no_study(starfold, node):
    """Whoever writes programs can try until a hash begins like another: no number of digits but all of them will do. And what a coordinator
    calls its study cannot look like another entry of the list."""
    (node / "north/pending").mkdir(parents=True, mode=0o700)
    (node / "north").chmod(0o700)
    alike = STUDY[:40] + sha256("another")[40:]
    forged = f"harmless\n{STUDY}  2026-11-17T01:00:00.000Z  the other"
    for study, name in ((STUDY, "sums"), (alike, forged)):
        (node / f"north/pending/{study}.json").write_text(json.dumps(
            {"study": name, "peer": "hub\n" + STUDY, "plan": "p\n" + STUDY, "time": "2026-11-17T01:00:00.000Z", "reason": "not seen before\n" + STUDY,
             "exposure": f"s: 3 numbers\n{STUDY} is fine\r{STUDY}\n"}))
    for id_ in (STUDY[:6], STUDY[:12], STUDY[:40], STUDY[:63], alike[:41]):
        for word in ("approve", "deny"):
            result = starfold("node", word, id_, node / "NODE.toml")
            assert result.code == 2 and "all 64 digits" in result.err and STUDY in result.err + STUDY * (len(id_) == 41), result.err
    told = starfold("node", "approve", STUDY[:40], node / "NODE.toml").err
    assert STUDY in told and alike in told
    assert not os.path.exists(node / "north/approvals") or os.listdir(node / "north/approvals") == []
    text = starfold("node", "pending", node / "NODE.toml").out
    assert sorted(line.split()[0] for line in text.splitlines() if line and not line.startswith(" ")) == sorted([STUDY, alike]), text
    assert "\r" not in text
    assert starfold("node", "approve", alike, node / "NODE.toml").code == 0
    assert os.listdir(node / "north/approvals") == [f"{alike}.json"]


def test_an_empty_key_pins_nothing_and_is_refused(starfold, program, tmp_path):
    (tmp_path / "empty.pub").write_text("\n")
    program("input x : [*]\noutput s = sum[*](x)\n")
    (tmp_path / "study.toml").write_text('program = "program.fold"\n[inputs]\nx = "age"\n[[client]]\nname = "a"\nsource = "v"\npublic_key = "empty.pub"\n'
                                         '[federation]\nvia = "flower"\nsuperlink = "127.0.0.1:9"\ntimeout = "2s"\n')
    result = starfold("run", tmp_path / "study.toml")
    assert result.code == 3 and "the public key of client a" in result.err and "is empty" in result.err
