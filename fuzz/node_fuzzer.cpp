// Any bytes as a node's file, and as lines of its ledger: what they say, or a message that says what is wrong with them.
#include <cstdint>
#include <cstdlib>

#include "starfold/base/usage_error.h"
#include "starfold/node/config.h"
#include "starfold/node/ledger/ledger.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const starfold::NodeConfig config = starfold::parse_node_config(text, "fuzz/NODE.toml", false);
    starfold::canonical(config.policy);
  } catch (const starfold::UsageError&) {
  }
  starfold::LedgerChain chain;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view one = text.substr(begin, end - begin);
    starfold::LedgerLine line;
    chain.add(one, line);
    // What was read once is written so that it can be read again.
    if (const auto parsed = starfold::parse_line(one)) {
      const auto again = starfold::parse_line(starfold::format_line(*parsed));
      if (!again || starfold::format_line(*again) != starfold::format_line(*parsed)) std::abort();
    }
    begin = end + 1;
  }
  return 0;
}
