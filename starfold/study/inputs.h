// The files that a run reads, so that nothing it writes takes the place of one.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "starfold/federation/program.h"
#include "starfold/study/study.h"

namespace starfold {

// The study, its program and modules, the data of its clients, and arrays given as values. What a query names is
// not among them.
std::vector<std::filesystem::path> input_files(const Study& study, const CompiledProgram& program);

// StudyError when a file that is about to be written is one of them.
void require_no_input(const std::string& target, const Study& study,
                      const CompiledProgram& program);

// The input that is this file or lies in this folder, as it was named; empty when there is none.
std::string input_at(const std::filesystem::path& target,
                     const std::vector<std::filesystem::path>& inputs);

}  // namespace starfold
