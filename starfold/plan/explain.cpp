#include "starfold/plan/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "starfold/plan/disclosure.h"

namespace starfold {
namespace {

using ir::Kind;
using ir::NodeId;

Line line_for(const Plan& plan, NodeId id, std::string name) {
  return {std::move(name), ir::print_expr(plan.program, id),
          plan.program.graph[id].type().to_string()};
}

std::string name_of(const Plan& plan, NodeId id) {
  const auto name = plan.program.names.find(id);
  return name == plan.program.names.end() ? "" : name->second;
}

// Whether a node is the new value of a state that no line before the end of the iteration mentions: then its line is
// the update there.
bool shown_as_update(const Plan& plan, NodeId id) {
  const ir::Program& program = plan.program;
  std::set<NodeId> updates;
  for (const ir::Loop& loop : program.loops) {
    for (const ir::Carried& carried : loop.carried) {
      if (name_of(plan, carried.next) == carried.name) updates.insert(carried.next);
    }
  }
  if (updates.count(id) == 0) return false;
  std::vector<bool> mentions(program.graph.size());
  mentions[id] = true;
  for (NodeId user = id + 1; user < program.graph.size(); ++user) {
    const ir::Node& node = program.graph[user];
    if (std::none_of(node.args.begin(), node.args.end(), [&](NodeId arg) { return mentions[arg]; }))
      continue;
    const bool on_clients =
        node.federated() || std::any_of(node.args.begin(), node.args.end(),
                                        [&](NodeId arg) { return program.graph[arg].federated(); });
    if (on_clients || (!name_of(plan, user).empty() && updates.count(user) == 0)) return false;
    mentions[user] = true;
  }
  return true;
}

// Whether a line gives a name to a value: not an update (`beta <-`), nor a condition.
bool defines(const Line& line) {
  return !line.name.empty() && !line.name.ends_with("<-") && line.name != "until" &&
         line.name != "expect" && line.name != "require";
}

// Statements as they stand in a program, equal signs below each other, types at the end.
std::string lines_text(const std::vector<Line>& lines, std::size_t indent) {
  std::size_t name_width = 0;
  for (const Line& line : lines)
    if (defines(line)) name_width = std::max(name_width, line.name.size());
  std::vector<std::string> statements;
  std::size_t width = 0;
  for (const Line& line : lines) {
    statements.push_back(
        defines(line)
            ? fmt::format("{:<{}} = {}", line.name, name_width, line.expression)
            : fmt::format("{}{}{}", line.name, line.name.empty() ? "" : " ", line.expression));
    width = std::max(width, std::min(statements.back().size(), name_width + 63));
  }
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i)
    text += fmt::format("{}{:<{}}  {}\n", std::string(indent, ' '), statements[i], width,
                        lines[i].type);
  return text;
}

// Lines that fit: a longer one goes on below, four blanks further in, broken between words.
std::string fitted(const std::string& text) {
  constexpr std::size_t width = 110;
  std::string result;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    const std::string further(indent + 4, ' ');
    while (line.size() > width) {
      std::size_t at = line.rfind(' ', width);
      if (at == line.npos || at <= further.size()) at = line.find(' ', width);
      if (at == line.npos) break;
      const std::size_t rest = line.find_first_not_of(' ', at);
      if (rest == line.npos || rest <= further.size()) break;  // it would not get shorter
      const std::size_t last = line.find_last_not_of(' ', at);
      result += line.substr(0, last + 1) + "\n";
      line = further + line.substr(rest);
    }
    result += line + "\n";
  }
  return result;
}

class TextWriter {
 public:
  explicit TextWriter(const Plan& plan) : plan_(plan), shown_(disclosures(plan)) {}

  std::string run() {
    const std::size_t rounds = rounds_of(plan_).size();
    text_ = rounds == 0   ? "No rounds: no value leaves the clients.\n"
            : rounds == 1 ? "One round of encode, merge, decode.\n"
                          : fmt::format("{} rounds of encode, merge, decode.\n", rounds);
    block(plan_.body, 0);
    if (!risky_.empty()) text_ += "\nwhat can show single records\n" + risky_;
    if (!plan_.program.outputs.empty()) text_ += "\noutputs\n";
    for (const ir::Output& output : plan_.program.outputs) {
      // A value that has a line above goes by its name.
      const bool plain = ir::is_plain(plan_.program.graph[output.node]);
      const std::string value =
          plain ? ir::print_expr(plan_.program, output.node) : describe(plan_, output.node);
      text_ += fmt::format("    {}{}  {}\n", output.name, value == output.name ? "" : " = " + value,
                           plan_.program.graph[output.node].type().to_string());
    }
    return fitted(text_);
  }

