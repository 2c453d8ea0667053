#include "program/span.h"

#include <fmt/format.h>

namespace partita {

bool meet(const Interval& a, const Interval& b, Interval& out) {
  if (has_length(a) && has_length(b) && a.length() != b.length()) return false;
  if (!is_anywhere(a) && !is_anywhere(b) && a != b) return false;
  out = is_anywhere(a) && (!is_anywhere(b) || has_length(b)) ? b : a;
  return true;
}

bool meet(const Box& a, const Box& b, Box& out) {
  if (a.size() != b.size()) return false;
  Box met = a;
  for (size_t d = 0; d < a.size(); ++d) {
    if (a[d].size() != b[d].size()) return false;
    for (size_t l = 0; l < a[d].size(); ++l)
      if (!meet(a[d][l], b[d][l], met[d][l])) return false;
  }
  out = std::move(met);
  return true;
}

std::string show_span(const Interval& span) {
  if (!is_anywhere(span)) return fmt::format("{}:{}", span.begin, span.end);
  return has_length(span) ? fmt::format("any {}", span.length()) : "any";
}

std::string show_spans(const Box& box) {
  std::string text = "[";
  for (size_t d = 0; d < box.size(); ++d) {
    if (d) text += ", ";
    if (box[d].empty()) text += "1";
    for (size_t l = 0; l < box[d].size(); ++l)
      text += fmt::format("{}{}", l ? "*" : "", show_span(box[d][l]));
  }
  return text + "]";
}

}  // namespace partita
