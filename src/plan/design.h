#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace partita::plan {

/// A plan written by hand: transform (split, loop, store, recompute), assign, order. Python's partita.design
/// is the same, word for word.
///
/// `ops` names modules or ops: "h.*.attn" is every module whose path ends so, with what is inside of it; a
/// name with a slash is an op ("lm_head/mm"). `atom` names what is cut: "batch", "tokens", "heads", "hidden",
/// or an atom or pattern of atoms by name ("transformer.h.*.mlp.c_fc.weight:1.0"). Example: Design(model,
/// 4).split("*", "batch", 2).split("h.*.attn", "heads", 2).split("h.*.mlp", "hidden", 2) is data parallel
/// times Megatron's tensor parallel.
class Design {
 public:
  /// `model` must outlive it.
  Design(const Model& model, int64_t ranks);

  /// Over `parts` devices, the axis `axis` of the mesh: "dp" for the batch and "tp" else where it is empty.
  Design& split(const std::string& ops, const std::string& atom, int64_t parts, std::string axis = "");
  /// A stage of its own, after those assigned before.
  Design& assign(const std::vector<std::string>& ops, const std::vector<int32_t>& devices);
  /// In `pieces`, one after another; `through`: forward and backward of a piece before the next.
  Design& loop(const std::vector<std::string>& ops, const std::string& atom, int64_t pieces,
               bool through = false);
  /// See StoreRule.
  Design& store(const std::string& params, const std::string& what, const std::string& axis = "dp");
  /// One block, run again in backward, but for what those of its ops made that match `keep`.
  Design& recompute(const std::vector<std::string>& ops, const std::vector<std::string>& keep = {});
  Design& microbatches(int64_t count);
  /// A named schedule, or one's own: the steps of each device, "0F0,0F1,0B0,0B1".
  Design& order(const std::string& schedule);
  Design& order(std::vector<std::string> rows);

  /// InputError where the ranks are not used up, or check(plan) finds a fault.
  Plan plan() const;

 private:
  struct Stated {
    Model model;
    Atoms atoms;
  };
  std::vector<std::string> patterns(const std::string& ops) const;
  std::vector<std::string> atoms(const std::string& word, const std::vector<std::string>& patterns,
                                 int64_t parts) const;
  std::vector<std::string> free_atoms(const std::vector<std::string>& patterns) const;

  const Model& model_;
  int64_t ranks_;
  Stated stated_;
  Plan plan_;
};

/// The ops of `count` stages, balanced: see pipeline_stages.
std::vector<std::vector<std::string>> cut(const Model& model, int64_t count, int passes = 1);

}  // namespace partita::plan
