#include "starfold/page/study_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "starfold/node/policy.h"
#include "starfold/page/html.h"
#include "starfold/page/number.h"
#include "starfold/page/words.h"
#include "starfold/plan/explain.h"

namespace starfold::page {
namespace {

std::string clients_table(const StudyFacts& study) {
  if (!study.simulation.empty())
    return fmt::format("<p>Its clients are made up: {}.</p>\n", code(study.simulation));
  constexpr std::size_t most = 100;
  std::vector<std::vector<Field>> rows;
  for (const StudyFacts::Client& client : study.clients) {
    if (rows.size() == most) break;
    rows.push_back({{escape(client.name)},
                    {client.data.empty() ? "" : code(client.data)},
                    {client.node            ? "what its owner allows"
                     : client.query.empty() ? "all of it"
                                            : code(client.query)}});
  }
  return (rows.empty()
              ? std::string()
              : table("Clients of the study", {{"Client"}, {"Data"}, {"What is read"}}, rows)) +
         (study.clients.size() > most
              ? fmt::format("<p class=\"note\">The first {} of {} clients.</p>\n", most,
                            study.clients.size())
              : "");
}

std::string columns_table(const Plan& plan, const StudyFacts& study) {
  std::vector<std::vector<Field>> rows;
  for (const ir::Input& input : plan.program.inputs) {
    if (!input.type.federated()) continue;
    const auto columns = study.columns.find(input.name);
    std::vector<std::string> names;
    if (columns != study.columns.end()) {
      for (const std::string& name : columns->second) names.push_back(code(name));
    }
    rows.push_back({{code(input.name)},
                    {type_tag(input.type)},
                    {names.empty() ? "the array of its name" : listed_some(names, 40)}});
  }
  if (rows.empty()) return "";
  return table("Columns that are used", {{"Input"}, {"Type"}, {"Columns"}}, rows);
}

std::string messages_table(const Plan& plan, const StudyFacts& study) {
  std::vector<std::vector<Field>> rows;
  for (const Place& place : places_of(plan)) {
    const std::optional<Size> size = message_size(plan, *place.round);
    rows.push_back({{fmt::format("<a href=\"#round-{0}\">{0}</a>", place.round->number + 1), true},
                    {numbers(size, study.sizes)},
                    {how_often(plan, place)}});
  }
  if (rows.empty()) return "";
  return "<h3>How much leaves a client</h3>\n" +
         table("Messages with the sizes of this study",
               {{"Round", true}, {"A client sends"}, {"How often"}}, rows);
}

// What nodes with the policy that a node has by default would do, as far as the plan tells.
std::string policy_part(const Plan& plan, const StudyFacts& study) {
  const Policy policy;
  std::set<std::string> refused;
  std::int64_t most = 0;
  bool known = true;
  for (const Round* round : rounds_of(plan)) {
    const std::optional<Size> size = message_size(plan, *round);
    const std::optional<std::int64_t> count = size ? size->evaluate(study.sizes) : std::nullopt;
    known = known && count.has_value();
    most = std::max(most, count.value_or(0));
    for (const Merge& merge : round->merges) {
      if (std::find(policy.merges.begin(), policy.merges.end(), merge.monoid->name) ==
          policy.merges.end())
        refused.insert(code(std::string(merge.monoid->name)));
    }
  }
  if (plan.rounds == 0) return "";
  std::string text =
      "<h3>What a node would do</h3>\n<p>Each client that is a node decides for itself. With the "
      "policy "
      "that a node has by default, ";
  if (!refused.empty()) {
    text += fmt::format(
        "it refuses this study: {} may show single records, or is not among the merges it "
        "allows.</p>\n",
        listed_some({refused.begin(), refused.end()}, 6));
  } else {
    const auto least = std::max(static_cast<double>(policy.min_records),
                                std::ceil(static_cast<double>(most) / policy.max_ratio));
    text += fmt::format(
        "it answers if it has at least {} usable records{}, if every number rests on at least {:g} "
        "of "
        "them, effectively, or on none, and if no condition leaves out fewer; for at most {} "
        "rounds and "
        "{} numbers, and {:g} numbers for each record, over all runs of the study.</p>\n",
        known ? grouped(static_cast<std::int64_t>(least)) : std::string("as many"),
        known ? "" : " as a round releases numbers", policy.min_support, grouped(policy.max_rounds),
        grouped(policy.max_numbers), policy.max_total_ratio);
  }
  const char* const each_summary =
      study.group ? ""
                  : "the summary of each client, not only that of all together (secure "
                    "aggregation hides it); ";
  return text +
         fmt::format("<p class=\"note\">What the server learns that it need not: {}",
                     each_summary) +
         "from how long an answer takes, roughly how many records a client has. Types and policy "
         "do not "
         "stop someone who combines many well-supported answers to find out about a record: noise "
         "(differential privacy) does.</p>\n";
}

std::string references_part(const StudyFacts& study) {
  if (study.references.empty()) return "";
  std::vector<std::vector<Field>> rows;
  for (const auto& [column, level] : study.references)
    rows.push_back({{code(column)}, {level.empty() ? "none" : code(level)}});
  return table("Columns with levels", {{"Column"}, {"Reference level"}}, rows);
}

}  // namespace

std::string study_section(const Plan& plan, const StudyFacts& study) {
  std::string sizes;
  for (const auto& [name, value] : study.sizes)
    sizes += fmt::format("{}{} is {}", sizes.empty() ? "" : ", ", formula(name), value);
  const char* missing = study.missing == "drop"  ? "left out"
                        : study.missing == "nan" ? "used with nan in its place"
                                                 : "an error";
  const std::string written =
      study.formula.empty()
          ? ""
          : fmt::format("<p>The columns are made by the formula {}.</p>\n", code(study.formula));
  return clients_table(study) + written + columns_table(plan, study) + references_part(study) +
         fmt::format("<p>A record with a missing value in one of these columns is {}.{}</p>\n",
                     missing, sizes.empty() ? "" : " With these data " + sizes + ".") +
         messages_table(plan, study) +
         (study.group
              ? fmt::format("<p class=\"note masked\">{}</p>\n",
                            masking_words(study.group->members.size(), study.group->inputs()))
              : "") +
         (study.simulation.empty() ? policy_part(plan, study) : "");
}

}  // namespace starfold::page
