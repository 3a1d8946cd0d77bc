"""The code of the contract, line by line, as a user would type it in a folder of his own."""
import pathlib

import numpy as np
import pytest
import starfold as sf

LOGISTIC = """# Logistic regression by Newton's method.
input x : [*, p]
input y : [*]
input ridge : [] = 1e-6
state beta : [p] = zeros(p)
repeat 25 {
  let eta = x @ beta
  let losses = softplus(eta) - y * eta
  let g = grad(sum[*](losses), beta) + ridge * beta
  let h = hessian(sum[*](losses), beta) + ridge * eye(p)
  let step = solve(h, g)
  trace loss = sum[*](losses)
  beta <- beta - step
} until max(abs(step)) < 1e-9
output beta
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logistic.fold").write_text(LOGISTIC)
    return tmp_path


def test_the_code_of_the_contract(folder, clinics, capsys):
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    import pyarrow.parquet
    frames = {name: pandas.DataFrame({key: data[key] - (50 if key == "age" else 25 if key == "bmi" else 0) for key in ("age", "bmi", "dx")}) for name, data in clinics.items()}
    df1 = frames["athens"].copy()
    df1.loc[3, "bmi"] = np.nan
    pyarrow.parquet.write_table(pyarrow.Table.from_pandas(frames["bern"]), "bern.parquet")
    X, y = frames["cadiz"][["age", "bmi"]].to_numpy(), frames["cadiz"]["dx"].to_numpy()

    program = sf.load("logistic.fold")
    assert program == sf.compile(pathlib.Path("logistic.fold").read_text(), "logistic.fold") and sf.lib.logistic.name
    assert program.types["beta"] == "[p]"
    assert program.exposure.columns == ["round", "value", "shape", "merge", "line"] and len(program.exposure.to_frame()) == len(program.exposure) > 0
    assert "<table" in program.exposure._repr_html_()
    assert "round 1" in program.explain() and "<html" in program.html()
    fit = program.run(
        {"athens": df1, "bern": "bern.parquet", "cadiz": {"x": X, "y": y}},
        bind={"x": ["age", "bmi"], "y": "dx"}, ridge=1e-4,
        missing="drop", exact=False, threads=2, progress=True)
    assert isinstance(fit["beta"], np.ndarray) and fit["beta"].shape == (2, ) and isinstance(fit.outputs, dict)
    assert len(fit.traces["loss"]) == fit.iterations[0] and fit.rounds > 0
    assert fit.clients["name"] == ["athens", "bern", "cadiz"] and fit.clients["records"] == [119, 80, 60] and fit.clients["dropped"] == [1, 0, 0]
    assert all(count > 0 for count in fit.clients["bytes_sent"] + fit.clients["bytes_received"])
    table = fit.to_frame()
    assert list(table.index) == ["age", "bmi"] and np.array_equal(table["beta"], fit["beta"])
    assert all(name in fit.summary() for name in table.index)
    fit.report("report.html")
    fit.save("results/")
    assert "</html>" in pathlib.Path("report.html").read_text() and np.array_equal(np.load("results/beta.npy"), fit["beta"])

    pooled = pandas.concat([df1.dropna(), frames["bern"], frames["cadiz"]])
    alone = program.run({"all": pooled}, bind={"x": ["age", "bmi"], "y": "dx"}, ridge=1e-4)
    np.testing.assert_allclose(fit["beta"], alone["beta"], rtol=1e-10)

    for name in ("athens", "cadiz"):
        frames[name].to_csv(f"{name}.csv", index=False)
    pathlib.Path("study.toml").write_text('program = "logistic.fold"\n[[client]]\nname = "athens"\ndata = "athens.csv"\n[[client]]\nname = "cadiz"\ndata = "cadiz.csv"\n'
                                          '[inputs]\nx = ["age", "bmi"]\ny = "dx"\nridge = 1e-4\n')
    study = sf.run("study.toml")
    np.testing.assert_allclose(study["beta"], program.run({name: frames[name] for name in ("athens", "cadiz")}, bind={"x": ["age", "bmi"], "y": "dx"}, ridge=1e-4)["beta"], rtol=1e-9)

    diagnostic, = sf.check("input x : [*]\noutput x\n")
    assert isinstance(diagnostic, sf.Diagnostic) and all(hasattr(diagnostic, name) for name in ("code", "severity", "message", "help", "span"))
    assert sf.format("input x:[*]\noutput s=sum[*](x)") == "input x : [*]\noutput s = sum[*](x)\n"
    for error in (sf.ProgramError, sf.DataError, sf.PolicyError, sf.RunError):
        assert issubclass(error, sf.Error)


def test_a_formula_in_the_place_of_columns(folder, clinics):
    pandas = pytest.importorskip("pandas")
    clients = {name: pandas.DataFrame(data).astype({"sex": "category"}) for name, data in clinics.items()}
    fit = sf.lib.logistic.run(clients, formula="dx ~ age * sex")
    assert list(fit.to_frame().index) == ["(intercept)", "age", "sexm", "age:sexm"]
    pooled = pandas.concat([frame.astype({"sex": str}) for frame in clients.values()])
    design = pandas.DataFrame({"age": pooled.age, "m": (pooled.sex == "m") * 1.0, "both": pooled.age * (pooled.sex == "m"), "dx": pooled.dx})
    np.testing.assert_allclose(fit["beta"], sf.lib.logistic.run({"all": design}, bind={"x": ["age", "m", "both"], "y": "dx"})["beta"], rtol=1e-8)


def test_sampled_rounds_are_those_of_the_command(tmp_path):
    import json
    import subprocess

    from starfold import _command
    program = "input x : [*]\nstate s : [] = 0\nrepeat 6 {\n  trace t = s\n  s <- s + sum[*](x)\n}\noutput s\n"
    (tmp_path / "p.fold").write_text(program)
    clients = {f"c{i}": {"x": np.array([float(10**i)])} for i in range(5)}
    for name, data in clients.items():
        np.save(tmp_path / f"{name}.npy", data["x"])
    ours = sf.compile(program).run(clients, sample=2, sample_seed=7)
    done = subprocess.run([_command.path(), "run", "p.fold", *[word for name in clients for word in ("--client", f"{name}={name}.npy")], "--sample", "2", "--sample-seed", "7", "--json"],
                          cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ours["s"] == json.loads(done.stdout)["outputs"]["s"]["data"][0] and ours.traces["t"][1] != ours["s"]
    with pytest.raises(sf.UsageError, match="there are 5"):
        sf.compile(program).run(clients, sample=6)
    with pytest.raises(sf.UsageError, match="sample is a whole number"):
        sf.compile(program).run(clients, sample=0)
