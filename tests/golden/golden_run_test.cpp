// Every golden program without errors also runs, on a small random federation, in several
// configurations: optimizer on and off, one record per block, several threads. All must equal the
// reference evaluator; messages are bytes in all of them.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "starfold/base/error.h"
#include "starfold/federation/local.h"
#include "starfold/runtime/apply.h"

namespace starfold {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> passing_programs() {
  const fs::path root = fs::path(STARFOLD_SOURCE_DIR) / "tests" / "golden";
  std::vector<std::string> paths;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() == ".fold" && name.rfind("fail_", 0) != 0)
      paths.push_back(fs::relative(entry.path(), root).string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Numbers that suit most operations: positive whole labels now and then, moderate values otherwise.
Tensor random_tensor(const Shape& shape, std::mt19937_64& random) {
  Tensor tensor(shape);
  for (double& value : tensor.data) {
    value = random() % 3 == 0 ? static_cast<double>(1 + random() % 2)
                              : std::uniform_real_distribution<>(0.1, 2)(random);
  }
  return tensor;
}

struct Federation {
  std::vector<Client> clients;
  Settings settings;
};

Federation random_federation(const ir::Program& program, std::mt19937_64& random) {
  Federation federation;
  SizeValues sizes;
  for (const ir::SizeVariable& size : program.sizes) {
    sizes[size.name] = size.value ? *size.value : static_cast<std::int64_t>(2 + random() % 3);
    // A size that no input determines by itself still gets its value.
    federation.settings.sizes[size.name] = sizes[size.name];
  }
  for (const ir::Input& input : program.inputs) {
    if (!input.type.federated())
      federation.settings.shared[input.name] = random_tensor(cell_shape(input.type, sizes), random);
  }
  for (const auto& [name, base] :
       {std::pair("one", 4), std::pair("none", 0), std::pair("two", 7)}) {
    Client client;
    client.name = name;
    std::map<std::string, std::int64_t> counts;
    for (const ir::Input& input : program.inputs) {
      if (!input.type.federated()) continue;
      const bool row = input.type.record_set() == ir::client_set;
      const auto records =
          counts
              .emplace(input.type.record_set(),
                       row         ? 1
                       : base == 0 ? 0
                                   : base + static_cast<std::int64_t>(random() % 3))
              .first->second;
      Shape shape = cell_shape(input.type, sizes);
      shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(*input.type.record_axis()), records);
      client.arrays[input.name] = random_tensor(shape, random);
    }
    federation.clients.push_back(std::move(client));
  }
  return federation;
}

void expect_equal(const Results& expected, const Results& actual) {
  ASSERT_EQ(expected.outputs.size(), actual.outputs.size());
  for (const auto& [name, tensor] : expected.outputs) {
    const Tensor& other = actual.outputs.at(name);
    ASSERT_EQ(tensor.shape, other.shape) << name;
    for (std::size_t i = 0; i < tensor.data.size(); ++i) {
      const double a = tensor.data[i];
      const double b = other.data[i];
      const bool same =
          a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-9 * (1 + std::abs(a));
      EXPECT_TRUE(same) << name << "[" << i << "]: " << a << " by definition, " << b
                        << " by the engine";
    }
  }
  ASSERT_EQ(expected.kept.size(), actual.kept.size());
  for (const auto& [name, parts] : expected.kept) {
    ASSERT_EQ(parts.size(), actual.kept.at(name).size());
    for (std::size_t client = 0; client < parts.size(); ++client) {
      const Tensor& other = actual.kept.at(name)[client];
      ASSERT_EQ(parts[client].shape, other.shape) << name;
      for (std::size_t i = 0; i < other.data.size(); ++i) {
        const double a = parts[client].data[i];
        EXPECT_TRUE(a == other.data[i] || (std::isnan(a) && std::isnan(other.data[i])) ||
                    std::abs(a - other.data[i]) <= 1e-9 * (1 + std::abs(a)))
            << name << " of client " << client;
      }
    }
  }
  EXPECT_EQ(expected.iterations, actual.iterations);
  EXPECT_EQ(expected.traces.size(), actual.traces.size());
}

class GoldenRun : public testing::TestWithParam<std::string> {};

TEST_P(GoldenRun, EqualsTheReferenceInEveryConfiguration) {
  const fs::path path = fs::path(STARFOLD_SOURCE_DIR) / "tests" / "golden" / GetParam();
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  std::mt19937_64 random(20240607);
  for (const bool optimize : {true, false}) {
    ProgramOptions options;
    options.load = modules_beside(path.string());
    options.planning.optimize = optimize;
    const auto program = compile_program({path.string(), text.str(), {}}, options);
    ASSERT_TRUE(program->plan) << "the program has errors";
    const Federation federation = random_federation(program->compilation.program, random);
    std::optional<Results> expected;
    try {
      expected =
          evaluate_reference(program->compilation.program, federation.clients, federation.settings);
    } catch (const RunError&) {
      // Some programs need data of their own (a singular matrix, a label outside): then the engine must refuse too.
    }
    for (const std::int64_t block : {1, 3, 512}) {
      for (const int threads : {1, 3}) {
        RunOptions run;
        run.block_records = block;
        run.threads = threads;
        if (!expected) {
          EXPECT_THROW(run_local(program, federation.clients, federation.settings, run), RunError);
          continue;
        }
        expect_equal(*expected,
                     run_local(program, federation.clients, federation.settings, run).results);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, GoldenRun, testing::ValuesIn(passing_programs()),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           for (char& c : name) {
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace starfold
