#pragma once

#include <map>
#include <optional>
#include <vector>

#include "plan/assign.h"
#include "plan/transform.h"
#include "program/program.h"

namespace partita {

/// The bodies of a stage: once before the loop, per micro-batch forward and backward, once after the loop.
enum class Segment : uint8_t { kPrologue, kForward, kBackward, kEpilogue };
inline constexpr int kSegments = 4;

/// A value of a stage: one tensor in one layout, the same on all ranks of the stage up to their coordinates.
/// Without a tensor: one float64, a sum of squares.
struct Value {
  TensorId tensor = {};
  Layout layout;
  Segment made = Segment::kPrologue;
  bool loaded = false;        // there before the step starts
  bool lasting = false;       // loaded and kept from step to step: parameters, states, buffers, constants
  bool accumulator = false;   // complete only after the loop
  int state = -1;             // loaded optimizer state of the tensor
  int storage = -1;           // the value whose storage it shares; itself where it has its own
  std::optional<DType> as;    // a copy in another dtype than the tensor's
  int loop = -1, piece = -1;  // inside a LoopRule's loop: which, and which piece
};

/// One instruction of a stage, before coordinates are filled in.
struct CodeStep {
  InstrKind kind = InstrKind::kCompute;
  OpId op;
  std::vector<int> in, out;  // values; -1 for an output PyTorch leaves out
  std::vector<int> axes;  // collectives: the mesh axes of the group; kMove to an addend: the axis it depends
                          // on; kSquares: axes of which one rank alone counts
  bool everyone = false;  // kAllReduce: over all ranks of all stages
  int dim = -1, leaf = -1;  // kAllGather, kReduceScatter, kSlice
};

/// A value that travels to the same coordinates of another stage.
struct Transfer {
  int from_stage = 0, to_stage = 0;
  int from_value = 0, to_value = 0;
  Segment after = Segment::kForward, before = Segment::kForward;
};

/// Everything one stage runs, in layouts rather than boxes.
struct StageCode {
  size_t time = 0;  // the axis of micro-batches
  std::vector<Value> values;
  std::vector<CodeStep> segments[kSegments];
  std::vector<std::pair<int, TensorId>> gradients;  // value, parameter
  std::vector<int> parameters;                      // values after the update
  std::vector<std::pair<int, TensorId>> buffers;    // value, buffer
  int loss = -1;
};

struct Code {
  std::vector<StageCode> stages;
  std::vector<Transfer> transfers;
};

/// Writes the code of all stages: every op where it was assigned, every input turned into the layout it needs
/// by the cheapest known conversion, what another stage makes brought over, gradients to where their
/// parameters lie.
Code write_code(const Model& model, const Plan& plan, const Transformed& transformed,
                const Assigned& assigned);

}  // namespace partita
