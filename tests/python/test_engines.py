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


def check(distributed, clinics, pooled):
    alone = LOGISTIC.run({"all": pooled}, bind=BIND)
    fit = LOGISTIC.run({"all": distributed}, bind=BIND)
    np.testing.assert_allclose(fit["beta"], alone["beta"], rtol=1e-10)
    assert fit.rounds == alone.rounds and fit.clients["bytes_sent"] == alone.clients["bytes_sent"]  # only the client's state leaves it


@pytest.mark.parametrize("partitions", [1, 3, 20])
def test_dask(clinics, pooled, partitions):
    dask = pytest.importorskip("dask.dataframe")
    check(dask.from_pandas(pooled, npartitions=partitions), clinics, pooled)


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


def test_dask_forgets_what_a_worker_lost(pooled, monkeypatch):
    """A worker that lost a partition between rounds lays it out again, and the answer is the same."""
    dask = pytest.importorskip("dask.dataframe")
    from starfold import _distributed
    alone = LOGISTIC.run({"all": pooled}, bind=BIND)
    asked = []

    def forgetful(key, frame, setup, request, sequence, own=_distributed.answer):
        asked.append(sequence)
        if len(asked) % 3 == 0:
            _distributed._nodes.clear()
        return own(key, frame, setup, request, sequence)
    monkeypatch.setattr(_distributed, "answer", forgetful)
    np.testing.assert_allclose(LOGISTIC.run({"all": dask.from_pandas(pooled, npartitions=4)}, bind=BIND)["beta"], alone["beta"], rtol=1e-10)


@pytest.mark.parametrize("partitions", [2, 11])
def test_spark(spark, clinics, pooled, partitions):
    check(spark.createDataFrame(pooled).repartition(partitions), clinics, pooled)
