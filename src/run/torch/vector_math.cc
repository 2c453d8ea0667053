#include "run/torch/vector_math.h"

#include <ATen/ops/acos.h>
#include <ATen/ops/asin.h>
#include <ATen/ops/atan.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/erf.h>
#include <ATen/ops/erfc.h>
#include <ATen/ops/erfinv.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log.h>
#include <ATen/ops/log10.h>
#include <ATen/ops/log2.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/tan.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/trunc.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <mutex>

namespace partita::run {
namespace {

// Those that ATen hands to MKL (ATen/cpu/vml.h). MKL 2024.2, which torch 2.13 holds, looks each of them up at
// its first call and for a moment shows other threads a kernel of low accuracy (pytorch issue 188792).
// Seen once in thousands of runs, in float64: gradients 1e-7 off, as a cosine makes them that is off by 1e-7.
constexpr at::Tensor (*kFunctions[])(const at::Tensor&) = {
    at::acos, at::asin,  at::atan, at::cos, at::erf,  at::erfc, at::erfinv, at::exp,
    at::log,  at::log10, at::log2, at::sin, at::sqrt, at::tan,  at::tanh,   at::trunc,
};

void call_each(at::ScalarType dtype) {
  at::Tensor number = at::full({1}, 0.5, dtype);
  for (auto function : kFunctions) function(number);
}

}  // namespace

void settle_vector_math() {
  static std::once_flag once;
  std::call_once(once, [] {
    // On the caller's thread a dispatch mode may be on, which would keep the calls from MKL.
    c10::impl::ForceDispatchKeyGuard plain(c10::default_included_set, c10::default_excluded_set);
    call_each(at::kFloat);
    call_each(at::kDouble);
  });
}

}  // namespace partita::run
