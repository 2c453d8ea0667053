#include "cli/ask.h"

#include "base/interrupt.h"
#include "cli/command_line.h"

namespace partita::cli {

std::string ask(const Question& question) {
  Command command(question);
  run_words(question.words, command);
  check_interrupt();  // a search that was interrupted gives its best, which nobody waits for any more
  return command.printed();
}

const std::string* given_text(const Command& command, const std::string& file) {
  if (!command.question()) return nullptr;
  const auto& texts = command.question()->texts;
  auto found = texts.find(file);
  return found == texts.end() ? nullptr : &found->second;
}

}  // namespace partita::cli
