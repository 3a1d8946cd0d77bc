#include "starfold/ops/standard.h"

#include <iterator>

namespace starfold {

const Signature& standard_signature() {
  static const Signature signature = [] {
    std::vector<Op> rows;
    for (const auto& family :
         {unary_ops, binary_ops, aggregation_ops, structure_ops, client_local_ops,
          linear_algebra_ops, construction_ops, distribution_ops, differentiation_ops}) {
      std::vector<Op> own = family();
      rows.insert(rows.end(), std::make_move_iterator(own.begin()),
                  std::make_move_iterator(own.end()));
    }
    for (Op& row : rows) row.standard = true;
    return Signature(std::move(rows));
  }();
  return signature;
}

}  // namespace starfold
