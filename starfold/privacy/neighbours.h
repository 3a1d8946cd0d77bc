// What neighbouring data may differ in, and what has to be known for it.
#pragma once

#include "starfold/privacy/terms.h"

namespace starfold::privacy {

// Whether a promise holds only where every record counts, whatever it holds: a record that another replaces must not be left out for
// a missing value, or by a query.
inline bool counts_records_as_known(const Promise& promise) {
  return promise.unit == Unit::record && promise.neighbours == Neighbours::replace;
}

}  // namespace starfold::privacy
