"""Studies over node processes: the bits of a local run, faults, and going on after them."""
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from conftest import ROOT
from node_federation import LIMIT, LOGISTIC, hospital, message, read_frame, wait_until

INPUTS = 'x = ["age", "bmi"]\ny = "y"'


def outputs(result):
    code, answer, err = result
    assert code == 0, err
    return {"outputs": answer["outputs"], "traces": answer["traces"], "iterations": answer["iterations"]}


def test_bits_of_a_local_run(three):
    local = outputs(three.run(three.local(LOGISTIC, INPUTS)))
    code, answer, err = three.run(three.study(LOGISTIC, INPUTS))
    assert code == 0, err
    assert outputs((code, answer, err)) == local
    assert answer["rounds"] == 8 and answer["departures"] == [] and len(answer["run"]) == 32
    assert [c["records"] for c in answer["clients"]] == [None] * 3
    assert not (three.folder / "study.checkpoint").exists()
    assert three.stop() == [0, 0, 0]


def test_categories_missing_values_and_all_columns(nodes):
    for i, name in enumerate(("a", "b")):
        columns = hospital(i)
        columns["sex"] = ["f" if v % 2 else "m" for v in columns["id"]]
        columns["bmi"] = ["" if v % 17 == 0 else b for v, b in zip(columns["id"], columns["bmi"])]
        nodes.add(name, columns)
    program = "input x : [*, p]\ninput y : [*]\noutput s = sum[*](x)\noutput n = records(x)\noutput t = x' @ y\n"
    inputs = 'x = ["age", "bmi", "sex"]\ny = "y"'
    extra = '[categorical.sex]\nlevels = ["f", "m"]\n[options]\nmissing = "drop"'
    assert outputs(nodes.run(nodes.study(program, inputs, extra=extra))) == outputs(nodes.run(nodes.local(program, inputs, extra=extra)))
    code, answer, err = nodes.run(nodes.study(program, inputs, extra=extra.replace("drop", "error")))
    assert code == 1 and answer["refused"]["rule"] == "policy" and answer["refused"]["client"] in ("a", "b")
    assert "12" not in err  # not how many are missing


def turned(columns):
    return dict(reversed(columns.items()))


def test_all_columns_in_one_order(nodes):
    """The order is that of the study's first client, and others find their columns by name. Who has others is named."""
    nodes.add("a", hospital(1))
    nodes.add("b", turned(hospital(2)))
    program = "input x : [*, p]\ninput y : [*]\noutput t = x' @ y\n"
    inputs = 'x = "*"\ny = "y"'
    code, answer, err = nodes.run(nodes.study(program, inputs))
    assert outputs((code, answer, err)) == outputs(nodes.run(nodes.local(program, inputs)))
    by_name = 'x = ["id", "age", "bmi", "ward"]\ny = "y"'
    assert outputs((code, answer, err)) == outputs(nodes.run(nodes.study(program, by_name)))
    nodes.add("c", {**hospital(3), "weight": hospital(3)["age"]})
    code, answer, err = nodes.run(nodes.study(program, inputs))
    assert code == 3 and "weight" in err and " c" in err, err


def test_all_columns_need_the_client_that_gives_their_order(nodes):
    """A run that may go on without a client does not take another order because the first one is away."""
    nodes.add("a", hospital(1), start=False)
    nodes.add("b", turned(hospital(2)))
    nodes.add("c", hospital(3))
    program = "input x : [*, p]\ninput y : [*]\noutput t = x' @ y\n"
    federation = 'on_dropout = "continue"\ntimeout = "1s"'
    code, answer, err = nodes.run(nodes.study(program, 'x = "*"\ny = "y"', federation))
    assert code == 3 and 'in the order of client a, which does not answer' in err, err
    code, answer, err = nodes.run(nodes.study(program, 'formula = "y ~ ."', federation))
    assert code == 3 and 'in the order of client a, which does not answer' in err, err
    code, answer, err = nodes.run(nodes.study(program, 'x = ["id", "age", "bmi", "ward"]\ny = "y"', federation))
    assert code == 0, err


