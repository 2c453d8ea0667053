#pragma once

#include <functional>
#include <string>
#include <vector>

#include "certify/kernel/given.h"
#include "certify/kernel/ledger.h"
#include "certify/refuse.h"

namespace partita::certify {

constexpr size_t kMaxSentences = 12;  // one fault shows in many places

/// What was sent.
struct Parcel {
  Known meaning;
  TypeId type;
};

/// How far the step has come: what every rank holds, what is on its way, and what was wrong so far.
struct State {
  State(const Given& given, int32_t transfers);
  std::vector<Ledger> ranks;
  std::vector<Parcel> parcels;  // by transfer
  std::vector<std::string> wrong;
};

/// Runs `check`; what it refuses becomes a sentence about this place.
template <class Check>
bool allowed(const Given& given, State& state, const At& at, Check check) {
  try {
    check();
    return true;
  } catch (const Refused& refused) {
    state.wrong.push_back(given.place(at) + ": " + refused.what());
    return false;
  }
}

/// Is called after every instruction, before what dies with it is gone.
using Watch = std::function<void(const At&, const Ledger&)>;

/// Each of these is one thing that happens; what is refused is in `state.wrong` afterwards.
void load_all(const Given& given, State& state);
void happen(const Given& given, State& state, const Event& event, const Watch& watch = {});
/// What dies with an instruction; before that, a collective that it starts is under way.
void end_instr(const Given& given, State& state, const At& at);

/// What is wrong with a step that has come to its end, or to where nobody goes on.
std::vector<std::string> end_step(const Given& given, State& state, const Walker& walker);

/// The certificate: one event after another, every instruction of every micro-batch.
std::vector<std::string> walk(const Given& given, const Watch& watch = {});

}  // namespace partita::certify
