"""Clients' data, in whatever form it comes, as the engine takes it: without copies where its layout allows."""
from __future__ import annotations

import datetime
import decimal
import os
import sys
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

import numpy as np

from starfold import _engine
from starfold._errors import DataError, UsageError

KINDS = ("a pandas, Polars, pyarrow, Spark or Dask table, a DuckDB relation, anything with the Arrow C stream interface, the path of a file, "
         "{'query': 'select ...'} or a dict of NumPy arrays")


def named(clients: Any) -> Dict[str, Any]:
    """Clients by name: a dict as it is; the members of a list as client_1, client_2, ...; a single table as the one client `data`."""
    if clients is None:
        return {}
    if isinstance(clients, Mapping):
        names = [str(name) for name in clients]
        if len(set(names)) != len(names):
            raise UsageError("two clients have one name")
        return dict(zip(names, clients.values()))
    if isinstance(clients, (list, tuple)):
        return {f"client_{i}": data for i, data in enumerate(clients, 1)}
    return {"data": clients}


def is_module_object(data: Any, module: str, *names: str) -> bool:
    """Whether it is an object of a library, which is not imported for the question."""
    return any(cls.__module__.split(".")[0] == module and cls.__name__ in names for cls in type(data).__mro__)


def is_spark(data: Any) -> bool:
    return any(cls.__module__.startswith("pyspark.") and cls.__name__ == "DataFrame" for cls in type(data).__mro__) and "pyspark.pandas" not in type(data).__module__


def is_dask(data: Any) -> bool:
    return any(cls.__module__.split(".")[0] in ("dask", "dask_expr") and cls.__name__ == "DataFrame" for cls in type(data).__mro__)


def is_distributed(data: Any) -> bool:
    return is_spark(data) or is_dask(data)


def bound_columns(bind: Optional[Mapping[str, Any]]) -> Dict[str, List[str]]:
    """Columns by input, as lists."""
    columns: Dict[str, List[str]] = {}
    for name, choice in (bind or {}).items():
        if isinstance(choice, str):
            columns[name] = [choice]
        elif isinstance(choice, Sequence) or hasattr(choice, "tolist"):
            columns[name] = [str(column) for column in choice]
        else:
            raise UsageError(f"bind: the columns of input {name} are a name, a list of names, or '*'")
        if not columns[name]:
            raise UsageError(f"bind: input {name} is given no column")
    return columns


def level_lists(levels: Optional[Mapping[str, Any]]) -> Dict[str, List[str]]:
    return {column: [str(level) for level in names] for column, names in (levels or {}).items()}


def wanted(program, columns: Mapping[str, List[str]], formula: Optional[str]) -> Optional[Set[str]]:
    """The columns that a run can need; None: all."""
    if formula is not None or any(names == ["*"] for names in columns.values()):
        return None
    names = {column for chosen in columns.values() for column in chosen}
    return names | {row["name"] for row in program._compiled.inputs() if row["federated"]}


def native(array: np.ndarray) -> np.ndarray:
    """An array whose numbers the engine knows, the same one where it can be."""
    if isinstance(array, np.ma.MaskedArray):
        if np.ma.is_masked(array):
            raise DataError("an array has masked values: fill them, with array.filled(...), or leave their records out")
        array = array.data
    if array.dtype.kind in "fiub" and array.dtype.itemsize <= 8:
        if not array.dtype.isnative:
            return array.astype(array.dtype.newbyteorder("="))
        # Fields of records may lie askew.
        return np.ascontiguousarray(array) if any(stride % array.dtype.itemsize for stride in array.strides) else array
    if array.dtype.kind == "f":  # longer than a double
        return array.astype(np.float64)
    raise DataError(f"an array of {'Python objects' if array.dtype.kind == 'O' else array.dtype} holds no numbers")


def given(data: Any, *, program=None, levels: Mapping[str, List[str]] = {}, wanted: Optional[Set[str]] = None, table: bool = False) -> Any:
    """What the engine takes for this client: a path, a query, or tables and arrays in memory. With `table` arrays become columns."""
    if isinstance(data, (str, os.PathLike)):
        return os.fspath(data)
    if isinstance(data, Mapping):
        if "query" in data and isinstance(data["query"], str):
            return {"query": data["query"], **({"path": os.fspath(data["path"])} if "path" in data else {})}
        return from_arrays(data, table, levels, wanted)
    if isinstance(data, np.ndarray):
        return from_array(data, program, levels, wanted)
    if is_module_object(data, "pandas", "DataFrame"):
        return from_pandas(data, levels, wanted)
    if is_module_object(data, "polars", "LazyFrame"):
        data = data.collect()
    for method in ("to_arrow_table", "fetch_arrow_table"):  # DuckDB relations of versions that have no stream
        if not hasattr(data, "__arrow_c_stream__") and hasattr(data, method):
            data = getattr(data, method)()
    if hasattr(data, "__arrow_c_stream__"):
        taken = _engine.Given()
        taken.add_stream(data.__arrow_c_stream__())
        return taken
    if hasattr(data, "__arrow_c_array__"):
        import pyarrow
        return given(pyarrow.table(data))
    raise DataError(f"a client's data is {KINDS}; not {type(data).__name__}")


