// The folder in which a run over nodes keeps what it needs to go on: a few kilobytes, replaced before every request.
#pragma once

#include <optional>
#include <string>

#include "starfold/node/disk.h"
#include "starfold/tensor/bytes.h"

namespace starfold {

class Checkpoint {
 public:
  // Makes the folder and locks it. RunError when another run uses it or it cannot be made.
  explicit Checkpoint(std::string folder);

  // What was written last; none when no run is unfinished here. RunError when it is damaged.
  std::optional<Bytes> read() const;
  // Lasting when it returns. RunError when it cannot be written.
  void write(const Bytes& state) const;
  // Keeps the state of an unfinished run under another name: a new run begins.
  void put_aside() const;
  // The run has ended: there is nothing to go on with. Removes the folder if nothing else is in it.
  void finish();

 private:
  std::string file() const { return folder_ + "/checkpoint"; }

  std::string folder_;
  Descriptor lock_;
};

}  // namespace starfold
