#include <fmt/format.h>

#include <algorithm>

#include "starfold/base/error.h"
#include "starfold/signature/op.h"
#include "starfold/signature/typing.h"
#include "starfold/tensor/axis_view.h"

namespace starfold {

std::string_view to_string(Family family) {
  switch (family) {
    case Family::unary:
      return "unary map";
    case Family::binary:
      return "binary map";
    case Family::comparison:
      return "comparison";
    case Family::aggregation:
      return "aggregation";
    case Family::permutation:
      return "permutation";
    case Family::matmul:
      return "matrix product";
    case Family::client_local:
      return "client-local";
    case Family::shared_only:
      return "shared-only";
    case Family::differentiation:
      return "differentiation";
  }
  return "";
}

void Signature::add_row(Op op) {
  ops_.push_back(std::make_shared<const Op>(std::move(op)));
  by_name_[ops_.back()->name].push_back(ops_.back().get());
}

Signature::Signature(std::vector<Op> rows) {
  for (Op& row : rows) add_row(std::move(row));
}

const Op* Signature::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second.front();
}

const Op* Signature::find(std::string_view name, int arity, bool axes) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return nullptr;
  for (const Op* op : found->second) {
    const bool arity_fits = arity >= op->min_args && (op->max_args < 0 || arity <= op->max_args);
    const bool axes_fit = axes ? op->axes != Op::Axes::none : op->axes != Op::Axes::required;
    if (arity_fits && axes_fit) return op;
  }
  return nullptr;
}

namespace {

using CellShapes = std::vector<std::vector<Size>>;

// The sizes of the ordinary axes of an operand: of one record, or of the whole shared value.
CellShapes cell_shapes(const std::vector<Type>& args) {
  CellShapes cells;
  for (const Type& type : args) {
    std::vector<Size> cell;
    for (const Dim& dim : type.dims) {
      if (!dim.star) cell.push_back(dim.size);
    }
    cells.push_back(std::move(cell));
  }
  return cells;
}

std::nullopt_t refuse(TypeQuery& query) {
  std::string types;
  for (const Type& type : query.args) types += (types.empty() ? "" : ", ") + type.to_string();
  return query.fail({Code::WrongRank,
                     fmt::format("`{}` does not take {}", query.op.name, types),
                     {query.span, query.op.rule},
                     {},
                     "",
                     ""});
}

void check_new(const Signature& signature, const std::string& name) {
  const bool identifier =
      !name.empty() &&
      std::all_of(name.begin(), name.end(),
                  [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; }) &&
      std::isdigit(static_cast<unsigned char>(name[0])) == 0;
  if (!identifier)
    throw std::invalid_argument("a primitive needs a name of letters, digits and underscores");
  if (signature.find(name) != nullptr)
    throw std::invalid_argument("a primitive named " + name + " is already there");
}

// The part of a federated tensor that one record holds.
Tensor cell_of(const Tensor& tensor, std::size_t axis, std::int64_t record) {
  const AxisView view(tensor.shape, axis);
  Shape shape = tensor.shape;
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  Tensor cell(shape);
  for (std::size_t i = 0; i < view.cells(); ++i)
    cell.data[i] = tensor.data[view.place(static_cast<std::size_t>(record), i)];
  return cell;
}

// Applies a cell function record by record; the record axis of the result is the first.
std::vector<Tensor> lift(const std::function<Tensor(std::span<const Tensor>)>& value,
                         const Application& a) {
  std::int64_t records = -1;
  for (std::size_t i = 0; i < a.args.size(); ++i) {
    if (a.record_axes[i]) records = a.arg(i).shape[*a.record_axes[i]];
  }
  std::vector<Tensor> cells(a.args.size());
  for (std::size_t i = 0; i < a.args.size(); ++i) cells[i] = a.arg(i);
  if (records < 0) return {value(cells)};
  Tensor result;
  result.data.clear();
  for (std::int64_t record = 0; record < records; ++record) {
    for (std::size_t i = 0; i < a.args.size(); ++i) {
      if (a.record_axes[i]) cells[i] = cell_of(a.arg(i), *a.record_axes[i], record);
    }
    const Tensor cell = value(cells);
    result.shape = cell.shape;
    result.data.insert(result.data.end(), cell.data.begin(), cell.data.end());
  }
  result.shape.insert(result.shape.begin(), records);
  return {std::move(result)};
}

}  // namespace

