// Files of data: read from exactly the file that was named, and the same one every time. Private to
// starfold/data.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

namespace starfold {

// What tells one state of a file from another. The time of change is the kernel's own: no program sets it.
struct FileStamp {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t size = 0;
  std::int64_t modified = 0;  // nanoseconds
  std::int64_t changed = 0;
  bool operator==(const FileStamp&) const = default;
};

// An open file, closed at the end of a scope.
class OpenFile {
 public:
  OpenFile(int number, FileStamp stamp, std::string path);
  ~OpenFile();
  OpenFile(OpenFile&& other) noexcept;
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  OpenFile& operator=(OpenFile&&) = delete;

  // Reads up to `size` bytes from `offset` on; 0 at the end. RunError when reading fails.
  std::size_t read_at(std::int64_t offset, char* to, std::size_t size) const;
  // RunError when the file is not what it was when it was first opened.
  void require_unchanged() const;
  // A path to this very file, whatever its name is or becomes: free of patterns and of key=value folders.
  std::string exact_path() const;
  std::int64_t size() const { return stamp_.size; }
  const std::string& path() const { return path_; }

 private:
  int number_;
  FileStamp stamp_;
  std::string path_;
};

// A regular file as it was when it was first named.
class DataFile {
 public:
  // RunError with the reason when there is no such file, it is not a regular one, or it cannot be opened.
  explicit DataFile(std::string path);

  const std::string& path() const { return path_; }
  std::int64_t size() const { return stamp_.size; }
  // Waits until writing to it would show: for who reads it more than once.
  void settle() const;
  // Opens it. RunError when another file stands there now, or this one was written to.
  OpenFile open() const;

 private:
  std::string path_;
  FileStamp stamp_;
};

// All bytes of a file of at most `most`; RunError otherwise.
std::string read_whole(const DataFile& file, std::int64_t most);

}  // namespace starfold
