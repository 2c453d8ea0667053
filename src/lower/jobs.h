#pragma once

#include <map>
#include <vector>

#include "lower/facts.h"

namespace partita::lower {

/// What is written at once: one op, or ops of one loop, which are written once for each of its pieces.
struct Job {
  Segment segment;
  std::vector<int> sites;
  int loop = -1;  // a LoopRule; -1: one op, once
  std::vector<size_t> ops;
  bool operator==(const Job&) const = default;
};

/// All ops inside the loop over micro-batches, in the order in which they are written. An op before or after
/// that loop is in none: it is written where it is asked for.
struct Jobs {
  std::vector<Job> list;
  std::vector<std::map<size_t, size_t>> loop_job;  // by stream, by op of a loop: its job

  /// The job of a loop that has this op; null: it is in none.
  const Job* loop_with(size_t op, int stream) const;
};

/// Ops of one loop in a row are one job, as long as each reads what the loop makes in its own piece alone.
/// Where backward goes through with forward, ops in between that read what the loop makes come after it.
/// Example: ops [a, p, q, b, r] with p, q, r in a loop, b reading p: jobs a, {p, q}, b, {r}.
Jobs find_jobs(const Facts& facts);

}  // namespace partita::lower
