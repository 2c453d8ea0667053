#include "base/json.h"

#include <algorithm>

#include "base/error.h"
#include "base/names.h"

namespace partita::base {
namespace {

constexpr int kMaxDepth = 200;
constexpr size_t kMaxBytes = size_t{1} << 30;
constexpr size_t kMaxShown = 300;  // of a sentence that repeats what a file says

/// "file.json:3:17".
std::string place_of(std::string_view text, size_t at, std::string_view where) {
  at = std::min(at, text.size());
  size_t line = 1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n');
  size_t start = at == 0 ? text.npos : text.rfind('\n', at - 1);
  return fmt::format("{}:{}:{}", where, line, start == text.npos ? at + 1 : at - start);
}

/// Looks at the text before it is parsed: a recursive destructor of 10^6 levels would end the process, and of
/// two equal keys the library would keep the last without a word.
class Scanner {
 public:
  Scanner(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  void run() {
    for (; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      if (c == '"')
        string();
      else if (c == '[' || c == '{')
        open();
      else if ((c == ']' || c == '}') && !starts_.empty())
        close();
      else if (c == ':')
        keys_.push_back(last_);
    }
  }

 private:
  void string() {
    size_t begin = ++at_;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    last_ = text_.substr(begin, std::min(at_, text_.size()) - begin);
  }

  void open() {
    starts_.push_back(keys_.size());
    if (starts_.size() > kMaxDepth)
      input_error("{}: nested more than {} levels deep", place_of(text_, at_, where_), kMaxDepth);
  }

  void close() {
    auto begin = keys_.begin() + static_cast<ptrdiff_t>(starts_.back());
    std::sort(begin, keys_.end());
    auto twice = std::adjacent_find(begin, keys_.end());
    if (twice != keys_.end()) {
      size_t second = std::max(twice[0].data(), twice[1].data()) - text_.data();
      input_error("{}: the key \"{}\" stands twice in one object", place_of(text_, second - 1, where_),
                  twice->substr(0, kMaxShown));
    }
    keys_.erase(begin, keys_.end());
    starts_.pop_back();
  }

  std::string_view text_, where_, last_;
  size_t at_ = 0;
  std::vector<std::string_view> keys_;  // of all objects that are open
  std::vector<size_t> starts_;          // where those of each begin
};

/// One character as a person can read it.
std::string shown(unsigned char c) {
  return c >= 0x20 && c < 0x7f ? fmt::format("'{}'", static_cast<char>(c)) : fmt::format("byte 0x{:02x}", c);
}

}  // namespace

Json parse_json(std::string_view text, std::string_view where) {
  if (text.size() > kMaxBytes)
    input_error("{}: {} bytes, more than the limit of {}", where, text.size(), kMaxBytes);
  Scanner(text, where).run();
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    size_t at = std::min(error.byte > 0 ? error.byte - 1 : 0, text.size());
    if (at >= text.size())
      input_error("{}: the file ends in the middle of a JSON value; it seems cut short: write it again",
                  place_of(text, at, where));
    input_error("{}: this is not JSON: unexpected {}", place_of(text, at, where),
                shown(static_cast<unsigned char>(text[at])));
  } catch (const Json::out_of_range& error) {
    // The library tells the number but not where it stands.
    std::string_view reason = error.what();
    size_t begin = std::min(reason.find('\'') + 1, reason.size());
    std::string_view number = reason.substr(begin, reason.rfind('\'') - begin);
    input_error("{}: the number {} is too large", place_of(text, text.find(number), where),
                number.substr(0, kMaxShown));
  }
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

void JsonIn::fail(const std::string& sentence) const {
  throw InputError(where() + ": " +
                   (sentence.size() > kMaxShown ? sentence.substr(0, kMaxShown) + "..." : sentence));
}

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

}  // namespace partita::base
