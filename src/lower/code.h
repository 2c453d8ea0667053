#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "lower/segment.h"
#include "lower/sites.h"
#include "plan/assign.h"
#include "plan/transform.h"
#include "program/program.h"

namespace partita::lower {

/// A value of a site: one tensor in one layout, the same on all ranks of the site up to their coordinates.
/// Without a tensor: one float64, a sum of squares.
struct Value {
  TensorId tensor = {};
  Layout layout;
  Segment made;
  bool loaded = false;        // there before the step starts
  bool lasting = false;       // loaded and kept from step to step: parameters, states, buffers, constants
  bool accumulator = false;   // complete only after the loop
  int state = -1;             // loaded optimizer state of the tensor
  int storage = -1;           // the value whose storage it shares; itself where it has its own
  std::optional<DType> as;    // a copy in another dtype than the tensor's
  int stream = -1;            // loaded per micro-batch: of those that go in this direction
  int loop = -1, piece = -1;  // inside a LoopRule's loop: which, and which piece
};

/// One instruction of a site, before coordinates are filled in.
struct CodeStep {
  InstrKind kind = InstrKind::kCompute;
  OpId op;
  std::vector<int> in, out;  // values; -1 for an output PyTorch leaves out
  std::vector<int> axes;  // collectives: the mesh axes of the group; kMove to a partial: the axis it depends
                          // on; kSquares: axes of which one rank alone counts
  bool everyone = false;  // kAllReduce: over all ranks of all stages
  int dim = -1, leaf = -1;  // kAllGather, kReduceScatter, kAllToAll (what is joined), kSlice
  bool accumulate = false;  // kCompute: the result is added to the last of `in`
  int32_t settings = 0;     // kOptimize: see Instr::settings
  OpId sum;                 // kCompute that accumulates, kAdd: see Instr::sum
};

/// A value that travels to the same coordinates of another site.
struct Transfer {
  int from_site = 0, to_site = 0;
  int from_value = 0, to_value = 0;
  Segment after, before;
};

/// Everything one site runs, in layouts rather than boxes.
struct SiteCode {
  size_t time = 0;  // the axis of micro-batches
  std::vector<Value> values;
  std::map<Segment, std::vector<CodeStep>> segments;  // the empty ones are left out
  std::vector<std::pair<int, TensorId>> gradients;    // value, parameter
  std::vector<int> parameters;                        // values after the update
  std::vector<std::pair<int, TensorId>> buffers;      // value, buffer
  int loss = -1;
};

struct Code {
  std::vector<SiteCode> sites;
  std::vector<Transfer> transfers;
};

/// The transfers out of a site.
std::vector<Transfer> sent_from(const Code& code, int site);

/// Which segments of a site make or read a value, and the last step that does: `index` in the last of them.
struct Uses {
  std::set<Segment> segments;
  size_t index = 0;
};

/// By value.
std::vector<Uses> find_uses(const SiteCode& code);

/// By value: is it what the site leaves when the step ends?
std::vector<bool> find_results(const SiteCode& code);

}  // namespace partita::lower
