#pragma once

#include <string>

#include "fuzz_subjects.h"

namespace partita::run {

/// What became of a broken program.
enum class Verdict { kUnreadable, kRefused, kSame, kStopped, kUnconfirmed, kWrong };

struct Judgement {
  Verdict verdict = Verdict::kRefused;
  std::string why;  // the reader's or the certificate's sentence, or how far off it is
};

/// Reads the file, certifies it, and runs what is accepted three steps beside one device; of classes all
/// ranks must be accepted too. Without libtorch what is accepted is kUnconfirmed.
Judgement judge(const Subject& subject, const std::string& text);

/// Does the certificate accept the file? Nothing is run.
bool is_accepted(const Subject& subject, const std::string& text);

}  // namespace partita::run
