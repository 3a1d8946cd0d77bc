// Missing values: who asks to drop them loses exactly the records that have one in any bound value,
// wherever the star of an input is.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "starfold/data/binding/bind_columns.h"
#include "tests/laws/law.h"

namespace starfold::laws {
namespace {

// The record that each entry of an array belongs to, by its index along the star.
std::vector<std::int64_t> owners(const Tensor& array, std::size_t star) {
  std::vector<std::int64_t> index(array.rank());
  std::vector<std::int64_t> records;
  for (std::int64_t i = 0; i < array.count(); ++i) {
    records.push_back(index[star]);
    for (std::size_t k = array.rank(); k-- > 0;) {
      if (++index[k] < array.shape[k]) break;
      index[k] = 0;
    }
  }
  return records;
}

// The client without the records that have a missing value, by record set.
Client without_missing(const GeneratedProgram& program, const Client& client, int& dropped) {
  std::map<std::string, std::set<std::int64_t>> missing;
  for (const InputSpec& input : program.inputs) {
    if (!input.type.federated()) continue;
    const Tensor& array = client.arrays.at(input.name);
    const std::vector<std::int64_t> records = owners(array, *input.type.record_axis());
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (std::isnan(array.data[i])) missing[input.type.record_set()].insert(records[i]);
    }
  }
  Client kept{client.name, {}};
  for (const InputSpec& input : program.inputs) {
    if (!input.type.federated()) continue;
    const Tensor& array = client.arrays.at(input.name);
    const std::set<std::int64_t>& gone = missing[input.type.record_set()];
    const std::size_t star = *input.type.record_axis();
    const std::vector<std::int64_t> records = owners(array, star);
    Tensor rest;
    rest.shape = array.shape;
    rest.shape[star] -= static_cast<std::int64_t>(gone.size());
    rest.data.clear();
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (gone.count(records[i]) == 0) rest.data.push_back(array.data[i]);
    }
    dropped += static_cast<int>(gone.size());
    kept.arrays[input.name] = std::move(rest);
  }
  return kept;
}

std::set<std::string> places;  // of stars in arrays that lost records

Verdict missing_is_dropped(const Case& c) {
  const Compiled program = compiled(c);
  if (!program.error.empty()) return program.error;
  const ir::Program& p = program.program->compilation.program;
  Case loaded = c;
  Case by_hand = c;
  for (std::size_t i = 0; i < c.federation.clients.size(); ++i) {
    const Client& client = c.federation.clients[i];
    int dropped = 0;
    by_hand.federation.clients[i] = without_missing(c.program, client, dropped);
    DataSource source;
    source.client = client.name;
    source.arrays.insert(client.arrays.begin(), client.arrays.end());
    LoadOptions options;
    options.missing = Missing::drop;
    std::int64_t room = 1 << 20;
    loaded.federation.clients[i] = load_client(p, source, {}, options, room).client;
    for (const InputSpec& input : c.program.inputs) {
      if (!input.type.federated()) continue;
      const Tensor& want = by_hand.federation.clients[i].arrays.at(input.name);
      if (const Verdict broken =
              same_bits(loaded.federation.clients[i].arrays.at(input.name), want)) {
        return fmt::format("input {} : {}: {}", input.name, input.type.to_string(), *broken);
      }
      if (dropped > 0 && input.type.rank() == 3)
        places.insert(fmt::format("{}", *input.type.record_axis()));
    }
  }
  return compare(run_engine(loaded, *program.program), run_reference(by_hand, *program.program),
                 rounding);
}

TEST(Laws, MissingIsDropped) {
  places.clear();
  GeneratorOptions options;
  options.special = true;
  options.statements = 3;
  check_law("Laws.MissingIsDropped", options, 300, missing_is_dropped);
  if (law_programs(300) >= 300) {
    EXPECT_EQ(places, (std::set<std::string>{"0", "1", "2"}));
  }
}

}  // namespace
}  // namespace starfold::laws
