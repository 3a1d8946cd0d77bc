"""What a hostile server may try. Each attack is stopped by the node, and the server learns no more than that."""
import json
import os
import socket
import struct
import subprocess
import threading
import time

import numpy as np
import pytest
from node_federation import DESCRIBE, ID, LIMIT, agreement, bindings, encode_message, hospital, kind, message, privacy_terms, read_frame, refused, start_message

RUN = "0123456789abcdef" * 2


@pytest.mark.parametrize("fold", ["min", "max", "prod", "any", "all"])
def test_merges_that_show_single_records(nodes, fold):
    nodes.add("north", hospital(1))
    study = nodes.study(f"input x : [*]\noutput m = {fold}[*](x)\n", 'x = "age"')
    refused(nodes.run(study), "merges")
    # An owner who allows them still lets out no value of a single record.
    nodes.nodes[0].stop()
    nodes.nodes[0].write('merges = ["sum", "min", "max", "prod", "any", "all"]')
    nodes.nodes[0].start()
    if fold in ("min", "max"):
        refused(nodes.run(study))


def test_a_sorted_dump_by_repeated_max(nodes):
    nodes.add("north", hospital(1), 'merges = ["sum", "max"]')
    program = "input x : [*]\nstate top : [] = 1000\nrepeat 20 {\n  let next = max[*](where(x < top, x, -1000))\n  trace v = next\n  top <- next\n}\noutput top\n"
    refused(nodes.run(nodes.study(program, 'x = "age"')))


def test_a_fourier_transform_over_identifiers(nodes):
    """Support cannot stop it: every sum rests on all records. The ratios do."""
    nodes.add("north", hospital(1))
    program = ("input x : [*]\ninput id : [*]\nlet k = linspace(1, 300, 300)\noutput c = sum[*](x[:, new] * cos(id[:, new] * k * 0.0314159))\n")
    refused(nodes.run(nodes.study(program, f'x = "age"\n{ID}')))
    assert nodes.nodes[0].lines()[-1]["rule"] == "max_ratio"
    loop = ("input x : [*]\ninput id : [*]\nlet j = linspace(1, 100, 100)\nstate k : [] = 0\nstate t : [] = 0\nrepeat 200 {\n"
            "  let c = sum[*](x[:, new] * (1.5 + cos(id[:, new] * (j + 100 * k) * 0.0314159)))\n  t <- t + norm[1](c)\n  k <- k + 1\n}\noutput t\n")
    refused(nodes.run(nodes.study(loop, f'x = "age"\n{ID}')))
    assert nodes.nodes[0].lines()[-1]["rule"] == "max_total_ratio"


def test_a_saturated_regression(nodes):
    """As many parameters as records."""
    nodes.add("north", hospital(1, 30))
    program = "input x : [*]\ninput y : [*]\nlet k = linspace(0, 29, 30)\nlet z = exp(-square(x[:, new] - k) / 100)\noutput h = z' @ z\noutput b = z' @ y\n"
    refused(nodes.run(nodes.study(program, 'x = "age"\ny = "y"')))
    assert nodes.nodes[0].lines()[-1]["rule"] == "max_ratio"


def test_tiny_cohorts(nodes):
    nodes.add("north", hospital(1, 9))
    refused(nodes.run(nodes.study("input x : [*]\noutput m = mean[*](x)\n", 'x = "age"')))
    assert nodes.nodes[0].lines()[-1]["rule"] == "min_records"


def test_an_error_that_counts_records(nodes):
    """one_hot fails where labels are outside: a question about records, answered by the one sentence, and counted."""
    nodes.add("north", hospital(1))
    study = nodes.study("input x : [*]\noutput h = sum[*](one_hot(x, 2))\n", 'x = "ward"')
    for _ in range(3):
        err = refused(nodes.run(study))
        assert not any(c.isdigit() for c in err)
    refused(nodes.run(study), "max_refusals")
    # The owner sees that it waits, and may approve it again.
    ident = nodes.nodes[0].lines()[-1]["agreement"]
    listed = nodes.command_line("node", "pending", nodes.nodes[0].file).stdout
    assert ident in listed and "3 requests of this study were refused" in listed
    assert nodes.command_line("node", "approve", ident, nodes.nodes[0].file).returncode == 0
    refused(nodes.run(study))
    assert "nothing waits" in nodes.command_line("node", "pending", nodes.nodes[0].file).stdout
    assert nodes.command_line("node", "deny", ident, nodes.nodes[0].file).returncode == 0  # the ledger knows it
    refused(nodes.run(study), "denied")


