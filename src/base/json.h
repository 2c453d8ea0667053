#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace partita {

using Json = nlohmann::ordered_json;

/// Reads JSON text with limits (size, nesting). A syntax error names `where`, line and column.
Json parse_json(std::string_view text, std::string_view where);

/// The bytes of a file; InputError if it cannot be read.
std::string read_file(const std::string& path);
/// Writes beside and renames, so that a reader never sees half a file.
void write_file(const std::string& path, std::string_view text);

/// A JSON value together with the path that leads to it, for strict reading:
/// `JsonIn in(json, "x.model.json"); int64_t v = in["ops"][3]["name"].text()` fails with
/// `x.model.json: ops[3].name: ...` when something is missing or of another type.
class JsonIn {
 public:
  JsonIn(const Json& value, std::string where) : value_(&value), where_(std::move(where)) {}

  const Json& raw() const { return *value_; }
  const std::string& where() const { return where_; }

  bool has(const char* key) const;
  /// REQUIRES (of the input): an object with this key.
  JsonIn operator[](const char* key) const;
  /// Element i of an array.
  JsonIn operator[](size_t index) const;
  JsonIn operator[](int index) const { return (*this)[static_cast<size_t>(index)]; }
  size_t size() const;                    // of an array
  std::vector<std::string> keys() const;  // of an object
  /// Every key must be one of `known`; an unknown one is an error that suggests the nearest.
  void only(const std::vector<std::string>& known) const;

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
  JsonIn at(const Json& value, const std::string& step) const;

  const Json* value_;
  std::string where_;
};

}  // namespace partita
