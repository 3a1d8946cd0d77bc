"""Every kind of table and column means what it means in a file."""
import datetime
import decimal
import gc
import subprocess
import sys

import numpy as np
import pytest
import starfold as sf

SUM = sf.compile("input x : [*]\noutput n = records(x)\noutput s = sum[*](x)\n")
MATRIX = sf.compile("input x : [*, p]\noutput s = sum[*](x)\noutput q = x' @ x\n")
LARGE = 300_000  # records: more than is copied


def sums(table, **options):
    fit = SUM.run({"a": table}, **options)
    return float(fit["n"]), float(fit["s"])


def as_file(table, tmp_path, **options):
    """The same through a Parquet file."""
    import pyarrow.parquet
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    return sums(str(tmp_path / "t.parquet"), **options)


@pytest.fixture(scope="module")
def pa():
    return pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def pd():
    return pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def pl():
    return pytest.importorskip("polars")


# ---- NumPy

@pytest.mark.parametrize("kind", ["f8", "f4", "f2", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", ">f8", ">i4"])
def test_kinds_of_numbers(kind):
    x = (np.arange(10) % 2).astype(kind) if kind == "?" else np.arange(10).astype(kind)
    assert sums({"x": x}) == (10, float(x.sum()))


@pytest.mark.parametrize("n", [1000, LARGE])
@pytest.mark.parametrize("kind", ["f8", "f4", "i4"])
def test_layouts(rng, n, kind):
    whole = np.ascontiguousarray(rng.integers(-5, 5, size=(n, 6)).astype(kind))
    expected = whole.astype(float).sum(axis=0)
    fortran = np.asfortranarray(whole)
    backwards = whole[::-1, ::-1]
    every_other = np.repeat(whole, 2, axis=1)[:, ::2]
    for view, sum_ in [(whole, expected), (fortran, expected), (backwards, expected[::-1]), (every_other, expected), (whole[::2], whole[::2].astype(float).sum(axis=0)),
                       (whole[:, 1:3], expected[1:3])]:
        fit = MATRIX.run({"a": {"x": view}})
        np.testing.assert_array_equal(fit["s"], sum_)
        np.testing.assert_array_equal(fit["q"], view.astype(float).T @ view.astype(float))


def test_the_star_may_be_elsewhere(rng):
    for n in (100, LARGE):
        x = rng.normal(size=(2, n))
        fit = sf.compile("input x : [p, *]\noutput s = sum[*](x)\n").run({"a": {"x": x}, "b": {"x": x[:, :7]}})
        np.testing.assert_allclose(fit["s"], x.sum(axis=1) + x[:, :7].sum(axis=1), rtol=1e-12)


def test_more_axes_and_record_sets(rng):
    images = rng.normal(size=(20, 3, 4)).astype("f4")
    fit = sf.compile("input x : [*, h, w]\noutput s = sum[*](x)\n").run({"a": {"x": images}})
    np.testing.assert_allclose(fit["s"], images.astype(float).sum(axis=0), rtol=1e-12)
    fit = sf.compile("input x : [*]\ninput v : [*visits]\noutput s = sum[*](x)\noutput t = sum[*](v)\n").run({"a": {"x": np.ones(3), "v": np.ones(5)}})
    assert (fit["s"], fit["t"]) == (3, 5)


def test_read_only_arrays():
    x = np.ones(4)
    x.flags.writeable = False
    assert sums({"x": x}) == (4, 4)


def test_whole_numbers_that_no_double_is_equal_to():
    with pytest.raises(sf.DataError, match="2\\^53"):
        sums({"x": np.array([2**53 + 1])})
    assert sums({"x": np.array([2**53 + 2])})[1] == 2**53 + 2


def test_nan_in_arrays_is_a_number_unless_it_is_dropped():
    for n in (3, LARGE):
        x = np.ones(n)
        x[1] = np.nan
        assert np.isnan(sums({"x": x})[1])
        assert sums({"x": x}, missing="drop") == (n - 1, n - 1)


def test_masked_arrays():
    x = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])
    with pytest.raises(sf.DataError, match="masked"):  # what is masked is no number
        sums({"x": x})
    assert sums({"x": x.filled(np.nan)}, missing="drop") == (2, 4)
    assert sums({"x": np.ma.array([1.0, 2.0])}) == (2, 3)


