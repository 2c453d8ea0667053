#include "fuzz_subjects.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "certify/certificate.h"
#include "model/build/build.h"
#include "model/rewrite/retype.h"

namespace partita::run {
namespace {

/// Steps of a few small layers: what a mutant costs is mostly reading its file.
struct SmallModel {
  const char* name;
  const char* config;
  int64_t seq;
  bool ignores_labels = true;
};
constexpr SmallModel kModels[] = {
    {"gpt2",
     R"({"model_type": "gpt2", "n_layer": 1, "n_embd": 8, "n_head": 2, "vocab_size": 12, "n_positions": 8})",
     4},
    {"gpt2-2",
     R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 8, "n_head": 2, "vocab_size": 12, "n_positions": 8})",
     4},
    {"llama",
     R"({"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 8, "num_attention_heads": 4,
         "num_key_value_heads": 2, "intermediate_size": 12, "vocab_size": 12})",
     4},
    {"mixtral",
     R"({"model_type": "mixtral", "num_hidden_layers": 1, "hidden_size": 8, "num_attention_heads": 2,
         "num_key_value_heads": 1, "intermediate_size": 6, "vocab_size": 12, "num_local_experts": 4,
         "num_experts_per_tok": 2})",
     4},
    {"bert",
     R"({"model_type": "bert", "num_hidden_layers": 1, "hidden_size": 8, "num_attention_heads": 2,
         "intermediate_size": 12, "vocab_size": 12, "max_position_embeddings": 8})",
     4},
    {"t5",
     R"({"model_type": "t5", "num_layers": 1, "d_model": 8, "num_heads": 2, "d_kv": 4, "d_ff": 12,
         "vocab_size": 12})",
     4},
    {"mbart",
     R"({"model_type": "mbart", "encoder_layers": 1, "decoder_layers": 1, "d_model": 8,
         "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 12,
         "decoder_ffn_dim": 12, "vocab_size": 12, "max_position_embeddings": 8})",
     4, false},
    {"vit",
     R"({"model_type": "vit", "num_hidden_layers": 1, "hidden_size": 8, "num_attention_heads": 2,
         "intermediate_size": 12, "image_size": 8, "patch_size": 4, "num_labels": 6})",
     0},
    {"swin",
     R"({"model_type": "swin", "embed_dim": 8, "depths": [1, 1], "num_heads": [2, 4], "image_size": 16,
         "patch_size": 4, "window_size": 2, "num_labels": 6})",
     0},
    {"evoformer",
     R"({"model_type": "evoformer", "num_blocks": 1, "c_m": 4, "c_z": 4, "msa_heads": 2, "pair_heads": 2,
         "c_head": 2, "c_outer": 2, "c_triangle": 3, "transition": 2, "sequences": 3, "recycles": 3, "bins": 4,
         "msa_features": 3, "target_features": 3})",
     4},
};

const OptimizerSpec kMomentum{.name = "sgd", .momentum = 0.9};
const OptimizerSpec kNesterov{.name = "sgd", .momentum = 0.9, .nesterov = true};
const OptimizerSpec kGroups{
    .clip = 0.5,
    .groups = {{.params = {"*bias"}, .lr = 2e-3, .weight_decay = 0}, {.params = {"*ln*"}, .lr = 5e-4}}};
const OptimizerSpec kClipped{.clip = 0.5, .precision = {.loss_scale = 8}};
const OptimizerSpec kScaled{.name = "sgd", .precision = {.loss_scale = 16}};
const OptimizerSpec kMaster{
    .precision = {.grad = DType::kFloat64, .master = DType::kFloat64, .loss_scale = 8}};
const OptimizerSpec kMixed{.precision = {.grad = DType::kFloat32, .master = DType::kFloat32}};
const OptimizerSpec kMixedScaled{
    .precision = {.grad = DType::kFloat32, .master = DType::kFloat32, .loss_scale = 64}};