void Signature::add(ClientLocal primitive) {
  check_new(*this, primitive.name);
  Op op;
  op.name = primitive.name;
  op.family = Family::client_local;
  op.min_args = op.max_args = primitive.arity;
  op.surface = primitive.name + "(...)";
  op.rule = "per record; federated in, federated out";
  op.doc = primitive.doc;
  op.refuses = true;  // it may
  op.type = [shape = std::move(primitive.cell_shape)](TypeQuery& query) -> Types {
    const Dim* star = nullptr;
    for (std::size_t i = 0; i < query.args.size(); ++i) {
      const Type& type = query.args[i];
      if (!type.federated()) continue;
      const Dim& own = type.dims[*type.record_axis()];
      if (star != nullptr && !(own == *star))
        return typing::fail_broadcast(query, 0, i, {Clash::record_sets, {}, 0});
      star = &own;
    }
    const CellShapes cells = cell_shapes(query.args);
    std::optional<std::vector<Size>> cell = shape(cells);
    if (!cell) return refuse(query);
    Type type = Type::shared(std::move(*cell));
    // The star is put back here and nowhere else: no rule of a user can drop it.
    if (star != nullptr) type = with_axis(type, 0, *star);
    query.attrs.sizes.clear();
    for (const Dim& dim : type.dims) {
      if (!dim.star) query.attrs.sizes.push_back(dim.size);
    }
    return std::vector<Type>{std::move(type)};
  };
  op.meaning = [name = primitive.name,
                value = std::move(primitive.cell_value)](const Application& a) {
    const auto checked = [&](std::span<const Tensor> cells) {
      Tensor cell = value(cells);
      if (cell.shape != a.sizes || cell.count() != element_count(cell.shape)) {
        throw RunError(fmt::format("{} returned a value that is not of its declared shape", name));
      }
      return cell;
    };
    std::vector<Tensor> result = lift(checked, a);
    // Without records no cell was made to take the shape from.
    if (result[0].data.empty()) {
      result[0].shape = a.sizes;
      result[0].shape.insert(result[0].shape.begin(), 0);
    }
    return result;
  };
  add_row(std::move(op));
}

void Signature::add(SharedOnly primitive) {
  check_new(*this, primitive.name);
  Op op;
  op.name = primitive.name;
  op.family = Family::shared_only;
  op.min_args = op.max_args = primitive.arity;
  op.surface = primitive.name + "(...)";
  op.rule = "shared in, shared out";
  op.doc = primitive.doc;
  op.refuses = true;  // it may
  op.type = [shape = std::move(primitive.shape)](TypeQuery& query) -> Types {
    if (!typing::require_shared(query)) return std::nullopt;
    std::optional<std::vector<Size>> result = shape(cell_shapes(query.args));
    if (!result) return refuse(query);
    query.attrs.sizes = *result;
    return std::vector<Type>{Type::shared(std::move(*result))};
  };
  op.meaning = [name = primitive.name, value = std::move(primitive.value)](const Application& a) {
    std::vector<Tensor> args;
    for (const Tensor* arg : a.args) args.push_back(*arg);
    Tensor result = value(args);
    if (result.shape != a.sizes || result.count() != element_count(result.shape)) {
      throw RunError(fmt::format("{} returned a value that is not of its declared shape", name));
    }
    return std::vector<Tensor>{std::move(result)};
  };
  add_row(std::move(op));
}

}  // namespace starfold
