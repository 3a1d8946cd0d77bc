#include "starfold/page/privacy_section.h"

#include <fmt/format.h>

#include <algorithm>

#include "starfold/page/html.h"
#include "starfold/page/number.h"

namespace starfold::page {
namespace {

using privacy::Promise;

std::string in_words(const Promise& promise) {
  std::string html;
  for (const std::string& sentence : privacy::guarantees(promise))
    html += fmt::format("<p>{}</p>\n", escape(sentence));
  return html;
}

std::string amount(double epsilon, double delta) {
  return delta == 0 ? fmt::format("&epsilon; = {:.4g}", epsilon)
                    : fmt::format("&epsilon; = {:.4g} at &delta; = {:g}", epsilon, delta);
}

const char* noise_word(const Promise& promise) {
  return promise.pure() ? "discrete Laplace" : "discrete Gaussian";
}

std::string seed_warning(bool predictable) {
  if (!predictable) return "";
  return "<p class=\"note predictable\"><b>Not private.</b> The noise of this run comes from a "
         "seed, "
         "for tests: who knows it can take the noise away.</p>\n";
}

std::string releases_table(const privacy::Report& report) {
  constexpr std::size_t most = 100;
  std::vector<std::vector<Field>> rows;
  for (const privacy::Release& release : report.releases) {
    if (rows.size() == most) break;
    rows.push_back({{fmt::format("<a href=\"#round-{0}\">{0}</a>", release.round + 1), true},
                    {shown(release.sensitivity), true},
                    {shown(release.scale), true},
                    {shown(release.grid), true},
                    {fmt::format("{:.4g}", release.epsilon), true}});
  }
  if (rows.empty()) return "";
  std::string html = table("Noise of each round",
                           {{"Round", true},
                            {"One unit changes at most", true},
                            {"Scale of noise", true},
                            {"Grid", true},
                            {"&epsilon; spent by then", true}},
                           rows);
  if (report.releases.size() > most)
    html += fmt::format("<p class=\"note\">The first {} of {} rounds; all are in run.json.</p>\n",
                        most, report.releases.size());
  return html;
}

}  // namespace

std::string promise_section(const Promise& promise) {
  return seed_warning(promise.seed.has_value()) +
         fmt::format("<p class=\"promise\">This study promises {} for one {}, with {} noise.</p>\n",
                     amount(promise.epsilon, promise.delta), escape(to_string(promise.unit)),
                     noise_word(promise)) +
         in_words(promise);
}

std::string privacy_section(const privacy::Report& report) {
  const Promise& promise = report.promise;
  return seed_warning(report.predictable) +
         fmt::format(
             "<p class=\"promise\">This run spent {} of the {} that was promised for one {}, with "
             "{} "
             "noise.</p>\n",
             amount(report.epsilon, promise.delta), amount(promise.epsilon, promise.delta),
             escape(to_string(promise.unit)), noise_word(promise)) +
         in_words(promise) + releases_table(report);
}

std::string privacy_line(const privacy::Report& report) {
  const Promise& promise = report.promise;
  if (report.predictable) return "NOT private: the noise comes from a seed, for tests\n";
  return fmt::format("private: epsilon {:.4g}{} for one {}, {} noise added by {}\n", report.epsilon,
                     promise.pure() ? "" : fmt::format(" at delta {:g}", promise.delta),
                     to_string(promise.unit), noise_word(promise),
                     promise.at == privacy::At::client        ? "each client"
                     : promise.at == privacy::At::distributed ? "the clients together"
                                                              : "the server");
}

}  // namespace starfold::page
