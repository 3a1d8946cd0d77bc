#include "starfold/federation/remote.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "starfold/base/clock.h"

namespace starfold {
namespace {

constexpr double first_pause = 0.05;  // before a client that cannot be reached is asked again
constexpr double longest_pause = 2;
constexpr double lost_after =
    10;  // an answer that takes longer may be lost: the question is repeated

// One client's part in the question in progress.
struct Asked {
  Bytes request;
  bool waiting = false;
  Clock::time_point since;      // when the question first went out
  Clock::time_point last_sent;  // when it last did
  double pause = first_pause;
  bool away = false;  // it could not be reached the last time
};

// Asks clients and asks again until all have answered in a way that `take` accepts.
class Questions {
 public:
  Questions(Carrier& carrier, const std::vector<std::string>& names, const RemoteOptions& options)
      : carrier_(carrier), names_(names), options_(options), asked_(names.size()) {}

  void ask(std::size_t client, Bytes request) {
    // Another question to a client that owes an answer gives it no more time.
    const Clock::time_point begin = asked_[client].waiting ? asked_[client].since : Clock::now();
    asked_[client] = {std::move(request), true, begin, Clock::now(), first_pause, false};
    carrier_.send(client, asked_[client].request);
  }
  void done(std::size_t client) { asked_[client].waiting = false; }
  void all_done() {
    for (Asked& asked : asked_) asked.waiting = false;
  }
  bool waits(std::size_t client) const { return asked_[client].waiting; }
  bool any_waiting() const {
    return std::any_of(asked_.begin(), asked_.end(), [](const Asked& a) { return a.waiting; });
  }
  // The client gave an answer that cannot be used: it is asked again after a while.
  void again(std::size_t client) {
    asked_[client].away = true;
    asked_[client].last_sent = Clock::now();
  }

  // The next answer; none when nobody has answered for a moment. Repeats questions meanwhile.
  std::optional<Carrier::Delivery> next() {
    if (options_.stop != nullptr && *options_.stop) throw RunError("the run was stopped");
    std::optional<Carrier::Delivery> delivery = carrier_.receive(0.05);
    if (delivery && delivery->client >= asked_.size()) delivery.reset();
    if (delivery && !delivery->answer) {
      again(delivery->client);
      delivery.reset();
    }
    repeat();
    tell();
    return delivery;
  }

  // Clients that have been silent for too long.
  std::vector<std::size_t> silent(double timeout) const {
    std::vector<std::size_t> result;
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      if (asked_[i].waiting && since_asked(i) > timeout) result.push_back(i);
    }
    return result;
  }
  std::vector<std::size_t> unreachable() const {
    std::vector<std::size_t> result;
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      if (asked_[i].waiting && asked_[i].away) result.push_back(i);
    }
    return result;
  }

 private:
  double since_asked(std::size_t client) const { return since(asked_[client].since); }

  void repeat() {
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      Asked& asked = asked_[i];
      if (!asked.waiting || since(asked.last_sent) < (asked.away ? asked.pause : lost_after))
        continue;
      asked.pause = std::min(2 * asked.pause, longest_pause);
      asked.away = false;
      asked.last_sent = Clock::now();
      carrier_.send(i, asked.request);
    }
  }

  void tell() {
    if (!options_.awaited || since(told_) < 0.5) return;
    told_ = Clock::now();
    std::vector<std::string> names;
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      if (asked_[i].waiting && since_asked(i) > 0.5) names.push_back(names_[i]);
    }
    if (!names.empty()) options_.awaited(names);
  }

  Carrier& carrier_;
  const std::vector<std::string>& names_;
  const RemoteOptions& options_;
  std::vector<Asked> asked_;
  Clock::time_point told_ = Clock::now();
};

[[noreturn]] void stay_away(const std::vector<std::string>& names,
                            const std::vector<std::size_t>& clients, double timeout) {
  std::vector<std::string> away;
  for (const std::size_t client : clients) away.push_back(names[client]);
  throw ClientsAway(fmt::format("{} {} did not answer{}", away.size() == 1 ? "client" : "clients",
                                fmt::join(away, ", "),
                                timeout > 0 ? fmt::format(" within {:g} s", timeout) : ""));
}

class RemoteRun {
 public:
  RemoteRun(Coordinator coordinator, const CompiledProgram& program,
            const std::vector<std::string>& clients, Carrier& carrier, const RemoteOptions& options)
      : coordinator_(std::move(coordinator)),
        options_(options),
        questions_(carrier, clients, options),
        names_(clients) {
    report_.clients.resize(clients.size());
    for (std::size_t i = 0; i < clients.size(); ++i) {
      report_.clients[i].name = clients[i];
      report_.clients[i].records = unknown_records;
    }
    report_.round_runs.resize(static_cast<std::size_t>(program.plan->rounds));
  }

  RunReport run() {
    while (!coordinator_.done()) exchange();
    report_.results = coordinator_.results();
    report_.rounds = coordinator_.rounds_run();
    report_.sizes = coordinator_.sizes();
    report_.seconds = since(start_);
    report_.run = coordinator_.run();
    report_.departures = coordinator_.departures();
    report_.privacy = coordinator_.privacy();
    report_.group = coordinator_.group();
    return std::move(report_);
  }

