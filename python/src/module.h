// The Python module starfold._engine: the library's functions for the package around it, which gives them their Python form. Nothing
// here prints, keeps state between calls, or holds Python's lock while it computes.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <memory>
#include <string>

#include "starfold/data/arrays/given.h"
#include "starfold/federation/program.h"
#include "starfold/study/run.h"

namespace starfold::python {

namespace nb = nanobind;

// A program that was compiled, perhaps with errors.
struct Program {
  std::shared_ptr<const CompiledProgram> compiled;
};

// What a client brings: columns that are added one by one, or arrays.
struct Given {
  std::vector<MemoryColumn> columns;
  std::map<std::string, ArrayView> arrays;
  bool table = false;

  std::shared_ptr<const Table> data() const;
};

using Array = nb::ndarray<nb::ro, nb::device::cpu>;

// A view of an array that keeps it; TypeError when it holds no numbers.
ArrayView view_of(const Array& array);
// The numbers of a small array.
Tensor tensor_of(const Array& array);
// A new NumPy array with these numbers.
nb::object array_of(const Tensor& tensor);
nb::object as_dict(const Results& results);

// Calls `work` on a thread of its own, without Python's lock. Meanwhile `look` is called with it some twenty times a second.
// When a signal such as Ctrl-C comes, or `look` fails, `stop` is set, and what came is raised once the work has ended. What the
// work throws becomes an exception of the package; `program` shows where.
void work_aside(const std::function<void()>& work, std::atomic<bool>& stop,
                const std::function<void()>& look, const CompiledProgram* program);

// The exception that is being handled, as one of the package: starfold._errors.
[[noreturn]] void raise_trouble(const CompiledProgram* program);

void bind_programs(nb::module_& module);
void bind_tables(nb::module_& module);
void bind_runs(nb::module_& module);
void bind_machines(nb::module_& module);
void bind_carried(nb::module_& module);

}  // namespace starfold::python
