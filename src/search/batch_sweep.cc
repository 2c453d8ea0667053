#include "search/batch_sweep.h"

#include "base/error.h"
#include "estimate/cost_book.h"

namespace partita::search {
namespace {

constexpr int kMostDoublings = 14, kPatience = 2;
constexpr double kGain = 1.01;

}  // namespace

int64_t tokens_of(const Model& model) {
  for (const Tensor& tensor : model.tensors)
    if (tensor.role == Role::kBatchInput) return numel(tensor.shape);
  return 0;
}

BatchSweep sweep_batches(const std::function<Model(int64_t)>& build, const SearchRequest& request,
                         Objective objective) {
  BatchSweep best;
  std::vector<PlanFault> faults;
  double rate = 0;
  int without_gain = 0;
  // From one sample a device of the largest tensor parallel mesh on: fewer leave devices idle.
  int64_t batch =
      std::max(1, num_ranks(request.prices.cluster()) / request.prices.cluster().devices_per_node);
  for (int k = 0; k < kMostDoublings && without_gain < kPatience; ++k, batch *= 2) {
    Model model = build(batch);
    SearchRequest sized = request;
    sized.progress = with_prefix(request.progress, fmt::format("batch {}: ", batch));
    SearchResult result = search_for(objective, 0, model, sized);
    bool interrupted = result.interrupted;
    faults.insert(faults.end(), result.faults.begin(), result.faults.end());
    double here = result.fitting.empty()
                      ? 0
                      : static_cast<double>(tokens_of(model)) / cost_of(objective, result.fitting.front());
    without_gain = here > rate * kGain ? 0 : without_gain + 1;
    if (best.batch == 0 || here > rate) {
      best = {batch, std::move(result)};
      rate = here;
    }
    best.result.interrupted = interrupted;
    if (interrupted) break;
  }
  best.result.faults = std::move(faults);
  return best;
}

}  // namespace partita::search
