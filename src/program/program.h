#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layout/box.h"
#include "model/model.h"
#include "model/optimizer.h"

namespace partita::program {

using BodyId = Id<struct BodyTag>;
using TypeId = Id<struct TypeTag>;

/// How something moves with a rank's coordinate on each of the first mesh axes, where one rank stands for
/// many (fold.h), and with the micro-batch; zeros in a Program of all ranks.
inline constexpr int kFoldAxes = 4;
inline constexpr int kTime = kFoldAxes;
using Steps = std::array<int64_t, kFoldAxes + 1>;

/// Where a value lives on a rank. `kRank`: for the whole step (parameters, gradients, accumulators).
/// `kFrame`: once per micro-batch (what forward leaves for backward, what arrives from another stage).
/// `kLocal`: inside one body.
enum class Space : uint8_t { kRank, kFrame, kLocal };

struct Slot {
  Space space = Space::kLocal;
  int32_t index = -1;
  auto operator<=>(const Slot&) const = default;
};

/// Shape, stride order and dtype of a local tensor. Compact: strides are those of a dense tensor.
struct TensorType {
  Shape shape;
  Shape strides;
  DType dtype = DType::kFloat32;
  bool operator==(const TensorType&) const = default;
};
Bytes bytes_of(const TensorType& type);

/// Where pieces sit inside a dimension: dimension `dim` read as (outer, length, inner), pieces along
/// `length`, which is leaf `leaf` of the dimension; outer and inner are the local sizes of the leaves around
/// it. Example: heads of a fused qkv of shape [n, 3*4*32]: dim 1, leaf 1, outer 3, inner 32, length 4.
struct Cut {
  int32_t dim = 0, leaf = 0;
  int64_t outer = 1, inner = 1;
  bool operator==(const Cut&) const = default;
};

enum class InstrKind : uint8_t {
  kCompute,        // call ATen: out = op(in), attributes already local
  kAllReduce,      // in[0] becomes the sum over the group, in place; out[0] names the same storage
  kAllGather,      // out[0] = members' in[0] joined along `cut` in GROUP ORDER, lengths given by `pieces`
  kReduceScatter,  // out[0] = piece `position in group` of the sum of the members' in[0] along `cut`
  kAllToAll,       // out[0] = the members' in[0] joined as by kAllGather, and of that the share `position in
                   // group` along `scatter`: only shares travel, the whole is never made
  kSlice,          // out[0] = dense copy of [begin, begin + length) of in[0] along `cut`
  kConcat,         // out[0] = in joined along `cut` in order, lengths given by `pieces`
  kZeros,          // out[0] = zeros
  kAdd,            // in[0] += in[1] in place; out[0] names the storage of in[0]
  kMove,           // out[0] names the storage of in[0] too
  kCast,           // out[0] = copy of in[0] in another dtype
  kScale,          // in[0] *= the loss scale of this step, in place; out[0] names the storage of in[0]
  kSquares,        // in[0], one float64, += the sum of the squares of in[1], in place; out[0] names it
  kClip,      // in[0], a gradient, *= what the sum of all squares in[1] asks for, in place: the loss scale
              // taken out, the norm clipped; out[0] names the storage of in[0]
  kOptimize,  // in = parameter, gradient, states..., master copy (where has_master), sum of the squares of
              // all gradients (where needs_norm); the parameter is updated in place; out[0] names it
  kWait       // stands still until the collective that was started (`later`) with out[0] == in[0] is over
};

/// One instruction of a body. Names in `drop` (inputs, or outputs nobody reads) die after it; a storage goes
/// when its last name goes. Instructions in place (words.h) may have out[0] == in[0]: the slot then holds the
/// new value.
struct Instr {
  InstrKind kind = InstrKind::kCompute;
  OpId op;                    // kCompute: the op of the Model it is a piece of
  std::vector<Slot> in, out;  // an output PyTorch leaves out has index -1
  std::vector<TypeId> types;  // of `out`
  std::vector<Arg> args;      // kCompute: local arguments; tensors are indices into `in`
  std::vector<std::pair<std::string, Arg>> kwargs;
  int32_t group = -1;  // collectives: index into the rank's groups
  // Collectives: started here and under way until the rank's next kWait for out[0], in this body or a later
  // one. Until then in[0] may be read but not changed or dropped, and out[0] is not there; what dies with it,
  // the kWait drops.
  bool later = false;
  Cut cut;
  std::vector<int64_t> pieces;  // kAllGather, kReduceScatter, kConcat, kAllToAll: length of each piece
  // kAllToAll: the cut of the shares and their lengths, in the whole that `cut` joins. Example: two members
  // hold rows [0, 3) and [3, 5) of a [5, 4]; with cut 0, pieces {3, 2}, scatter 1, shares {2, 2} they then
  // hold columns [0, 2) and [2, 4) of it.
  Cut scatter;
  std::vector<int64_t> shares;
  int64_t begin = 0, length = 0;  // kSlice
  Steps steps = {};               // kSlice: of `begin`
  bool view = false;              // kCompute: out[i] shares the storage of in[0]; nothing is allocated
  int32_t into = -1;     // kCompute: the result is added to in[into], in place; out[0] names its storage
  int32_t settings = 0;  // kOptimize: which numbers of the optimizer (settings_of)
  OpId sum;  // kCompute with `into`, kAdd: the addition of the Model that this is; none where both
             // sides are addends of one tensor
  std::vector<Slot> drop;

