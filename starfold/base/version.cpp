#include "starfold/base/version.h"

namespace starfold {

std::string_view version() { return STARFOLD_VERSION; }

}  // namespace starfold
