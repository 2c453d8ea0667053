// A file appears by one rename of a file beside it, since a rename is all or nothing. Bytes are on the disk
// before the rename: a machine that loses power in between must not find a name without its bytes. Streams of
// the standard library are not used to write, since they hide which write failed and why.

#include "base/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/error.h"

namespace partita::base {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxBytes = size_t{1} << 30;
constexpr size_t kBlock = size_t{1} << 16;
constexpr int kMostLinks = 40;  // as the kernel follows
constexpr mode_t kPermissions = 0666, kPermissionBits = 07777;

struct Hint {
  int error;
  const char* text;
};
constexpr Hint kHints[] = {{ENOENT, "does its folder exist?"},
                           {ENOTDIR, "does its folder exist?"},
                           {EISDIR, "name a file in this folder"},
                           {ENOSPC, "free some space or write elsewhere"},
                           {EDQUOT, "free some space or write elsewhere"},
                           {EFBIG, "raise the limit of file sizes (ulimit -f)"},
                           {EACCES, "write to a folder of your own"},
                           {EPERM, "write to a folder of your own"},
                           {EROFS, "write to a folder of your own"}};

const char* hint_of(int error) {
  for (const Hint& hint : kHints)
    if (hint.error == error) return hint.text;
  return "write elsewhere";
}

/// Behind all links; the last of them may lead to a file that does not exist yet.
std::string behind_links(fs::path path) {
  std::error_code none;
  for (int k = 0; k < kMostLinks && fs::is_symlink(fs::symlink_status(path, none)); ++k) {
    fs::path next = fs::read_symlink(path, none);
    path = next.is_absolute() ? next : path.parent_path() / next;
  }
  return path.string();
}

/// The descriptor of standard output or error if this is the file behind it, else -1. It is not to be
/// replaced: what is printed later would go to a file without a name.
int stream_of(const struct stat& file) {
  for (int stream : {STDOUT_FILENO, STDERR_FILENO})
    if (struct stat there;
        fstat(stream, &there) == 0 && there.st_dev == file.st_dev && there.st_ino == file.st_ino)
      return stream;
  return -1;
}

std::string folder_of(const std::string& path) {
  std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

/// 0, or what went wrong. A file system that cannot sync has nothing to wait for.
int sync(int file) { return fsync(file) == 0 || errno == EINVAL || errno == ENOTSUP ? 0 : errno; }

int write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR) return errno;
    if (count > 0) bytes.remove_prefix(static_cast<size_t>(count));
  }
  return 0;
}

[[noreturn]] void fail_out(int error) {
  input_error("standard output: cannot write all of it: {}; {}", std::strerror(error), hint_of(error));
}

}  // namespace

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in || fs::is_directory(path)) input_error("{}: cannot read this file; does it exist?", path);
  std::error_code unknown;  // of a pipe
  uintmax_t size = fs::file_size(path, unknown);
  std::string text;
  if (!unknown && size <= kMaxBytes) text.reserve(size + 1);
  std::vector<char> block(kBlock);
  while (in && text.size() <= kMaxBytes) {
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    text.append(block.data(), static_cast<size_t>(in.gcount()));
  }
  if (text.size() > kMaxBytes) input_error("{}: more than the limit of {} bytes", path, kMaxBytes);
  return text;
}

void write_file(const std::string& path, std::string_view text) {
  WholeFile file(path);
  file.write(text);
  file.commit();
}

WholeFile::WholeFile(std::string path) : path_(std::move(path)), target_(behind_links(path_)) {
  struct stat before;
  bool exists = stat(path_.c_str(), &before) == 0;
  int stream = exists ? stream_of(before) : -1;
  if (stream >= 0) {
    flush_out();
    file_ = fcntl(stream, F_DUPFD_CLOEXEC, 0);
  } else if (exists && !S_ISREG(before.st_mode)) {
    file_ = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    open_beside();
    if (exists && file_ >= 0) keep_permissions(before);
  }
  if (file_ < 0) fail(errno);
}

WholeFile::~WholeFile() {
  if (file_ < 0) return;
  close(file_);
  if (!beside_.empty()) unlink(beside_.c_str());
}

// The name is short whatever the name of the file is, and says whose it is where a process was killed.
void WholeFile::open_beside() {
  static std::atomic<int> made = 0;
  do {
    beside_ = fmt::format("{}/.partita-{}-{}.part", folder_of(target_), getpid(), made++);
    file_ = open(beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kPermissions);
  } while (file_ < 0 && errno == EEXIST);
}

// Whoever may not give files away keeps the new one, as an editor would.
void WholeFile::keep_permissions(const struct stat& before) const {
  [[maybe_unused]] int owner = fchown(file_, before.st_uid, before.st_gid);
  [[maybe_unused]] int mode = fchmod(file_, before.st_mode & kPermissionBits);
}

void WholeFile::write(std::string_view bytes) {
  CHECK(file_ >= 0);
  if (int error = write_all(file_, bytes)) fail(error);
}

void WholeFile::commit() {
  CHECK(file_ >= 0);
  if (int error = beside_.empty() ? 0 : sync(file_)) fail(error);
  int closed = close(file_), error = errno;
  file_ = -1;
  if (closed == 0 && (beside_.empty() || rename(beside_.c_str(), target_.c_str()) == 0)) return sync_folder();
  if (closed == 0) error = errno;
  if (!beside_.empty()) unlink(beside_.c_str());
  fail(error);
}

// So that the new name survives too. A folder one may write to but not read cannot be synced.
void WholeFile::sync_folder() const {
  if (beside_.empty()) return;
  int folder = open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  int error = sync(folder);
  close(folder);
  if (error) fail(error);
}

void WholeFile::fail(int error) const {
  input_error("{}: cannot write this file: {}; {}", path_, std::strerror(error), hint_of(error));
}

void print_out(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail_out(errno);
}

void flush_out() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) fail_out(errno ? errno : EIO);
}

}  // namespace partita::base
