#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/optimizer.h"
#include "run/api.h"

namespace partita::run {

/// Says whether a run trains what its reference trains, of the values that their steps left behind.
/// Loss, gradients and buffers may be `tolerance` apart, relative to the largest of their tensor
/// (relative_errors). Parameters too, and beyond that by as much as the optimizer makes of the difference of
/// the gradients, element by element, as far as that is within the tolerance: Adam divides a gradient that is
/// zero but for rounding by its own size, and moves what is right by up to lr. Nothing else excuses a
/// parameter.
class RunComparison {
 public:
  /// `start`: parameters before the first step; they must outlive it. Floor as that of relative_errors.
  RunComparison(const OptimizerSpec& optimizer, HostViews start, double tolerance, double floor);

  /// The next step of both.
  void add(StepValues run, StepValues reference);
  /// Says what all steps so far gave; whoever ran it adds the peaks.
  VerifyReport report() const;

 private:
  /// Gradients of a step that updated.
  struct Gradients {
    HostTensors run, reference;
    double largest = 0;  // of the reference
  };
  using Differences = std::map<std::string, std::vector<double>>;
  void take(const std::map<std::string, double>& errors, double& worst);
  void add_parameters(const HostTensors& run, const HostTensors& reference);
  Differences explained(const std::vector<std::string>& names) const;
  std::vector<double> explained(const std::string& name, const HostView& from) const;

  OptimizerSpec optimizer_;
  HostViews start_;
  double floor_ = 0;
  std::vector<Gradients> history_;
  VerifyReport report_;
};

}  // namespace partita::run
