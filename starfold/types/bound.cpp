#include "starfold/types/bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace starfold {
namespace {

// Room for rounding: far more than any chain of kernels rounds, far less than anybody minds.
constexpr double room = 1e-9;

// Above this many atoms and terms a bound is made simpler, and larger.
constexpr std::size_t most_weight = 40;

// What incomparable bounds are compared at.
constexpr double typical_size = 1000;

// Short numbers as they are, whatever the last bits say; others with twelve digits, rounded up.
std::string number_text(double x) {
  if (std::isinf(x)) return "inf";
  std::string brief = fmt::format("{:.9g}", x);
  const bool exact = std::fabs(std::strtod(brief.c_str(), nullptr) - x) <= 1e-13 * x;
  return exact ? brief : fmt::format("{:.12g}", x * (1 + 5e-12));
}

}  // namespace

struct Bound::Atom {
  enum class Kind { size, sum, max };
  Kind kind = Kind::size;
  Size size;
  std::vector<Bound> of;  // a sum has one, a maximum several
  std::string text;
  std::size_t weight = 1;

  // With a typical value for sizes that are not known, if there is one.
  std::optional<double> value(const SizeValues& sizes) const {
    if (kind == Kind::size) {
      const std::optional<std::int64_t> number = size.evaluate(sizes);
      if (!number) return std::nullopt;
      return static_cast<double>(*number);
    }
    double largest = 0;
    for (const Bound& bound : of) {
      const std::optional<double> number = bound.value(sizes);
      if (!number) return std::nullopt;
      largest = std::max(largest, *number);
    }
    return largest;
  }

  void add_variables(SizeValues& into) const {
    for (const std::string& name : size.variables())
      into[name] = static_cast<std::int64_t>(typical_size);
    for (const Bound& bound : of) {
      for (const Term& term : bound.terms_) {
        for (const Power& power : term.powers) power.atom->add_variables(into);
      }
    }
  }
};

Bound::Bound(double number) {
  if (std::isnan(number)) number = std::numeric_limits<double>::infinity();
  if (number > 0) terms_.push_back({number, {}});
}

Bound Bound::of_terms(std::vector<Term> terms) {
  Bound bound(0);
  bound.terms_ = std::move(terms);
  return bound.simple();
}

Bound Bound::of_atom(std::shared_ptr<const Atom> atom, double exponent) {
  Bound bound(0);
  bound.terms_.push_back({1, {{std::move(atom), exponent}}});
  return bound;
}

Bound Bound::of(const Size& size, const SizeValues& values) {
  if (const std::optional<std::int64_t> number = size.evaluate(values))
    return Bound(std::max(1.0, static_cast<double>(*number)));
  // a*p + b as a sum of its own, so that it joins with others.
  const std::vector<std::string> variables = size.variables();
  const bool alone = variables.size() == 1 && !size.as_variable();
  const std::optional<Size> slope = alone ? size.linear_factor(variables[0]) : std::nullopt;
  if (slope && slope->is_constant() && slope->constant() > 0) {
    const std::optional<std::int64_t> rest = size.evaluate({{variables[0], 0}});
    if (rest && *rest >= 0)
      return Bound(static_cast<double>(slope->constant())) *
                 of(Size::variable(variables[0]), values) +
             Bound(static_cast<double>(*rest));
  }
  auto atom = std::make_shared<Atom>();
  atom->size = size;
  atom->text = size.to_string();
  return of_atom(std::move(atom), 1);
}

// A sum as one atom.
Bound Bound::bundle(const Bound& a) {
  auto atom = std::make_shared<Atom>();
  atom->kind = Atom::Kind::sum;
  atom->of = {a};
  atom->text = a.to_string();
  atom->weight = a.weight();
  return of_atom(std::move(atom), 1);
}

bool Bound::finite() const {
  return std::all_of(terms_.begin(), terms_.end(),
                     [](const Term& term) { return std::isfinite(term.factor); });
}

std::optional<double> Bound::number() const {
  double sum = 0;
  for (const Term& term : terms_) {
    if (!term.powers.empty()) return std::nullopt;
    sum += term.factor;
  }
  return sum;
}

std::optional<double> Bound::value(const SizeValues& sizes) const {
  double sum = 0;
  for (const Term& term : terms_) {
    double product = term.factor;
    for (const Power& power : term.powers) {
      const std::optional<double> base = power.atom->value(sizes);
      if (!base) return std::nullopt;
      product *= power.exponent == 0.5 ? std::sqrt(*base) : std::pow(*base, power.exponent);
    }
    sum += product;
  }
  return sum;
}

std::optional<double> Bound::evaluate(const SizeValues& sizes) const {
  const std::optional<double> exact = value(sizes);
  if (!exact) return std::nullopt;
  return *exact * (1 + room);
}

