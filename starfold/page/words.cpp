#include "starfold/page/words.h"

#include <fmt/format.h>

#include <cmath>

#include "starfold/page/html.h"
#include "starfold/page/number.h"

namespace starfold::page {
namespace {

void collect(const Block& block, std::vector<ir::LoopId>& loops, std::vector<Place>& places) {
  for (const Step& step : block.steps) {
    if (const auto* round = std::get_if<Round>(&step.action)) places.push_back({round, loops});
    if (const auto* loop = std::get_if<LoopStep>(&step.action)) {
      loops.push_back(loop->loop);
      collect(loop->body.front(), loops, places);
      loops.pop_back();
    }
  }
}

// A size with its value where that is known.
std::string size_text(const Size& size, const SizeValues& sizes) {
  const std::optional<std::int64_t> value = size.evaluate(sizes);
  return value ? grouped(*value) : formula(size.to_string());
}

std::string ordinal(std::size_t number) {
  const char* ending = number % 100 / 10 == 1 ? "th"
                       : number % 10 == 1     ? "st"
                       : number % 10 == 2     ? "nd"
                       : number % 10 == 3     ? "rd"
                                              : "th";
  return fmt::format("{}{}", number, ending);
}

}  // namespace

std::vector<Place> places_of(const Plan& plan) {
  std::vector<Place> places;
  std::vector<ir::LoopId> loops;
  collect(plan.body, loops, places);
  return places;
}

std::optional<Size> most_iterations(const Plan& plan, ir::LoopId loop) {
  const ir::Node& count = plan.program.graph[plan.program.loops[loop].count];
  if (count.kind == ir::Kind::size) return count.size;
  if (count.kind != ir::Kind::constant || !count.value.shape.empty()) return std::nullopt;
  const double value = count.value.item();
  if (!(value >= 0 && value <= 1e15)) return std::nullopt;
  return Size(static_cast<std::int64_t>(std::floor(value)));
}

std::optional<Size> most_runs(const Plan& plan, const Place& place) {
  std::optional<Size> total = Size(1);
  for (const ir::LoopId loop : place.loops) {
    const std::optional<Size> count = most_iterations(plan, loop);
    total = total && count ? multiply(*total, *count) : std::nullopt;
  }
  return total;
}

std::string numbers(const std::optional<Size>& count, const SizeValues& sizes) {
  if (!count) return "many numbers";
  const std::string text = size_text(*count, sizes);
  return text + (text == "1" || count->is_one() ? " number" : " numbers");
}

std::string amount(const Type& type, const SizeValues& sizes) {
  std::string text;
  for (const Dim& dim : type.dims) {
    if (!dim.star) text += (text.empty() ? "" : " \u00d7 ") + size_text(dim.size, sizes);
  }
  std::string words = text.empty() ? "one number" : text + " numbers";
  if (!type.federated()) return words;
  words += " per record";
  return type.record_set().empty() ? words : words + " of " + code(type.record_set());
}

std::string how_often(const Plan& plan, const Place& place) {
  if (place.loops.empty()) return "once";
  const std::optional<Size> runs = most_runs(plan, place);
  if (!runs) return "in every iteration";
  return fmt::format("up to {} times", size_text(*runs, {}));
}

std::string listed_some(const std::vector<std::string>& items, std::size_t most) {
  if (items.size() <= most + 1) return listed(items);
  std::vector<std::string> some(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(most));
  some.push_back(fmt::format("{} more", items.size() - most));
  return listed(some);
}

std::string size_meaning(const ir::Program& program, const ir::SizeVariable& size) {
  if (size.value)
    return fmt::format("{}, unless set otherwise when the run starts", grouped(*size.value));
  for (const ir::Input& input : program.inputs) {
    const std::vector<Dim>& dims = input.type.dims;
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      if (dims[axis].star || dims[axis].size.as_variable() != size.name) continue;
      if (dims.size() == 1) return "the length of " + code(input.name);
      if (dims.size() == 2)
        return fmt::format("the number of {} of {}", axis == 0 ? "rows" : "columns",
                           code(input.name));
      return fmt::format("the size of the {} axis of {}", ordinal(axis + 1), code(input.name));
    }
  }
  return "a number that the data fixes";
}

double whole_time(const RunReport& report) {
  return report.times.compile + report.times.load + report.seconds;
}

std::string time_parts(const RunReport& report) {
  const RunTimes& times = report.times;
  std::string parts;
  for (const auto& [name, seconds] : {std::pair("compiling", times.compile),
                                      {"reading data", times.load},
                                      {"clients", times.clients},
                                      {"server", times.server}}) {
    if (seconds >= 0.001)
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", name, duration(seconds));
  }
  return parts;
}

}  // namespace starfold::page
