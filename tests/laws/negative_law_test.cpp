// Laws of refusal: a well-typed program with a mistake put in is refused exactly when it breaks a
// typing rule, as an oracle written from the paper's appendix sees it.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "starfold/syntax/parser.h"
#include "tests/laws/law.h"
#include "tests/laws/typing_oracle.h"

namespace starfold::laws {
namespace {

struct Edit {
  Span span;
  std::string text;
};

const std::vector<std::string> folds = {"sum",       "prod", "min",    "max",   "count",
                                        "any",       "all",  "mean",   "var",   "std",
                                        "logsumexp", "norm", "median", "argmax"};

bool is_fold(const ast::Expr& e) {
  return e.kind == ast::ExprKind::call && e.args.size() == 1 &&
         std::find(folds.begin(), folds.end(), e.text) != folds.end();
}

// Every place where a mistake can be made, with one made there.
class Mistakes {
 public:
  Mistakes(const std::string& text, Random& random) : random_(random) {
    file_ = parse(sources_, sources_.add("law.fold", text), diagnostics_);
    block(file_.items, true);
    block(file_.items, false);
    // A further statement, which nothing else in the program depends on.
    const auto end = static_cast<std::uint32_t>(text.size());
    for (const char* kind : {"state", "trace", "output", "let"})
      add({file_.id, end, end}, fmt::format("\n{} extra = {}\n", kind, any_name()));
  }
  const std::vector<Edit>& found() const { return edits_; }

 private:
  std::string text(Span span) const { return std::string(sources_.text(span)); }
  std::string text(const ast::Expr& e) const { return "(" + text(e.span) + ")"; }
  void add(Span span, std::string text) { edits_.push_back({span, std::move(text)}); }
  std::string any_name() { return random_.pick(names_); }

  // First the names, then the places.
  void block(const ast::Block& statements, bool names) {
    for (const ast::Stmt& stmt : statements) {
      if (names) {
        if (const auto* n = std::get_if<ast::Input>(&stmt.node)) names_.push_back(n->name.text);
        if (const auto* n = std::get_if<ast::Let>(&stmt.node)) names_.push_back(n->names[0].text);
        if (const auto* n = std::get_if<ast::State>(&stmt.node)) names_.push_back(n->name.text);
      } else {
        std::visit([&](const auto& node) { place(node); }, stmt.node);
      }
      if (const auto* n = std::get_if<ast::Repeat>(&stmt.node)) block(n->body, names);
    }
  }
  void place(const ast::Import&) {}
  void place(const ast::SizeDecl&) {}
  void place(const ast::Fn&) {}
  void place(const ast::Input& n) {
    type(n.type);
    if (n.fallback) expr(*n.fallback);
  }
  void place(const ast::Let& n) {
    if (n.type) type(*n.type);
    expr(*n.value);
  }
  void place(const ast::State& n) {
    if (n.type) type(*n.type);
    expr(*n.value);
    add(n.value->span, any_name());
  }
  void place(const ast::Update& n) {
    expr(*n.value);
    add(n.value->span, any_name());
    add(n.name.span, any_name());
  }
  void place(const ast::Repeat& n) {
    if (n.until) expr(*n.until);
    if (n.until) add(n.until->span, any_name());
  }
  void place(const ast::Trace& n) {
    expr(*n.value);
    add(n.value->span, any_name());
  }
  void place(const ast::Demand& n) {
    expr(*n.value);
    add(n.value->span, any_name());
  }
  void place(const ast::Output& n) {
    if (n.value) expr(*n.value);
    if (n.value) add(n.value->span, any_name());
    if (!n.value) add(n.name.span, any_name());
  }

