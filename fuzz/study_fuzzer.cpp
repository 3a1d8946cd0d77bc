// Any bytes as a study file: a study, or a message that says what is wrong with it.
#include <cstdint>

#include "starfold/base/error.h"
#include "starfold/study/study.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    starfold::parse_study(text, "fuzz/study.toml");
  } catch (const starfold::StudyError&) {
  } catch (const starfold::RunError&) {
  }
  return 0;
}
