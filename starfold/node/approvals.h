// Programs that wait for the owner, and what the owner said. Both are files in the node's folder, so that the owner can decide
// while the node runs: it takes up decisions with its next request and writes them into its ledger.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace starfold {

// Something that waits for the owner.
struct PendingStudy {
  std::string agreement;  // the hash that identifies the study: 64 hexadecimal digits
  std::string study;      // its name
  std::string peer;       // who asked
  std::string plan;       // the hash of the plan
  std::string time;       // when, in RFC 3339
  std::string reason;     // why it waits
  std::string exposure;   // what it would send, in words, on several lines
};

struct OwnersDecision {
  std::string agreement;
  bool approved = false;
  std::string time;
};

class Approvals {
 public:
  // Of the node's folder, as prepare_folder makes it.
  explicit Approvals(const std::string& folder);

  // Puts a study before the owner, unless it is there already. False when too many wait: then it must come again. RunError when it
  // cannot be written.
  bool ask(const PendingStudy& study) const;
  // What waits, by time; what cannot be read is left out.
  std::vector<PendingStudy> pending() const;

  // The owner's part: writes a decision down. RunError when it cannot be written.
  void decide(const OwnersDecision& decision) const;
  // What was decided and not yet taken up.
  std::vector<OwnersDecision> decisions() const;
  // Takes a decision from the list, and the study from those that wait: after it is in the ledger. RunError when it cannot be removed.
  void taken_up(const OwnersDecision& decision) const;

 private:
  std::string pending_;
  std::string decided_;
};

}  // namespace starfold
