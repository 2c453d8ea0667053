#include "reshard/boxes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/error.h"

namespace partita::reshard {
namespace {

constexpr std::string_view kExample = "0[0:512,0:1024] | 1[512:1024,0:1024]v1/2";

std::string_view trim(std::string_view text) {
  size_t begin = text.find_first_not_of(" \t\n");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

std::vector<std::string_view> split(std::string_view text, char mark) {
  std::vector<std::string_view> parts;
  for (size_t at = 0;;) {
    size_t end = text.find(mark, at);
    parts.push_back(trim(text.substr(at, end == text.npos ? end : end - at)));
    if (end == text.npos) return parts;
    at = end + 1;
  }
}

/// Walks the text of one box and knows how to complain about it.
class BoxReader {
 public:
  BoxReader(std::string_view text, std::string where) : text_(text), where_(std::move(where)) {}

  Piece read(const std::vector<int64_t>& shape) {
    Piece piece;
    piece.device = static_cast<int32_t>(number("a device number", 0, kMaxDevice));
    expect('[', "the device number");
    for (size_t d = 0; d < shape.size(); ++d) {
      if (d) expect_next_dimension(d, shape.size());
      piece.region.push_back(interval(d, shape[d]));
    }
    if (peek() == ',')
      fail("has more than the {} dimensions of --shape; write one begin:end for each", shape.size());
    expect(']', "the last interval");
    if (peek() == 'v') piece.addend = addend();
    if (peek() != '\0')
      fail("has '{}' after its end; separate boxes with | and write a partial as v0/2", rest());
    return piece;
  }

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> sentence, Args&&... args) const {
    std::string_view shown = text_.substr(0, 60);
    throw InputError(fmt::format("{}: '{}'{} {}", where_, shown, shown.size() < text_.size() ? "..." : "",
                                 fmt::format(sentence, std::forward<Args>(args)...)));
  }

 private:
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
  }
  char peek() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  std::string_view rest() const { return text_.substr(at_, 20); }

  void expect(char mark, std::string_view before) {
    if (peek() != mark)
      fail("needs '{}' after {}, not '{}'; a box looks like 0[0:512,0:1024]", mark, before,
           at_ < text_.size() ? rest() : "nothing");
    ++at_;
  }

  void expect_next_dimension(size_t read, size_t needed) {
    if (peek() == ']')
      fail("has {} of the {} dimensions of --shape; write one begin:end for each", read, needed);
    expect(',', "an interval");
  }

  int64_t number(std::string_view what, int64_t low, int64_t high) {
    skip();
    int64_t value = 0;
    auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error == std::errc::invalid_argument)
      fail("needs {} where '{}' stands; a box looks like 0[0:512,0:1024]", what,
           at_ < text_.size() ? rest() : "nothing");
    if (error != std::errc() || value < low || value > high)
      fail("has {} as {}; needs {} to {}", std::string_view(text_.data() + at_, end), what, low, high);
    at_ = end - text_.data();
    return value;
  }

  Interval interval(size_t dim, int64_t length) {
    Interval side;
    side.begin = number("the begin of an interval", 0, kMaxElements);
    expect(':', "the begin of an interval");
    side.end = number("the end of an interval", 0, kMaxElements);
    if (side.begin >= side.end)
      fail("is empty in dimension {} ({}:{}); the end is exclusive and must be larger than the begin", dim,
           side.begin, side.end);
    if (side.end > length)
      fail("ends at {} in dimension {}, which has only {} elements; end it at {} or change --shape", side.end,
           dim, length, length);
    return side;
  }

  Addend addend() {
    ++at_;
    Addend addend;
    addend.index = number("the number of a partial", 0, kMaxAddends);
    expect('/', "the number of a partial");
    addend.count = number("the count of partials", 1, kMaxAddends);
    if (addend.index >= addend.count)
      fail("is partial {} of {}; partials count from 0, so the last one is v{}/{}", addend.index,
           addend.count, addend.count - 1, addend.count);
    return addend;
  }

