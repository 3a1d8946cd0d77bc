// Any bytes as a formula: refused with a message, or a design whose text reads back as the same formula and that computes on records.
#include <cmath>
#include <cstdint>

#include "fuzz/require.h"
#include "starfold/base/utf8.h"
#include "starfold/formula/design.h"

namespace {

using namespace starfold::formula;

// Names that begin with f are factors, with t truth values, with n unknown; all others are numbers.
Variable find(const Formula& formula, const std::string& name, const Expr& at) {
  if (name[0] == 'n') throw FormulaError(formula, at, "there is no such column");
  if (name[0] == 'f') return {Variable::Kind::factor, {"a", "b", "c"}, 1, false, name.size() > 4};
  if (name[0] == 't') return {Variable::Kind::truth};
  return {};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const Formula written = parse_formula(text);
    const Formula formula = without_dot(written, {"u", "v", "f1"});
    const std::string once = to_text(formula);
    const Formula again = parse_formula(once);
    require(to_text(again) == once);
    require(expand(formula).intercept == expand(again).intercept);
    const Design design(
        again, [&](const std::string& name, const Expr& at) { return find(again, name, at); });
    if (design.columns().size() > 500) return 0;
    constexpr std::size_t records = 3;
    const double values[] = {1, 2, std::nan("")};
    const std::vector<const double*> sources(design.sources().size(), values);
    std::vector<std::vector<double>> results(design.columns().size(), std::vector<double>(records));
    std::vector<double*> to;
    for (std::vector<double>& column : results) to.push_back(column.data());
    DesignFlaws flaws{std::vector<std::int64_t>(design.variables().size()),
                      std::vector<std::int64_t>(design.variables().size())};
    design.compute(sources, records, nullptr, to, flaws, nullptr);
    for (const DesignColumn& column : design.columns()) require(!column.name.empty());
  } catch (const FormulaError& error) {
    require(starfold::printable_lines(error.what()) == error.what());
  }
  return 0;
}
