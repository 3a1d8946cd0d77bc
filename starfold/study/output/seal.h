// How Starfold knows what it has written: only that may be overwritten. run.json holds the hashes of the files
// beside it and, as `seal`, its own; a page ends with its own.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace starfold {

// SHA-256 of each file's content, by name.
std::map<std::string, std::string> hashes_of(const std::map<std::string, std::string>& files);

// The text of run.json: adds the hashes of the other files and the seal.
std::string sealed_record(nlohmann::json record, const std::map<std::string, std::string>& hashes);

// The name of something in a folder that is no earlier result, or not as it was written; empty when there is none.
std::string stranger_in(const std::filesystem::path& folder);

// Whether a folder holds only files that are named like results.
bool only_result_files(const std::filesystem::path& folder);

// Writes a page to a file that is new, empty, or holds a page as it was written before. RunError otherwise.
// Devices and pipes are simply written to.
void write_page(const std::string& path, const std::string& html);

}  // namespace starfold
