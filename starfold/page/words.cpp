#include "starfold/page/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "starfold/page/html.h"
#include "starfold/page/number.h"
#include "starfold/plan/disclosure.h"

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

// Words with program text in backquotes.
std::string with_code(std::string_view text) {
  std::string html;
  bool inside = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('`'), text.size());
    html += inside ? code(text.substr(0, end)) : escape(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    inside = !inside;
  }
  return html;
}

// The folds by what they show, as program text.
std::array<std::vector<std::string>, 5> by_shows(const Plan& plan) {
  const std::vector<std::vector<Disclosure>> shown = disclosures(plan);
  std::array<std::vector<std::string>, 5> values;
  for (const Round* round : rounds_of(plan)) {
    for (std::size_t i = 0; i < round->merges.size(); ++i) {
      const Disclosure& disclosure = shown[static_cast<std::size_t>(round->number)][i];
      values[static_cast<std::size_t>(disclosure.shows)].push_back(
          code(describe_fold(plan, round->merges[i].fold)));
    }
  }
  return values;
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
  std::vector<std::string> extents;
  for (const Dim& dim : type.dims) {
    if (!dim.star) extents.push_back(size_text(dim.size, sizes));
  }
  std::string text;
  for (const std::string& extent : extents) {
    const bool sum = extent.find('+') != std::string::npos ||
                     extent.find("\u2212") != std::string::npos;  // as formulas write it
    text += (text.empty() ? "" : " \u00d7 ") +
            (sum && extents.size() > 1 ? "(" + extent + ")" : extent);
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

std::string shows_in_short(const Plan& plan) {
  const auto [total, terms, group, client, single] = by_shows(plan);
  const std::size_t risky = group.size() + client.size() + single.size();
  const std::size_t all = total.size() + terms.size() + risky;
  if (all == 0) return "";
  if (risky > 0)
    return fmt::format("{} of {} {} can show single records.", risky, all,
                       all == 1 ? "value" : "values");
  return terms.empty() ? "Every value adds up all records of a client, each with the same weight."
                       : "Every value is folded from all records of a client.";
}

std::string shows_sentence(const Plan& plan) {
  const auto [total, terms, group, client, single] = by_shows(plan);
  std::string text = fmt::format("<b>{}</b> ", shows_in_short(plan));
  if (!single.empty()) text += fmt::format("A single record decides {}. ", listed_some(single, 3));
  if (!group.empty())
    text += fmt::format("The data pick which records count in {}, and a group may be one record. ",
                        listed_some(group, 3));
  if (!client.empty())
    text += fmt::format(
        "Each client sends a value of its own in {}, and the server can tell whose it is. ",
        listed_some(client, 3));
  if (group.empty() && client.empty() && single.empty() && !terms.empty())
    text +=
        "No record is picked, but a term can be 0 for all but a few records, and a sum then shows "
        "those. ";
  return text;
}

std::string shows_table(const Plan& plan) {
  const std::vector<std::vector<Disclosure>> shown = disclosures(plan);
  std::vector<std::vector<Field>> rows;
  for (const Round* round : rounds_of(plan)) {
    for (std::size_t i = 0; i < round->merges.size(); ++i) {
      const Disclosure& disclosure = shown[static_cast<std::size_t>(round->number)][i];
      rows.push_back({{fmt::format("<a href=\"#round-{0}\">{0}</a>", round->number + 1), true},
                      {code(describe_fold(plan, round->merges[i].fold))},
                      {fmt::format("<span class=\"shows {}\">{}</span>",
                                   to_string(disclosure.shows), plain_shows(disclosure.shows))},
                      {with_code(disclosure.reason)}});
    }
  }
  return table("What each value shows of records",
               {{"Round", true}, {"Value"}, {"Shows"}, {"Because"}}, rows);
}

std::string packed_note(const RunReport& report) {
  return fmt::format(
      "A simulation: the records of {} clients were folded together. They sent no messages of "
      "their "
      "own; bytes and numbers are those that each would have sent.",
      report.packed == static_cast<std::int64_t>(report.clients.size())
          ? "all"
          : std::to_string(report.packed));
}

std::string masking_words(std::size_t clients, std::uint32_t inputs) {
  return fmt::format(
      "What each client sends is masked (secure aggregation): in each round the server sees what "
      "the "
      "numbers of all {} clients, or of at least {} of them, add up to, and no number of a single "
      "client. It does see who takes part, and the size and time of each message. The sums "
      "themselves are not hidden, and tell what they tell.",
      clients, inputs);
}

std::string masked_note(const RunReport& report) {
  const secure::Group& group = *report.group;
  std::string text = masking_words(group.members.size(), group.inputs());
  const auto members = static_cast<std::int64_t>(group.members.size());
  if (report.run.empty())
    return text + " In this run all clients were in one process, which had their records anyway.";
  if (report.pinned_keys == members) return text + " The study names the key of every client.";
  return text + fmt::format(
                    " The study does not name the keys of {} of them: this holds against a server "
                    "that keeps to the protocol, and for clients that list their peers.",
                    members - report.pinned_keys);
}

double whole_time(const RunReport& report) {
  return report.times.compile + report.times.load + report.seconds;
}

std::string time_parts(const RunReport& report) {
  const RunTimes& times = report.times;
  std::string parts;
  for (const auto& [name, seconds] : {std::pair("compiling", times.compile),
                                      {"reading data", times.load},
                                      {"clients", report.clients.empty() ? 0 : times.clients},
                                      {"server", times.server}}) {
    if (seconds >= 0.001)
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", name, duration(seconds));
  }
  return parts;
}

}  // namespace starfold::page
