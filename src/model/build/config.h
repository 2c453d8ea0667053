#pragma once

#include <optional>

#include "base/json.h"

namespace partita::build {

/// A Hugging Face config, read strictly: a key that is absent or null has its default, one of another type or
/// out of bounds is an InputError that names it. Keys nobody asks for are left alone, as these files carry
/// many.
class Config {
 public:
  Config(const Json& json, std::string where) : in_(json, std::move(where)) {}

  bool has(const char* key) const;
  /// A count or size, at least 1.
  int64_t size(const char* key, int64_t fallback) const;
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

 private:
  JsonIn in_;
};

}  // namespace partita::build