def from_arrays(arrays: Mapping[str, Any], table: bool, levels: Mapping[str, List[str]] = {}, wanted: Optional[Set[str]] = None) -> "_engine.Given":
    taken = _engine.Given()
    columns = table and all(axes(value) in (1, None) for value in arrays.values())
    for name, value in arrays.items():
        label = str(name)
        try:
            if columns and axes(value) is None:
                taken.add_other(label, len(value), False)
            elif columns and is_module_object(value, "pandas", "Series"):
                add_pandas_column(taken, label, value, levels.get(label))
            elif columns and hasattr(value, "__arrow_c_stream__"):
                taken.add_stream(value.__arrow_c_stream__(), label)
            elif columns:
                add_numpy_column(taken, label, as_array(value), levels.get(label))
            else:
                taken.add_array(label, native(as_array(value)))
        except DataError as error:
            if wanted is None or label in wanted:  # what nobody asks for may be anything
                raise DataError(f"array {label}: {error.message}") from None
    return taken


def axes(value: Any) -> Optional[int]:
    """How many axes an array has; None for lists that are no array."""
    try:
        return np.ndim(value)
    except (ValueError, OverflowError):
        return None


def as_array(value: Any) -> np.ndarray:
    try:
        return value if isinstance(value, np.ma.MaskedArray) else np.asarray(value)
    except (ValueError, OverflowError):  # whose words may hold values
        raise DataError("its lists are no array: they differ in length, or hold what has no common type") from None


def from_array(array: np.ndarray, program, levels: Mapping[str, List[str]] = {}, wanted: Optional[Set[str]] = None) -> "_engine.Given":
    if array.dtype.names:  # named fields are columns
        taken = _engine.Given()
        for name in array.dtype.names:
            if wanted is not None and name not in wanted:
                taken.add_other(name, len(array), False)
                continue
            try:
                add_numpy_column(taken, name, array[name], levels.get(name))
            except DataError as error:
                raise DataError(f"column {name}: {error.message}") from None
        return taken
    inputs = [row["name"] for row in program._compiled.inputs() if row["federated"]] if program is not None else []
    if len(inputs) != 1:
        raise DataError(f"one array is given, but the program has {len(inputs)} federated inputs; give a dict of arrays named like them")
    return from_arrays({inputs[0]: array}, False)


# ---- columns that are arrays of NumPy: in a table what is masked, None, NaN or NaT is missing

def add_numpy_column(taken: "_engine.Given", name: str, array: np.ndarray, levels: Optional[List[str]] = None) -> None:
    mask = np.ma.getmaskarray(array) if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array) else None
    array = np.ma.getdata(array)
    kind = array.dtype.kind
    if kind in "OT":  # Python objects, and texts of any length
        add_objects(taken, name, array.astype(object), mask, levels)
    elif kind in "US":
        add_texts(taken, name, array, mask, levels)
    elif kind == "M":
        add_moments(taken, name, array, mask)
    elif kind in "fiub":
        taken.add_column(name, native(array), mask=mask)
    else:
        taken.add_other(name, len(array), False)


def add_texts(taken: "_engine.Given", name: str, array: np.ndarray, mask: Optional[np.ndarray], levels: Optional[List[str]]) -> None:
    there = np.ones(len(array), dtype=bool) if mask is None else ~mask
    if not there.any():
        add_nothing(taken, name, len(array), levels)
        return
    try:
        texts, places = np.unique(np.char.decode(array[there], "utf-8") if array.dtype.kind == "S" else array[there].astype(str), return_inverse=True)
    except UnicodeDecodeError:
        raise DataError("its bytes are no UTF-8 text") from None
    codes = np.full(len(array), -1, dtype=np.int64)
    codes[there] = places
    taken.add_column(name, codes, levels=whole_texts(texts.tolist()))


def add_nothing(taken: "_engine.Given", name: str, records: int, levels: Optional[List[str]]) -> None:
    """A column without any value: nobody can say of what kind it is, unless its levels are declared. Missing numbers fit whatever other clients have."""
    if levels:
        taken.add_column(name, np.full(records, -1, dtype=np.int64), levels=levels)
    else:
        taken.add_column(name, np.full(records, np.nan))