def test_results_folder_and_report(three):
    study = three.study(LOGISTIC, INPUTS)
    code, answer, err = three.run(study, "--out", str(three.folder / "results"))
    assert code == 0, err
    record = json.loads((three.folder / "results/run.json").read_text())
    assert record["run"] == answer["run"] and record["records"] is None and "records" not in record["clients"][0]
    assert "3 clients took part" in (three.folder / "results/report.html").read_text()


def test_mistakes_are_told(three):
    code, answer, err = three.run(three.study(LOGISTIC, 'x = ["age", "bim"]\ny = "y"'))
    assert code == 3 and "no column bim" in err and "did you mean bmi" in err
    study = three.study(LOGISTIC, INPUTS)
    study.write_text(study.read_text().replace('source = "visits"', 'source = "visit"', 1))
    code, answer, err = three.run(study)
    assert code == 3 and "client north has no source visit; it has visits" in err
    code, answer, err = three.run(three.study(LOGISTIC, INPUTS), "--resume")
    assert code == 3 and "no unfinished run" in err
    code, answer, err = three.run(three.study(LOGISTIC, INPUTS), "--reference")
    assert code == 2 and "--reference" in err
    code, answer, err = three.run(three.local(LOGISTIC, INPUTS), "--resume")
    assert code == 2
    code, answer, err = three.run(three.study(LOGISTIC, INPUTS, 'on_dropout = "wat"'))
    assert code == 2 and "on_dropout" in err


def test_a_client_that_stays_away(three):
    study = three.study(LOGISTIC, INPUTS, 'timeout = "1s"\ncheckpoint = "run"')
    three.nodes[1].kill()
    code, answer, err = three.run(study)
    # It never answered, so there is nothing to go on with.
    assert code == 3 and "east did not answer within 1 s" in err and "--resume" not in err
    code, answer, err = three.run(three.study(LOGISTIC, INPUTS, 'timeout = "60s"\non_dropout = "stop"'))
    assert code == 3 and "east did not answer" in err


def test_going_on_without_a_client(three):
    local = three.local(LOGISTIC, INPUTS)
    lines = local.read_text().split("[[client]]")
    local.write_text(lines[0] + "[[client]]" + lines[1] + "[[client]]" + lines[3])
    study = three.study(LOGISTIC, INPUTS, 'timeout = "6s"\non_dropout = "continue"')
    # It answers the question what it has, and then no more.
    proxy = Proxy(three.nodes[1], answers=1)
    study.write_text(study.read_text().replace(str(three.nodes[1].socket), proxy.path))
    code, answer, err = three.run(study)
    proxy.close()
    assert code == 0, err
    assert answer["departures"] == [{"client": "east", "rounds": 0}]
    assert answer["outputs"] == outputs(three.run(local))["outputs"]


def test_going_on_without_a_client_that_never_came(three):
    local = three.local(LOGISTIC, INPUTS)
    lines = local.read_text().split("[[client]]")
    local.write_text(lines[0] + "[[client]]" + lines[2] + "[[client]]" + lines[3])
    three.nodes[0].kill()
    study = three.study(LOGISTIC, INPUTS, 'timeout = "6s"\non_dropout = "continue"')
    code, answer, err = three.run(study)
    assert code == 0, err
    assert answer["departures"] == [{"client": "north", "rounds": 0}]
    assert answer["outputs"] == outputs(three.run(local))["outputs"]
    for node in three.nodes[1:]:
        node.kill()
    code, answer, err = three.run(study)
    assert code == 3 and "clients north, south, east did not answer within 6 s" in err.replace("north, east, south", "north, south, east")


