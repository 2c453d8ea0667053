#pragma once

#include <string>
#include <vector>

#include "base/units.h"

namespace partita::program {

/// One thing that took time on one stream of one rank: a body on "compute", a collective on "collective", one
/// that was started and went on beside computing on "collective, group 2", a transfer on "to 3, tag 0".
/// Seconds since the step began.
struct TraceEvent {
  int32_t rank = 0;
  std::string stream, name;
  Seconds start = 0, end = 0;
  bool operator==(const TraceEvent&) const = default;
};

/// What happened when on which rank, simulated or real. The time of a rank is what it computes, what it waits
/// for communication that is under way, and what it waits for others: averaged over ranks they add up to
/// `step_seconds`.
struct Trace {
  std::string clock;                 // "simulated", "real"
  Seconds step_seconds = 0;          // until the last rank is done
  Seconds exposed_comm_seconds = 0;  // a rank's mean wait for communication under way
  Seconds hidden_comm_seconds = 0;   // a rank's mean of started collectives that it did not wait for
  double bubble = 0;                 // mean share of the step in which a rank waits for others
  std::vector<Bytes> peak_bytes;     // by rank
  std::vector<TraceEvent> events;    // by rank, then by start
  bool operator==(const Trace&) const = default;
};

/// Everything impossible about a trace, one sentence each: an event that ends before it starts or lies
/// outside the step, two at once on one stream.
std::vector<std::string> check(const Trace& trace);

/// One JSON object: the figures, and one line per event.
std::string to_json(const Trace& trace);
/// For chrome://tracing and Perfetto: ranks are processes, streams are threads, microseconds.
std::string to_chrome(const Trace& trace);

}  // namespace partita::program
