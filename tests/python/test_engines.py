"""Clients that outgrew one machine: the same answers over Dask and Spark, whatever the partitions. Skipped where they are not installed: tools/setup engines."""
import os
import shutil
import sys

import numpy as np
import pytest
import starfold as sf

pandas = pytest.importorskip("pandas")
LOGISTIC = sf.lib.logistic
BIND = {"x": ["age", "bmi"], "y": "dx"}


def frame(clinic):
    return pandas.DataFrame({name: values for name, values in clinic.items() if name != "sex"})


@pytest.fixture
def pooled(clinics):
    return pandas.concat([frame(clinic) for clinic in clinics.values()], ignore_index=True)


@pytest.fixture(scope="module")
def spark():
    pytest.importorskip("pyspark")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java")
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession
    session = (SparkSession.builder.master("local[2]").appName("starfold").config("spark.ui.enabled", "false").config("spark.driver.bindAddress", "127.0.0.1")
               .config("spark.sql.shuffle.partitions", "2").config("spark.driver.memory", "1g").getOrCreate())
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def check(distributed, pooled):
    alone = LOGISTIC.run({"all": pooled}, bind=BIND)
    fit = LOGISTIC.run({"all": distributed}, bind=BIND)
    np.testing.assert_allclose(fit["beta"], alone["beta"], rtol=1e-10)
    assert fit.rounds == alone.rounds and fit.clients["records"] == [len(pooled)]
    exact = LOGISTIC.run({"all": pooled}, bind=BIND, exact=True), LOGISTIC.run({"all": distributed}, bind=BIND, exact=True)
    assert exact[0]["beta"].tobytes() == exact[1]["beta"].tobytes() and exact[0].traces["deviance"].tobytes() == exact[1].traces["deviance"].tobytes()


@pytest.mark.parametrize("partitions", [1, 3, 20])
def test_dask(pooled, partitions):
    dask = pytest.importorskip("dask.dataframe")
    check(dask.from_pandas(pooled, npartitions=partitions), pooled)


def test_dask_beside_other_clients(clinics, pooled):
    dask = pytest.importorskip("dask.dataframe")
    parts = {name: frame(clinic) for name, clinic in clinics.items()}
    fit = LOGISTIC.run({**parts, "athens": dask.from_pandas(parts["athens"], npartitions=4)}, bind=BIND)
    np.testing.assert_allclose(fit["beta"], LOGISTIC.run({"all": pooled}, bind=BIND)["beta"], rtol=1e-10)


def test_dask_without_records_and_with_mistakes(pooled):
    dask = pytest.importorskip("dask.dataframe")
    program = sf.compile("input x : [*]\noutput n = records(x)\noutput s = sum[*](x)\n")
    assert program.run({"a": dask.from_pandas(pooled[:0], npartitions=1)}, bind={"x": "age"})["n"] == 0
    with pytest.raises(sf.DataError, match="agee"):
        program.run({"a": dask.from_pandas(pooled, npartitions=2)}, bind={"x": "agee"})
    with pytest.raises(sf.DataError, match="missing"):
        program.run({"a": dask.from_pandas(pooled.assign(age=np.nan), npartitions=2)}, bind={"x": "age"})


def test_dask_over_a_cluster_of_processes(pooled):
    """Workers of their own, which have the wheel and nothing else of ours."""
    dask, distributed = pytest.importorskip("dask.dataframe"), pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster, distributed.Client(cluster) as client:
        check(dask.from_pandas(pooled, npartitions=5), pooled)
        assert client.run(lambda: len(__import__("starfold._parts")._parts._kept)) == {worker: 0 for worker in client.scheduler_info()["workers"]}  # nothing stays


def test_dask_forgets_what_a_worker_lost(pooled, monkeypatch):
    """A worker that lost a partition between rounds lays it out again, and the answer is the same."""
    dask = pytest.importorskip("dask.dataframe")
    from starfold import _parts
    alone = LOGISTIC.run({"all": pooled}, bind=BIND, exact=True)
    asked = []

    def forgetful(setup, place, table, request, sequence, own=_parts.answer):
        asked.append(sequence)
        if len(asked) % 3 == 0:
            _parts._kept.clear()
        return own(setup, place, table, request, sequence)
    monkeypatch.setattr(_parts, "answer", forgetful)
    fit = LOGISTIC.run({"all": dask.from_pandas(pooled, npartitions=4)}, bind=BIND, exact=True)
    assert fit["beta"].tobytes() == alone["beta"].tobytes() and len(asked) > 12 and not _parts._kept


def test_dask_has_formulas_names_reports_and_progress(clinics, tmp_path):
    dask = pytest.importorskip("dask.dataframe")
    whole = pandas.concat([pandas.DataFrame(clinic) for clinic in clinics.values()], ignore_index=True).astype({"sex": "category"})
    seen = []
    fit = LOGISTIC.run({"all": dask.from_pandas(whole, npartitions=3)}, formula="dx ~ age * sex", out=tmp_path / "results", progress=lambda *said: seen.append(said))
    alone = LOGISTIC.run({"all": whole}, formula="dx ~ age * sex")
    np.testing.assert_allclose(fit["beta"], alone["beta"], rtol=1e-8)
    assert list(fit.to_frame().index) == list(alone.to_frame().index) and "age:sexm" in fit.report() and (tmp_path / "results/run.json").exists()
    assert seen[-1][0] == fit.rounds and "deviance" in seen[-1][1]
    texts = whole.astype({"sex": str})
    levels = {"sex": ["f", "m"]}
    fit = LOGISTIC.run({"all": dask.from_pandas(texts, npartitions=3)}, bind={"x": ["age", "sex"], "y": "dx"}, levels=levels)
    np.testing.assert_allclose(fit["beta"], LOGISTIC.run({"all": texts}, bind={"x": ["age", "sex"], "y": "dx"}, levels=levels)["beta"], rtol=1e-8)
    rest = LOGISTIC.run({"all": dask.from_pandas(whole.drop(columns="sex"), npartitions=2)}, bind={"x": "*", "y": "dx"})
    assert list(rest.to_frame().index) == ["(intercept)", "age", "bmi"]