  // Axes swapped, put in, taken out; sizes and record sets changed.
  void type(const ast::TypeExpr& written) {
    std::vector<std::string> dims;
    for (const ast::Dim& dim : written.dims) dims.push_back(text(dim.span));
    const auto change = [&](std::vector<std::string> changed) {
      add(written.span, fmt::format("[{}]", fmt::join(changed, ", ")));
    };
    std::vector<std::string> longer = dims;
    longer.insert(longer.begin() + random_.below(static_cast<int>(dims.size()) + 1),
                  random_.pick(std::vector<std::string>{"1", "2", "3", "*", "*visits"}));
    change(longer);
    if (dims.empty()) return;
    std::vector<std::string> mixed = dims;
    random_.shuffle(mixed);
    change(mixed);
    const auto at = static_cast<std::size_t>(random_.below(static_cast<int>(dims.size())));
    std::vector<std::string> fewer = dims;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(at));
    change(fewer);
    std::vector<std::string> other = dims;
    other[at] = written.dims[at].star
                    ? random_.pick(std::vector<std::string>{"*", "*visits", "*people", "2"})
                    : random_.pick(std::vector<std::string>{"1", "2", "3", dims[at] + " + 1",
                                                            "2*(" + dims[at] + ")", "*"});
    change(other);
  }

  void expr(const ast::Expr& e) {
    const std::string whole = text(e);
    if (e.kind == ast::ExprKind::name) {
      add(e.span, any_name());
      add(e.span, any_name() + "'");
      add(e.span, e.text + random_.pick(std::vector<std::string>{"'", "[new]", "[:, new]", "[1]"}));
    }
    if (is_fold(e)) fold(e);
    if (e.kind == ast::ExprKind::binary) binary(e);
    if (e.kind == ast::ExprKind::transpose) add(e.span, text(*e.args[0]));
    if (e.kind == ast::ExprKind::call && e.text == "permute")
      add(e.span, fmt::format("permute[{}]{}", axes(), text(*e.args[0])));
    if (random_.chance(20)) {
      add(e.span, whole + "'");
      add(e.span, fmt::format("{}[{}]{}", random_.pick(folds), axes(), whole));
      add(e.span, fmt::format("{} {} {}", whole, random_.pick(operators_), any_name()));
    }
    for (const ast::ExprPtr& arg : e.args) expr(*arg);
  }

  std::string axes() {
    return random_.pick(std::vector<std::string>{"*", "1", "2", "3", "1, 2", "2, 1", "*, 1", "*, 2",
                                                 "2, *", "1, 1", "*, *", "3, 1, 2", "*visits"});
  }

  // Dropped, done twice, along other axes, along none, or another one.
  void fold(const ast::Expr& e) {
    const std::string inside = text(*e.args[0]);
    const std::string written(
        sources_.text({e.span.file, e.text_span.end, e.args[0]->span.begin}));  // [axes](
    const std::string brackets = written.substr(0, written.find('('));
    add(e.span, inside);
    add(e.span, fmt::format("sum[*]({}{}{})", e.text, brackets, inside));
    add(e.span, fmt::format("{}[{}]{}", e.text, axes(), inside));
    add(e.span, e.text + inside);
    add(e.span, random_.pick(folds) + brackets + inside);
    add(e.span, random_.pick(std::vector<std::string>{"median", "argmax"}) + brackets + inside);
  }

  void binary(const ast::Expr& e) {
    const std::string a = text(*e.args[0]);
    const std::string b = text(*e.args[1]);
    add(e.span, fmt::format("{} {} {}", b, e.text, a));
    add(e.span, fmt::format("{} {} {}", a, random_.pick(operators_), b));
    add(e.span, fmt::format("{} {} {}", a, e.text, any_name()));
    if (e.text == "@") {
      add(e.span, fmt::format("{}' @ {}", a, b));
      add(e.span, fmt::format("{} @ {}'", a, b));
    }
  }

