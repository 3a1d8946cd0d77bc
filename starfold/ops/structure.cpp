// Families P and MatMul, and the client-local operations that rearrange a value without computing:
// indexing, lookup, concatenation, stacking, reshaping.
#include <fmt/format.h>

#include <algorithm>

#include "starfold/ops/derivative.h"
#include "starfold/ops/meaning.h"
#include "starfold/ops/row.h"
#include "starfold/ops/standard.h"
#include "starfold/ops/support.h"
#include "starfold/signature/typing.h"

namespace starfold {
namespace {

using typing::describe;

Op row(std::string name, Family family, int min_args, int max_args, std::string surface,
       std::string rule, std::string doc, TypeRule type, Meaning meaning,
       DerivativeRule derivative = nullptr) {
  return begin_row(family, min_args, max_args,
                   {std::move(name), std::move(surface), std::move(rule), std::move(doc)},
                   std::move(type), std::move(meaning), derivative);
}

Types one(Type type) { return std::vector<Type>{std::move(type)}; }

// --- P (def:typing-permutation)

Types permute_type(TypeQuery& query) {
  const std::optional<std::vector<std::size_t>> axes = typing::resolve_axes(query);
  if (!axes) return std::nullopt;
  const Type& type = query.args[0];
  if (axes->size() != type.rank()) {
    return query.fail(
        {Code::InvalidAxes,
         fmt::format("`permute` of {} must list all {} axes, not {}", type.to_string(), type.rank(),
                     axes->size()),
         {query.span, fmt::format("{} of {} axes", axes->size(), type.rank())},
         {},
         "result axis i is the axis of the operand that stands at place i of the list",
         "list each axis once, for example `permute[2,1](...)` for a matrix"});
  }
  Type result;
  for (const std::size_t axis : *axes) result.dims.push_back(type.dims[axis]);
  query.attrs.axes.assign(axes->begin(), axes->end());
  return one(std::move(result));
}

// --- MatMul (def:typing-fed-shared-matmul, def:typing-shared-fed-matmul, def:typing-fed-fed-matmul)

// The transpose of an operand as one would write it.
std::string flip(const TypeQuery& query, std::size_t i) {
  const std::string text = typing::atom(query, i);
  return !text.empty() && text.back() == '\'' ? text.substr(0, text.size() - 1) : text + "'";
}

// The product with one operand transposed, or both swapped, where that contracts what fits.
std::string transposed(const TypeQuery& query) {
  const auto flipped = [](const Type& type) { return Type{{type.dims[1], type.dims[0]}}; };
  const auto fits = [](const Type& a, const Type& b) {
    const Dim& right = b.rank() == 1 ? b.dims[0] : b.dims[b.rank() - 2];
    const bool pairs = a.rank() == 2 && b.rank() == 2 && a.dims[0].star && b.dims[1].star;
    return a.dims.back() == right && !pairs;
  };
  const Type& a = query.args[0];
  const Type& b = query.args[1];
  if (a.rank() == 2 && fits(flipped(a), b)) {
    return fmt::format("transpose the left operand: `{} @ {}`", flip(query, 0),
                       typing::atom(query, 1));
  }
  if (b.rank() == 2 && fits(a, flipped(b))) {
    return fmt::format("transpose the right operand: `{} @ {}`", typing::atom(query, 0),
                       flip(query, 1));
  }
  if (fits(b, a))
    return fmt::format("swap the operands: `{} @ {}`", typing::atom(query, 1),
                       typing::atom(query, 0));
  return "";
}

// `x @ x'` of records in rows: what folds the records instead.
std::string contracted(const TypeQuery& query) {
  return fmt::format("`{} @ {}` contracts the record axes instead, and is shared", flip(query, 0),
                     flip(query, 1));
}

std::nullopt_t fail_contraction(TypeQuery& query, const Dim& left, const Dim& right) {
  const Type& a = query.args[0];
  const Type& b = query.args[1];
  std::vector<Label> operands = {{query.arg_spans[0], a.to_string()},
                                 {query.arg_spans[1], b.to_string()}};
  if (left.star && right.star) {
    return query.fail(
        {Code::DifferentRecordSets,
         fmt::format("{} @ {} contracts two different record sets", a.to_string(), b.to_string()),
         {query.span, "records of different sets cannot be paired"},
         std::move(operands),
         "a client may hold a different number of records in each set",
         "fold one of them first, or declare both inputs with the same star"});
  }
  if (left.star || right.star) {
    return query.fail(
        {Code::StarContractedWithSize,
         fmt::format("{} @ {} contracts the record axis with the ordinary axis {}", a.to_string(),
                     b.to_string(), (left.star ? right : left).to_string()),
         {query.span, "a star is contracted only with its own star"},
         std::move(operands),
         "a star stands for another number of records on every client and is no size",
         transposed(query)});
  }
  for (Label& label : typing::origins(query, left, right)) operands.push_back(std::move(label));
  return query.fail(
      {Code::ContractionMismatch,
       fmt::format("{} @ {} contracts {} with {}", a.to_string(), b.to_string(), left.to_string(),
                   right.to_string()),
       {query.span, fmt::format("{} and {} differ", left.to_string(), right.to_string())},
       std::move(operands),
       "`@` contracts the last axis of the left operand with the first axis of a vector, or the "
       "second-to-last of a matrix",
       transposed(query)});
}

Types matmul_type(TypeQuery& query) {
  const Type& a = query.args[0];
  const Type& b = query.args[1];
  for (std::size_t i = 0; i < 2; ++i) {
    if (!query.args[i].is_scalar()) continue;
    return query.fail({Code::WrongRank,
                       "`@` needs a vector or a matrix on both sides",
                       {query.arg_spans[i], "[] is a single number"},
                       {},
                       "",
                       "use `*` to scale by a number"});
  }
  const Dim& left = a.dims.back();
  const Dim& right = b.rank() == 1 ? b.dims[0] : b.dims[b.rank() - 2];
  if (!(left == right)) return fail_contraction(query, left, right);

  // The axes before the matrix part broadcast, per record where one of them is the star.
  const auto leading = [](const Type& type) {
    Type result;
    if (type.rank() > 2) result.dims.assign(type.dims.begin(), type.dims.end() - 2);
    return result;
  };
  const Type before_a = leading(a);
  const Type before_b = leading(b);
  const Broadcast batch = broadcast(before_a, before_b);
  if (batch.clash == Clash::record_sets)
    return typing::fail_broadcast(query, 0, 1, {Clash::record_sets, {}, 0});
  if (batch.clash == Clash::sizes || batch.clash == Clash::star_against_size) {
    return query.fail(
        {batch.clash == Clash::sizes ? Code::SizeMismatch : Code::StarAgainstSize,
         fmt::format("{} @ {}: the axes before the matrices do not fit, {} against {}",
                     a.to_string(), b.to_string(), before_a.to_string(), before_b.to_string()),
         {query.span, "the axes before the last two broadcast"},
         {{query.arg_spans[0], a.to_string()}, {query.arg_spans[1], b.to_string()}},
         "axes are aligned from the right; equal sizes match, 1 stretches, and a star fits its own "
         "star or 1",
         ""});
  }
  Type result = batch.type;
  if (a.rank() > 1) result.dims.push_back(a.dims[a.rank() - 2]);
  if (b.rank() > 1) result.dims.push_back(b.dims.back());
  const auto stars =
      std::count_if(result.dims.begin(), result.dims.end(), [](const Dim& d) { return d.star; });
  if (batch.clash == Clash::two_stars || stars > 1) {
    return query.fail(
        {Code::TwoStars,
         fmt::format("{} @ {} would have two record axes", a.to_string(), b.to_string()),
         {query.span, stars > 1 ? fmt::format("the result would be {}", result.to_string())
                                : "the result would pair every record with every record"},
         {{query.arg_spans[0], a.to_string()}, {query.arg_spans[1], b.to_string()}},
         "it would pair every record with every record, and grow with the square of their number",
         a.rank() == 2 && b.rank() == 2 ? contracted(query) : "contract the record axes instead"});
  }
  return one(std::move(result));
}

// --- indexing

std::nullopt_t fail_star_index(TypeQuery& query, std::size_t position, std::size_t axis) {
  const bool range = query.attrs.slices[position].kind == Slice::Kind::range;
  return query.fail(
      {Code::StarIndexed,
       fmt::format("the record axis cannot be {}", range ? "sliced" : "indexed"),
       {query.slice_spans[position],
        fmt::format("axis {} of {} is the record axis", axis + 1, query.args[0].to_string())},
       {},
       "picking single records would let them out, and their order means nothing across clients",
       "write `:` to keep all records; to choose among them, fold with a condition: "
       "sum[*](where(c, e, 0))"});
}

// The size that a slice leaves of an axis; reports what is certainly outside.
std::optional<Dim> slice_dim(TypeQuery& query, std::size_t position, const Dim& dim) {
  const Slice& slice = query.attrs.slices[position];
  const auto outside = [&](const Size& index) {
    return index.is_constant() &&
           (index.constant() < 1 ||
            (dim.size.is_constant() && index.constant() > dim.size.constant()));
  };
  const bool empty = slice.kind == Slice::Kind::range && slice.first.is_constant() &&
                     slice.last.is_constant() && slice.first.constant() > slice.last.constant();
  if (outside(slice.first) || outside(slice.last) || empty) {
    query.fail({Code::IndexOutOfRange,
                empty ? fmt::format("the range {}:{} is empty", slice.first.to_string(),
                                    slice.last.to_string())
                      : fmt::format("index {} is outside an axis of size {}",
                                    (outside(slice.first) ? slice.first : slice.last).to_string(),
                                    dim.to_string()),
                {query.slice_spans[position], empty ? "its end lies before its start" : "outside"},
                {{query.arg_spans[0], describe(query, 0)}},
                "positions count from 1, and ranges include both ends",
                ""});
    return std::nullopt;
  }
  std::optional<Size> size = subtract(slice.last, slice.first);
  if (size) size = add(*size, 1);
  if (!size) {
    query.fail({Code::InvalidSize,
                "the size of this range is too large",
                {query.slice_spans[position], "too large"},
                {},
                "",
                ""});
    return std::nullopt;
  }
  return Dim::of(*size);
}

Types index_type(TypeQuery& query) {
  const Type& type = query.args[0];
  Type result;
  std::size_t axis = 0;
  for (std::size_t i = 0; i < query.attrs.slices.size(); ++i) {
    const Slice& slice = query.attrs.slices[i];
    if (slice.kind == Slice::Kind::new_axis) {
      result.dims.push_back(Dim::of(1));
      continue;
    }
    if (axis >= type.rank()) {
      return query.fail(
          {Code::AxisOutOfRange,
           type.is_scalar() ? std::string("a single number has no axis to index")
                            : fmt::format("{} has no axis {} to index", type.to_string(), axis + 1),
           {query.slice_spans[i], "one index too many"},
           {{query.arg_spans[0], describe(query, 0)}},
           "",
           "`new` adds an axis"});
    }
    const Dim& dim = type.dims[axis];
    if (slice.kind == Slice::Kind::all) {
      result.dims.push_back(dim);
    } else if (dim.star) {
      return fail_star_index(query, i, axis);
    } else {
      const std::optional<Dim> left = slice_dim(query, i, dim);
      if (!left) return std::nullopt;
      if (slice.kind == Slice::Kind::range) result.dims.push_back(*left);
    }
    ++axis;
  }
  for (; axis < type.rank(); ++axis) result.dims.push_back(type.dims[axis]);
  return one(std::move(result));
}

Types lookup_type(TypeQuery& query) {
  const Type& table = query.args[0];
  if (table.federated()) {
    return query.fail(
        {Code::StarIndexed,
         "only a shared table can be looked up by computed indices",
         {query.arg_spans[0], fmt::format("{} is split across clients", table.to_string())},
         {{query.arg_spans[1], query.args[1].to_string()}},
         "an index that depends on data must not choose among another client's records",
         "index a federated value with numbers known before the run, for example `e[:, 2]`"});
  }
  if (table.is_scalar()) {
    return query.fail({Code::WrongRank,
                       "a single number is not a table",
                       {query.arg_spans[0], "no axis to look up"},
                       {{query.arg_spans[1], query.args[1].to_string()}},
                       "`table[e]`: [k, ...], T -> [T, ...]",
                       "to multiply, write `*`"});
  }
  Type result = query.args[1];
  result.dims.insert(result.dims.end(), table.dims.begin() + 1, table.dims.end());
  return one(std::move(result));
}

// --- concatenation

// The operand's axes as they stand in the result: a shared operand gets the record axis it lacks.
std::optional<Type> aligned_operand(TypeQuery& query, std::size_t i, const Type& like) {
  Type type = query.args[i];
  const std::optional<std::size_t> star = like.record_axis();
  if (star && !type.federated() && type.rank() + 1 == like.rank())
    return with_axis(type, *star, like.dims[*star]);
  if (star && !type.federated() && type.rank() == like.rank() && type.dims[*star].is_one()) {
    type.dims[*star] = like.dims[*star];
    return type;
  }
  if (type.rank() != like.rank()) {
    const bool narrow = type.federated() && type.rank() + 1 == like.rank() && type.dims[0].star;
    return query.fail(
        {Code::WrongRank,
         fmt::format("`concat` joins values with the same number of axes, not {} and {}",
                     like.to_string(), type.to_string()),
         {query.arg_spans[i], fmt::format("this is {}", type.to_string())},
         {},
         star ? "a shared operand is repeated for every record, and is written without the star"
              : "",
         narrow ? fmt::format("put the missing axis in: `{}[:, new]`", typing::atom(query, i))
         : type.is_scalar() && !narrow ? "write `full(v, 1)` for a column of one number"
                                       : ""});
  }
  return type;
}

// The axes beside the joined one must be equal.
std::nullopt_t fail_beside(TypeQuery& query, std::size_t i, std::size_t model, const Dim& own,
                           const Dim& wanted, std::size_t axis) {
  const bool stars = own.star && wanted.star;
  const Code code = stars                     ? Code::DifferentRecordSets
                    : own.star || wanted.star ? Code::StarAgainstSize
                                              : Code::SizeMismatch;
  std::vector<Label> others = {{query.arg_spans[model], query.args[model].to_string()}};
  for (Label& label : typing::origins(query, wanted, own)) others.push_back(std::move(label));
  return query.fail(
      {code,
       fmt::format("`concat` of {} and {}: axis {} is {} and {}", query.args[model].to_string(),
                   query.args[i].to_string(), axis + 1, wanted.to_string(), own.to_string()),
       {query.arg_spans[i], query.args[i].to_string()},
       std::move(others),
       "all axes but the joined one must be equal",
       ""});
}

// The operand whose axes are the result's: the first federated one, or the first.
std::size_t concat_model(const TypeQuery& query) {
  for (std::size_t i = 0; i < query.args.size(); ++i) {
    if (query.args[i].federated()) return i;
  }
  return 0;
}

Types concat_type(TypeQuery& query) {
  const std::size_t model = concat_model(query);
  const std::optional<std::size_t> axis =
      typing::ordinary_axis(query, Code::StarConcatenated, "join values along", model);
  if (!axis) return std::nullopt;
  const Type like = query.args[model];
  Size total = 0;
  for (std::size_t i = 0; i < query.args.size(); ++i) {
    const std::optional<Type> type = aligned_operand(query, i, like);
    if (!type) return std::nullopt;
    for (std::size_t k = 0; k < like.rank(); ++k) {
      if (k != *axis && !(type->dims[k] == like.dims[k]))
        return fail_beside(query, i, model, type->dims[k], like.dims[k], k);
    }
    const Dim& joined = type->dims[*axis];
    if (joined.star) {
      return query.fail({Code::StarConcatenated,
                         fmt::format("the record axis of {} cannot be joined to an ordinary axis",
                                     type->to_string()),
                         {query.arg_spans[i], fmt::format("axis {} is the record axis", *axis + 1)},
                         {{query.arg_spans[model], like.to_string()}},
                         "the number of records differs between clients and is no size",
                         ""});
    }
    const std::optional<Size> sum = add(total, joined.size);
    if (!sum) {
      return query.fail({Code::InvalidSize,
                         "the joined axis would be too large",
                         {query.span, "too large"},
                         {},
                         "",
                         ""});
    }
    total = *sum;
  }
  Type result = like;
  result.dims[*axis] = Dim::of(total);
  query.attrs.axes = {static_cast<std::int64_t>(*axis)};
  return one(std::move(result));
}

// [a, b, c]: elements of one type, stacked along a new first axis.
Types stack_type(TypeQuery& query) {
  for (std::size_t i = 1; i < query.args.size(); ++i) {
    if (query.args[i] == query.args[0]) continue;
    return query.fail({Code::RaggedLiteral,
                       fmt::format("the elements of a literal must have one shape: {} and {}",
                                   query.args[0].to_string(), query.args[i].to_string()),
                       {query.arg_spans[i], query.args[i].to_string()},
                       {{query.arg_spans[0], query.args[0].to_string()}},
                       "a literal is a vector, a matrix, or a stack of equal shapes",
                       "make them equal, or join values of different lengths with `concat`"});
  }
  return one(with_axis(query.args[0], 0, Dim::of(static_cast<std::int64_t>(query.args.size()))));
}

// --- reshape

Types reshape_type(TypeQuery& query) {
  const Type& type = query.args[0];
  const std::optional<std::size_t> star = type.record_axis();
  if (star && *star != 0 && *star + 1 != type.rank()) {
    return query.fail(
        {Code::StarReshaped,
         fmt::format("`reshape` of {}: the record axis stands between the axes to be reshaped",
                     type.to_string()),
         {query.arg_spans[0], "the star must be first or last"},
         {},
         "the record axis itself is never reshaped, and the others must be neighbours",
         "move the star to the front with `permute` first"});
  }
  std::optional<Size> before = Size(1);
  for (const Dim& dim : type.dims) {
    if (!dim.star && before) before = multiply(*before, dim.size);
  }
  std::optional<Size> after = Size(1);
  for (const Size& size : query.attrs.sizes) {
    if (after) after = multiply(*after, size);
  }
  if (!before || !after || !(*before == *after)) {
    return query.fail(
        {Code::ReshapeCount,
         fmt::format("`reshape` of {} must keep its {} elements{}", type.to_string(),
                     before ? before->to_string() : "many", star ? " per record" : ""),
         {query.span, fmt::format("{} {} asked for", after ? after->to_string() : "too many",
                                  after && after->is_one() ? "element is" : "elements are")},
         {},
         "the elements stay the same, in row-major order",
         star ? "write the sizes of the ordinary axes only; the record axis stays" : ""});
  }
  Type result = Type::shared(query.attrs.sizes);
  if (star) result = with_axis(result, *star == 0 ? 0 : result.rank(), type.dims[*star]);
  return one(std::move(result));
}

Types records_type(TypeQuery& query) {
  if (query.args[0].federated()) {
    query.attrs.axes = {static_cast<std::int64_t>(*query.args[0].record_axis())};
    return one(Type::scalar());
  }
  return query.fail(
      {Code::AxisOutOfRange,
       fmt::format("`records` needs a federated value, not {}", query.args[0].to_string()),
       {query.arg_spans[0], "shared: it has no record axis"},
       {},
       "",
       "name an input with a star"});
}

}  // namespace

std::vector<Op> structure_ops() {
  Op permute = row("permute", Family::permutation, 1, 1, "permute[2,1](e), e'",
                   "axes reordered; the star moves along",
                   "result axis i is input axis list[i]; e' swaps the axes of a matrix",
                   permute_type, meaning::permute, derivative::permute);
  permute.axes = Op::Axes::required;
  Op concat = row("concat", Family::client_local, 1, -1, "concat[j](a, b, ...)",
                  "sizes along axis j add up; never the star",
                  "joins values; a shared operand is repeated for every record", concat_type,
                  meaning::concat, derivative::concat);
  concat.axes = Op::Axes::required;
  Op reshape = row("reshape", Family::client_local, 1, -1, "reshape(e, sizes...)",
                   "ordinary axes become the given sizes; the star stays",
                   "the same elements in row-major order under new sizes", reshape_type,
                   meaning::reshape, derivative::reshape);
  reshape.first_size_arg = 1;
  Op records = row("records", Family::aggregation, 1, 1, "records(e)", "Fed -> []",
                   "the number of records of e's record set", records_type, meaning::records);
  records.monoid = &monoids::count;
  records.lowering = records_from_input;
  records.support = support_rules::records;
  records.range = [](std::span<const Interval>, double n) { return Interval{0, n}; };
  records.flat = 1U;
  records.shape_only = true;
  records.naming = Naming::none;
  Op lookup = row("[e]", Family::client_local, 2, 2, "table[e]", "[k, ...], T -> [T, ...]",
                  "looks up a shared table with 1-based indices, per record where e is federated",
                  lookup_type, meaning::lookup, derivative::lookup);
  lookup.flat = 2U;  // in the indices
  lookup.kernel = Kernel::lookup;
  lookup.notation = Notation::lookup;
  lookup.naming = Naming::lookup;
  lookup.refuses = true;
  lookup.range = range::first_operand;
  Op matmul =
      row("@", Family::matmul, 2, 2, "a @ b",
          "contracts the last axis of a with the first (vector) or second-to-last axis of b",
          "matrix product; contracting star with star folds the records", matmul_type,
          meaning::matmul, derivative::matmul);
  matmul.monoid = &monoids::sum;
  matmul.support = support_rules::matmul;
  matmul.kernel = Kernel::matmul;
  matmul.notation = Notation::infix;
  matmul.binding = 6;
  matmul.linear = Linear::singly;
  Op index = row("[:]", Family::client_local, 1, 1, "e[:, 2], e[:, 2:4], e[:, new]",
                 "per axis: kept, removed or shortened; the star only `:`",
                 "picks along ordinary axes; positions count from 1, ranges include both ends",
                 index_type, meaning::index, derivative::index);
  Op stack = row("[,]", Family::client_local, 1, -1, "[a, b, c]", "n values of type T -> [n, T]",
                 "a vector, matrix or stack of equal shapes", stack_type, meaning::stack,
                 derivative::stack);
  matmul.range = range::product;
  matmul.norms = norms::matmul;
  lookup.norms = norms::lookup;
  permute.norms = reshape.norms = index.norms = norms::selected;
  concat.norms = stack.norms = norms::joined;
  permute.notation = Notation::transpose;
  index.notation = Notation::slices;
  index.naming = Naming::slices;
  stack.notation = Notation::list;
  concat.naming = Naming::joined;
  for (Op* op : {&permute, &concat, &reshape, &index, &stack}) {
    op->kernel = Kernel::view;
    op->linear = Linear::jointly;
    op->range = range::any_operand;
  }
  return {
      std::move(permute), std::move(matmul), std::move(records), std::move(index),
      std::move(lookup),  std::move(concat), std::move(stack),   std::move(reshape),
  };
}

}  // namespace starfold
