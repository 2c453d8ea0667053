#include "measure/race.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

namespace partita::measure {
namespace {

class Race {
 public:
  Race(const Model& model, const HostViews& given, const std::vector<Plan>& plans,
       const std::function<void(const std::string&)>& say)
      : say_(say), times_(plans.size()) {
    Bytes bytes = 0;
    for (const Plan& plan : plans) {
      runners_.push_back(std::make_unique<TimedPlan>(PlanTrial{plan.summary, model, given, plan}));
      bytes += runners_.back()->bytes();
    }
    together_ = bytes <= room_for_plans();
  }

  void round(const std::vector<size_t>& places) {
    for (size_t i : places) {
      say_(runners_[i]->name());
      runners_[i]->open();
      times_[i].rounds.push_back(runners_[i]->round(runners_[i]->steps_of_round()));
      if (!together_) runners_[i]->close();
    }
  }

  void unload() {
    for (const auto& runner : runners_) runner->close();
  }

  const std::vector<RaceTime>& times() {
    std::vector<std::vector<Seconds>> rounds;
    for (const RaceTime& time : times_) rounds.push_back(time.rounds);
    std::vector<Seconds> seconds = seconds_in_turns(rounds);
    for (size_t i = 0; i < times_.size(); ++i) times_[i].seconds = seconds[i];
    return times_;
  }

 private:
  const std::function<void(const std::string&)>& say_;
  std::vector<std::unique_ptr<TimedPlan>> runners_;
  std::vector<RaceTime> times_;
  bool together_ = false;
};

/// Leaves out those that fall out.
void drop(const std::vector<RaceTime>& times, double limit, std::vector<size_t>& places) {
  Seconds least = HUGE_VAL;
  for (size_t i : places) least = std::min(least, times[i].seconds);
  std::erase_if(places, [&](size_t i) { return times[i].seconds > least * limit; });
}

}  // namespace

std::vector<RaceTime> race(const Model& model, const HostViews& given, const std::vector<Plan>& plans,
                           int rounds, const std::function<void(const std::string&)>& say) {
  HostTensors drawn = draw_weights(model, 0, given);  // once: it takes as long as a step
  HostViews values = given;
  values.merge(views_of(drawn));
  Race race(model, values, plans, say);
  std::vector<size_t> left(plans.size());
  std::iota(left.begin(), left.end(), 0);
  for (int round = 0; round < rounds; ++round) race.round(left);
  for (double limit : kFallsOut) {
    drop(race.times(), limit, left);
    race.unload();
    for (int round = 0; left.size() > 1 && round < rounds; ++round) race.round(left);
  }
  return race.times();
}

}  // namespace partita::measure
