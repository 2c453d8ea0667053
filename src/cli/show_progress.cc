#include "cli/show_progress.h"

#include "base/error.h"
#include "cli/ask.h"

namespace partita::cli {
namespace {

std::string facts_of(const Progress& progress) {
  std::string text;
  if (progress.all > 0)
    text = fmt::format("{} of {}", progress.done, progress.all);
  else if (progress.done > 0)
    text = fmt::format("{}", progress.done);
  if (progress.best > 0)
    text += fmt::format("{}best {}", text.empty() ? "" : ", ", show_seconds(progress.best));
  return text;
}

}  // namespace

ShowProgress show_progress(const Command& command) {
  if (const Question* question = command.question())
    return question->progress ? question->progress : [](const Progress&) {};
  command.say("starting");
  return [&command](const Progress& progress) { command.say(progress.phase, facts_of(progress)); };
}

}  // namespace partita::cli
