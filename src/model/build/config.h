#pragma once

#include <optional>
#include <set>

#include "base/json.h"
#include "model/build/build.h"

namespace partita::model::build {

/// A Hugging Face config, read strictly: a key that is absent or null has its default, one of another type or
/// out of bounds is an InputError that names it. It remembers which keys were asked for and which defaults
/// were taken, so that notes can name the rest (config_notes.h).
class Config {
 public:
  /// `size`: what the command line gave; zeros where it gave nothing.
  Config(const Json& json, std::string where, StepSize size = {})
      : in_(json, std::move(where)), size_(size) {}

  bool has(const char* key) const;
  /// A count or size, at least 1. A default is remembered as taken.
  int64_t size(const char* key, int64_t fallback) const;
  /// The same where the default follows from other sizes, so that its absence says nothing: `head_dim`.
  int64_t size_or(const char* key, int64_t derived) const;
  /// An id of a token; none where the key is absent or null.
  std::optional<int64_t> token(const char* key) const;
  double number(const char* key, double fallback) const;
  bool boolean(const char* key, bool fallback) const;
  std::string text(const char* key, const std::string& fallback) const;
  std::vector<int64_t> sizes(const char* key, const std::vector<int64_t>& fallback) const;
  /// A size, or the sum of a list of sizes: layers of a model in stages.
  int64_t total(const char* key, int64_t fallback) const;
  /// How many classes: `num_labels`, or the entries of `id2label`, or 2.
  int64_t labels() const;
  /// The name of an activation the builders know.
  std::string activation(const char* key, const std::string& fallback) const;

  /// Throws InputError unless `key` has this value or is absent: for settings that would change the graph.
  void need(const char* key, bool value) const;
  /// Throws InputError unless `value` divides by `parts`. Example: "hidden_size", "num_attention_heads".
  void need_divides(const char* key, int64_t value, const char* parts_key, int64_t parts) const;

  const JsonIn& in() const { return in_; }

  /// Where no builder does: "capture it: partita capture config.json --batch 8 --seq 1024 -o x.model.json".
  std::string capture_it() const;

  /// A size that the config leaves out, and what was taken.
  struct Default {
    std::string key, value;
  };
  const std::vector<Default>& defaults() const { return defaults_; }
  const std::set<std::string>& asked() const { return asked_; }

 private:
  void take(const char* key, std::string value) const;

  JsonIn in_;
  StepSize size_;
  // Reading is const to the builders; what was read is kept beside it.
  mutable std::set<std::string> asked_;
  mutable std::vector<Default> defaults_;
};

}  // namespace partita::model::build
