// Announced = sent: what `check` and the pages say about the messages of a program is what its
// messages hold, number by number, whatever the program and the federation.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "starfold/base/error.h"
#include "starfold/page/pages.h"
#include "starfold/plan/disclosure.h"
#include "starfold/plan/explain.h"
#include "tests/laws/announced.h"
#include "tests/laws/law.h"

namespace starfold::laws {
namespace {

using nlohmann::json;

// What the text says of a merge whose key "shows" is this.
std::string_view shown_words(const std::string& shows) {
  for (const Shows each : {Shows::total, Shows::terms, Shows::group, Shows::single}) {
    if (to_string(each) == shows) return plain_shows(each);
  }
  throw std::logic_error("no kind of disclosure is called " + shows);
}

// A round as it ran: what the server sent, and what each client sent for each merge.
struct SentRound {
  std::vector<Tensor> received;
  std::vector<std::vector<MergeState>> answers;  // by client
};

struct SentMessages {
  std::map<std::size_t, SentRound> rounds;   // by number: the last time it ran
  std::map<std::size_t, std::int64_t> runs;  // how often
  SizeValues sizes;
};

SentMessages send(const Case& c, const std::shared_ptr<const CompiledProgram>& program) {
  std::vector<std::string> names;
  for (const Client& client : c.federation.clients) names.push_back(client.name);
  Coordinator coordinator(program, c.federation.settings, names);
  ProgramCache cache(*c.options.signature);
  std::vector<Node> nodes;
  for (const Client& client : c.federation.clients) nodes.emplace_back(client, cache);
  SentMessages sent;
  while (!coordinator.done()) {
    const Bytes request = coordinator.request();
    const Message asked = decode_message(request);
    const auto* encode = std::get_if<EncodeMessage>(&asked);
    SentRound round;
    if (encode != nullptr) round.received = encode->values;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const Bytes answer = nodes[i].handle(request);
      Message message = decode_message(answer);
      if (auto* state = std::get_if<StateMessage>(&message))
        round.answers.push_back(std::move(state->states));
      coordinator.absorb(i, answer);
    }
    if (encode == nullptr) continue;
    ++sent.runs[encode->round];
    sent.rounds[encode->round] = std::move(round);
  }
  sent.sizes = coordinator.sizes();
  return sent;
}

Shape shape_of(const json& announced, const SizeValues& sizes) {
  Shape shape;
  for (const json& size : announced) shape.push_back(polynomial(size.get<std::string>(), sizes));
  return shape;
}

std::int64_t numbers_in(const MergeState& state) {
  std::int64_t count = 0;
  for (const Tensor& part : state) count += part.count();
  return count;
}

// The words for a merge, as what they say about two numbers; nullopt for merges of several parts.
std::optional<double> by_words(const std::string& merge, double a, double b) {
  if (merge == "sum" || merge == "count") return a + b;
  if (merge == "prod") return a * b;
  if (merge == "min") return std::isnan(a) || a < b ? a : b;
  if (merge == "max") return std::isnan(a) || a > b ? a : b;
  if (merge == "any") return a != 0 || b != 0 ? 1 : 0;
  if (merge == "all") return a != 0 && b != 0 ? 1 : 0;
  if (merge == "logsumexp") {
    if (std::isnan(a) || std::isnan(b)) return std::nan("");
    const double top = std::max(a, b);
    return std::isinf(top) ? top : top + std::log(std::exp(a - top) + std::exp(b - top));
  }
  return std::nullopt;
}

// One merged value: the announced shape is that of the state, and the announced merge what is done.
Verdict same_merge(const json& announced, const SentRound& sent, std::size_t i, const Merge& merge,
                   const SizeValues& sizes) {
  const Shape shape = shape_of(announced["shape"], sizes);
  std::optional<Tensor> words;
  std::optional<MergeState> real;
  for (const std::vector<MergeState>& answer : sent.answers) {
    const MergeState& state = answer.at(i);
    const bool found = std::any_of(state.begin(), state.end(),
                                   [&](const Tensor& part) { return part.shape == shape; });
    if (!found) return "nothing of the announced shape is sent";
    if (polynomial(announced["numbers"].get<std::string>(), sizes) != numbers_in(state))
      return fmt::format("{} numbers are sent", numbers_in(state));
    if (!real) {
      real = state;
      words = state.at(0);
      continue;
    }
    merge.monoid->merge(*real, state);
    for (std::size_t k = 0; k < words->data.size(); ++k) {
      const std::optional<double> together =
          by_words(announced["merge"], words->data[k], state[0].data[k]);
      if (!together) return state.size() > 1 ? Verdict() : "a merge without a meaning";
      words->data[k] = *together;
    }
  }
  if (real->size() > 1) return std::nullopt;
  return compare(*words, real->at(0), 1e-12);
}

Verdict same_round(const json& announced, const SentRound& sent, const Round& round,
                   const SizeValues& sizes) {
  if (announced["receives"].size() != sent.received.size())
    return "another number of values is sent";
  for (std::size_t i = 0; i < sent.received.size(); ++i) {
    if (shape_of(announced["receives"][i]["shape"], sizes) != sent.received[i].shape)
      return "a value of another shape is sent to clients";
  }
  for (const std::vector<MergeState>& answer : sent.answers) {
    if (announced["merges"].size() != answer.size()) return "another number of values leaves";
  }
  for (std::size_t i = 0; i < announced["merges"].size(); ++i) {
    if (const Verdict broken =
            same_merge(announced["merges"][i], sent, i, round.merges.at(i), sizes)) {
      return fmt::format("{}: {}", announced["merges"][i].dump(), *broken);
    }
  }
  return std::nullopt;
}

// How deep each round lies, found from the plan's blocks.
void depths(const Block& block, int depth, std::vector<int>& found) {
  for (const Step& step : block.steps) {
    if (std::holds_alternative<Round>(step.action)) found.push_back(depth);
    if (const auto* loop = std::get_if<LoopStep>(&step.action))
      depths(loop->body.front(), depth + 1, found);
  }
}

std::string shape_text(const json& shape) {
  return fmt::format("[{}]", fmt::join(shape.get<std::vector<std::string>>(), ", "));
}

// Blanks in an expression are one blank, as in a row that was read.
std::string words_of(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c != ' ' || (!out.empty() && out.back() != ' ')) out += c;
  }
  return out;
}

