#include "cli/runtime.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace partita {

namespace fs = std::filesystem;

std::string runtime_path() {
  std::error_code ignored;  // a missing /proc means only that the second place is not looked at
  fs::path beside = fs::read_symlink("/proc/self/exe", ignored).parent_path().parent_path() / "lib";
  const char* named = std::getenv("PARTITA_LIBRARY_DIR");
  for (const fs::path& folder : {named ? fs::path(named) : beside, beside}) {
    if (fs::exists(folder / "libpartita_run.so", ignored)) return folder / "libpartita_run.so";
  }
  return "";
}

}  // namespace partita
