#include "starfold/data/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "starfold/base/error.h"
#include "starfold/data/binding/shown_names.h"

namespace starfold {
namespace {

constexpr double unknown_value = std::numeric_limits<double>::quiet_NaN();

std::int64_t count_nan(const double* values, std::size_t count) {
  std::int64_t found = 0;
  for (std::size_t i = 0; i < count; ++i) found += values[i] != values[i] ? 1 : 0;
  return found;
}

std::string count_words(std::int64_t count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

}  // namespace

RecordReader::RecordReader(std::shared_ptr<const Table> table, std::vector<ColumnUse> uses,
                           Missing missing, RecordRange range, DesignUse design)
    : table_(std::move(table)),
      uses_(std::move(uses)),
      missing_(missing),
      design_(std::move(design)),
      scan_(table_->scan(uses_, range)),
      flaws_(uses_.size(), design_.variables()) {}

bool RecordReader::next() {
  while (scan_->next()) {
    clean();
    if (records_ > 0) return true;
  }
  records_ = 0;
  return false;
}

void RecordReader::clean() {
  const std::size_t count = scan_->records();
  columns_.clear();
  values_.clear();
  dropped_.clear();
  used_buffers_ = 0;
  for (std::size_t u = 0; u < uses_.size(); ++u) {
    const double* values = filled(u, count);
    values_.push_back(values);
    const std::int64_t found = count_nan(values, count);
    flaws_.missing[u] += found;
    if (found > 0 && missing_ == Missing::drop) {
      dropped_.resize(count, 0);
      for (std::size_t i = 0; i < count; ++i) {
        if (values[i] != values[i]) dropped_[i] = 1;
      }
    }
    if (uses_[u].categorical) flaws_.unseen[u] += std::count(values, values + count, 0.0);
    add_columns(uses_[u], values, count);
  }
  if (design_.design) add_design(count);
  records_ = count;
  if (!dropped_.empty()) drop_marked(count);
  flaws_.dropped += static_cast<std::int64_t>(count - records_);
}

// A column's numbers with nan where none is.
const double* RecordReader::filled(std::size_t use, std::size_t count) {
  const double* values = scan_->column(use);
  const std::uint64_t* valid = scan_->valid(use);
  if (valid == nullptr) return values;
  std::vector<double>& copy = buffer(count);
  for (std::size_t i = 0; i < count; ++i)
    copy[i] = (valid[i / 64] >> (i % 64) & 1U) != 0 ? values[i] : unknown_value;
  return copy.data();
}

void RecordReader::add_columns(const ColumnUse& use, const double* values, std::size_t count) {
  if (!use.categorical || use.categorical->coding == Categorical::Coding::codes) {
    columns_.push_back(values);
    return;
  }
  for (std::size_t level = 0; level < use.categorical->levels.size(); ++level) {
    if (level == use.categorical->reference) continue;
    std::vector<double>& column = buffer(count);
    const auto number = static_cast<double>(level + 1);
    for (std::size_t i = 0; i < count; ++i) {
      column[i] = values[i] == number ? 1.0 : values[i] != values[i] ? unknown_value : 0.0;
    }
    columns_.push_back(column.data());
  }
}

// What the formula makes of these records. Where it has no value, the record lacks one as well.
void RecordReader::add_design(std::size_t count) {
  const formula::Design& design = *design_.design;
  std::vector<const double*> sources;
  for (const std::size_t use : design_.uses) {
    if (use != DesignUse::client) {
      sources.push_back(values_[use]);
      continue;
    }
    std::vector<double>& site = buffer(count);
    std::fill_n(site.begin(), count, design_.site);
    sources.push_back(site.data());
  }
  std::vector<double*> to;
  for (std::size_t c = 0; c < design.columns().size(); ++c) to.push_back(buffer(count).data());
  std::vector<char> undefined(missing_ == Missing::drop ? count : 0, 0);
  design.compute(sources, count, dropped_.empty() ? nullptr : dropped_.data(), to, flaws_.design,
                 undefined.empty() ? nullptr : undefined.data());
  if (std::find(undefined.begin(), undefined.end(), 1) != undefined.end()) {
    dropped_.resize(count, 0);
    for (std::size_t i = 0; i < count; ++i) dropped_[i] |= undefined[i];
  }
  columns_.insert(columns_.end(), to.begin(), to.end());
}

void RecordReader::drop_marked(std::size_t count) {
  for (const double*& column : columns_) {
    std::vector<double>& kept = buffer(count);
    records_ = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (dropped_[i] == 0) kept[records_++] = column[i];
    }
    column = kept.data();
  }
}

std::vector<double>& RecordReader::buffer(std::size_t size) {
  if (used_buffers_ == buffers_.size()) buffers_.emplace_back();
  std::vector<double>& result = buffers_[used_buffers_++];
  if (result.size() < size) result.resize(size);
  return result;
}

void Flaws::add(const Flaws& other) {
  dropped += other.dropped;
  for (std::size_t u = 0; u < missing.size(); ++u) {
    missing[u] += other.missing[u];
    unseen[u] += other.unseen[u];
  }
  for (std::size_t v = 0; v < design.undefined.size(); ++v) {
    design.undefined[v] += other.design.undefined[v];
    design.infinite[v] += other.design.infinite[v];
  }
}

bool has_flaws(const Flaws& flaws, Missing missing) {
  const auto any = [](const std::vector<std::int64_t>& counts) {
    return std::any_of(counts.begin(), counts.end(), [](std::int64_t count) { return count > 0; });
  };
  return any(flaws.unseen) || (missing != Missing::nan && any(flaws.design.infinite)) ||
         (missing == Missing::error && (any(flaws.missing) || any(flaws.design.undefined)));
}

void check_flaws(const Flaws& flaws, const Table& table, const std::vector<ColumnUse>& uses,
                 const DesignUse& design, Missing missing) {
  if (!has_flaws(flaws, missing)) return;
  std::string holes;
  std::string strangers;
  for (std::size_t u = 0; u < uses.size(); ++u) {
    const std::string name = shown_column(table, uses[u].column);
    if (missing == Missing::error && flaws.missing[u] > 0) {
      holes += fmt::format("{}{} has {}", holes.empty() ? "" : ", ", name,
                           count_words(flaws.missing[u], "missing value", "missing values"));
    }
    if (flaws.unseen[u] > 0) {
      strangers += fmt::format(
          "{}{} has {} that {} no declared level", strangers.empty() ? "" : ", ", name,
          count_words(flaws.unseen[u], "value", "values"), flaws.unseen[u] == 1 ? "is" : "are");
    }
  }
  if (!strangers.empty()) throw RunError(strangers);
  for (std::size_t v = 0; v < flaws.design.infinite.size(); ++v) {
    if (flaws.design.infinite[v] > 0)
      throw RunError(fmt::format("{} of the formula is infinite for {}; --missing nan keeps them",
                                 shown(design.design->variables()[v]),
                                 count_words(flaws.design.infinite[v], "record", "records")));
    if (missing == Missing::error && flaws.design.undefined[v] > 0)
      holes += fmt::format("{}{} of the formula has no value for {}", holes.empty() ? "" : ", ",
                           shown(design.design->variables()[v]),
                           count_words(flaws.design.undefined[v], "record", "records"));
  }
  if (!holes.empty())
    throw RunError(holes + "; to go on without them, use --missing drop or --missing nan");
}

}  // namespace starfold
