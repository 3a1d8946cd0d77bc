// Any bytes as an archive of arrays and as an array: arrays within the room that is given, or a message.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "starfold/base/error.h"
#include "starfold/base/utf8.h"
#include "starfold/data/arrays/npy.h"
#include "starfold/tensor/bits.h"

namespace {

constexpr std::int64_t room = 1 << 20;

void check(const starfold::Tensor& array) {
  if (array.count() * 8 > room || starfold::element_count(array.shape) != array.count())
    std::abort();
  // What is written is what is read.
  const starfold::Tensor again =
      starfold::parse_npy(starfold::format_npy(array), "again.npy", room);
  if (!starfold::same_bits(again, array)) std::abort();
}

void check_message(const starfold::RunError& error) {
  const std::string_view message = error.what();
  if (message.size() > 1000 || starfold::printable(message) != message) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    check(starfold::parse_npy(bytes, "fuzz.npy", room));
  } catch (const starfold::RunError& error) {
    check_message(error);
  }
  const int file = memfd_create("fuzz", MFD_CLOEXEC);
  if (file < 0 || write(file, data, size) != static_cast<ssize_t>(size)) std::abort();
  try {
    for (const auto& [name, array] :
         starfold::read_npz(fmt::format("/proc/self/fd/{}", file), room))
      check(array);
  } catch (const starfold::RunError& error) {
    check_message(error);
  }
  close(file);
  return 0;
}
