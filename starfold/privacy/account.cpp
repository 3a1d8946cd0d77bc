#include "starfold/privacy/account.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace starfold::privacy {

std::string_view Report::mechanism() const {
  return promise.pure() ? "discrete_laplace" : "discrete_gaussian";
}

Report report_of(const PrivatePlan& plan, const std::vector<std::uint32_t>& ran) {
  Report report;
  report.promise = plan.promise();
  report.predictable = plan.terms().predictable;
  report.clients = plan.terms().clients;
  report.shares = plan.terms().shares;
  for (std::size_t r = 0; r < plan.rounds().size(); ++r) report.rounds.push_back(plan.released(r));
  std::vector<std::int64_t> runs(plan.rounds().size());
  double before = 0;
  for (const std::uint32_t number : ran) {
    const PrivateRound& round = plan.released(number);
    ++runs[number];
    double grid = 0;
    for (const PrivateMerge& merge : round.merges) grid = std::max(grid, merge.noise_grid());
    before = std::max(before, plan.spent(runs));
    if (round.merges.empty()) continue;  // nothing left a client: it kept something
    report.releases.push_back({number, round.sensitivity, round.scale, grid, before});
  }
  report.epsilon = before;
  return report;
}

std::vector<std::string> guarantees(const Promise& promise) {
  const bool record = promise.unit == Unit::record;
  const std::string differ =
      promise.neighbours == Neighbours::add_remove
          ? fmt::format("with or without any one {}", record ? "record" : "client")
          : fmt::format("whatever any one {} holds", record ? "record" : "client");
  std::vector<std::string> words;
  words.push_back(fmt::format(
      "What is released is nearly the same {}: no result becomes more than e^{:g} = {:.3g} times "
      "as "
      "likely or unlikely{}.",
      differ, promise.epsilon, std::exp(promise.epsilon),
      promise.pure() ? "" : fmt::format(", but for a probability of {:g}", promise.delta)));
  switch (promise.at) {
    case At::server:
      words.emplace_back(
          "It protects against everyone who sees results, and against the clients, who see what "
          "the "
          "server sends them. It does not protect against the server: it sees each client's sums "
          "before it adds noise.");
      break;
    case At::client:
      words.emplace_back(
          "It protects against everyone, the server included: each client adds noise to what it "
          "sends, and noise for one client's records alone. Results have the noise of all "
          "clients.");
      break;
    case At::output:
      words.emplace_back(
          "It protects against everyone who sees the outputs. It does not protect against the "
          "server: it sees each client's sums, and everything before the outputs without noise.");
      break;
    case At::distributed:
      words.emplace_back(
          "It protects against everyone who sees results, and against the server as long as as "
          "many "
          "clients as the study says add their share of noise and the masks hold: it sees only "
          "sums "
          "over clients, with noise.");
      break;
  }
  words.emplace_back(
      record
          ? "It is about one record. Several records of one person are protected less: k of them "
            "at k times epsilon."
          : "It is about one client with all of its records.");
  words.emplace_back(
      "It is not protected that a run took place, who took part, which program ran, whether a "
      "client "
      "refused or could not compute, and how long it took.");
  return words;
}

}  // namespace starfold::privacy
