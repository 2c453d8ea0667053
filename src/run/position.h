#pragma once

#include <cstdint>
#include <string>

namespace partita {

/// Where a rank is: what an error or a stall says about it. Written by the rank's thread as it goes.
struct Position {
  int64_t step = 0;  // counted from 1
  int32_t action = -1;
  const char* doing = "idle";  // "run", "send", ...
  const std::string* body = nullptr;
  const std::string* op = nullptr;
  int32_t peer = -1;
};

/// "rank 1, step 2, action 7 (run stage0.forward, h.0.attn/addmm)".
std::string to_text(int32_t rank, const Position& at);

}  // namespace partita
