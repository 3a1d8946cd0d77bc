// Counts what generated programs make use of: rows of the signature, typing rules, forms of
// statements. What never occurs is not tested by any law.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "starfold/compile/compile.h"
#include "starfold/syntax/ast.h"

namespace starfold::laws {

class Coverage {
 public:
  // Everything there is to see.
  Coverage();

  // Sees a program and its syntax tree.
  void add(const ir::Program& program);
  void add(const ast::File& file);

  // What was seen fewer than so many times, one line each.
  std::vector<std::string> rare(int least) const;
  const std::map<std::string, int>& counts() const { return counts_; }

 private:
  void see(const std::string& what);
  void application(const ir::Program& program, const ir::Node& node);
  void block(const ast::Block& statements, int loops, bool function);
  void expression(const ast::Expr& expr);

  std::map<std::string, int> counts_;
};

}  // namespace starfold::laws