def test_a_path_that_no_socket_can_have(three):
    study = three.study(LOGISTIC, INPUTS)
    study.write_text(study.read_text().replace(str(three.nodes[1].socket), "a/" * 60 + "node.sock"))
    code, answer, err = three.run(study)
    assert code == 2 and "sockets may have at most 107" in err


def test_a_formula_travels(nodes):
    """The text goes to the nodes, which make the columns of the design by themselves; it is part of what is agreed on."""
    for i, name in enumerate(("north", "south")):
        columns = hospital(i)
        columns["sex"] = ["f" if v % 3 else "m" for v in columns["id"]]
        nodes.add(name, columns)
    inputs = 'formula = "y ~ log(age) + bmi * sex + site"'
    levels = '[categorical.sex]\nlevels = ["f", "m"]'
    local, over = nodes.local("", inputs, levels), nodes.study("", inputs, extra=levels)
    for path in (local, over):
        path.write_text(path.read_text().replace('"program.fold"', '"logistic"'))
    assert outputs(nodes.run(over)) == outputs(nodes.run(local))
    agreements = {line["agreement"] for line in nodes.nodes[0].lines() if line.get("kind") == "start"}
    over.write_text(over.read_text().replace("bmi * sex", "bmi + sex"))
    assert nodes.run(over)[0] == 0
    assert len({line["agreement"] for line in nodes.nodes[0].lines() if line.get("kind") == "start"} - agreements) == 1
    over.write_text(over.read_text().replace("bmi + sex", "bmi + secret"))
    code, answer, err = nodes.run(over)
    assert code == 2 and "secret" in err


class Proxy:
    """Stands before a node's socket and does things to its answers."""

    def __init__(self, node, answers=None, change=None, delay=0.0):
        self.node, self.answers, self.change, self.delay = node, answers, change, delay
        self.path = str(node.folder / "proxy.sock")
        self.given = 0
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(self.path)
        self.server.listen(16)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            threading.Thread(target=self.relay, args=(connection,), daemon=True).start()

    def relay(self, connection):
        with connection, socket.socket(socket.AF_UNIX) as there:
            there.connect(str(self.node.socket))
            while (request := read_frame(connection)) is not None:
                there.sendall(struct.pack("<Q", len(request)) + request)
                answer = read_frame(there)
                self.given += 1
                if answer is None or (self.answers is not None and self.given > self.answers):
                    return
                time.sleep(self.delay)
                for piece in self.change(self.given, answer) if self.change else [answer]:
                    try:
                        connection.sendall(struct.pack("<Q", len(piece)) + piece)
                    except OSError:
                        return

    def close(self):
        self.server.close()


def flipped(answer):
    return answer[:30] + bytes([answer[30] ^ 1]) + answer[31:]


def sealed(answer, body):
    """The same kind of message with another body, whole again."""
    return message(struct.unpack("<H", answer[10:12])[0], body)


def altered(answer, fault):
    """A state with one thing wrong: its hash (the first text), its round (after the sequence), a number, or a number too many."""
    if struct.unpack("<H", answer[10:12])[0] != 3:
        return answer
    body = answer[20:-8]
    if fault == "hash":
        return sealed(answer, body[:8] + bytes([body[8] ^ 1]) + body[9:])
    if fault == "round":
        return sealed(answer, body[:80] + struct.pack("<I", 7) + body[84:])
    shape = body.index(struct.pack("<Bq", 1, 3)) if struct.pack("<Bq", 1, 3) in body else None
    assert shape is not None, "a gradient of three numbers"
    if fault == "nan":
        return sealed(answer, body[:shape + 9] + struct.pack("<d", float("nan")) + body[shape + 17:])
    return sealed(answer, body[:shape] + struct.pack("<Bq", 1, 4) + body[shape + 9:shape + 17] + body[shape + 9:])


