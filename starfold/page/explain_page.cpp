#include <fmt/format.h>

#include <algorithm>

#include "starfold/page/html.h"
#include "starfold/page/listing.h"
#include "starfold/page/pages.h"
#include "starfold/page/picture.h"
#include "starfold/page/privacy_section.h"
#include "starfold/page/study_section.h"
#include "starfold/page/words.h"
#include "starfold/plan/disclosure.h"
#include "starfold/plan/explain.h"

namespace starfold {
namespace {

using namespace page;

std::vector<std::string> output_names(const Plan& plan) {
  std::vector<std::string> names;
  for (const ir::Output& output : plan.program.outputs) names.push_back(code(output.name));
  return names;
}

std::vector<std::string> federated_inputs(const Plan& plan) {
  std::vector<std::string> names;
  for (const ir::Input& input : plan.program.inputs) {
    if (input.type.federated()) names.push_back(code(input.name));
  }
  return names;
}

// All numbers a client sends in a run, at most.
std::optional<Size> total_numbers(const Plan& plan, const std::vector<Place>& places) {
  std::optional<Size> total = Size(0);
  for (const Place& place : places) {
    const std::optional<Size> runs = most_runs(plan, place);
    const std::optional<Size> size = message_size(plan, *place.round);
    const std::optional<Size> product = runs && size ? multiply(*runs, *size) : std::nullopt;
    total = total && product ? add(*total, *product) : std::nullopt;
  }
  return total;
}

std::string lead(const Plan& plan) {
  const std::vector<std::string> inputs = federated_inputs(plan);
  std::string text =
      fmt::format("<p class=\"lead\">This program computes {} ", listed_some(output_names(plan)));
  if (inputs.empty()) return text + "from shared values only. It reads no records.</p>\n";
  return text +
         fmt::format(
             "from the records {} of all clients{}. Each client "
             "folds its own records and sends only the folds; this page says which, and what "
             "they show.</p>\n",
             listed_some(inputs),
             is_split(plan.program)
                 ? ", some of it at each client on its own: the answer depends on how "
                   "the records are split over the clients"
                 : ", as if they were in one place");
}

std::string messages_sentence(const Plan& plan, const std::vector<Place>& places) {
  if (places.empty()) return "<b>Nothing is sent.</b> The program folds no records.";
  const std::size_t count = places.size();
  std::string text = count == 1 ? "<b>One kind of message leaves a client.</b> It is sent "
                                : fmt::format("<b>{} kinds of message leave a client.</b> ", count);
  for (std::size_t i = 0; i < count && count <= 4; ++i) {
    const std::string size = numbers(message_size(plan, *places[i].round));
    if (count == 1) {
      text += fmt::format("{} and holds {}. ", how_often(plan, places[i]), size);
    } else {
      text += fmt::format("{}{}, sent {}{} ",
                          i == 0   ? "The first holds "
                          : i == 1 ? "the second "
                          : i == 2 ? "the third "
                                   : "the fourth ",
                          size, how_often(plan, places[i]), i + 1 == count ? "." : ";");
    }
  }
  const std::optional<Size> total = total_numbers(plan, places);
  if (total && (count > 1 || !places.front().loops.empty()))
    text += fmt::format("In a whole run that makes at most {} per client.", numbers(total));
  return text;
}

// The same in figures, and what the letters in them stand for.
std::string figures(const Plan& plan, const std::vector<Place>& places) {
  std::size_t values = 0;
  std::size_t risky = 0;
  for (const std::vector<Disclosure>& round : disclosures(plan)) {
    values += round.size();
    risky += static_cast<std::size_t>(
        std::count_if(round.begin(), round.end(),
                      [](const Disclosure& value) { return value.shows >= Shows::group; }));
  }
  std::string html = fmt::format(
      "<dl class=\"figures\"><div><dt>{} of message</dt><dd>{}</dd></div>"
      "<div><dt>{} sent</dt><dd>{}</dd></div>",
      places.size() == 1 ? "kind" : "kinds", places.size(), values == 1 ? "value" : "values",
      values);
  if (values > 0)
    html += fmt::format("<div><dt>of these, can show single records</dt><dd>{}</dd></div>", risky);
  const std::optional<Size> total = total_numbers(plan, places);
  if (total)
    html += fmt::format(
        "<div><dt>numbers sent by a client in a whole run, at most</dt><dd>{}</dd></div>",
        formula(total->to_string()));
  for (const ir::SizeVariable& size : plan.program.sizes) {
    html += fmt::format("<div class=\"letter\"><dt>{}</dt><dd>{}</dd></div>",
                        size_meaning(plan.program, size), formula(size.name));
  }
  return html + "</dl>";
}

std::string in_short(const Plan& plan, const std::vector<Place>& places) {
  std::string html = "<ul class=\"points\">\n";
  if (!federated_inputs(plan).empty()) {
    html +=
        "<li><b>Nothing with an entry per record is sent.</b> Whatever has one is marked with a "
        "star, and nothing so marked can be sent before it is folded over the records; the program "
        "was checked for that before this page was made. <a href=\"#stays\">The list</a></li>\n";
  }
  html += "<li>" + messages_sentence(plan, places) +
          (places.empty() ? "" : " <a href=\"#leaves\">Every value</a>") + "</li>\n";
  if (!places.empty()) {
    html +=
        "<li><b>More records do not mean more data sent.</b> The size of a message is fixed by the "
        "program; a client with ten records sends as "
        "many numbers as one with ten million.</li>\n"
        "<li>" +
        shows_sentence(plan) +
        "<a href=\"#shows\">Each value</a></li>\n"
        "<li><b>What is sent are summaries, not anonymous data.</b> The sum over one record is "
        "that "
        "record, and a client that sends more numbers than it has records may give them away. The "
        "server sees each client's message before it merges them.</li>\n";
  }
  return "<div class=\"glance\">" + html + "</ul>\n" + figures(plan, places) + "</div>\n";
}

std::string leaves(const Plan& plan, const SourceMap& sources, const std::vector<Place>& places) {
  if (places.empty()) return "<p>Nothing: the program folds no records.</p>\n";
  std::vector<std::vector<Field>> sent;
  std::vector<std::vector<Field>> received;
  for (const Place& place : places) {
    const std::string round =
        fmt::format("<a href=\"#round-{0}\">{0}</a>", place.round->number + 1);
    for (const Merge& merge : place.round->merges) {
      const ir::Node& node = plan.program.graph[merge.fold];
      const std::optional<Size> count = state_size(plan, merge);
      sent.push_back({{round, true},
                      {code(describe_fold(plan, merge.fold))},
                      {type_tag(node.type())},
                      {fmt::format("{} <span class=\"monoid\">{}</span>",
                                   escape(merge.monoid->words), escape(merge.monoid->name))},
                      {count ? formula(count->to_string()) : "many", true},
                      {how_often(plan, place)},
                      {line_link(sources, node.span), true}});
    }
    for (const ir::NodeId id : place.round->receives) {
      const Type& type = plan.program.graph[id].type();
      received.push_back({{round, true},
                          {code(describe(plan, id))},
                          {type_tag(type)},
                          {amount(type)},
                          {how_often(plan, place)}});
    }
  }
  std::string html =
      "<p>This is the complete list. Every row is folded over the records of the client before it "
      "is sent, and then merged with "
      "the same value from the other clients.</p>\n";
  html += table("What leaves each client",
                {{"Round", true},
                 {"Value"},
                 {"Shape"},
                 {"Merged over clients"},
                 {"Numbers", true},
                 {"How often"},
                 {"Line", true}},
                sent);
  html += "<h3 id=\"shows\">What each value shows of records</h3>\n" + shows_table(plan);
  html += "<h3>What the server sends to every client</h3>\n";
  if (received.empty()) return html + "<p>No values, only the request to start a round.</p>\n";
  return html + table("What the server sends",
                      {{"Round", true}, {"Value"}, {"Shape"}, {"In words"}, {"How often"}},
                      received);
}

std::string stays(const Plan& plan, const SourceMap& sources) {
  std::vector<std::vector<Field>> rows;
  for (const ir::NameType& name : plan.program.name_types) {
    if (!name.type.federated()) continue;
    bool input = false;
    for (const ir::Input& declared : plan.program.inputs)
      input = input || declared.name == name.name;
    rows.push_back({{code(name.name)},
                    {type_tag(name.type)},
                    {amount(name.type)},
                    {input ? "the client's data" : "computed on the client"},
                    {line_link(sources, name.span), true}});
  }
  if (rows.empty()) return "<p>The program has no value with an entry per record.</p>\n";
  std::string blocks;
  for (const Round* round : rounds_of(plan)) {
    for (const ir::NodeId id : round->encoders) {
      if (plan.program.graph[id].block)
        blocks += fmt::format("<h3>At each client on its own: line {}</h3>\n<pre>{}</pre>\n",
                              line_link(sources, plan.program.graph[id].span),
                              escape(block_text(plan, id, 0)));
    }
  }
  return "<p>These values have one entry per record or per client, and so has everything computed "
         "from them "
         "record by record. None of them is sent; what leaves are folds of them, listed above with "
         "what each shows.</p>\n" +
         blocks +
         table("What stays on each client",
               {{"Name"}, {"Type"}, {"In words"}, {"What it is"}, {"Line", true}}, rows);
}

// A study knows who its clients are and how large things will be.
PictureFacts facts_of(const StudyFacts* study) {
  PictureFacts facts;
  if (study == nullptr) return facts;
  for (const StudyFacts::Client& client : study->clients)
    facts.clients.push_back({client.name, std::nullopt});
  facts.sizes = study->sizes;
  return facts;
}

}  // namespace

std::string explain_html(const Plan& given, const SourceMap& sources, const std::string& title,
                         const StudyFacts* study) {
  const Plan plan = readable(given);
  const std::vector<Place> places = places_of(plan);
  Document document;
  document.kind = "what this program sends";
  document.title = title;
  document.lead = lead(plan);
  document.sections.push_back({"short", "In short", in_short(plan, places)});
  if (study != nullptr)
    document.sections.push_back({"study", "This study", study_section(plan, *study)});
  if (study != nullptr && study->privacy)
    document.sections.push_back(
        {"privacy", "What would be guaranteed", promise_section(*study->privacy)});
  document.sections.push_back({"rounds", "How it runs", rounds_picture(plan, facts_of(study))});
  document.sections.push_back({"leaves", "What leaves each client", leaves(plan, sources, places)});
  document.sections.push_back({"stays", "What stays", stays(plan, sources)});
  document.sections.push_back({"program", "The program",
                               "<p>Marked: the expressions that fold records, and so the only ones "
                               "from which something leaves a client.</p>\n" +
                                   listing(plan, sources)});
  document.sections.push_back({"names", "Names and types", names_table(plan, sources)});
  document.footer = fmt::format(
      "<p>Plan <code class=\"hash\">{}</code>. Server and clients refuse to work together unless "
      "both arrive at this plan from the program's text.</p>",
      plan_hash(plan));
  return page::document(document);
}

}  // namespace starfold
