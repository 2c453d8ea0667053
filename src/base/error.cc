#include "base/error.h"

#include <string_view>

namespace partita::base {

void bug(const char* file, int line, const std::string& text) {
  // Only the part below src/ is of interest, and it is the same on every machine.
  std::string_view path = file;
  if (size_t at = path.rfind("src/"); at != path.npos) path.remove_prefix(at);
  throw Bug(fmt::format("{}:{}: this must hold and does not: {}", path, line, text));
}

}  // namespace partita::base
