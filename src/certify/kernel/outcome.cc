// The end of a step is compared with the Model, not with the Program: what must be there is listed from the
// Model, and what is there but listed nowhere was left behind.
#include "certify/kernel/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "certify/algebra/coverage.h"
#include "certify/refuse.h"
#include "program/span.h"
#include "program/words.h"

namespace partita::certify {
namespace {

class Outcome {
 public:
  Outcome(const Given& given, const std::vector<Ledger>& ranks)
      : given_(given),
        model_(given.model),
        program_(given.program),
        ranks_(ranks),
        trains_(program_.optimizer.name != "none") {
    for (const auto& [parameter, gradient] : model_.gradients) gradient_of_[parameter] = gradient;
    for (const auto& [buffer, value] : model_.buffers) new_value_of_[buffer] = value;
  }

  std::vector<std::string> run() {
    for (size_t r = 0; r < ranks_.size(); ++r) check_rank(static_cast<int32_t>(r));
    allowed(-1, [&] {
      if (reported_[{Result::kLoss, model_.loss}].empty()) refuse(Rule::kCovered, "no rank reports the loss");
    });
    for (const auto& [parameter, gradient] : model_.gradients) {
      check_covered("the gradient", gradient, reported_[{Result::kGradient, gradient}]);
      if (!trains_) continue;
      check_covered("the updated parameter", parameter, updated_[parameter]);
      check_covered("the report of the updated parameter", parameter,
                    reported_[{Result::kParameter, parameter}]);
    }
    for (const auto& [buffer, value] : model_.buffers)
      check_covered("the new value of buffer", buffer, reported_[{Result::kBuffer, buffer}]);
    return std::move(wrong_);
  }

 private:
  /// `rank` -1: what is said is about all of them.
  template <class Check>
  void allowed(int32_t rank, Check check) {
    try {
      check();
    } catch (const Refused& refused) {
      wrong_.push_back(rank < 0 ? refused.what() : fmt::format("rank {}: {}", rank, refused.what()));
    }
  }

  void check_rank(int32_t rank) {
    const RankProgram& program = program_.ranks[rank];
    for (size_t k = 0; k < program.results.size(); ++k)
      allowed(rank, [&] {
        const Result& result = program.results[k];
        SpanBox part = given_.reported(rank, k);
        check_result(rank, result, part);
        append(reported_[{result.kind, result.tensor}], boxes_of(part, given_.coordinates(rank)));
      });
    for (size_t k = 0; k < program.loads.size(); ++k) {
      const Load& load = program.loads[k];
      if (model_[load.tensor].role == Role::kBatchInput) continue;
      allowed(rank, [&] {
        SpanBox part = given_.loaded(rank, k);
        if (!trains_ || !gradient_of_.contains(load.tensor)) return check_lasts(rank, load, part);
        check_updated(rank, load, part);
        if (load.state < 0) append(updated_[load.tensor], boxes_of(part, given_.coordinates(rank)));
      });
    }
    for (const Ledger::Alive& left : ranks_[rank].alive())
      allowed(rank, [&] { check_left(program_.ranks[rank], left); });
  }

  bool is_gradient(TensorId tensor) const {
    return std::any_of(gradient_of_.begin(), gradient_of_.end(),
                       [&](const auto& pair) { return pair.second == tensor; });
  }

  /// The tensor of the Model that a result must hold.
  TensorId needed_for(const Result& result) const {
    if (result.kind == Result::kLoss && result.tensor != model_.loss)
      refuse(Rule::kResults, "reports {} as the loss", model_[result.tensor].name);
    if (result.kind == Result::kParameter && !gradient_of_.contains(result.tensor))
      refuse(Rule::kResults, "reports {}, which is not trained, as a parameter", model_[result.tensor].name);
    if (result.kind == Result::kGradient && !is_gradient(result.tensor))
      refuse(Rule::kResults, "reports {}, which is none, as a gradient", model_[result.tensor].name);
    if (result.kind != Result::kBuffer) return result.tensor;
    auto found = new_value_of_.find(result.tensor);
    if (found != new_value_of_.end()) return found->second;
    refuse(Rule::kResults, "reports buffer {}, which does not change", model_[result.tensor].name);
    return result.tensor;
  }

  static void append(std::vector<Box>& to, std::vector<Box> boxes) {
    to.insert(to.end(), std::make_move_iterator(boxes.begin()), std::make_move_iterator(boxes.end()));
  }

