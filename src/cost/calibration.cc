#include "cost/calibration.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"

namespace partita::cost {
namespace {

constexpr int64_t kVersion = 1;

using Look = std::function<TensorLook(TensorId)>;

void write_tensor(const TensorLook& tensor, std::string& text) {
  text += fmt::format(" {}[{}|{}]", dtype_name(tensor.dtype), fmt::join(tensor.shape, ","),
                      fmt::join(tensor.strides, ","));
}

void write_arg(const Look& look, const Arg& arg, std::string& text) {
  switch (arg.kind) {
    case Arg::kTensor:
      return write_tensor(look(arg.tensor), text);
    case Arg::kInt:
    case Arg::kBool:
      text += fmt::format(" {}", arg.integer);
      return;
    case Arg::kList:
      text += " (";
      for (const Arg& item : arg.items) write_arg(look, item, text);
      text += ")";
      return;
    case Arg::kNone:
      text += " -";
      return;
    default:  // numbers and names change no shape
      text += " .";
  }
}

Json write_sample(const OpSample& s) {
  return {{"op", s.signature},    {"target", s.target},           {"layout", s.layout},
          {"flops", s.flops},     {"dtype", dtype_name(s.dtype)}, {"moved", s.moved},
          {"seconds", s.seconds}, {"workspace", s.workspace},     {"retained", s.retained}};
}

OpSample read_sample(const JsonIn& row) {
  row.only({"op", "target", "layout", "dtype", "flops", "moved", "seconds", "workspace", "retained"});
  OpSample sample{row["op"].text(),
                  row["target"].text(),
                  static_cast<int>(row["layout"].integer(0, INT32_MAX)),
                  row.has("dtype") ? parse_dtype(row["dtype"].text(), row["dtype"].where()) : DType::kFloat32,
                  row["flops"].number(),
                  row["moved"].integer(0, INT64_MAX),
                  row["seconds"].number(),
                  row["workspace"].integer(0, INT64_MAX),
                  row["retained"].integer(0, INT64_MAX)};
  if (!(sample.seconds > 0) || !(sample.flops >= 0)) row.fail("needs seconds above 0 and flops of 0 or more");
  return sample;
}

TransferSample read_transfer(const JsonIn& row) {
  row.only({"kind", "ranks", "bytes", "seconds"});
  TransferSample transfer{row["kind"].text(), static_cast<int>(row["ranks"].integer(2, 1 << 20)),
                          row["bytes"].integer(0, INT64_MAX), row["seconds"].number()};
  if (!(transfer.seconds > 0)) row.fail("needs seconds above 0");
  return transfer;
}

void read_header(const JsonIn& in) {
  if (in["format"].text() != "partita.calibration")
    in["format"].fail(fmt::format("is \"{}\", needs to be \"partita.calibration\"", in["format"].text()));
  if (in["version"].integer() != kVersion)
    in["version"].fail(
        fmt::format("is {}, this partita reads version {}", in["version"].integer(), kVersion));
  in.only({"format", "version", "machine", "threads", "cores", "expected_error", "samples", "transfers"});
}

}  // namespace

std::string signature_of(std::string_view target, const std::vector<Arg>& args,
                         const std::vector<std::pair<std::string, Arg>>& kwargs, const Look& look) {
  std::string text(target);
  for (const Arg& arg : args) write_arg(look, arg, text);
  for (const auto& [name, arg] : kwargs) {
    text += " " + name + "=";
    write_arg(look, arg, text);
  }
  return text;
}

std::string signature_of(const Model& model, const Op& op) {
  return signature_of(op.target, op.args, op.kwargs, [&](TensorId id) {
    const Tensor& tensor = model[id];
    return TensorLook{tensor.shape, tensor.strides, tensor.dtype};
  });
}

Bytes bytes_moved(const Model& model, const Op& op) {
  if (is_view(op)) return 0;
  Bytes moved = 0;
  for (TensorId id : inputs_of(op)) moved += bytes_of(model[id]);
  for (TensorId id : op.outputs) moved += id ? bytes_of(model[id]) : 0;
  return moved;
}

OpSample sample_of(const OpView& view, Bytes moved) {
  OpSample sample{.target = view.op->target, .dtype = view.dtype, .flops = flops_of(view), .moved = moved};
  for (size_t k = 0; k < view.in.size() && k < 30; ++k)
    sample.layout |= (view.dense(static_cast<int>(k)) ? 0 : 1) << k;
  return sample;
}

OpSample sample_of(const Model& model, const Op& op) {
  OpSample sample = sample_of(view_of(model, op), bytes_moved(model, op));
  sample.signature = signature_of(model, op);
  return sample;
}

std::string to_json(const Calibration& calibration) {
  Json samples = Json::array(), transfers = Json::array();
  for (const OpSample& sample : calibration.samples) samples.push_back(write_sample(sample));
  for (const TransferSample& t : calibration.transfers)
    transfers.push_back({{"kind", t.kind}, {"ranks", t.ranks}, {"bytes", t.bytes}, {"seconds", t.seconds}});
  Json json = {{"format", "partita.calibration"},
               {"version", kVersion},
               {"machine", calibration.machine},
               {"threads", calibration.threads},
               {"cores", calibration.cores},
               {"expected_error", calibration.expected_error},
               {"samples", samples},
               {"transfers", transfers}};
  return json.dump(1) + "\n";
}

Calibration parse_calibration(std::string_view text, std::string_view where) {
  Json json = parse_json(text, where);
  JsonIn in(json, std::string(where));
  read_header(in);
  Calibration calibration{.machine = in["machine"].text(),
                          .threads = static_cast<int>(in["threads"].integer(1, 1 << 16))};
  if (in.has("cores")) calibration.cores = static_cast<int>(in["cores"].integer(0, 1 << 16));
  if (in.has("expected_error")) calibration.expected_error = in["expected_error"].number();
  if (!(calibration.expected_error >= 0)) in["expected_error"].fail("needs to be 0 or more");
  for (size_t i = 0; i < in["samples"].size(); ++i)
    calibration.samples.push_back(read_sample(in["samples"][i]));
  for (size_t i = 0; in.has("transfers") && i < in["transfers"].size(); ++i)
    calibration.transfers.push_back(read_transfer(in["transfers"][i]));
  return calibration;
}

}  // namespace partita::cost
