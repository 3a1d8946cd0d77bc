#include "starfold/page/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "starfold/page/html.h"
#include "starfold/page/words.h"
#include "starfold/plan/explain.h"

namespace starfold::page {
namespace {

using ir::Kind;
using ir::NodeId;

// Heights of the column of clients, in pixels of a 16-pixel font; the style sheet has the same in rem.
constexpr double client_height = 76;
constexpr double client_gap = 10;
constexpr double dots_height = 22;

// A client as drawn, or dots that stand for several.
struct Card {
  std::string name;  // HTML; empty for dots
  std::string note;  // HTML
  int rows = 0;      // of the small table that stands for its records
};

std::vector<Card> cards(const PictureFacts& facts) {
  if (facts.clients.empty()) {
    return {{"Client 1", "", 6}, {"Client 2", "", 4}, {"", "", 0}, {"Client <i>m</i>", "", 7}};
  }
  std::vector<Card> all;
  for (const PictureClient& client : facts.clients) {
    if (!client.records) {
      all.push_back({escape(client.name), "", 5});
      continue;
    }
    const std::int64_t records = *client.records;
    const int rows =
        records == 0 ? 0
                     : std::clamp(static_cast<int>(std::lround(1.5 * std::log10(records))), 1, 7);
    all.push_back({escape(client.name),
                   fmt::format("{} {}", grouped(records), records == 1 ? "record" : "records"),
                   rows});
  }
  constexpr std::size_t most = 4;
  if (all.size() <= most) return all;
  const Card last = all.back();
  const std::string left_out = fmt::format("{} more", all.size() - 3);
  all.resize(2);
  all.push_back({"", left_out, 0});
  all.push_back(last);
  return all;
}

// Rows of a small table; as many as a client seems to have records.
std::string records_icon(int rows) {
  constexpr int most = 7;
  std::string svg = "<svg class=\"records\" viewBox=\"0 0 30 44\" aria-hidden=\"true\">";
  const double top = 1 + 3 * (most - std::max(rows, 1));
  for (int row = 0; row < rows; ++row) {
    const double y = top + 6 * row;
    svg += fmt::format("<path d=\"M0 {0:g}h8v4h-8zM10 {0:g}h10v4h-10zM22 {0:g}h8v4h-8z\"/>", y);
  }
  if (rows == 0) svg += "<path class=\"none\" d=\"M1 12h28v20h-28z\"/>";
  return svg + "</svg>";
}

// Lines from every client into the merge.
std::string fan(const std::vector<Card>& clients) {
  std::vector<double> centres;
  double y = 0;
  for (const Card& card : clients) {
    const double height = card.name.empty() ? dots_height : client_height;
    if (!card.name.empty()) centres.push_back(y + height / 2);
    y += height + client_gap;
  }
  const double height = y - client_gap;
  std::string svg = fmt::format(
      "<svg class=\"fan\" viewBox=\"0 0 64 {0:g}\" style=\"height:{1:g}rem\" aria-hidden=\"true\">",
      height, height / 16);
  for (const double centre : centres) {
    svg += fmt::format("<path d=\"M2 {0:g}C34 {0:g} 26 {1:g} 54 {1:g}\"/>", centre, height / 2);
  }
  return svg +
         fmt::format("<path class=\"tip\" d=\"M53 {:g}l10 5l-10 5z\"/></svg>", height / 2 - 5);
}

const char* const arrow_right =
    "<svg class=\"arrow right\" viewBox=\"0 0 32 12\" aria-hidden=\"true\"><path d=\"M0 "
    "6h24\"/><path class=\"tip\" d=\"M22 1l10 5l-10 5z\"/></svg>";
const char* const arrow_down =
    "<svg class=\"arrow down\" viewBox=\"0 0 12 26\" aria-hidden=\"true\"><path d=\"M6 "
    "0v18\"/><path class=\"tip\" d=\"M1 16l5 10l5-10z\"/></svg>";
const char* const arrow_back =
    "<span class=\"back\" aria-hidden=\"true\"><svg viewBox=\"0 0 10 10\"><path d=\"M10 0l-10 5l10 "
    "5z\"/></svg></span>";

std::string lines_table(const char* title, const std::vector<Line>& lines, bool federated) {
  if (lines.empty()) return "";
  std::string html = *title == 0 ? "" : fmt::format("<h4>{}</h4>", title);
  html += "<div class=\"scroll\"><table class=\"lines\"><tbody>";
  for (const Line& line : lines) {
    html += fmt::format(
        "<tr><td><code>{} = {}</code></td><td><span class=\"type {}\">{}</span></td></tr>",
        escape(line.name), escape(line.expression), federated ? "stays" : "shared",
        escape(line.type));
  }
  return html + "</tbody></table></div>";
}

std::string times(std::int64_t count) { return count == 1 ? "once" : grouped(count) + " times"; }

std::vector<std::string> names_of(const std::vector<Line>& lines) {
  std::vector<std::string> names;
  names.reserve(lines.size());
  for (const Line& line : lines) names.push_back(code(line.name));
  return names;
}

class Picture {
 public:
  Picture(const Plan& plan, const PictureFacts& facts)
      : plan_(plan), facts_(facts), cards_(cards(facts)), places_(places_of(plan)) {}

