#include "search/progress.h"

namespace partita::search {

ShowProgress with_prefix(const ShowProgress& show, std::string prefix) {
  if (!show) return nullptr;
  return [show, prefix = std::move(prefix)](Progress progress) {
    progress.phase = prefix + progress.phase;
    show(progress);
  };
}

}  // namespace partita::search
