// Tables and arrays of other libraries, taken where they lie.
#include "module.h"
#include "starfold/base/error.h"
#include "starfold/data/arrays/arrow.h"

namespace starfold::python {
namespace {

// Keeps an object of Python until nothing reads from it any more, on whatever thread that is.
std::shared_ptr<const void> keep(const Array& array) {
  auto* held = new Array(array);
  return {static_cast<const Array*>(held), [](const Array* p) {
            if (Py_IsInitialized() == 0) return;
            const nb::gil_scoped_acquire acquired;
            delete p;
          }};
}

Cells cells_of(nb::dlpack::dtype type) {
  using Code = nb::dlpack::dtype_code;
  const auto code = static_cast<Code>(type.code);
  if (type.lanes == 1 && code == Code::Float) {
    if (type.bits == 64) return Cells::f64;
    if (type.bits == 32) return Cells::f32;
    if (type.bits == 16) return Cells::f16;
  }
  if (type.lanes == 1 && code == Code::Bool) return Cells::truths;
  if (type.lanes == 1 && code == Code::Int) {
    if (type.bits == 8) return Cells::i8;
    if (type.bits == 16) return Cells::i16;
    if (type.bits == 32) return Cells::i32;
    if (type.bits == 64) return Cells::i64;
  }
  if (type.lanes == 1 && code == Code::UInt) {
    if (type.bits == 8) return Cells::u8;
    if (type.bits == 16) return Cells::u16;
    if (type.bits == 32) return Cells::u32;
    if (type.bits == 64) return Cells::u64;
  }
  throw nb::type_error("an array of numbers is needed");
}

Cells cells_named(const std::string& unit, Cells otherwise) {
  static const std::map<std::string, Cells> known = {{"s", Cells::seconds},
                                                     {"ms", Cells::millis},
                                                     {"us", Cells::micros},
                                                     {"ns", Cells::nanos},
                                                     {"D", Cells::days}};
  const auto found = known.find(unit);
  return found == known.end() ? otherwise : found->second;
}

template <typename Of>
Of guarded(const std::function<Of()>& work) {
  try {
    return work();
  } catch (const RunError&) {
    raise_trouble(nullptr);
  }
}

// All columns of a stream, or the one column that it is.
void add_stream(Given& given, const nb::capsule& capsule, const std::string& name) {
  auto* stream =
      static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule.ptr(), "arrow_array_stream"));
  if (stream == nullptr) throw nb::python_error();
  if (stream->release == nullptr) throw nb::value_error("this stream was read already");
  ArrowArrayStream own = *stream;
  stream->release = nullptr;  // it is ours now
  std::vector<MemoryColumn> columns;
  try {
    const nb::gil_scoped_release released;
    columns = arrow_columns(own, name);
  } catch (...) {
    raise_trouble(nullptr);
  }
  for (MemoryColumn& column : columns) given.columns.push_back(std::move(column));
  given.table = true;
}

// One column from an array with one axis; `unit` makes moments of it, `mask` hides values, `levels` makes it places in them.
void add_column(Given& given, const std::string& name, const Array& array, const std::string& unit,
                const std::optional<Array>& mask,
                const std::optional<std::vector<std::string>>& levels) {
  const ArrayView view = view_of(array);
  if (view.shape.size() != 1) throw nb::value_error("a column has one axis");
  CellBlock block = column_of(view, 0, 0);
  block.cells = cells_named(unit, view.cells);
  if (!unit.empty() && unit != "D") {  // NaT
    block.has_absent = true;
    block.absent = std::numeric_limits<std::int64_t>::min();
  }
  if (mask) {
    const ArrayView hidden = view_of(*mask);
    if (hidden.shape != view.shape || hidden.cells != Cells::truths)
      throw nb::value_error("a mask has one truth per value");
    block.hidden = static_cast<const std::uint8_t*>(hidden.data);
    block.hidden_stride = hidden.strides[0];
    const auto both = std::make_pair(block.owner, hidden.owner);
    block.owner =
        std::make_shared<std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>>(both);
  }
  MemoryColumn column;
  if (levels) {
    auto own = std::make_shared<Categorical>();
    own->levels = *levels;
    column.levels = own;
    block.level_texts = std::make_shared<std::vector<std::string>>(*levels);
    block.has_absent = true;
    block.absent = -1;
  }
  column.info = memory_column_info(name, block.cells, levels.has_value(), false);
  column.blocks.push_back(std::move(block));
  given.columns.push_back(std::move(column));
  given.table = true;
}

// A column that a program cannot compute with, so that messages can say so.
void add_other(Given& given, const std::string& name, std::size_t records, bool text) {
  MemoryColumn column;
  column.info = text ? memory_column_info(name, Cells::text32, false, false)
                     : memory_column_info(name, Cells::other, false, false);
  CellBlock block;
  block.cells = Cells::other;
  block.count = records;
  column.blocks.push_back(std::move(block));
  given.columns.push_back(std::move(column));
  given.table = true;
}

}  // namespace

std::shared_ptr<const Table> Given::data() const {
  if (table) return memory_table(columns);
  return std::make_shared<GivenArrays>(arrays);
}

ArrayView view_of(const Array& array) {
  ArrayView view;
  view.cells = cells_of(array.dtype());
  const auto width = static_cast<std::int64_t>(array.itemsize());
  for (std::size_t axis = 0; axis < array.ndim(); ++axis) {
    view.shape.push_back(static_cast<std::int64_t>(array.shape(axis)));
    view.strides.push_back(array.stride(axis) * width);
  }
  view.data = array.data();
  view.owner = keep(array);
  return view;
}

void bind_tables(nb::module_& module) {
  nb::class_<Given>(module, "Given")
      .def(nb::init<>())
      .def("add_stream", &add_stream, nb::arg("capsule"), nb::arg("name") = "")
      .def("add_column", &add_column, nb::arg("name"), nb::arg("array"), nb::arg("unit") = "",
           nb::arg("mask") = nb::none(), nb::arg("levels") = nb::none())
      .def("add_other", &add_other)
      .def("add_array", [](Given& given, const std::string& name,
                           const Array& array) { given.arrays[name] = view_of(array); })
      .def_prop_ro("columns",
                   [](const Given& given) {
                     std::vector<std::pair<std::string, std::string>> columns;
                     for (const MemoryColumn& column : given.columns)
                       columns.emplace_back(column.info.name, column.info.type);
                     return columns;
                   })
      .def_prop_ro("records", [](const Given& given) -> std::int64_t {
        if (!given.table) return -1;
        return guarded<std::int64_t>([&] { return *given.data()->known_records(); });
      });
}

}  // namespace starfold::python
