#include "schedule/warmup.h"

#include <algorithm>

namespace partita {
namespace {

// An operation of the device; `net` is what it takes for good (positive) or gives back.
struct Part {
  int64_t head, cost, net;
};

std::vector<Part> parts_of(const Flow& flow, const std::vector<int64_t>& head, int device) {
  std::vector<Part> parts;
  for (int line : flow.of_device[device])
    for (int k = 0; k < flow.microbatches; ++k) {
      const Flow::Line& l = flow.lines[line];
      parts.push_back({head[size_t(line) * flow.microbatches + k], l.cost, l.take - l.give});
    }
  // The most work for its memory first.
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    bool takes_a = a.net > 0, takes_b = b.net > 0;
    if (takes_a != takes_b) return takes_b;
    return takes_a && __int128(a.cost) * b.net > __int128(b.cost) * a.net;
  });
  return parts;
}

// The most work the device can have done at time t: all that could have run, but of the takers no more than
// fit.
int64_t most_work(const std::vector<Part>& parts, int64_t cap, int64_t t) {
  int64_t free_work = 0, taking = 0, fitting = 0, room = cap;
  for (const Part& part : parts) {
    int64_t run = std::clamp<int64_t>(t - part.head, 0, part.cost);
    if (part.net <= 0) {
      free_work += run;
      if (cap != INT64_MAX && part.head + part.cost <= t) room -= part.net;
      continue;
    }
    taking += run;
    if (part.head >= t || room <= 0) continue;
    // A part of one more may fit: whole ticks, rounded up.
    fitting += room >= part.net ? part.cost : int64_t((__int128(part.cost) * room + part.net - 1) / part.net);
    room = std::max<int64_t>(0, room - part.net);
  }
  return free_work + std::min(taking, fitting);
}

constexpr size_t kMoments = 300;

}  // namespace

Idle warmup_idle(const Flow& flow, const std::vector<int64_t>& head, int device) {
  std::vector<Part> parts = parts_of(flow, head, device);
  std::vector<int64_t> moments;
  for (const Part& part : parts) {
    moments.push_back(part.head);
    if (part.net < 0) moments.push_back(part.head + part.cost);
  }
  std::sort(moments.begin(), moments.end());
  moments.erase(std::unique(moments.begin(), moments.end()), moments.end());
  if (moments.size() > kMoments) moments.resize(kMoments);
  Idle most;
  for (int64_t t : moments)
    if (Idle idle{t, most_work(parts, flow.cap[device], t)}; idle.ticks() > most.ticks()) most = idle;
  return most;
}

}  // namespace partita
