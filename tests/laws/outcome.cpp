// What an evaluation of a case comes to, and whether two of them agree. No test framework: fuzzers use it too.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cmath>

#include "starfold/base/error.h"
#include "tests/laws/law.h"

namespace starfold::laws {

Compiled compiled(const Case& c, bool optimize, bool base, bool exact) {
  ProgramOptions options;
  options.signature = c.options.signature;
  options.planning.optimize = optimize;
  options.planning.exact = exact;
  options.base = base;
  Compiled result{compile_program(c.program.text, options), ""};
  const Compilation& compilation = result.program->compilation;
  if (compilation.ok()) return result;
  for (const Diagnostic& d : compilation.diagnostics.items()) {
    if (info(d.code).severity != Severity::error) continue;
    result.error = "it does not compile: " + d.message + " at `" +
                   std::string(compilation.sources.text(d.primary.span)) + "`";
    break;
  }
  return result;
}

bool has_no_derivative(const Case& c) {
  ProgramOptions options;
  options.signature = c.options.signature;
  const auto program = compile_program(c.program.text, options);
  bool found = false;
  for (const Diagnostic& d : program->compilation.diagnostics.items()) {
    const bool none = d.code == Code::NoDerivative || d.code == Code::DerivativeTooLarge;
    if (info(d.code).severity == Severity::error && !none) return false;
    found = found || none;
  }
  return found;
}

Outcome run_engine(const Case& c, const CompiledProgram& program, RunOptions options) {
  Outcome outcome;
  options.signature = c.options.signature;
  if (options.threads == 0) options.threads = 1;
  try {
    const auto shared = std::shared_ptr<const CompiledProgram>(std::shared_ptr<void>(), &program);
    outcome.report = run_local(shared, c.federation.clients, c.federation.settings, options);
  } catch (const RunError& error) {
    outcome.error = error.what();
  }
  return outcome;
}

Outcome run_reference(const Case& c, const CompiledProgram& program) {
  Outcome outcome;
  try {
    outcome.report.emplace();
    outcome.report->results = evaluate_reference(program.compilation.program, c.federation.clients,
                                                 c.federation.settings);
  } catch (const RunError& error) {
    outcome.report.reset();
    outcome.error = error.what();
  }
  return outcome;
}

bool close(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::fabs(a - b) <= tolerance * (1 + std::max(std::fabs(a), std::fabs(b)));
}

namespace {

template <typename Same>
Verdict compare_entries(const Tensor& got, const Tensor& want, const Same& same) {
  if (got.shape != want.shape) {
    return fmt::format("shape [{}], not [{}]", fmt::join(got.shape, ", "),
                       fmt::join(want.shape, ", "));
  }
  if (got.data.size() != want.data.size()) return "a tensor without all its entries";
  for (std::size_t i = 0; i < got.data.size(); ++i) {
    if (same(got.data[i], want.data[i])) continue;
    return fmt::format("entry {} is {}, not {}\n  got  {}\n  want {}", i, got.data[i], want.data[i],
                       show(got), show(want));
  }
  return std::nullopt;
}

template <typename Same>
Verdict compare_results(const Results& got, const Results& want, const Same& same) {
  if (got.outputs.size() != want.outputs.size()) {
    return fmt::format("{} outputs, not {}", got.outputs.size(), want.outputs.size());
  }
  for (const auto& [name, tensor] : want.outputs) {
    const auto found = got.outputs.find(name);
    if (found == got.outputs.end()) return "no output " + name;
    if (const Verdict broken = compare_entries(found->second, tensor, same)) {
      return fmt::format("output {}: {}", name, *broken);
    }
  }
  if (got.iterations != want.iterations) {
    return fmt::format("iterations [{}], not [{}]", fmt::join(got.iterations, ", "),
                       fmt::join(want.iterations, ", "));
  }
  const auto as_tensor = [](const std::vector<double>& values) {
    return Tensor({static_cast<std::int64_t>(values.size())}, values);
  };
  for (const auto& [name, values] : want.traces) {
    const auto found = got.traces.find(name);
    const std::vector<double> traced =
        found == got.traces.end() ? std::vector<double>{} : found->second;
    if (const Verdict broken = compare_entries(as_tensor(traced), as_tensor(values), same)) {
      return fmt::format("trace {}: {}", name, *broken);
    }
  }
  for (const auto& [name, values] : got.traces) {
    if (!values.empty() && want.traces.count(name) == 0) return "another trace, " + name;
  }
  return std::nullopt;
}

bool same_number(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

}  // namespace

Verdict compare(const Tensor& got, const Tensor& want, double tolerance) {
  return compare_entries(got, want, [&](double a, double b) { return close(a, b, tolerance); });
}

Verdict compare(const Outcome& got, const Outcome& want, double tolerance) {
  if (!got.report && !want.report)
    return Verdict::nothing();  // what stops one evaluation stops the other
  if (!got.report) return "only one evaluation stopped: " + got.error;
  if (!want.report) return "only the other evaluation stopped: " + want.error;
  return compare_results(got.report->results, want.report->results,
                         [&](double a, double b) { return close(a, b, tolerance); });
}

Verdict same_bits(const Tensor& got, const Tensor& want) {
  return compare_entries(got, want, same_number);
}

Verdict same_bits(const Results& got, const Results& want) {
  return compare_results(got, want, same_number);
}

std::string show(const Tensor& tensor) {
  return fmt::format("[{}]{{{}}}", fmt::join(tensor.shape, ", "), fmt::join(tensor.data, ", "));
}

std::string show(const Case& c) {
  std::string text = c.program.text.text;
  for (const auto& [name, module] : c.program.text.modules) {
    text += fmt::format("--- module {}\n{}", name, module);
  }
  text += "--- federation\n";
  for (const Client& client : c.federation.clients) {
    text += "client " + client.name + "\n";
    for (const auto& [name, tensor] : client.arrays)
      text += fmt::format("  {} = {}\n", name, show(tensor));
  }
  for (const auto& [name, tensor] : c.federation.settings.shared)
    text += fmt::format("set {} = {}\n", name, show(tensor));
  for (const auto& [name, value] : c.federation.settings.sizes)
    text += fmt::format("set {} = {}\n", name, value);
  return text;
}

}  // namespace starfold::laws
