#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/units.h"
#include "cli/verbs.h"
#include "run/runtime.h"

namespace partita::cli {
namespace {

struct Finding {
  std::string name;
  bool ok = false;
  std::string found;  // what was found, or what is missing and what to do about it
  std::string means;  // what will or will not work because of it
};

Finding processor() {
  unsigned cores = std::thread::hardware_concurrency();
  return {"cores", cores > 0, fmt::to_string(cores), "thread ranks run at full speed up to this number"};
}

Finding memory() {
  Bytes bytes = static_cast<Bytes>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  return {"memory", bytes > 0, show_bytes(bytes), "all thread ranks share it"};
}

Finding runtime() {
  std::string path = runtime_path();
  if (path.empty())
    return {"runtime", false, "libpartita_run.so is missing; run make build",
            "train and verify do not work; everything else does"};
  void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (!library) return {"runtime", false, dlerror(), "train and verify do not work; everything else does"};
  dlclose(library);
  return {"runtime", true, "libpartita_run.so loads", "train and verify work"};
}

/// The first line a shell command prints, without its end; empty if it fails.
std::string first_line(const char* command) {
  FILE* pipe = popen(command, "r");
  if (!pipe) return "";
  std::array<char, 256> line{};
  bool got = std::fgets(line.data(), line.size(), pipe) != nullptr;
  bool failed = pclose(pipe) != 0;
  std::string text = got && !failed ? line.data() : "";
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

Finding python() {
  std::string version =
      first_line("python3 -c 'import importlib.metadata as m; print(m.version(\"torch\"))' 2>/dev/null");
  if (version.empty())
    return {"torch", false, "python3 has no torch; activate the .venv that make build fills",
            "partita.capture and partita.parallelize do not work from this python3"};
  return {"torch", true, version, "partita.capture and partita.parallelize work with this version of torch"};
}

Finding gpu() {
  bool found = std::filesystem::exists("/dev/nvidia0") || std::filesystem::exists("/dev/kfd");
  return {"gpu", found, found ? "a GPU device file" : "none",
          found ? "PyTorch decides whether it can be used"
                : "ranks run on the processor; planning for GPUs needs none"};
}

}  // namespace

void add_doctor(CLI::App& app, Command& command) {
  app.footer("Example: partita doctor --json");
  app.callback([&command] {
    Json checks = Json::array();
    std::string text;
    for (const Finding& finding : {processor(), memory(), runtime(), python(), gpu()}) {
      checks.push_back(
          {{"name", finding.name}, {"ok", finding.ok}, {"found", finding.found}, {"means", finding.means}});
      text += fmt::format("{:<4} {:<8} {} ({})\n", finding.ok ? "ok" : "no", finding.name, finding.found,
                          finding.means);
    }
    command.answer({{"version", PARTITA_VERSION}, {"checks", checks}}, text);
  });
}

}  // namespace partita::cli
