// What a run is asked to do: a study file, changed by options on the command line, or options alone.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "starfold/data/study.h"
#include "starfold/runtime/pack.h"

namespace starfold::cli {

struct RunArguments {
  std::string file;  // a program or a study
  std::vector<std::string> clients;
  std::vector<std::string> bindings;
  std::vector<std::string> settings;
  std::string missing;
  std::string memory;
  std::string simulate;
  std::string out;
  int threads = 0;
};

// StudyError when the study or an option is wrong: exit code 2.
Study make_study(const RunArguments& arguments);

// The threads a study asks for, or all there are.
int threads_of(const Study& study);

// Makes the clients that a study simulates. StudyError or RunError when that cannot be done.
std::vector<Pack> simulate_clients(const Study& study, const ir::Program& program,
                                   const Settings& settings);

// Reads the clients' data and notes what the columns of each input are called. RunError when that
// cannot be done.
std::vector<Client> load_clients(const Study& study, const ir::Program& program,
                                 std::map<std::string, std::vector<std::string>>& columns);

}  // namespace starfold::cli
