#include "cli/throughput.h"

#include <fmt/format.h>

#include "model/rewrite/retype.h"
#include "plan/recipes/micro_batch.h"
#include "search/batch_sweep.h"

namespace partita::cli {

ThroughputOf::ThroughputOf(const Model& model, const Cluster& cluster)
    : model_(model), cluster_(cluster), flops_(model_flops(model)) {
  std::string dtype = parameter_dtype(model);
  dtype_ = dtype.empty() ? DType::kFloat32 : parse_dtype(dtype, "model");
}

Throughput ThroughputOf::operator()(const Plan& plan, Seconds seconds) const {
  double tokens = static_cast<double>(tokens_of(model_)) / seconds;
  return {micro_batch_size(plan, model_), tokens, tokens / static_cast<double>(plan.ranks()),
          utilisation(flops_, seconds, cluster_, plan.ranks(), dtype_)};
}

namespace {

/// "104320", "0.31": whole from a hundred on.
std::string show_rate(double rate) {
  return rate >= 100 ? fmt::format("{:.0f}", rate) : fmt::format("{:.3g}", rate);
}

}  // namespace

std::string show(const Throughput& t) {
  return fmt::format(
      "micro-batch size {}; {} tokens/s, {} per device; {:.3g} TFLOP/s per device, {:.1f} % MFU",
      t.micro_batch_size, show_rate(t.tokens_per_second), show_rate(t.tokens_per_second_per_device),
      t.used.tflops_per_device, 100 * t.used.mfu);
}

void write(const Throughput& t, Json& json) {
  json["micro_batch_size"] = t.micro_batch_size;
  json["tokens_per_second"] = t.tokens_per_second;
  json["tokens_per_second_per_device"] = t.tokens_per_second_per_device;
  json["tflops_per_device"] = t.used.tflops_per_device;
  json["mfu"] = t.used.mfu;
}

}  // namespace partita::cli
