#include "base/json.h"

#include "base/error.h"
#include "plan/plan.h"

namespace partita {
namespace {

constexpr int kVersion = 1;

Json optimizer_json(const OptimizerSpec& o) {
  return {{"name", o.name},        {"lr", o.lr},   {"beta1", o.beta1},
          {"beta2", o.beta2},      {"eps", o.eps}, {"weight_decay", o.weight_decay},
          {"momentum", o.momentum}};
}

OptimizerSpec read_optimizer(const JsonIn& in) {
  in.only({"name", "lr", "beta1", "beta2", "eps", "weight_decay", "momentum"});
  OptimizerSpec o;
  o.name = in["name"].text();
  if (o.name != "adamw" && o.name != "sgd" && o.name != "none")
    in["name"].fail("needs to be adamw, sgd or none");
  auto number = [&](const char* key, double& value) {
    if (in.has(key)) value = in[key].number();
  };
  number("lr", o.lr);
  number("beta1", o.beta1);
  number("beta2", o.beta2);
  number("eps", o.eps);
  number("weight_decay", o.weight_decay);
  number("momentum", o.momentum);
  return o;
}

Stage read_stage(const JsonIn& in) {
  in.only({"ops", "devices"});
  Stage stage{.ops = in["ops"].texts()};
  for (int64_t device : in["devices"].integers()) stage.devices.push_back(static_cast<int32_t>(device));
  return stage;
}

SplitRule read_split(const JsonIn& in) {
  in.only({"ops", "axis", "atoms"});
  return {.ops = in["ops"].text(), .axis = in["axis"].text(), .atoms = in["atoms"].texts()};
}

StoreRule read_store(const JsonIn& in) {
  in.only({"params", "axis", "reduce", "what"});
  StoreRule rule{.params = in["params"].text(), .axis = in["axis"].text()};
  if (in.has("reduce")) rule.reduce = in["reduce"].text();
  if (in.has("what")) rule.what = in["what"].text();
  if (rule.what != "parameter" && rule.what != "gradient" && rule.what != "state")
    in["what"].fail("needs to be \"parameter\", \"gradient\" or \"state\"");
  if (rule.reduce != "each" && rule.reduce != "once") in["reduce"].fail("needs to be \"each\" or \"once\"");
  return rule;
}

template <class T, class Read>
std::vector<T> read_list(const JsonIn& in, Read read) {
  std::vector<T> out;
  for (size_t i = 0; i < in.size(); ++i) out.push_back(read(in[i]));
  return out;
}

}  // namespace

std::string to_json(const Plan& plan) {
  Json out = {{"format", "partita.plan"}, {"version", kVersion},     {"summary", plan.summary},
              {"model", plan.model},      {"cluster", plan.cluster}, {"memory", plan.memory},
              {"batch", plan.batch},      {"dtype", plan.dtype}};
  out["mesh"] = Json::array();
  for (const MeshAxis& axis : plan.mesh) out["mesh"].push_back({{"name", axis.name}, {"size", axis.size}});
  if (plan.unpack) out["unpack"] = true;
  out["microbatches"] = plan.microbatches;
  out["loops"] = Json::array();
  if (plan.microbatches > 1)
    out["loops"].push_back({{"name", "mb"}, {"size", plan.microbatches}, {"atom", plan.microbatch_atom}});
  out["stages"] = Json::array();
  for (const Stage& s : plan.stages) out["stages"].push_back({{"ops", s.ops}, {"devices", s.devices}});
  out["split"] = Json::array();
  for (const SplitRule& s : plan.split)
    out["split"].push_back({{"ops", s.ops}, {"axis", s.axis}, {"atoms", s.atoms}});
  out["store"] = Json::array();
  for (const StoreRule& s : plan.store)
    out["store"].push_back({{"params", s.params}, {"axis", s.axis}, {"reduce", s.reduce}, {"what", s.what}});
  if (!plan.recompute.empty()) out["recompute"] = Json::array();
  for (const RecomputeRule& r : plan.recompute) out["recompute"].push_back({{"ops", r.ops}});
  out["schedule"] = plan.schedule;
  out["optimizer"] = optimizer_json(plan.optimizer);
  return out.dump(1) + "\n";
}

Plan parse_plan(std::string_view text, std::string_view where) {
  Json json = parse_json(text, where);
  JsonIn in(json, std::string(where));
  in.only({"format", "version", "summary", "model", "cluster", "memory", "batch", "dtype", "mesh", "unpack",
           "microbatches", "loops", "stages", "split", "store", "recompute", "schedule", "optimizer"});
  if (in["format"].text() != "partita.plan")
    in["format"].fail("this is not a plan: needs to be \"partita.plan\"");
  in["version"].integer(1, kVersion);
  Plan plan{.model = in["model"].text(), .cluster = in["cluster"].text()};
  plan.memory = in["memory"].integer(0, INT64_MAX);
  plan.batch = in["batch"].integer(0, INT64_MAX);
  plan.dtype = in["dtype"].text();
  plan.mesh = read_list<MeshAxis>(in["mesh"], [](const JsonIn& axis) {
    axis.only({"name", "size"});
    return MeshAxis{axis["name"].text(), axis["size"].integer(1, 1 << 20)};
  });
  if (in.has("unpack")) plan.unpack = in["unpack"].boolean();
  plan.microbatches = in["microbatches"].integer(1, 1 << 20);
  JsonIn loops = in["loops"];
  if (loops.size() > 1) loops.fail("one time loop, \"mb\", is known; more come later");
  if (loops.size() == 1) plan.microbatch_atom = loops[size_t{0}]["atom"].text();
  if (plan.microbatches > 1 && loops.size() == 0)
    loops.fail("needs the loop \"mb\" that makes the micro-batches");
  plan.stages = read_list<Stage>(in["stages"], read_stage);
  plan.split = read_list<SplitRule>(in["split"], read_split);
  plan.store = read_list<StoreRule>(in["store"], read_store);
  if (in.has("recompute"))
    plan.recompute = read_list<RecomputeRule>(in["recompute"], [](const JsonIn& rule) {
      rule.only({"ops"});
      return RecomputeRule{rule["ops"].texts()};
    });
  plan.schedule = in["schedule"].text();
  plan.optimizer = read_optimizer(in["optimizer"]);
  if (in.has("summary")) plan.summary = in["summary"].text();
  return plan;
}

}  // namespace partita