 private:
  // One request to every client, and all answers.
  void exchange() {
    const Clock::time_point round_start = Clock::now();
    if (options_.checkpoint && !saved_) options_.checkpoint(coordinator_.save());
    saved_ = false;
    const Round* const round = coordinator_.round();
    const std::int64_t before = coordinator_.rounds_run();
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (coordinator_.awaits(i)) ask(i, coordinator_.request(i));
    }
    while (questions_.any_waiting()) {
      if (std::optional<Carrier::Delivery> delivery = questions_.next())
        take(delivery->client, *delivery->answer);
      drop_out();
    }
    const double seconds = since(round_start);
    report_.times.clients += seconds;
    if (round == nullptr || coordinator_.rounds_run() == before) return;
    ++report_.round_runs[static_cast<std::size_t>(round->number)];
    // Nobody sees what a private round has released before it is written down: else a run that is gone on with could release it
    // again, with other noise.
    if (coordinator_.is_private()) {
      if (coordinator_.done()) return;
      if (options_.checkpoint) options_.checkpoint(coordinator_.save());
      saved_ = true;
    }
    if (options_.watch)
      options_.watch({coordinator_.rounds_run(), coordinator_.iteration(), since(start_), seconds,
                      &coordinator_.results()});
  }

  void ask(std::size_t client, const Bytes& request) {
    report_.clients[client].bytes_received += request.size();
    questions_.ask(client, request);
  }

  void take(std::size_t client, const Bytes& answer) {
    if (!questions_.waits(client)) return;  // late, or twice
    // A node that was started anew greets in the middle of a run; then it is asked what it was asked before.
    if (coordinator_.round() != nullptr && is_greeting(answer)) {
      ask(client, coordinator_.request(client));
      return;
    }
    const Clock::time_point begin = Clock::now();
    // Whoever comes last ends the round; his question is over before the next is asked.
    try {
      report_.clients[client].numbers_sent += coordinator_.absorb(client, answer);
      report_.clients[client].bytes_sent += answer.size();
      questions_.done(client);
    } catch (const LateAnswer&) {  // to a question that is over
    } catch (const UnusableAnswer&) {
      questions_.again(client);
    } catch (const ClientRefused& refused) {
      if (coordinator_.round() == nullptr) throw;
      if (refused.reason() == Refusal::keys_lost) {
        without_keys(client);
      } else if (refused.reason() == Refusal::not_started) {
        ask(client, coordinator_.greeting(client));
      } else {
        throw;
      }
    }
    report_.times.server += since(begin);
  }

  // A client that was started anew has lost its keys. The round ends without it if it can, or begins again with new ones.
  void without_keys(std::size_t client) {
    if (coordinator_.can_spare(client)) {
      spare(client);
      return;
    }
    coordinator_.renew_keys();
    questions_.all_done();
  }

  void spare(std::size_t client) {
    questions_.done(client);
    coordinator_.spare(client);
  }

  void drop_out() {
    for (const std::size_t client : questions_.unreachable()) {
      if (coordinator_.can_spare(client)) spare(client);
    }
    for (const std::size_t client : questions_.silent(options_.timeout)) {
      if (coordinator_.can_spare(client)) spare(client);
    }
    if (options_.on_dropout == RemoteOptions::Dropout::stop) {
      const std::vector<std::size_t> gone = questions_.unreachable();
      if (!gone.empty()) stay_away(names_, gone, 0);
    }
    const std::vector<std::size_t> gone = questions_.silent(options_.timeout);
    if (gone.empty()) return;
    if (options_.on_dropout != RemoteOptions::Dropout::go_on)
      stay_away(names_, gone, options_.timeout);
    for (const std::size_t client : gone) {
      questions_.done(client);
      coordinator_.leave(client);
    }
  }

  const Clock::time_point start_ = Clock::now();
  Coordinator coordinator_;
  const RemoteOptions& options_;
  Questions questions_;
  const std::vector<std::string>& names_;
  bool saved_ = false;  // the state before the next request is in the checkpoint
  RunReport report_;
};

}  // namespace

RunReport run_remote(Coordinator coordinator, const CompiledProgram& program,
                     const std::vector<std::string>& clients, Carrier& carrier,
                     const RemoteOptions& options) {
  return RemoteRun(std::move(coordinator), program, clients, carrier, options).run();
}

std::vector<std::optional<Bytes>> ask_all(Carrier& carrier, const std::vector<std::string>& clients,
                                          const Bytes& request, const RemoteOptions& options) {
  Questions questions(carrier, clients, options);
  std::vector<std::optional<Bytes>> answers(clients.size());
  std::vector<std::size_t> away;
  for (std::size_t i = 0; i < clients.size(); ++i) questions.ask(i, request);
  while (questions.any_waiting()) {
    if (std::optional<Carrier::Delivery> delivery = questions.next();
        delivery && questions.waits(delivery->client)) {
      answers[delivery->client] = *std::move(delivery->answer);
      questions.done(delivery->client);
    }
    const bool impatient = options.on_dropout == RemoteOptions::Dropout::stop;
    const std::vector<std::size_t> gone =
        impatient ? questions.unreachable() : questions.silent(options.timeout);
    if (!gone.empty() && options.on_dropout != RemoteOptions::Dropout::go_on)
      stay_away(clients, gone, impatient ? 0 : options.timeout);
    for (const std::size_t client : gone) {
      questions.done(client);
      away.push_back(client);
    }
  }
  if (away.size() == clients.size()) stay_away(clients, away, options.timeout);
  return answers;
}

}  // namespace starfold
