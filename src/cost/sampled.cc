#include "cost/sampled.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace partita::cost {
namespace {

constexpr size_t kNearest = 4;        // samples that speak for an op nobody measured
constexpr double kOtherLayout = 1.0;  // distance of inputs that lie differently, in e-foldings of work
constexpr double kSharpness = 0.01;   // keeps a sample at distance 0 from drowning all others

double distance(const OpSample& a, const OpSample& b) {
  double flops = std::log((a.flops + 1) / (b.flops + 1));
  double bytes = std::log((static_cast<double>(a.moved) + 1) / (static_cast<double>(b.moved) + 1));
  bool alike = a.layout == b.layout && a.dtype == b.dtype;
  return flops * flops + bytes * bytes + (alike ? 0 : kOtherLayout);
}

}  // namespace

SampledCosts::SampledCosts(const std::vector<OpSample>& samples, Device device) : device_(std::move(device)) {
  std::vector<double> corrections;
  for (const OpSample& sample : samples) {
    by_signature_.emplace(sample.signature, &sample);
    corrections.push_back(sample.seconds / roofline(sample));
    by_target_[sample.target].push_back({&sample, corrections.back()});
  }
  if (corrections.empty()) return;
  std::nth_element(corrections.begin(), corrections.begin() + corrections.size() / 2, corrections.end());
  middle_ = corrections[corrections.size() / 2];
}

Seconds SampledCosts::roofline(const OpSample& op) const {
  return compute_seconds(device_, op.dtype, op.flops, op.moved);
}

const OpSample* SampledCosts::find(const std::string& signature) const {
  auto found = by_signature_.find(signature);
  return found == by_signature_.end() ? nullptr : found->second;
}

double SampledCosts::correction_near(const OpSample& op, const std::vector<Corrected>& known) const {
  std::vector<std::pair<double, double>> near;  // distance, correction
  for (const Corrected& one : known) near.emplace_back(distance(op, *one.sample), one.correction);
  size_t count = std::min(kNearest, near.size());
  std::partial_sort(near.begin(), near.begin() + count, near.end());
  double sum = 0, weights = 0;
  for (size_t i = 0; i < count; ++i) {
    double weight = 1 / (near[i].first + kSharpness);
    sum += weight * std::log(near[i].second);
    weights += weight;
  }
  return std::exp(sum / weights);
}

Seconds SampledCosts::seconds(const OpSample& op) const {
  if (const OpSample* measured = find(op.signature)) return measured->seconds;
  auto known = by_target_.find(op.target);
  double correction = known == by_target_.end() ? middle_ : correction_near(op, known->second);
  return correction * roofline(op);
}

SampledTransfers::SampledTransfers(const std::vector<TransferSample>& samples) {
  for (const TransferSample& sample : samples)
    by_kind_[sample.kind][sample.ranks][sample.bytes] = sample.seconds;
}

int SampledTransfers::nearest_size(std::string_view kind, int ranks) const {
  auto found = by_kind_.find(kind);
  CHECK(found != by_kind_.end());
  int nearest = found->second.begin()->first;
  auto off = [&](int size) { return std::abs(std::log(static_cast<double>(size) / ranks)); };
  for (const auto& [size, line] : found->second)
    if (off(size) < off(nearest)) nearest = size;
  return nearest;
}

Seconds SampledTransfers::on_line(const Line& line, Bytes bytes) {
  auto above = line.lower_bound(bytes);
  if (above == line.begin()) return above->second;
  auto below = std::prev(above);
  // The rate of the largest size holds beyond it.
  if (above == line.end())
    return below->second *
           (static_cast<double>(bytes) / static_cast<double>(std::max<Bytes>(below->first, 1)));
  double share = static_cast<double>(bytes - below->first) / static_cast<double>(above->first - below->first);
  return below->second + share * (above->second - below->second);
}

}  // namespace partita::cost
