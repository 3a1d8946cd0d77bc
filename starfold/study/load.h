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
  std::map<std::string, std::string> references;  // by column with levels: the one without a column
  std::int64_t room = 0;                          // bytes of those for records that are left
  std::vector<std::int64_t> dropped;  // by client: records left out because a value is missing
  std::vector<std::map<std::string, std::int64_t>> missing;  // by client and column: missing values
};

// The threads a study asks for, or all there are.
int threads_of(const Study& study);

// The clients' tables before their records are read, and the columns that inputs take from them.
struct StudySources {
  std::vector<DataSource> clients;
  std::vector<bool>
      as_they_come;  // by client: it brings the inputs themselves, and is not asked for columns
  ColumnPlan plan;   // of the others
};
StudySources study_sources(const Study& study, const ir::Program& program, const GivenTables& given,
                           Tables& tables);

// Reads the clients' data, or makes the clients of a simulation. A program without federated inputs needs none.
// StudyError when clients are needed and there are none; RunError when data cannot be used.
// Clients in `given` have their data in memory.
StudyData load_study(const Study& study, const ir::Program& program, const Settings& settings,
                     const GivenTables& given = {});

}  // namespace starfold
