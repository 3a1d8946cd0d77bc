// A client's data before it meets a program: named arrays, each a column or more.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "starfold/ir/ir.h"
#include "starfold/runtime/bind.h"

namespace starfold {

// Named arrays; a one-axis array is a column. `order` keeps the order of columns in the file.
struct DataSource {
  std::map<std::string, Tensor> arrays;
  std::vector<std::string> order;
};

// Which columns an input takes: `--bind x=age,bmi`, or every column not bound elsewhere (`x=*`).
struct ColumnChoice {
  std::vector<std::string> columns;
  bool rest = false;
};
using ColumnBindings = std::map<std::string, ColumnChoice>;

// Reads .npz (arrays named like the inputs), .npy (the program's only federated input), or a folder of
// .npy files named like the inputs. RunError names the client and the path.
DataSource read_source(const ir::Program& program, const std::string& client, const std::string& path);

// The arrays of a client's inputs. RunError names client, input and what is missing.
Client bind_source(const ir::Program& program, const std::string& client, const DataSource& source, const ColumnBindings& bindings);

}  // namespace starfold