  void check_result(int32_t rank, const Result& result, const SpanBox& part) const {
    TensorId needed = needed_for(result);
    const Holding& held = ranks_[rank].read(result.slot, 0);
    const Meaning& meaning = *held.meaning;
    int32_t version = result.kind == Result::kParameter && trains_ ? 1 : 0;
    SpanBox met;
    bool clipped = result.kind == Result::kGradient && program_.optimizer.needs_norm();
    bool right = meaning.clipped == clipped && !meaning.addend.zero && meaning.tensor == needed &&
                 meaning.version == version && meaning.state < 0 &&
                 (!meaning.as || result.kind == Result::kGradient) && meaning.addend.complete() &&
                 meet(meaning.box, part, met) &&
                 inside(hull_of(part, given_.coordinates(rank)), whole_box(given_.rules.atoms, needed));
    if (!right)
      refuse(Rule::kResults, "reports {} {}{} from {}{}, which holds {}{}", name_of(result.kind),
             model_[result.tensor].name, show_spans(part), to_text(result.slot),
             held.made.action < 0 ? "" : fmt::format(" (written by {})", to_text(held.made)),
             given_.show(meaning), version > meaning.version ? " before its update" : "");
  }

  static bool holds(const Ledger& ledger, Slot slot, const Load& load, const SpanBox& part, int32_t version) {
    try {
      const Meaning& meaning = *ledger.read(slot, load.microbatch).meaning;
      return meaning.tensor == load.tensor && meaning.state == load.state && meaning.version == version &&
             meaning.addend.complete() && !meaning.clipped && meaning.box == part;
    } catch (const Refused&) {
      return false;
    }
  }

  /// The next step reads what does not change where this one loaded it, unless the slot is empty: then it is
  /// loaded anew. What a result replaces is its own rule.
  void check_lasts(int32_t rank, const Load& load, const SpanBox& part) const {
    if (new_value_of_.contains(load.tensor) || !ranks_[rank].is_alive(load.slot)) return;
    if (!holds(ranks_[rank], load.slot, load, part, 0))
      refuse(Rule::kLasting, "{}{} lasts to the next step, but {} holds something else at the end",
             model_[load.tensor].name, show_spans(part), to_text(load.slot));
  }

  /// The next step reads parameters and optimizer states where this one loaded them, or where it reports
  /// them.
  void check_updated(int32_t rank, const Load& load, const SpanBox& part) const {
    bool found = holds(ranks_[rank], load.slot, load, part, 1);
    for (const Result& result : program_.ranks[rank].results)
      if (result.kind == Result::kParameter && result.tensor == load.tensor)
        found |= holds(ranks_[rank], result.slot, load, part, 1);
    if (!found)
      refuse(Rule::kUpdated, "{}{}{} is never updated",
             load.state < 0 ? "" : fmt::format("optimizer state {} of ", load.state),
             model_[load.tensor].name, show_spans(part));
  }

  void check_left(const RankProgram& program, const Ledger::Alive& left) const {
    if (left.value->sends > 0 || left.value->receiving)
      refuse(Rule::kWaits, "never waits for the transfer of {}", to_text(left.slot));
    auto loaded = [&](const Load& load) {
      return load.slot == left.slot &&
             (left.slot.space == Space::kRank || load.microbatch == left.microbatch);
    };
    auto reported = [&](const Result& result) { return result.slot == left.slot; };
    if (std::none_of(program.loads.begin(), program.loads.end(), loaded) &&
        std::none_of(program.results.begin(), program.results.end(), reported))
      refuse(Rule::kLeft, "never frees {} (micro-batch {}), which holds {}", to_text(left.slot),
             left.microbatch, given_.show(*left.value->meaning));
  }

  void check_covered(const char* what, TensorId tensor, const std::vector<Box>& boxes) {
    std::vector<Box> missing = uncovered(whole_box(given_.rules.atoms, tensor), boxes);
    if (missing.empty()) return;
    allowed(-1, [&] {
      refuse(Rule::kCovered, "{} {}{} is on no rank after the step", what, model_[tensor].name,
             to_text(missing[0]));
    });
  }

  const Given& given_;
  const Model& model_;
  const Program& program_;
  const std::vector<Ledger>& ranks_;
  bool trains_;
  std::map<TensorId, TensorId> gradient_of_, new_value_of_;
  std::map<std::pair<int, TensorId>, std::vector<Box>> reported_;
  std::map<TensorId, std::vector<Box>> updated_;
  std::vector<std::string> wrong_;
};

}  // namespace

std::vector<std::string> check_outcome(const Given& given, const std::vector<Ledger>& ranks) {
  return Outcome(given, ranks).run();
}

}  // namespace partita::certify