std::size_t Bound::weight() const {
  std::size_t total = 0;
  for (const Term& term : terms_) {
    total += 1;
    for (const Power& power : term.powers) total += power.atom->weight;
  }
  return total;
}

// Sizes are at least 1, so that each to its highest power is at least what any term has of it.
Bound Bound::single_term() const {
  const auto cover = [](const Term& a, const Term& b, double factor) {
    Term both{factor, a.powers};
    for (const Power& power : b.powers) {
      const auto like = std::find_if(both.powers.begin(), both.powers.end(), [&](const Power& own) {
        return own.atom->text == power.atom->text;
      });
      if (like == both.powers.end())
        both.powers.push_back(power);
      else
        like->exponent = std::max(like->exponent, power.exponent);
    }
    std::sort(both.powers.begin(), both.powers.end(),
              [](const Power& x, const Power& y) { return x.atom->text < y.atom->text; });
    return both;
  };
  Term sum{0, {}};
  for (const Term& term : terms_) {
    Term product{term.factor, {}};
    for (const Power& power : term.powers) {
      Term base{0, {}};
      if (power.atom->kind == Atom::Kind::size) base = {1, {{power.atom, 1}}};
      for (const Bound& part : power.atom->of) {
        const Bound single = part.single_term();
        for (const Term& own : single.terms_)
          base = cover(base, own, std::max(base.factor, own.factor));
      }
      base.factor = std::pow(base.factor, power.exponent);
      for (Power& own : base.powers) own.exponent *= power.exponent;
      product = multiply(product, base);
    }
    sum = cover(sum, product, sum.factor + product.factor);
  }
  Bound result(0);
  if (sum.factor > 0) result.terms_ = {std::move(sum)};
  return result;
}

Bound Bound::simple() const {
  if (!finite()) return Bound();
  return weight() > most_weight ? single_term() : *this;
}

Bound::Term Bound::multiply(const Term& a, const Term& b) {
  Term product{a.factor * b.factor, {}};
  auto i = a.powers.begin();
  auto j = b.powers.begin();
  while (i != a.powers.end() || j != b.powers.end()) {
    if (j == b.powers.end() || (i != a.powers.end() && i->atom->text < j->atom->text)) {
      product.powers.push_back(*i++);
    } else if (i == a.powers.end() || j->atom->text < i->atom->text) {
      product.powers.push_back(*j++);
    } else {
      product.powers.push_back({i->atom, i->exponent + j->exponent});
      ++i;
      ++j;
    }
  }
  return product;
}

// Whether a <= b; what is no size may be less than 1.
bool Bound::dominated(const Term& a, const Term& b) {
  if (a.factor > b.factor) return false;
  auto i = a.powers.begin();
  for (const Power& power : b.powers) {
    const bool both = i != a.powers.end() && i->atom->text == power.atom->text;
    const double own = both ? (i++)->exponent : 0;
    if (own > power.exponent || (own < power.exponent && power.atom->kind != Atom::Kind::size))
      return false;
  }
  return i == a.powers.end();
}

bool at_most(const Bound& a, const Bound& b) {
  if (!b.finite()) return true;
  std::vector<bool> taken(b.terms_.size());
  for (const Bound::Term& term : a.terms_) {
    std::size_t at = 0;
    while (at < taken.size() && (taken[at] || !Bound::dominated(term, b.terms_[at]))) ++at;
    if (at == taken.size()) return false;
    taken[at] = true;
  }
  return true;
}

Bound operator+(const Bound& a, const Bound& b) {
  std::vector<Bound::Term> terms = a.terms_;
  for (const Bound::Term& term : b.terms_) {
    const auto like = std::find_if(terms.begin(), terms.end(), [&](const Bound::Term& other) {
      return std::equal(term.powers.begin(), term.powers.end(), other.powers.begin(),
                        other.powers.end(), [](const auto& x, const auto& y) {
                          return x.atom->text == y.atom->text && x.exponent == y.exponent;
                        });
    });
    if (like == terms.end())
      terms.push_back(term);
    else
      like->factor += term.factor;
  }
  // Higher powers first, so that p + 1 prints as people write it.
  const auto degree = [](const Bound::Term& term) {
    double total = 0;
    for (const auto& power : term.powers) total += power.exponent;
    return total;
  };
  std::stable_sort(terms.begin(), terms.end(),
                   [&](const auto& x, const auto& y) { return degree(x) > degree(y); });
  return Bound::of_terms(std::move(terms));
}

