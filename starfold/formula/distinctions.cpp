#include "starfold/formula/distinctions.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "starfold/base/cases.h"
#include "starfold/formula/functions.h"

namespace starfold::formula {
namespace {

Expr number_of(double value) { return {Expr::Kind::number, value}; }
Expr call_of(const char* function, std::vector<Expr> args) {
  return {Expr::Kind::call, 0, function, std::move(args)};
}
Expr enclosed(Expr expr) { return call_of("(", {std::move(expr)}); }

bool is_condition(const Expr& expr) {
  const Function* function =
      expr.kind == Expr::Kind::call ? find_function(expr.text, expr.args.size()) : nullptr;
  return function != nullptr && function->truth;
}

// Every number by which `ifelse` chooses as the comparison that it stands for.
Expr with_comparisons(Expr expr) {
  for (Expr& arg : expr.args) arg = with_comparisons(std::move(arg));
  const Expr* chooser = expr.is_call("ifelse") && !expr.args.empty() ? &expr.args[0] : nullptr;
  while (chooser != nullptr && chooser->is_call("(")) chooser = &chooser->args[0];
  if (chooser != nullptr && !is_condition(*chooser))
    expr.args[0] = call_of("!=", {enclosed(std::move(expr.args[0])), number_of(0)});
  return expr;
}

// The outermost conditions in a value, and the signs beside them: by their text, with what they can be.
void find_choices(const Expr& expr, std::map<std::string, std::vector<double>>& found) {
  if (is_condition(expr)) {
    found[to_text(expr)] = {0, 1};
    return;
  }
  if (expr.is_call("sign")) found[to_text(expr)] = {-1, 0, 1};
  for (const Expr& arg : expr.args) find_choices(arg, found);
}

Expr in_case(const Expr& expr, const std::map<std::string, double>& given) {
  if (is_condition(expr) || expr.is_call("sign")) {
    const auto known = given.find(to_text(expr));
    if (known != given.end() && known->second >= 0) return number_of(known->second);
    if (known != given.end()) return enclosed(call_of("-", {number_of(-known->second)}));
    if (is_condition(expr)) return expr;
  }
  Expr result = expr;
  for (Expr& arg : result.args) arg = in_case(arg, given);
  return result;
}

// A number whose square is one.
Expr bounded(const Expr& number) {
  constexpr double large = 1e140;
  return call_of("pmax",
                 {call_of("pmin", {number, number_of(large)}), call_of("-", {number_of(large)})});
}

// The value minus what it would be; 0 where it is missing. What would be missing counts as 0, so that the difference is the value.
Expr difference(const Expr& value, const Expr& would_be) {
  const Expr there = call_of("ifelse", {call_of("is.na", {would_be}), number_of(0),
                                        call_of("+", {enclosed(would_be), number_of(0)})});
  const Expr minus = call_of("-", {enclosed(value), there});
  return call_of("I",
                 {call_of("ifelse", {call_of("is.na", {minus}), number_of(0), bounded(minus)})});
}

// The value where it is what it would be but for rounding, and 0 elsewhere.
Expr sameness(const Expr& value, const Expr& would_be) {
  constexpr double rounding = 1e-9;
  const Expr minus = call_of("-", {enclosed(value), enclosed(would_be)});
  const Expr within = call_of("*", {number_of(rounding), call_of("abs", {value})});
  const Expr same = call_of("<=", {call_of("abs", {minus}), within});
  const Expr there = call_of("ifelse", {call_of("is.na", {same}), number_of(0), same});
  const Expr number = call_of("+", {enclosed(value), number_of(0)});
  return call_of("I", {call_of("ifelse", {there, bounded(number), number_of(0)})});
}

// What is computed: without I() and parentheses around it, of polynomials their variable.
Expr computed(Expr expr) {
  while ((expr.is_call("I") || expr.is_call("(") || expr.is_call("poly")) && !expr.args.empty())
    expr = Expr(expr.args[0]);
  return with_comparisons(std::move(expr));
}

class Finder {
 public:
  Finder(std::size_t most, std::size_t in_all) : most_(most), in_all_(in_all) {}

  void add(const Expr& value) {
    std::map<std::string, std::vector<double>> choices;
    find_choices(value, choices);
    std::vector<std::vector<double>> values;
    for (const auto& [text, can_be] : choices) values.push_back(can_be);
    // Each case is as long as there are choices: so many are not even made.
    too_many_ = too_many_ || pair_cases(values) > in_all_;
    if (too_many_) return;
    std::vector<ChoiceCase> cases;
    for (std::size_t i = 0; i < values.size(); ++i) {
      for (const double one : values[i]) {
        cases.emplace_back(values.size());
        cases.back()[i] = one;
      }
    }
    const std::vector<ChoiceCase> joint = joint_cases(values, most_);
    cases.insert(cases.end(), joint.begin(), joint.end());
    for (const ChoiceCase& one : cases) {
      too_many_ = too_many_ || found_.size() > in_all_;
      if (too_many_) return;
      std::map<std::string, double> given;
      std::string words;
      std::size_t i = 0;
      for (const auto& [text, can_be] : choices) {
        if (one[i]) given[text] = *one[i];
        if (one[i]) words += (words.empty() ? "" : " and ") + text;
        ++i;
      }
      const Expr would_be = in_case(value, given);
      for (const Expr& told : {difference(value, would_be), sameness(value, would_be)}) {
        if (texts_.insert(to_text(told)).second)
          found_.push_back({told, fmt::format("{} by {}", to_text(value), words)});
      }
    }
  }

  std::optional<std::vector<Distinction>> found() {
    if (too_many_ || found_.size() > in_all_) return std::nullopt;
    return std::move(found_);
  }

 private:
  std::size_t most_;
  std::size_t in_all_;
  bool too_many_ = false;
  std::vector<Distinction> found_;
  std::set<std::string> texts_;
};

// Values put together by one sign.
Expr put_together(const char* sign, const std::vector<Expr>& values) {
  Expr result = enclosed(values.front());
  for (std::size_t i = 1; i < values.size(); ++i)
    result = call_of(sign, {std::move(result), enclosed(values[i])});
  return result;
}

}  // namespace

std::optional<std::vector<Distinction>> distinctions_in(
    const Formula& formula, const std::function<bool(const std::string&)>& is_factor,
    std::size_t most, std::size_t in_all) {
  const auto has_levels = [&](const Expr& expr) {
    return (expr.kind == Expr::Kind::name && is_factor(expr.text)) || expr.is_call("C") ||
           expr.is_call("factor") || expr.is_call("as.factor") || expr.is_call("relevel");
  };
  Finder finder(most, in_all);
  for (const Expr& condition : conditions_in(formula)) finder.add(condition);
  const auto add = [&](const Expr& expr) {
    const Expr value = computed(expr);
    if (!has_levels(value)) finder.add(value);
  };
  if (formula.response) {
    const bool several = formula.response->is_call("cbind") || formula.response->is_call("Surv");
    for (const Expr& each : several ? formula.response->args : std::vector{*formula.response})
      add(each);
  }
  if (formula.group) add(*formula.group);
  const Terms terms = expand(formula);
  if (!terms.offsets.empty()) add(put_together("+", terms.offsets));
  for (const Term& term : terms.terms) {
    std::vector<Expr> values;
    for (const std::size_t variable : term) {
      Expr value = computed(terms.variables[variable]);
      if (!has_levels(value)) values.push_back(std::move(value));
    }
    if (!values.empty())
      finder.add(values.size() == 1 ? values.front() : put_together("*", values));
  }
  return finder.found();
}

}  // namespace starfold::formula
