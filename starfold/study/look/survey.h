// The data of clients, looked at before a study exists: which columns all have, and which of them a program may want.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "starfold/study/study.h"

namespace starfold {

struct SurveyColumn {
  std::string name;
  ColumnKind kind = ColumnKind::unknown;  // text where it is text for one client
  std::string objection;  // why a program hardly wants it: "looks like row numbers"; empty: it may
  bool missing = false;   // some client lacks some of its values
  std::vector<std::string> levels = {};  // of text with few different values, each of many records
};

struct Survey {
  std::vector<SurveyColumn> columns;  // that all clients have, in the order of the first
  std::set<std::string> arrays;       // that all clients have; then there are no tables
  // By client: columns of numbers in which a mark such as ? stands for a missing one, so that they are text there.
  std::map<std::string, std::vector<std::string>> marked;

  const SurveyColumn* find(const std::string& name) const;
};

// Reads the columns of numbers once. RunError when data cannot be read, or has no names of columns.
Survey survey_clients(const std::vector<StudyClient>& clients, const ir::Program& program);

// A query that reads these columns of `data` as numbers, without the marks.
std::string without_marks(const std::vector<std::string>& columns);

}  // namespace starfold
