#include "starfold/study/output/trouble.h"

#include <new>
#include <system_error>

#include "starfold/base/error.h"
#include "starfold/federation/remote.h"
#include "starfold/secure/masked_states.h"
#include "starfold/study/study.h"

namespace starfold {

Trouble current_trouble() {
  try {
    throw;
  } catch (const StudyError& error) {
    return {Trouble::Kind::usage, error.what(), {}};
  } catch (const ClientRefused& refused) {
    const std::string rule(rule_of(refused.reason()));
    return {rule.empty() ? Trouble::Kind::failed : Trouble::Kind::refused,
            refused.what(),
            {},
            refused.client(),
            rule};
  } catch (const ClientsAway& away) {
    return {Trouble::Kind::failed,
            std::string(away.what()) + "; the run can be gone on with: add --resume",
            {}};
  } catch (const privacy::NotPrivate& error) {
    return {Trouble::Kind::refused, error.what(), error.where(), {}, {}, error.help()};
  } catch (const secure::NotMaskable& error) {
    return {Trouble::Kind::refused, error.what(), error.where()};
  } catch (const RunError& error) {
    return {Trouble::Kind::failed, error.what(), error.where()};
  } catch (const std::bad_alloc&) {
    return {Trouble::Kind::failed, "out of memory", {}};
  } catch (const std::system_error& error) {
    // What starting a thread says when there may be no more of them.
    if (error.code() == std::errc::resource_unavailable_try_again)
      return {Trouble::Kind::failed, "no more threads can be started here; try --threads 1", {}};
    return {Trouble::Kind::failed, error.what(), {}};
  } catch (const std::exception& error) {
    return {Trouble::Kind::bug, error.what(), {}};
  } catch (...) {
    return {Trouble::Kind::bug, "an exception of an unknown kind", {}};
  }
}

}  // namespace starfold
