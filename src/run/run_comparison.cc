#include "run/run_comparison.h"

#include <algorithm>
#include <cmath>

#include "base/interrupt.h"
#include "run/compare.h"
#include "run/updates.h"

namespace partita::run {
namespace {

/// `run`, each element at most `most` from that of the reference: what of the difference is rounding.
std::vector<double> within(std::vector<double> run, const std::vector<double>& reference, double most) {
  for (size_t i = 0; i < run.size(); ++i) {
    double off = run[i] - reference[i];
    run[i] = reference[i] + (std::isfinite(off) ? std::clamp(off, -most, most) : 0);
  }
  return run;
}

double largest_of(const HostTensors& tensors) {
  double largest = 0;
  for (const auto& [name, tensor] : tensors) largest = std::max(largest, largest_magnitude(tensor));
  return largest;
}

}  // namespace

RunComparison::RunComparison(const OptimizerSpec& optimizer, HostViews start, double tolerance, double floor)
    : optimizer_(optimizer), start_(std::move(start)), floor_(floor) {
  report_.tolerance = tolerance;
}

void RunComparison::take(const std::map<std::string, double>& errors, double& worst) {
  for (const auto& [name, error] : errors) {
    worst = std::max(worst, error);
    if (error <= report_.worst_error) continue;
    report_.worst_error = error;
    report_.worst_parameter = name;
  }
}

/// How far each element may lie from the reference, with its sign; empty where nothing is excused.
std::vector<double> RunComparison::explained(const std::string& name, const HostView& from) const {
  std::vector<std::vector<double>> run, reference;
  for (const Gradients& step : history_) {
    auto got = step.run.find(name), want = step.reference.find(name);
    if (got == step.run.end() || want == step.reference.end() || got->second.shape != from.shape ||
        want->second.shape != from.shape)
      return {};
    double scale = std::max(largest_magnitude(want->second), floor_ * step.largest);
    reference.push_back(to_doubles(want->second));
    run.push_back(within(to_doubles(got->second), reference.back(), report_.tolerance * scale));
  }
  OptimizerGroup by = numbers_of(optimizer_, settings_of(optimizer_, name));
  std::vector<double> to = updated(optimizer_.name, by, to_doubles(from), run),
                      expected = updated(optimizer_.name, by, to_doubles(from), reference);
  for (size_t i = 0; i < to.size(); ++i) to[i] -= expected[i];
  return to;
}

RunComparison::Differences RunComparison::explained(const std::vector<std::string>& names) const {
  Differences out;
  for (const std::string& name : names) {
    check_interrupt();
    auto from = start_.find(name);
    if (from == start_.end()) continue;
    std::vector<double> differences = explained(name, from->second);
    if (!differences.empty()) out[name] = std::move(differences);
  }
  return out;
}

// What is the same needs no excuse, and to look for one takes longer than everything else.
void RunComparison::add_parameters(const HostTensors& run, const HostTensors& reference) {
  std::map<std::string, double> errors = relative_errors(run, reference, floor_);
  std::vector<std::string> off;
  for (const auto& [name, error] : errors)
    if (error > 0) off.push_back(name);
  if (!off.empty()) errors = relative_errors(run, reference, floor_, explained(off));
  take(errors, report_.max_param_error);
}

// The history ends where the reference updated, so that a run which skips another step is not excused. In a
// step that the reference skips, the gradients of the run are what overflowed.
void RunComparison::add(StepValues run, StepValues reference) {
  HostTensor got = from_doubles({}, DType::kFloat64, {run.loss}),
             want = from_doubles({}, DType::kFloat64, {reference.loss});
  take(relative_errors({{"loss", got}}, {{"loss", want}}, floor_), report_.loss_error);
  if (!reference.skipped) {
    take(relative_errors(run.values.gradients, reference.values.gradients, floor_), report_.max_grad_error);
    double largest = largest_of(reference.values.gradients);
    history_.push_back({std::move(run.values.gradients), std::move(reference.values.gradients), largest});
  }
  add_parameters(run.values.parameters, reference.values.parameters);
  take(relative_errors(run.values.buffers, reference.values.buffers, floor_), report_.max_buffer_error);
  report_.disagreement = std::max(report_.disagreement, run.values.disagreement);
}

VerifyReport RunComparison::report() const {
  VerifyReport report = report_;
  report.equal = report.worst_error <= report.tolerance && report.disagreement <= report.tolerance;
  return report;
}

}  // namespace partita::run
