#include "profile/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/json.h"

namespace partita {
namespace {

constexpr int64_t kVersion = 1;
constexpr size_t kNearest = 4;        // samples that speak for an op nobody measured
constexpr double kOtherLayout = 1.0;  // distance of inputs that lie differently, in e-foldings of work
constexpr double kSharpness = 0.01;   // keeps a sample at distance 0 from drowning all others

void write_tensor(const Tensor& tensor, std::string& text) {
  text += fmt::format(" {}[{}|{}]", dtype_name(tensor.dtype), fmt::join(tensor.shape, ","),
                      fmt::join(tensor.strides, ","));
}

void write_arg(const Model& model, const Arg& arg, std::string& text) {
  switch (arg.kind) {
    case Arg::kTensor:
      return write_tensor(model[arg.tensor], text);
    case Arg::kInt:
    case Arg::kBool:
      text += fmt::format(" {}", arg.integer);
      return;
    case Arg::kList:
      text += " (";
      for (const Arg& item : arg.items) write_arg(model, item, text);
      text += ")";
      return;
    case Arg::kNone:
      text += " -";
      return;
    default:  // numbers and names change no shape
      text += " .";
  }
}

Seconds roofline(const Cluster& cluster, const OpSample& op, DType dtype) {
  return compute_seconds(cluster, dtype, op.flops, op.moved);
}

double distance(const OpSample& a, const OpSample& b) {
  double flops = std::log((a.flops + 1) / (b.flops + 1));
  double bytes = std::log((static_cast<double>(a.moved) + 1) / (static_cast<double>(b.moved) + 1));
  return flops * flops + bytes * bytes + (a.layout == b.layout ? 0 : kOtherLayout);
}

}  // namespace

std::string signature_of(const Model& model, const Op& op) {
  std::string text = op.target;
  for (const Arg& arg : op.args) write_arg(model, arg, text);
  for (const auto& [name, arg] : op.kwargs) {
    text += " " + name + "=";
    write_arg(model, arg, text);
  }
  return text;
}

OpSample sample_of(const Model& model, const Op& op) {
  OpView view = view_of(model, op);
  OpSample sample{.signature = signature_of(model, op), .target = op.target, .flops = flops_of(view)};
  for (size_t k = 0; k < view.in.size() && k < 30; ++k)
    sample.layout |= (view.dense(static_cast<int>(k)) ? 0 : 1) << k;
  if (is_view(op)) return sample;
  for (TensorId id : inputs_of(op)) sample.moved += bytes_of(model[id]);
  for (TensorId id : op.outputs) sample.moved += id ? bytes_of(model[id]) : 0;
  return sample;
}

DType dtype_of(const Model& model, const Op& op) {
  for (TensorId id : op.outputs)
    if (id) return model[id].dtype;
  return DType::kFloat32;
}

SampledCosts::SampledCosts(const Calibration& calibration, const Cluster& cluster) : cluster_(cluster) {
  std::vector<double> corrections;
  for (const OpSample& sample : calibration.samples) {
    by_signature_.emplace(sample.signature, &sample);
    // The dtype is that of the first tensor; rates of other dtypes matter to products only.
    double correction = sample.seconds / roofline(cluster, sample, DType::kFloat32);
    by_target_[sample.target].push_back({&sample, correction});
    corrections.push_back(correction);
  }
  if (corrections.empty()) return;
  std::nth_element(corrections.begin(), corrections.begin() + corrections.size() / 2, corrections.end());
  middle_ = corrections[corrections.size() / 2];
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

Seconds SampledCosts::seconds(const OpSample& op, DType dtype) const {
  if (const OpSample* measured = find(op.signature)) return measured->seconds;
  auto known = by_target_.find(op.target);
  double correction = known == by_target_.end() ? middle_ : correction_near(op, known->second);
  return correction * roofline(cluster_, op, dtype);
}

std::string to_json(const Calibration& calibration) {
  Json samples = Json::array();
  for (const OpSample& s : calibration.samples)
    samples.push_back({{"op", s.signature},
                       {"target", s.target},
                       {"layout", s.layout},
                       {"flops", s.flops},
                       {"moved", s.moved},
                       {"seconds", s.seconds},
                       {"workspace", s.workspace},
                       {"retained", s.retained}});
  Json json = {{"format", "partita.calibration"},
               {"version", kVersion},
               {"machine", calibration.machine},
               {"threads", calibration.threads},
               {"samples", samples}};
  return json.dump(1) + "\n";
}

Calibration parse_calibration(std::string_view text, std::string_view where) {
  Json json = parse_json(text, where);
  JsonIn in(json, std::string(where));
  if (in["format"].text() != "partita.calibration")
    in["format"].fail(fmt::format("is \"{}\", needs to be \"partita.calibration\"", in["format"].text()));
  if (in["version"].integer() != kVersion)
    in["version"].fail(
        fmt::format("is {}, this partita reads version {}", in["version"].integer(), kVersion));
  in.only({"format", "version", "machine", "threads", "samples"});
  Calibration calibration{.machine = in["machine"].text(),
                          .threads = static_cast<int>(in["threads"].integer(1, 1 << 16))};
  for (size_t i = 0; i < in["samples"].size(); ++i) {
    JsonIn row = in["samples"][i];
    row.only({"op", "target", "layout", "flops", "moved", "seconds", "workspace", "retained"});
    OpSample sample{row["op"].text(),
                    row["target"].text(),
                    static_cast<int>(row["layout"].integer(0, INT32_MAX)),
                    row["flops"].number(),
                    row["moved"].integer(0, INT64_MAX),
                    row["seconds"].number(),
                    row["workspace"].integer(0, INT64_MAX),
                    row["retained"].integer(0, INT64_MAX)};
    if (!(sample.seconds > 0) || !(sample.flops >= 0))
      row.fail("needs seconds above 0 and flops of 0 or more");
    calibration.samples.push_back(std::move(sample));
  }
  return calibration;
}

}  // namespace partita