 private:
  void section(const char* title, const std::string& content, std::size_t indent) {
    if (content.empty()) return;
    text_ += std::string(indent + 2, ' ') + title + "\n" + content;
  }

  void block(const Block& block, std::size_t indent) {
    section("the server computes first", lines_text(named_lines(plan_, block.prelude), indent + 4),
            indent);
    for (const Step& step : block.steps) {
      if (const auto* round = std::get_if<Round>(&step.action)) this->round(*round, indent);
      if (const auto* loop = std::get_if<LoopStep>(&step.action)) {
        text_ += fmt::format("\n{}repeat up to {} times\n", std::string(indent, ' '),
                             describe(plan_, plan_.program.loops[loop->loop].count));
        this->block(loop->body.front(), indent + 2);
        section("at the end of each iteration",
                lines_text(loop_lines(plan_, loop->loop), indent + 6), indent + 2);
      }
      section("the server decodes", lines_text(named_lines(plan_, step.decoder), indent + 4),
              indent);
    }
  }

  void round(const Round& round, std::size_t indent) {
    const std::string pad(indent, ' ');
    text_ += fmt::format("\n{}round {}\n", pad, round.number + 1);
    std::string received;
    for (const NodeId id : round.receives) {
      received += fmt::format("{}    {}  {}\n", pad, describe(plan_, id),
                              plan_.program.graph[id].type().to_string());
    }
    section("every client receives", received, indent);
    section("every client computes on its own records",
            lines_text(named_lines(plan_, round.encoders), indent + 4), indent);
    for (const NodeId id : round.encoders) {
      if (plan_.program.graph[id].block)
        section("in `each client`, at one client alone", block_text(plan_, id, indent + 4), indent);
    }
    std::string kept;
    for (const Store& store : round.stores) {
      if (store.what == Store::What::result) continue;
      const bool state = store.what == Store::What::state;
      kept += fmt::format("{}    {}{}  {}\n", pad,
                          state ? plan_.program.loops[store.index].carried[store.slot].name
                                : plan_.program.keeps[store.index].name,
                          state ? " <- " + describe(plan_, store.node) : "",
                          plan_.program.graph[store.node].type().to_string());
    }
    section("every client keeps, and does not send", kept, indent);
    std::string merged;
    for (std::size_t i = 0; i < round.merges.size(); ++i) {
      const Merge& merge = round.merges[i];
      const std::string name = name_of(plan_, merge.fold);
      merged += fmt::format("{}    {}{}  {}  {} (merge {})\n", pad,
                            name.empty() ? "" : name + " = ", describe_fold(plan_, merge.fold),
                            plan_.program.graph[merge.fold].type().to_string(), merge.monoid->words,
                            merge.monoid->name);
      const Disclosure& disclosure = shown_[static_cast<std::size_t>(round.number)][i];
      if (disclosure.shows >= Shows::group) {
        risky_ +=
            fmt::format("    round {}  {}\n      {}\n", round.number + 1,
                        name.empty() ? describe_fold(plan_, merge.fold) : name, disclosure.reason);
      }
    }
    const std::string numbers = message_numbers(plan_, round);
    section(fmt::format("every client sends {} {}, merged over clients", numbers,
                        numbers == "1" ? "number" : "numbers")
                .c_str(),
            merged, indent);
  }

  const Plan& plan_;
  std::vector<std::vector<Disclosure>> shown_;
  std::string text_;
  std::string risky_;  // the values of which records may be told, with the reason
};

nlohmann::json lines_json(const std::vector<Line>& lines) {
  nlohmann::json array = nlohmann::json::array();
  for (const Line& line : lines)
    array.push_back({{"name", line.name}, {"expr", line.expression}, {"type", line.type}});
  return array;
}

// A block's own plan, for its readers.
nlohmann::json local_json(const Plan& plan, const Block& block) {
  nlohmann::json steps = nlohmann::json::array();
  for (const Step& step : block.steps) {
    nlohmann::json entry;
    if (const auto* round = std::get_if<Round>(&step.action)) {
      entry = {{"kind", "pass"},
               {"encoders", lines_json(named_lines(plan, round->encoders))},
               {"folds", nlohmann::json::array()}};
      for (const Merge& merge : round->merges)
        entry["folds"].push_back(describe_fold(plan, merge.fold));
      for (const NodeId id : round->passes)
        entry["batches"].push_back(local_json(*plan.blocks.at(id), plan.blocks.at(id)->body));
    } else {
      const LoopStep& loop = std::get<LoopStep>(step.action);
      entry = {{"kind", "repeat"},
               {"count", describe(plan, plan.program.loops[loop.loop].count)},
               {"body", local_json(plan, loop.body.front())},
               {"iteration", lines_json(loop_lines(plan, loop.loop))}};
    }
    entry["decoder"] = lines_json(named_lines(plan, step.decoder));
    steps.push_back(std::move(entry));
  }
  return {{"prelude", lines_json(named_lines(plan, block.prelude))}, {"steps", std::move(steps)}};
}