  std::string run() {
    html_ = "<div class=\"picture\">\n";
    block(plan_.body);
    std::vector<std::string> results;
    for (const ir::Output& output : plan_.program.outputs) {
      results.push_back(
          fmt::format("<li>{} {}</li>", code(output.name), type_tag(type(output.node))));
    }
    if (!results.empty()) {
      next();
      html_ += "<div class=\"server results\"><h3>Results</h3><ul class=\"chips\">";
      for (const std::string& result : results) html_ += result;
      html_ += "</ul></div>\n";
    }
    return html_ + "</div>\n";
  }

 private:
  const Type& type(NodeId id) const { return plan_.program.graph[id].type(); }

  void next() {
    if (!first_) html_ += fmt::format("<div class=\"next\">{}</div>\n", arrow_down);
    first_ = false;
  }

  void server(const char* title, const std::vector<Line>& lines) {
    if (lines.empty()) return;
    next();
    html_ += fmt::format("<div class=\"server\"><h3>{}</h3>{}</div>\n", title,
                         lines_table("", lines, false));
  }

  void block(const Block& block) {
    server("The server prepares", named_lines(plan_, block.prelude));
    for (const Step& step : block.steps) {
      if (const auto* round = std::get_if<Round>(&step.action)) this->round(step, *round);
      if (const auto* loop = std::get_if<LoopStep>(&step.action)) {
        this->loop(*loop);
        server("Then the server computes", named_lines(plan_, step.decoder));
      }
    }
  }

  void loop(const LoopStep& step) {
    const ir::Loop& loop = plan_.program.loops[step.loop];
    const std::optional<Size> count = most_iterations(plan_, step.loop);
    next();
    html_ += fmt::format(
        "<div class=\"loop\"><div class=\"rail\" aria-hidden=\"true\"><svg viewBox=\"0 0 12 "
        "10\"><path d=\"M0 0l12 5l-12 5z\"/></svg></div>"
        "<h3>Repeat up to {} times",
        count ? formula(count->to_string()) : code(describe(plan_, loop.count)));
    if (loop.until != ir::no_node)
      html_ += fmt::format(", until {}", code(ir::print_expr(plan_.program, loop.until)));
    if (step.loop < facts_.iterations.size())
      html_ +=
          fmt::format(" <span class=\"often\">ran {}</span>", times(facts_.iterations[step.loop]));
    html_ += "</h3>\n";
    first_ = true;
    block(step.body.front());
    std::string states;
    std::vector<std::string> traces;
    for (const Line& line : loop_lines(plan_, step.loop)) {
      if (line.name.ends_with("<-"))
        states +=
            fmt::format("<li><code>{} {}</code></li>", escape(line.name), escape(line.expression));
      if (line.name.starts_with("trace ")) traces.push_back(code(line.name.substr(6)));
    }
    html_ += "<div class=\"after\"><h4>At the end of each iteration</h4>";
    if (!states.empty()) html_ += "<ul>" + states + "</ul>";
    if (!traces.empty())
      html_ +=
          fmt::format("<p>One number is noted for the progress curve of {}.</p>", listed(traces));
    html_ += fmt::format("<p>Then the next iteration begins{}.</p></div></div>\n",
                         loop.until != ir::no_node ? ", unless the condition above holds" : "");
    first_ = false;
  }

