#include "cli/progress_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>

namespace partita::cli {
namespace {

/// Between two lines of one phase, and between two drawings of a line that is rewritten.
constexpr std::chrono::milliseconds kBetweenLines{1000}, kBetweenDrawings{100};
constexpr size_t kUnknownWidth = 80;
/// Back to the first column, and clear what is right of it.
constexpr const char* kErase = "\r\x1b[K";

}  // namespace

ProgressLine::ProgressLine(std::FILE* out, bool terminal) : out_(out), terminal_(terminal) {
  if (terminal_) counting_ = std::thread([this] { keep_counting(); });
}

ProgressLine::~ProgressLine() {
  erase();
  {
    std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_all();
  if (counting_.joinable()) counting_.join();
}

void ProgressLine::show(std::string_view what, std::string_view facts) {
  std::lock_guard lock(mutex_);
  bool fresh = what_ != what;
  what_ = what;
  facts_ = facts;
  if (fresh || Clock::now() - drawn_ >= (terminal_ ? kBetweenDrawings : kBetweenLines)) draw();
}

void ProgressLine::erase() {
  std::lock_guard lock(mutex_);
  if (terminal_ && !what_.empty()) put(kErase);
  what_.clear();
}

// A phase that has nothing to report for long is still seen to go on.
void ProgressLine::keep_counting() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kBetweenDrawings, [this] { return end_; }))
    if (!what_.empty() && Clock::now() - drawn_ >= kBetweenDrawings) draw();
}

void ProgressLine::draw() {
  drawn_ = Clock::now();
  // A line that fills the last column would wrap.
  put(terminal_ ? kErase + text().substr(0, width() - 1) : text() + "\n");
}

// Whoever cannot be told how it goes still gets the answer.
void ProgressLine::put(const std::string& text) const {
  std::fwrite(text.data(), 1, text.size(), out_);
  std::fflush(out_);
}

std::string ProgressLine::text() const {
  double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  return fmt::format("{}{}{}, {:.1f} s", what_, facts_.empty() ? "" : " ", facts_, seconds);
}

size_t ProgressLine::width() const {
  winsize size{};
  bool known = ioctl(fileno(out_), TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return known ? size.ws_col : kUnknownWidth;
}

}  // namespace partita::cli
