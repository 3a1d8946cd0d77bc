// How fast tables become blocks of numbers, beside DuckDB's own scan of the same file: the sum of every
// column. Both see the file in the system's cache.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <filesystem>

#include "starfold/data/database.h"
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

// A table through the reader, its blocks thrown away (`room` 0) or kept.
void ingest(benchmark::State& state, const std::string& kind, std::int64_t room) {
  TableLoad load;
  load.threads = static_cast<int>(state.range(0));
  Tables tables({load.threads, 0});
  load.table = tables.open({table_file(kind), {}, {}, {}});
  for (std::size_t c = 0; c < columns; ++c) {
    load.use.uses.push_back({c, nullptr});
    load.use.inputs["x"].push_back(c);
  }
  for (auto _ : state) {
    std::int64_t left = room;
    benchmark::DoNotOptimize(load_table(load, left));
  }
  count_values(state, kind);
}

void BM_Stream(benchmark::State& state, const std::string& kind) { ingest(state, kind, 0); }
void BM_Keep(benchmark::State& state, const std::string& kind) {
  ingest(state, kind, std::int64_t{1} << 40);
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
