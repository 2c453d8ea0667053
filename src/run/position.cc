#include "run/position.h"

#include <fmt/format.h>

namespace partita::run {

std::string to_text(int32_t rank, const Position& at) {
  int32_t action = at.action, peer = at.peer;
  const char* doing = at.doing;
  const std::string *body = at.body, *op = at.op;
  std::string text = fmt::format("rank {}, step {}", rank, int64_t{at.step});
  if (action < 0) return fmt::format("{} ({})", text, doing);
  text += fmt::format(", action {} ({}", action, doing);
  if (body) text += " " + *body;
  if (op) text += ", " + *op;
  if (peer >= 0) text += fmt::format(", peer {}", peer);
  return text + ")";
}

}  // namespace partita::run