def whole_texts(texts: List[str]) -> List[str]:
    """The same texts, if all can be written in UTF-8."""
    try:
        for text in texts:
            text.encode("utf-8")
    except UnicodeEncodeError:  # whose words hold the value
        raise DataError(HALF_CHARACTER) from None
    return texts


HALF_CHARACTER = "a text in it has half a character (a lone surrogate), which UTF-8 cannot hold"
TRUTHS = (bool, np.bool_)
NUMBERS = (*TRUTHS, int, float, decimal.Decimal, np.integer, np.floating)


def is_number(value: Any) -> bool:
    """Whether it is one real number; NumPy calls spans of time integers."""
    return isinstance(value, NUMBERS) and not isinstance(value, np.timedelta64)


def add_objects(taken: "_engine.Given", name: str, array: np.ndarray, mask: Optional[np.ndarray], levels: Optional[List[str]]) -> None:
    """Values of Python: all truths, all numbers, all texts or all moments, and some may be missing."""
    missing = np.array([is_missing(value) for value in array], dtype=bool)
    if mask is not None:
        missing |= mask
    values = array[~missing]
    if not len(values):
        add_nothing(taken, name, len(array), levels)
    elif all(isinstance(value, str) for value in values):
        add_texts(taken, name, array, missing, levels)
    elif all(isinstance(value, TRUTHS) for value in values):
        truths = np.zeros(len(array), dtype=bool)
        truths[~missing] = values.astype(bool)
        taken.add_column(name, truths, mask=missing if missing.any() else None)
    elif all(is_number(value) for value in values):
        numbers = np.full(len(array), np.nan)
        numbers[~missing] = [as_double(value) for value in values]
        taken.add_column(name, numbers)
    elif all(isinstance(value, (datetime.date, np.datetime64)) for value in values):
        there = as_moments(values)
        moments = np.full(len(array), np.datetime64("NaT"), dtype=there.dtype)
        moments[~missing] = there
        add_moments(taken, name, moments)
    else:
        taken.add_other(name, len(array), False)


def is_missing(value: Any) -> bool:
    """None, NaN, NaT, and what pandas has for them."""
    return value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, (float, np.floating)) and value != value) or (
        isinstance(value, np.datetime64) and np.isnat(value)) or (isinstance(value, decimal.Decimal) and value.is_qnan())


def as_double(value: Any) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    except ValueError:  # a decimal that signals
        raise DataError("it holds a decimal that is a signaling NaN, which is no number") from None
    if isinstance(value, (int, np.integer)) and number != int(value):
        raise DataError("it holds a whole number that no double is equal to; numbers are doubles, which hold whole numbers up to 2^53")
    return number


def in_utc(value: Any) -> Any:
    """A moment as NumPy takes it: without a zone."""
    if hasattr(value, "to_datetime64"):  # pandas, whose moments have nanoseconds
        return value.to_datetime64()
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        try:
            return value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        except OverflowError:
            raise DataError("it holds a moment that is outside of the years 1 to 9999 in UTC") from None
    return value


def as_moments(values: Sequence[Any]) -> np.ndarray:
    """Moments in microseconds; in nanoseconds if some have them and all can."""
    plain = [in_utc(value) for value in values]
    places: Dict[Any, List[int]] = {}
    for i, value in enumerate(plain):
        places.setdefault(value.dtype if isinstance(value, np.datetime64) else np.dtype("datetime64[us]"), []).append(i)

    def all_in(unit: str) -> np.ndarray:
        moments = np.empty(len(plain), dtype=f"datetime64[{unit}]")
        for dtype, own in places.items():
            moments[own] = in_unit(np.array([plain[i] for i in own], dtype=dtype), unit)
        return moments
    moments = all_in("us")
    if any(np.datetime_data(dtype)[0] in ("ns", "ps", "fs", "as") for dtype in places):
        try:
            finer = all_in("ns")
        except DataError:
            return moments
        if (finer != moments).any():
            return finer
    return moments


def in_unit(moments: np.ndarray, unit: str) -> np.ndarray:
    """Moments in another unit, which is checked to hold them: NumPy's own numbers may run over in silence."""
    units = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "generic")
    try:
        there = moments.astype(f"datetime64[{unit}]")
        held = units.index(np.datetime_data(moments.dtype)[0]) > units.index(unit) or bool(((there.astype(moments.dtype) == moments) | np.isnat(moments)).all())
    except OverflowError:
        held = False
    if not held:
        raise DataError(f"it holds a moment too far from 1970 to be counted in {unit}")
    return there


