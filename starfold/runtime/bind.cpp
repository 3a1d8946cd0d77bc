#include "starfold/runtime/bind.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "starfold/base/error.h"
#include "starfold/base/suggest.h"

namespace starfold {
namespace {

std::string shape_text(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

// Solves sizes from extents, one unknown at a time, and remembers who said what.
class Solver {
 public:
  Solver(SizeValues known, std::map<std::string, std::string> from)
      : values_(std::move(known)), from_(std::move(from)) {}

  // `place` is where the size is written.
  void add(const Size& size, std::int64_t extent, std::string where, Span place) {
    open_.push_back({size, extent, std::move(where), place});
  }

  SizeValues solve() {
    for (const Equation& equation : open_) {
      if (equation.extent < 1)
        throw RunError(
            fmt::format("{} is {}; sizes must be positive", equation.where, equation.extent),
            equation.place);
    }
    bool progress = true;
    while (progress) {
      progress = false;
      for (Equation& equation : open_) progress = step(equation) || progress;
      std::erase_if(open_, [](const Equation& equation) { return equation.closed; });
    }
    // Another equation might have helped; now none will.
    for (const Equation& equation : open_) {
      const std::vector<std::string> open = unknown(equation);
      if (open.size() > 1) continue;
      throw RunError(
          fmt::format("{} is {}, but no positive {} makes {} equal to it", equation.where,
                      equation.extent, open[0], equation.size.to_string()),
          equation.place);
    }
    return values_;
  }

 private:
  struct Equation {
    Size size;
    std::int64_t extent = 0;
    std::string where;
    Span place;
    bool closed = false;
  };

  std::vector<std::string> unknown(const Equation& equation) const {
    std::vector<std::string> names;
    for (const std::string& name : equation.size.variables()) {
      if (values_.count(name) == 0) names.push_back(name);
    }
    return names;
  }

  bool step(Equation& equation) {
    const std::vector<std::string> open = unknown(equation);
    if (open.empty()) {
      check(equation);
      return equation.closed = true;
    }
    if (open.size() > 1) return false;
    const std::optional<std::int64_t> value = solution(equation, open[0]);
    if (!value) return false;
    values_[open[0]] = *value;
    from_[open[0]] = equation.where;
    return equation.closed = true;
  }

  // The positive value of the one unknown; found by search where it does not stand alone, as in p*p.
  std::optional<std::int64_t> solution(const Equation& equation, const std::string& name) const {
    const std::optional<std::int64_t> linear =
        equation.size.solve_for(name, values_, equation.extent);
    if (linear) return *linear >= 1 ? linear : std::nullopt;
    constexpr std::int64_t most = 10000;
    SizeValues trial = values_;
    for (std::int64_t value = 1; value <= std::min(equation.extent, most); ++value) {
      trial[name] = value;
      if (equation.size.evaluate(trial) == equation.extent) return value;
    }
    return std::nullopt;
  }

  void check(const Equation& equation) const {
    const std::optional<std::int64_t> expected = equation.size.evaluate(values_);
    if (expected && *expected == equation.extent) return;
    std::string reason;
    for (const std::string& name : equation.size.variables()) {
      const auto from = from_.find(name);
      reason += fmt::format("{}{} = {}{}", reason.empty() ? "" : ", ", name, values_.at(name),
                            from == from_.end() ? "" : fmt::format(" (from {})", from->second));
    }
    throw RunError(fmt::format("{} is {}, but its size {}{} is {}", equation.where, equation.extent,
                               equation.size.to_string(), reason.empty() ? "" : " with " + reason,
                               expected ? std::to_string(*expected) : "too large"),
                   equation.place);
  }

  SizeValues values_;
  std::map<std::string, std::string> from_;
  std::vector<Equation> open_;
};

void add_equations(Solver& solver, const ir::Input& input, const Shape& shape,
                   const std::string& owner) {
  if (shape.size() != input.type.rank()) {
    throw RunError(
        fmt::format("{}input {} is declared {} and needs an array with {} {}, but its array is {}",
                    owner, input.name, input.type.to_string(), input.type.rank(),
                    input.type.rank() == 1 ? "axis" : "axes", shape_text(shape)),
        input.span);
  }
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (input.type.dims[axis].star) continue;
    solver.add(input.type.dims[axis].size, shape[axis],
               fmt::format("{}input {}, axis {}", owner, input.name, axis + 1), input.span);
  }
}

}  // namespace

std::optional<Shape> Client::shape(const ir::Input& input) const {
  if (table) {
    const auto place = table->inputs().find(input.name);
    if (place == table->inputs().end()) return std::nullopt;
    const auto columns = static_cast<std::int64_t>(place->second.count);
    if (input.type.rank() == 1) return Shape{table->records()};
    return *input.type.record_axis() == 0 ? Shape{table->records(), columns}
                                          : Shape{columns, table->records()};
  }
  const auto found = arrays.find(input.name);
  return found == arrays.end() ? std::nullopt : std::optional(found->second.shape);
}

Tensor Client::array(const ir::Input& input) const {
  if (!table) return arrays.at(input.name);
  Tensor result(*shape(input));
  const RecordTable::Place place = table->inputs().find(input.name)->second;
  const bool star_first = *input.type.record_axis() == 0;
  const auto records = static_cast<std::size_t>(table->records());
  constexpr std::size_t stride = RecordTable::kept_records;
  std::vector<double> block(table->columns() * stride);
  const auto cursor = table->read(0, stride, stride);
  for (std::size_t first = 0; first < records;) {
    const std::size_t count = cursor->next(block.data());
    for (std::size_t c = 0; c < place.count; ++c) {
      const double* from = block.data() + (place.first + c) * stride;
      double* to =
          result.data.data() + (star_first ? first * place.count + c : c * records + first);
      for (std::size_t r = 0; r < count; ++r) to[star_first ? r * place.count : r] = from[r];
    }
    first += count;
  }
  return result;
}

SizeValues bind_settings(const ir::Program& program, const Settings& settings) {
  std::vector<std::string> names;
  SizeValues known;
  std::map<std::string, std::string> from;
  for (const ir::SizeVariable& size : program.sizes) {
    names.push_back(size.name);
    const auto set = settings.sizes.find(size.name);
    if (set != settings.sizes.end()) {
      if (set->second < 1)
        throw RunError(fmt::format("the size {} is set to {}; sizes must be positive", size.name,
                                   set->second));
      known[size.name] = set->second;
      from[size.name] = "its setting";
    } else if (size.value) {
      known[size.name] = *size.value;
      from[size.name] = "its declaration";
    }
  }
  Solver solver(known, from);
  for (const ir::Input& input : program.inputs) {
    names.push_back(input.name);
    const auto set = settings.shared.find(input.name);
    if (input.type.federated()) {
      if (set != settings.shared.end()) {
        throw RunError(fmt::format("input {} is {}: it comes from the clients and cannot be set",
                                   input.name, input.type.to_string()),
                       input.span);
      }
      continue;
    }
    if (set != settings.shared.end()) {
      add_equations(solver, input, set->second.shape, "");
    } else if (input.fallback == ir::no_node) {
      throw RunError(
          fmt::format("the shared input {} has no value and no default; set it with --set {}=...",
                      input.name, input.name),
          input.span);
    }
  }
  const auto unknown = [&](const std::string& name) {
    const std::string suggestion = nearest(name, names);
    throw RunError(
        fmt::format("the program has no shared input or size named {}{}", name,
                    suggestion.empty() ? "" : fmt::format("; did you mean {}?", suggestion)));
  };
  const auto declared = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const auto& [name, value] : settings.sizes) {
    if (!declared(name)) unknown(name);
  }
  for (const auto& [name, value] : settings.shared) {
    if (!declared(name)) unknown(name);
  }
  return solver.solve();
}