  bool operator==(const Instr&) const = default;
};

/// Inputs of a kCompute that its arguments name, in order.
std::vector<int32_t> operands_of(const Instr& instr);

/// Which part of a step a body is: once before all micro-batches, in each of them, once after them. Backward
/// may leave weight gradients, which no other stage waits for, to a part of their own.
enum class BodyPart : uint8_t { kPrologue, kForward, kBackward, kWeight, kEpilogue };

/// Straight-line code for one segment and one class of shapes; ranks and micro-batches share it.
struct Body {
  std::string name;  // "stage0.forward": for people, who also name their own
  std::vector<Instr> instrs;
  int32_t locals = 0;
  std::optional<BodyPart> part = {};  // none: not made by lowering
  int32_t stage = 0, stream = 0;      // of a part: `stream` counts the directions of micro-batches
  bool operator==(const Body&) const = default;
};
/// Does it run for every micro-batch?
inline bool in_loop(BodyPart part) { return part != BodyPart::kPrologue && part != BodyPart::kEpilogue; }

enum class ActionKind : uint8_t { kRun, kSend, kPostReceive, kWaitReceive, kWaitSend, kFree };

/// One step of a rank. kSend starts a copy of `slot` to `peer` and does not wait; kPostReceive allocates
/// `slot` (of `type`) and lets the copy come; the k-th send to a peer with a tag meets the k-th receive with
/// it.
struct Action {
  ActionKind kind = ActionKind::kRun;
  BodyId body;             // kRun
  int32_t microbatch = 0;  // the frame of every kFrame slot of this action
  Slot slot;               // the others
  TypeId type;             // kPostReceive
  int32_t peer = -1, tag = 0;
  bool operator==(const Action&) const = default;
};

/// Before the step starts, `slot` (kRank, or kFrame of `microbatch`: a batch input) holds this box of this
/// tensor, sliced from the global value, dense. `state` >= 0: optimizer state number `state` of the tensor,
/// zeros before the first step; the number after the last: its master copy, the tensor's own value before it.
struct Load {
  Slot slot;
  int32_t microbatch = 0;
  TensorId tensor;
  Box box;
  TypeId type;
  int32_t state = -1;
  bool operator==(const Load&) const = default;
};

/// After the step `slot` holds this box of: the loss, a gradient, an updated parameter or buffer.
struct Result {
  enum Kind : uint8_t { kLoss, kGradient, kParameter, kBuffer };
  Kind kind = kLoss;
  Slot slot;
  TensorId tensor;  // kGradient: the gradient; kParameter: the parameter; kBuffer: the buffer
  Box box;
  bool operator==(const Result&) const = default;
};

struct RankProgram {
  std::vector<Action> actions;
  std::vector<std::vector<int32_t>> groups;  // ordered ranks, this rank among them
  std::vector<Load> loads;
  std::vector<Result> results;
  int32_t rank_slots = 0, frame_slots = 0;
  bool operator==(const RankProgram&) const = default;
};

/// What each rank executes. The object verified, the object simulated and the object executed are the same
/// object.
struct Program {
  std::vector<TensorType> types;
  std::vector<Body> bodies;
  std::vector<RankProgram> ranks;
  int32_t microbatches = 1;
  OptimizerSpec optimizer;
  bool operator==(const Program&) const = default;

  const TensorType& operator[](TypeId id) const { return types[id.value]; }
  const Body& operator[](BodyId id) const { return bodies[id.value]; }
};

/// The versioned file format of docs/formats/program.md.
std::string to_json(const Program& program, const Model& model);
Program parse_program(std::string_view text, const Model& model, std::string_view where);

/// For people: each body once, then each rank's actions.
std::string to_text(const Program& program, const Model& model);

}  // namespace partita::program
