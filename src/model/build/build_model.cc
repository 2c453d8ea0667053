#include "model/build/build.h"

#include <algorithm>

#include "base/error.h"
#include "base/names.h"
#include "model/build/config_notes.h"

namespace partita::model::build {
namespace {

// Where a config.json is all there is to go by.
constexpr StepSize kDefault = {8, 128};

// So that no product of sizes in a graph leaves 63 bits.
constexpr int64_t kMostTokens = int64_t{1} << 32, kLongest = int64_t{1} << 20;

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const Family& row : families()) names.emplace_back(row.type);
  return names;
}

const Family& family_of(const Config& config) {
  const JsonIn& in = config.in();
  if (!in.has("model_type"))
    in.fail("there is no model_type, so this is not a Hugging Face config; give the config.json of a model");
  std::string type = in["model_type"].text();
  for (const Family& row : families())
    if (row.type == type) return row;
  in["model_type"].fail(fmt::format("there is no builder for '{}', only for {}; {}{}", type,
                                    fmt::join(family_names(), ", "), config.capture_it(),
                                    did_you_mean(type, family_names())));
}

// A config may belong to another head than the one that is built: a classifier on a language model, for
// example.
void need_head(const Config& config, const Family& family) {
  if (!config.has("architectures")) return;
  std::vector<std::string> heads = config.in()["architectures"].texts();
  if (heads.empty() || std::find(heads.begin(), heads.end(), family.head) != heads.end()) return;
  config.in()["architectures"].fail(
      fmt::format("there is no builder for {}, only for {}; {}", heads[0], family.head, config.capture_it()));
}

StepSize with_default(StepSize size, StepSize fallback) {
  StepSize step{size.batch ? size.batch : fallback.batch, size.seq ? size.seq : fallback.seq};
  if (step.batch > kMostTokens || step.seq > kLongest ||
      step.batch > kMostTokens / std::max<int64_t>(step.seq, 1))
    input_error(
        "--batch {} --seq {}: too large to compute with; a sequence holds up to {} tokens, a batch {}",
        step.batch, step.seq, kLongest, kMostTokens);
  return step;
}

Model build(const Json& json, std::string_view where, StepSize size, StepSize fallback,
            std::vector<std::string>* notes = nullptr) {
  Config config(json, std::string(where), size);
  const Family& family = family_of(config);
  need_head(config, family);
  refuse_unbuilt(config, family);
  if (size.seq && !family.text)
    config.in().fail("--seq: an image model has no sequence length; leave it out");
  Model model = family.build(config, with_default(size, fallback));
  if (notes) *notes = notes_on(config, family);
  return model;
}

}  // namespace
}  // namespace partita::model::build

namespace partita::model {

Model build_model(const Preset& preset, StepSize size) {
  std::string where = fmt::format("preset {}", preset.name);
  Model model = build::build(parse_json(preset.config, where), where, size, preset.size);
  model.name = preset.name;
  return model;
}

Model build_model(std::string_view config, std::string_view where, StepSize size,
                  std::vector<std::string>* notes) {
  return build::build(parse_json(config, where), where, size, build::kDefault, notes);
}

std::optional<ConfigDType> config_dtype(std::string_view config, std::string_view where) {
  Json json = parse_json(config, where);
  build::Config in(json, std::string(where));
  for (const char* key : {"dtype", "torch_dtype"})
    if (in.has(key)) {
      std::string name = in.text(key, "");
      if (name.starts_with("torch.")) name.erase(0, 6);
      return ConfigDType{key, name};
    }
  return std::nullopt;
}

ModelShape shape_of(const Preset& preset) {
  Json json = parse_json(preset.config, preset.name);
  build::Config config(json, std::string(preset.name));
  const build::Family& family = build::family_of(config);
  return {std::string(family.type), config.total(family.layers_key, family.layers),
          config.size(family.hidden_key, family.hidden)};
}

}  // namespace partita::model