COUNTS = sf.compile("input x : [*, p]\ninput y : [*]\noutput n = records(y)\noutput s = sum[*](x)\n")
DAYS = ["2024-05-01", "2024-05-02", "2024-05-03", "2024-05-04"]


def by_formula(x, **options):
    """A formula makes a table of arrays: the columns that it takes of x, and their sums."""
    fit = COUNTS.run({"a": {"x": x, "y": np.ones(len(x))}}, formula="y ~ x", **options)
    return dict(zip(fit.columns["x"], fit["s"].tolist())), float(fit["n"])


@pytest.mark.parametrize("values", [np.array([1.5, 2, 3, 4]), np.arange(4), np.arange(4, dtype=">i4"), np.array([True, True, False, True]), np.array(["a", "b", "a", "c"]),
                                    np.array([b"a", b"b", b"a", b"c"]), np.array(DAYS, "M8[D]"), np.array(DAYS, "M8[ns]"), np.array(DAYS, "M8[10ms]"), np.array(["a", "b", "a", "c"], object),
                                    np.array([1.5, 2, 3, decimal.Decimal("4.5")], object), np.array([datetime.date(2024, 5, day) for day in (1, 2, 3, 4)], object)])
def test_what_is_masked_is_missing_in_a_table_and_refused_in_an_array(values):
    x = np.ma.array(values, mask=[False, True, False, False])
    with pytest.raises(sf.DataError, match="client a: array x: an array has masked values"):
        sums({"x": x})
    with pytest.raises(sf.DataError, match="missing value"):
        by_formula(x)
    assert by_formula(x, missing="drop") == by_formula(values[[0, 2, 3]])
    assert by_formula(np.ma.array(values)) == by_formula(values)
    if values.dtype.kind in "fiub":
        table = np.ma.zeros(4, dtype=[("x", values.dtype), ("word", "U3")])
        table["x"] = x
        assert sums(table, missing="drop")[0] == 3


@pytest.mark.parametrize("values", [["a", None, "c"], [1.5, None, 2], [1, float("nan"), 3], [True, None, False], [datetime.date(2024, 5, 1), None, datetime.date(2024, 5, 3)],
                                    [datetime.datetime(2024, 5, 1, 12), np.datetime64("NaT"), datetime.datetime(2024, 5, 3, tzinfo=datetime.timezone.utc)]])
def test_python_values_may_be_missing_in_a_table(values):
    x = np.array(values, dtype=object)
    with pytest.raises(sf.DataError, match="1 missing value"):
        by_formula(x)
    assert by_formula(x, missing="drop") == by_formula(x[[0, 2]])


def test_python_values_that_are_no_column():
    for values in ([1.0, "a"], [{}, {}], [1 + 2j, 3j]):
        with pytest.raises(sf.DataError, match="unknown type"):
            by_formula(np.array(values, dtype=object))
    with pytest.raises(sf.DataError, match="2\\^53"):
        by_formula(np.array([2**53 + 1, None], dtype=object), missing="drop")
    with pytest.raises(sf.DataError, match="UTF-8"):
        by_formula(np.array([b"\xff", b"a"]))
    with pytest.raises(sf.DataError, match="client a: array x: an array of Python objects holds no numbers"):
        sums({"x": np.array([1.0, None], dtype=object)})
    assert sums({"x": np.ones(2), "name": np.array(["a", "b"])}) == (2, 2)  # what nobody asks for may be anything


def by_formula_of_clients(*columns, **options):
    fit = COUNTS.run([{"x": x, "y": np.ones(len(x))} for x in columns], formula="y ~ x", missing="drop", **options)
    return dict(zip(fit.columns["x"], fit["s"].tolist())), float(fit["n"])


NOTHING = [np.array([None, None], dtype=object), np.array([None, float("nan")], dtype=object), np.ma.array(["a", "b"], mask=True), np.ma.array([b"a", b"b"], mask=True),
           np.ma.array(["a", 1], mask=True, dtype=object), np.array([], dtype=object), np.array([], dtype="U1"), np.array([], dtype="S1"), []]


