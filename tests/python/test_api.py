"""Every line of the contract: programs, runs, results, errors."""
import json
import math
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import starfold as sf

MEAN = "input x : [*, p]\noutput mean = mean[*](x)\n"
LONG = "input x : [*]\nstate s : [] = 0\nrepeat 100000000 {\n  trace t = s\n  s <- s + 0 * sum[*](x * s) + 1\n}\noutput s\n"


def numeric(clinic):
    return {name: values for name, values in clinic.items() if name != "sex"}


@pytest.fixture
def pandas():
    return pytest.importorskip("pandas")


def test_programs(tmp_path):
    (tmp_path / "mean.fold").write_text(MEAN)
    program = sf.load(tmp_path / "mean.fold")
    assert program.types == {"x": "[*, p]", "mean": "[p]"} and program == sf.load(str(tmp_path / "mean.fold"))
    assert sf.lib.logistic.types["beta"] == "[p + 1]" == sf.load("logistic").types["beta"]
    assert set(dir(sf.lib)) >= {"logistic", "kmeans", "stats"} and "kmeans" in sf.lib
    assert "round 1" in program.explain() and program.html(tmp_path / "page.html").lower().startswith("<!doctype html")
    assert (tmp_path / "page.html").exists() and len(program.hash) == 64
    with pytest.raises(AttributeError, match="no program"):
        sf.lib.nonsense
    assert pickle.loads(pickle.dumps(program)) == sf.compile(MEAN, program.name)
    assert "1 round" in repr(program)


def test_modules_are_found_beside_a_program(tmp_path):
    (tmp_path / "own.fold").write_text("fn twice(x : [*]) -> [*] = 2 * x\n")
    text = "import own\ninput x : [*]\noutput s = sum[*](own.twice(x))\n"
    assert sf.compile(text, folder=tmp_path).run({"a": {"x": np.ones(3)}})["s"] == 6
    with pytest.raises(sf.ProgramError):
        sf.compile(text, folder=tmp_path / "elsewhere")


def test_exposure(pandas):
    exposure = sf.compile("input x : [*, p]\noutput total = sum[*](x)\n").exposure
    assert exposure.columns == ["round", "value", "shape", "merge", "line"]
    assert exposure[0] == {"round": 1, "value": "sum[*](x)", "shape": "[p]", "merge": "sum", "line": 2}
    frame = exposure.to_frame()
    assert list(frame.columns) == exposure.columns and frame.loc[0, "merge"] == "sum"
    assert "sum[*](x)" in repr(exposure) and "<table" in exposure._repr_html_()


def test_check_and_format():
    assert sf.check(MEAN) == []
    found, = sf.check("input x : [*]\noutput x\n")
    assert (found.code, found.severity, found.span) == ("E0301", "error", (2, 8, 2, 9)) and "sum[*](x)" in found.help
    assert sf.format("input x:[*]\noutput s=sum[*]( x )") == "input x : [*]\noutput s = sum[*](x)\n"
    with pytest.raises(sf.ProgramError):
        sf.format("input input")


