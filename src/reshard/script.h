#pragma once

#include <string_view>
#include <vector>

#include "reshard/reshard.h"

namespace partita::reshard {

enum class StepKind : uint8_t {
  kFill,       // out = the identity of the reducer (zeros for a sum)
  kCopy,       // the elements that `in` and `out` have in common go from `in` to `out`
  kAdd,        // out = out + in; both are the same region
  kSend,       // `in` to `peer`; does not wait
  kReceive,    // `out` from `peer`; the k-th receive from a peer meets its k-th send
  kAllGather,  // out = the members' `in`, one after the other along `dim` in GROUP ORDER, lengths `pieces`
  kReduceScatter,  // out = the member's piece of the sum of the members' `in` along `dim`
  kAllReduce       // out = the sum of the members' `out`, in place
};
/// "all-gather".
std::string_view to_text(StepKind kind);

/// One step of one device.
struct Step {
  StepKind kind = StepKind::kCopy;
  int32_t in = -1, out = -1;   // buffers
  int32_t peer = -1;           // a device
  std::vector<int32_t> group;  // devices in the order of their chunks, this one among them
  int dim = -1;
  std::vector<int64_t> pieces;  // by member
  bool operator==(const Step&) const = default;
};

/// What one device does, in order. A buffer is a dense row-major tensor with the elements of its region. The
/// first ones are the device's pieces of Problem::from in their order; the others are written before they are
/// read, and none is read after its last step, so it can be freed there.
///
/// All devices follow one global order of steps: with sends that do not wait, nothing can block for ever.
///
/// Example, halves on 0 and 1 to copies on both, device 1: buffers {[4:8], [0:8], [0:8]}, steps
/// `copy 0 -> 1`, `all-gather 0 -> 2 over 0 1 along 0`, `copy 2 -> 1`, targets {1}.
///
/// As instructions of a Program (program/program.h), a buffer being a slot:
///
/// - kFill: kZeros (a reducer other than sum: its own identity).
///
/// - kCopy: kSlice where `out` lies in `in`, one for every dimension in which it is shorter; kMove where they
///   are the same region. Where `in` lies in `out` it is one block of a concatenation. Program joins blocks
///   only inside kAllGather, so this needs one new kind, the mirror of kSlice: "kPlace: in[0] becomes [begin,
///   begin + length) of out[0] along cut".
///
/// - kAdd: kAdd.
///
/// - kSend: the action kSend after the run of the body that made the buffer; kWaitSend before its free.
///
/// - kReceive: kPostReceive where the script begins, kWaitReceive before the body that reads the buffer. So a
///   script is cut into bodies at its receives; one without sends and receives is one body.
///
/// - kAllGather, kReduceScatter, kAllReduce: the same kinds. `group` goes to the rank's groups in this order,
///   which is that of the chunks; `cut` is the leaf that `dim` is (see conversion.h); `pieces` as they are.
struct Script {
  int32_t device = 0;
  std::vector<Region> buffers;
  std::vector<Step> steps;
  std::vector<int32_t> targets;  // the buffer of every piece of Problem::to on this device, in their order
};

/// The answer as scripts, by device, ascending. Devices of both sides are in it, those that do nothing too.
/// REQUIRES: `answer` is that of `problem`.
std::vector<Script> write_scripts(const Problem& problem, const Answer& answer);

/// One line a step: "receive 4 from 2".
std::string to_text(const Script& script);

}  // namespace partita::reshard
