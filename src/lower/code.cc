#include "lower/code.h"

namespace partita::lower {

std::vector<Transfer> sent_from(const Code& code, int site) {
  std::vector<Transfer> sent;
  for (const Transfer& transfer : code.transfers)
    if (transfer.from_site == site) sent.push_back(transfer);
  return sent;
}

}  // namespace partita::lower