def test_run_over_every_kind_of_client(clinics, pandas, tmp_path):
    frames = {name: pandas.DataFrame(numeric(data)) for name, data in clinics.items()}
    frames["bern"].to_csv(tmp_path / "bern.csv", index=False)
    cadiz = {"x": frames["cadiz"][["age", "bmi"]].to_numpy(), "y": frames["cadiz"]["dx"].to_numpy()}
    fit = sf.load("logistic").run({"athens": frames["athens"], "bern": str(tmp_path / "bern.csv"), "cadiz": cadiz},
                                  bind={"x": ["age", "bmi"], "y": "dx"}, missing="drop", exact=False, threads=2, progress=True)
    pooled = pandas.concat(frames.values())
    alone = sf.load("logistic").run({"all": pooled}, bind={"x": ["age", "bmi"], "y": "dx"})
    np.testing.assert_allclose(fit["beta"], alone["beta"], rtol=1e-10)
    assert isinstance(fit["beta"], np.ndarray) and set(fit.outputs) == set(fit) >= {"beta", "deviance"}
    assert fit.clients["records"] == [120, 80, 60] and all(fit.clients["bytes_sent"])
    assert fit.rounds >= fit.iterations[0] and len(fit.traces["deviance"]) == fit.iterations[0]
    frame = fit.to_frame()
    assert list(frame.index) == ["(intercept)", "age", "bmi"] and list(frame.columns)[0] == "beta"
    np.testing.assert_array_equal(frame["beta"], fit["beta"])
    assert "beta" in repr(fit) and float(fit.to_frame("deviance").loc["deviance", "value"]) == fit["deviance"]
    fit.report(tmp_path / "report.html")
    fit.save(tmp_path / "results/")
    saved = json.loads((tmp_path / "results/outputs.json").read_text())
    assert saved["beta"]["data"] == fit["beta"].tolist() and (tmp_path / "results/report.html").exists()
    np.testing.assert_array_equal(np.load(tmp_path / "results/beta.npy"), fit["beta"])


def test_exact_runs_have_one_answer_for_every_split(tmp_path):
    random = np.random.default_rng(5)
    x = random.normal(size=(400, 3)) * 10.0**random.integers(-8, 9, size=(400, 1))
    program = sf.compile("input x : [*, p]\noutput s = sum[*](x)\noutput g = x' @ tanh(x)\noutput v = var[*](x)\n")
    seen = set()
    for parts in (1, 2, 3, 7):
        cuts = np.sort(random.integers(0, 401, size=parts - 1))
        clients = {f"c{i}": {"x": part} for i, part in enumerate(np.split(x[random.permutation(400)], cuts))}
        fit = program.run(clients, exact=True, threads=parts, out=tmp_path / f"r{parts}")
        seen.add(b"".join(fit[name].tobytes() for name in ("s", "g", "v")))
        assert json.loads((tmp_path / f"r{parts}/run.json").read_text())["exact"] is True
    assert len(seen) == 1
    assert fit["s"].tolist() == [math.fsum(column) for column in x.T]
    assert program.run({"a": {"x": x}})["s"].tolist() != fit["s"].tolist()


def test_a_study_says_whether_it_is_exact(tmp_path):
    (tmp_path / "sum.fold").write_text("input x : [*]\noutput s = sum[*](x)\n")
    (tmp_path / "a.csv").write_text("x\n1e100\n1\n-1e100\n")
    (tmp_path / "study.toml").write_text('program = "sum.fold"\n[[client]]\nname = "a"\ndata = "a.csv"\n[options]\nexact = true\n')
    assert sf.run(tmp_path / "study.toml")["s"] == 1


def test_shared_inputs_and_sizes():
    program = sf.compile("size k = 2\ninput x : [*]\ninput c : [k]\ninput d : [] = 5\noutput s = sum[*](x) * c + d\n")
    data = {"a": {"x": np.ones(3)}}
    assert program.run(data, c=[1, 2])["s"].tolist() == [8, 11]
    assert program.run(data, k=3, c=np.array([0, 1, 2]), d=0)["s"].tolist() == [0, 3, 6]
    assert program.run(data, set={"c": (1, 1)}, d=1)["s"].tolist() == [4, 4]
    with pytest.raises(sf.UsageError, match="no shared input or size"):
        program.run(data, c=[1, 2], e=3)
    with pytest.raises(sf.UsageError, match="number"):
        program.run(data, c="text")
    with pytest.raises(sf.Error):
        program.run(data)


def test_scalars_are_numbers():
    fit = sf.compile("input x : [*]\noutput s = sum[*](x)\n").run({"a": {"x": np.ones(3)}})
    assert f"{fit['s']:.2f}" == "3.00" and fit["s"].shape == ()