const FuzzRow kRows[] = {
    {"one", "gpt2", {.microbatches = 2}},
    {"dp", "gpt2", {.dp = 2, .microbatches = 2}},
    {"zero1", "llama", {.dp = 2, .zero = 1, .microbatches = 2}},
    {"zero2", "gpt2", {.dp = 3, .zero = 2}},
    {"zero3", "llama", {.dp = 2, .zero = 3, .microbatches = 2}},
    {"hsdp", "gpt2", {.dp = 4, .zero = 3, .replicas = 2}},
    {"tp", "gpt2", {.dp = 2, .tp = 2}},
    {"sp", "llama", {.tp = 2, .sequence = true}},
    {"cp", "llama", {.cp = 2, .microbatches = 2}},
    {"cp-lse", "gpt2", {.cp = 2, .merge = true}},
    {"ep", "mixtral", {.dp = 2, .experts = true}},
    {"coshard", "llama", {.dp = 2, .pieces = 2, .recompute = true}},
    {"recompute", "gpt2", {.dp = 2, .recompute = true, .keep = Keep::kAttention}},
    {"osdp", "gpt2", {.dp = 2, .zdp = {"*"}, .slices = 2, .microbatches = 2}},
    {"overlap", "gpt2", {.dp = 2, .overlap = true, .microbatches = 2}},
    {"overlap-zero3", "llama", {.dp = 2, .zero = 3, .overlap = true, .microbatches = 2}},
    {"uneven", "gpt2", {.dp = 3, .zero = 3, .microbatches = 2}, 7},
    {"loss-pieces", "gpt2", {.dp = 2, .loss_pieces = 2}},
    {"pipeline", "gpt2-2", {.dp = 2, .pp = 2, .microbatches = 2}},
    {"gpipe", "llama", {.pp = 2, .microbatches = 4, .schedule = "gpipe"}},
    {"zb-h1",
     "gpt2-2",
     {.pp = 2, .loss_pieces = 2, .microbatches = 4, .schedule = "zb-h1", .optimizer = kClipped}},
    {"zb-v", "gpt2-2", {.pp = 2, .microbatches = 4, .schedule = "zb-v"}},
    {"chimera", "gpt2-2", {.pp = 2, .microbatches = 4, .schedule = "chimera"}},
    {"wave", "gpt2-2", {.pp = 2, .microbatches = 2, .schedule = "wave", .chunks = 2}},
    {"interlaced", "gpt2-2", {.pp = 2, .microbatches = 2, .schedule = "interlaced"}},
    {"3f1b", "evoformer", {.pp = 2, .microbatches = 2, .schedule = "3f1b"}},
    {"none", "llama", {.dp = 2, .optimizer = {.name = "none"}}},
    {"sgd", "gpt2", {.dp = 2, .zero = 1, .optimizer = kMomentum}},
    {"nesterov", "vit", {.dp = 2, .microbatches = 2, .optimizer = kNesterov}},
    {"groups", "gpt2", {.dp = 2, .zero = 3, .optimizer = kGroups}},
    {"clip", "llama", {.dp = 2, .tp = 2, .zero = 1, .optimizer = kClipped}},
    {"scale", "gpt2", {.dp = 2, .microbatches = 2, .optimizer = kScaled}},
    {"master", "gpt2", {.dp = 2, .zero = 1, .optimizer = kMaster}, 4, false, DType::kFloat32},
    {"bf16", "llama", {.dp = 2, .zero = 3, .optimizer = kMixed}, 4, false, DType::kBFloat16},
    {"fp16", "gpt2", {.dp = 2, .microbatches = 2, .optimizer = kMixedScaled}, 4, false, DType::kFloat16},
    {"bert", "bert", {.dp = 2, .tp = 2}},
    {"t5", "t5", {.dp = 2, .zero = 3, .optimizer = {.clip = 0.5}}},
    {"mbart", "mbart", {.pp = 2, .microbatches = 2}},
    {"vit", "vit", {.tp = 2, .microbatches = 2}},
    {"swin", "swin", {.dp = 2, .zero = 2}},
    {"evoformer", "evoformer", {.dp = 2, .microbatches = 1}},
    {"folded-dp", "gpt2", {.dp = 4, .microbatches = 2}, 8, true},
    {"folded-uneven", "gpt2", {.dp = 3, .zero = 1}, 7, true},
    {"folded-zero3", "llama", {.dp = 4, .zero = 3}, 4, true},
    {"folded-hsdp", "gpt2", {.dp = 4, .zero = 3, .replicas = 2}, 4, true},
    {"folded-sp", "llama", {.dp = 2, .tp = 2, .sequence = true}, 4, true},
    {"folded-pipeline", "gpt2-2", {.dp = 2, .tp = 2, .pp = 2, .microbatches = 2}, 4, true},
    {"folded-clip", "gpt2", {.dp = 2, .tp = 2, .optimizer = {.clip = 0.5}}, 4, true},
};

