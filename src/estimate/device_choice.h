#pragma once

#include <map>
#include <string>
#include <vector>

#include "choose/problem.h"
#include "estimate/cost_book.h"
#include "estimate/freedom.h"
#include "estimate/pipeline_walk.h"
#include "estimate/storing.h"

namespace partita::estimate {

/// A unit that is computed again in backward, from its inputs: kAgain; from what of it is kept too: kAgain
/// and the number of its Keep.
inline constexpr uint8_t kAgain = 1;
inline Keep keep_of(uint8_t way) { return static_cast<Keep>(way - kAgain); }

/// Units [begin, end) of the whole step as one stage, of which `alive` micro-batches are there at once.
struct StageRange {
  int begin = 0, end = 0, alive = 1;
};

/// How many things of each kind take which option; `gathered`: parameters may be cut and gathered where used.
struct SolvedDevice {
  bool gathered = false;
  bool proved = false;    // nothing else can be faster
  bool hopeless = false;  // nothing that fits is below Freedom::below
  Seconds seconds = 0;
  ChoiceCounts counts;
};

/// What choices on one device depend on beside its stages.
struct DeviceContext {
  const CostBook& book;
  const CostTable& table;
  const StoringPrices& prices;
  const Freedom& freedom;
  int64_t microbatches = 1;
  Bytes memory = 0;                            // for what is counted here
  std::map<std::string, SolvedDevice>& known;  // of devices that are alike
  std::vector<bool> tied;  // by parameter: on other devices too, so its storage is not free
};

/// How a parameter of the shrunk step is stored where it stands for one of a unit of the whole step.
struct StoredUnit {
  int parameter = 0, unit = 0;
  Storing storing = Storing::kWhole;
};

/// What a device stores whole and computes again, and what that costs.
struct DeviceChoice {
  bool hopeless = false;              // nothing that fits is below Freedom::below; the rest is not known then
  std::vector<StageSeconds> seconds;  // by stage
  std::vector<StageBytes> bytes;      // by stage, of one micro-batch
  Seconds once = 0;                   // after the last micro-batch
  Bytes looping = 0;                  // held all the time while micro-batches run
  Bytes ended = 0;                    // the most after the last one
  std::map<int, uint8_t> again;       // units of the whole step: kAgain and more
  std::vector<StoredUnit> stored;
};

/// Ways a parameter may be stored; of those that cut and gather it only with `gathered`, of one on several
/// devices (`tied`) those that suit all of them. `loops`: more than one micro-batch.
std::vector<Storing> storings_of(const StoringPrices& prices, const Freedom& freedom,
                                 const ParameterCost& parameter, bool gathered, bool tied, bool loops);

/// The fastest choice that fits, by a multiple-choice knapsack over storage of parameters and recomputation
/// of units: their bytes add up at two moments, while micro-batches run and after the last. Where nothing
/// fits: the choice of least memory.
DeviceChoice choose_device(const DeviceContext& context, const std::vector<StageRange>& stages);

/// The least bytes that each unit of the whole step can be had for.
struct LeastBytes {
  Bytes held = 0;       // all the time
  Bytes saved = 0;      // for every micro-batch alive
  Bytes transient = 0;  // for a short while
};
std::vector<LeastBytes> least_bytes(const DeviceContext& context);

}  // namespace partita::estimate
