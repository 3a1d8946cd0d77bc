// The records of a study's clients, read or made up.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "starfold/runtime/pack.h"
#include "starfold/study/study.h"

namespace starfold {

// By client: a table that the program we are part of hands over (data/memory_table.h).
using GivenTables = std::map<std::string, std::shared_ptr<const Table>>;

// What was read, ready to run.
struct StudyData {
  std::vector<Pack> packs;
  std::map<std::string, std::vector<std::string>> columns;  // by input: what its columns are called
  std::int64_t room = 0;              // bytes of those for records that are left
  std::vector<std::int64_t> dropped;  // by client: records left out because a value is missing
  std::vector<std::map<std::string, std::int64_t>> missing;  // by client and column: missing values
};

// The threads a study asks for, or all there are.
int threads_of(const Study& study);

// Reads the clients' data, or makes the clients of a simulation. A program without federated inputs needs none.
// StudyError when clients are needed and there are none; RunError when data cannot be used.
// Clients in `given` have their data in memory.
StudyData load_study(const Study& study, const ir::Program& program, const Settings& settings,
                     const GivenTables& given = {});

}  // namespace starfold
