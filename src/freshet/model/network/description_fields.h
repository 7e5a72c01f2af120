#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "model/network/layer.h"

namespace freshet::model::network::text {

// How the fields of a layer are called in text: shared by reading and writing, nobody else's business.

using Member =
    std::variant<std::monostate, bool Layer::*, std::int64_t Layer::*, double Layer::*, Pair Layer::*, Shape Layer::*>;

struct Field {
  std::string_view key;
  Member member;
};

// The keys of one operation. `main` is the value of the key that names it ({dense = 500}: outputs); without one that
// value is true, or for concat, sum and product the list of what they join.
struct Form {
  Op op;
  Member main;
  bool main_has_default;  // true may stand for it
  std::span<const Field> fields;
};

// Of every operation but the input, in the order of Op.
std::span<const Form> Forms();
const Form& FormOf(Op op);

inline bool Joins(Op op) { return op == Op::kConcat || op == Op::kSum || op == Op::kProduct; }
// May it be written as another layer's activation?
inline bool IsActivation(Op op) {
  return op == Op::kRelu || op == Op::kTanh || op == Op::kSigmoid || op == Op::kSoftmax || op == Op::kHardSwish ||
         op == Op::kGelu;
}
inline bool IsPool(Op op) { return op == Op::kMaxPool || op == Op::kAveragePool; }

}  // namespace freshet::model::network::text
