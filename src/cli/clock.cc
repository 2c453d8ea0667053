#include "cli/clock.h"

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "base/names.h"
#include "program/routes.h"
#include "simulate/price.h"

namespace partita::cli {
namespace {

// A machine may be a hundred times slower than the cluster a plan was made for; what takes longer than that
// and this does not come back.
constexpr double kSlower = 100;
constexpr Seconds kGrace = 60;

ClockKind clock_kind(const std::string& name) {
  for (size_t k = 0; k < std::size(kClockNames); ++k)
    if (kClockNames[k] == name) return static_cast<ClockKind>(k);
  input_error("--clock {}: there is {}{}", name, fmt::join(kClockNames, ", "),
              did_you_mean(name, {"real", "virtual", "emulated"}));
}

Timing forward_timing(const Program& program, Seconds forward) {
  bool apart = std::any_of(program.bodies.begin(), program.bodies.end(),
                           [](const Body& body) { return body.part == BodyPart::kWeight; });
  return even_timing(program,
                     [&](const Body& body) {
                       if (body.part == BodyPart::kBackward) return apart ? forward : 2 * forward;
                       return body.part && in_loop(*body.part) ? forward : 0;
                     },
                     {});
}

// Bytes of every message, by rank, in the order of its sends.
std::vector<std::vector<Bytes>> message_bytes(const Program& program) {
  Routes routes = routes_of(program);
  std::vector<Bytes> bytes(routes.transfers);
  std::vector<std::vector<Bytes>> sent(program.ranks.size());
  for (ActionKind kind : {ActionKind::kPostReceive, ActionKind::kSend})
    for (size_t r = 0; r < program.ranks.size(); ++r)
      for (size_t a = 0; a < program.ranks[r].actions.size(); ++a) {
        const Action& action = program.ranks[r].actions[a];
        if (action.kind != kind) continue;
        int32_t transfer = routes.transfer[r][a];
        if (kind == ActionKind::kPostReceive) bytes[transfer] = bytes_of(program[action.type]);
        if (kind == ActionKind::kSend) sent[r].push_back(bytes[transfer]);
      }
  return sent;
}

void set_links(const ClockInput& input, const Program& program, Timing& timing) {
  if (input.link_rate.empty() && input.link_delay < 0) return;
  Bytes rate = input.link_rate.empty() ? 0 : parse_bytes(input.link_rate, "--link-rate");
  std::vector<std::vector<Bytes>> bytes = message_bytes(program);
  for (size_t r = 0; r < timing.ranks.size(); ++r)
    for (size_t k = 0; k < timing.ranks[r].messages.size(); ++k) {
      MessageTime& message = timing.ranks[r].messages[k];
      if (rate > 0)
        message.occupies = to_picoseconds(static_cast<double>(bytes[r][k]) / static_cast<double>(rate));
      if (input.link_delay >= 0) message.delay = to_picoseconds(input.link_delay);
    }
}

Fault parse_fault(const std::string& text) {
  Fault fault;
  char kind[8] = "";
  long long step = 0;
  if (std::sscanf(text.c_str(), "%d:%lld:%d:%7s", &fault.rank, &step, &fault.action, kind) != 4)
    input_error("--inject {}: give RANK:STEP:ACTION:throw or RANK:STEP:ACTION:stall", text);
  std::string_view name = kind;
  if (name != "throw" && name != "stall") input_error("--inject {}: there is throw and stall", text);
  fault.kind = name == "throw" ? Fault::kThrow : Fault::kStall;
  fault.step = step;
  return fault;
}

}  // namespace

void add_clock_flags(CLI::App& app, ClockInput& input) {
  app.add_option("--clock", input.clock,
                 "real; virtual: predicted time passes, exactly; emulated: ranks sleep for it")
      ->capture_default_str();
  app.add_option("--forward-seconds", input.forward,
                 "virtual, emulated: every forward body takes this, backward twice as much");
  app.add_option("--link-delay", input.link_delay, "virtual, emulated: seconds a message is on its way");
  app.add_option("--link-rate", input.link_rate,
                 "virtual, emulated: bytes per second from a rank to another");
  app.add_option("--trace", input.trace, "write a Chrome trace of the last step");
  app.add_option("--deadline", input.deadline,
                 "seconds without progress that end the run; by default 60 and a hundred predicted steps");
  app.add_option("--inject", input.fault, "a fault for tests: RANK:STEP:ACTION:throw or :stall")->group("");
}

RunOptions run_options(const ClockInput& input, const Model& model, const Program& program,
                       const Prices& prices, Seconds predicted) {
  RunOptions options{.clock = clock_kind(input.clock), .traced = !input.trace.empty()};
  options.patience = input.deadline > 0 ? input.deadline : kGrace + kSlower * predicted;
  if (!input.fault.empty()) options.fault = parse_fault(input.fault);
  if (options.clock == ClockKind::kReal) return options;
  options.timing = input.forward > 0 ? forward_timing(program, input.forward) : price(model, program, prices);
  set_links(input, program, options.timing);
  options.shared_links = options.clock == ClockKind::kEmulated;
  return options;
}

}  // namespace partita::cli
