#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

#include "base/namespaces.h"

namespace partita::base {

/// The bytes of a file; InputError if it cannot be read.
std::string read_file(const std::string& path);

/// Writes a file whole or not at all: InputError where it cannot, and what was there before is untouched.
void write_file(const std::string& path, std::string_view text);

/// A file in the making: write() as often as needed, then commit().
/// Until then the bytes lie beside it, and a reader of `path` sees the old file or none. Without commit()
/// they are removed. What is no regular file (a pipe, a device, standard output) is written directly.
/// A link at `path` stays, and its target is replaced; permissions of a file that was there are kept.
class WholeFile {
 public:
  explicit WholeFile(std::string path);
  ~WholeFile();
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  void write(std::string_view bytes);
  /// Returns when the bytes and their name are on the disk.
  void commit();

 private:
  void open_beside();
  void keep_permissions(const struct stat& before) const;
  void sync_folder() const;
  [[noreturn]] void fail(int error) const;

  std::string path_;    // as it was given, for messages
  std::string target_;  // that is replaced: behind all links
  std::string beside_;  // that is renamed to it; empty: written directly
  int file_ = -1;
};

/// Prints on standard output; InputError where that cannot be written.
void print_out(std::string_view text);
/// To be called last: InputError unless all that was printed has been written.
void flush_out();

}  // namespace partita::base