def test_dask_beside_arrays_and_files(clinics, tmp_path):
    dask = pytest.importorskip("dask.dataframe")
    frames = {name: frame(clinic) for name, clinic in clinics.items()}
    frames["bern"].to_csv(tmp_path / "bern.csv", index=False)
    cadiz = {"x": frames["cadiz"][["age", "bmi"]].to_numpy(), "y": frames["cadiz"]["dx"].to_numpy()}
    fit = LOGISTIC.run({"athens": dask.from_pandas(frames["athens"], npartitions=2), "bern": tmp_path / "bern.csv", "cadiz": cadiz}, bind=BIND)
    np.testing.assert_allclose(fit["beta"], LOGISTIC.run(frames, bind=BIND)["beta"], rtol=1e-8)
    assert fit.clients["records"] == [120, 80, 60]


def test_missing_values_are_dropped_where_they_are(pooled):
    dask = pytest.importorskip("dask.dataframe")
    holes = pooled.assign(bmi=pooled.bmi.where(pooled.index % 7 != 0))
    fit, alone = [LOGISTIC.run({"all": data}, bind=BIND, missing="drop", exact=True) for data in (dask.from_pandas(holes, npartitions=4), holes)]
    assert fit["beta"].tobytes() == alone["beta"].tobytes() and fit.clients["dropped"] == alone.clients["dropped"] and fit.clients["dropped"][0] > 0


def test_a_client_in_parts_is_not_taken_for_many(pooled):
    """What a program asks of single clients, parts of one cannot say."""
    dask = pytest.importorskip("dask.dataframe")
    with pytest.raises(sf.UsageError, match="one by one"):
        sf.lib.fedavg.run({"a": dask.from_pandas(pooled, npartitions=2)}, bind=BIND)


@pytest.mark.parametrize("partitions", [2, 35])
def test_spark(spark, pooled, partitions):
    check(spark.createDataFrame(pooled).repartition(partitions), pooled)


def test_spark_lays_out_once_and_again_what_is_lost(spark, pooled, tmp_path, monkeypatch):
    """Records are written once; where they get lost, Spark computes them again."""
    from starfold import _distributed
    frame = spark.createDataFrame(pooled).repartition(3)
    alone = LOGISTIC.run({"all": pooled}, bind=BIND, exact=True)
    laid_out, asked = [], []
    lay_out, ask_once = _distributed.Spark.lay_out, _distributed.Spark.ask_once

    def counted(self, setup):
        laid_out.append(setup["run"])
        lay_out(self, setup)

    def losing(self, setup, request, sequence):
        asked.append(sequence)
        if len(asked) == 4:
            from starfold import _parts
            spark.sparkContext.parallelize(range(8), 8).foreach(lambda _: __import__("starfold._parts")._parts.remove(setup["run"]))
        return ask_once(self, setup, request, sequence)
    monkeypatch.setattr(_distributed.Spark, "lay_out", counted)
    assert LOGISTIC.run({"all": frame}, bind=BIND, exact=True)["beta"].tobytes() == alone["beta"].tobytes() and len(laid_out) == 1
    monkeypatch.setattr(_distributed.Spark, "ask_once", losing)
    fit = LOGISTIC.run({"all": frame}, bind=BIND, exact=True)
    assert fit["beta"].tobytes() == alone["beta"].tobytes() and len(laid_out) == 3
    from starfold import _parts
    assert not any(os.path.exists(_parts.folder_of(run)) for run in laid_out)  # and nothing stays


def test_spark_kinds_of_columns(spark, pooled):
    from pyspark.sql import functions as F
    frame = spark.createDataFrame(pooled.assign(n=np.arange(len(pooled)), sex=np.where(pooled.bmi > 25, "f", "m"), day=pandas.Timestamp("2024-05-01")))
    kinds = frame.select("age", F.col("n").cast("int").alias("n"), F.col("bmi").cast("float").alias("f"), F.col("age").cast("decimal(12,3)").alias("d"), (F.col("n") % 2 == 0).alias("t"),
                         F.to_date("day").alias("day"), F.when(F.col("n") > 3, F.col("n")).alias("holes"), "sex")
    program = sf.compile("input x : [*, p]\noutput s = sum[*](x)\noutput n = records(x)\n")
    columns = ["n", "f", "d", "t", "day", "holes", "sex"]
    fit, alone = [program.run({"a": data}, bind={"x": columns}, levels={"sex": ["f", "m"]}, missing="drop") for data in (kinds.repartition(3), kinds.toArrow())]
    np.testing.assert_allclose(fit["s"], alone["s"], rtol=1e-12)
    assert fit["n"] == alone["n"] == len(pooled) - 4
    with pytest.raises(sf.DataError, match="agee"):
        program.run({"a": kinds}, bind={"x": ["agee"]})
    assert program.run({"a": kinds.limit(0)}, bind={"x": ["n"]})["n"] == 0