# --- on the wire ------------------------------------------------------------------------------------

PROGRAM = "input x : [*]\nstate m : [] = 0\nrepeat 3 {\n  m <- m + sum[*](sigmoid(x - m)) / 2\n}\noutput m\n"


def plan_of(nodes, program):
    path = nodes.folder / "wire.fold"
    path.write_text(program)
    return json.loads(nodes.command_line("explain", path, "--json").stdout)["plan"]


@pytest.fixture
def wire(one):
    """A node and a run that was started on its socket by hand."""
    plan = plan_of(one, PROGRAM)
    bound = bindings(x=["age"])
    node = one.nodes[0]
    hello = node.ask(start_message(plan, PROGRAM, RUN, bound))
    assert kind(hello) == "hello"
    return node, plan, bound, agreement(plan, bound)


def test_replay_costs_nothing(wire):
    node, plan, bound, agreed = wire
    request = encode_message(agreed, RUN, 0, 0, [0.0])
    first = node.ask(request)
    assert kind(first) == "state"
    lines = len(node.lines())
    assert node.ask(request) == first and len(node.lines()) == lines
    node.kill()
    node.start()
    assert kind(node.ask(request)) == "not_started"
    assert kind(node.ask(start_message(plan, PROGRAM, RUN, bound))) == "hello"
    assert node.ask(request) == first
    assert sum(line.get("kind") == "encode" and line["decision"] == "sent" for line in node.lines()) == 1


def test_rounds_have_their_order(wire):
    node, plan, bound, agreed = wire
    assert kind(node.ask(encode_message(agreed, RUN, 1, 0, [0.0]))) == "out_of_order"
    assert kind(node.ask(encode_message(agreed, RUN, 0, 7, [0.0]))) == "no_such_round"
    assert kind(node.ask(encode_message(agreed, RUN, 0, 0, [0.0]))) == "state"
    assert kind(node.ask(encode_message(agreed, RUN, 0, 0, [1.0]))) == "out_of_order"  # another question under an old number
    assert kind(node.ask(encode_message(agreed, RUN, 5, 0, [0.0]))) == "out_of_order"
    assert kind(node.ask(encode_message(agreed, RUN, 1, 0, [0.0]))) == "state"


def test_nothing_is_swapped_between_rounds(wire):
    node, plan, bound, agreed = wire
    assert kind(node.ask(encode_message(agreed, RUN, 0, 0, [0.0]))) == "state"
    other = bindings(x=["bmi"])
    assert kind(node.ask(start_message(plan, PROGRAM, RUN, other))) == "another_program"
    assert kind(node.ask(encode_message(agreement(plan, other), RUN, 1, 0, [0.0]))) == "another_program"
    assert kind(node.ask(encode_message(agreed, "f" * 32, 1, 0, [0.0]))) == "not_started"
    changed = PROGRAM.replace("/ 2", "/ 3")
    assert kind(node.ask(start_message(plan, changed, RUN, bound))) in ("another_plan", "another_program")
    node.kill()
    node.start()
    assert kind(node.ask(start_message(plan, PROGRAM, RUN, other))) == "another_program"


def test_shared_state_that_the_server_chose(one):
    """Weights that leave one record its say, and numbers that are none."""
    program = "input x : [*]\ninput id : [*]\ninput w : [2] = zeros(2)\noutput g = sum[*](sigmoid(w[1] + w[2] * id) * x)\n"
    plan, bound = plan_of(one, program), bindings(x=["age"], id=["id"])
    agreed, node = agreement(plan, bound), one.nodes[0]

    def ask(run, values):
        assert kind(node.ask(start_message(plan, program, run, bound))) == "hello"
        return kind(node.ask(encode_message(agreed, run, 0, 0, values)))

    fair = ask("1" * 32, [[0.0, 0.0]])
    if fair == "values_misfit":  # the parts of w travel one by one
        assert ask("2" * 32, [0.0, 0.0]) == "state"
        assert ask("3" * 32, [-199.5 * 50, 50.0]) == "policy"
        assert ask("4" * 32, [float("nan"), 0.0]) == "policy"
        assert ask("5" * 32, [1e300, 1e300]) in ("policy", "state")
    else:
        assert fair == "state"
        assert ask("3" * 32, [[-199.5 * 50, 50.0]]) == "policy"
        assert ask("4" * 32, [[float("nan"), 0.0]]) == "policy"
    assert kind(node.ask(encode_message(agreed, "1" * 32, 1, 0, [np.zeros(1 << 16)]))) in ("values_misfit", "out_of_order")