def test_reference_is_the_same(rng):
    data = {"a": {"x": rng.normal(size=(50, 3))}, "b": {"x": rng.normal(size=(20, 3))}}
    ours, definition = sf.compile(MEAN).run(data), sf.compile(MEAN).run(data, reference=True)
    np.testing.assert_allclose(ours["mean"], definition["mean"], rtol=1e-13)


def test_study(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("x\n1\n2\n6\n")
    (tmp_path / "mean.fold").write_text("input x : [*]\noutput mean = mean[*](x)\n")
    (tmp_path / "study.toml").write_text('program = "mean.fold"\n[[client]]\nname = "a"\ndata = "a.csv"\n[options]\nout = "results"\n')
    fit = sf.run(tmp_path / "study.toml")
    assert fit["mean"] == 3 and (tmp_path / "results/run.json").exists()
    with pytest.raises(sf.UsageError):
        sf.run(tmp_path / "mean.fold")
    with pytest.raises(sf.UsageError):
        sf.run(tmp_path / "nothing.toml")


def test_queries(tmp_path):
    (tmp_path / "a.csv").write_text("x,g\n1,1\n2,1\n6,2\n")
    program = sf.compile("input x : [*]\noutput s = sum[*](x)\n")
    assert program.run({"a": {"query": "select x from data where g = 1", "path": tmp_path / "a.csv"}})["s"] == 3


# ---- errors

def test_program_errors():
    with pytest.raises(sf.ProgramError) as caught:
        sf.compile("input x : [*]\noutput x\n", "mean.fold")
    error = caught.value
    assert isinstance(error, sf.Error) and (error.code, error.span) == ("E0301", (2, 8, 2, 9))
    assert [d.code for d in error.diagnostics] == ["E0301"]
    expected = ("error[E0301]: a federated value cannot be an output\n  --> mean.fold:2:8\n   |\n 2 | output x\n"
                "   |        ^ [*] is split across clients by its record axis\n"
                "   = help: fold the record axis first, for example: output total = sum[*](x)\n")
    assert error.rendered.strip() == expected.strip() and expected.strip() in str(error)
    assert pickle.loads(pickle.dumps(error)).diagnostics == error.diagnostics


@pytest.mark.parametrize("data, word", [({"x": np.ones(3)}, "axes|axis"), ({"z": np.ones((3, 2))}, "no array for input x"), ("nowhere.csv", "nowhere.csv"),
                                        (3, "not int"), ({"x": np.array(["a"])}, "no numbers")])
def test_data_errors(data, word):
    with pytest.raises(sf.DataError, match=word) as caught:
        sf.compile(MEAN).run({"athens": data})
    assert caught.value.code == "data" and "athens" in str(caught.value)


def test_run_errors_have_a_place():
    program = sf.compile("input x : [*]\noutput t = solve(full(sum[*](x), 2, 2), ones(2))\n")
    with pytest.raises(sf.RunError, match="singular") as caught:
        program.run({"a": {"x": np.ones(3)}})
    assert caught.value.span[0] == 2 and "solve(" in str(caught.value) and not isinstance(caught.value, sf.DataError)


def test_errors_read_as_on_the_command_line(tmp_path, monkeypatch):
    """What the command prints for the same mistake, for every class; colors on a terminal alone."""
    from starfold import _command
    monkeypatch.chdir(tmp_path)
    (tmp_path / "solve.fold").write_text("input x : [*]\noutput t = solve(full(sum[*](x), 2, 2), ones(2))\n")
    (tmp_path / "wrong.fold").write_text("input x : [*]\noutput x\n")
    (tmp_path / "a.csv").write_text("x\n1\n2\n")
    (tmp_path / "b.csv").write_text("x\n1\n\n2,3\n")

    def command(program, data):
        return subprocess.run([_command.path(), "run", program, "--client", f"a={data}"], capture_output=True, text=True).stderr
    cases = [(sf.RunError, "solve.fold", "a.csv"), (sf.DataError, "solve.fold", "nowhere.csv"), (sf.ProgramError, "wrong.fold", "a.csv"), (sf.DataError, "solve.fold", "b.csv")]
    for kind, program, data in cases:
        with pytest.raises(kind) as caught:
            sf.load(program).run({"a": data})
        assert type(caught.value) is kind and caught.value.rendered.strip() == command(program, data).strip()
        assert caught.value.rendered.strip().removeprefix("error: ") == str(caught.value).strip() and "\033" not in str(caught.value)
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    monkeypatch.setattr(sys, "stderr", type("Terminal", (), {"isatty": lambda self: True, "write": lambda self, text: None, "flush": lambda self: None})())
    with pytest.raises(sf.ProgramError) as caught:
        sf.load("wrong.fold")
    assert "\033[" in str(caught.value)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\033" not in str(caught.value)


def test_clients_that_disagree():
    with pytest.raises(sf.DataError, match="b"):
        sf.compile(MEAN).run({"a": {"x": np.ones((3, 2))}, "b": {"x": np.ones((3, 4))}})


def test_no_values_in_errors(pandas):
    frame = pandas.DataFrame({"x": [1.0, 987654321.125, None]})
    with pytest.raises(sf.DataError) as caught:
        sf.compile("input x : [*]\noutput s = sum[*](x)\n").run({"a": frame})
    assert "987654321" not in str(caught.value) and "1 missing value" in str(caught.value)


# ---- running

def test_progress_is_called():
    seen = []
    program = sf.compile(LONG.replace("100000000", "20000"))
    program.run({"a": {"x": np.ones(1000)}}, progress=lambda rounds, traces, seconds, last: seen.append((rounds, dict(traces))))
    assert seen and seen[-1][0] <= 20000 and "t" in seen[0][1]


def test_what_a_watcher_raises_stops_the_run():
    def watch(*_):
        raise LookupError("enough")
    with pytest.raises(LookupError, match="enough"):
        sf.compile(LONG).run({"a": {"x": np.ones(1000)}}, progress=watch)


def test_interrupt():
    # What is started in the background of a shell ignores the signal unless it says otherwise.
    code = f"import numpy as np, signal, starfold as sf\nsignal.signal(signal.SIGINT, signal.default_int_handler)\nprint('go', flush=True)\nsf.compile({LONG!r}).run({{'a': {{'x': np.ones(1000)}}}})\n"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "go\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert "KeyboardInterrupt" in errors and process.returncode != 0


def test_other_threads_go_on():
    counted = []
    stop = threading.Event()

    def count():
        while not stop.is_set():
            counted.append(1)
            time.sleep(0.001)
    thread = threading.Thread(target=count)
    thread.start()
    try:
        sf.compile(LONG.replace("100000000", "30000")).run({"a": {"x": np.ones(1000)}})
    finally:
        stop.set()
        thread.join()
    assert len(counted) > 5


def test_runs_in_several_threads(rng):
    x = rng.normal(size=(2000, 4))
    results = []

    def work():
        results.append(sf.compile(MEAN).run({"a": {"x": x}})["mean"])
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4 and all(np.array_equal(results[0], other) for other in results)


# ---- the package itself

def test_the_command_is_installed(tmp_path):
    command = pathlib.Path(sys.executable).parent / "starfold"
    assert command.exists()
    version = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout
    assert version.strip() == f"starfold {sf.__version__}"
    (tmp_path / "a.csv").write_text("x\n1\n2\n")
    done = subprocess.run([command, "run", "summary", "--client", "a=a.csv", "--bind", "x=x", "--json"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["outputs"]["mean"]["data"] == [1.5]


def test_flower_is_there_without_the_engine():
    done = subprocess.run([sys.executable, "-c", "import sys, starfold.flower.frames; assert 'starfold._engine' not in sys.modules and 'numpy' not in sys.modules"])
    assert done.returncode == 0


def test_it_is_typed():
    folder = pathlib.Path(sf.__file__).parent
    assert (folder / "py.typed").exists() and (folder / "_engine.pyi").exists()


def test_a_type_checker_knows_the_package(tmp_path):
    """mypy, where it is installed: right code passes, and each wrong line is seen."""
    pytest.importorskip("mypy")
    right = ("import numpy as np\nimport starfold as sf\nprogram: sf.Program = sf.load('logistic')\nfit: sf.Fit = program.run({'a': 'a.csv'}, bind={'x': ['age']}, threads=2, ridge=1e-3)\n"
             "names: list[str] = fit.clients['name']\ntext: str = program.explain() + program.types['beta']\nfound: list[sf.Diagnostic] = sf.check(text)\nspan: tuple[int, int, int, int] = found[0].span\n"
             "@sf.program\ndef mean(x: sf.fed('p')):  # type: ignore[valid-type]\n    return x.mean('*')\n")
    wrong = ["sf.load(3)", "sf.format(b'x')", "sf.load('x').run({}, threads='two')", "sf.nothing", "sf.check('').code"]
    (tmp_path / "right.py").write_text(right)
    (tmp_path / "wrong.py").write_text("import starfold as sf\n" + "\n".join(wrong) + "\n")
    done = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), "right.py", "wrong.py"], cwd=tmp_path, capture_output=True, text=True)
    lines = [line.split(":")[:2] for line in done.stdout.splitlines() if ": error:" in line]
    assert sorted({int(line) for file, line in lines if file == "wrong.py"}) == [2, 3, 4, 5, 6], done.stdout
    assert not [line for line in lines if line[0] != "wrong.py"], done.stdout


