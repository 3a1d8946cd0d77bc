// Reading files that people write in TOML: every mistake is told with its file and line. TOML++ is slow to compile, so
// that only readers of such files include this.
#pragma once

#include <toml++/toml.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace starfold {

// What TOML says; UsageError where it is none, or its keys nest too deep.
toml::table parse_toml(std::string_view text, const std::string& file);

// The kind of a value, for people: "a string".
const char* type_name(const toml::node& node);

// The values of one file. All functions throw UsageError, with the place, where a value is not what it must be; `name` is what
// the value is called in the message.
class TomlReader {
 public:
  // `whole` is what the file is: "a study".
  TomlReader(std::string file, std::string whole);

  [[noreturn]] void fail(const toml::node& at, const std::string& message) const;
  // Every key must be one of these. `where` is the name of the section; empty: the file itself.
  void only(const toml::table& table, const std::string& where,
            const std::vector<std::string>& keys) const;

  const toml::table& table(const toml::node& node, const std::string& name) const;
  std::string string(const toml::node& node, const std::string& name) const;
  // One of these words.
  std::string word(const toml::node& node, const std::string& name,
                   const std::vector<std::string>& words) const;
  // At least one string, none twice.
  std::vector<std::string> strings(const toml::node& node, const std::string& name) const;
  bool boolean(const toml::node& node, const std::string& name) const;
  std::int64_t integer(const toml::node& node, const std::string& name, std::int64_t least) const;
  // A finite number, written with or without a point.
  double number(const toml::node& node, const std::string& name) const;

  // A path as it was written, relative to the file.
  std::string path(const std::string& written) const;

  const std::string& file() const { return file_; }
  // Where the file is; empty: where we run.
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::string file_;
  std::string whole_;
  std::filesystem::path folder_;
};

}  // namespace starfold
