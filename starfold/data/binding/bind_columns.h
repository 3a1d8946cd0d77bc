// Which columns become which input, the same for all clients, and a client's records bound that way.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "starfold/data/binding/formula_plan.h"
#include "starfold/data/columns.h"
#include "starfold/data/source.h"

namespace starfold {

// Which columns an input takes: `--bind x=age,bmi`, or every column not bound elsewhere (`x=*`).
struct ColumnChoice {
  std::vector<std::string> columns;
  bool rest = false;
};
using ColumnBindings = std::map<std::string, ColumnChoice>;

// A column of an input; `categorical` when it is declared so.
struct BoundColumn {
  std::string name;
  std::shared_ptr<const Categorical> categorical;
};
using InputColumns = std::map<std::string, std::vector<BoundColumn>>;  // by input

// Columns of the data, and what a formula makes of some. An input that is in neither takes the array of its name.
struct ColumnPlan {
  InputColumns columns = {};
  std::shared_ptr<const FormulaPlan> formula = nullptr;  // null: there is none

  bool empty() const { return columns.empty() && !formula; }
};

// Finds the columns of all inputs, in one order for all clients. RunError when an input has none, and
// one message with a table of who has what when clients disagree on columns or types; FormulaError when the formula is wrong.
ColumnPlan plan_columns(const ir::Program& program, const std::vector<DataSource>& sources,
                        const ColumnBindings& bindings, const Categoricals& categoricals = {},
                        const FormulaRequest& formula = {});

// What the columns of an input are called once levels have become columns: age, sex=m.
std::vector<std::string> column_names(const std::vector<BoundColumn>& columns);
// The same for all inputs, those of the formula among them.
std::map<std::string, std::vector<std::string>> input_names(const ColumnPlan& plan);

// By column with levels that is used, as the formula writes it where there is one: the level without a column; empty where each has one.
std::map<std::string, std::string> reference_levels(const ColumnPlan& plan);

struct LoadOptions {
  Missing missing = Missing::error;
  int threads = 1;
};

struct LoadedClient {
  Client client;
  std::int64_t dropped = 0;  // records left out because a value is missing
  // By column or variable of the formula: how many values are missing, where that is not 0. Empty where the table is read in
  // every round only.
  std::map<std::string, std::int64_t> missing = {};
};

// Reads a client's records: arrays, or a table that is kept in memory when it takes no more than `room`
// bytes (which it then takes from `room`), and read again in every round otherwise. RunError names client,
// input, columns and counts, never a value.
LoadedClient load_client(const ir::Program& program, const DataSource& source,
                         const ColumnPlan& plan, const LoadOptions& options, std::int64_t& room);

}  // namespace starfold
