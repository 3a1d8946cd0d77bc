#include "starfold/study/nodes/node_table.h"

#include "starfold/base/error.h"

namespace starfold {
namespace {

class NodeTable : public Table {
 public:
  explicit NodeTable(std::vector<ColumnInfo> columns) : columns_(std::move(columns)) {}
  const std::vector<ColumnInfo>& columns() const override { return columns_; }
  std::unique_ptr<TableScan> scan(const std::vector<ColumnUse>& /*uses*/,
                                  RecordRange /*range*/) const override {
    throw Bug("the records of a node are not here");
  }
  LevelCounts levels(std::size_t /*column*/, std::size_t /*most*/) const override {
    throw Bug("the records of a node are not here");
  }

 private:
  std::vector<ColumnInfo> columns_;
};

}  // namespace

DataSource node_source(const std::string& client, std::vector<ColumnInfo> columns) {
  DataSource source;
  source.client = client;
  for (const ColumnInfo& column : columns) source.order.push_back(column.name);
  source.table = std::make_shared<NodeTable>(std::move(columns));
  return source;
}

}  // namespace starfold