@pytest.mark.parametrize("fault", ["garbage", "empty", "twice", "old", "cut", "slow", "hash", "round", "size", "nan"])
def test_wrong_answers_end_nothing(three, fault):
    study = three.study(LOGISTIC, INPUTS, 'timeout = "30s"')
    before = []

    def change(count, answer):
        before.append(answer)
        if fault == "twice":
            return [answer, answer]
        if count % 3 != 0:
            return [answer]
        if fault in ("hash", "round", "size", "nan"):
            return [altered(answer, fault)]
        return {"garbage": [flipped(answer)], "empty": [b""], "old": [before[max(0, count - 3)], answer], "cut": [answer[:-9]], "slow": [answer]}[fault]

    proxy = Proxy(three.nodes[2], change=change, delay=0.2 if fault == "slow" else 0)
    study.write_text(study.read_text().replace(str(three.nodes[2].socket), proxy.path))
    result = outputs(three.run(study))
    proxy.close()
    assert result == outputs(three.run(three.local(LOGISTIC, INPUTS)))
    # Nothing was counted twice: each round left the node once.
    sent = [line for line in three.nodes[2].lines() if line.get("kind") == "encode"]
    assert len(sent) == 8 and {line["decision"] for line in sent} == {"sent"}


def test_stopped_and_gone_on_with(three):
    study = three.study(LOGISTIC.replace("repeat 8", "repeat 60"), INPUTS, 'checkpoint = "run"\ntimeout = "30s"')
    process = subprocess.Popen([three.command, "run", str(study), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: len(three.nodes[0].lines()) > 12)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 3 and b"stopped" in err
    result = outputs(three.run(study, "--resume"))
    assert result == outputs(three.run(three.local(LOGISTIC.replace("repeat 8", "repeat 60"), INPUTS)))
    assert not (three.folder / "run").exists()
    for node in three.nodes:
        rounds = [line for line in node.lines() if line.get("kind") == "encode"]
        assert len(rounds) == 60 and len({line["run"] for line in rounds}) == 1


def test_another_program_cannot_go_on(three):
    study = three.study(LOGISTIC, INPUTS, 'timeout = "1s"')
    three.nodes[0].kill()
    assert three.run(study)[0] == 3
    three.nodes[0].start()
    # Nothing has been agreed on before the nodes are reached, so the run was not begun.
    assert not (three.folder / "study.checkpoint/checkpoint").exists()


def test_two_runs_in_one_checkpoint_folder(three):
    study = three.study(LOGISTIC.replace("repeat 8", "repeat 200"), INPUTS, 'checkpoint = "run"')
    process = subprocess.Popen([three.command, "run", str(study), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: len(three.nodes[0].lines()) > 5)
    code, answer, err = three.run(study)
    assert code == 3 and "another run" in err
    assert process.wait(LIMIT) == 0
    process.communicate()


@pytest.mark.parametrize("kills", [int(os.environ.get("STARFOLD_KILLS", "40"))])
def test_killed_at_random(three, kills):
    """Coordinator and nodes are killed and started again at random; the answer has the same bits. STARFOLD_KILLS=200: the long form."""
    program = LOGISTIC.replace("repeat 8", "repeat 100")
    expected = outputs(three.run(three.local(program, INPUTS)))
    study = three.study(program, INPUTS, 'checkpoint = "run"\ntimeout = "60s"')
    rng = random.Random(int(os.environ.get("STARFOLD_SEED", "7")))
    done, killed = None, 0

    def begin():
        options = ["--resume"] if (three.folder / "run/checkpoint").exists() else []
        return subprocess.Popen([three.command, "run", str(study), "--json", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    process = begin()
    end = time.monotonic() + 20 * LIMIT
    while done is None:
        assert time.monotonic() < end
        time.sleep(rng.random() * 0.15)
        if process.poll() is not None:
            out, err = process.communicate()
            if process.returncode != 0:
                raise AssertionError(err)
            if killed >= kills:
                done = json.loads(out)
                break
            process = begin()  # it was too fast: once more from the beginning
            continue
        if killed >= kills:
            continue
        killed += 1
        if rng.random() < 0.4:
            process.kill()
            process.communicate()
            process = begin()
        else:
            node = rng.choice(three.nodes)
            node.kill()
            time.sleep(rng.random() * 0.1)
            node.start()
    assert {key: done[key] for key in expected} == expected
    for node in three.nodes:
        assert three.command_line("node", "ledger", node.file, "--verify").returncode == 0
        # Of every run each round was released once.
        seen = [(line["run"], line["sequence"]) for line in node.lines() if line.get("kind") == "encode" and line["decision"] == "sent"]
        assert len(seen) == len(set(seen))


def test_many_nodes(nodes):
    for i in range(int(os.environ.get("STARFOLD_NODES", "6"))):
        nodes.add(f"n{i}", hospital(i, 60))
    program = "input x : [*, p]\noutput m = mean[*](x)\noutput v = var[*](x)\n"
    assert outputs(nodes.run(nodes.study(program, 'x = ["age", "bmi"]'))) == outputs(nodes.run(nodes.local(program, 'x = ["age", "bmi"]')))


def test_check_and_explain_speak_of_nodes(three):
    study = three.study(LOGISTIC, INPUTS)
    three.stop()  # nobody is asked
    told = three.command_line("check", study)
    assert told.returncode == 0 and "client north: a node, its source visits" in told.stdout and "age, bmi" in told.stdout
    answer = json.loads(three.command_line("check", study, "--json").stdout)
    assert answer["study"]["sizes"]["p"] == 2 and answer["study"]["round_numbers"] == [12]
    page = three.folder / "page.html"
    assert three.command_line("explain", study, "--html", page).returncode == 0
    text = page.read_text()
    assert "What a node would do" in text and "at least 12 usable records" in text and "secure aggregation" in text
    three.study("input x : [*]\noutput m = max[*](x)\n", 'x = "age"')
    assert three.command_line("explain", study, "--html", page).returncode == 0
    assert "it refuses this study" in page.read_text()


def test_the_demo_over_three_nodes(nodes):
    """The study of `make demo`, each hospital behind a node with the policy that a node has by default."""
    sys.path.insert(0, str(ROOT / "tools"))
    import demo
    rng = np.random.default_rng(7)
    for name, count in demo.HOSPITALS.items():
        rows = demo.make_records(rng, count)
        nodes.add(name, {column: [row[i] for row in rows] for i, column in enumerate(demo.COLUMNS)})
    head, options = demo.STUDY.split("[[client]]")[0], '[options]\nmissing = "drop"\n'
    local, over = nodes.folder / "local.toml", nodes.folder / "study.toml"
    local.write_text(head + "".join(f'[[client]]\nname = "{n.name}"\ndata = "{n.folder}/visits.csv"\n' for n in nodes.nodes) + options)
    over.write_text(head + "".join(f'[[client]]\nname = "{n.name}"\nnode = "{n.socket}"\nsource = "visits"\n' for n in nodes.nodes) + options)
    assert outputs(nodes.run(over)) == outputs(nodes.run(local))


def test_other_settings_cannot_go_on(three):
    program = "input x : [*]\ninput a : [] = 1\nstate s : [] = 0\nrepeat 400 {\n  s <- s + a * sum[*](abs(x - s) + 1) / 1000000\n}\noutput s\n"
    study = three.study(program, 'x = "age"\na = 1', 'checkpoint = "run"')
    process = subprocess.Popen([three.command, "run", str(study), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: len(three.nodes[0].lines()) > 12)
    process.kill()
    process.communicate()
    three.study(program, 'x = "age"\na = 5', 'checkpoint = "run"')
    code, answer, err = three.run(study, "--resume")
    assert code == 3 and "other values of inputs" in err
    three.study(program, 'x = "age"\na = 1', 'checkpoint = "run"')
    assert outputs(three.run(study, "--resume")) == outputs(three.run(three.local(program, 'x = "age"\na = 1')))
