#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "certify/algebra/addend.h"
#include "layout/atoms.h"
#include "model/row.h"
#include "program/fold.h"
#include "program/program.h"

namespace partita::certify {

/// What a value on a rank IS, in terms of the Model: this box of this tensor, complete or some addends of it.
/// Zeros belong to no tensor. `version` 1: after the optimizer. `state` >= 0: that optimizer state of the
/// tensor, or its master copy. A sum of squares belongs to no tensor either, but to parts of gradients.
struct Meaning {
  TensorId tensor;
  SpanBox box;
  int32_t version = 0, state = -1;
  Addend addend;
  std::optional<DType> as;  // a copy in this dtype, not the tensor's own
  bool scaled = false;      // the gradient of the loss, times the loss scale
  bool clipped = false;     // a gradient after kClip
  std::vector<std::pair<TensorId, SpanBox>> squares;
  bool operator==(const Meaning&) const = default;
};
std::string to_text(const Meaning& meaning, const Model& model, const Atoms& atoms);

using Known = std::shared_ptr<const Meaning>;
inline Known known(Meaning meaning) { return std::make_shared<const Meaning>(std::move(meaning)); }

/// What the certificate knows of the Model's ops, looked up once.
struct OpRule {
  std::vector<TensorId> in;
  OpView whole;
  bool view = false;
  bool overlapping = false;  // a view several of whose elements are one place in memory, whatever its piece
  bool reads_apart = false;  // some output reads only some of the inputs
};
class Rules {
 public:
  Rules(const Model& model, const Atoms& atoms);
  const OpRule& operator[](OpId id) const { return rules_[id.value]; }
  /// Is it dense, and do its dimensions lie in memory in the order of the tensor's?
  bool lies_as(TensorId tensor, const TensorType& type) const;

  const Model& model;
  const Atoms& atoms;

 private:
  std::vector<OpRule> rules_;
  std::vector<std::vector<size_t>> orders_;  // by tensor: its dimensions as they lie in memory
};

/// One operand of an op on a rank.
struct Operand {
  const Meaning* meaning = nullptr;
  const TensorType* type = nullptr;
  Slot slot;
};

/// What the op's outputs mean when it is called on these operands (in the order of inputs_of) and makes
/// outputs of these types (null: not made). Refused where the operands are not what the op's row needs:
/// - each is the tensor the op reads, and all agree on the interval of every loop they share;
/// - a loop that is cut may be cut (not frozen); where an output lacks it, the output holds that addend;
/// - partial sums and zeros come in only through one jointly linear set, whose other members may be anything.
/// Example: mm(x[0:4, 2:6], w[2:6, 0:8]) of k = 8 means the whole product, addend 2:6 of k.
std::vector<Meaning> apply(const Rules& rules, OpId op, const std::vector<Operand>& in,
                           const std::vector<const TensorType*>& out);

/// Refused unless the instruction calls the op with exactly the attributes its row gives for these local
/// shapes. `operands`: for each input of the op, in order, which input of the instruction it is.
void check_call(const Rules& rules, const Instr& instr, const std::vector<int>& operands,
                const std::vector<Operand>& in, const std::vector<const TensorType*>& out);

/// For each input of the op, in order, which input of the instruction it is; Refused where their number
/// differs.
std::vector<int> operands_of(const Rules& rules, const Instr& instr);

/// The value as an addend of what the addition `sum` of the Model makes: itself where it is one already, else
/// the one operand that it is, with zeros for the other. Refused where it is neither.
Meaning as_addend(const Rules& rules, OpId sum, const Meaning& meaning, const TensorType& type);

/// The meaning in one micro-batch of a value that moves with them.
Meaning in_microbatch(Meaning meaning, int32_t microbatch);
bool moves_in_time(const Meaning& meaning);

/// Combine meanings along a cut. Refused with the reason.
Meaning sum_of(const Rules& rules, const std::vector<const Meaning*>& members);
Meaning joined(const Rules& rules, const std::vector<const Meaning*>& members, const Cut& cut,
               const std::vector<int64_t>& pieces);
/// The same of the ranks of one class with these coordinates on a mesh axis, which bring equal pieces.
Meaning sum_along(const Rules& rules, const Meaning& meaning, int axis, const Interval& coordinates);
Meaning joined_along(const Rules& rules, const Meaning& meaning, const Cut& cut, int axis,
                     const Interval& coordinates);
Meaning cut_out(const Rules& rules, const Meaning& whole, const Cut& cut, const Offset& begin,
                int64_t length);

/// The leaf a cut names. Refused unless it exists in the value and outer and inner are the sizes around it.
const Span& leaf_of(const Rules& rules, const Meaning& meaning, const Cut& cut);

/// Zeros belong to no tensor, so their types alone say what they become: Refused unless `out` is `in` with
/// the dimension that is cut grown to all pieces.
void check_join(const Instr& instr, const TensorType& in, const TensorType& out);

/// Refused unless `type` is that of a value with this meaning: local shape, stride order and its dtype; one
/// float64 for a sum of squares.
void check_type(const Rules& rules, const Meaning& meaning, const TensorType& type);

}  // namespace partita::certify
