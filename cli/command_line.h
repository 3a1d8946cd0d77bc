// The command line: subcommands and what they take. CLI11 behind it is slow to compile, so that only
// command_line.cpp sees it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace starfold::cli {

// One subcommand. What its arguments are stored in must live until it has run.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(app) {}

  void required(const char* name, std::string& value, const char* help);
  void required(const char* name, std::vector<std::string>& values, const char* help);
  void optional(const char* name, std::string& value, const char* help);
  void optional(const char* name, std::vector<std::string>& values, const char* help);
  void option(const char* name, std::string& value, const char* help);
  void option(const char* name, std::vector<std::string>& values, const char* help);  // may repeat
  void option(const char* name, int& value, int least, int most, const char* help);
  void choice(const char* name, std::string& value, const std::vector<std::string>& values,
              const char* help);
  void flag(const char* name, bool& value, const char* help);
  // At most one of these may be given.
  void exclusive(const std::vector<std::string>& names);

 private:
  CLI::App& app_;
};

// A subcommand that has subcommands of its own: `starfold node check`.
class CommandGroup {
 public:
  CommandGroup(CLI::App& app, int& status) : app_(app), status_(status) {}
  // As CommandLine::add.
  Command add(const char* name, const char* help, std::function<int()> run);

 private:
  CLI::App& app_;
  int& status_;
};

class CommandLine {
 public:
  CommandLine();
  ~CommandLine();

  // `run` is called when the subcommand is given, and returns the exit code.
  Command add(const char* name, const char* help, std::function<int()> run);
  CommandGroup group(const char* name, const char* help);
  // Does what was asked for; the exit code. Whatever goes wrong has been told.
  int run(int argc, char** argv);

 private:
  std::unique_ptr<CLI::App> app_;
  int status_ = 0;
};

}  // namespace starfold::cli
