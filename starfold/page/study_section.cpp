#include "starfold/page/study_section.h"

#include <fmt/format.h>

#include "starfold/page/html.h"
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
                    {client.query.empty() ? "all of it" : code(client.query)}});
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

}  // namespace

std::string study_section(const Plan& plan, const StudyFacts& study) {
  std::string sizes;
  for (const auto& [name, value] : study.sizes)
    sizes += fmt::format("{}{} is {}", sizes.empty() ? "" : ", ", formula(name), value);
  const char* missing = study.missing == "drop"  ? "left out"
                        : study.missing == "nan" ? "used with nan in its place"
                                                 : "an error";
  return clients_table(study) + columns_table(plan, study) +
         fmt::format("<p>A record with a missing value in one of these columns is {}.{}</p>\n",
                     missing, sizes.empty() ? "" : " With these data " + sizes + ".") +
         messages_table(plan, study);
}

}  // namespace starfold::page