// 0 * inf is 0: what is always 0 stays 0 beside any finite number.
Bound operator*(const Bound& a, const Bound& b) {
  if (a.is_zero() || b.is_zero()) return Bound(0);
  if (!a.finite() || !b.finite()) return Bound();
  if (a.terms_.size() * b.terms_.size() > 16)
    return (a.terms_.size() > 1 ? Bound::bundle(a) : a) *
           (b.terms_.size() > 1 ? Bound::bundle(b) : b);
  Bound result(0);
  for (const Bound::Term& x : a.terms_) {
    for (const Bound::Term& y : b.terms_) {
      Bound product(0);
      Bound::Term term = Bound::multiply(x, y);
      // sqrt(s) * sqrt(s) is s again.
      Bound whole(1);
      const auto is_whole_sum = [](const Bound::Power& power) {
        return power.exponent == 1 && power.atom->kind == Bound::Atom::Kind::sum &&
               power.atom->of[0].terms_.size() <= 4;
      };
      const auto found = std::find_if(term.powers.begin(), term.powers.end(), is_whole_sum);
      if (found != term.powers.end()) {
        whole = found->atom->of[0];
        term.powers.erase(found);
      }
      product.terms_ = {std::move(term)};
      if (whole.number() != 1.0) product = product * whole;
      result = result + product;
    }
  }
  return result;
}

Bound sqrt(const Bound& a) {
  if (!a.finite()) return a;
  Bound result = a.terms_.size() > 1 ? Bound::bundle(a) : a;
  for (Bound::Term& term : result.terms_) {
    term.factor = std::sqrt(term.factor);
    for (Bound::Power& power : term.powers) power.exponent /= 2;
  }
  return result;
}

Bound max(const Bound& a, const Bound& b) {
  if (at_most(a, b)) return b;
  if (at_most(b, a)) return a;
  auto atom = std::make_shared<Bound::Atom>();
  atom->kind = Bound::Atom::Kind::max;
  for (const Bound& bound : {a, b}) {
    const bool already = bound.terms_.size() == 1 && bound.terms_[0].factor == 1 &&
                         bound.terms_[0].powers.size() == 1 &&
                         bound.terms_[0].powers[0].exponent == 1 &&
                         bound.terms_[0].powers[0].atom->kind == Bound::Atom::Kind::max;
    if (!already) {
      atom->of.push_back(bound);
      continue;
    }
    const auto& parts = bound.terms_[0].powers[0].atom->of;
    atom->of.insert(atom->of.end(), parts.begin(), parts.end());
  }
  atom->weight = 0;
  for (const Bound& part : atom->of) {
    atom->text += (atom->text.empty() ? "max(" : ", ") + part.to_string();
    atom->weight += part.weight();
  }
  atom->text += ")";
  return Bound::of_terms({{1, {{std::move(atom), 1}}}});
}

Bound tighter(const Bound& a, const Bound& b) {
  if (at_most(a, b)) return a;
  if (at_most(b, a)) return b;
  if (a.number()) return a;
  if (b.number()) return b;
  SizeValues typical;
  for (const Bound* bound : {&a, &b}) {
    for (const Bound::Term& term : bound->terms_) {
      for (const Bound::Power& power : term.powers) power.atom->add_variables(typical);
    }
  }
  return a.value(typical).value_or(0) <= b.value(typical).value_or(0) ? a : b;
}

std::string Bound::text(const Term& term) {
  std::string whole;
  std::string root;
  const auto join = [](std::string& list, const std::string& factor) {
    list += (list.empty() ? "" : "*") + factor;
  };
  const bool alone = term.powers.size() == 1;
  const auto is_half = [](const Power& power) { return std::fmod(power.exponent, 1) == 0.5; };
  const auto halves = std::count_if(term.powers.begin(), term.powers.end(), is_half);
  if (alone && term.factor == 1 && term.powers[0].exponent == 1) return term.powers[0].atom->text;
  for (const auto& [atom, exponent] : term.powers) {
    const bool is_sum = atom->kind != Atom::Kind::max && atom->text.find(' ') != std::string::npos;
    const std::string name = is_sum ? "(" + atom->text + ")" : atom->text;
    double rest = exponent;
    if (std::fmod(rest, 1) == 0.5) {
      join(root, halves == 1 ? atom->text : name);
      rest -= 0.5;
    }
    if (rest == 0) continue;
    join(whole, rest == 1 ? name : fmt::format("{}^{}", name, rest));
  }
  if (!root.empty()) join(whole, "sqrt(" + root + ")");
  if (whole.empty()) return number_text(term.factor);
  const std::string factor = number_text(term.factor);
  return factor == "1" ? whole : factor + "*" + whole;
}

std::string Bound::to_string() const {
  if (terms_.empty()) return "0";
  std::string sum;
  for (const Term& term : terms_) sum += (sum.empty() ? "" : " + ") + text(term);
  return sum;
}

}  // namespace starfold
