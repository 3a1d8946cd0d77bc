#include "starfold/privacy/terms.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace starfold::privacy {
namespace {

constexpr std::array<std::string_view, 4> at_names = {"server", "client", "output", "distributed"};

// A number of an enumeration with so many values.
template <typename Enum>
Enum read_enum(ByteReader& in, unsigned count) {
  const auto number = in.number<std::uint8_t>();
  if (number >= count) ByteReader::fail();
  return static_cast<Enum>(number);
}

}  // namespace

std::string_view to_string(At at) { return at_names[static_cast<std::size_t>(at)]; }

std::string wrong_with(const Promise& promise) {
  if (!(promise.epsilon > 0) || !std::isfinite(promise.epsilon))
    return "epsilon must be a positive number";
  if (!(promise.delta >= 0) || !(promise.delta < 1)) return "delta must be at least 0 and below 1";
  if (promise.at == At::distributed && promise.pure())
    return "shares of noise are Gaussian: at = \"distributed\" needs a delta above 0";
  return {};
}

Bytes encode_terms(const Terms& terms) {
  ByteWriter out;
  out.number(static_cast<std::uint8_t>(terms.promise.unit));
  out.number(static_cast<std::uint8_t>(terms.promise.neighbours));
  out.number(terms.promise.epsilon);
  out.number(terms.promise.delta);
  out.number(static_cast<std::uint8_t>(terms.promise.at));
  out.flag(terms.predictable);
  out.number(terms.clients);
  out.number(terms.shares);
  out.number(static_cast<std::uint32_t>(terms.inputs.size()));
  for (const auto& [name, value] : terms.inputs) {
    out.text(name);
    out.tensor(value);
  }
  return out.take();
}

Terms decode_terms(std::string_view bytes) {
  ByteReader in(bytes);
  Terms terms;
  terms.promise.unit = read_enum<Unit>(in, 2);
  terms.promise.neighbours = read_enum<Neighbours>(in, 2);
  terms.promise.epsilon = in.number<double>();
  terms.promise.delta = in.number<double>();
  terms.promise.at = read_enum<At>(in, 4);
  terms.predictable = in.flag();
  terms.clients = in.number<std::int64_t>();
  terms.shares = in.number<std::int64_t>();
  if (terms.clients < 0 || terms.shares < 0) ByteReader::fail();
  for (auto left = in.number<std::uint32_t>(); left > 0; --left) {
    std::string name = in.text();
    if (!terms.inputs.empty() && terms.inputs.rbegin()->first >= name) ByteReader::fail();
    terms.inputs[std::move(name)] = in.tensor();
  }
  in.end();
  if (const std::string wrong = wrong_with(terms.promise); !wrong.empty())
    throw RunError(fmt::format("the promise of privacy is none: {}", wrong));
  return terms;
}

void require_bounds(const Plan& plan, const Promise& promise, const Known& known) {
  const Sensitivities all = sensitivities(plan, promise.unit, promise.neighbours, known);
  const Unbounded* unbounded = all.unbounded();
  if (unbounded == nullptr) return;
  throw NotPrivate(fmt::format("the run cannot be private: `{}` has no bound", unbounded->expr),
                   unbounded->where, unbounded->help);
}

}  // namespace starfold::privacy
