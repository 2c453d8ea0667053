#pragma once

#include <string>
#include <utility>

#include "model/model.h"

namespace partita::model {

/// An argument that is written as text: a number, a dtype, a word.
inline Arg text_arg(Arg::Kind kind, std::string text) {
  Arg arg;
  arg.kind = kind;
  arg.text = std::move(text);
  return arg;
}

}  // namespace partita::model