  std::string_view text_;
  std::string where_;
  size_t at_ = 0;
};

/// Adds the devices to `seen`.
std::vector<int32_t> parse_group(std::string_view text, std::string_view where, std::set<int32_t>& seen) {
  std::vector<int32_t> group;
  for (std::string_view word : split(text, ' ')) {
    if (word.empty()) continue;
    int32_t device = -1;
    auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), device);
    if (error != std::errc() || end != word.data() + word.size() || device < 0 || device > kMaxDevice)
      input_error("{}: '{}' is not a device; write groups as \"0 1 2 3|4 5 6 7\"", where, word);
    if (!seen.insert(device).second)
      input_error("{}: device {} stands twice; every device belongs to one group", where, device);
    group.push_back(device);
  }
  return group;
}

std::vector<int32_t> join(const Groups& groups) {
  std::vector<int32_t> all;
  for (const std::vector<int32_t>& group : groups) all.insert(all.end(), group.begin(), group.end());
  return all;
}

}  // namespace

std::vector<int64_t> parse_shape(std::string_view text, std::string_view where) {
  std::vector<int64_t> shape;
  int64_t elements = 1;
  for (std::string_view part : split(text, 'x')) {
    int64_t size = 0;
    auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), size);
    if (part.empty() || error != std::errc() || end != part.data() + part.size() || size < 1)
      input_error("{}: '{}' in '{}' is not a size of 1 or more; write sizes with x between, as 1024x1024",
                  where, part, text);
    if (size > kMaxElements / elements)
      input_error("{}: '{}' has more than 2^50 elements; use less", where, text);
    elements *= size;
    shape.push_back(size);
  }
  return shape;
}

std::vector<Piece> parse_boxes(std::string_view text, const std::vector<int64_t>& shape,
                               std::string_view where) {
  if (trim(text).empty()) input_error("{}: no boxes; write for example {}", where, kExample);
  std::vector<Piece> pieces;
  std::set<Piece> seen;
  for (std::string_view part : split(text, '|')) {
    std::string here = fmt::format("{}: box {}", where, pieces.size());
    if (part.empty()) input_error("{} is missing between two |; remove one | or write a box", here);
    BoxReader reader(part, here);
    pieces.push_back(reader.read(shape));
    if (!seen.insert(pieces.back()).second)
      reader.fail("stands twice on device {}; list it once", pieces.back().device);
  }
  return pieces;
}

std::string to_text(const std::vector<Piece>& pieces) {
  std::string text;
  for (const Piece& piece : pieces) text += (text.empty() ? "" : " | ") + to_text(piece);
  return text;
}

std::vector<Groups> parse_levels(std::string_view text, std::string_view where) {
  std::vector<Groups> levels = {{}};
  std::set<int32_t> seen;
  size_t closed = 1;  // levels whose group ended before this one
  for (;;) {
    size_t end = std::min(text.find_first_of("|;"), text.size());
    std::vector<int32_t> group = parse_group(text.substr(0, end), where, seen);
    if (group.empty())
      input_error("{}: group {} is empty; write groups as \"0 1 2 3|4 5 6 7\"", where, levels[0].size());
    for (size_t level = 0; level < levels.size(); ++level) {
      if (level < closed || levels[level].empty()) levels[level].emplace_back();
      levels[level].back().insert(levels[level].back().end(), group.begin(), group.end());
    }
    if (end == text.size()) return levels;
    size_t next = text[end] == '|' ? end + 1 : std::min(text.find_first_not_of(';', end), text.size());
    closed = text[end] == '|' ? 1 : next - end + 1;
    // What came so far is one group of every level that was not known.
    while (levels.size() < closed) levels.push_back({join(levels.back())});
    text.remove_prefix(next);
  }
}

Groups parse_groups(std::string_view text, std::string_view where) {
  std::vector<Groups> levels = parse_levels(text, where);
  if (levels.size() > 1) input_error("{}: '{}' has groups of groups; write them apart by |", where, text);
  return levels[0];
}

}  // namespace partita::reshard