@pytest.mark.parametrize("x", NOTHING)
def test_columns_without_any_value(x):
    """Nobody can say whether they are numbers or texts; they are missing numbers, as in other tables, which fit what other clients have."""
    if len(x):
        with pytest.raises(sf.DataError, match="column x has 2 missing values"):
            by_formula(x)
        with pytest.raises(sf.DataError, match="no records are left"):
            by_formula(x, missing="drop")
        sums_by_column, n = by_formula(x, missing="nan")
        assert list(sums_by_column) == ["x"] and np.isnan(sums_by_column["x"]) and n == 2
    else:
        assert by_formula(x) == ({"x": 0}, 0)
    for numbers in (np.array([1.0, 2.0]), np.array([1, None, 2], dtype=object)):
        assert by_formula_of_clients(numbers, x) == by_formula_of_clients(x, numbers) == ({"x": 3}, 2)
    words = np.array(["a", "b", "a"])
    assert by_formula_of_clients(words, x) == by_formula_of_clients(x, words) == ({"xb": 1}, 3)
    declared = {"levels": {"x": ["b", "a", "c"]}}
    assert by_formula_of_clients(words, x, **declared) == by_formula_of_clients(x, words, **declared) == ({"xa": 2, "xc": 0}, 3)
    if not len(x):
        assert by_formula(x, **declared) == ({"xa": 0, "xc": 0}, 0)


def test_categories_of_pandas_may_be_none(pd):
    x = pd.Series([None, None], dtype="category")
    assert by_formula_of_clients(x, np.array([1.0, 2.0])) == ({"x": 3}, 2)
    assert by_formula_of_clients(x, np.array(["a", "b"])) == ({"xb": 1}, 2)


@pytest.mark.parametrize("values", [[1 + 2j, 1.0], [np.complex128(1 + 2j), 1.0], [np.complex64(1), None], [np.timedelta64(1, "s"), np.timedelta64(2, "s")], [np.timedelta64(1, "s"), 1],
                                    [np.timedelta64("NaT"), None], [datetime.timedelta(1), None], [[1, 2], [3]]])
def test_python_values_that_are_no_real_numbers(values):
    x = np.empty(2, dtype=object)
    x[:] = values
    for column in (x, values):
        with pytest.raises(sf.DataError, match="client a: column x is an unknown type"):
            by_formula(column, missing="drop")
    fit = COUNTS.run({"a": {"x": np.ones(2), "y": np.ones(2), "other": values}}, formula="y ~ x")  # what nobody asks for may be anything
    assert fit["s"].tolist() == [2]


@pytest.mark.parametrize("values, why", [([decimal.Decimal("sNaN"), 1], "signaling NaN"), ([np.int64(2**53 + 1), None], "2\\^53"),
                                         ([datetime.datetime(1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=5))), None], "years 1 to 9999"),
                                         (["\ud800secret", "a"], "half a character"), ([np.datetime64(300000, "Y"), None], "too far from 1970"),
                                         ([np.datetime64(10**18, "W"), datetime.date(2024, 5, 1)], "too far from 1970")])
def test_python_values_that_no_column_holds(values, why):
    with pytest.raises(sf.DataError, match=f"client a: array x: .*{why}") as caught:
        by_formula(np.array(values, dtype=object), missing="drop")
    assert "secret" not in str(caught.value) and caught.value.__cause__ is None and caught.value.__suppress_context__


def test_arrays_that_no_column_holds():
    with pytest.raises(sf.DataError, match="array x: .*half a character"):
        by_formula(np.array(["\ud800", "a"]))
    with pytest.raises(sf.DataError, match="array x: .*too far from 1970"):
        by_formula(np.array([2**60, 0], dtype="M8[Y]"))
    with pytest.raises(sf.DataError, match="client a: array x: its lists are no array"):
        sums({"x": [[1, 2], [3]]})
    assert sums({"x": np.ones(2), "lists": [[1, 2], [3]]}) == (2, 2)


def test_pandas_values_that_no_column_holds(pd, pa):
    for values, why in ((["\ud800secret", "a"], "half a character"), ([2**70, 1], "64 bits")):
        x = pd.Series(values, dtype=object)
        with pytest.raises(sf.DataError, match=f"client a: array x: .*{why}"):
            by_formula(x)
        with pytest.raises(sf.DataError, match=f"client a: column x: .*{why}"):
            sums(pd.DataFrame({"x": x}))


