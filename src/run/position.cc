#include "run/position.h"

#include <fmt/format.h>

namespace partita {

std::string to_text(int32_t rank, const Position& at) {
  std::string text = fmt::format("rank {}, step {}", rank, at.step);
  if (at.action < 0) return fmt::format("{} ({})", text, at.doing);
  text += fmt::format(", action {} ({}", at.action, at.doing);
  if (at.body) text += " " + *at.body;
  if (at.op) text += ", " + *at.op;
  if (at.peer >= 0) text += fmt::format(", peer {}", at.peer);
  return text + ")";
}

}  // namespace partita