  void round(const Step& step, const Round& round) {
    next();
    const auto number = static_cast<std::size_t>(round.number);
    const std::string often = number < facts_.runs.size() ? "ran " + times(facts_.runs[number])
                                                          : how_often(plan_, places_[number]);
    html_ += fmt::format(
        "<article class=\"round\" id=\"round-{0}\"><h3>Round {0} <span "
        "class=\"often\">{1}</span></h3>\n<p>{2}</p>\n<div class=\"flowbox\"><div "
        "class=\"flow\">\n",
        round.number + 1, often, round_sentence(plan_, step, facts_));
    sends(round);
    clients(round);
    html_ += fmt::format(
        "<div class=\"cap c2\"><b>leaves</b></div><div class=\"boundary\">{}{}<span>leaves the "
        "client</span></div>\n",
        fan(cards_), arrow_down);
    merges(round);
    html_ += fmt::format("<div class=\"onward\">{}{}</div>\n", arrow_right, arrow_down);
    decoder(step, round);
    html_ += "</div></div>\n";
    const std::string encoders =
        lines_table("On each client, per record", named_lines(plan_, round.encoders), true);
    const std::string merged =
        lines_table("Merged over all clients", merged_lines(plan_, round), false);
    const std::string decoders =
        lines_table("On the server", named_lines(plan_, step.decoder), false);
    if (!encoders.empty() || !merged.empty() || !decoders.empty()) {
      html_ += fmt::format(
          "<details><summary>Step by step, in the program's notation</summary>{}{}{}</details>\n",
          encoders, merged, decoders);
    }
    html_ += "</article>\n";
  }

  void sends(const Round& round) {
    if (round.receives.empty()) return;
    html_ +=
        fmt::format("<div class=\"sends\"><span>Every client receives</span>{}<ul class=\"chips\">",
                    arrow_back);
    for (const NodeId id : round.receives)
      html_ += fmt::format("<li>{} {}</li>", code(describe(plan_, id)), type_tag(type(id)));
    html_ += "</ul></div>\n";
  }

  void clients(const Round& round) {
    std::string inputs;
    for (const NodeId id : round.encoders) {
      const ir::Node& node = plan_.program.graph[id];
      if (node.kind != Kind::input) continue;
      inputs += fmt::format("{}{}\u00a0{}", inputs.empty() ? "" : ", ",
                            escape(plan_.program.inputs[node.index].name),
                            escape(node.type().to_string()));
    }
    const std::string message = numbers(message_size(plan_, round), facts_.sizes);
    html_ +=
        "<div class=\"cap c1\"><span><b>Records that stay</b>local "
        "input</span><span><b>Summary</b>local encoder</span></div>\n<ul class=\"clients\">";
    for (const Card& card : cards_) {
      if (card.name.empty()) {
        html_ += fmt::format("<li class=\"dots\"><span>\u22ee</span>{}</li>", card.note);
        continue;
      }
      html_ += fmt::format(
          "<li class=\"client\">{}<span class=\"who\"><b>{}</b><span>{}</span></span>{}"
          "<span class=\"encoder\"><i>\u03c6</i><span>{}</span></span></li>",
          records_icon(card.rows), card.name, card.note.empty() ? inputs : card.note, arrow_right,
          message);
    }
    html_ += "</ul>\n";
  }

