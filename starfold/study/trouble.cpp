#include "starfold/study/trouble.h"

#include <new>
#include <system_error>

#include "starfold/base/error.h"
#include "starfold/study/study.h"

namespace starfold {

Trouble current_trouble() {
  try {
    throw;
  } catch (const StudyError& error) {
    return {Trouble::Kind::usage, error.what(), {}};
  } catch (const RunError& error) {
    return {Trouble::Kind::failed, error.what(), error.where()};
  } catch (const std::bad_alloc&) {
    return {Trouble::Kind::failed, "out of memory", {}};
  } catch (const std::system_error& error) {
    return {Trouble::Kind::failed, error.what(), {}};
  } catch (const std::exception& error) {
    return {Trouble::Kind::bug, error.what(), {}};
  }
}

}  // namespace starfold