def test_moments_that_are_python_values_mean_what_they_mean_in_arrays(pd):
    from starfold._clients import as_moments
    moments = np.array([-1001, -1, 999, 1_700_000_000_123_456_789], dtype="M8[ns]")
    for values in (list(moments), [pd.Timestamp(moment) for moment in moments], [pd.Timestamp(moment, tz="UTC").tz_convert("Europe/Athens") for moment in moments]):
        x = np.array([*values, None], dtype=object)
        assert by_formula(x, missing="drop") == by_formula(moments)
        assert as_moments(values).tolist() == moments.tolist() and as_moments(values).dtype == "M8[ns]"
    mixed = [moments[3], datetime.date(2024, 5, 1), datetime.datetime(2024, 5, 1, 12), np.datetime64("2024-05"), np.datetime64(5, "10ms")]
    assert as_moments(mixed).dtype == "M8[ns]" and as_moments(mixed)[0] == moments[3] and as_moments(mixed)[3] == np.datetime64("2024-05-01")
    assert as_moments([*mixed, datetime.date(9000, 1, 1)]).dtype == "M8[us]"  # too far for nanoseconds
    assert as_moments(mixed[1:]).dtype == "M8[us]"


@pytest.mark.parametrize("missing", [None, float("nan"), np.ma.masked])
def test_truths_that_are_python_values_are_truths(missing):
    expected = by_formula(np.ma.array([True, False, False, True], mask=[False, True, False, False]), missing="drop")
    assert expected == ({"xTRUE": 2}, 3)
    for truth in (bool, np.bool_):
        x = np.empty(4, dtype=object)
        x[:] = [truth(True), None, truth(False), truth(True)]
        x = np.ma.array(x, mask=[False, True, False, False]) if missing is np.ma.masked else np.where([False, True, False, False], missing, x)
        assert by_formula(x, missing="drop") == expected
    assert by_formula(np.array([True, False, True], dtype=object)) == by_formula(np.array([True, False, True])) == ({"xTRUE": 2}, 3)
    assert by_formula(np.array([True, 2, None], dtype=object), missing="drop") == ({"x": 3}, 2)  # among numbers they are numbers


def test_columns_of_other_libraries_in_a_dict(pd, pa, pl):
    for x in (pd.Series(["a", None, "c"]), pd.Series(["a", None, "c"], dtype="category"), pl.Series(["a", None, "c"]), pa.chunked_array([["a"], [None, "c"]]), pa.array(["a", None, "c"])):
        assert by_formula(x, missing="drop", levels={"x": ["a", "c"]})[1] == 2
    for x in (pd.Series([1, None, 3], dtype="Int64"), pl.Series([1, None, 3]), pa.array([1, None, 3])):
        assert by_formula(x, missing="drop") == by_formula(np.array([1, 3]))


def test_no_record_is_left(pa):
    with pytest.raises(sf.DataError, match="no records are left"):
        sums(pa.table({"x": pa.nulls(3, pa.float64())}), missing="drop")
    with pytest.raises(sf.DataError, match="is an unknown type"):
        sums(pa.table({"x": [[1], [2]]}))


def test_named_fields():
    table = np.array([(1.0, 2), (3.0, 4)], dtype=[("x", "f8"), ("k", "i4")])
    assert sums(table) == (2, 4)


@pytest.mark.parametrize("empty", [{"x": np.zeros(0)}, {"x": np.zeros(0, dtype="f4")}])
def test_empty_clients(empty, pd, pa, pl):
    fit = SUM.run({"a": empty, "b": {"x": np.array([2.0])}, "c": pd.DataFrame({"x": np.zeros(0)}), "d": pa.table({"x": pa.array([], pa.float64())}),
                   "e": pl.DataFrame({"x": np.zeros(0)})})
    assert (fit["n"], fit["s"]) == (1, 2)


def test_matrices_from_columns(rng):
    fit = MATRIX.run({"a": {"u": np.ones(3), "v": np.arange(3)}}, bind={"x": ["v", "u"]})
    assert fit["s"].tolist() == [3, 3] and fit.columns == {"x": ["v", "u"]}


# ---- Arrow

