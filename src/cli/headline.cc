#include "cli/headline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "cluster/memory_limit.h"

namespace partita::cli {
namespace {

/// What --precision calls a dtype, the better first: bfloat16 needs no loss scale.
struct Half {
  const char* dtype;
  const char* precision;
};
constexpr Half kHalves[] = {{"bfloat16", "bf16"}, {"float16", "fp16"}};

double rate_of(const Device& device, const std::string& dtype) {
  auto found = device.flops.find(dtype);
  return found == device.flops.end() ? 0 : found->second;
}

}  // namespace

std::string show_dtype(const std::string& dtype, const OptimizerSpec& optimizer) {
  const Precision& precision = optimizer.precision;
  std::vector<std::string> parts = {dtype.empty() ? "no dtype" : dtype};
  if (precision.grad && precision.grad == precision.master) {
    parts.push_back(fmt::format("{} gradients and master weights", dtype_name(*precision.grad)));
  } else {
    if (precision.grad) parts.push_back(fmt::format("{} gradients", dtype_name(*precision.grad)));
    if (precision.master) parts.push_back(fmt::format("{} master weights", dtype_name(*precision.master)));
  }
  if (precision.loss_scale > 0) parts.push_back(fmt::format("loss scale {}", precision.loss_scale));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string precision_hint(const std::string& dtype, const Cluster& cluster) {
  const Device& device = cluster.device;
  double whole = rate_of(device, "float32");
  if (dtype != "float32" || is_cpu(device) || whole == 0) return "";
  for (const Half& half : kHalves)
    if (double rate = rate_of(device, half.dtype); rate > whole)
      return fmt::format("float32; --precision {} computes up to {:.3g}x as fast on {}\n", half.precision,
                         rate / whole, device.name);
  return "";
}

}  // namespace partita::cli
