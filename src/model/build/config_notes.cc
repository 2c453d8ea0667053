#include "model/build/config_notes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/names.h"
#include "model/build/config_keys.h"

namespace partita::model::build {
namespace {

bool contains(std::span<const std::string_view> keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

// Builders have one form. Eager attention keeps its scores, which is most of the memory of a long sequence; a
// fused kernel of another name computes what sdpa does.
void refuse_attention(const Config& config, const char* key) {
  if (!config.has(key)) return;
  std::string name = config.text(key, "sdpa");
  if (name == "sdpa") return;
  std::string remedy = name == "eager" ? config.capture_it() : "write \"sdpa\" or leave the key out";
  config.in()[key].fail(
      fmt::format("is \"{}\", and builders compute attention with scaled_dot_product_attention (\"sdpa\"), "
                  "which keeps no scores; {}",
                  name, remedy));
}

void refuse_loss(const Config& config, const Family& family) {
  std::string loss = config.text("problem_type", "");
  if (family.text || loss.empty() || loss == "single_label_classification") return;
  config.in()["problem_type"].fail(fmt::format(
      "the loss of \"{}\" has no builder, needs single_label_classification; {}", loss, config.capture_it()));
}

void refuse_quantized(const Config& config) {
  if (config.has("quantization_config"))
    config.in()["quantization_config"].fail(
        "quantized weights cannot be trained so; take the config of the model before it was quantized, or "
        "leave this key out");
}

// Hugging Face would take the value; a builder that overlooks it would build another size.
void refuse_other_names(const Config& config, const Family& family) {
  for (const std::string& key : config.in().keys()) {
    std::string_view own = own_name(family.type, key);
    if (!own.empty() && config.in()[key.c_str()].raw() != config.in().raw().value(own, Json()))
      config.in()[key.c_str()].fail(fmt::format("{} calls this {}; rename the key", family.keys_of, own));
  }
}

std::string missing(const Config& config, const Family& family) {
  std::vector<std::string> taken;
  for (const Config::Default& one : config.defaults())
    taken.push_back(fmt::format("{} not given, {} taken", one.key, one.value));
  if (taken.empty()) return "";
  return fmt::format("{} ({} default{})", fmt::join(taken, "; "),
                     family.head.empty() ? "the builder's" : "Hugging Face's", taken.size() > 1 ? "s" : "");
}

std::string dropped(const Config& config) {
  std::vector<std::string> shares;
  for (std::string_view key : dropout_keys()) {
    if (!config.in().has(key.data()) || !config.in()[key.data()].raw().is_number()) continue;
    double share = config.in()[key.data()].number();
    if (share > 0) shares.push_back(fmt::format("{} {}", key, share));
  }
  if (shares.empty()) return "";
  return fmt::format("{} left out: builders make steps without dropout; partita capture keeps it",
                     fmt::join(shares, ", "));
}

bool is_known(const Config& config, const Family& family, std::string_view key) {
  return config.asked().contains(std::string(key)) || contains(generic_keys(), key) ||
         contains(idle_keys(family.type), key) || contains(dropout_keys(), key) ||
         !own_name(family.type, key).empty();
}

// What the builder reads comes first: of two names equally near a size is meant.
std::vector<std::string> known_keys(const Config& config, const Family& family) {
  std::vector<std::string> known(config.asked().begin(), config.asked().end());
  for (auto keys : {idle_keys(family.type), dropout_keys(), generic_keys()})
    known.insert(known.end(), keys.begin(), keys.end());
  return known;
}

}  // namespace

void refuse_unbuilt(const Config& config, const Family& family) {
  for (const char* key : {"attn_implementation", "_attn_implementation"}) refuse_attention(config, key);
  refuse_quantized(config);
  refuse_loss(config, family);
  refuse_other_names(config, family);
  for (const char* key : {"add_cross_attention", "tie_encoder_decoder"}) config.need(key, false);
  if (config.has("pruned_heads") && !config.in()["pruned_heads"].raw().empty())
    config.in()["pruned_heads"].fail(fmt::format(
        "a model without some of its heads has no builder, needs to be empty; {}", config.capture_it()));
}

std::vector<std::string> notes_on(const Config& config, const Family& family) {
  std::string file = config.in().where();
  std::vector<std::string> notes;
  auto add = [&](const std::string& sentence) {
    if (!sentence.empty()) notes.push_back(fmt::format("{}: {}", file, sentence));
  };
  add(missing(config, family));
  for (const std::string& key : config.in().keys())
    if (!is_known(config, family, key))
      add(fmt::format("{}: not a key of {}{}", key, family.keys_of,
                      did_you_mean(key, known_keys(config, family))));
  add(dropped(config));
  return notes;
}

}  // namespace partita::model::build
