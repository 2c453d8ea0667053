#include "model/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

namespace partita::model {
namespace {

struct Letter {
  std::string name;
  bool whole = false;
};
using Letters = std::vector<std::vector<Letter>>;  // by operand, by dimension

std::vector<Letter> read_operand(const std::string& text) {
  std::vector<Letter> letters;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    bool whole = word[0] == '!';
    letters.push_back({word.substr(whole), whole});
  }
  return letters;
}

Letters read_operands(const std::string& text) {
  Letters operands;
  size_t begin = 0;
  for (size_t end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find(',', begin);
    operands.push_back(read_operand(text.substr(begin, end == std::string::npos ? end : end - begin)));
  }
  return operands;
}

constexpr const char* kArrow = "->";

Letters inputs_in(const std::string& axes) { return read_operands(axes.substr(0, axes.find(kArrow))); }
Letters outputs_in(const std::string& axes) { return read_operands(axes.substr(axes.find(kArrow) + 2)); }

// Every dimension of a letter, results first.
using Places = std::map<std::string, std::vector<DimRef>>;

template <class Visit>
void visit_letters(const std::string& axes, const Visit& visit) {
  Letters out = outputs_in(axes), in = inputs_in(axes);
  for (size_t k = 0; k < out.size(); ++k)
    for (size_t d = 0; d < out[k].size(); ++d) visit(out[k][d], output_dim(static_cast<int>(k), d));
  for (size_t k = 0; k < in.size(); ++k)
    for (size_t d = 0; d < in[k].size(); ++d) visit(in[k][d], input_dim(static_cast<int>(k), d));
}

int64_t size_of(const OpView& op, DimRef ref) {
  return (ref.kind == DimRef::kInput ? op.in : op.out)[ref.operand][ref.dim];
}

// By some result, which then holds a sum.
bool is_lacked(const OpView& op, const std::vector<DimRef>& letter) {
  for (size_t k = 0; k < op.out.size(); ++k) {
    auto stands_in = [&](DimRef ref) {
      return ref.kind == DimRef::kOutput && ref.operand == static_cast<int>(k);
    };
    if (op.has_out[k] && std::none_of(letter.begin(), letter.end(), stands_in)) return true;
  }
  return false;
}

std::string check_operands(const char* what, const Letters& letters, const Operands& shapes) {
  if (letters.size() != shapes.size())
    return fmt::format("has letters for {} {}s, the op has {}", letters.size(), what, shapes.size());
  for (size_t k = 0; k < shapes.size(); ++k) {
    if (letters[k].size() != shapes[k].size())
      return fmt::format("has {} letters for {} {}, which has {} dimensions", letters[k].size(), what, k,
                         shapes[k].size());
    for (const Letter& letter : letters[k])
      if (letter.name.empty()) return "has a ! without a letter";
  }
  return "";
}

// The bias is added once: where the product is partial it must be a partial too, zero on all ranks but one.
void add_bias(const OpView& op, Relation& relation) {
  int offset = op.out_rank(0) - op.in_rank(0);
  for (int d = 0; d < op.in_rank(0); ++d)
    if (op.in[0][d] == op.out[0][d + offset]) relation.same(input_dim(0, d), output_dim(0, d + offset));
  relation.addends = {0};
}

/// Where the letters of a row stand, in the order in which they first occur.
std::vector<std::pair<char, std::vector<DimRef>>> places_of(std::string_view letters, int first_input) {
  std::vector<std::pair<char, std::vector<DimRef>>> places;
  DimRef next = input_dim(first_input, 0);
  for (char c : letters) {
    if (c == ',') next = input_dim(next.operand + 1, 0);
    if (c == '>') next = output_dim(0, 0);
    if (c < 'a' || c > 'z') continue;
    auto found =
        std::find_if(places.begin(), places.end(), [&](const auto& place) { return place.first == c; });
    if (found == places.end()) found = places.insert(found, {c, {}});
    found->second.push_back(next);
    ++next.dim;
  }
  return places;
}

}  // namespace

void relate_product(const OpView& op, std::string_view letters, bool bias, Relation& relation) {
  int first = bias ? 1 : 0;
  for (const auto& [letter, refs] : places_of(letters, first)) {
    for (size_t i = 0; i + 1 < refs.size(); ++i) relation.same(refs[i], refs.back());
    if (refs.back().kind == DimRef::kInput) relation.reduced.push_back(refs.front());
  }
  relation.linear =
      bias ? std::vector<std::vector<int>>{{0, 1}, {0, 2}} : std::vector<std::vector<int>>{{0}, {1}};
  if (bias) add_bias(op, relation);
}

std::string check_axes(const OpView& op) {
  const std::string& axes = op.op->axes;
  if (axes.find(kArrow) == std::string::npos) return "has no ->";
  std::string wrong = check_operands("input", inputs_in(axes), op.in);
  if (wrong.empty()) wrong = check_operands("result", outputs_in(axes), op.out);
  if (!wrong.empty()) return wrong;
  std::map<std::string, int64_t> sizes;
  visit_letters(axes, [&](const Letter& letter, DimRef ref) {
    auto [known, added] = sizes.emplace(letter.name, size_of(op, ref));
    if (known->second != size_of(op, ref) && wrong.empty())
      wrong = fmt::format("uses {} for dimensions of size {} and {}", letter.name, known->second,
                          size_of(op, ref));
  });
  return wrong;
}

void relate_axes(const OpView& op, Relation& relation) {
  Places places;
  visit_letters(op.op->axes, [&](const Letter& letter, DimRef ref) {
    places[letter.name].push_back(ref);
    if (letter.whole) relation.freeze(ref, "marked with ! in the row given for this op");
  });
  for (const auto& [letter, refs] : places) {
    for (size_t i = 1; i < refs.size(); ++i) relation.same(refs[0], refs[i]);
    bool made = std::none_of(refs.begin(), refs.end(), [](DimRef r) { return r.kind == DimRef::kInput; });
    if (made) relation.freeze(refs[0], "no input has this dimension");
    if (!made && is_lacked(op, refs)) relation.reduced.push_back(refs[0]);
  }
}

}  // namespace partita::model
