#include "cost/prices.h"

#include <algorithm>

#include "base/error.h"
#include "cost/op_seconds.h"
#include "cost/sampled.h"

namespace partita::cost {
namespace {

// Steps on one node, bench/published_steps.py: 21 % over 65 runs, 15 % without long sequences. Then that of
// a table whose file does not say.
constexpr double kSpecSheetError = 0.2, kSampledError = 0.1;

struct CollectiveRow {
  std::string_view kind;
  Seconds (*seconds)(const Cluster&, Bytes, const Group&);
};
constexpr CollectiveRow kCollectives[] = {{"all_reduce", all_reduce_seconds},
                                          {"all_gather", all_gather_seconds},
                                          {"reduce_scatter", reduce_scatter_seconds},
                                          {"all_to_all", all_to_all_seconds}};

const CollectiveRow& collective_row(std::string_view kind) {
  auto found = std::find_if(std::begin(kCollectives), std::end(kCollectives),
                            [&](const CollectiveRow& row) { return row.kind == kind; });
  CHECK(found != std::end(kCollectives));
  return *found;
}

CallCost spec_cost(const OpCall& call, const Device& device) {
  if (call.aliases) return {};
  CallCost cost{.flops = flops_of(call.view)};
  cost.seconds = op_seconds(device, call.view, cost.flops, call.moved);
  cost.workspace = workspace_of(call.view);
  return cost;
}

}  // namespace

struct Prices::Measured {
  Measured(Calibration from, const Device& device)
      : calibration(std::move(from)), ops(calibration.samples, device), transfers(calibration.transfers) {}

  Calibration calibration;
  SampledCosts ops;  // looks into `calibration`
  SampledTransfers transfers;
};

Prices::Prices(Cluster cluster) : cluster_(std::move(cluster)) {}

Prices::Prices(Cluster cluster, Calibration calibration)
    : cluster_(std::move(cluster)),
      measured_(std::make_shared<Measured>(std::move(calibration), cluster_.device)) {
  CHECK(on_cpu(cluster_));
}

Tier Prices::tier() const {
  if (!measured_) return {"spec sheet", kSpecSheetError};
  double known = measured_->calibration.expected_error;
  return {"calibrated", known > 0 ? known : kSampledError};
}

bool Prices::overlaps() const { return !is_cpu(cluster_.device); }

int Prices::cores() const { return measured_ ? measured_->calibration.cores : 0; }

// A view takes time where ops were measured: a call through the dispatcher.
CallCost Prices::call(const OpCall& call, const Device& device) const {
  if (!measured_) return spec_cost(call, device);
  OpSample sample = sample_of(call.view, call.aliases ? 0 : call.moved);
  sample.signature = call.signature();
  const OpSample* known = measured_->ops.find(sample.signature);
  return {sample.flops, measured_->ops.seconds(sample), known ? known->workspace : workspace_of(call.view),
          known ? known->retained : 0};
}

Seconds Prices::move(std::string_view kind, DType dtype, Bytes moved, const Device& device) const {
  if (!measured_) return compute_seconds(device, dtype, 0, moved);
  return measured_->ops.seconds({.target = fmt::format("partita.{}", kind), .dtype = dtype, .moved = moved});
}

Seconds Prices::collective(std::string_view kind, Bytes bytes, const std::vector<int32_t>& ranks) const {
  Group group = group_of(cluster_, ranks);
  const CollectiveRow& row = collective_row(kind);
  if (group.size <= 1) return 0;
  if (!measured_ || !measured_->transfers.knows(kind)) return row.seconds(cluster_, bytes, group);
  return measured_->transfers.seconds(kind, group.size, bytes, [&](int size) {
    return row.seconds(cluster_, bytes, {size, 1});
  });
}

Seconds Prices::send(Bytes bytes, int from, int to) const {
  if (from == to || !measured_ || !measured_->transfers.knows("send"))
    return send_seconds(cluster_, bytes, from, to);
  return measured_->transfers.seconds("send", 2, bytes, [](int) { return 1.0; });
}

}  // namespace partita::cost
