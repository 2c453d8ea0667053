#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "lower/lower.h"
#include "search/candidate.h"
#include "search/request.h"

namespace partita::search {

/// Says what plans of one model take, by lowering and simulating them as classes of ranks. What all of them
/// start from is made once for each form. May be used by several threads.
class Judge {
 public:
  /// `model` and `request` must outlive it.
  Judge(const Model& model, const SearchRequest& request) : model_(model), request_(request) {}

  /// A plan with what it takes. Where it fits, ranks can communicate beside computing and it does not say so,
  /// it is also tried with `overlap`, and the faster of the two that fits counts. What was lowered of the
  /// fastest that fits is kept. InputError where it does not suit the model.
  Candidate judge(const Plan& plan);
  /// Throws Bug where the certificate refuses what is lowered of the plan.
  void certify(const Plan& plan);

 private:
  struct Kept {
    Candidate candidate;
    std::shared_ptr<const FoldedProgram> folded;
  };
  const Prepared& prepared(const Plan& plan);
  void keep(const Candidate& candidate, std::shared_ptr<const FoldedProgram> folded);
  std::shared_ptr<const FoldedProgram> lowered(const Plan& plan);
  Candidate simulated(const Prepared& from, const Plan& plan, std::shared_ptr<const FoldedProgram> folded);

  const Model& model_;
  const SearchRequest& request_;
  std::mutex mutex_;
  std::map<Form, Prepared> forms_;
  Kept best_;
};

/// A plan with what it takes, certified.
Candidate judged(const Model& model, const Plan& plan, const SearchRequest& request);

}  // namespace partita::search
