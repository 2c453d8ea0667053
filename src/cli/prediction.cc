#include "cli/prediction.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "cli/headline.h"
#include "cli/peaks.h"
#include "cli/plan_input.h"
#include "cli/pricing.h"
#include "cluster/library.h"

namespace partita::cli {
namespace {

/// In rank classes, unless every event is asked for or ranks of one class do not run alike.
Trace trace_of(const PlanQuestion& question) {
  const auto& [model, plan, prices, file, contention, every_rank] = question;
  auto [prepared, folded] = prove_plan_classes(model, plan, file);
  std::optional<Trace> trace;
  if (!every_rank)
    trace = simulate::simulate(prepared.model, folded.program, folded.fold, prices, contention);
  return trace ? *std::move(trace)
               : simulate::simulate(prepared.model, expand(folded.program, folded.fold), prices, contention);
}

}  // namespace

Cluster cluster_of(const ClusterInput& input, const Plan& plan, const std::string& where) {
  const std::string& name = input.cluster.empty() ? plan.cluster : input.cluster;
  if (name.empty())
    input_error("{}: the plan names no cluster; give --cluster, for example --cluster 4xcpu", where);
  return read_cluster(name);
}

MemoryLimit limit_of(const ClusterInput& input, const Cluster& cluster, const Plan& plan) {
  bool own = input.cluster.empty() || input.cluster == plan.cluster;
  return limit_of(input, cluster, own ? plan.memory : 0);
}

Bytes Prediction::worst_peak() const {
  return *std::max_element(trace.peak_bytes.begin(), trace.peak_bytes.end());
}

Prediction predict(const PlanQuestion& question, const MemoryLimit& limit) {
  const Cluster& cluster = question.prices.cluster();
  if (num_ranks(cluster) < question.plan.ranks())
    input_error("--cluster {}: {} devices, the plan needs {}", cluster.name, num_ranks(cluster),
                question.plan.ranks());
  Trace trace = trace_of(question);
  Throughput throughput = ThroughputOf(question.model, cluster)(question.plan, trace.step_seconds);
  return {std::move(trace), limit, throughput};
}

std::string to_text(const PlanQuestion& question, const Prediction& prediction) {
  const auto& [trace, limit, throughput] = prediction;
  const Plan& plan = question.plan;
  const Cluster& cluster = question.prices.cluster();
  std::string text = fmt::format("{} on {}: {} a step, {:.1f} % idle, {} waiting for communication\n",
                                 plan.summary, cluster.name, show_seconds(trace.step_seconds),
                                 100 * trace.bubble, show_seconds(trace.exposed_comm_seconds));
  text += show_dtype(plan.dtype, plan.optimizer) + "; " + show(throughput) + "\n";
  text += precision_hint(plan.dtype, cluster);
  if (trace.hidden_comm_seconds > 0)
    text += fmt::format("{} of communication beside computing\n", show_seconds(trace.hidden_comm_seconds));
  text += show_peaks(trace.peak_bytes);
  text += fmt::format("{}; limit {} per device\n", show_fit(limit, prediction.worst_peak()), to_text(limit));
  return text + show_tier(question.prices);
}

Json to_json(const PlanQuestion& question, const Prediction& prediction) {
  const auto& [trace, limit, throughput] = prediction;
  Json json = {{"step_seconds", trace.step_seconds}, {"bubble", trace.bubble},
               {"peak_bytes", trace.peak_bytes},     {"exposed_comm_seconds", trace.exposed_comm_seconds},
               {"dtype", question.plan.dtype},       {"fits", prediction.fits()},
               {"limit_bytes", limit.limit},         {"reserve_bytes", limit.reserve}};
  if (trace.hidden_comm_seconds > 0) json["hidden_comm_seconds"] = trace.hidden_comm_seconds;
  write(throughput, json);
  write_tier(question.prices, json);
  return json;
}

}  // namespace partita::cli