nlohmann::json block_json(const Plan& plan, const Block& block, const nlohmann::json& exposure) {
  nlohmann::json steps = nlohmann::json::array();
  for (const Step& step : block.steps) {
    nlohmann::json entry;
    if (const auto* round = std::get_if<Round>(&step.action)) {
      entry = exposure[static_cast<std::size_t>(round->number)];
      entry["kind"] = "round";
      entry["round"] = round->number + 1;
      entry["numbers"] = message_numbers(plan, *round);
      entry["encoders"] = lines_json(named_lines(plan, round->encoders));
      for (const NodeId id : round->encoders) {
        if (plan.program.graph[id].block)
          entry["blocks"].push_back(local_json(*plan.blocks.at(id), plan.blocks.at(id)->body));
      }
      for (std::size_t i = 0; i < round->merges.size(); ++i)
        entry["merges"][i]["name"] = name_of(plan, round->merges[i].fold);
    } else {
      const LoopStep& loop = std::get<LoopStep>(step.action);
      entry = {{"kind", "repeat"},
               {"count", describe(plan, plan.program.loops[loop.loop].count)},
               {"body", block_json(plan, loop.body.front(), exposure)},
               {"iteration", lines_json(loop_lines(plan, loop.loop))}};
    }
    entry["decoder"] = lines_json(named_lines(plan, step.decoder));
    steps.push_back(std::move(entry));
  }
  return {{"prelude", lines_json(named_lines(plan, block.prelude))}, {"steps", std::move(steps)}};
}

