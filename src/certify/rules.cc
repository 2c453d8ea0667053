#include "certify/rules.h"

#include <cstdlib>
#include <iterator>
#include <optional>

#include "certify/refuse.h"

namespace partita::certify {

const RuleRow kRules[] = {
    {Rule::kWellFormed, "well-formed",
     "Numbers name what exists, and every instruction has the operands and types of its kind."},
    {Rule::kPlanNumbers, "plan-numbers", "Optimizer and precision are those of the plan."},
    {Rule::kHeld, "held", "A slot is read, freed, sent or waited for only while it holds something."},
    {Rule::kArrived, "arrived",
     "What a receive or a started collective makes is neither read nor freed before its wait."},
    {Rule::kFresh, "fresh", "A name is not read after its storage was changed under another name."},
    {Rule::kFreeSlot, "free-slot", "A slot that holds something is not written."},
    {Rule::kInFlight, "in-flight",
     "What is being sent, or read by a started collective, is neither changed nor freed before its wait."},
    {Rule::kSpread, "spread", "A view several of whose elements are one place in memory is not changed."},
    {Rule::kApart, "apart", "What is added does not lie in the storage to which it is added."},
    {Rule::kWaits, "waits", "Every transfer and every started collective is waited for, and nothing else."},
    {Rule::kLeft, "left", "Nothing is left behind but what was loaded or is reported."},
    {Rule::kDeadlock, "deadlock", "No rank waits for ever."},
    {Rule::kGiven, "given",
     "A load brings a part of what is there before the step; what lasts lies in a slot of the rank."},
    {Rule::kOneStorage, "one-storage", "Loads of one part of what lasts are one storage."},
    {Rule::kTypes, "types", "A value has the dtype and the local shape of the part that it is."},
    {Rule::kStrides, "strides", "A value lies dense, its dimensions in the order of the Model's tensor."},
    {Rule::kOneType, "one-type", "What meets in a transfer, a sum or a join has one type."},
    {Rule::kOperands, "operands",
     "An op reads the tensors that the Model names, as they are before the update."},
    {Rule::kLoops, "loops", "Operands agree on every loop that they share, and types leave no other length."},
    {Rule::kFrozen, "frozen", "A loop that the row of its op does not let anyone cut is whole."},
    {Rule::kZeros, "zeros", "Zeros have the type of the piece that they stand for."},
    {Rule::kLinear, "linear",
     "Partial sums and zeros enter an op through one jointly linear set of operands."},
    {Rule::kArguments, "arguments",
     "An op is called with exactly the arguments that its row gives for this piece."},
    {Rule::kViews, "views",
     "An op is marked as a view of its first input where it is one, and nowhere else."},
    {Rule::kOneTensor, "one-tensor",
     "What is added or joined is of one tensor, of one version, state, dtype and scale."},
    {Rule::kOnePart, "one-part", "What is added is one part of its tensor."},
    {Rule::kOnce, "once", "No addend counts twice."},
    {Rule::kOneSum, "one-sum", "Addends that are added were cut in the same way."},
    {Rule::kAdditions, "additions",
     "An addition of two tensors is one of the Model, and adds what that one reads."},
    {Rule::kCuts, "cuts", "A cut names a leaf that the value has, and the sizes around it."},
    {Rule::kLengths, "lengths", "Pieces have the declared lengths, and these add up to what is cut."},
    {Rule::kOrder, "order", "Pieces are joined in the order of the group, without gaps."},
    {Rule::kOneLeaf, "one-leaf", "Pieces that are joined differ only in the leaf that is joined."},
    {Rule::kMembers, "members", "Members of a collective agree on cuts and lengths."},
    {Rule::kClasses, "classes",
     "Ranks of a class meet ranks of their own coordinates, listed in mesh order, and cut equal pieces along "
     "one axis."},
    {Rule::kCasts, "casts",
     "Only floating tensors are cast, no states: to fewer bits once complete, and never to fewer than the "
     "Model's."},
    {Rule::kScaling, "scaling",
     "The loss scale is put once, on the gradient of the loss, where every gradient is linear in that and an "
     "optimizer takes it out."},
    {Rule::kScaled, "scaled", "The gradient of the loss is read times the loss scale where there is one."},
    {Rule::kSquares, "squares", "Squares and clipping take complete gradients that are not clipped yet."},
    {Rule::kNorm, "norm",
     "The norm counts every part of a gradient once for each parameter that it belongs to."},
    {Rule::kUpdates, "updates", "A trained parameter is updated once, by its own settings."},
    {Rule::kOwnGradient, "own-gradient",
     "An update takes the same part of the parameter's own gradient, complete, clipped where the norm is."},
    {Rule::kOwnStates, "own-states", "An update takes the parameter's own states, all of them, in order."},
    {Rule::kResults, "results",
     "A result holds what it says: complete, and after the update where there is one."},
    {Rule::kCovered, "covered",
     "Loss, gradients, new buffers and updated parameters are reported, and their parts are the whole."},
    {Rule::kUpdated, "updated", "What is loaded of a trained parameter and its states is updated."},
    {Rule::kLasting, "lasting",
     "What does not change holds its meaning where it was loaded, unless that slot is empty."},
};
const size_t kRuleCount = std::size(kRules);

#ifdef PARTITA_RULES_OFF
namespace {

/// What PARTITA_RULE_OFF says; empty: nothing.
const std::string& named_off() {
  static const char* const value = std::getenv("PARTITA_RULE_OFF");
  static const std::string name = value ? value : "";
  return name;
}

/// The rule that it names; none where it names a sentence.
std::optional<Rule> rule_off() {
  for (size_t i = 0; i < kRuleCount; ++i)
    if (named_off() == kRules[i].name || named_off() == std::to_string(i + 1)) return kRules[i].rule;
  return {};
}

}  // namespace

bool in_force(Rule rule, fmt::string_view sentence) {
  static const std::optional<Rule> off = rule_off();
  return off != rule && (named_off().empty() || sentence != fmt::string_view(named_off()));
}
#endif

}  // namespace partita::certify
