#pragma once

#include <string>

#include "base/file.h"
#include "base/json.h"
#include "model/model.h"
#include "program/program.h"

namespace partita::program {

/// A step of tests/data.
inline Model captured(const std::string& name) {
  std::string file = fmt::format("{}/tests/data/{}.model.json", PARTITA_SOURCE_DIR, name);
  return parse_model(read_file(file), file);
}

/// Instructions of a kind in all bodies.
inline size_t count(const Program& program, InstrKind kind) {
  size_t n = 0;
  for (const Body& body : program.bodies)
    for (const Instr& instr : body.instrs) n += instr.kind == kind;
  return n;
}

}  // namespace partita::program
