#pragma once

#include <vector>

#include "program/program.h"

namespace partita::program {

/// Which transfer each action belongs to. The k-th send of (source, destination, tag) and the k-th receive
/// are one transfer; a wait belongs to the transfer of its slot that the rank began and has not waited for.
/// Transfers are counted from 0 over all ranks; -1: the action is no part of one.
struct Routes {
  std::vector<std::vector<int32_t>> transfer;  // rank, action
  int32_t transfers = 0;
};

/// A wait for a transfer that the rank has not begun gets -1.
Routes routes_of(const Program& program);

}  // namespace partita::program
