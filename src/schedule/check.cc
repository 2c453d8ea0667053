#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "schedule/schedule.h"

namespace partita::schedule {
namespace {

// What has been seen of one (stage, micro-batch): bit per kind, and the stream it ran in.
struct Seen {
  uint8_t kinds = 0;
  int stream = -1;
};

uint8_t bit(StepKind kind) { return uint8_t(1u << int(kind)); }

class Census {
 public:
  explicit Census(const Schedule& schedule)
      : schedule_(schedule), seen_(size_t(schedule.stages) * schedule.microbatches) {}

  std::vector<std::string> take() {
    for (int device = 0; device < schedule_.devices; ++device)
      for (const Step& step : schedule_.order[device]) count(device, step);
    for (int stage = 0; stage < schedule_.stages; ++stage)
      for (int k = 0; k < schedule_.microbatches; ++k) complete(stage, k);
    for (const auto& [key, count] : repeats_) everywhere(key, count);
    return std::move(problems_);
  }

 private:
  void say(std::string sentence) {
    if (problems_.size() < 20) problems_.push_back(std::move(sentence));
  }

  void count(int device, const Step& step) {
    if (step.stage < 0 || step.stage >= schedule_.stages || step.microbatch < 0 ||
        step.microbatch >= schedule_.microbatches || step.stream < 0 || step.stream >= schedule_.streams)
      return say(fmt::format("device {}: {} is out of range", device, show(step)));
    const std::vector<int>& holders = schedule_.devices_of(step.stage, step.stream);
    if (std::find(holders.begin(), holders.end(), device) == holders.end())
      return say(fmt::format("device {}: {} belongs on device {}", device, show(step), holders.front()));
    if (holders.size() > 1) ++repeats_[{step.stage, step.microbatch, int(step.kind)}];
    if (device != holders.front()) return;
    Seen& seen = seen_[size_t(step.stage) * schedule_.microbatches + step.microbatch];
    if (seen.kinds & bit(step.kind)) say(fmt::format("device {}: {} runs twice", device, show(step)));
    if (seen.stream >= 0 && seen.stream != step.stream)
      say(fmt::format("device {}: {} changes its stream", device, show(step)));
    seen.kinds |= bit(step.kind);
    seen.stream = step.stream;
  }

  void complete(int stage, int k) {
    const Seen& seen = seen_[size_t(stage) * schedule_.microbatches + k];
    bool trained = stage >= schedule_.first_trained_stage();
    uint8_t fused = bit(StepKind::kForward) | bit(StepKind::kBackward);
    uint8_t split = bit(StepKind::kForward) | bit(StepKind::kInputGrad) | bit(StepKind::kWeightGrad);
    bool whole = trained ? seen.kinds == fused || seen.kinds == split : seen.kinds == bit(StepKind::kForward);
    if (!whole)
      say(fmt::format("stage {} micro-batch {}: runs {}; needs {}", stage, k, names(seen.kinds),
                      trained ? "F and B, or F, I and W" : "F only"));
  }

  // A stage on several devices runs on all of them or on none.
  void everywhere(const std::array<int, 3>& key, int count) {
    Step step{StepKind(key[2]), key[0], key[1]};
    if (int holders = int(schedule_.devices_of(step.stage, 0).size()); count != holders)
      say(fmt::format("{} runs on {} devices; its stage is on {}", show(step), count, holders));
  }

  static std::string names(uint8_t kinds) {
    std::string text;
    for (int kind = 0; kind < kStepKinds; ++kind)
      if (kinds >> kind & 1) text += letter(StepKind(kind));
    return text.empty() ? "nothing" : text;
  }

  const Schedule& schedule_;
  std::vector<Seen> seen_;
  std::map<std::array<int, 3>, int> repeats_;  // (stage, micro-batch, kind) of shared stages
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> check(const Schedule& schedule) { return Census(schedule).take(); }

}  // namespace partita::schedule
