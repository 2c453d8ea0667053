#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/model.h"
#include "run/host_tensor.h"
#include "search/progress.h"

namespace partita::cli {

struct Command;

/// A verb asked within a process, with values in place of files.
struct Question {
  std::vector<std::string> words;  // as on the command line, after `partita`
  // What words stand for that would name files there; anything else that is named is read from the disk.
  std::map<std::string, std::shared_ptr<const Model>> models;
  HostViews constants;                       // of these models
  std::map<std::string, std::string> texts;  // of plans, and of orders of a schedule
  ShowProgress progress;                     // may be called by several threads; none: nobody is told
};

/// What the command would print on stdout, in the verb's own words and with its own flags and messages.
/// Example: ask({.words = {"plan", "net.model.json", "--cluster", "4xcpu", "--json"}, .models = {...}}).
/// Throws what the command turns into exit codes; a plan that `verify` finds wrong is an answer.
/// Prints nothing and installs nothing; the interrupt flag of the calling thread ends it (base/interrupt.h).
std::string ask(const Question& question);

/// The text that was given to `command` in place of a file; null: none was.
const std::string* given_text(const Command& command, const std::string& file);

}  // namespace partita::cli