// The text of `check` has a row for everything in its JSON, and the numbers that are sent.
Verdict text_says(const std::string& text, const Plan& plan, const SourceMap& sources,
                  const json& rounds, const SentMessages& sent) {
  const std::vector<AnnouncedRound> said = read_exposure_text(text);
  if (said.size() != rounds.size())
    return fmt::format("{} rounds, not {}", said.size(), rounds.size());
  for (std::size_t r = 0; r < said.size(); ++r) {
    const int depth = rounds[r]["loop"];
    const std::string title =
        depth == 0 ? "" : fmt::format(" (in every iteration, loop depth {})", depth);
    if (said[r].title != title) return fmt::format("round {} is said to run{}", r, said[r].title);
    std::vector<std::string> leaves;
    for (std::size_t i = 0; i < rounds[r]["merges"].size(); ++i) {
      const json& merge = rounds[r]["merges"][i];
      const ir::NodeId fold = rounds_of(plan).at(r)->merges.at(i).fold;
      const std::uint32_t file = plan.program.graph[fold].span.file;  // 0: the program itself
      leaves.push_back(words_of(
          fmt::format("{} {} merge {} line {}{} {}", merge["expr"].get<std::string>(),
                      shape_text(merge["shape"]), merge["merge"].get<std::string>(),
                      merge["line"].get<int>(), file == 0 ? "" : " of " + sources[file].name(),
                      shown_words(merge["shows"].get<std::string>()))));
    }
    std::vector<std::string> is_sent;
    for (const json& value : rounds[r]["receives"]) {
      is_sent.push_back(words_of(
          fmt::format("{} {}", value["name"].get<std::string>(), shape_text(value["shape"]))));
    }
    if (said[r].leaves != leaves)
      return fmt::format("round {}: leaves {} instead of {}", r, said[r].leaves, leaves);
    if (said[r].sent != is_sent)
      return fmt::format("round {}: is sent {} instead of {}", r, said[r].sent, is_sent);
    const auto ran = sent.rounds.find(r);
    if (ran == sent.rounds.end()) continue;
    for (const std::vector<MergeState>& answer : ran->second.answers) {
      std::int64_t total = 0;
      for (const MergeState& state : answer) total += numbers_in(state);
      if (polynomial(said[r].numbers, sent.sizes) != total)
        return fmt::format("round {}: {} numbers, not {}", r, total, said[r].numbers);
    }
  }
  return std::nullopt;
}

// "once", or "up to n times": no round runs more often than its row says.
Verdict often_enough(const std::string& said, std::int64_t runs, const SizeValues& sizes) {
  if (said == "in every iteration") return std::nullopt;
  std::int64_t most = 1;
  if (said.rfind("up to ", 0) == 0) {
    most = polynomial(said.substr(6, said.rfind(" times") - 6), sizes);
  } else if (said != "once") {
    return "it does not say how often: " + said;
  }
  if (runs > most) return fmt::format("{} runs, announced {}", runs, said);
  return std::nullopt;
}

