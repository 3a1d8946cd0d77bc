#include "starfold/plan/order.h"

namespace starfold {
namespace {

// The rounds that a run may stand before or behind, walking a block from its beginning.
class Walk {
 public:
  explicit Walk(RoundOrder& order) : order_(order) {}

  // From these rounds into the block: those it may end behind. `at_start`: nothing may have run yet, too.
  struct Places {
    std::set<int> behind;
    bool at_start = false;
  };
  Places through(const Block& block, Places from) {
    for (const Step& step : block.steps) {
      if (const auto* round = std::get_if<Round>(&step.action)) {
        enter(round->number, from);
        from = {{round->number}, false};
      } else {
        from = around(std::get<LoopStep>(step.action).body.front(), std::move(from));
      }
    }
    return from;
  }

 private:
  void enter(int round, const Places& from) {
    if (from.at_start) order_.first.insert(round);
    for (const int before : from.behind)
      order_.after[static_cast<std::size_t>(before)].insert(round);
  }
  // A loop may be left before its first iteration or after any.
  Places around(const Block& body, Places from) {
    const Places once = through(body, from);
    from.behind.insert(once.behind.begin(), once.behind.end());
    through(body, from);
    return from;
  }

  RoundOrder& order_;
};

}  // namespace

RoundOrder round_order(const Plan& plan) {
  RoundOrder order;
  order.after.resize(static_cast<std::size_t>(plan.rounds));
  Walk(order).through(plan.body, {{}, true});
  return order;
}

}  // namespace starfold
