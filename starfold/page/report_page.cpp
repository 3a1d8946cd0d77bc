#include <fmt/format.h>

#include <algorithm>

#include "starfold/base/hash.h"
#include "starfold/page/chart.h"
#include "starfold/page/html.h"
#include "starfold/page/listing.h"
#include "starfold/page/number.h"
#include "starfold/page/pages.h"
#include "starfold/page/picture.h"
#include "starfold/page/privacy_section.h"
#include "starfold/page/results.h"
#include "starfold/page/words.h"
#include "starfold/plan/explain.h"

namespace starfold {
namespace {

using namespace page;

// Whether clients and server exchanged anything: not so when the reference was evaluated.
bool federated(const RunReport& report, const Plan& plan) {
  return report.rounds > 0 || plan.rounds == 0;
}

std::string plural(std::int64_t count, const char* one, const char* many) {
  return fmt::format("{} {}", grouped(count), count == 1 ? one : many);
}

// Nothing where clients do not say.
std::optional<std::int64_t> all_records(const RunReport& report) {
  std::int64_t records = 0;
  for (const ClientReport& client : report.clients) {
    if (client.records == unknown_records) return std::nullopt;
    records += client.records;
  }
  return records;
}

// " with 1,200 records"
std::string with_records(const RunReport& report) {
  const std::optional<std::int64_t> records = all_records(report);
  return records ? " with " + plural(*records, "record", "records") : "";
}

// Clients that the run went on without.
std::string departed_note(const RunReport& report) {
  std::string text;
  for (const Departure& departure : report.departures)
    text += fmt::format(
        "<p class=\"note departed\">{} did not answer and took part in the first {} only: the "
        "results "
        "are those of the others from then on.</p>\n",
        escape(report.clients[departure.client].name), plural(departure.rounds, "round", "rounds"));
  return text;
}

// That only some clients were asked in each round.
std::string sample_note(const RunReport& report) {
  if (report.sample.clients == 0) return "";
  return fmt::format(
      "<p class=\"note sampled\">Every round was asked of {} of the {}, drawn for it (seed {}): "
      "its "
      "sums are over those alone, and so are the results.</p>\n",
      grouped(report.sample.clients),
      plural(static_cast<std::int64_t>(report.clients.size()), "client", "clients"),
      grouped(static_cast<std::int64_t>(report.sample.seed)));
}

// Records that a missing value kept out.
std::string dropped_sentence(const RunReport& report) {
  std::int64_t dropped = 0;
  for (const ClientReport& client : report.clients) dropped += client.dropped;
  if (dropped == 0) return "";
  return fmt::format("{} with a missing value {} left out. ", plural(dropped, "record", "records"),
                     dropped == 1 ? "was" : "were");
}

std::string bytes_text(std::uint64_t bytes) {
  if (bytes < 10'000) return grouped(static_cast<std::int64_t>(bytes)) + " bytes";
  if (bytes < 10'000'000) return fmt::format("{:.3g} kB", static_cast<double>(bytes) / 1e3);
  return fmt::format("{:.3g} MB", static_cast<double>(bytes) / 1e6);
}

std::string lead(const RunReport& report, const Plan& plan) {
  std::string text =
      fmt::format("<p class=\"lead\">{}{} took part. ",
                  plural(static_cast<std::int64_t>(report.clients.size()), "client", "clients"),
                  with_records(report)) +
      dropped_sentence(report);
  if (!federated(report, plan))
    return text +
           "The program was evaluated on the pooled records, for comparison: nothing was sent and "
           "merged.</p>\n";
  if (plan.rounds == 0) return text + "Nothing was sent: the program folds no records.</p>\n";
  text += fmt::format("{} in {}. {} <a href=\"#shows\">Each value</a></p>\n",
                      report.packed > 0 ? "Summaries were merged" : "They sent summaries",
                      plural(report.rounds, "round", "rounds"), shows_in_short(plan));
  if (report.group) text += fmt::format("<p class=\"note masked\">{}</p>\n", masked_note(report));
  return text + sample_note(report) + departed_note(report) +
         (report.packed > 0 ? fmt::format("<p class=\"note packed\">{}</p>\n", packed_note(report))
                            : "");
}

// Clients whose messages hold at least as many numbers as they have records.
std::string outnumbered(const RunReport& report) {
  std::vector<std::string> names;
  for (const ClientReport& client : report.clients) {
    if (client.records <= 0 || client.numbers_sent < client.records) continue;
    names.push_back(escape(client.name));
    if (report.client_details)
      names.back() += fmt::format(" ({} from {})", grouped(client.numbers_sent),
                                  plural(client.records, "record", "records"));
  }
  if (names.empty()) return "";
  return fmt::format(
      "<p class=\"note outnumbered\">At least as many numbers as records {} by {}: so many "
      "numbers may give single records away.</p>\n",
      report.packed > 0 ? "would be sent" : "were sent", listed_some(names, 4));
}

std::string tile(const std::string& title, const std::string& value) {
  return fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", title, value);
}

std::string figures(const RunReport& report, const Plan& plan) {
  std::string html = "<dl class=\"tiles facts\">" +
                     tile("clients", grouped(static_cast<std::int64_t>(report.clients.size())));
  if (const std::optional<std::int64_t> records = all_records(report))
    html += tile("records", grouped(*records));
  if (federated(report, plan)) {
    std::uint64_t most = 0;
    for (const ClientReport& client : report.clients) most = std::max(most, client.bytes_sent);
    html += tile("rounds", grouped(report.rounds)) +
            tile(report.packed > 0 ? "a client would send, at most" : "sent by a client, at most",
                 bytes_text(most));
  }
  return html + tile("time", duration(whole_time(report))) + "</dl>\n";
}

std::string trace_html(const std::string& name, const std::vector<double>& values) {
  if (values.empty()) return "";
  const std::string svg = line_chart("progress of " + name, "iteration", {{name, values}});
  std::string html = fmt::format("<article class=\"trace\" data-trace=\"{}\"><h3>{}</h3>\n",
                                 escape(name), code(name));
  if (!svg.empty()) html += "<figure>" + svg + "</figure>";
  html += fmt::format("<p class=\"note\">{} \u2192 {} in {}</p>\n", shown(values.front()),
                      shown(values.back()),
                      plural(static_cast<std::int64_t>(values.size()), "iteration", "iterations"));
  constexpr std::size_t most = 200;
  const NumberFormat format = format_for(values);
  std::vector<std::vector<Field>> rows;
  for (std::size_t i = 0; i < std::min(values.size(), most); ++i) {
    rows.push_back({{fmt::format("<span class=\"index\">{}</span>", i + 1), true},
                    {datum(values[i], format, name, i), true}});
  }
  html += fmt::format("<details><summary>Values</summary>{}</details>",
                      table(name, {{"", true}, {code(name), true}}, rows));
  return html + "</article>\n";
}

std::string traces(const RunReport& report, const Plan& plan) {
  std::string html = "<div class=\"traces\">\n";
  std::vector<std::string> done;
  for (const ir::Trace& trace : plan.program.traces) {
    if (trace.kind != ir::Trace::Kind::record) continue;
    const auto found = report.results.traces.find(trace.name);
    if (found == report.results.traces.end() ||
        std::find(done.begin(), done.end(), trace.name) != done.end())
      continue;
    done.push_back(trace.name);
    html += trace_html(trace.name, found->second);
  }
  return html + "</div>\n";
}

// A number with a bar that compares it with the largest of its column.
std::string measured(double value, double largest, const std::string& text) {
  return fmt::format("{}<span class=\"measure\" style=\"width:{:.1f}%\"></span>", text,
                     largest > 0 ? 100 * value / largest : 0);
}

std::string clients_table(const RunReport& report, bool federated) {
  constexpr std::size_t most = 100;
  double records = 0;
  double sent = 0;
  for (const ClientReport& client : report.clients) {
    records = std::max(records, static_cast<double>(client.records));
    sent = std::max(sent, static_cast<double>(client.bytes_sent));
  }
  std::vector<std::vector<Field>> rows;
  for (std::size_t i = 0; i < std::min(most, report.clients.size()); ++i) {
    const ClientReport& client = report.clients[i];
    std::vector<Field> row = {{escape(client.name)}};
    if (report.client_details)
      row.push_back(
          {measured(static_cast<double>(client.records), records, grouped(client.records)), true});
    if (federated) {
      row.push_back({grouped(client.numbers_sent), true});
      row.push_back({measured(static_cast<double>(client.bytes_sent), sent,
                              grouped(static_cast<std::int64_t>(client.bytes_sent))),
                     true});
      row.push_back({grouped(static_cast<std::int64_t>(client.bytes_received)), true});
    }
    rows.push_back(std::move(row));
  }
  std::vector<Field> head = {{"Client"}};
  if (report.client_details) head.push_back({"Records", true});
  if (federated)
    head.insert(head.end(),
                {{"Numbers sent", true}, {"Bytes sent", true}, {"Bytes received", true}});
  std::string html = table("Clients", head, rows);
  if (report.clients.size() > most)
    html += fmt::format(
        "<p class=\"note\">The first {} of {} clients; all of them are in run.json.</p>\n", most,
        report.clients.size());
  return html;
}

std::string sent(const RunReport& report, const Plan& plan, const SourceMap& sources) {
  const bool exchanged = federated(report, plan);
  std::string html = exchanged
                         ? "<p>Every client sends the same kinds of summary, so messages are "
                           "equally long however many records a client has. Numbers are those "
                           "folded from records; bytes include the greeting and the envelope "
                           "of each message.</p>\n" +
                               outnumbered(report)
                         : "";
  html = "<div class=\"clientlist\">" + html + clients_table(report, exchanged) + "</div>";
  if (!exchanged || plan.rounds == 0) return html;
  std::vector<std::vector<Field>> rows;
  for (const Place& place : places_of(plan)) {
    const auto number = static_cast<std::size_t>(place.round->number);
    const std::int64_t runs = number < report.round_runs.size() ? report.round_runs[number] : 0;
    for (const Merge& merge : place.round->merges) {
      const ir::Node& node = plan.program.graph[merge.fold];
      const std::optional<Size> size = state_bytes(plan, merge);
      const std::int64_t bytes = size ? size->evaluate(report.sizes).value_or(0) : 0;
      rows.push_back({{fmt::format("<a href=\"#round-{0}\">{0}</a>", number + 1), true},
                      {code(describe_fold(plan, merge.fold))},
                      {type_tag(node.type())},
                      {escape(merge.monoid->words)},
                      {amount(node.type(), report.sizes)},
                      {grouped(bytes), true},
                      {grouped(runs), true},
                      {line_link(sources, node.span), true}});
    }
  }
  html += "<h3 id=\"shows\">What each value shows of records</h3>\n" + shows_table(plan);
  return html + "<h3>In each message</h3>\n" +
         table("What was in each message",
               {{"Round", true},
                {"Value"},
                {"Shape"},
                {"Merged over clients"},
                {"In words"},
                {"Bytes", true},
                {"Times", true},
                {"Line", true}},
               rows);
}

PictureFacts facts_of(const RunReport& report) {
  PictureFacts facts;
  for (const ClientReport& client : report.clients)
    facts.clients.push_back(
        {client.name, report.client_details ? std::optional(client.records) : std::nullopt});
  facts.sizes = report.sizes;
  facts.runs = report.round_runs;
  if (report.rounds > 0) facts.iterations = report.results.iterations;
  facts.sampled = report.sample.clients;
  return facts;
}

// What a program is for: the first line of the comment at its top.
std::string purpose(const std::string& text) {
  if (!text.starts_with("# ")) return "";
  return fmt::format("<p class=\"purpose\">{}</p>\n", escape(text.substr(2, text.find('\n') - 2)));
}

// What a reader needs to know, or to repeat it.
std::string about(const RunReport& report, const CompiledProgram& program) {
  std::vector<std::vector<Field>> rows = {{{"Finished"}, {escape(report.finished)}}};
  if (!report.study.empty()) rows.push_back({{"Study"}, {escape(report.study)}});
  if (const std::optional<std::int64_t> records = all_records(report)) {
    std::int64_t dropped = 0;
    for (const ClientReport& client : report.clients) dropped += client.dropped;
    rows.push_back({{"Records used"}, {grouped(*records)}});
    rows.push_back({{"Records left out for a missing value"}, {grouped(dropped)}});
  }
  std::vector<std::string> names;
  for (const ClientReport& client : report.clients) names.push_back(escape(client.name));
  if (!names.empty()) rows.push_back({{"Clients"}, {listed_some(names, 20)}});
  if (!report.formula.empty()) rows.push_back({{"Formula"}, {code(report.formula)}});
  for (const auto& [input, columns] : report.columns) {
    std::vector<std::string> shown;
    for (const std::string& column : columns) shown.push_back(code(column));
    rows.push_back({{input == "y" ? "Outcome " + code("y") : "Input " + code(input)},
                    {listed_some(shown, 40)}});
  }
  for (const auto& [column, level] : report.references)
    rows.push_back(
        {{"Reference level of " + code(column)}, {level.empty() ? "none" : code(level)}});
  if (!report.missing.empty())
    rows.push_back({{"Records with a missing value"},
                    {report.missing == "drop"  ? "left out"
                     : report.missing == "nan" ? "used with nan in its place"
                                               : "an error: there was none"}});
  if (program.planning.exact)
    rows.push_back({{"Exact"},
                    {"every sum was rounded once, at the end: the same records give the same bits "
                     "however they are split, in any order, on any number of threads"}});
  for (const ClientReport& client : report.clients) {
    if (!report.client_details || client.missing.empty()) continue;
    std::vector<std::string> parts;
    for (const auto& [column, count] : client.missing)
      parts.push_back(fmt::format("{} {}", code(column), grouped(count)));
    rows.push_back({{"Missing values of " + escape(client.name)}, {listed_some(parts, 40)}});
  }
  if (!report.run.empty()) rows.push_back({{"Run"}, {code(report.run)}});
  rows.push_back({{"Program (SHA-256)"}, {code(sha256_hex(program.text.text))}});
  rows.push_back({{"Plan (SHA-256)"}, {code(program.hash)}});
  return table("About this run", {{"What"}, {""}}, rows);
}

// What the program expected and did not find, before the results that it bears on.
std::string cautions(const RunReport& report, const ir::Program& program) {
  std::string html;
  for (const std::string& text : warnings(report, program))
    html += fmt::format("<p class=\"caution\"><strong>Warning:</strong> {}.</p>\n", escape(text));
  return html;
}

}  // namespace

std::string report_html(const RunReport& report, const CompiledProgram& program) {
  const Plan plan = readable(*program.plan);
  const ir::Program& typed = program.compilation.program;
  const SourceMap& sources = program.compilation.sources;
  const std::string& path = program.text.name;
  Document document;
  document.kind = "report of a run";
  document.title = report.title.empty() ? path.substr(path.find_last_of('/') + 1) : report.title;
  document.lead = purpose(program.text.text) + lead(report, plan) + figures(report, plan) +
                  cautions(report, typed);
  document.sections.push_back({"results", "Results",
                               results_html(typed, sources, report.results.outputs,
                                            output_labels(typed, report.columns, report.sizes))});
  if (report.privacy)
    document.sections.push_back(
        {"privacy", "What is guaranteed", privacy_section(*report.privacy)});
  const std::string progress = traces(report, plan);
  if (progress.find("<article") != std::string::npos)
    document.sections.push_back({"progress", "Progress", progress});
  document.sections.push_back(
      {"sent", report.packed > 0 ? "What each client would send" : "What each client sent",
       sent(report, plan, sources)});
  if (!report.finished.empty())
    document.sections.push_back({"about", "About this run", about(report, program)});
  const std::string parts = time_parts(report);
  document.sections.push_back(
      {"rounds", "How it ran",
       (parts.empty() ? "" : fmt::format("<p class=\"note\">Time: {}.</p>\n", parts)) +
           rounds_picture(plan, facts_of(report))});
  document.sections.push_back({"program", "The program",
                               "<p>Marked: the expressions that fold records, and so the only ones "
                               "from which something leaves a client.</p>\n" +
                                   listing(plan, sources) + "<h3>Names and types</h3>\n" +
                                   names_table(plan, sources, report.sizes)});
  document.footer = fmt::format(
      "<p>Numbers on this page are rounded; each carries its exact value, as in outputs.json, and "
      "shows it under the pointer.</p><p>Plan <code class=\"hash\">{}</code></p>",
      program.hash);
  return page::document(document);
}

}  // namespace starfold
