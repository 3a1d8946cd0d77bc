// Tensor types: Sh(s) and Fed_r(d) as one shape with at most one star (def:tensor-types).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "starfold/types/size.h"

namespace starfold {

// One axis: an ordinary size, or the star of a record set ("" for the bare star).
struct Dim {
  bool star = false;
  std::string record_set;
  Size size;

  static Dim of(Size size) { return {false, {}, std::move(size)}; }
  static Dim record(std::string set = {}) { return {true, std::move(set), {}}; }
  bool is_one() const { return !star && size.is_one(); }
  std::string to_string() const;
  friend bool operator==(const Dim&, const Dim&) = default;
};

// The symbolic shape of a type (def:symbolic-shape); shared when no axis is a star.
struct Type {
  std::vector<Dim> dims;

  static Type scalar() { return {}; }
  static Type shared(std::vector<Size> sizes);

  std::size_t rank() const { return dims.size(); }
  bool is_scalar() const { return dims.empty(); }
  // The record axis r, counted from 0; nullopt for shared types.
  std::optional<std::size_t> record_axis() const;
  bool federated() const { return record_axis().has_value(); }
  // The record set of a federated type.
  const std::string& record_set() const { return dims[*record_axis()].record_set; }

  std::string to_string() const;
  friend bool operator==(const Type&, const Type&) = default;
};

// del_j(T) of def:delete-nonrecord-axis, and Sh(d) when j is the record axis; j counts from 0.
Type without_axis(const Type& type, std::size_t axis);
Type with_axis(const Type& type, std::size_t axis, Dim dim);

// Why two axes do not fit together.
enum class Clash { none, sizes, star_against_size, record_sets, two_stars };

// The result of the one broadcasting rule, or where and why it fails.
struct Broadcast {
  Clash clash = Clash::none;
  Type type;             // when there is no clash
  std::size_t axis = 0;  // of the result, counted from 0, where the clash is
};

// Aligns right, pads with 1; per axis equal sizes match, 1 stretches, a star matches the star of
// its own record set or 1; at most one star in the result.
Broadcast broadcast(const Type& a, const Type& b);

// The cases of def:typing-binary-elementwise, where no federated operand stretches.
bool broadcast_is_base(const Type& a, const Type& b);

}  // namespace starfold
