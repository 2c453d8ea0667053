#include "base/json.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/names.h"

namespace partita {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 30;
constexpr int kMaxDepth = 200;

/// Nesting is checked before parsing: a recursive destructor of 10^6 levels would end the process.
void check_depth(std::string_view text, std::string_view where) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth)
        input_error("{}: nested more than {} levels deep at byte {}", where, kMaxDepth, i);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
}

}  // namespace

Json parse_json(std::string_view text, std::string_view where) {
  if (text.size() > kMaxBytes)
    input_error("{}: {} bytes, more than the limit of {}", where, text.size(), kMaxBytes);
  check_depth(text, where);
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    size_t at = std::min(error.byte > 0 ? error.byte - 1 : 0, text.size());
    size_t line = 1 + std::count(text.begin(), text.begin() + at, '\n');
    size_t start = text.rfind('\n', at == 0 ? 0 : at - 1);
    size_t column = start == text.npos ? at + 1 : at - start;
    if (at >= text.size())
      input_error("{}:{}:{}: the file ends in the middle of a JSON value; it seems cut short: write it again",
                  where, line, column);
    input_error("{}:{}:{}: this is not JSON: unexpected '{}'", where, line, column, text.substr(at, 1));
  } catch (const Json::out_of_range& error) {
    std::string_view reason = error.what();
    input_error("{}: {}", where,
                reason.substr(reason.find("] ") + 2));  // after the library's own error number
  }
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in || std::filesystem::is_directory(path))
    input_error("{}: cannot read this file; does it exist?", path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void write_file(const std::string& path, std::string_view text) {
  std::string beside = path + ".part";
  {
    std::ofstream out(beside, std::ios::binary);
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    if (!out.flush()) input_error("{}: cannot write this file; does its folder exist?", path);
  }
  std::error_code error;
  std::filesystem::rename(beside, path, error);
  if (error) input_error("{}: cannot write this file: {}", path, error.message());
}

namespace {

/// The steps from `root` to the value at this address, such as ".ops[3].name".
bool find_path(const Json& root, const Json* value, std::string& path) {
  if (&root == value) return true;
  size_t length = path.size(), index = 0;
  for (auto item = root.begin(); root.is_structured() && item != root.end(); ++item, ++index) {
    path += root.is_object() ? "." + item.key() : fmt::format("[{}]", index);
    if (find_path(*item, value, path)) return true;
    path.resize(length);
  }
  return false;
}

}  // namespace

std::string JsonIn::where() const {
  std::string path;
  CHECK(find_path(*root_, value_, path));
  if (path.empty()) return *file_;
  return *file_ + ": " + path.substr(path[0] == '.');
}

void JsonIn::fail(const std::string& sentence) const { throw InputError(where() + ": " + sentence); }

JsonIn JsonIn::at(const Json& value) const {
  JsonIn inner = *this;
  inner.value_ = &value;
  return inner;
}

bool JsonIn::has(const char* key) const { return value_->is_object() && value_->contains(key); }

JsonIn JsonIn::operator[](const char* key) const {
  if (!value_->is_object()) fail(fmt::format("needs to be an object with \"{}\"", key));
  auto found = value_->find(key);
  if (found == value_->end()) fail(fmt::format("\"{}\" is missing", key));
  return at(*found);
}

JsonIn JsonIn::operator[](size_t index) const {
  CHECK(index < size());
  return at((*value_)[index]);
}

size_t JsonIn::size() const {
  if (!value_->is_array()) fail("needs to be a list");
  return value_->size();
}

std::vector<std::string> JsonIn::keys() const {
  if (!value_->is_object()) fail("needs to be an object");
  std::vector<std::string> keys;
  for (const auto& item : value_->items()) keys.push_back(item.key());
  return keys;
}

void JsonIn::only(std::initializer_list<const char*> known) const {
  if (!value_->is_object()) fail("needs to be an object");
  for (const auto& item : value_->items()) {
    const std::string& key = item.key();
    if (std::find(known.begin(), known.end(), key) == known.end())
      fail(fmt::format("unknown key \"{}\"{}", key, did_you_mean(key, {known.begin(), known.end()})));
  }
}

int64_t JsonIn::integer() const {
  if (value_->is_number_unsigned() && value_->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
    fail("is larger than a 64-bit integer");
  if (!value_->is_number_integer()) fail("needs to be a whole number");
  return value_->get<int64_t>();
}

int64_t JsonIn::integer(int64_t low, int64_t high) const {
  int64_t value = integer();
  if (value < low || value > high) fail(fmt::format("is {}, needs to be from {} to {}", value, low, high));
  return value;
}

double JsonIn::number() const {
  if (!value_->is_number()) fail("needs to be a number");
  return value_->get<double>();
}

bool JsonIn::boolean() const {
  if (!value_->is_boolean()) fail("needs to be true or false");
  return value_->get<bool>();
}

std::string JsonIn::text() const {
  if (!value_->is_string()) fail("needs to be text");
  return value_->get<std::string>();
}

std::vector<int64_t> JsonIn::integers() const {
  std::vector<int64_t> out;
  for (size_t i = 0; i < size(); ++i) out.push_back((*this)[i].integer());
  return out;
}

std::vector<std::string> JsonIn::texts() const {
  std::vector<std::string> out;
  for (size_t i = 0; i < size(); ++i) out.push_back((*this)[i].text());
  return out;
}

}  // namespace partita
