// How fast tables become blocks of numbers, beside DuckDB's own scan of the same file: the sum of every
// column. Both see the file in the system's cache.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>
#include <thread>

#include "starfold/data/duckdb/database.h"
#include "starfold/data/loaded_table.h"

namespace starfold {
namespace {

constexpr int columns = 20;
constexpr std::int64_t parquet_records = 4'000'000;
constexpr std::int64_t csv_records = 400'000;

std::int64_t records_of(const std::string& kind) {
  return kind == "csv" ? csv_records : parquet_records;
}

// Made once: measurements with three decimals, as tables of people have them.
std::string table_file(const std::string& kind) {
  const std::filesystem::path folder = std::filesystem::path(STARFOLD_SOURCE_DIR) / "build/bench";
  const std::filesystem::path file =
      folder / fmt::format("ingest_{}x{}.{}", records_of(kind), columns, kind);
  if (std::filesystem::exists(file)) return file.string();
  std::filesystem::create_directories(folder);
  std::string list;
  for (int c = 0; c < columns; ++c) {
    list +=
        fmt::format("{}round(sqrt(-2 * ln(random() + 1e-12)) * cos(2 * pi() * random()), 3) AS c{}",
                    c == 0 ? "" : ", ", c);
  }
  DatabaseOptions options;
  options.threads = 2;
  const std::string aside = file.string() + ".partial";
  Database(options).execute(fmt::format("COPY (SELECT {} FROM range({})) TO '{}' (FORMAT {})", list,
                                        records_of(kind), aside, kind));
  std::filesystem::rename(aside, file);
  return file.string();
}

void count_values(benchmark::State& state, const std::string& kind) {
  state.SetItemsProcessed(state.iterations() * records_of(kind) * columns);
}

void BM_DuckdbScan(benchmark::State& state, const std::string& kind) {
  const std::string file = table_file(kind);
  DatabaseOptions options;
  options.threads = static_cast<int>(state.range(0));
  const Database database(options);
  std::string list;
  std::string types;
  for (int c = 0; c < columns; ++c) {
    list += fmt::format("{}sum(c{})", c == 0 ? "" : ", ", c);
    types += fmt::format("{}'c{}': 'DOUBLE'", c == 0 ? "" : ", ", c);
  }
  const std::string from =
      kind == "csv"
          ? fmt::format("read_csv('{}', header = true, auto_detect = false, columns = {{{}}})",
                        file, types)
          : fmt::format("read_parquet('{}')", file);
  for (auto _ : state) database.execute(fmt::format("SELECT {} FROM {}", list, from));
  count_values(state, kind);
}

TableLoad load_of(Tables& tables, const std::string& kind, int threads) {
  TableLoad load;
  load.threads = threads;
  load.table = tables.open({table_file(kind), {}, {}, {}});
  for (std::size_t c = 0; c < columns; ++c) {
    load.use.uses.push_back({c, nullptr});
    load.use.inputs["x"].push_back(c);
  }
  return load;
}

// Blocks `first` to `last` of a table, thrown away.
void drain(const RecordTable& table, std::size_t first, std::size_t last) {
  constexpr std::size_t block = RecordTable::kept_records;
  std::vector<double> passing(table.columns() * block);
  const auto cursor = table.read(static_cast<std::int64_t>(first * block), block, block);
  for (std::size_t b = first; b < last; ++b) {
    if (cursor->next(passing.data()) == 0) throw std::runtime_error("the table is too short");
  }
}

// What a round reads of a table that is not kept, by as many threads as can.
void BM_Stream(benchmark::State& state, const std::string& kind) {
  const int threads = static_cast<int>(state.range(0));
  Tables tables({});
  std::int64_t room = 0;
  const auto table = load_table(load_of(tables, kind, threads), room).table;
  constexpr std::size_t block = RecordTable::kept_records;
  const std::size_t blocks = (static_cast<std::size_t>(table->records()) + block - 1) / block;
  const std::size_t parts = table->seekable() ? static_cast<std::size_t>(threads) : 1;
  for (auto _ : state) {
    std::vector<std::jthread> workers;
    for (std::size_t part = 0; part < parts; ++part) {
      workers.emplace_back(
          [&, part] { drain(*table, part * blocks / parts, (part + 1) * blocks / parts); });
    }
  }
  count_values(state, kind);
}

// Reading a table into memory.
void BM_Keep(benchmark::State& state, const std::string& kind) {
  const int threads = static_cast<int>(state.range(0));
  Tables tables({});
  const TableLoad load = load_of(tables, kind, threads);
  for (auto _ : state) {
    std::int64_t room = std::int64_t{1} << 40;
    benchmark::DoNotOptimize(load_table(load, room));
  }
  count_values(state, kind);
}

BENCHMARK_CAPTURE(BM_DuckdbScan, parquet, "parquet")
    ->Arg(1)
    ->Arg(2)
    ->UseRealTime()
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Stream, parquet, "parquet")
    ->Arg(1)
    ->Arg(2)
    ->UseRealTime()
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Keep, parquet, "parquet")
    ->Arg(1)
    ->Arg(2)
    ->UseRealTime()
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_DuckdbScan, csv, "csv")
    ->Arg(1)
    ->Arg(2)
    ->UseRealTime()
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Stream, csv, "csv")
    ->Arg(1)
    ->Arg(2)
    ->UseRealTime()
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Keep, csv, "csv")
    ->Arg(1)
    ->Arg(2)
    ->UseRealTime()
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace starfold
