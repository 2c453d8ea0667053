#include "run/runtime.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/error.h"

namespace partita::run {

// Weak: null in a program that is not linked with the runtime.
extern "C" __attribute__((weak)) const RunApi* partita_run_api(int version);

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

const RunApi& load_runtime() {
  if (partita_run_api) return *partita_run_api(kRunApiVersion);
  std::string path = runtime_path();
  if (path.empty())
    input_error(
        "this command was built without the runtime; build it with `make build`, which installs PyTorch");
  void* library = dlopen(path.c_str(), RTLD_NOW);
  if (!library) input_error("cannot load the runtime: {}; build it again with `make build`", dlerror());
  auto entry = reinterpret_cast<const RunApi* (*)(int)>(dlsym(library, "partita_run_api"));
  const RunApi* api = entry ? entry(kRunApiVersion) : nullptr;
  if (!api) input_error("the runtime beside this command belongs to another version; run `make build`");
  return *api;
}

}  // namespace partita::run