  Random& random_;
  SourceMap sources_;
  Diagnostics diagnostics_;
  ast::File file_;
  std::vector<std::string> names_;
  std::vector<Edit> edits_;
  const std::vector<std::string> operators_ = {"+", "*", "@", "@", "<"};
};

struct Counts {
  int accepted = 0;
  int rejected = 0;
  int beyond = 0;
};

// The first error of the checker; empty when there is none.
std::string checker_says(const std::string& text) {
  const Compilation compilation = compile("law.fold", text);
  for (const Diagnostic& d : compilation.diagnostics.items()) {
    if (info(d.code).severity == Severity::error)
      return fmt::format("{} {}", info(d.code).id, d.message);
  }
  return "";
}

Verdict agree(const std::string& text, Counts& counts) {
  std::string why;
  const Judgement judgement = judge(text, &why);
  if (judgement == Judgement::beyond) {
    ++counts.beyond;
    return Verdict::nothing();
  }
  ++(judgement == Judgement::accepted ? counts.accepted : counts.rejected);
  const std::string said = checker_says(text);
  if (said.empty() == (judgement == Judgement::accepted)) return std::nullopt;
  return said.empty() ? fmt::format("accepted, although it has {}:\n{}", why, text)
                      : fmt::format("refused ({}), although it is well-typed:\n{}", said, text);
}

TEST(Laws, CheckerAcceptsWhatIsWellTyped) {
  GeneratorOptions options;
  options.core = true;
  options.functions = false;
  options.statements = 4;
  options.depth = 3;
  Counts counts;
  constexpr int usual = 1000;
  check_law("Laws.CheckerAcceptsWhatIsWellTyped", options, usual, [&](const Case& c) -> Verdict {
    if (const Verdict broken = agree(c.program.text.text, counts)) return broken;
    Random random = c.choices();
    for (int attempt = 0; attempt < 8; ++attempt) {
      std::string text = c.program.text.text;
      for (int left = random.chance(25) ? 2 : 1; left > 0; --left) {
        const Mistakes mistakes(text, random);
        if (mistakes.found().empty()) break;
        const Edit& edit = random.pick(mistakes.found());
        text.replace(edit.span.begin, edit.span.end - edit.span.begin, edit.text);
      }
      if (const Verdict broken = agree(text, counts)) return broken;
    }
    return std::nullopt;
  });
  if (law_programs(usual) < usual) return;
  // The law says little unless both answers are common and the oracle rarely passes.
  const int all = counts.accepted + counts.rejected + counts.beyond;
  EXPECT_GT(counts.accepted, all / 4);
  EXPECT_GT(counts.rejected, all / 4);
  EXPECT_LT(counts.beyond, all / 10);
}

// A holistic aggregation never folds records, whatever other axes it folds with them; every other
// aggregation does. All types up to three axes, all lists of axes.
TEST(Laws, HolisticFoldsNeverFoldRecords) {
  const auto subsets = [](int rank) {
    std::vector<std::vector<int>> lists;
    for (int mask = 1; mask < 1 << rank; ++mask) {
      std::vector<int> list;
      for (int axis = 0; axis < rank; ++axis) {
        if ((mask >> axis & 1) != 0) list.push_back(axis);
      }
      do lists.push_back(list);
      while (std::next_permutation(list.begin(), list.end()));
    }
    return lists;
  };
  std::vector<std::string> all = folds;
  all.emplace_back("quantile");
  for (const std::string& op : all) {
    const bool holistic = op == "median" || op == "quantile" || op == "argmax";
    for (int rank = 1; rank <= 3; ++rank) {
      for (int star = -1; star < rank; ++star) {
        for (const std::vector<int>& list : subsets(rank)) {
          std::vector<std::string> dims;
          std::vector<std::string> axes;
          for (int k = 0; k < rank; ++k) dims.push_back(k == star ? "*" : std::to_string(k + 2));
          for (const int axis : list)
            axes.push_back(axis == star && rank > 1 ? "*" : std::to_string(axis + 1));
          const bool folds_star = std::find(list.begin(), list.end(), star) != list.end();
          const std::string text = fmt::format(
              "input x : [{}]\nlet y = {}[{}](x{})\noutput z = {}(y)\n", fmt::join(dims, ", "), op,
              fmt::join(axes, ", "), op == "quantile" ? ", 0.5" : "",
              star >= 0 && !folds_star ? "records" : "sum");
          EXPECT_EQ(checker_says(text).rfind("E0310", 0) == 0, holistic && folds_star) << text;
          if (!holistic || !folds_star) {
            EXPECT_EQ(checker_says(text), "") << text;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace starfold::laws