  // By kind of merge, in the order of the program.
  void merges(const Round& round) {
    std::vector<const Monoid*> kinds;
    for (const Merge& merge : round.merges) {
      if (std::find(kinds.begin(), kinds.end(), merge.monoid) == kinds.end())
        kinds.push_back(merge.monoid);
    }
    html_ +=
        "<div class=\"cap c3\"><span><b>Merged over clients</b>shared state</span></div>\n<div "
        "class=\"box merge\">";
    for (const Monoid* kind : kinds) {
      html_ += fmt::format("<h4><span>\u2295</span> {}</h4><ul>", escape(kind->words));
      for (const Merge& merge : round.merges) {
        if (merge.monoid == kind)
          html_ += fmt::format("<li>{} {}</li>", code(describe_fold(plan_, merge.fold)),
                               type_tag(type(merge.fold)));
      }
      html_ += "</ul>";
    }
    html_ += "</div>\n";
  }

  void decoder(const Step& step, const Round& round) {
    html_ +=
        "<div class=\"cap c5\"><span><b>Server computes</b>shared-only decoder</span></div>\n<div "
        "class=\"box decoder\"><ul class=\"chips\">";
    bool any = false;
    for (const NodeId id : step.decoder) {
      const std::vector<Line> line = named_lines(plan_, {id});
      if (line.empty()) continue;
      any = true;
      html_ += fmt::format("<li>{} {}</li>", code(line.front().name), type_tag(type(id)));
    }
    for (const ir::Output& output : plan_.program.outputs) {
      const bool merged =
          std::any_of(round.merges.begin(), round.merges.end(),
                      [&](const Merge& merge) { return merge.fold == output.node; });
      if (!merged) continue;
      any = true;
      html_ += fmt::format("<li>{} {}</li>", code(output.name), type_tag(type(output.node)));
    }
    html_ += "</ul>";
    if (!any) html_ += "<p>keeps the merged values for what follows</p>";
    html_ += "</div>\n";
  }

  const Plan& plan_;
  const PictureFacts& facts_;
  std::vector<Card> cards_;
  std::vector<Place> places_;
  std::string html_;
  bool first_ = true;
};

}  // namespace

std::string round_sentence(const Plan& plan, const Step& step, const PictureFacts& facts) {
  const SizeValues& sizes = facts.sizes;
  const bool some = facts.sampled > 0;
  const Round& round = std::get<Round>(step.action);
  std::string text;
  if (!round.receives.empty()) {
    std::vector<std::string> sent;
    for (const NodeId id : round.receives) {
      sent.push_back(fmt::format("{} ({})", code(describe(plan, id)),
                                 amount(plan.program.graph[id].type(), sizes)));
    }
    text += fmt::format("The server sends every {} {}. ", some ? "client that is drawn" : "client",
                        listed_some(sent, 4));
  }
  const std::vector<std::string> local = names_of(named_lines(plan, round.encoders));
  const char* const each = some ? "Each of them" : "Each client";
  if (some && round.receives.empty()) text += "The server asks the clients that are drawn. ";
  text += local.empty() ? fmt::format("{} folds its own records", each)
                        : fmt::format("{} computes {} from its own records, folds them", each,
                                      listed_some(local));
  text += fmt::format(" and sends <b>{}</b>. The server merges the messages of {}",
                      numbers(message_size(plan, round), sizes),
                      some ? fmt::format("the {} clients drawn for the round", facts.sampled)
                           : std::string("all clients"));
  const std::vector<std::string> decoded = names_of(named_lines(plan, step.decoder));
  if (!decoded.empty()) text += fmt::format(" and computes {}", listed_some(decoded));
  return text + ".";
}

std::string rounds_picture(const Plan& plan, const PictureFacts& facts) {
  return Picture(plan, facts).run();
}

}  // namespace starfold::page
