#pragma once

#include <initializer_list>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/namespaces.h"

namespace partita::base {

using Json = nlohmann::ordered_json;

/// Reads JSON text with limits (size, nesting). A syntax error names `where`, line and column.
Json parse_json(std::string_view text, std::string_view where);

/// A JSON value together with the path that leads to it, for strict reading:
/// `JsonIn in(json, "x.model.json"); int64_t v = in["ops"][3]["name"].text()` fails with
/// `x.model.json: ops[3].name: ...` when something is missing or of another type.
class JsonIn {
 public:
  /// REQUIRES: `value` outlives it and all that is read from it.
  JsonIn(const Json& value, std::string where)
      : value_(&value), root_(&value), file_(std::make_shared<const std::string>(std::move(where))) {}

  const Json& raw() const { return *value_; }
  /// `x.model.json: ops[3].name`. Found by searching the whole text, so ask only when something is wrong.
  std::string where() const;

  bool has(const char* key) const;
  /// REQUIRES (of the input): an object with this key.
  JsonIn operator[](const char* key) const;
  /// Element i of an array.
  JsonIn operator[](size_t index) const;
  JsonIn operator[](int index) const { return (*this)[static_cast<size_t>(index)]; }
  size_t size() const;                    // of an array
  std::vector<std::string> keys() const;  // of an object
  /// Every key must be one of `known`; an unknown one is an error that suggests the nearest.
  void only(std::initializer_list<const char*> known) const;

  int64_t integer() const;
  int64_t integer(int64_t low, int64_t high) const;
  double number() const;
  bool boolean() const;
  std::string text() const;
  std::vector<int64_t> integers() const;
  std::vector<std::string> texts() const;

  /// Throws InputError: `where: path: sentence`.
  [[noreturn]] void fail(const std::string& sentence) const;

 private:
  JsonIn at(const Json& value) const;

  const Json* value_;
  const Json* root_;
  std::shared_ptr<const std::string> file_;
};

}  // namespace partita::base
