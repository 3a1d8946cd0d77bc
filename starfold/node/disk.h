// Files of a node: opened without surprises, written so that they survive the end of the machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace starfold {

// An open file, closed at the end of a scope.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_;
};

// Why the last call of the system failed, as the words after "cannot be ...:".
std::string system_reason();

// Opens an existing regular file for reading; none where there is no such file. RunError where there is something else. Never
// waits, as opening a pipe would.
Descriptor open_regular(const std::string& path);

// The whole of a regular file; RunError when it has more than `most` bytes or cannot be read.
std::string read_regular(const std::string& path, std::size_t most);

// Writes all bytes at the end of what `file` is set to; false with errno set when that fails.
bool write_all(int file, std::string_view bytes);

// Makes what was created, renamed or removed in a folder last. RunError when that cannot be done.
void sync_folder(const std::string& folder);

// Puts a file of these bytes into place, for its owner alone: all or nothing, and lasting. RunError when that cannot be done.
void write_lasting(const std::string& path, std::string_view bytes);

// Makes a folder for its owner alone, unless it is there. RunError when it is something else.
void make_private_folder(const std::string& path);

}  // namespace starfold
