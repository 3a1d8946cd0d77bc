// Writes one random expression of a wanted type.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/laws/generator.h"

namespace starfold::laws {

// A name in scope.
struct Named {
  std::string name;
  Type type;
  Facts facts;
  int rounds = 0;
};

// An expression as written, and what is known of it.
struct Written {
  std::string text;
  int binds = 10;  // how strongly its outermost operator binds, as in the grammar; 10: an atom
  Type type;
  Facts facts;
  int rounds = 0;  // how many rounds must have ended before it is known
};

struct Want {
  Type type;
  int depth = 3;
  bool exact = false;  // its entries must round nothing
  bool folds = true;   // it may depend on a fold of records

  Want with(Type other) const { return {std::move(other), depth - 1, exact, folds}; }
};

// A function that can be called, with the sizes and record sets that are its own.
struct Callable {
  std::string name;  // as written in a call
  std::vector<Named> params;
  std::vector<std::string> sizes;
  std::vector<std::string> record_sets;
  std::vector<Named> results;
};

// What may be used at a place of the program, and where statements before it go.
struct Scope {
  std::vector<Named> names;  // inner ones last
  std::vector<Size> sizes;   // that axes may have
  SizeValues least;          // of the size variables: the smallest and largest they may be
  SizeValues most;
  std::vector<std::string> size_names;  // usable as numbers
  std::vector<std::string> lines;
  std::vector<Callable> callables;
};

class ExpressionWriter {
 public:
  ExpressionWriter(Random& random, const GeneratorOptions& options, int& next_name)
      : random_(random), options_(options), next_name_(next_name) {}

  // An expression of the wanted type; nullopt when the scope has nothing to make it from.
  std::optional<Written> write(Scope& scope, const Want& want);

  // The expression, moved into a range.
  Written fit(Written e, Interval range);
  std::optional<Written> fit(std::optional<Written> e, Interval range);
  std::string fresh(const char* prefix) { return prefix + std::to_string(next_name_++); }
  // A type of at most so many axes; a star of one of the scope's record sets when federated.
  Type random_type(Scope& scope, bool federated, int max_rank = 3);
  std::vector<std::string> record_sets(const Scope& scope) const;
  // How many entries an axis has at most and at least; records count as many.
  static std::int64_t most(const Scope& scope, const Dim& dim);
  static std::int64_t least(const Scope& scope, const Dim& dim);
  // Whether a size is at least so large whatever the size variables are.
  static bool never_below(const Scope& scope, const Size& size, std::int64_t bound);
  static std::string operand(const Written& e, int at_least);
  static Written number(double value);

 private:
  using Maybe = std::optional<Written>;
  using Types = std::vector<Type>;

  Maybe leaf(Scope& scope, const Want& want);
  Maybe shared_leaf(Scope& scope, const Want& want);
  Maybe federated_leaf(Scope& scope, const Want& want);
  Maybe base_leaf(Scope& scope, const Want& want);
  Maybe from_name(Scope& scope, const Want& want);
  Maybe try_row(Scope& scope, const Op& op, const Want& want);
  bool row_allowed(const Op& op, const Want& want) const;
  bool fits(const Written& e, const Want& want) const;

  Maybe unary(Scope& scope, const Op& op, const Want& want);
  Maybe binary(Scope& scope, const Op& op, const Want& want);
  Maybe aggregation(Scope& scope, const Op& op, const Want& want);
  Maybe covariance(Scope& scope, const Op& op, const Want& want);
  Maybe quantile(Scope& scope, const Op& op, const Want& want);
  Maybe records(Scope& scope, const Want& want);
  Maybe permutation(Scope& scope, const Want& want);
  Maybe matmul(Scope& scope, const Op& op, const Want& want);
  Maybe index(Scope& scope, const Want& want);
  Maybe lookup(Scope& scope, const Want& want);
  Maybe concat(Scope& scope, const Op& op, const Want& want);
  Maybe stack(Scope& scope, const Want& want);
  Maybe reshape(Scope& scope, const Op& op, const Want& want);
  Maybe outer(Scope& scope, const Op& op, const Want& want);
  Maybe ternary(Scope& scope, const Op& op, const Want& want);
  Maybe clip_norm(Scope& scope, const Want& want);
  Maybe one_hot(Scope& scope, const Want& want);
  Maybe along_axis(Scope& scope, const Op& op, const Want& want);
  Maybe like(Scope& scope, const Op& op, const Want& want);
  Maybe linear_algebra(Scope& scope, const Op& op, const Want& want);
  Maybe factored(Scope& scope, const Op& op, const Want& want);
  Maybe construction(Scope& scope, const Op& op, const Want& want);
  Maybe distribution(Scope& scope, const Op& op, const Want& want);
  Maybe unknown(Scope& scope, const Op& op, const Want& want);
  Maybe call(Scope& scope, const Want& want);

  // Operand types that broadcast to `type`.
  Types split(const Type& type, std::size_t operands);
  Type stretched(const Type& type);
  Type random_size_type(Scope& scope, int max_rank);
  Size random_size(Scope& scope);
  bool small(const Scope& scope, const Type& type) const;
  // The result type by the row's own rule; nullopt when it refuses.
  std::optional<Type> typed(const Op& op, const Types& args,
                            const std::vector<std::int64_t>& axes = {},
                            const std::vector<Size>& sizes = {}) const;
  // A symmetric matrix with eigenvalues of at least 1; named, so that it can be used twice.
  std::optional<Written> positive_definite(Scope& scope, const Size& n, const Want& want);
  Written hoist(Scope& scope, Written e);
  std::string size_list(const Type& type) const;
  std::string axis_list(const Type& of, const std::vector<std::int64_t>& axes);
  static Written applied(const std::string& name, const std::string& inside, Type type, Facts facts,
                         int rounds);

  Random& random_;
  const GeneratorOptions& options_;
  int& next_name_;
};

}  // namespace starfold::laws