// The page has one row for every value, in the order of the rounds, with its numbers.
Verdict page_says(const std::string& page, const json& rounds, const SentMessages& sent) {
  const std::vector<PageRow> leaves = read_page_table(page, "What leaves each client");
  const std::vector<PageRow> received = read_page_table(page, "What the server sends");
  std::size_t row = 0;
  std::size_t value = 0;
  for (std::size_t r = 0; r < rounds.size(); ++r) {
    const auto ran = sent.rounds.find(r);
    const std::string number = std::to_string(r + 1);
    for (std::size_t i = 0; i < rounds[r]["merges"].size(); ++i, ++row) {
      const json& merge = rounds[r]["merges"][i];
      if (row >= leaves.size()) return "a row of what leaves is missing";
      const PageRow& said = leaves[row];
      const std::string words = said.at("Merged over clients");
      const std::string monoid = merge["merge"];
      const bool same = said.at("Round") == number && said.at("Value") == merge["expr"] &&
                        said.at("Shape") == shape_text(merge["shape"]) &&
                        words.size() > monoid.size() + 1 &&
                        words.substr(words.size() - monoid.size() - 1) == " " + monoid;
      if (!same) return fmt::format("a row says {} for {}", fmt::join(said, "; "), merge.dump());
      if (ran == sent.rounds.end()) continue;
      for (const std::vector<MergeState>& answer : ran->second.answers) {
        const std::int64_t count = numbers_in(answer.at(i));
        if (polynomial(said.at("Numbers"), sent.sizes) != count)
          return fmt::format("{}: {} numbers, not {}", merge.dump(), count, said.at("Numbers"));
      }
      if (const Verdict broken = often_enough(said.at("How often"), sent.runs.at(r), sent.sizes))
        return broken;
    }
    for (const json& given : rounds[r]["receives"]) {
      if (value >= received.size()) return "a row of what is sent is missing";
      const PageRow& said = received[value++];
      if (said.at("Round") != number || said.at("Value") != given["name"] ||
          said.at("Shape") != shape_text(given["shape"]))
        return fmt::format("a row says {} for {}", fmt::join(said, "; "), given.dump());
    }
  }
  if (row != leaves.size() || value != received.size()) return "rows for what is not sent";
  return std::nullopt;
}

int deep_rounds = 0;  // how many rounds inside two loops were looked at

Verdict announced_is_sent(const Case& c) {
  const Compiled program = compiled(c);
  if (!program.error.empty()) return program.error;
  const Plan& plan = *program.program->plan;
  const SourceMap& sources = program.program->compilation.sources;
  const std::vector<const Round*> planned = rounds_of(plan);
  SentMessages sent;
  try {
    sent = send(c, program.program);
  } catch (const RunError&) {
    return Verdict::nothing();
  }
  const json rounds = exposure_json(plan, sources);
  std::vector<int> deep;
  depths(plan.body, 0, deep);
  if (rounds.size() != deep.size()) return "another number of rounds is announced";
  for (std::size_t r = 0; r < deep.size(); ++r) {
    if (rounds[r]["loop"] != deep[r]) return "a round is announced at another depth";
    if (deep[r] > 1) ++deep_rounds;
  }
  for (const auto& [number, ran] : sent.rounds) {
    if (number >= rounds.size()) return "a round that was not announced";
    if (const Verdict broken = same_round(rounds[number], ran, *planned.at(number), sent.sizes))
      return fmt::format("round {}: {}", number, *broken);
  }
  if (const Verdict broken = text_says(exposure_text(plan, sources), plan, sources, rounds, sent))
    return "in the text: " + *broken;
  // The page gives names to long expressions; its numbers are those of the same messages.
  const json shown = exposure_json(readable(plan), sources);
  if (const Verdict broken = page_says(explain_html(plan, sources, "law"), shown, sent))
    return "on the page: " + *broken;
  return std::nullopt;
}

TEST(Laws, AnnouncedIsSent) { check_law("Laws.AnnouncedIsSent", {}, 500, announced_is_sent); }

TEST(Laws, AnnouncedIsSentInsideTwoLoops) {
  deep_rounds = 0;
  GeneratorOptions options;
  options.nested = true;
  options.statements = 4;
  check_law("Laws.AnnouncedIsSentInsideTwoLoops", options, 300, announced_is_sent);
  if (law_programs(300) >= 300) {
    EXPECT_GT(deep_rounds, 10) << "loops in loops must be seen";
  }
}

TEST(Laws, AnnouncedIsSentForDerivatives) {
  GeneratorOptions options;
  options.derivatives = true;
  options.statements = 3;
  check_law("Laws.AnnouncedIsSentForDerivatives", options, 120, [](const Case& c) -> Verdict {
    return has_no_derivative(c) ? Verdict() : announced_is_sent(c);
  });
}

}  // namespace
}  // namespace starfold::laws
