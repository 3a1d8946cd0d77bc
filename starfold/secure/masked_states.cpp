#include "starfold/secure/masked_states.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "starfold/base/error.h"
#include "starfold/ir/forms.h"
#include "starfold/merge/exact.h"
#include "starfold/runtime/apply.h"

namespace starfold::secure {
namespace {

// How the numbers of a part become integers.
struct Coding {
  std::uint32_t width = 1;
  void (*encode)(double value, std::span<std::uint64_t> into) = nullptr;
  double (*decode)(std::span<const std::uint64_t> words) = nullptr;
  bool as_it_is = false;  // the state has such integers already
};

// Integers below 2^53, as counts are: thousands of clients cannot overflow a word.
constexpr double most_whole = 9007199254740992.0;

void encode_whole(double value, std::span<std::uint64_t> into) {
  if (!(std::fabs(value) <= most_whole) || value != std::floor(value))
    throw RunError("a number that should be whole is not: it cannot be masked");
  into[0] = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
}
double decode_whole(std::span<const std::uint64_t> words) {
  return static_cast<double>(static_cast<std::int64_t>(words[0]));
}

// As in an exact run: what clients' doubles add up to is rounded once.
void encode_double(double value, std::span<std::uint64_t> into) {
  std::fill(into.begin(), into.end(), 0);
  exact::add(into, exact::sums, value);
}
double decode_double(std::span<const std::uint64_t> words) {
  return exact::rounded(words, exact::sums);
}

constexpr Coding whole = {1, encode_whole, decode_whole};
constexpr Coding any_double = {static_cast<std::uint32_t>(exact::sums.words()), encode_double,
                               decode_double};

// Whether a fold counts: its numbers are whole whatever the records are.
bool counts(const Plan& plan, const Merge& merge) {
  const ir::Node& fold = plan.program.graph[merge.fold];
  if (merge.monoid == &monoids::count) return true;
  if (!ir::is_sum(fold)) return false;
  const ir::Node& folded = plan.program.graph[fold.args[0]];
  return folded.kind == ir::Kind::apply && folded.op->truth;
}

Coding coding_of(const Plan& plan, const Merge& merge, std::size_t part, Numbers numbers) {
  if (merge.monoid->integers)
    return {static_cast<std::uint32_t>(merge.monoid->parts[part].words), nullptr, nullptr, true};
  return numbers == Numbers::whole || counts(plan, merge) ? whole : any_double;
}

// What adds up and says as much as a merge that does not, for people. Extremes and quantiles are read off counts.
std::string_view instead_of(const Monoid& monoid) {
  constexpr std::string_view on_a_grid =
      "count the records in the cells of a public grid, a histogram: sum[*](one_hot(cell, k))";
  constexpr std::string_view squares =
      "add up the values and their squares, and count: sum[*](x), sum[*](square(x)), count[*](x)";
  static const std::map<const Monoid*, std::string_view> rows = {
      {&monoids::min, on_a_grid},
      {&monoids::max, on_a_grid},
      {&monoids::prod, "add up logarithms, sum[*](log(x)), or count"},
      {&monoids::any, "count the records for which it is true: sum[*](e)"},
      {&monoids::all, "count the records for which it is false: sum[*](1 - e)"},
      {&monoids::moments, squares},
      {&monoids::logsumexp, "add up exponentials from a public number c on: sum[*](exp(x - c))"},
      {&monoids::norm, "add up squares: sqrt(sum[*](square(x)))"},
  };
  const auto found = rows.find(&monoid);
  return found == rows.end() ? "add up what it is made of, and count" : found->second;
}

template <typename Each>
void each_part(const Plan& plan, const Round& round, Numbers numbers, const Each& each) {
  for (std::size_t i = 0; i < round.merges.size(); ++i) {
    for (std::size_t k = 0; k < round.merges[i].monoid->parts.size(); ++k)
      each(i, k, coding_of(plan, round.merges[i], k, numbers));
  }
}

}  // namespace

std::optional<Unmaskable> unmaskable(const Plan& plan) {
  for (const Round* round : rounds_of(plan)) {
    for (const Merge& merge : round->merges) {
      if (merge.monoid->additive || merge.monoid->integers) continue;
      return Unmaskable{
          merge.fold,
          fmt::format(
              "{} is merged by {}, which secure aggregation cannot do: masks vanish only in "
              "sums; {}",
              describe_fold(plan, merge.fold), merge.monoid->name, instead_of(*merge.monoid))};
    }
  }
  return std::nullopt;
}

Layout masked_layout(const Plan& plan, const Round& round, const SizeValues& sizes,
                     Numbers numbers) {
  Layout layout;
  each_part(plan, round, numbers, [&](std::size_t i, std::size_t k, const Coding& coding) {
    const Merge& merge = round.merges[i];
    const Shape result = cell_shape(plan.program.graph[merge.fold].type(), sizes);
    const auto numbers_of =
        static_cast<std::uint64_t>(element_count(state_shapes(*merge.monoid, result)[k]));
    layout.push_back({fmt::format("{}.{}.{}", round.number, i, merge.monoid->parts[k].name),
                      coding.width, coding.as_it_is ? numbers_of / coding.width : numbers_of});
  });
  return layout;
}

Words to_words(const Plan& plan, const Round& round, const std::vector<MergeState>& states,
               Numbers numbers) {
  Words words;
  each_part(plan, round, numbers, [&](std::size_t i, std::size_t k, const Coding& coding) {
    const std::vector<double>& values = states[i][k].data;
    if (coding.as_it_is) {
      words.push_back(integer(states[i][k], 0, values.size()));
      return;
    }
    std::vector<std::uint64_t>& into = words.emplace_back(values.size() * coding.width);
    const std::span<std::uint64_t> all(into);
    for (std::size_t n = 0; n < values.size(); ++n)
      coding.encode(values[n], all.subspan(n * coding.width, coding.width));
  });
  return words;
}

std::vector<MergeState> from_words(const Plan& plan, const Round& round, const SizeValues& sizes,
                                   const Words& words, Numbers numbers) {
  std::vector<MergeState> states;
  for (const Merge& merge : round.merges)
    states.push_back(zero(*merge.monoid, cell_shape(plan.program.graph[merge.fold].type(), sizes)));
  std::size_t piece = 0;
  each_part(plan, round, numbers, [&](std::size_t i, std::size_t k, const Coding& coding) {
    std::vector<double>& values = states[i][k].data;
    const std::span<const std::uint64_t> all(words.at(piece++));
    if (coding.as_it_is) return set_integer(states[i][k], 0, all.first(values.size()));
    for (std::size_t n = 0; n < values.size(); ++n)
      values[n] = coding.decode(all.subspan(n * coding.width, coding.width));
  });
  return states;
}

}  // namespace starfold::secure
