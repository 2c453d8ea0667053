#include "rows_apart.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "base/error.h"

namespace partita::run {

int first_that_holds(int count, const std::function<bool(int)>& question) {
  struct Progress {
    int asked, found;
  };
  void* shared = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(shared != MAP_FAILED);
  Progress* progress = new (shared) Progress{-1, -1};
  // After a crash a new process goes on with the next question.
  while (progress->found < 0 && progress->asked + 1 < count) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      alarm(20);
      if (!freopen("/dev/null", "w", stderr)) _exit(2);
      while (++progress->asked < count && progress->found < 0) {
        try {
          if (question(progress->asked)) progress->found = progress->asked;
        } catch (const std::exception&) {
        }
      }
      _exit(0);
    }
    CHECK_EQ(waitpid(child, nullptr, 0), child);
  }
  int found = progress->found;
  munmap(shared, sizeof(Progress));
  return found;
}

namespace {

/// Where a process apart is, in memory it shares.
struct Asked {
  int mutant, next;  // next: the frozen loop of this mutant to be tried next
};

// Which question was asked when the process died: again in a new one if it was not the first there.
void after_crash(const Asked& start, Asked& now, char* answers) {
  bool first = now.mutant == start.mutant;
  if (first && now.next == start.next)
    answers[now.mutant++] = false, now.next = 0;
  else if (now.next > 0 && !(first && now.next == start.next + 1))
    --now.next;
}

using Survives = std::function<bool(int mutant, int& next)>;

/// Asks about mutants `now->mutant` to `end`; where a process dies a new one goes on.
void ask(Asked* now, int end, char* answers, const Survives& survives) {
  while (now->mutant < end) {
    Asked start = *now;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      if (!freopen("/dev/null", "w", stderr)) _exit(2);
      for (; now->mutant < end; ++now->mutant, now->next = 0) {
        alarm(20);
        try {
          answers[now->mutant] = survives(now->mutant, now->next);
        } catch (const std::exception&) {
          answers[now->mutant] = false;
        }
      }
      _exit(0);
    }
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    if (now->mutant < end) after_crash(start, *now, answers);
  }
}

}  // namespace

std::vector<bool> survivors(int count, const Survives& survives) {
  size_t bytes = sizeof(Asked) + static_cast<size_t>(count);
  void* shared = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(shared != MAP_FAILED);
  Asked* now = new (shared) Asked{0, 0};
  char* answers = reinterpret_cast<char*>(now + 1);
  ask(now, count, answers, survives);
  // A mutant before it may have written where it should not, without a crash: survivors are asked alone.
  for (int i = 0; i < count; ++i)
    if (answers[i]) *now = {i, 0}, ask(now, i + 1, answers, survives);
  std::vector<bool> out(answers, answers + count);
  munmap(shared, bytes);
  return out;
}

}  // namespace partita::run
