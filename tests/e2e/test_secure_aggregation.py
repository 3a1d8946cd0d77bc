"""Secure aggregation over node processes: the plain integer sums, what leaves, what is refused, faults."""
import json
import os
import pathlib
import random
import re
import signal
import stat
import struct
import subprocess
import time

import numpy as np
import pytest
from node_federation import LIMIT, LOGISTIC, agreement, encode_message, hospital, kind, wait_until
from test_node_runs import INPUTS, Proxy, outputs

SECURE = "[secure_aggregation]\nthreshold = 2\nminimum_clients = 3"
COUNTS = """input g : [*]
input y : [*]
output n = count[*](y)
output cells = sum[*](one_hot(g, 3))
output ill = sum[*](y > 0.5)
"""
COUNT_INPUTS = 'g = "ward"\ny = "y"'


def secure(federation, program, inputs, settings="", keys=True, extra=SECURE):
    return federation.study(program, inputs, settings, extra=extra, keys=keys, name="secure.toml")


def test_whole_numbers_are_those_of_the_plain_run(three):
    plain = outputs(three.run(three.study(COUNTS, COUNT_INPUTS)))
    assert outputs(three.run(secure(three, COUNTS, COUNT_INPUTS))) == plain
    assert plain["outputs"]["n"]["data"] == [600]


def test_bits_of_the_exact_sums(three):
    """In one process the same integers are added: the same bits; and next to nothing but the rounding of sums is another."""
    code, answer, err = three.run(secure(three, LOGISTIC, INPUTS))
    assert code == 0, err
    local = three.local(LOGISTIC, INPUTS, extra=SECURE)
    assert outputs((code, answer, err)) == outputs(three.run(local))
    plain = outputs(three.run(three.study(LOGISTIC, INPUTS)))
    np.testing.assert_allclose(answer["outputs"]["beta"]["data"], plain["outputs"]["beta"]["data"], rtol=1e-9)
    assert answer["secure_aggregation"] == {"clients": 3, "threshold": 2, "minimum_clients": 3, "pinned_keys": 3}
    assert answer["rounds"] == 8 and answer["departures"] == []


SPREAD = """input x : [*, p]
output v = var[*](x)
output c = cov[*](x)
output g = x' @ tanh(x)
"""


def test_an_exact_run_can_be_masked(three):
    """Its states are integers that add up as they are: no bit is another, over nodes and in one process."""
    plain = outputs(three.run(three.study(LOGISTIC, INPUTS), "--exact"))["outputs"]
    assert outputs(three.run(secure(three, LOGISTIC, INPUTS), "--exact"))["outputs"] == plain
    assert outputs(three.run(three.local(LOGISTIC, INPUTS, extra=SECURE), "--exact"))["outputs"] == plain
    # The policies of these nodes allow no variances.
    columns = INPUTS.split("\n")[0]
    spread = outputs(three.run(three.local(SPREAD, columns), "--exact"))["outputs"]
    assert outputs(three.run(three.local(SPREAD, columns, extra=SECURE), "--exact"))["outputs"] == spread


def test_what_the_ledger_and_the_report_say(three):
    study = secure(three, LOGISTIC, INPUTS)
    code, answer, err = three.run(study, "--out", str(three.folder / "results"))
    assert code == 0, err
    record = json.loads((three.folder / "results/run.json").read_text())
    assert record["secure_aggregation"]["clients"] == 3
    report = (three.folder / "results/report.html").read_text()
    assert "masked (secure aggregation)" in report and "no number of a single client" in report
    for node in three.nodes:
        sent = [line for line in node.lines() if line.get("kind") == "encode"]
        assert len(sent) == 8
        assert all(line["masked"] == "3 clients, threshold 2" and "words" in line["shapes"] and line["bytes"] > 0 for line in sent)
        assert [line["kind"] for line in node.lines()][1:6] == ["start", "keys", "share", "encode", "unmask"]
        assert three.command_line("node", "ledger", node.file, "--verify").returncode == 0
    explained = three.command_line("explain", study)
    assert "masked" in explained.stdout and "no number of a single one" in explained.stdout
    assert json.loads(three.command_line("explain", study, "--json").stdout)["study"]["secure_aggregation"]["minimum_clients"] == 3


