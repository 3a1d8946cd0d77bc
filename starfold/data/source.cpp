#include "starfold/data/source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "starfold/base/error.h"
#include "starfold/base/suggest.h"
#include "starfold/data/npy.h"

namespace starfold {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> federated_inputs(const ir::Program& program) {
  std::vector<std::string> names;
  for (const ir::Input& input : program.inputs) {
    if (input.type.federated()) names.push_back(input.name);
  }
  return names;
}

DataSource read_folder(const std::string& path) {
  DataSource source;
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    if (entry.path().extension() == ".npy") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    source.order.push_back(file.stem().string());
    source.arrays.emplace(source.order.back(), read_npy(file.string()));
  }
  return source;
}

// Columns side by side, as the input's type has them: records along its star.
Tensor stack_columns(const ir::Input& input, const std::string& client, const DataSource& source, const std::vector<std::string>& columns) {
  std::vector<const Tensor*> parts;
  for (const std::string& name : columns) {
    const auto found = source.arrays.find(name);
    if (found == source.arrays.end()) {
      const std::string suggestion = nearest(name, source.order);
      throw RunError(fmt::format("client {} has no column {} for input {}{}", client, name, input.name,
                                 suggestion.empty() ? fmt::format("; it has {}", fmt::join(source.order, ", "))
                                                    : fmt::format("; did you mean {}?", suggestion)));
    }
    if (found->second.rank() != 1) {
      throw RunError(fmt::format("client {}: {} has {} axes and is no column for input {}", client, name, found->second.rank(), input.name));
    }
    if (!parts.empty() && found->second.count() != parts.front()->count()) {
      throw RunError(fmt::format("client {}: columns {} and {} of input {} have {} and {} records", client, columns.front(), name,
                                 input.name, parts.front()->count(), found->second.count()));
    }
    parts.push_back(&found->second);
  }
  if (input.type.rank() == 1) {
    if (parts.size() == 1) return *parts.front();
    throw RunError(fmt::format("input {} is {} and takes one column, not {}", input.name, input.type.to_string(), parts.size()));
  }
  if (input.type.rank() != 2) {
    throw RunError(fmt::format("input {} is {} and cannot be bound to columns; give it an array of its name", input.name, input.type.to_string()));
  }
  if (parts.empty()) throw RunError(fmt::format("client {}: no column is left for input {}", client, input.name));
  const std::int64_t records = parts.front()->count();
  const auto width = static_cast<std::int64_t>(parts.size());
  const bool star_first = *input.type.record_axis() == 0;
  Tensor matrix(star_first ? Shape{records, width} : Shape{width, records});
  for (std::int64_t c = 0; c < width; ++c) {
    for (std::int64_t r = 0; r < records; ++r) {
      const std::int64_t at = star_first ? r * width + c : c * records + r;
      matrix.data[static_cast<std::size_t>(at)] = parts[static_cast<std::size_t>(c)]->data[static_cast<std::size_t>(r)];
    }
  }
  return matrix;
}

// The columns that no input takes by name or binding.
std::vector<std::string> remaining_columns(const ir::Program& program, const DataSource& source, const ColumnBindings& bindings) {
  std::set<std::string> taken;
  for (const auto& [input, choice] : bindings) taken.insert(choice.columns.begin(), choice.columns.end());
  for (const std::string& name : federated_inputs(program)) {
    if (bindings.count(name) == 0) taken.insert(name);
  }
  std::vector<std::string> rest;
  for (const std::string& name : source.order) {
    if (taken.count(name) == 0 && source.arrays.at(name).rank() == 1) rest.push_back(name);
  }
  return rest;
}

}  // namespace

DataSource read_source(const ir::Program& program, const std::string& client, const std::string& path) {
  try {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) return read_folder(path);
    const std::string extension = fs::path(path).extension().string();
    if (extension == ".npz") {
      DataSource source;
      source.arrays = read_npz(path);
      for (const auto& [name, array] : source.arrays) source.order.push_back(name);
      return source;
    }
    if (extension == ".npy") {
      const std::vector<std::string> inputs = federated_inputs(program);
      if (inputs.size() != 1) {
        throw RunError(fmt::format("{} holds one array, but the program has {} federated inputs; use .npz or a folder of .npy files",
                                   path, inputs.size()));
      }
      return {{{inputs.front(), read_npy(path)}}, inputs};
    }
    throw RunError(fmt::format("{}: files of this kind cannot be read; use .npz, .npy or a folder of .npy files", path));
  } catch (const RunError& error) {
    throw RunError(fmt::format("client {}: {}", client, error.what()));
  }
}

Client bind_source(const ir::Program& program, const std::string& client, const DataSource& source, const ColumnBindings& bindings) {
  const std::vector<std::string> inputs = federated_inputs(program);
  for (const auto& [name, choice] : bindings) {
    if (std::find(inputs.begin(), inputs.end(), name) != inputs.end()) continue;
    const std::string suggestion = nearest(name, inputs);
    throw RunError(fmt::format("the program has no federated input {} to bind{}", name,
                               suggestion.empty() ? "" : fmt::format("; did you mean {}?", suggestion)));
  }
  Client result;
  result.name = client;
  for (const ir::Input& input : program.inputs) {
    if (!input.type.federated()) continue;
    const auto choice = bindings.find(input.name);
    if (choice != bindings.end()) {
      const std::vector<std::string> columns =
          choice->second.rest ? remaining_columns(program, source, bindings) : choice->second.columns;
      result.arrays.emplace(input.name, stack_columns(input, client, source, columns));
      continue;
    }
    const auto array = source.arrays.find(input.name);
    if (array == source.arrays.end()) {
      throw RunError(fmt::format("client {} has no array for input {} ({}); it has {}", client, input.name, input.type.to_string(),
                                 source.order.empty() ? "none" : fmt::format("{}", fmt::join(source.order, ", "))));
    }
    result.arrays.emplace(input.name, array->second);
  }
  return result;
}

}  // namespace starfold
