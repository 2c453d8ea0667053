#include "model/build/config.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/names.h"
#include "model/build/family.h"
#include "model/build/layers.h"

namespace partita::model::build {
namespace {

// So that no product of sizes in a graph leaves 63 bits.
constexpr int64_t kLargest = int64_t{1} << 20;

// A captured step has these sizes where the command line gives none.
constexpr int64_t kUsualBatch = 8, kUsualSeq = 1024;

}  // namespace

bool Config::has(const char* key) const {
  asked_.insert(key);
  return in_.has(key) && !in_[key].raw().is_null();
}

void Config::take(const char* key, std::string value) const { defaults_.push_back({key, std::move(value)}); }

int64_t Config::size(const char* key, int64_t fallback) const {
  if (!has(key)) take(key, fmt::to_string(fallback));
  return size_or(key, fallback);
}

int64_t Config::size_or(const char* key, int64_t derived) const {
  return has(key) ? in_[key].integer(1, kLargest) : derived;
}

std::optional<int64_t> Config::token(const char* key) const {
  if (!has(key)) return std::nullopt;
  return in_[key].integer(0, kLargest);
}

double Config::number(const char* key, double fallback) const {
  double value = has(key) ? in_[key].number() : fallback;
  if (!std::isfinite(value)) in_[key].fail("needs to be a finite number");
  return value;
}

bool Config::boolean(const char* key, bool fallback) const {
  return has(key) ? in_[key].boolean() : fallback;
}

std::string Config::text(const char* key, const std::string& fallback) const {
  return has(key) ? in_[key].text() : fallback;
}

std::vector<int64_t> Config::sizes(const char* key, const std::vector<int64_t>& fallback) const {
  if (!has(key)) {
    take(key, fmt::format("[{}]", fmt::join(fallback, ", ")));
    return fallback;
  }
  std::vector<int64_t> values;
  for (size_t i = 0; i < in_[key].size(); ++i) values.push_back(in_[key][i].integer(1, kLargest));
  if (values.empty()) in_[key].fail("needs at least one number");
  return values;
}

int64_t Config::total(const char* key, int64_t fallback) const {
  if (!has(key) || !in_[key].raw().is_array()) return size(key, fallback);
  int64_t sum = 0;
  for (int64_t part : sizes(key, {})) sum += part;
  return sum;
}

int64_t Config::labels() const {
  bool named = has("id2label");
  if (!named && !has("num_labels")) take("num_labels", "2");
  int64_t count = size_or("num_labels", named ? static_cast<int64_t>(in_["id2label"].keys().size()) : 2);
  if (count < 2) in_.fail(fmt::format("a classifier needs at least 2 labels, this one has {}", count));
  return count;
}

std::string Config::activation(const char* key, const std::string& fallback) const {
  std::string name = text(key, fallback);
  std::vector<std::string> known = activation_names();
  if (std::find(known.begin(), known.end(), name) == known.end())
    in_[key].fail(fmt::format("there is no builder for activation '{}', needs one of {}; or {}{}", name,
                              fmt::join(known, ", "), capture_it(), did_you_mean(name, known)));
  return name;
}

void Config::need(const char* key, bool value) const {
  if (boolean(key, value) != value)
    in_[key].fail(fmt::format("a model with this setting has no builder, needs {}; {}", value, capture_it()));
}

void Config::need_divides(const char* key, int64_t value, const char* parts_key, int64_t parts) const {
  if (value % parts != 0)
    in_.fail(
        fmt::format("{} is {}, needs to be a multiple of {}, which is {}", key, value, parts_key, parts));
}

std::string Config::capture_it() const {
  std::string file = in_.where();
  if (file.starts_with("preset ")) return "capture the model with partita.capture in Python";
  int64_t batch = size_.batch ? size_.batch : kUsualBatch, seq = size_.seq ? size_.seq : kUsualSeq;
  std::string type = in_["model_type"].text();
  bool image = in_.has("image_size") && !in_.has("vocab_size");
  for (const Family& family : families()) image |= family.type == type && !family.text;
  return fmt::format("capture it: partita capture {} --batch {}{} -o {}.model.json", file, batch,
                     image ? "" : fmt::format(" --seq {}", seq), type);
}

}  // namespace partita::model::build
