#include "starfold/runtime/steps/run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "starfold/base/error.h"
#include "starfold/ops/meaning.h"
#include "starfold/ops/quantize.h"
#include "starfold/runtime/apply.h"
#include "starfold/runtime/kernels/quantize.h"
#include "starfold/tensor/axis_view.h"
#include "starfold/tensor/portable.h"

namespace starfold::engine {
namespace {

// --- one cell -----------------------------------------------------------------------------------

void run_binary(const Step& step, std::size_t cell, const Frame& frame) {
  const Operand& a = step.args[0];
  const Operand& b = step.args[1];
  double* out = frame.column(step.out[cell]);
  if (!a.federated()) {
    const double left = frame.shared[a.shared]->data[a.entries[cell]];
    step.binary.number_left(step.map2, left, frame.column(b.columns[cell]), out, frame.records);
  } else if (!b.federated()) {
    const double right = frame.shared[b.shared]->data[b.entries[cell]];
    step.binary.number_right(step.map2, frame.column(a.columns[cell]), right, out, frame.records);
  } else {
    step.binary.columns(step.map2, frame.column(a.columns[cell]), frame.column(b.columns[cell]),
                        out, frame.records);
  }
}

// The first column of a result starts it, the others join.
void run_accumulate(const Step& step, std::size_t cell, const Frame& frame) {
  const double* x = frame.column(step.args[0].columns[cell]);
  double* out = frame.column(step.out[cell / step.terms]);
  const std::size_t n = frame.records;
  const std::size_t term = cell % step.terms;
  if (term > 0) {
    step.binary.columns(nullptr, out, x, out, n);
  } else if (step.truth) {
    step.binary.columns(nullptr, x, x, out, n);  // as 0 or 1
  } else {
    std::copy(x, x + kernels::padded(n), out);
  }
  if (step.mean && term + 1 == step.terms) {
    for (std::size_t i = 0; i < n; ++i) out[i] /= static_cast<double>(step.terms);
  }
}

void run_cell(const Step& step, std::size_t cell, const Frame& frame) {
  const auto x = [&] { return frame.column(step.args[0].columns[cell]); };
  const std::size_t n = frame.records;
  switch (step.code) {
    case Code::unary:
      return step.unary(step.map1, x(), frame.column(step.out[cell]), n);
    case Code::binary:
      return run_binary(step, cell, frame);
    case Code::ternary:
      return step.ternary(x(), frame.column(step.args[1].columns[cell]),
                          frame.column(step.args[2].columns[cell]), frame.column(step.out[cell]),
                          n);
    case Code::accumulate:
      return run_accumulate(step, cell, frame);
    case Code::fold_sample: {
      const double* column = x();
      return frame.accumulators[step.merge]->sample(&column, 1, n, step.places[cell]);
    }
    case Code::fold_dot:
      return frame.sums(step).dot(x(), frame.column(step.args[1].columns[cell]), n,
                                  step.places[cell]);
    default:
      throw Bug("a step that does not go cell by cell");
  }
}

// --- all cells ----------------------------------------------------------------------------------

const double* const* columns_of(const Columns& columns, std::size_t first, std::size_t count,
                                Frame& frame) {
  frame.pointers.resize(count);
  const double** const to = frame.pointers.data();
  for (std::size_t i = 0; i < count; ++i) to[i] = frame.column(columns[first + i]);
  return to;
}

void run_combine(const Step& step, Frame& frame) {
  const Operand& x = step.args[0];
  const Operand& weights = step.args[1];
  const double* data = frame.shared[weights.shared]->data.data();
  const bool same_columns = x.columns.size() == step.terms;
  const std::size_t together = same_columns ? 4 : 1;
  for (std::size_t c = 0; c < step.out.size(); c += together) {
    const std::size_t outputs = std::min(together, step.out.size() - c);
    const double* const* columns =
        columns_of(x.columns, same_columns ? 0 : c * step.terms, step.terms, frame);
    const double* weight[4];
    double* out[4];
    for (std::size_t j = 0; j < outputs; ++j) {
      weight[j] = data + weights.entries[c + j];
      out[j] = frame.column(step.out[c + j]);
    }
    kernels::products(frame.exact)
        .combine(columns, step.terms, weight, step.stride, out, outputs, frame.records);
  }
}

void run_distances(const Step& step, Frame& frame) {
  const Operand& x = step.args[0];
  const Operand& points = step.args[1];
  const double* data = frame.shared[points.shared]->data.data();
  const bool same_columns = x.columns.size() == step.terms;
  const std::size_t together = same_columns ? step.out.size() : 1;
  for (std::size_t c = 0; c < step.out.size(); c += together) {
    // Columns, points and results, one after the other.
    columns_of(x.columns, same_columns ? 0 : c * step.terms, step.terms, frame);
    frame.results.clear();
    for (std::size_t j = c; j < c + together; ++j) {
      frame.pointers.push_back(data + points.entries[j]);
      frame.results.push_back(frame.column(step.out[j]));
    }
    const double* const* columns = frame.pointers.data();
    kernels::products(frame.exact)
        .distances(columns, step.terms, columns + step.terms, step.stride, frame.results.data(),
                   together, frame.records);
  }
}

void run_nearest(const Step& step, Frame& frame) {
  const Operand& points = step.args[1];
  columns_of(step.args[0].columns, 0, step.terms, frame);
  for (const std::uint32_t entry : points.entries)
    frame.pointers.push_back(frame.shared[points.shared]->data.data() + entry);
  const double* const* columns = frame.pointers.data();
  kernels::nearest(frame.exact)(columns, step.terms, columns + step.terms, step.stride,
                                points.entries.size(), frame.column(step.out[0]), frame.records);
}

void run_pair_sum(const Step& step, Frame& frame) {
  for (std::size_t c = 0; c < step.out.size(); ++c) {
    frame.pointers.clear();
    for (std::size_t i = 0; i < 2; ++i) {
      for (std::size_t k = 0; k < step.terms; ++k)
        frame.pointers.push_back(frame.column(step.args[i].columns[c * step.terms + k]));
    }
    const double* const* a = frame.pointers.data();
    kernels::products(frame.exact)
        .pair_sum(a, a + step.terms, step.terms, frame.column(step.out[c]), frame.records);
  }
}

struct LineKernels {
  kernels::Binary max = kernels::binary("max");
  kernels::Binary subtract = kernels::binary("-");
  kernels::Binary add = kernels::binary("+");
  kernels::Binary divide = kernels::binary("/");
  kernels::Unary exp;
  kernels::Unary log;
  explicit LineKernels(bool exact)
      : exp(kernels::unary("exp", exact)), log(kernels::unary("log", exact)) {}
};

// Lines of columns: softmax, its logarithm, or the logarithm of the sum of exponentials. Everything
// is relative to the largest entry.
void run_lines(const Step& step, const Frame& frame) {
  static const LineKernels fast(false);
  static const LineKernels portable(true);
  const LineKernels& kernel = frame.exact ? portable : fast;
  const std::size_t n = frame.records;
  const auto scalar_exp = [](double x) { return maths::exp(x); };
  const auto scalar_log = [](double x) { return maths::log(x); };
  double* top = frame.column(step.work[0]);
  double* sum = frame.column(step.work[1]);
  double* e = frame.column(step.work[2]);
  const Columns& columns = step.args[0].columns;
  for (std::size_t first = 0; first < columns.size(); first += step.terms) {
    const auto x = [&](std::size_t k) { return frame.column(columns[first + k]); };
    const auto out = [&](std::size_t k) { return frame.column(step.out[first + k]); };
    std::copy(x(0), x(0) + kernels::padded(n), top);
    for (std::size_t k = 1; k < step.terms; ++k) kernel.max.columns(nullptr, top, x(k), top, n);
    std::fill(sum, sum + kernels::padded(n), 0.0);
    for (std::size_t k = 0; k < step.terms; ++k) {
      double* difference = step.code == Code::log_softmax ? out(k) : e;
      kernel.subtract.columns(nullptr, x(k), top, difference, n);
      double* exponential = step.code == Code::softmax ? out(k) : e;
      kernel.exp(scalar_exp, difference, exponential, n);
      kernel.add.columns(nullptr, sum, exponential, sum, n);
    }
    if (step.code == Code::softmax) {
      for (std::size_t k = 0; k < step.terms; ++k)
        kernel.divide.columns(nullptr, out(k), sum, out(k), n);
      continue;
    }
    kernel.log(scalar_log, sum, sum, n);
    if (step.code == Code::log_softmax) {
      for (std::size_t k = 0; k < step.terms; ++k)
        kernel.subtract.columns(nullptr, out(k), sum, out(k), n);
      continue;
    }
    double* result = frame.column(step.out[first / step.terms]);
    for (std::size_t i = 0; i < n; ++i)
      result[i] = std::isfinite(top[i]) ? top[i] + sum[i] : top[i];
  }
}

// A federated operand as an ordinary tensor: records along its star.
Tensor as_tensor(const Columns& columns, const Type& type, const Frame& frame) {
  Tensor tensor(block_shape(type, *frame.sizes, static_cast<std::int64_t>(frame.records)));
  const AxisView view(tensor.shape, *type.record_axis());
  for (std::size_t cell = 0; cell < columns.size(); ++cell) {
    const double* from = frame.column(columns[cell]);
    double* to = tensor.data.data() + view.place(0, cell);
    for (std::size_t i = 0; i < frame.records; ++i) to[i * view.inner] = from[i];
  }
  return tensor;
}

void from_tensor(const Tensor& tensor, const Columns& columns, const Type& type,
                 const Frame& frame) {
  const AxisView view(tensor.shape, *type.record_axis());
  for (std::size_t cell = 0; cell < columns.size(); ++cell) {
    double* to = frame.column(columns[cell]);
    const double* from = tensor.data.data() + view.place(0, cell);
    for (std::size_t i = 0; i < frame.records; ++i) to[i] = from[i * view.inner];
  }
}

// Where records are clients inside a block: an operation on a client's own values, one client after the other.
void run_general_each(const Step& step, const ir::Node& node, const Frame& frame) {
  std::vector<Tensor> own(step.args.size());
  std::vector<const Tensor*> args;
  for (std::size_t i = 0; i < step.args.size(); ++i) {
    const bool differs = step.args[i].federated();
    if (differs)
      own[i] = Tensor(cell_shape(frame.program->graph[node.args[i]].type(), *frame.sizes));
    args.push_back(differs ? &own[i] : frame.shared[step.args[i].shared]);
  }
  for (std::size_t client = 0; client < frame.records; ++client) {
    if (frame.stop != nullptr && *frame.stop) throw RunError("the run was stopped");
    for (std::size_t i = 0; i < own.size(); ++i) {
      const Columns& columns = step.args[i].columns;
      for (std::size_t c = 0; c < columns.size(); ++c)
        own[i].data[c] = frame.column(columns[c])[client];
    }
    const Tensor result = apply(*frame.program, node, args, *frame.sizes).front();
    for (std::size_t c = 0; c < step.out.size(); ++c)
      frame.column(step.out[c])[client] = result.data[c];
  }
}

void run_general(const Step& step, const Frame& frame) {
  const ir::Node& node = frame.program->graph[step.node];
  if (!node.federated()) return run_general_each(step, node, frame);
  std::vector<Tensor> tensors;
  tensors.reserve(step.args.size());
  std::vector<const Tensor*> args;
  for (std::size_t i = 0; i < step.args.size(); ++i) {
    const Operand& arg = step.args[i];
    if (arg.federated()) {
      tensors.push_back(as_tensor(arg.columns, frame.program->graph[node.args[i]].type(), frame));
      args.push_back(&tensors.back());
    } else {
      args.push_back(frame.shared[arg.shared]);
    }
  }
  from_tensor(apply(*frame.program, node, std::move(args), *frame.sizes).front(), step.out,
              node.type(), frame);
}

// The position of the largest or smallest column of each line.
void run_extreme(const Step& step, Frame& frame) {
  const kernels::Extremes& extremes = kernels::extremes();
  for (std::size_t line = 0; line < step.out.size(); ++line) {
    const double* const* columns =
        columns_of(step.args[0].columns, line * step.terms, step.terms, frame);
    (step.code == Code::argmax ? extremes.largest : extremes.smallest)(
        columns, step.terms, frame.column(step.out[line]), frame.records);
  }
}

// Records well inside the bound stay, those well outside are scaled to just below it: plain sums of
// squares are exact enough to tell and to keep the bound. Where they are not, near the bound or at the
// ends of the range of numbers, the operation itself decides.
// What decides must not depend on the other records of a block where the same bits are promised.
void run_clip_norm(const Step& step, Frame& frame) {
  if (frame.exact) return run_general(step, frame);
  const double bound = frame.shared[step.args[1].shared]->item();
  const Columns& columns = step.args[0].columns;
  double* factor = frame.column(step.work[0]);
  const double* const* x = columns_of(columns, 0, columns.size(), frame);
  kernels::products().pair_sum(x, x, columns.size(), factor, frame.records);
  // More than the relative error of a norm and of a scaled vector.
  const double margin =
      (static_cast<double>(columns.size()) + 8) * std::numeric_limits<double>::epsilon();
  bool sure = bound > 1e-100 && bound < 1e100;
  for (std::size_t i = 0; i < frame.records; ++i) {
    const double norm = std::sqrt(factor[i]);
    const bool inside = norm < bound * (1 - margin);
    sure = sure && (inside || (norm > bound * (1 + margin) && norm < 1e150));
    factor[i] = inside ? 1 : bound / norm * (1 - margin);
  }
  if (!sure) return run_general(step, frame);
  static const kernels::Binary multiply = kernels::binary("*");
  for (std::size_t cell = 0; cell < columns.size(); ++cell) {
    multiply.columns(nullptr, frame.column(columns[cell]), factor, frame.column(step.out[cell]),
                     frame.records);
  }
}

void run_quantize(const Step& step, Frame& frame) {
  const auto shared = [&](std::size_t arg) { return frame.shared[step.args[arg].shared]; };
  const auto entry = [&](std::size_t arg, std::size_t cell) {
    return shared(arg)->data[step.args[arg].entries[cell]];
  };
  const std::size_t cells = step.out.size();
  const std::size_t records = frame.records;
  const double per_unit = shared(1)->item();
  const double l1 = shared(4)->item();
  const double l2 = shared(5)->item();
  double most = 0;
  double most_squares = 0;
  for (std::size_t cell = 0; cell < cells; ++cell) {
    const double largest = std::max(std::abs(entry(2, cell)), std::abs(entry(3, cell))) + 0.5;
    most += largest;
    most_squares += largest * largest;
  }
  const kernels::Quantize& quantize = kernels::quantize();
  for (std::size_t cell = 0; cell < cells; ++cell)
    quantize.column(frame.column(step.args[0].columns[cell]), per_unit, entry(2, cell),
                    entry(3, cell), frame.column(step.out[cell]), records);
  if (most <= l1 && most_squares <= l2 * l2) return;  // no record can exceed the norms
  double* sum = frame.column(step.work[0]);
  double* squares = frame.column(step.work[1]);
  quantize.norms(columns_of(step.out, 0, cells, frame), cells, sum, squares, records);
  for (std::size_t i = 0; i < records; ++i) {
    const double factor = meaning::quantize_factor(sum[i], squares[i], l1, l2);
    if (factor == 1) continue;
    for (const Column& column : step.out) {
      double& q = frame.column(column)[i];
      q = std::trunc(q * factor);
    }
  }
}

void run_store(const Step& step, const Frame& frame) {
  double* to = frame.sinks[step.number];
  for (const Column& column : step.args[0].columns) {
    std::copy_n(frame.column(column), frame.records, to);
    to += frame.stride;
  }
}

// The row of each record by its label, and how many records have a label that is none.
std::int64_t find_rows(const Column& labels, std::size_t count, Frame& frame) {
  frame.rows.resize(kernels::padded(frame.records));
  return static_cast<std::int64_t>(
      kernels::groups().rows(frame.column(labels), count, frame.rows.data(), frame.records));
}

void run_labels(const Step& step, Frame& frame) {
  for (const Column& column : step.args[0].columns) {
    const std::int64_t outside = find_rows(column, step.terms, frame);
    if (outside > 0) frame.outside[step.node] += outside;
  }
}

void run_lookup(const Step& step, Frame& frame) {
  const Tensor& table = *frame.shared[step.args[0].shared];
  for (std::size_t cell = 0; cell < step.args[1].columns.size(); ++cell) {
    const double* at = frame.column(step.args[1].columns[cell]);
    std::int64_t outside = 0;
    for (std::size_t i = 0; i < frame.records; ++i)
      outside += !meaning::picks_one_of(at[i], table.shape[0]);
    if (outside > 0) {
      frame.outside[step.node] += outside;
      continue;  // nobody will see the results
    }
    for (std::size_t entry = 0; entry < step.terms; ++entry) {
      double* out = frame.column(step.out[cell * step.terms + entry]);
      for (std::size_t i = 0; i < frame.records; ++i) {
        out[i] = table.data[(static_cast<std::size_t>(at[i]) - 1) * step.terms + entry];
      }
    }
  }
}

void run_gram(const Step& step, Frame& frame) {
  const std::size_t rows = step.args[0].columns.size();
  const std::size_t columns = step.args[1].columns.size();
  frame.pointers.resize(rows + columns);
  const double** to = frame.pointers.data();
  for (const Operand& side : step.args) {
    for (const Column& column : side.columns) *to++ = frame.column(column);
  }
  const std::span<const double* const> all(frame.pointers);
  frame.sums(step).gram(step.number, all.subspan(0, rows), all.subspan(rows, columns), step.upper,
                        frame.records, step.places);
}

void run_groups(const Step& step, Frame& frame) {
  const Columns& columns = step.args[1].columns;
  const std::size_t labels = step.places.size() / columns.size();
  find_rows(step.args[0].columns[0], labels, frame);
  const double* const* x = columns_of(columns, 0, columns.size(), frame);
  frame.sums(step).groups(step.number, std::span(frame.rows).first(frame.records), labels,
                          {x, columns.size()}, step.places);
}

// Samples of several columns.
void run_samples(const Step& step, Frame& frame) {
  for (std::size_t cell = 0; cell < step.cells(); cell += step.terms) {
    const double* const* x = columns_of(step.args[0].columns, cell, step.terms, frame);
    frame.accumulators[step.merge]->sample(x, step.terms, frame.records, step.places[cell]);
  }
}

void run_fold_block(const Step& step, Frame& frame) {
  std::vector<std::vector<const double*>> operands;
  for (const Operand& arg : step.args) {
    const double* const* x = columns_of(arg.columns, 0, arg.columns.size(), frame);
    operands.emplace_back(x, x + arg.columns.size());
  }
  frame.accumulators[step.merge]->block(operands, frame.records);
}

void run_fold_records(const Step& step, Frame& frame) {
  const ir::Node& fold = frame.program->graph[step.node];
  std::vector<Tensor> tensors;
  FoldedRecords records;
  records.axes = fold.attrs.axes;
  for (std::size_t i = 0; i < step.args.size(); ++i) {
    const Type& type = frame.program->graph[fold.args[i]].type();
    tensors.push_back(as_tensor(step.args[i].columns, type, frame));
    records.record_axes.push_back(*type.record_axis());
  }
  for (const Tensor& tensor : tensors) records.operands.push_back(&tensor);
  frame.accumulators[step.merge]->records(records);
}

void run_all(const Step& step, Frame& frame) {
  switch (step.code) {
    case Code::combine:
      return run_combine(step, frame);
    case Code::distances:
      return run_distances(step, frame);
    case Code::nearest:
      return run_nearest(step, frame);
    case Code::pair_sum:
      return run_pair_sum(step, frame);
    case Code::softmax:
    case Code::log_softmax:
    case Code::logsumexp:
      return run_lines(step, frame);
    case Code::argmax:
    case Code::argmin:
      return run_extreme(step, frame);
    case Code::clip_norm:
      return run_clip_norm(step, frame);
    case Code::quantize:
      return run_quantize(step, frame);
    case Code::labels:
      return run_labels(step, frame);
    case Code::store:
      return run_store(step, frame);
    case Code::lookup:
      return run_lookup(step, frame);
    case Code::general:
      return run_general(step, frame);
    case Code::fold_gram:
      return run_gram(step, frame);
    case Code::fold_groups:
      return run_groups(step, frame);
    case Code::fold_sample:
      return run_samples(step, frame);
    case Code::fold_block:
      return run_fold_block(step, frame);
    case Code::fold_records:
      return run_fold_records(step, frame);
    case Code::fold_count:
      return frame.accumulators[step.merge]->count(frame.records, step.terms);
    default:
      throw Bug("a step that goes cell by cell");
  }
}

}  // namespace

void run(const BlockProgram& program, Frame& frame) {
  for (const Group& group : program.groups) {
    const Step& front = program.steps[group.first];
    if (!by_cell(front)) {
      run_all(front, frame);
      continue;
    }
    const std::size_t cells = front.cells();
    for (std::size_t cell = 0; cell < cells; ++cell) {
      for (std::size_t s = group.first; s < group.last; ++s)
        run_cell(program.steps[s], cell, frame);
    }
  }
  for (const std::unique_ptr<Accumulator>& accumulator : frame.accumulators) {
    if (accumulator) accumulator->end_block();
  }
}

}  // namespace starfold::engine