def test_keys_of_nodes(three):
    north = three.nodes[0]
    key = north.key()
    assert len(key) == 64 and key == north.key()
    assert key in three.command_line("node", "check", north.file).stdout
    assert json.loads(three.command_line("node", "check", north.file, "--json").stdout)["key"] == key
    identity = north.folder / "private/identity"
    assert stat.S_IMODE(identity.stat().st_mode) == 0o600
    north.stop()
    identity.chmod(0o640)
    started = three.command_line("node", "serve", north.file)
    assert started.returncode == 3 and "chmod 600" in started.stderr
    identity.chmod(0o600)
    identity.write_bytes(b"something else")
    assert three.command_line("node", "serve", north.file).returncode == 3
    identity.unlink()
    north.start()
    assert north.key() != key


def test_a_node_with_another_key_is_not_the_one(three):
    study = secure(three, COUNTS, COUNT_INPUTS)
    keys = [node.key() for node in three.nodes]
    study.write_text(study.read_text().replace(keys[1], keys[1][:-1] + ("0" if keys[1][-1] != "0" else "1")))
    code, answer, err = three.run(study)
    assert code == 3 and "east is not the node that the study names" in err
    study.write_text(study.read_text().replace(keys[0], "abc"))
    code, answer, err = three.run(study)
    assert code == 2 and "starfold node key" in err


def test_without_pinned_keys_the_report_says_so(three):
    code, answer, err = three.run(secure(three, COUNTS, COUNT_INPUTS, keys=False), "--out", str(three.folder / "results"))
    assert code == 0 and answer["secure_aggregation"]["pinned_keys"] == 0, err
    assert "does not name the keys of 3 of them" in (three.folder / "results/report.html").read_text()


def test_required_by_the_owner(nodes):
    for i, name in enumerate(("a", "b", "c")):
        nodes.add(name, hospital(i), policy='secure_aggregation = "required"')
    code, answer, err = nodes.run(nodes.study(COUNTS, COUNT_INPUTS))
    assert code == 1 and answer["refused"]["rule"] == "secure_aggregation"
    code, answer, err = nodes.run(secure(nodes, COUNTS, COUNT_INPUTS))
    assert code == 0, err
    tried = nodes.command_line("node", "try", nodes.nodes[0].file, nodes.folder / "secure.toml")
    assert tried.returncode == 0 and "lets this study run" in tried.stdout
    tried = nodes.command_line("node", "try", nodes.nodes[0].file, nodes.folder / "study.toml")
    assert tried.returncode == 1 and "secure_aggregation" in tried.stdout
    assert "no peers are listed" in nodes.command_line("node", "check", nodes.nodes[0].file).stdout


def test_peers_are_the_owners_choice(nodes):
    for i, name in enumerate(("a", "b", "c")):
        nodes.add(name, hospital(i))
    keys = [node.key() for node in nodes.nodes]
    study = secure(nodes, COUNTS, COUNT_INPUTS)

    def with_peers(listed):
        nodes.nodes[0].stop()
        nodes.nodes[0].write("peers = " + json.dumps(listed))
        nodes.nodes[0].start()
        return nodes.run(study)

    code, answer, err = with_peers(keys[:2])
    assert code == 1 and answer["refused"] == {"client": "a", "rule": "secure_aggregation"}
    refused = [line for line in nodes.nodes[0].lines() if line.get("decision") == "refused"]
    assert "key of client c" in refused[-1]["detail"]
    assert with_peers(keys[1:])[0] == 0
    nodes.nodes[0].stop()
    nodes.nodes[0].write("minimum_clients = 4")
    nodes.nodes[0].start()
    code, answer, err = nodes.run(study)
    assert code == 1 and answer["refused"]["rule"] == "secure_aggregation"
    for wrong in ('peers = ["abc"]', "minimum_clients = 2"):
        nodes.nodes[0].write(wrong)
        assert nodes.command_line("node", "check", nodes.nodes[0].file).returncode == 2