/// Of every captured model.
const FuzzRow kCapturedRows[] = {
    {"dp", nullptr, {.dp = 2, .optimizer = {.clip = 0.5}}},
    {"zero3", nullptr, {.dp = 2, .zero = 3, .optimizer = kMomentum}},
    {"none", nullptr, {.dp = 2, .optimizer = {.name = "none"}}},
    {"scaled", nullptr, {.optimizer = kClipped}},
};

// A sum in another order is some 1e-15, 1e-7 or, with every op rounded to half precision, 1e-2 off.
double tolerance_of(DType dtype) {
  if (dtype == DType::kFloat64) return 1e-9;
  return dtype == DType::kFloat32 ? 1e-4 : 5e-2;
}

Subject made(const FuzzRow& row, const std::string& name, const Model& whole, bool ignored_labels) {
  Plan plan = recipe(whole, row.spec);
  Subject out{.name = name,
              .whole = whole,
              .optimizer = row.spec.optimizer,
              .prepared = prepare(whole, form_of(plan)),
              .request = {.run = {.steps = 3, .batch = {.ignored_labels = ignored_labels}},
                          .tolerance = tolerance_of(row.dtype)}};
  PassLog log;
  out.text = row.folded ? to_json(lower_folded(out.prepared, plan), out.prepared.model)
                        : to_json(lower::lower(out.prepared, plan, log), out.prepared.model);
  out.tree = parse_json(out.text, name);
  out.text = out.tree.dump();
#ifdef PARTITA_CAN_RUN
  out.expected = partita_run_api(kRunApiVersion)->reference({out.whole, out.optimizer}, out.request.run);
#endif
  return out;
}

const SmallModel& find_model(std::string_view name) {
  auto found = std::find_if(std::begin(kModels), std::end(kModels),
                            [&](const SmallModel& model) { return model.name == name; });
  if (found == std::end(kModels)) input_error("{}: no small model of this name", name);
  return *found;
}

}  // namespace

Subject fuzz_subject(const FuzzRow& row) {
  const SmallModel& model = find_model(row.model);
  Model whole = build_model(model.config, model.name, {.batch = row.batch, .seq = model.seq});
  return made(row, row.name, retype(std::move(whole), row.dtype), model.ignores_labels);
}

std::vector<Subject> fuzz_subjects(const std::vector<std::string>& model_files) {
  std::vector<Subject> subjects;
  for (const FuzzRow& row : kRows) subjects.push_back(fuzz_subject(row));
  for (const std::string& file : model_files)
    for (const FuzzRow& row : kCapturedRows) {
      Model whole = retype(parse_model(read_file(file), file), row.dtype);
      subjects.push_back(made(row, whole.name + "-" + row.name, whole, true));
    }
  return subjects;
}

}  // namespace partita::run
