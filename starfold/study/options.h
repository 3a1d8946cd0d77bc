// What a run is asked to do: a study file, changed by options as a person writes them, or options alone.
#pragma once

#include <string>
#include <vector>

#include "starfold/study/study.h"

namespace starfold {

struct StudyOptions {
  std::string file;                        // a program or a study
  std::vector<std::string> clients = {};   // "oslo=oslo.csv"
  std::vector<std::string> bindings = {};  // "x=age,bmi"
  std::vector<std::string> settings = {};  // "ridge=0.1"
  std::string formula = {};
  std::vector<std::string> levels = {};  // "sex=f,m"
  std::string missing = {};
  std::vector<std::string> na = {};
  std::string delimiter = {};
  std::string decimal = {};
  std::string encoding = {};
  std::string dates = {};
  std::string sheet = {};
  std::string memory = {};
  std::string simulate = {};
  std::string out = {};
  int threads = 0;
  bool exact = false;
  bool client_details = false;
  int sample = 0;                // 0: every round is asked of all clients
  std::string sample_seed = {};  // a whole number
};

// Whether a file of this name is a study.
bool is_study(const std::string& file);

// The study that is meant; each option wins over the file. StudyError when the file or an option is wrong.
Study make_study(const StudyOptions& options);

}  // namespace starfold