std::string quote(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

// The same for text with line ends of Graphviz in it.
std::string quote_lines(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

std::vector<Line> named_lines(const Plan& plan, const std::vector<NodeId>& nodes) {
  std::vector<Line> lines;
  for (const NodeId id : nodes) {
    const auto name = plan.program.names.find(id);
    const Kind kind = plan.program.graph[id].kind;
    if (name == plan.program.names.end() || kind == Kind::input || kind == Kind::loop_param ||
        kind == Kind::loop_result || shown_as_update(plan, id))
      continue;
    lines.push_back(line_for(plan, id, name->second));
  }
  return lines;
}

std::vector<Line> merged_lines(const Plan& plan, const Round& round) {
  std::vector<NodeId> folds;
  for (const Merge& merge : round.merges) folds.push_back(merge.fold);
  return named_lines(plan, folds);
}

std::vector<Line> loop_lines(const Plan& plan, ir::LoopId id) {
  const ir::Loop& loop = plan.program.loops[id];
  std::vector<Line> lines;
  for (const ir::Carried& carried : loop.carried) {
    const auto named = plan.program.names.find(carried.next);
    const bool known = named != plan.program.names.end() && named->second != carried.name;
    lines.push_back({carried.name + " <-",
                     known ? named->second : ir::print_expr(plan.program, carried.next),
                     carried.type.to_string()});
  }
  for (const ir::Trace& trace : plan.program.traces) {
    if (trace.loop != id) continue;
    const std::string what = trace.kind == ir::Trace::Kind::record   ? "trace " + trace.name
                             : trace.kind == ir::Trace::Kind::expect ? "expect"
                                                                     : "require";
    lines.push_back(
        {what, describe(plan, trace.node), plan.program.graph[trace.node].type().to_string()});
  }
  if (loop.until != ir::no_node)
    lines.push_back({"until", ir::print_expr(plan.program, loop.until), "[]"});
  return lines;
}

namespace {

void write_block(const Plan& plan, const Block& block, std::size_t indent, std::string& text) {
  const std::string pad(indent, ' ');
  text += lines_text(named_lines(plan, block.prelude), indent);
  for (const Step& step : block.steps) {
    if (const auto* round = std::get_if<Round>(&step.action)) {
      text += lines_text(named_lines(plan, round->encoders), indent);
      text += lines_text(merged_lines(plan, *round), indent);
      for (const NodeId id : round->passes) {
        text += fmt::format("{}repeat for every batch of {} records\n", pad,
                            describe(plan, plan.program.graph[id].args[0]));
        text += block_text(plan, id, indent + 2);
      }
    } else {
      const LoopStep& loop = std::get<LoopStep>(step.action);
      text += fmt::format("{}repeat up to {} times\n", pad,
                          describe(plan, plan.program.loops[loop.loop].count));
      write_block(plan, loop.body.front(), indent + 2, text);
      text += lines_text(loop_lines(plan, loop.loop), indent + 2);
    }
    text += lines_text(named_lines(plan, step.decoder), indent);
  }
}

}  // namespace

std::string block_text(const Plan& plan, NodeId id, std::size_t indent) {
  const Plan shown = readable(*plan.blocks.at(id));
  std::string text;
  write_block(shown, shown.body, indent, text);
  std::vector<Line> results;
  const bool batches = plan.program.graph[id].block->batches;
  for (const ir::Output& output : shown.program.outputs)
    results.push_back({batches ? output.name + " <-" : "result", describe(shown, output.node),
                       shown.program.graph[output.node].type().to_string()});
  return text + lines_text(results, indent);
}

std::string explain_text(const Plan& plan) {
  const Plan shown = readable(plan);
  return TextWriter(shown).run();
}

nlohmann::json explain_json(const Plan& given, const SourceMap& sources) {
  const Plan plan = readable(given);
  nlohmann::json outputs = nlohmann::json::array();
  for (const ir::Output& output : plan.program.outputs) {
    outputs.push_back({{"name", output.name},
                       {"expr", ir::print_expr(plan.program, output.node)},
                       {"type", plan.program.graph[output.node].type().to_string()}});
  }
  return {{"plan", plan_hash(plan)},
          {"rounds", plan.rounds},
          {"program", block_json(plan, plan.body, exposure_json(plan, sources))},
          {"outputs", std::move(outputs)}};
}

std::string explain_dot(const Plan& given) {
  const Plan plan = readable(given);
  std::string text =
      "digraph starfold {\n  rankdir=LR;\n  node [shape=box, fontname=\"Helvetica\"];\n"
      "  records [label=\"records\\n(on each client)\", shape=cylinder];\n";
  std::string previous;
  for (const Round* round : rounds_of(plan)) {
    const int n = round->number + 1;
    std::string encoders = fmt::format("encode {}", n);
    for (const Line& line : named_lines(plan, round->encoders))
      encoders += "\\n" + line.name + " : " + line.type;
    int blocks = 0;
    for (const NodeId id : round->encoders) {
      if (!plan.program.graph[id].block) continue;
      // A block is drawn inside the client.
      std::string inside;
      for (const char c : block_text(plan, id, 0))
        inside += c == '\n' ? std::string("\\l") : std::string(1, c);
      const std::string name = fmt::format("block{}_{}", n, ++blocks);
      text += fmt::format(
          "  subgraph cluster_{} {{ label=\"each client, on its own\"; {} [label={}, shape=note]; "
          "}}\n",
          name, name, quote_lines(inside));
      text += fmt::format("  records -> {0};\n  {0} -> encode{1};\n", name, n);
    }
    text += fmt::format("  encode{} [label={}];\n  records -> encode{};\n", n, quote(encoders), n);
    if (!previous.empty()) {
      std::string sent;
      for (const NodeId id : round->receives)
        sent += (sent.empty() ? "" : ", ") + describe(plan, id);
      text += fmt::format("  {} -> encode{} [label={}, style=dashed];\n", previous, n, quote(sent));
    }
    text += fmt::format("  merge{} [label=\"merge {}\", shape=circle];\n", n, n);
    for (const Merge& merge : round->merges) {
      text += fmt::format("  encode{} -> merge{} [label={}];\n", n, n,
                          quote(fmt::format("{} {}", describe_fold(plan, merge.fold),
                                            plan.program.graph[merge.fold].type().to_string())));
    }
    text += fmt::format("  decode{} [label=\"decode {}\"];\n  merge{} -> decode{};\n", n, n, n, n);
    if (round->loop_depth > 0)
      text +=
          fmt::format("  decode{} -> encode{} [label=\"next iteration\", style=dashed];\n", n, n);
    previous = fmt::format("decode{}", n);
  }
  for (const ir::Output& output : plan.program.outputs) {
    text += fmt::format("  {} [label={}, shape=ellipse];\n", quote("out " + output.name),
                        quote(output.name));
    if (!previous.empty())
      text += fmt::format("  {} -> {};\n", previous, quote("out " + output.name));
  }
  return text + "}\n";
}

}  // namespace starfold