namespace {

Shape shape_at(const Client& client, const ir::Input& input) {
  if (std::optional<Shape> shape = client.shape(input)) return *std::move(shape);
  throw RunError(fmt::format("client {} has no array for input {} ({})", client.name, input.name,
                             input.type.to_string()),
                 input.span);
}

}  // namespace

std::map<std::string, std::int64_t> record_counts(const ir::Program& program,
                                                  const Client& client) {
  std::map<std::string, std::int64_t> counts;
  std::map<std::string, std::string> counted;
  for (const ir::Input& input : program.inputs) {
    if (!input.type.federated()) continue;
    const Shape shape = shape_at(client, input);
    if (shape.size() != input.type.rank()) continue;  // reported with the sizes
    const std::int64_t count = shape[*input.type.record_axis()];
    const auto rows = static_cast<std::int64_t>(client.shares ? client.shares->clients : 1);
    if (input.type.record_set() == ir::client_set && count != rows) {
      throw RunError(fmt::format("client {}: input {} is {} and needs exactly one row, but has {}",
                                 client.name, input.name, input.type.to_string(), count),
                     input.span);
    }
    const auto [known, fresh] = counts.emplace(input.type.record_set(), count);
    if (fresh) {
      counted[input.type.record_set()] = input.name;
    } else if (known->second != count) {
      throw RunError(fmt::format("client {}: inputs {} and {} must have the same number of "
                                 "records, but have {} and {}",
                                 client.name, counted[input.type.record_set()], input.name,
                                 known->second, count),
                     input.span);
    }
  }
  return counts;
}