def test_arrow_columns_mean_what_they_mean_in_files(pa, tmp_path):
    day = datetime.date(2020, 2, 29)
    moment = datetime.datetime(2021, 7, 1, 13, 5, 6, 789123)
    columns = {
        "double": pa.array([1.5, 2.5, -1.0]),
        "float": pa.array([1.5, 0.1, 2], pa.float32()),
        "half": pa.array(np.array([1.5, 0.1, 2], dtype="f2")),
        "integer": pa.array([1, -2, 2**40]),
        "unsigned": pa.array([1, 2, 2**40], pa.uint64()),
        "small": pa.array([1, -2, 3], pa.int8()),
        "truth": pa.array([True, False, True]),
        "decimal": pa.array([decimal.Decimal("1.10"), decimal.Decimal("-2.25"), decimal.Decimal("12345.67")], pa.decimal128(9, 2)),
        "long decimal": pa.array([decimal.Decimal("0.1234567890123456789"), decimal.Decimal("7.7"), decimal.Decimal(3)], pa.decimal128(30, 19)),
        "whole decimal": pa.array([decimal.Decimal(5), decimal.Decimal(-6), decimal.Decimal(7)], pa.decimal128(20, 0)),
        "date": pa.array([day, datetime.date(1969, 12, 31), datetime.date(1970, 1, 2)]),
        "date in ms": pa.array([day, datetime.date(1969, 12, 31), datetime.date(1970, 1, 2)], pa.date64()),
        "second": pa.array([moment, moment, None], pa.timestamp("s")).drop_null(),
        "milli": pa.array([moment.replace(microsecond=789000)] * 3, pa.timestamp("ms")),
        "micro": pa.array([moment, datetime.datetime(1960, 1, 1, 1), moment], pa.timestamp("us")),
        "nano": pa.array([moment, datetime.datetime(1960, 1, 1, 1), moment], pa.timestamp("ns")),
        "zoned": pa.array([moment] * 3, pa.timestamp("us", tz="Europe/Athens")),
        "coded numbers": pa.array([1.5, 2.5, 1.5]).dictionary_encode(),
    }
    for name, column in columns.items():
        table = pa.table({"x": column})
        assert sums(table) == as_file(table, tmp_path), name


def test_gaps(pa, tmp_path):
    for column in (pa.array([1.0, None, 3.0]), pa.array([1, None, 3]), pa.array([True, None, True]), pa.array([datetime.date(2020, 1, 1), None, datetime.date(2020, 1, 3)]),
                   pa.array([1.5, float("nan"), 3.0]), pa.array([1.0, None, 3.0]).dictionary_encode()):
        table = pa.table({"x": column})
        with pytest.raises(sf.DataError, match="1 missing value"):
            sums(table)
        assert sums(table, missing="drop") == as_file(table, tmp_path, missing="drop") and sums(table, missing="drop")[0] == 2
        assert np.isnan(sums(table, missing="nan")[1])


def test_chunks_and_slices(pa, rng):
    x = rng.integers(0, 9, size=1000).astype(float)
    gaps = [None if value == 0 else float(value) for value in x]
    cuts = [0, 1, 1, 513, 700, 1000]
    chunked = pa.table({"x": pa.chunked_array([pa.array(x[a:b]) for a, b in zip(cuts, cuts[1:])]), "g": pa.chunked_array([pa.array(gaps[:250]), pa.array(gaps[250:])])})
    assert sums(chunked) == (1000, x.sum()) and sums(chunked.slice(3, 900)) == (900, x[3:903].sum())
    fit = SUM.run({"a": chunked.slice(3, 900)}, bind={"x": "g"}, missing="drop")
    assert fit["s"] == x[3:903].sum() and fit["n"] == (x[3:903] != 0).sum()
    bits = pa.table({"x": pa.array([value > 4 for value in x])}).slice(5, 77)
    assert sums(bits) == (77, float((x[5:82] > 4).sum()))
    batches = pa.RecordBatchReader.from_batches(chunked.schema, chunked.to_batches(max_chunksize=7))
    assert sums(batches)[1] == x.sum()
    assert sums(chunked.to_batches()[0])[0] == len(chunked.to_batches()[0])


def test_no_chunks_and_empty_ones(pa):
    none = pa.table({"x": pa.chunked_array([], pa.float64()), "w": pa.chunked_array([], pa.dictionary(pa.int32(), pa.string()))})
    assert none["x"].num_chunks == 0 and sums(none) == (0, 0)
    assert sums(pa.RecordBatchReader.from_batches(none.schema, [])) == (0, 0)
    assert sums(pa.table({"x": pa.chunked_array([[], [1.0], [], [2.0], []], pa.float64())})) == (2, 3)


def test_anything_with_a_stream_is_a_table(pa):
    class Own:
        def __init__(self, table):
            self.table = table

        def __arrow_c_stream__(self, requested_schema=None):
            return self.table.__arrow_c_stream__(requested_schema)
    assert sums(Own(pa.table({"x": [1.0, 2.0]}))) == (2, 3)


