#include <csignal>
#include <sstream>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "cli/flags.h"
#include "cli/verb.h"
#include "cli/verbs.h"

namespace partita::cli {
namespace {

constexpr int kNothingFits = 1, kWrongInput = 2, kRunFailed = 4, kOurBug = 70, kInterrupted = 130;

int fail(int code, const char* kind, const std::exception& error) {
  fmt::print(stderr, "{}{}\n", kind, error.what());
  return code;
}

int run(int argc, char** argv) {
  CLI::App app{"Partita plans, proves, simulates and runs a PyTorch training step on many devices.",
               "partita"};
  app.footer(
      "Every verb has --help with an example, and --json.\n"
      "Exit codes: 0 done, 1 nothing fits, 2 wrong input or usage, 3 verification failed, 4 a run failed, "
      "70 a bug in partita, 130 interrupted before there was an answer.");
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", "partita " PARTITA_VERSION);
  Command command;
  for (const Verb& verb : kVerbs) {
    CLI::App* sub = app.add_subcommand(std::string(verb.name), std::string(verb.summary));
    verb.add(*sub, command);
    add_shared_flags(*sub, command);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) refuse(app, error);
    std::ostringstream text;  // of --help and --version
    app.exit(error, text, text);
    print_out(text.str());
    return 0;
  }
  if (app.get_subcommands().empty()) print_out(app.help());
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
  int code = exit_code_of([&] { return run(argc, argv); });
  if (code == kWrongInput) return code;  // it may be that nothing can be printed
  return exit_code_of([code] { return flush_out(), code; });
}
