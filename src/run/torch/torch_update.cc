// The only file with headers of torch's C++ frontend: they take longer to compile than everything else here.
#include "run/torch/torch_update.h"

#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <map>

#include "base/error.h"
#include "run/torch/value.h"

namespace partita::run {
namespace {

using torch::optim::OptimizerParamGroup;
using Tensors = std::vector<at::Tensor>;
using Groups = std::vector<OptimizerParamGroup>;

/// What one group updates, and its numbers.
struct Settings {
  OptimizerGroup by;
  Tensors updated;
};

constexpr double kClassLr = 1e-3;

template <class Options>
std::unique_ptr<Options> moments(const OptimizerGroup& by) {
  auto options = std::make_unique<Options>(by.lr);
  options->betas({by.beta1, by.beta2}).eps(by.eps).weight_decay(by.weight_decay);
  return options;
}

std::unique_ptr<torch::optim::SGDOptions> descent(const OptimizerGroup& by) {
  auto options = std::make_unique<torch::optim::SGDOptions>(by.lr);
  options->momentum(by.momentum).dampening(by.dampening);
  options->weight_decay(by.weight_decay).nesterov(by.nesterov);
  return options;
}

template <class Optimizer, class Options>
std::unique_ptr<torch::optim::Optimizer> make(const std::vector<Settings>& all,
                                              std::unique_ptr<Options> (*options)(const OptimizerGroup&)) {
  Groups groups;
  for (const Settings& one : all) groups.emplace_back(one.updated, options(one.by));
  // What a group has as its class would have it, torch takes from here: so this says the same.
  return std::make_unique<Optimizer>(groups, Options(kClassLr));
}

std::unique_ptr<torch::optim::Optimizer> adamw(const std::vector<Settings>& all) {
  return make<torch::optim::AdamW>(all, moments<torch::optim::AdamWOptions>);
}
std::unique_ptr<torch::optim::Optimizer> adam(const std::vector<Settings>& all) {
  return make<torch::optim::Adam>(all, moments<torch::optim::AdamOptions>);
}
std::unique_ptr<torch::optim::Optimizer> sgd(const std::vector<Settings>& all) {
  return make<torch::optim::SGD>(all, descent);
}

struct OptimizerRow {
  std::string_view name;
  std::unique_ptr<torch::optim::Optimizer> (*make)(const std::vector<Settings>&);
};
constexpr OptimizerRow kOptimizers[] = {{"adamw", adamw}, {"adam", adam}, {"sgd", sgd}};

// Half precisions are clipped in float32: a norm of eight bits would say nothing about the one it judges.
DType clipped_in(const OptimizerSpec& spec, DType own) {
  return widened(widened(own, spec.precision.grad), is_complex(own) ? own : DType::kFloat32);
}

}  // namespace

struct TorchUpdate::State {
  OptimizerSpec spec;
  std::vector<Parameter> parameters;
  Tensors updated;                                     // by parameter: its master copy, or itself
  std::unique_ptr<torch::optim::Optimizer> optimizer;  // none: there is nothing to update
};

TorchUpdate::TorchUpdate(const OptimizerSpec& spec, std::vector<Parameter> parameters)
    : state_(std::make_unique<State>(State{spec, std::move(parameters), {}, nullptr})) {
  std::map<int32_t, Settings> groups;
  for (const auto& [name, value] : state_->parameters) {
    DType own = dtype_of(value.scalar_type());
    state_->updated.push_back(has_master(spec, own) ? value.to(scalar_type(updated_dtype(spec, own)))
                                                    : value);
    int32_t settings = settings_of(spec, name);
    groups.try_emplace(settings, Settings{numbers_of(spec, settings), {}})
        .first->second.updated.push_back(state_->updated.back());
  }
  std::vector<Settings> all;
  for (auto& [number, settings] : groups) all.push_back(std::move(settings));
  for (const OptimizerRow& row : kOptimizers)
    if (row.name == spec.name && !all.empty()) state_->optimizer = row.make(all);
}

TorchUpdate::~TorchUpdate() = default;

// clip_grad_norm_ looks at nothing of a parameter but its gradient.
std::vector<at::Tensor> TorchUpdate::clipped(const Tensors& gradients) const {
  Tensors copies, holders;
  for (const at::Tensor& gradient : gradients) {
    at::ScalarType wide = scalar_type(clipped_in(state_->spec, dtype_of(gradient.scalar_type())));
    copies.push_back(gradient.to(wide, /*non_blocking=*/false, /*copy=*/true));
    holders.push_back(at::empty({0}, copies.back().options()));
    holders.back().mutable_grad() = copies.back();
  }
  if (state_->optimizer && state_->spec.clip > 0)
    torch::nn::utils::clip_grad_norm_(holders, state_->spec.clip);
  return copies;
}

void TorchUpdate::update(const Tensors& clipped) {
  if (!state_->optimizer) return;
  for (size_t k = 0; k < clipped.size(); ++k)
    state_->updated[k].mutable_grad() = clipped[k].to(state_->updated[k].scalar_type());
  state_->optimizer->step();
  for (size_t k = 0; k < clipped.size(); ++k) {
    state_->updated[k].mutable_grad().reset();
    if (at::Tensor& own = state_->parameters[k].value; !own.is_same(state_->updated[k]))
      own.copy_(state_->updated[k]);
  }
}

}  // namespace partita::run