def test_levels(pa, pl, pd, tmp_path):
    program = sf.compile("input x : [*, p]\noutput s = sum[*](x)\n")
    words = ["b", "a", "c", "a"]
    tables = [pd.DataFrame({"w": pd.Categorical(words)}), pa.table({"w": pa.array(words).dictionary_encode()}).cast(pa.schema([("w", pa.dictionary(pa.int32(), pa.string()))])),
              pl.DataFrame({"w": pl.Series(words, dtype=pl.Enum(["a", "b", "c"]))})]
    by_level = {"a": 2, "b": 1, "c": 1}
    for table in tables:
        fit = program.run({"a": table}, bind={"x": "w"})
        names = [name.split("=")[1] for name in fit.columns["x"]]
        assert fit["s"].tolist() == [by_level[name] for name in names] and len(names) == 2
    plain = [pd.DataFrame({"w": words}), pa.table({"w": words}), pl.DataFrame({"w": words}), pa.table({"w": pa.array(words, pa.large_string())}),
             pa.table({"w": pa.array(words, pa.string_view())}), pd.DataFrame({"w": pd.Series(words, dtype=object)})]
    (tmp_path / "w.csv").write_text("w\n" + "\n".join(words) + "\n")
    for table in [*plain, *tables, str(tmp_path / "w.csv")]:
        fit = program.run({"a": table}, bind={"x": "w"}, levels={"w": ["c", "a", "b"]})
        assert fit.columns["x"] == ["w=a", "w=b"] and fit["s"].tolist() == [2, 1]
        with pytest.raises(sf.DataError, match="no declared level"):
            program.run({"a": table}, bind={"x": "w"}, levels={"w": ["a", "b"]})
    for table in plain:
        with pytest.raises(sf.DataError, match="text"):
            program.run({"a": table}, bind={"x": "w"})


def test_clients_whose_levels_differ_have_them_all(pd):
    program = sf.compile("input x : [*, p]\noutput s = sum[*](x)\n")
    fit = program.run({"a": pd.DataFrame({"w": pd.Categorical(["m", "f"])}), "b": pd.DataFrame({"w": pd.Categorical(["m", "x"])})}, bind={"x": "w"})
    assert dict(zip(fit.columns["x"], fit["s"])) == {"w=m": 2, "w=x": 1}


# ---- pandas, Polars, DuckDB

def test_pandas(pd):
    frame = pd.DataFrame({"x": np.arange(4.0), "other": ["p", "q", "r", "s"]}, index=[9, 8, 7, 6])
    assert sums(frame) == (4, 6)
    assert sums(frame[frame.x > 1]) == (2, 5) and sums(frame.iloc[::-2]) == (2, 4)
    for kind in ("float32", "int8", "uint16", "Int64", "Float32", "UInt8"):
        assert sums(frame[["x"]].astype(kind)) == (4, 6), kind
    assert sums(pd.DataFrame({"x": [True, False, True]})) == (3, 2)
    assert sums(pd.DataFrame({"x": pd.array([1, None, 3], dtype="Int64")}), missing="drop") == (2, 4)
    assert sums(pd.DataFrame({"x": pd.array([True, None, True], dtype="boolean")}), missing="drop") == (2, 2)
    days = pd.to_datetime(["1970-01-03 00:00", "1970-01-05 12:00", None])
    for unit in ("s", "ms", "us", "ns"):
        assert sums(pd.DataFrame({"x": days.as_unit(unit)}), missing="drop") == (2, 6.5)
    assert sums(pd.DataFrame({"x": days.tz_localize("Europe/Athens")}), missing="drop")[1] == pytest.approx(6.5 - 4 / 24, rel=1e-14)
    assert sums(pd.DataFrame({"x": [decimal.Decimal("1.5"), decimal.Decimal("2.25")]})) == (2, 3.75)
    assert sums(pd.DataFrame({"x": [datetime.date(1970, 1, 2), datetime.date(1970, 1, 4)]})) == (2, 4)
    with pytest.raises(sf.DataError, match="one name"):
        sums(pd.DataFrame(np.ones((2, 2)), columns=["x", "x"]))


def test_pandas_over_arrow(pd, pa):
    frame = pd.DataFrame({"x": [1.0, 2.0, None]}).astype(pd.ArrowDtype(pa.float64()))
    assert sums(frame, missing="drop") == (2, 3)


