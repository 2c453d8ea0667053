#include "run/threads/core.h"

#include <pthread.h>
#include <sched.h>

namespace partita::run {

void stay_on_core(int32_t rank, int32_t ranks) {
  cpu_set_t allowed, one;
  if (pthread_getaffinity_np(pthread_self(), sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < ranks)
    return;
  int32_t before = 0;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || before++ < rank) continue;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    // A wish: where it is refused the thread runs as threads do.
    static_cast<void>(pthread_setaffinity_np(pthread_self(), sizeof one, &one));
    return;
  }
}

}  // namespace partita::run