# ---- pandas: its columns are NumPy arrays, which are read where they are

def from_pandas(table, levels: Mapping[str, List[str]], wanted: Optional[Set[str]]) -> "_engine.Given":
    taken = _engine.Given()
    if len(set(map(str, table.columns))) != len(table.columns):
        raise DataError("two columns of a table have one name")
    for i, name in enumerate(table.columns):
        label = str(name)
        if wanted is not None and label not in wanted:
            taken.add_other(label, len(table), False)
            continue
        try:
            add_pandas_column(taken, label, table.iloc[:, i], levels.get(label))
        except DataError as error:
            raise DataError(f"column {label}: {error.message}") from None
    return taken


def add_pandas_column(taken: "_engine.Given", name: str, column, levels: Optional[List[str]]) -> None:
    import pandas
    dtype = column.dtype
    if isinstance(dtype, pandas.CategoricalDtype) and not len(dtype.categories):
        add_nothing(taken, name, len(column), levels)
    elif isinstance(dtype, pandas.CategoricalDtype):
        codes = column.cat.codes.to_numpy()
        taken.add_column(name, native(codes), levels=whole_texts([str(category) for category in dtype.categories]))
    elif isinstance(dtype, pandas.DatetimeTZDtype):
        add_moments(taken, name, column.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy())
    elif isinstance(dtype, np.dtype) and dtype.kind == "M":
        add_moments(taken, name, column.to_numpy())
    elif isinstance(dtype, np.dtype) and dtype.kind in "fiub":
        taken.add_column(name, native(column.to_numpy()))
    elif hasattr(column.array, "_mask") and hasattr(column.array, "_data") and column.array._data.dtype.kind in "fiub":  # numbers that may be missing
        taken.add_column(name, native(column.array._data), mask=column.array._mask)
    else:
        add_other_column(taken, name, column, levels)


def add_moments(taken: "_engine.Given", name: str, moments: np.ndarray, mask: Optional[np.ndarray] = None) -> None:
    unit, count = np.datetime_data(moments.dtype)
    if unit not in ("s", "ms", "us", "ns") or count != 1 or not moments.dtype.isnative:
        unit = unit if unit in ("ms", "us", "ns") else "ns" if unit in ("ps", "fs", "as") else "s"
        moments = in_unit(moments, unit)
    taken.add_column(name, native(moments.view(np.int64)), unit=unit, mask=mask)


def add_other_column(taken: "_engine.Given", name: str, column, levels: Optional[List[str]]) -> None:
    """Texts, days, decimals, and what Arrow holds for pandas."""
    import pandas
    if levels is not None:
        # What is no level must be told from what is missing: it gets a place behind all levels.
        texts = column.astype("object").map(str, na_action="ignore")
        codes = np.array(pandas.Index(levels, dtype=object).get_indexer(texts), dtype=np.int64)
        codes[(codes < 0) & column.notna().to_numpy()] = len(levels)
        taken.add_column(name, codes, levels=[*levels, "\x00"])
        return
    try:
        import pyarrow
        array = pyarrow.chunked_array([pyarrow.array(column, from_pandas=True)]) if not isinstance(column.dtype, getattr(pandas, "ArrowDtype", ())) \
            else pyarrow.chunked_array([pyarrow.array(column.array)])
        taken.add_stream(array.__arrow_c_stream__(), name)
    except ImportError:
        kind = pandas.api.types.infer_dtype(column, skipna=True)
        if kind in ("decimal", "mixed-integer-float", "integer", "floating", "boolean"):
            taken.add_column(name, column.astype("float64").to_numpy())
        elif kind == "date":
            add_moments(taken, name, pandas.to_datetime(column).to_numpy())
        else:
            taken.add_other(name, len(column), kind == "string")
    except UnicodeEncodeError:
        raise DataError(HALF_CHARACTER) from None
    except OverflowError:
        raise DataError("it holds a whole number that 64 bits cannot hold") from None
    except Exception as error:
        if type(error).__module__.startswith("pyarrow"):
            taken.add_other(name, len(column), False)
        else:
            raise


def all_given(program, clients: Any, columns: Mapping[str, List[str]], levels: Mapping[str, List[str]], formula: Optional[str]) -> List[Tuple[str, Any]]:
    needed = wanted(program, columns, formula)
    result = []
    for name, data in named(clients).items():
        try:
            result.append((name, given(data, program=program, levels=levels, wanted=needed, table=formula is not None)))
        except DataError as error:
            error.args, error.rendered = (f"client {name}: {error.message}", ), ""
            raise
    return result


if sys.version_info < (3, 10):
    raise ImportError("starfold needs Python 3.10 or later")
