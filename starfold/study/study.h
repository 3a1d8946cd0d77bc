// A study: which program runs over whose data, and how. Written in TOML; docs/study.md is the schema.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "starfold/base/usage_error.h"
#include "starfold/data/binding/binding_text.h"
#include "starfold/federation/remote.h"

namespace starfold {

// A client whose data is here, or a node that has its own.
struct StudyClient {
  std::string name;
  TableLocation data;
  std::string node = {};    // the path of its socket; empty over Flower, where the name is enough
  std::string source = {};  // which of its tables
  std::string public_key = {};  // over Flower: the file with its key; empty: found by name
  std::string key =
      {};  // for secure aggregation: the key of its node, as `starfold node key` prints it
};

// How clients are reached that are nodes.
struct Federation {
  enum class Via { files, sockets, flower };
  Via via = Via::files;
  RemoteOptions::Dropout on_dropout = RemoteOptions::Dropout::wait;
  double timeout = 60;     // seconds
  std::string checkpoint;  // a folder; empty: beside the study
  std::string superlink;   // an address, for Flower
  std::string root_certificates;
  Sample sample;  // of how many clients each round is asked
};

struct Study {
  std::string title;    // for reports; may be empty
  std::string program;  // a path, or the name of a library program
  std::vector<StudyClient> clients;
  Federation federation;
  std::optional<privacy::Promise> privacy;
  std::optional<RunOptions::Secure> secure;  // states are masked until they are merged
  std::string simulation;                    // instead of clients: what parse_simulation reads
  ColumnBindings bindings;
  std::string formula;  // that makes the columns of y and x; empty: there is none
  Categoricals categoricals;
  std::map<std::string, Tensor> values;            // of shared inputs and sizes
  std::map<std::string, std::string> value_files;  // those that are read from files: "@file.npy"
  Missing missing = Missing::error;
  int threads = 0;          // 0: as many as the machine has
  std::int64_t memory = 0;  // bytes for records; 0: half of the machine's
  bool exact = false;       // the same bits for every split, order, thread and machine
  std::string out;
  bool client_details =
      false;  // results and report say how many records each client has, and in which file

  std::string file;                          // where it was written; empty: on the command line
  std::map<std::string, std::size_t> lines;  // of [inputs] and [sizes]
};

// A study that was written wrongly. The message has the place.
using StudyError = UsageError;

// Reads a study. Relative paths in it are relative to `file`. StudyError when it is wrong.
Study parse_study(std::string_view text, const std::string& file);

// StudyError or, for options, RunError when it gives a value or columns to what the program does not have.
void check_study(const Study& study, const ir::Program& program);

// The values as settings of a program; StudyError when a size is not a positive integer, RunError when an input
// needs a value and has none.
Settings study_settings(const Study& study, const ir::Program& program);

// The formula with what it needs to know of the clients.
FormulaRequest study_formula(const Study& study);

// The value of a size; StudyError when it is not a positive integer.
std::int64_t size_value(const std::string& name, const Tensor& value);

// "error", "drop", "nan"; "512MB", "2 GiB". StudyError otherwise.
Missing parse_missing(const std::string& word);
std::int64_t parse_memory(const std::string& text);

}  // namespace starfold