@pytest.mark.parametrize("fold, words", [("min[*](y)", "histogram"), ("max[*](y)", "histogram"), ("prod[*](y)", "log")])
def test_what_does_not_add_up_is_refused_before_the_first_round(three, fold, words):
    program = f"input g : [*]\ninput y : [*]\noutput t = sum[*](y)\noutput r = {fold}\n"
    code, answer, err = three.run(secure(three, program, COUNT_INPUTS))
    assert code == 1 and answer["line"] == 4 and words in err and "program.fold:4" in err
    assert all(line["kind"] not in ("start", "encode") for line in three.nodes[0].lines())
    code, answer, err = three.run(three.local(program, COUNT_INPUTS, extra=SECURE))
    assert code == 1 and answer["line"] == 4


def test_means_variances_and_truth_values_are_planned_as_sums(three):
    program = "input y : [*]\ninput x : [*, p]\noutput m = mean[*](x)\noutput v = var[*](x)\noutput some = any[*](y > 0.5)\n"
    plain = outputs(three.run(three.local(program, INPUTS)))["outputs"]
    masked = outputs(three.run(secure(three, program, INPUTS)))["outputs"]
    for name in ("m", "v", "some"):
        np.testing.assert_allclose(masked[name]["data"], plain[name]["data"], rtol=1e-10)


def test_two_clients_are_too_few(nodes):
    for i, name in enumerate(("a", "b")):
        nodes.add(name, hospital(i))
    code, answer, err = nodes.run(secure(nodes, COUNTS, COUNT_INPUTS))
    assert code == 1 and "too few" in err
    code, answer, err = nodes.run(nodes.local(COUNTS, COUNT_INPUTS, extra="[secure_aggregation]"))
    assert code == 1 and "too few" in err
    code, answer, err = nodes.run(nodes.local(COUNTS, COUNT_INPUTS, extra="[secure_aggregation]\nminimum_clients = 2"))
    assert code == 2 and "minimum_clients" in err
    code, answer, err = nodes.run(nodes.local(COUNTS, COUNT_INPUTS, extra="[secure_aggregation]\ntreshold = 2"))
    assert code == 2 and "threshold" in err