def test_names_are_never_paths(wire):
    node, plan, bound, agreed = wire
    for source in ("../visits", "visits.csv", "/etc/passwd", "visits\0", "", "no"):
        assert kind(node.ask(start_message(plan, PROGRAM, "a" * 32, bound, source=source))) == "no_such_source"
    for run in ("", "../../x", "a" * 31, "A" * 32, "a" * 31 + "/", "\0" * 32):
        assert kind(node.ask(start_message(plan, PROGRAM, run, bound))) == "another_run"
    for column in ("../age", "age\0", "AGE", "secret"):
        assert kind(node.ask(start_message(plan, PROGRAM, "b" * 32, bindings(x=[column])))) == "columns"
    for text in ("", "{}", "[]", bound.replace("\n", " "), bound.replace('"error"', '"wat"'), "[" * 10000):
        assert kind(node.ask(start_message(plan, PROGRAM, "c" * 32, text))) in ("unreadable", "columns")


def test_programs_have_a_length(wire):
    """Who may send programs may not send the node to sleep with one."""
    node, plan, bound, _ = wire
    for length, expected in ((1 << 19, "hello"), (1 << 20, "program_errors")):
        assert kind(node.ask(start_message(plan, PROGRAM + "# " + "x" * length + "\n", "d" * 32, bound))) == expected


def test_bytes_that_are_no_message(one):
    node = one.nodes[0]
    for bytes_ in (b"", b"STARFOLD", b"\0" * 100, message(9, b""), message(4, b"\0"), message(1, b"")):
        assert kind(node.ask(bytes_)) in ("unreadable", "not_a_request")
    with socket.socket(socket.AF_UNIX) as s:  # a length that lies
        s.settimeout(LIMIT)
        s.connect(str(node.socket))
        s.sendall(struct.pack("<Q", 1 << 62) + b"x")
        assert s.recv(1) == b""
    with socket.socket(socket.AF_UNIX) as s:  # a length that promises: no memory is taken for it
        s.connect(str(node.socket))
        s.sendall(struct.pack("<Q", 1 << 29) + b"x")
        assert kind(node.ask(DESCRIBE)) == "description"
        status = open(f"/proc/{node.process.pid}/status").read()
        assert int(status.split("VmRSS:")[1].split()[0]) < 400_000


def test_description_has_no_data(one):
    answer = one.nodes[0].ask(DESCRIBE)
    text = json.loads(answer[28:-8])
    assert text["name"] == "north" and [c["name"] for c in text["sources"]["visits"]["columns"]] == ["id", "age", "bmi", "ward", "y"]
    assert text["policy"]["min_support"] == 5
    assert set(text) == {"name", "version", "sources", "policy", "key"}


