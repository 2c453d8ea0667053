#include "base/json.h"

#include <fmt/format.h>

#include "base/error.h"
#include "plan/plan.h"

namespace partita::plan {
namespace {

constexpr int kVersion = 1;
constexpr int64_t kMaxDevices = 1 << 20;
constexpr int64_t kMaxSize = int64_t{1} << 48;  // of the batch

std::vector<int32_t> read_devices(const JsonIn& in) {
  std::vector<int32_t> devices;
  for (size_t i = 0; i < in.size(); ++i)
    devices.push_back(static_cast<int32_t>(in[i].integer(0, kMaxDevices - 1)));
  return devices;
}

Stage read_stage(const JsonIn& in) {
  in.only({"ops", "devices", "copies"});
  Stage stage{.ops = in["ops"].texts(), .devices = read_devices(in["devices"])};
  if (in.has("copies"))
    for (size_t i = 0; i < in["copies"].size(); ++i) stage.copies.push_back(read_devices(in["copies"][i]));
  return stage;
}

SplitRule read_split(const JsonIn& in) {
  in.only({"ops", "axis", "atoms", "as"});
  SplitRule rule{.ops = in["ops"].text(), .axis = in["axis"].text()};
  if (in.has("as"))
    rule.as = in["as"].text();
  else
    rule.atoms = in["atoms"].texts();
  return rule;
}

StoreRule read_store(const JsonIn& in) {
  in.only({"params", "axis", "reduce", "what", "leaf"});
  StoreRule rule{.params = in["params"].text(), .axis = in["axis"].text()};
  if (in.has("reduce")) rule.reduce = in["reduce"].text();
  if (in.has("what")) rule.what = in["what"].text();
  if (in.has("leaf")) rule.leaf = in["leaf"].text();
  if (rule.what != "parameter" && rule.what != "gradient" && rule.what != "state")
    in["what"].fail(
        fmt::format("is \"{}\", needs to be \"parameter\", \"gradient\" or \"state\"", rule.what));
  if (rule.reduce != "each" && rule.reduce != "once")
    in["reduce"].fail(fmt::format("is \"{}\", needs to be \"each\" or \"once\"", rule.reduce));
  return rule;
}

template <class T, class Read>
std::vector<T> read_list(const JsonIn& in, Read read) {
  std::vector<T> out;
  for (size_t i = 0; i < in.size(); ++i) out.push_back(read(in[i]));
  return out;
}

std::vector<MeshAxis> read_mesh(const JsonIn& in) {
  std::vector<MeshAxis> mesh;
  int64_t total = 1;
  for (size_t i = 0; i < in.size(); ++i) {
    in[i].only({"name", "size", "across"});
    MeshAxis axis{in[i]["name"].text(), in[i]["size"].integer(1, kMaxDevices)};
    if (in[i].has("across")) axis.across = in[i]["across"].boolean();
    if (axis.size > kMaxDevices / total) in.fail(fmt::format("has more than {} devices", kMaxDevices));
    total *= axis.size;
    for (const MeshAxis& other : mesh)
      if (other.name == axis.name) in[i]["name"].fail("is the name of another axis already");
    mesh.push_back(std::move(axis));
  }
  return mesh;
}

LoopRule read_loop(const JsonIn& in) {
  in.only({"name", "size", "ops", "atoms", "through"});
  LoopRule rule{.name = in["name"].text(),
                .size = in["size"].integer(2, 1 << 20),
                .ops = in["ops"].texts(),
                .atoms = in["atoms"].texts()};
  if (in.has("through")) rule.through = in["through"].boolean();
  return rule;
}

/// The loop "mb" makes the micro-batches and encloses everything; others enclose some ops.
void read_loops(const JsonIn& in, Plan& plan) {
  bool found = false;
  for (size_t i = 0; i < in.size(); ++i) {
    JsonIn loop = in[i];
    if (loop["name"].text() != "mb") {
      plan.loops.push_back(read_loop(loop));
      continue;
    }
    loop.only({"name", "size", "atom"});
    if (found) loop["name"].fail("is there already");
    if (loop["size"].integer() != plan.microbatches)
      loop["size"].fail(
          fmt::format("is {}, but microbatches is {}", loop["size"].integer(), plan.microbatches));
    plan.microbatch_atom = loop["atom"].text();
    found = true;
  }
  if (!found && plan.microbatches > 1) in.fail("needs the loop \"mb\" that makes the micro-batches");
}

void read_header(const JsonIn& in) {
  if (in["format"].text() != "partita.plan")
    in["format"].fail(fmt::format("is \"{}\", needs to be \"partita.plan\"", in["format"].text()));
  if (in["version"].integer() != kVersion)
    in["version"].fail(fmt::format("is {}, this partita reads version {}; make the plan again",
                                   in["version"].integer(), kVersion));
  in.only({"format",     "version",      "summary", "model",   "cluster",   "memory",
           "batch",      "seq",          "dtype",   "mesh",    "unpack",    "masks",
           "key_chunks", "microbatches", "loops",   "stages",  "split",     "store",
           "recompute",  "schedule",     "order",   "overlap", "precision", "optimizer"});
}

}  // namespace

std::string to_json(const Plan& plan) {
  Json out = {{"format", "partita.plan"}, {"version", kVersion},     {"summary", plan.summary},
              {"model", plan.model},      {"cluster", plan.cluster}, {"memory", plan.memory},
              {"batch", plan.batch},      {"dtype", plan.dtype}};
  if (plan.seq) out["seq"] = plan.seq;
  out["mesh"] = Json::array();
  for (const MeshAxis& axis : plan.mesh) {
    out["mesh"].push_back({{"name", axis.name}, {"size", axis.size}});
    if (axis.across) out["mesh"].back()["across"] = true;
  }
  if (plan.unpack) out["unpack"] = true;
  if (plan.masks) out["masks"] = true;
  if (plan.key_chunks > 1) out["key_chunks"] = plan.key_chunks;
  out["microbatches"] = plan.microbatches;
  out["loops"] = Json::array();
  if (plan.microbatches > 1)
    out["loops"].push_back({{"name", "mb"}, {"size", plan.microbatches}, {"atom", plan.microbatch_atom}});
  for (const LoopRule& loop : plan.loops) {
    Json rule = {{"name", loop.name}, {"size", loop.size}, {"ops", loop.ops}, {"atoms", loop.atoms}};
    if (loop.through) rule["through"] = true;
    out["loops"].push_back(std::move(rule));
  }
  out["stages"] = Json::array();
  for (const Stage& s : plan.stages) {
    out["stages"].push_back({{"ops", s.ops}, {"devices", s.devices}});
    if (!s.copies.empty()) out["stages"].back()["copies"] = s.copies;
  }
  out["split"] = Json::array();
  for (const SplitRule& s : plan.split) {
    out["split"].push_back({{"ops", s.ops}, {"axis", s.axis}});
    if (s.as.empty())
      out["split"].back()["atoms"] = s.atoms;
    else
      out["split"].back()["as"] = s.as;
  }
  out["store"] = Json::array();
  for (const StoreRule& s : plan.store) {
    out["store"].push_back({{"params", s.params}, {"axis", s.axis}, {"reduce", s.reduce}, {"what", s.what}});
    if (!s.leaf.empty()) out["store"].back()["leaf"] = s.leaf;
  }
  if (!plan.recompute.empty()) out["recompute"] = Json::array();
  for (const RecomputeRule& r : plan.recompute) {
    out["recompute"].push_back({{"ops", r.ops}});
    if (!r.keep.empty()) out["recompute"].back()["keep"] = r.keep;
  }
  out["schedule"] = plan.schedule;
  if (!plan.order.empty()) out["order"] = plan.order;
  if (plan.overlap) out["overlap"] = true;
  Json precision = precision_json(plan.optimizer.precision);
  if (!precision.empty()) out["precision"] = std::move(precision);
  out["optimizer"] = optimizer_json(plan.optimizer);
  return out.dump(1) + "\n";
}

Plan parse_plan(std::string_view text, std::string_view where) {
  Json json = parse_json(text, where);
  JsonIn in(json, std::string(where));
  read_header(in);
  Plan plan{.model = in["model"].text(), .cluster = in["cluster"].text()};
  plan.memory = in["memory"].integer(0, INT64_MAX);
  plan.batch = in["batch"].integer(0, kMaxSize);
  if (in.has("seq")) plan.seq = in["seq"].integer(0, kMaxSize);
  plan.dtype = in["dtype"].text();
  plan.mesh = read_mesh(in["mesh"]);
  if (in.has("unpack")) plan.unpack = in["unpack"].boolean();
  if (in.has("masks")) plan.masks = in["masks"].boolean();
  if (in.has("key_chunks")) plan.key_chunks = in["key_chunks"].integer(1, 1 << 20);
  plan.microbatches = in["microbatches"].integer(1, 1 << 20);
  read_loops(in["loops"], plan);
  plan.stages = read_list<Stage>(in["stages"], read_stage);
  plan.split = read_list<SplitRule>(in["split"], read_split);
  plan.store = read_list<StoreRule>(in["store"], read_store);
  if (in.has("recompute"))
    plan.recompute = read_list<RecomputeRule>(in["recompute"], [](const JsonIn& rule) {
      rule.only({"ops", "keep"});
      return RecomputeRule{rule["ops"].texts(),
                           rule.has("keep") ? rule["keep"].texts() : std::vector<std::string>{}};
    });
  plan.schedule = in["schedule"].text();
  if (in.has("order")) plan.order = in["order"].texts();
  if (in.has("overlap")) plan.overlap = in["overlap"].boolean();
  plan.optimizer = read_optimizer(in["optimizer"]);
  if (in.has("precision")) plan.optimizer.precision = read_precision(in["precision"]);
  if (in.has("summary")) plan.summary = in["summary"].text();
  return plan;
}

}  // namespace partita::plan
