#include <csignal>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "cli/command_line.h"

namespace partita::cli {
namespace {

constexpr int kNothingFits = 1, kWrongInput = 2, kRunFailed = 4, kOurBug = 70, kInterrupted = 130;

int fail(int code, const char* kind, const std::exception& error) {
  fmt::print(stderr, "{}{}\n", kind, error.what());
  return code;
}

int run(std::vector<std::string> words) {
  Command command;
  run_words(std::move(words), command);
  return command.exit_code;
}

/// The exit code of some work, whatever it throws.
template <class Work>
int exit_code_of(Work work) {
  try {
    return work();
  } catch (const Interrupted& error) {
    return fail(kInterrupted, "", error);
  } catch (const Infeasible& error) {
    return fail(kNothingFits, "nothing fits: ", error);
  } catch (const InputError& error) {
    return fail(kWrongInput, "error: ", error);
  } catch (const RunError& error) {
    return fail(kRunFailed, "run failed: ", error);
  } catch (const std::exception& error) {
    return fail(kOurBug, "this is a bug in partita, please report it: ", error);
  }
}

}  // namespace
}  // namespace partita::cli

int main(int argc, char** argv) {
  using namespace partita::cli;
  std::signal(SIGXFSZ, SIG_IGN);  // a file over the limit of sizes is an error like a full disk, not a crash
  int code = exit_code_of([&] { return run({argv + 1, argv + argc}); });
  if (code == kWrongInput) return code;  // it may be that nothing can be printed
  return exit_code_of([code] { return flush_out(), code; });
}
