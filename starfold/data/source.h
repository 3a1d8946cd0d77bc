// A client's data before it meets a program: named arrays, or a table.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "starfold/data/table.h"
#include "starfold/ir/ir.h"
#include "starfold/runtime/bind.h"

namespace starfold {

// Either a table, or named arrays, of which those with one axis are columns. `order` keeps the order
// of columns.
struct DataSource {
  std::string client;
  std::string node =
      {};  // where it is a source of one: the node's name; the source is then the client
  std::shared_ptr<const Table> table;
  std::map<std::string, Tensor> arrays;
  std::vector<std::string> order;

  bool has_column(const std::string& name) const;
  // The names as a message may show them.
  std::string shown_columns() const;
};

// Opens a table (see table.h), or reads .npz (arrays named like the inputs), .npy (the program's only
// federated input), or a folder of .npy files named like the inputs. RunError names the client.
DataSource open_source(const ir::Program& program, const std::string& client,
                       const TableLocation& location, Tables& tables);

// The inputs whose records clients hold.
std::vector<std::string> federated_inputs(const ir::Program& program);

}  // namespace starfold