def test_docstrings():
    import doctest
    import starfold._machines
    import starfold._program
    import starfold._run
    import starfold._table
    import starfold._trace
    for module in (sf, starfold._program, starfold._run, starfold._table, starfold._machines, starfold._trace):
        failed, tried = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
        assert tried > 0 and failed == 0, module



def test_private_studies_and_warnings(tmp_path):
    """A study file with [privacy] runs from Python, and says what it promised; so do warnings."""
    (tmp_path / "north.csv").write_text("age\n" + "".join(f"{20 + i % 60}\n" for i in range(500)))
    (tmp_path / "mean.fold").write_text("input x : [*]\noutput m = sum[*](clip(x, 0, 100)) / sum[*](ones_like(x))\n")
    (tmp_path / "study.toml").write_text('program = "mean.fold"\n[inputs]\nx = "age"\n[[client]]\nname = "north"\ndata = "north.csv"\n'
                                         '[privacy]\nunit = "record"\nneighbours = "add_remove"\nepsilon = 1.0\ndelta = 1e-6\nat = "server"\n')
    fit = sf.run(tmp_path / "study.toml")
    assert abs(fit["m"] - 49) < 10 and fit.privacy["epsilon"] == 1 and len(fit.privacy["rounds"]) == 1
    plain = sf.compile("input x : [*]\noutput s = std[*](x)\n").run({"a": {"x": np.array([1.0])}})
    assert plain.privacy is None and plain.warnings == ["results without a value (nan): s"]


def test_a_full_disk_leaves_no_half_of_a_page(tmp_path):
    """Files may not grow beyond 2000 bytes, as on a disk that is full."""
    code = ("import resource, signal, sys\nimport numpy as np, starfold as sf\n"
            "fit = sf.lib.summary.run({'a': {'x': np.ones((5, 2))}})\n"
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nresource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
            "for write in (fit.report, fit.save):\n"
            "    try: write(sys.argv[1])\n"
            "    except sf.RunError as error: print(error)\n")
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "there")], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.count("there cannot be written: File too large") == 2, done.stdout + done.stderr
    assert not list(tmp_path.iterdir())