def test_no_other_message_passes_unmasked(three):
    """A server that has begun a masked run asks for a plain state."""
    study = secure(three, LOGISTIC.replace("repeat 8", "repeat 40"), INPUTS)
    process = subprocess.Popen([three.command, "run", str(study), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    north = three.nodes[0]
    wait_until(lambda: any(line["kind"] == "encode" for line in north.lines()))
    started = next(line for line in north.lines() if line["kind"] == "start")
    plain = encode_message(started["agreement"], started["run"], 0, 0, [np.zeros(3)])
    assert kind(north.ask(plain)) in ("broken_protocol", "out_of_order")
    out, err = process.communicate(timeout=2 * LIMIT)
    assert process.returncode == 0, err


def test_going_on_without_a_client(nodes):
    for i, name in enumerate(("a", "b", "c", "d", "e")):
        nodes.add(name, hospital(i))
    local = nodes.local(COUNTS, COUNT_INPUTS)
    parts = local.read_text().split("[[client]]")
    local.write_text("[[client]]".join(parts[:3] + parts[4:]))
    expected = outputs(nodes.run(local))
    # It says what it has, greets, gives keys and shares, and then no more.
    for answers in (1, 2, 3, 4):
        study = secure(nodes, COUNTS, COUNT_INPUTS, 'timeout = "2s"\non_dropout = "continue"')
        proxy = Proxy(nodes.nodes[2], answers=answers)
        study.write_text(study.read_text().replace(str(nodes.nodes[2].socket), proxy.path))
        code, answer, err = nodes.run(study)
        proxy.close()
        os.unlink(proxy.path)
        assert code == 0, err
        assert answer["departures"] == [{"client": "c", "rounds": 0}]
        assert answer["outputs"] == expected["outputs"]


class Gone:
    """Clients of a study that answer so often and then no more."""

    def __init__(self, nodes, study, **answers):
        self.proxies = []
        for node in nodes.nodes:
            if node.name in answers:
                self.proxies.append(Proxy(node, answers=answers[node.name]))
                study.write_text(study.read_text().replace(str(node.socket), self.proxies[-1].path))
        self.study = study

    def run(self, nodes):
        result = nodes.run(self.study)
        for proxy in self.proxies:
            proxy.close()
            os.unlink(proxy.path)
        return result


@pytest.mark.parametrize("privacy", ["", '[privacy]\nepsilon = 200\ndelta = 1e-6\nat = "distributed"\n'])
def test_dropping_out_after_a_state_was_sent(nodes, privacy):
    """It is in the sum: gone at the step that unmasks, at the one that signs who is missing, and both at once."""
    for i, name in enumerate(("a", "b", "c", "d", "e")):
        nodes.add(name, hospital(i))
    wards = [hospital(i)["ward"] for i in range(5)]

    def run(left, **gone):
        study = secure(nodes, COUNTS, COUNT_INPUTS, 'timeout = "2s"\non_dropout = "continue"', extra=SECURE + "\n" + privacy)
        code, answer, err = Gone(nodes, study, **gone).run(nodes)
        assert code == 0, err
        assert [away["client"] for away in answer["departures"]] == left
        return answer["outputs"]

    def cells(*members):
        return [float(sum((wards[i] == ward).sum() for i in members)) for ward in (1, 2, 3)]

    def same(outputs, expected):
        found = outputs["cells"]["data"]
        return found == expected if not privacy else np.allclose(found, expected, atol=3) and found != expected

    # A client's answers: what it has, its greeting, keys, shares, a masked state, a signature or shares to unmask.
    assert same(run([], c=5), cells(0, 1, 2, 3, 4))
    assert same(run(["c"], c=4, d=5), cells(0, 1, 3, 4))
    assert same(run(["c"], c=4, d=6), cells(0, 1, 3, 4))
    assert same(run([], c=5, d=5), cells(0, 1, 2, 3, 4))


def test_too_few_are_left_to_unmask(nodes):
    """Three of five must answer: with two there is no sum, whoever asks."""
    for i, name in enumerate(("a", "b", "c", "d", "e")):
        nodes.add(name, hospital(i))
    study = secure(nodes, COUNTS, COUNT_INPUTS, 'timeout = "2s"\non_dropout = "continue"')
    code, answer, err = Gone(nodes, study, b=5, c=5, d=5).run(nodes)
    assert code != 0 and "outputs" not in (answer or {})
    assert "secure aggregation needs 3" in err, err


def test_killed_at_random(three):
    """Nodes and coordinator are killed and started again, one after the other; the sums have the same bits, and no round was charged
    twice."""
    program = LOGISTIC.replace("repeat 8", "repeat 120")
    expected = outputs(three.run(three.local(program, INPUTS, extra=SECURE)))
    study = secure(three, program, INPUTS, 'checkpoint = "run"\ntimeout = "60s"')
    rng = random.Random(int(os.environ.get("STARFOLD_SEED", "7")))
    kills = int(os.environ.get("STARFOLD_KILLS", "12"))

    def begin():
        options = ["--resume"] if (three.folder / "run/checkpoint").exists() else []
        return subprocess.Popen([three.command, "run", str(study), "--json", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def unmasked(node):
        return sum(b'"kind":"unmask"' in line for line in (node.folder / "node.ledger").read_bytes().splitlines())

    process = begin()
    for _ in range(kills):
        # Two of three that lose their keys in the same round would be too many: each is back before the next is killed.
        before = [unmasked(node) for node in three.nodes]
        wait_until(lambda: process.poll() is not None or all(unmasked(n) > b for n, b in zip(three.nodes, before)))
        if process.poll() is not None:
            break
        time.sleep(rng.uniform(0.0, 0.1))
        victim = rng.randrange(4)
        if victim == 3:
            process.kill()
            process.communicate()
            process = begin()
        else:
            three.nodes[victim].kill()
            three.nodes[victim].start()
    out, err = process.communicate(timeout=5 * LIMIT)
    assert process.returncode == 0, err
    answer = json.loads(out)
    assert outputs((0, answer, err)) == expected
    for node in three.nodes:
        charged = [line["sequence"] for line in node.lines() if line["kind"] == "encode" and line["decision"] == "sent" and line["run"] == answer["run"]]
        assert len(charged) == len(set(charged)) == 120


def test_no_secrets_in_files(three):
    """Keys of a run are in memory alone: nothing in the folder grows by them, and only the node's own key is kept."""
    assert three.run(secure(three, COUNTS, COUNT_INPUTS))[0] == 0
    for node in three.nodes:
        kept = sorted(path.name for path in (node.folder / "private").iterdir())
        assert kept == ["approvals", "identity", "kept", "ledger.head", "pending", "private", "replies"]
        secret = (node.folder / "private/identity").read_bytes()[-32:]
        for path in node.folder.rglob("*"):
            if path.is_file() and path.name != "identity":
                assert secret not in path.read_bytes() and secret.hex() not in path.read_text(errors="replace")


def test_no_secrets_in_memory_that_others_read(three):
    """No core dump, whatever the shell allows, and nobody but the system looks into a node's memory."""
    import resource
    assert three.run(secure(three, COUNTS, COUNT_INPUTS))[0] == 0
    north = three.nodes[0]
    north.stop()
    before = set(three.folder.rglob("core*"))

    def allow_dumps():
        hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))

    north.start(cwd=north.folder, preexec_fn=allow_dumps)
    limits = pathlib.Path(f"/proc/{north.process.pid}/limits").read_text()
    [core] = [line.split() for line in limits.splitlines() if line.startswith("Max core file size")]
    assert core[4:6] == ["0", "0"]
    status = pathlib.Path(f"/proc/{north.process.pid}/status").read_text()
    assert not re.search(r"CoreDumping:\t1", status)
    # What cannot be dumped belongs to root in /proc, whoever runs it.
    assert pathlib.Path(f"/proc/{north.process.pid}/mem").stat().st_uid == 0
    north.process.send_signal(signal.SIGABRT)
    assert north.process.wait(LIMIT) == -signal.SIGABRT
    assert set(three.folder.rglob("core*")) == before


def test_no_secrets_in_what_is_said(three):
    """Errors of a run whose steps are refused, and the logs of nodes, hold no key but public ones."""
    study = secure(three, COUNTS, COUNT_INPUTS)
    study.write_text(study.read_text().replace("count[*]", "max[*]"))
    said = "".join(str(part) for part in three.run(study))
    three.nodes[1].stop()
    stopped = three.run(secure(three, COUNTS, COUNT_INPUTS, settings='on_dropout = "stop"\ntimeout = "1s"'))
    assert stopped[0] != 0
    said += "".join(str(part) for part in stopped)
    said += three.command_line("node", "check", three.nodes[0].file).stdout + three.command_line("node", "ledger", three.nodes[0].file).stdout
    public = {node.key() for node in three.nodes}
    for node in three.nodes:
        said += (node.folder / "log").read_text()
        secret = (node.folder / "private/identity").read_bytes()[-32:]
        assert secret.hex() not in said and secret.hex() not in public
