#pragma once

#include <optional>
#include <string>

#include "cli/verb.h"
#include "schedule/evaluate.h"
#include "schedule/search/pricing.h"
#include "schedule/search/search.h"

namespace partita::cli {

/// The flags of `lab schedule` as given.
struct ScheduleFlags {
  std::string name, csv, write_csv, forward, backward, input_grad, weight_grad, comm = "0", embedding = "0",
                                                                                head = "0";
  std::string unit = "device-stage", memory_cap, cap_unit = "chunks", held_after = "1", stage_costs, links;
  std::string queue = "per-peer", placement, objective = "makespan", weight_memory = "0";
  int devices = 0, microbatches = 0, waves = 0, chunks = 0, group = 0, effort = 3;
  bool show = false, compare = false;
};

/// Their meaning. Memory is in units of `per_chunk_memory`, so that half a chunk is a whole number.
struct ScheduleRequest {
  ScheduleParams params;
  Pricing pricing;
  bool split_priced = false;  ///< input-grad and weight-grad costs are known
  bool fused_priced = false;  ///< a fused backward has its own cost, not merely the sum
  std::vector<Rational>
      cap;  ///< chunks (or micro-batches) of each device; one entry: of all; empty: no limit
  bool cap_in_microbatches = false;
  int64_t per_chunk_memory = 1;
  Rational weight_memory =
      0;  ///< of one device-stage of weights, in micro-batches of activations; --compare only
  Queue queue = Queue::kPerPeer;
  Objective objective = Objective::kMakespan;
  std::optional<Placement> placement;
  int effort = 3;
  bool to_write = false;  ///< the answer is to be written in PyTorch's form, which has one device a stage
};

/// Throws InputError for numbers and words that make no sense.
ScheduleRequest read_request(const ScheduleFlags& flags);

/// Memory each device may use for a schedule with `chunks` chunks a device; empty: no limit.
std::vector<int64_t> cap_memory(const ScheduleRequest& request, int devices, int chunks);

/// A pipeline to search: which placement, how many chunks a device.
struct SearchOption {
  Placement placement;
  int chunks;
};

/// The placements and chunk counts that a search tries where nothing is asked for. Eight chunks on a zigzag
/// (wave W = 4) only while that is quick; two streams only for an even number of micro-batches.
std::vector<SearchOption> open_options(const ScheduleRequest& request);

/// Searches the placements and chunk counts that the request leaves open, and gives the best. Where all are
/// open, interlaced is a rival too.
Found search_request(const ScheduleRequest& request);

/// Costs of the pipeline a search orders.
SearchProblem make_problem(const ScheduleRequest& request, Placement placement, int chunks);

/// `lab schedule --compare`: every schedule at the same costs, cap and transfer.
void compare_schedules(const ScheduleRequest& request, const Command& command);

}  // namespace partita::cli