SizeValues bind_client(const ir::Program& program, const Client& client, SizeValues known,
                       std::map<std::string, std::string> known_from) {
  Solver solver(std::move(known), std::move(known_from));
  const std::string owner = fmt::format("client {}, ", client.name);
  for (const ir::Input& input : program.inputs) {
    if (!input.type.federated()) continue;
    add_equations(solver, input, shape_at(client, input), owner);
  }
  record_counts(program, client);
  return solver.solve();
}

void require_sizes(const ir::Program& program, const SizeValues& sizes) {
  for (const ir::SizeVariable& size : program.sizes) {
    if (sizes.count(size.name) != 0) continue;
    throw RunError(fmt::format("no input determines the size {}; set it with --set {}=...",
                               size.name, size.name),
                   size.span);
  }
  for (const ir::NameType& name : program.name_types) {
    for (const Dim& dim : name.type.dims) {
      if (dim.star) continue;
      const std::optional<std::int64_t> value = dim.size.evaluate(sizes);
      if (value && *value >= 1) continue;
      throw RunError(fmt::format("{} is {}, but {} is {} here; sizes must be positive", name.name,
                                 name.type.to_string(), dim.size.to_string(),
                                 value ? std::to_string(*value) : "too large"),
                     name.span);
    }
  }
}

void require_shapes(const ir::Program& program, const Settings& settings, const SizeValues& sizes) {
  Solver solver(sizes, {});
  for (const ir::Input& input : program.inputs) {
    const auto set = settings.shared.find(input.name);
    if (set != settings.shared.end()) add_equations(solver, input, set->second.shape, "");
  }
  solver.solve();
}

void require_memory(const ir::Program& program, const Settings& settings, const SizeValues& sizes) {
  constexpr double gigabyte = 1e9;
  double total = 0;
  double largest = 0;
  Span where;
  for (ir::NodeId id = 0; id < program.graph.size(); ++id) {
    const ir::Node& node = program.graph[id];
    if (node.federated()) continue;
    double bytes = 0;
    for (const Type& type : node.types) {
      double count = sizeof(double);
      for (const Dim& dim : type.dims) {
        const std::optional<std::int64_t> extent = dim.size.evaluate(sizes);
        count *= extent ? static_cast<double>(*extent) : HUGE_VAL;
      }
      bytes += count;
    }
    total += bytes;
    if (bytes <= largest) continue;
    largest = bytes;
    where = node.span;
  }
  if (total <= static_cast<double>(settings.memory)) return;
  throw RunError(fmt::format("the shared values of this program take {:.3g} GB, and {:.3g} GB are "
                             "given; this is the largest. More is given with --memory",
                             total / gigabyte, static_cast<double>(settings.memory) / gigabyte),
                 where);
}

}  // namespace starfold
