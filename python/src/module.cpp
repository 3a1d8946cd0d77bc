#include "module.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "starfold/base/data_error.h"
#include "starfold/base/version.h"
#include "starfold/study/output/check_report.h"
#include "starfold/study/output/trouble.h"

namespace starfold::python {
namespace {

bool is_data() {
  try {
    throw;
  } catch (const DataError&) {
    return true;
  } catch (...) {
    return false;
  }
}

const char* class_of(Trouble::Kind kind) {
  if (is_data()) return "DataError";
  switch (kind) {
    case Trouble::Kind::refused:
      return "PolicyError";
    case Trouble::Kind::usage:
      return "UsageError";
    default:
      return "RunError";
  }
}

}  // namespace

void raise_trouble(const CompiledProgram* program) {
  const Trouble trouble = current_trouble();
  const SourceMap* sources = program != nullptr ? &program->compilation.sources : nullptr;
  const nb::object type = nb::module_::import_("starfold._errors").attr(class_of(trouble.kind));
  nb::object error = type(trouble.message);
  error.attr("rendered") = trouble_text(trouble, sources);
  if (trouble.where && sources != nullptr) {
    const Source& source = (*sources)[trouble.where->file];
    const Position from = source.position(trouble.where->begin);
    const Position to = source.position(trouble.where->end);
    error.attr("span") = nb::make_tuple(from.line, from.column, to.line, to.column);
    error.attr("file") = source.name();
  }
  if (!trouble.client.empty()) error.attr("client") = trouble.client;
  if (!trouble.rule.empty()) {
    error.attr("rule") = trouble.rule;
    error.attr("code") = trouble.rule;
  }
  PyErr_SetObject(type.ptr(), error.ptr());
  throw nb::python_error();
}

void work_aside(const std::function<void()>& work, std::atomic<bool>& stop,
                const std::function<void()>& look, const CompiledProgram* program) {
  std::exception_ptr failure;
  std::exception_ptr interrupted;  // an exception of Python
  {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    const nb::gil_scoped_release released;
    std::thread worker([&] {
      try {
        work();
      } catch (...) {
        failure = std::current_exception();
      }
      const std::lock_guard lock(mutex);
      done = true;
      changed.notify_one();
    });
    std::unique_lock lock(mutex);
    while (!done) {
      changed.wait_for(lock, std::chrono::milliseconds(50), [&] { return done; });
      lock.unlock();
      if (!interrupted) {
        const nb::gil_scoped_acquire acquired;
        try {
          if (PyErr_CheckSignals() != 0) throw nb::python_error();
          if (look) look();
        } catch (...) {
          interrupted = std::current_exception();
          stop = true;
        }
      }
      lock.lock();
    }
    lock.unlock();
    worker.join();
  }
  if (interrupted) std::rethrow_exception(interrupted);
  if (!failure) return;
  try {
    std::rethrow_exception(failure);
  } catch (...) {
    raise_trouble(program);
  }
}

Tensor tensor_of(const Array& array) { return copy_of(view_of(array)); }

nb::object array_of(const Tensor& tensor) {
  auto* numbers = new std::vector<double>(tensor.data);
  nb::capsule owner(numbers, [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
  std::vector<std::size_t> shape(tensor.shape.begin(), tensor.shape.end());
  return nb::cast(
      nb::ndarray<nb::numpy, double>(numbers->data(), shape.size(), shape.data(), owner));
}

nb::object as_dict(const Results& results) {
  nb::dict outputs;
  for (const auto& [name, tensor] : results.outputs) outputs[name.c_str()] = array_of(tensor);
  nb::dict traces;
  for (const auto& [name, values] : results.traces)
    traces[name.c_str()] = array_of(Tensor({static_cast<std::int64_t>(values.size())}, values));
  nb::dict all;
  all["outputs"] = outputs;
  all["traces"] = traces;
  all["iterations"] = results.iterations;
  return all;
}

}  // namespace starfold::python

NB_MODULE(_engine, module) {
  using namespace starfold::python;
  module.doc() = "Starfold's library. Use the package starfold, which is made of it.";
  module.attr("version") = std::string(starfold::version());
  bind_programs(module);
  bind_tables(module);
  bind_runs(module);
  bind_machines(module);
  bind_carried(module);
}
