// The standard library as files, so that an editor can open what a program calls.
#pragma once

#include <string>

namespace starfold::editor {

// A folder of the user's cache for files of this version; empty when there is no such place.
std::string library_folder();

// The path of a module that comes with Starfold ("lib/stats.fold"), written into the folder if it is not there; empty when
// there is no such module or it cannot be written.
std::string library_file(const std::string& folder, const std::string& name);

}  // namespace starfold::editor
