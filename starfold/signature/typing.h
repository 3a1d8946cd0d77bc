// Typing rules that many primitives share, and the messages they fail with.
#pragma once

#include "starfold/signature/op.h"

namespace starfold::typing {

// The type of the only operand, unchanged (def:typing-unary).
Types unchanged(TypeQuery& query);
// The one broadcasting rule over all operands (def:typing-binary-elementwise and its extension).
Types broadcasting(TypeQuery& query);
// All operands shared, element-wise by broadcasting (distribution functions).
Types shared_broadcasting(TypeQuery& query);

// --- pieces for the rules of single primitives

// The type of all operands broadcast together, from operand `first` on.
std::optional<Type> broadcast_args(TypeQuery& query, std::size_t first = 0);
// Reports why two operands do not broadcast.
std::nullopt_t fail_broadcast(TypeQuery& query, std::size_t i, std::size_t j,
                              const Broadcast& result);
// Reports the first federated operand of a shared-only primitive; false when there is one.
bool require_shared(TypeQuery& query);
// Reports operand i unless its rank is right; `what` says what is needed ("a matrix").
bool require_rank(TypeQuery& query, std::size_t i, std::size_t rank, std::string_view what);
// Reports operand i unless it is a shared scalar.
bool require_shared_scalar(TypeQuery& query, std::size_t i, std::string_view what);
// Reports unless two sizes are equal; `what` names the mismatch.
bool require_equal(TypeQuery& query, const Dim& a, const Dim& b, std::string_view what);
// The written axes of operand i, counted from 0, in the order written, distinct; reports and returns
// nullopt on an axis that is not there.
std::optional<std::vector<std::size_t>> resolve_axes(TypeQuery& query, std::size_t i = 0);
// The only written axis; it must not be the record axis. `verb` completes "cannot ... the record axis".
std::optional<std::size_t> ordinary_axis(TypeQuery& query, Code along_star, std::string_view verb,
                                         std::size_t i = 0);

// "`x` is [*, p]" for messages.
std::string describe(const TypeQuery& query, std::size_t i);
// What folds a value into a single number, as one would write it: `mean[*,2](x)`, `max(v)`.
std::string fold_to_number(const Type& type, const std::string& text);
// The operand as written, in parentheses where something is to follow it: `(a + b)'`.
std::string atom(const TypeQuery& query, std::size_t i);
// Operand i with new axes that let it broadcast with operand j, as one would write it: `y[:, new]`;
// empty when there is no such way.
std::string with_new_axes(const TypeQuery& query, std::size_t i, std::size_t j);
// Labels that say where the sizes in a clash come from.
std::vector<Label> origins(const TypeQuery& query, const Dim& a, const Dim& b);

}  // namespace starfold::typing