def test_many_at_once(one):
    node, answers = one.nodes[0], []
    threads = [threading.Thread(target=lambda: answers.append(node.ask(DESCRIBE))) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert len(answers) == 64 and {kind(a) for a in answers} == {"description"}


def test_the_same_request_64_times_at_once(wire):
    """It is answered with the same bytes every time, and released once."""
    node, plan, bound, agreed = wire
    request, answers = encode_message(agreed, RUN, 0, 0, [0.0]), []
    threads = [threading.Thread(target=lambda: answers.append(node.ask(request))) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert len(answers) == 64 and len(set(answers)) == 1 and kind(answers[0]) == "state"
    assert [line["kind"] for line in node.lines()].count("encode") == 1


def test_two_studies_that_differ_by_one_record(one):
    """The total leaves; the total without one record does not, whoever asks for it and however it is called."""
    total = "input x : [*]\noutput s = sum[*](x)\n"
    assert one.run(one.study(total, 'x = "age"'))[0] == 0
    for condition in ("id != 7", "id < 200", "not (id == 7)", "abs(id - 7) > 0.5", "id <= 6 or id >= 8"):
        without = f"input x : [*]\ninput id : [*]\noutput s = sum[*](where({condition}, x, 0))\n"
        refused(one.run(one.study(without, f'x = "age"\n{ID}')))
        assert one.nodes[0].lines()[-1]["rule"] == "min_support", condition


def test_a_flood_of_refusals_does_not_fill_the_disk(one):
    """Requests that cost nothing to send have no line each: beyond a rate they are counted, and told of in one line."""
    node, sent = one.nodes[0], 1500
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(LIMIT)
        s.connect(str(node.socket))
        for _ in range(sent):
            s.sendall(struct.pack("<Q", 4) + b"what")
            assert kind(read_frame(s)) == "unreadable"
    lines = node.lines()
    assert 1000 <= len(lines) < sent
    assert kind(node.ask(start_message("0" * 64, PROGRAM, RUN, bindings(x=["age"])))) == "another_plan"
    # What a study is asked has its line, and before it stands how many had none.
    plan = plan_of(one, PROGRAM)
    assert kind(node.ask(start_message(plan, PROGRAM, RUN, bindings(x=["age"])))) == "hello"
    lines = node.lines()
    assert lines[-1]["kind"] == "start"
    told = sum(int(line["detail"].split()[0]) for line in lines if line["kind"] == "note")
    assert told + sum(line.get("decision") == "refused" for line in lines) == sent + 1
    assert one.command_line("node", "ledger", node.file, "--verify").returncode == 0
    assert (node.folder / "log").read_text().count("refused") <= len(lines)


def test_another_connection_does_not_time_a_refusal(one):
    """While a refusal that depends on records is held back, nobody is answered: else a second connection would tell when it was found."""
    node = one.nodes[0]
    program = "input x : [*]\ninput id : [*]\noutput s = sum[*](where(id == 7, x, 0))\n"
    plan, bound = plan_of(one, program), bindings(x=["age"], id=["id"])
    assert kind(node.ask(start_message(plan, program, RUN, bound))) == "hello"
    request = encode_message(agreement(plan, bound), RUN, 0, 0, [])
    with socket.socket(socket.AF_UNIX) as first, socket.socket(socket.AF_UNIX) as second:
        for s, bytes_ in ((first, request), (second, DESCRIBE)):
            s.settimeout(LIMIT)
            s.connect(str(node.socket))
            begin = time.monotonic()
            s.sendall(struct.pack("<Q", len(bytes_)) + bytes_)
            if s is first:
                asked = begin
        assert kind(read_frame(second)) == "description"
        assert time.monotonic() - asked >= 0.12
        assert kind(read_frame(first)) == "policy"


def test_refusals_are_alike_in_size_and_late(one):
    node = one.nodes[0]
    program = "input x : [*]\ninput id : [*]\noutput s = sum[*](where(id == 7, x, 0))\n"
    plan, bound = plan_of(one, program), bindings(x=["age"], id=["id"])
    times, sizes = [], set()
    for i in range(2):
        run = f"{i:032x}"
        assert kind(node.ask(start_message(plan, program, run, bound))) == "hello"
        begin = time.monotonic()
        answer = node.ask(encode_message(agreement(plan, bound), run, 0, 0, []))
        times.append(time.monotonic() - begin)
        assert kind(answer) == "policy"
        sizes.add(len(answer))
    assert len(sizes) == 1 and min(times) >= 0.12


def asked_as(node, user, group):
    """How many bytes a process of this user gets to begin with when it asks what the node has."""
    program = ("import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.settimeout(10)\n"
               "try:\n  s.connect(sys.argv[1])\n  s.sendall(bytes.fromhex(sys.argv[2]))\n  print(len(s.recv(8)))\nexcept OSError:\n  print(0)\n")
    frame = struct.pack("<Q", len(DESCRIBE)) + DESCRIBE
    told = subprocess.run(["python3", "-c", program, str(node.socket), frame.hex()], capture_output=True, text=True, timeout=LIMIT, user=user, group=group, extra_groups=[])
    return int(told.stdout)


def test_only_the_owners_user(nodes):
    if os.geteuid() != 0:
        pytest.skip("needs another user")
    nodes.add("north", hospital(1))
    node = nodes.nodes[0]
    assert oct(node.socket.stat().st_mode & 0o777) == "0o600"
    os.chmod(nodes.folder, 0o755)
    os.chmod(node.folder, 0o755)
    os.chmod(node.socket, 0o666)  # even if the permissions were loose
    assert asked_as(node, 65534, 65534) == 0 and asked_as(node, 0, 0) == 8


def test_one_group_may_be_let_in(nodes):
    if os.geteuid() != 0:
        pytest.skip("needs other users")
    nodes.add("north", hospital(1), extra='socket_group = "nogroup"')
    node = nodes.nodes[0]
    assert oct(node.socket.stat().st_mode & 0o777) == "0o660" and node.socket.stat().st_gid == 65534
    os.chmod(nodes.folder, 0o755)
    os.chmod(node.folder, 0o755)
    assert asked_as(node, 65534, 65534) == 8 and asked_as(node, 1, 1) == 0
    os.chmod(node.socket, 0o666)
    assert asked_as(node, 1, 1) == 0


def test_a_second_node_on_the_same_ledger(nodes):
    nodes.add("north", hospital(1))
    again = subprocess.run([nodes.command, "node", "serve", str(nodes.nodes[0].file)], capture_output=True, text=True, timeout=LIMIT)
    assert again.returncode == 3 and "another" in again.stderr
    assert kind(nodes.nodes[0].ask(DESCRIBE)) == "description"


def test_a_study_that_is_denied_while_it_runs(one, wire):
    node, plan, bound, agreed = wire
    assert kind(node.ask(encode_message(agreed, RUN, 0, 0, [0.0]))) == "state"
    assert one.command_line("node", "deny", agreed, node.file).returncode == 0
    assert kind(node.ask(encode_message(agreed, RUN, 1, 0, [1.0]))) == "denied"


def test_whether_a_value_is_missing_is_about_records(nodes):
    """The server is told the one sentence, the owner which column has how many."""
    node = nodes.add("north", hospital(1))
    table = node.folder / "visits.csv"
    header, first, *rest = table.read_text().splitlines()
    place = header.split(",").index("age")
    table.write_text("\n".join([header, ",".join("" if i == place else c for i, c in enumerate(first.split(","))), *rest]) + "\n")
    plan = plan_of(nodes, PROGRAM)
    assert kind(node.ask(start_message(plan, PROGRAM, RUN, bindings(x=["age"])))) == "policy"
    assert "age has 1 missing value" in node.lines()[-1]["detail"]


def test_a_ledger_that_was_rolled_back(wire):
    node, plan, bound, agreed = wire
    old = (node.folder / "node.ledger").read_bytes()
    assert kind(node.ask(encode_message(agreed, RUN, 0, 0, [0.0]))) == "state"
    node.stop()
    (node.folder / "node.ledger").write_bytes(old)
    again = subprocess.run([node.command, "node", "serve", str(node.file)], capture_output=True, text=True, timeout=LIMIT)
    assert again.returncode == 3 and "rolled back" in again.stderr


# --- what a review found ------------------------------------------------------------------------------

def test_sizes_beyond_all_bounds(one):
    """Sizes whose product wraps around to few numbers are many."""
    program = "input x : [*]\ninput w : [p, q] = zeros(p, q)\noutput s = one_hot(x, p)' @ one_hot(x, q)\n"
    plan, node = plan_of(one, program), one.nodes[0]
    for i, (p, q) in enumerate([(7, 0x6DB6DB6DB6DB6DB7), (2**40, 2**24), (2**20, 2**20)]):
        assert kind(node.ask(start_message(plan, program, f"{i:032x}", bindings(x=["ward"]), sizes=[("p", p), ("q", q)]))) == "max_numbers"
    program = "input x : [*]\ninput w : [p] = zeros(p)\noutput s = sum[*](x * sum(uniform(3, p)))\n"
    plan = plan_of(one, program)
    assert kind(node.ask(start_message(plan, program, "e" * 32, bindings(x=["age"]), sizes=[("p", 2**38)]))) == "no_resources"


def test_a_policy_that_is_read_again_holds_for_open_runs(wire):
    import signal
    node, plan, bound, agreed = wire
    assert kind(node.ask(encode_message(agreed, RUN, 0, 0, [0.0]))) == "state"
    node.write('merges = ["count"]')
    node.process.send_signal(signal.SIGHUP)
    end = time.monotonic() + LIMIT
    while "read again" not in (node.folder / "log").read_text():
        assert time.monotonic() < end
        time.sleep(0.01)
    assert kind(node.ask(encode_message(agreed, RUN, 1, 0, [0.0]))) == "not_started"
    assert kind(node.ask(start_message(plan, PROGRAM, RUN, bound))) == "merges"


def test_other_bindings_are_no_other_budget(nodes):
    """Levels that no record has, or another rule for values that are not missing, reset nothing."""
    nodes.add("north", hospital(1), "max_numbers = 1")
    program = "input x : [*]\noutput s = sum[*](x)\n"
    plan, node = plan_of(nodes, program), nodes.nodes[0]
    levels = {"column": "ward", "codes": True, "reference": 0}

    def ask(run, bound):
        hello = kind(node.ask(start_message(plan, program, run, bound)))
        return hello if hello != "hello" else kind(node.ask(encode_message(agreement(plan, bound), run, 0, 0)))

    assert ask("1" * 32, bindings(x=[dict(levels, levels=["1", "2", "3"])])) == "state"
    assert ask("2" * 32, bindings(x=[dict(levels, levels=["1", "2", "3", "q"])])) == "max_numbers"
    assert ask("3" * 32, bindings(x=["age"], missing="drop")) == "max_numbers"


def test_a_run_is_over_one_set_of_records(wire):
    node, plan, bound, agreed = wire
    assert kind(node.ask(encode_message(agreed, RUN, 0, 0, [0.0]))) == "state"
    node.stop()
    lines = (node.folder / "visits.csv").read_text().splitlines()
    (node.folder / "visits.csv").write_text("\n".join(lines[:-1]) + "\n")
    node.start()
    assert kind(node.ask(start_message(plan, PROGRAM, RUN, bound))) == "policy"
    assert kind(node.ask(start_message(plan, PROGRAM, "d" * 32, bound))) == "hello"


def test_a_refused_round_is_not_behind_the_run(one):
    program = ("input x : [*]\ninput id : [*]\nlet a = sum[*](x)\nlet b = sum[*](where(id == 7, x, 0) + 0 * a * x)\n"
               "output c = sum[*](x * b)\noutput a\n")
    plan, bound, node = plan_of(one, program), bindings(x=["age"], id=["id"]), one.nodes[0]
    agreed, run = agreement(plan, bound), "9" * 32
    assert kind(node.ask(start_message(plan, program, run, bound))) == "hello"
    assert kind(node.ask(encode_message(agreed, run, 0, 0))) == "state"
    assert kind(node.ask(encode_message(agreed, run, 1, 1, [100.0]))) == "policy"
    assert kind(node.ask(encode_message(agreed, run, 1, 2, [1.0]))) == "not_started"
    assert kind(node.ask(start_message(plan, program, run, bound))) == "hello"
    assert kind(node.ask(encode_message(agreed, run, 1, 2, [1.0]))) == "out_of_order"


def test_idle_connections_lock_nobody_out(one):
    node = one.nodes[0]
    idle = []
    for _ in range(300):
        s = socket.socket(socket.AF_UNIX)
        s.connect(str(node.socket))
        idle.append(s)
    assert kind(node.ask(DESCRIBE)) == "description"
    for s in idle:
        s.close()


# --- private runs -----------------------------------------------------------------------------------

PRIVATE = "input x : [*]\nstate t : [] = 0\nrepeat 2 {\n  t <- t + sum[*](clip(x + t, 0, 128))\n}\noutput t\n"


@pytest.fixture
def private(one):
    """A node, and what starts a private run of PRIVATE there by hand: its answer, and what was agreed on."""
    node, bound = one.nodes[0], bindings(x=["age"])
    promise = '[privacy]\nepsilon = 1\ndelta = 1e-6\nat = "client"\n'
    code, _, err = one.run(one.study(PRIVATE, 'x = "age"', extra=promise))
    assert code == 0, err
    plan = node.lines()[-1]["plan"]

    def start(terms, run=RUN, bound=bound, **options):
        hello = node.ask(start_message(plan, PRIVATE, run, bound, terms=terms, **options))
        if kind(hello) != "hello":
            return kind(hello), None
        size = struct.unpack("<Q", hello[20:28])[0]
        return "hello", hello[28:28 + size].decode()

    return node, start


@pytest.mark.parametrize("shares", [0, 1, 2, 100_000, 2**62])
def test_a_share_of_noise_needs_masks(private, shares):
    """Without masks the server would see a sum with a hundred-thousandth of the noise."""
    node, start = private
    assert start(privacy_terms(1, 1e-6, "distributed", shares=shares))[0] == "privacy"
    assert "secure aggregation" in node.lines()[-1]["detail"]


@pytest.mark.parametrize("shares, allowed", [(0, False), (1, True), (2, True), (3, False), (100_000, False), (2**62, False)])
def test_shares_of_noise_are_those_of_the_group(private, one, shares, allowed):
    """Three clients are sure to be in a sum; each counts on the shares of two others."""
    node, start = private
    key = bytes.fromhex(one.command_line("node", "key", node.file).stdout.split()[-1])
    keys = [key, bytes(range(32)), bytes(range(1, 33))]
    group = struct.pack("<III", 2, 3, 3)
    for name, key in zip(("north", "south", "west"), keys):
        group += struct.pack("<Q", len(name)) + name.encode() + key
    answer, _ = start(privacy_terms(1, 1e-6, "distributed", shares=shares), group=group)
    assert answer == ("hello" if allowed else "privacy"), node.lines()[-1]


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("at", ["client", "server"])
def test_no_more_rounds_than_were_paid_for(private, at, sampled):
    """Noise is made for two rounds: a third one would have fresh noise for nothing, and a thousand no noise at all."""
    node, start = private
    terms = privacy_terms(1, 1e-6, at)
    answer, agreed = start(terms, sampled=sampled)
    assert answer == "hello"
    step = 3 if sampled else 1
    first = encode_message(agreed, RUN, 0, 0, [0.0])
    assert kind(node.ask(first)) == "state"
    second = encode_message(agreed, RUN, step, 0, [1.0])
    reply = node.ask(second)
    assert kind(reply) == "state"
    for sequence in range(step + 1, step + 4):
        assert kind(node.ask(encode_message(agreed, RUN, sequence, 0, [0.0]))) == "out_of_order"
    assert node.ask(second) == reply  # the same question has the same answer
    node.kill()
    node.start()
    assert start(terms, sampled=sampled) == ("hello", agreed)
    assert node.ask(second) == reply
    assert kind(node.ask(encode_message(agreed, RUN, step + 1, 0, [0.0]))) == "out_of_order"
    sent = [line for line in node.lines() if line.get("kind") == "encode" and line["decision"] == "sent" and line["run"] == RUN]
    assert len(sent) == 2 and sum(line["epsilon"] for line in sent) == pytest.approx(1)


def test_a_round_before_a_restart_counts(private):
    node, start = private
    terms = privacy_terms(1, 1e-6, "client")
    agreed = start(terms)[1]
    assert kind(node.ask(encode_message(agreed, RUN, 0, 0, [0.0]))) == "state"
    node.kill()
    node.start()
    assert start(terms)[0] == "hello"
    assert kind(node.ask(encode_message(agreed, RUN, 1, 0, [0.0]))) == "state"
    assert kind(node.ask(encode_message(agreed, RUN, 2, 0, [0.0]))) == "out_of_order"


def test_a_record_in_place_of_another_is_not_left_out(private):
    """With neighbours that replace a record its number counts as known: then none may be dropped for what it holds."""
    node, start = private
    replace = privacy_terms(1, 1e-6, "client", neighbours=1)
    assert start(replace, bound=bindings("drop", x=["age"]))[0] == "privacy"
    assert "dropped" in node.lines()[-1]["detail"]
    assert start(replace)[0] == "hello"
    assert start(privacy_terms(1, 1e-6, "client"), "f" * 32, bindings("drop", x=["age"]))[0] == "hello"
