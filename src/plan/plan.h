#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "layout/atoms.h"
#include "model/model.h"
#include "model/optimizer.h"
#include "schedule/schedule.h"

namespace partita::plan {

/// One space axis of the mesh that every stage's devices form, outermost first. `across`: the stages
/// themselves lie along it, one at each coordinate; only a stage on the devices of all of them has it to
/// split over (the embedding and the head of an interlaced pipeline). It comes first.
struct MeshAxis {
  std::string name;  // "dp", "tp"
  int64_t size = 1;
  bool across = false;
  bool operator==(const MeshAxis&) const = default;
};

/// Ops whose name matches `ops` split one of these atoms over `axis`, the first that they have free. Or, with
/// `as`, do exactly what it says along the axis: "whole", "in0:1.0", "addends in0" (plan/exact_splits.h); of
/// rules that say so the first that matches counts, and it counts before all others.
struct SplitRule {
  std::string ops = "*";
  std::string axis;
  std::vector<std::string> atoms;
  std::string as = {};
  bool operator==(const SplitRule&) const = default;
};

/// Ops matching a pattern run on these devices, in mesh order. Stages share all of their devices or none, but
/// for those on all devices of a mesh with an axis across.
/// `copies`: further devices that hold it too, one list for every other direction that micro-batches go in a
/// schedule with several (Chimera, DualPipe).
struct Stage {
  std::vector<std::string> ops;
  std::vector<int32_t> devices;
  std::vector<std::vector<int32_t>> copies;
  bool operator==(const Stage&) const = default;
};

/// What belongs to the parameters matching `params` and is stored cut over `axis`. `what`: "state", the
/// optimizer's alone; "gradient", with the states; "parameter", all three, gathered where it is used and
/// dropped after it. Where the parameter itself stays whole, each rank updates its piece and all gather the
/// new values. `reduce` of a cut gradient: "each" micro-batch, or "once" after the last. `leaf`: where it is
/// cut, "1.0" for leaf 0 of dimension 1; "": along the longest that no axis cuts yet.
struct StoreRule {
  std::string params = "*";
  std::string axis;
  std::string reduce = "each";
  std::string what = "parameter";
  std::string leaf = {};
  bool operator==(const StoreRule&) const = default;
};

/// Ops matching a pattern run in `size` pieces, one after another, each splitting one of these atoms: a loop
/// in time. What it leaves in pieces is put together after it, its partials are added up at once.
/// Rules of one name cut the same axis; each is a loop of its own.
struct LoopRule {
  std::string name;
  int64_t size = 1;
  std::vector<std::string> ops, atoms;
  bool through =
      false;  // forward and backward of a piece before the next piece; of ops at the end of forward
  bool operator==(const LoopRule&) const = default;
};

/// Forward ops matching a pattern are run again in backward instead of keeping what they made; what ops
/// outside of the block read of it is kept, and so is what the ops of the block matching `keep` made. Blocks
/// that follow each other are rules of their own, so that one block is alive at a time.
struct RecomputeRule {
  std::vector<std::string> ops, keep = {};
  bool operator==(const RecomputeRule&) const = default;
};

/// Transform, assign and order as data. JSON: docs/formats/plan.md.
struct Plan {
  std::string model;    // fingerprint
  std::string cluster;  // "4xcpu"
  Bytes memory = 0;     // limit per device; 0: what the device has
  int64_t batch = 0;    // global
  int64_t seq = 0;      // tokens of a sample; 0: it has none, or any
  std::string dtype;
  std::vector<MeshAxis> mesh;
  bool unpack = false;  // packed parameters of unequal parts are taken apart first (layout/unpack.h)
  bool masks = false;   // causal attention takes a mask, so that queries can be split (model/causal_masks.h)
  int64_t key_chunks = 1;  // attention runs over this many pieces of its keys, merged (model/key_chunks.h)
  int64_t microbatches = 1;
  std::string microbatch_atom;  // the atom that time splits; "" with one micro-batch
  std::vector<Stage> stages;    // at least one
  std::vector<SplitRule> split;
  std::vector<StoreRule> store;
  std::vector<LoopRule> loops;
  std::vector<RecomputeRule> recompute;
  std::string schedule = std::string(kPlainSchedule);
  bool overlap = false;            // collectives run beside computing where nobody needs their results yet
  std::vector<std::string> order;  // steps of each device, "0F0,0F1,1F0", where no named schedule says them
  OptimizerSpec optimizer;
  std::string summary;  // "dp2 x tp2, 4 micro-batches"
  bool operator==(const Plan&) const = default;

  /// Devices of a stage that does not spread over the axis across.
  int64_t mesh_size() const;
  int64_t ranks() const;
  /// Has any axis of the mesh several devices?
  bool splits() const;
  bool has_across() const { return !mesh.empty() && mesh[0].across; }
  /// Is the stage on the devices of all others?
  bool spans(const Stage& stage) const {
    return has_across() && static_cast<int64_t>(stage.devices.size()) != mesh_size();
  }
};

/// Everything wrong with a plan for this model, one sentence each; empty when it can be lowered: it belongs
/// to the model (fingerprint), names exist, devices are used once, every atom is long enough for the pieces
/// it is cut into.
std::vector<std::string> check(const Plan& plan, const Model& model, const Atoms& atoms);

std::string to_json(const Plan& plan);
Plan parse_plan(std::string_view text, std::string_view where);

}  // namespace partita::plan