def test_polars(pl):
    frame = pl.DataFrame({"x": [1.0, 2.0, None], "k": [1, 2, 3]})
    assert sums(frame, missing="drop") == (2, 3)
    assert sums(frame.lazy().filter(pl.col("k") < 3)) == (2, 3)
    assert sums(pl.DataFrame({"x": [datetime.date(1970, 1, 2), datetime.date(1970, 1, 4)]})) == (2, 4)
    assert sums(pl.concat([frame[:1], frame[1:2]], rechunk=False)) == (2, 3)
    program = sf.compile("input x : [*, p]\noutput s = sum[*](x)\n")
    words = pl.Series("w", ["b", "a", "c", "a"], dtype=pl.Categorical)
    for series in (words, pl.concat([words[:1], words[1:]], rechunk=False)):
        fit = program.run({"a": pl.DataFrame({"w": series})}, bind={"x": "w"}, levels={"w": ["c", "a", "b"]})
        assert fit.columns["x"] == ["w=a", "w=b"] and fit["s"].tolist() == [2, 1]
        own = program.run({"a": pl.DataFrame({"w": series})}, bind={"x": "w"})
        assert {name: count for name, count in zip(own.columns["x"], own["s"])}.items() <= {"w=a": 2, "w=b": 1, "w=c": 1}.items() and len(own["s"]) == 2


def test_duckdb(pd):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    relation = connection.sql("select i::double as x, i % 2 = 0 as even from range(5000) t(i)")
    assert sums(relation) == (5000, 5000 * 4999 / 2)


def test_a_table_keeps_its_data_alive(pa):
    """What is read in place must live as long as it is read, and no longer."""
    import weakref
    x = np.ones(LARGE)
    alive = weakref.ref(x)
    fit = SUM.run({"a": {"x": x}})
    del x
    gc.collect()
    assert fit["s"] == LARGE and alive() is None


# ---- memory

MEMORY = """
import resource, sys
import numpy as np, pyarrow as pa
import starfold as sf
n, p, rounds, memory = int(sys.argv[1]), 8, sys.argv[3], sys.argv[4] or None
rng = np.random.default_rng(0)
def column(): return pa.array(rng.random(n), type=pa.float64())
kind = sys.argv[2]
if kind == "arrow": data = pa.table({f"c{j}": column() for j in range(p)})
elif kind == "float32": data = pa.table({f"c{j}": pa.array(rng.random(n, dtype=np.float32)) for j in range(p)})
else: data = {"x": rng.random((n, p))}
program = sf.compile("input x : [*, p]\\nstate s : [p] = zeros(p)\\nrepeat " + rounds + " {\\n  s <- s / 2 + sum[*](x * s) / 1e9 + sum[*](x)\\n}\\noutput s\\n")
bind = {"x": [f"c{j}" for j in range(p)]} if kind != "numpy" else None
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with open("/proc/self/status") as f: now = next(int(l.split()[1]) for l in f if l.startswith("VmRSS"))
fit = program.run({"a": data}, bind=bind, **({"memory": memory} if memory else {}))
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print((max(after - max(before, now), 0)) / 1024, n * p * (4 if kind == "float32" else 8) / 2**20)
"""


@pytest.mark.parametrize("rounds, memory", [(3, ""), (30, "1GB")])
@pytest.mark.parametrize("kind", ["arrow", "float32", "numpy"])
def test_memory_does_not_double(kind, rounds, memory, pa):
    """In its long form STARFOLD_PYTHON_LONG=1 this is 1 GB. Long runs lay out what is small beside the memory they may take."""
    import os
    n = 17_000_000 if os.environ.get("STARFOLD_PYTHON_LONG") else 2_000_000
    done = subprocess.run([sys.executable, "-c", MEMORY, str(n), kind, str(rounds), memory], capture_output=True, text=True, check=True)
    grown, size = map(float, done.stdout.split())
    assert grown < max(0.25 * size, 32), f"{grown:.0f} MB more for {size:.0f} MB"


# ---- formulas

def test_formulas(clinics, pd, tmp_path):
    frames = {name: pd.DataFrame({**clinic, "sex": pd.Categorical(clinic["sex"])}) for name, clinic in clinics.items()}
    fit = sf.lib.logistic.run(frames, formula="dx ~ age + sex")
    assert list(fit.to_frame().index) == ["(intercept)", "age", "sexm"]
    files = {}
    for name, table in frames.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
        files[name] = str(tmp_path / f"{name}.csv")
    same = sf.lib.logistic.run(files, formula="dx ~ age + sex", levels={"sex": ["f", "m"]})
    np.testing.assert_allclose(fit["beta"], same["beta"], rtol=1e-9)
    alone = sf.lib.logistic.run({name: {**clinic} for name, clinic in clinics.items()}, formula="dx ~ age - 1")
    assert list(alone.to_frame().index) == ["age"]


