#include "fuzz_judge.h"

#include <fmt/format.h>

#include <exception>

#include "base/error.h"
#include "certify/certificate.h"

namespace partita::run {
namespace {

Judgement run(const Subject& subject, const Program& program) {
#ifdef PARTITA_CAN_RUN
  const auto& [model, atoms, fingerprint] = subject.prepared;
  try {
    VerifyReport report = partita_run_api(kRunApiVersion)
                              ->judge({model, program, leaves_of(model, atoms)},
                                      {subject.whole, subject.optimizer}, subject.expected, subject.request);
    return {report.equal ? Verdict::kSame : Verdict::kWrong,
            fmt::format("loss {:.1e}, gradients {:.1e}, parameters {:.1e}, buffers {:.1e} off; worst: {}",
                        report.loss_error, report.max_grad_error, report.max_param_error,
                        report.max_buffer_error, report.worst_parameter)};
  } catch (const std::exception& error) {
    return {Verdict::kStopped, error.what()};
  }
#else
  (void)subject, (void)program;
  return {Verdict::kUnconfirmed, ""};
#endif
}

/// Reads and certifies; kUnconfirmed: accepted. `ranks` then has all of them.
Judgement certified(const Subject& subject, const std::string& text, Program& ranks) {
  const auto& [model, atoms, fingerprint] = subject.prepared;
  FoldedProgram read;
  try {
    read = parse_folded(text, model, "mutant");
  } catch (const InputError& error) {
    return {Verdict::kUnreadable, error.what()};
  }
  std::vector<std::string> wrong = certify::certify(model, atoms, read.program, subject.optimizer, read.fold);
  if (!wrong.empty()) return {Verdict::kRefused, wrong[0]};
  ranks = expand(read.program, read.fold);
  if (!read.fold.empty()) wrong = certify::certify(model, atoms, ranks, subject.optimizer);
  if (!wrong.empty()) return {Verdict::kWrong, "classes are accepted, ranks are not: " + wrong[0]};
  return {Verdict::kUnconfirmed, ""};
}

}  // namespace

Judgement judge(const Subject& subject, const std::string& text) {
  Program ranks;
  Judgement judged = certified(subject, text, ranks);
  return judged.verdict == Verdict::kUnconfirmed ? run(subject, ranks) : judged;
}

bool is_accepted(const Subject& subject, const std::string& text) {
  Program ranks;
  return certified(subject, text, ranks).verdict == Verdict::kUnconfirmed;
}

}  // namespace partita::run
