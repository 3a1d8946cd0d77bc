// Data of the benchmarks: numbers that depend on nothing but their place, so that everyone gets the same.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "bench/contestant.h"
#include "starfold/data/duckdb/database.h"
#include "starfold/tensor/tensor.h"

namespace starfold::bench {
namespace {

// SplitMix64, as a hash of a position.
double uniform(std::uint64_t stream, std::uint64_t position) {
  std::uint64_t z = (stream << 48U) + position * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  z ^= z >> 31U;
  return static_cast<double>(z >> 11U) * 0x1p-53;
}

struct Spec {
  std::string
      kind;  // "uniform" (variance scale^2), "binary" (a response to x), "labels" (1 to scale)
  double scale = 1;
  Shape shape;
};

// uniform*0.5:1000,20
Spec parse_spec(const std::string& text) {
  Spec spec;
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) throw std::runtime_error("no shape in " + text);
  const std::size_t times = text.substr(0, colon).find('*');
  spec.kind = text.substr(0, std::min(times, colon));
  if (times != std::string::npos) spec.scale = std::stod(text.substr(times + 1));
  std::stringstream dims(text.substr(colon + 1));
  for (std::string dim; std::getline(dims, dim, ',');) spec.shape.push_back(std::stoll(dim));
  return spec;
}

constexpr std::uint64_t stream_of_x = 1;

double centred(std::uint64_t stream, std::uint64_t position) {
  return (2 * uniform(stream, position) - 1) * std::sqrt(3.0);
}

// 1 with the probability of a logistic model in the columns of x.
double response(std::uint64_t record, std::uint64_t columns) {
  double eta = 0;
  for (std::uint64_t j = 0; j < columns; ++j)
    eta += (j % 2 == 0 ? 1 : -1) * centred(stream_of_x, record * columns + j);
  eta /= std::sqrt(static_cast<double>(columns));
  return uniform(2, record) < 1 / (1 + std::exp(-eta)) ? 1 : 0;
}

double entry(const Spec& spec, std::uint64_t stream, std::uint64_t position,
             std::uint64_t columns) {
  if (spec.kind == "uniform") return spec.scale * centred(stream, position);
  if (spec.kind == "labels") return 1 + std::floor(uniform(stream, position) * spec.scale);
  if (spec.kind == "binary") return response(position, columns);
  throw std::runtime_error("no data is called " + spec.kind);
}

std::string npy_header(const Shape& shape) {
  std::string dims;
  for (const std::int64_t dim : shape) dims += fmt::format("{},", dim);
  std::string text =
      fmt::format("{{'descr': '<f8', 'fortran_order': False, 'shape': ({}), }}", dims);
  constexpr std::size_t before = 10;  // magic, version, length
  text.append(63 - (before + text.size()) % 64, ' ');
  text += '\n';
  const auto length = static_cast<unsigned>(text.size());
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(length & 255U) +
         static_cast<char>(length >> 8U) + text;
}

void write_array(const std::string& path, const Spec& spec, std::uint64_t stream,
                 std::uint64_t columns, int threads) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "wb"),
                                                             &std::fclose);
  if (!file) throw std::runtime_error("cannot write " + path);
  const std::string header = npy_header(spec.shape);
  bool good = std::fwrite(header.data(), 1, header.size(), file.get()) == header.size();
  const auto total = static_cast<std::uint64_t>(element_count(spec.shape));
  constexpr std::uint64_t batch = 1U << 22U;
  std::vector<double> values(std::min(batch, total));
  for (std::uint64_t start = 0; start < total && good; start += batch) {
    const std::uint64_t count = std::min(batch, total - start);
    const auto workers = static_cast<std::uint64_t>(threads);
    on_threads(threads, [&](int t) {
      const auto worker = static_cast<std::uint64_t>(t);
      for (std::uint64_t i = count * worker / workers; i < count * (worker + 1) / workers; ++i)
        values[i] = entry(spec, stream, start + i, columns);
    });
    good = std::fwrite(values.data(), sizeof(double), count, file.get()) == count;
  }
  if (!good) throw std::runtime_error("cannot write all of " + path);
}

std::uint64_t stream_of(const std::string& name) {
  if (name == "x") return stream_of_x;
  std::uint64_t stream = 3;
  for (const char c : name) stream = stream * 31 + static_cast<unsigned char>(c);
  return stream;
}

// Column names c0, c1, ... wrapped into an SQL expression each; {0} is the number of the column.
std::string for_columns(std::int64_t columns, const char* expression) {
  std::string list;
  for (std::int64_t c = 0; c < columns; ++c)
    list += (c == 0 ? "" : ", ") + fmt::format(fmt::runtime(expression), c);
  return list;
}

}  // namespace

void generate_arrays(const Arguments& arguments) {
  std::uint64_t columns = 1;  // of x
  const auto arrays = arguments.beginning_with("array:");
  if (const auto x = arrays.find("x"); x != arrays.end()) {
    const Shape shape = parse_spec(x->second).shape;
    columns = shape.size() > 1 ? static_cast<std::uint64_t>(shape[1]) : 1;
  }
  for (const auto& [name, text] : arrays) {
    write_array(fmt::format("{}/{}.npy", arguments.text("data"), name), parse_spec(text),
                stream_of(name), columns, static_cast<int>(arguments.number("threads")));
  }
}

// Values with three digits, as tables of measurements have them.
void generate_parquet(const Arguments& arguments) {
  const std::int64_t columns = arguments.number("columns");
  const std::string file = arguments.text("data") + "/x.parquet";
  DatabaseOptions options;
  options.threads = static_cast<int>(arguments.number("threads"));
  Database(options).execute(
      fmt::format("COPY (SELECT {} FROM range({}) AS t(i)) TO {} (FORMAT parquet)",
                  for_columns(columns, "(hash(i * 1000 + {0}) % 2001)::DOUBLE / 1000 - 1 AS c{0}"),
                  arguments.number("records"), sql_text(file)));
}

Contestant make_scan(const Arguments& arguments) {
  const std::int64_t columns = arguments.number("columns");
  DatabaseOptions options;
  options.threads = static_cast<int>(arguments.number("threads"));
  const std::string sql =
      fmt::format("SELECT {} FROM read_parquet({})", for_columns(columns, "sum(c{0})"),
                  sql_text(arguments.text("data") + "/x.parquet"));
  return [database = Database(options), sql, columns](int) {
    const Clock::time_point start = Clock::now();
    const std::unique_ptr<Rows> rows = database.prepare(sql).stream();
    Outcome outcome;
    while (rows->next()) {
      for (std::int64_t c = 0; c < columns; ++c)
        outcome.values.push_back(*rows->column<double>(static_cast<std::size_t>(c)));
    }
    outcome.seconds = since(start);
    return outcome;
  };
}

}  // namespace starfold::bench