# ---- numbers in place are the numbers of a copy, to the bit

def scattered(rng, kind, records, columns):
    """The same numbers in layouts that lie in memory in all ways."""
    if kind == "f8" or kind == "f4":
        plain = rng.normal(size=(records, columns)).astype(kind)
    else:
        plain = rng.integers(0, 100, size=(records, columns)).astype(kind)
    wide = np.zeros((records, 2 * columns + 1), kind)
    wide[:, 1::2] = plain
    tall = np.zeros((3 * records, columns), kind)
    tall[::3] = plain
    yield from (plain, np.asfortranarray(plain), wide[:, 1::2], tall[::3], plain[::-1].copy()[::-1], plain[:, ::-1].copy()[:, ::-1])


@pytest.mark.parametrize("kind", ["f8", "f4", "f2", "i1", "u2", "i4", "i8", "u8", "?"])
def test_in_place_and_copied_are_the_same_bits(rng, kind):
    program = sf.compile("input x : [*, p]\ninput y : [*]\noutput g = x' @ exp(-y / 100)\noutput s = sum[*](x)\n")
    for records, columns in [(1, 1), (7, 2), (511, 3), (513, 4), (1500, 7)]:
        y = rng.normal(size=records)
        views = list(scattered(rng, kind, records, columns))
        copied = program.run({"a": {"x": views[0].astype(float), "y": y}})
        for view in views:
            placed = program.run({"a": {"x": view, "y": y}}, memory="1MB")  # no room for a copy
            assert placed["g"].tobytes() == copied["g"].tobytes() and placed["s"].tobytes() == copied["s"].tobytes()


@pytest.mark.parametrize("kind", ["f8", "f4", "i8"])
def test_long_runs_lay_out_what_they_read_and_have_the_same_bits(rng, kind, pa):
    program = sf.compile("input x : [*, p]\nstate beta : [p] = ones(p)\nrepeat 30 {\n  trace t = sum(beta)\n  beta <- beta / 2 + x' @ exp(-abs(x @ beta)) / 1e6\n}\noutput beta\n")
    plain, _, wide, *_ = scattered(rng, kind, LARGE, 5)
    table = pa.table({name: np.ascontiguousarray(plain[:, i]) for i, name in enumerate("abcde")})
    fits = [program.run({"a": client}, memory=memory, **bind) for client, bind in (({"x": plain}, {}), ({"x": wide}, {}), (table, {"bind": {"x": list("abcde")}})) for memory in ("1MB", None)]
    assert len({(fit["beta"].tobytes(), fit.traces["t"].tobytes()) for fit in fits}) == 1


def test_chunks_in_place(rng, pa):
    x = rng.normal(size=(2000, 3))
    cuts = [0, 1, 1, 700, 1212, 1999, 2000]
    columns = {"u": pa.chunked_array([x[a:b, 0] for a, b in zip(cuts, cuts[1:])]), "v": pa.chunked_array([x[:, 1].astype("f4")[:5], x[:, 1].astype("f4")[5:]]),
               "w": pa.array(x[:, 2])}
    bind = {"x": ["u", "v", "w"]}
    placed = MATRIX.run({"a": pa.table(columns)}, bind=bind, memory="1MB")
    assert placed["q"].tobytes() == MATRIX.run({"a": pa.table(columns)}, bind=bind)["q"].tobytes()


def test_what_may_not_be_there_is_found_in_place(pa):
    x = np.ones(5000)
    x[[7, 4999]] = np.nan
    table = pa.table({"x": x})
    with pytest.raises(sf.DataError, match="x has 2 missing values"):
        sums(table, memory="1MB")
    assert np.isnan(sums(table, missing="nan", memory="1MB")[1])
    assert sums(table, missing="drop", memory="1MB") == (4998, 4998)
    whole = np.zeros(5000, "i8")
    whole[4000] = 2**53 + 1
    with pytest.raises(sf.DataError, match="2\\^53"):
        sums({"x": whole}, memory="1MB")
    whole[4000] = 2**60
    assert sums({"x": whole}, memory="1MB")[1] == 2**60
