#include "cli/python.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/error.h"

namespace partita::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kNotFound = 127;

/// Folders around this command, the innermost first.
std::vector<fs::path> folders_around() {
  std::error_code ignored;  // without /proc only PATH is looked at
  std::vector<fs::path> folders;
  for (fs::path at = fs::read_symlink("/proc/self/exe", ignored).parent_path(); at.has_relative_path();
       at = at.parent_path())
    folders.push_back(at);
  return folders;
}

std::vector<std::string> candidates() {
  if (const char* named = std::getenv("PARTITA_PYTHON")) return {named};
  std::vector<std::string> found = {"python3"};
  for (const fs::path& folder : folders_around()) {
    if (fs::exists(folder / ".venv" / "bin" / "python")) found.push_back(folder / ".venv" / "bin" / "python");
    if (fs::exists(folder / "pyvenv.cfg")) found.push_back(folder / "bin" / "python");
  }
  return found;
}

[[noreturn]] void become(const std::string& program, const std::vector<std::string>& words) {
  std::vector<char*> arguments = {const_cast<char*>(program.c_str())};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(program.c_str(), arguments.data());
  _exit(kNotFound);
}

/// Does it end with code 0? Not through a shell, and without a word on stdout or stderr.
bool succeeds(const std::string& program, const std::vector<std::string>& words) {
  pid_t child = fork();
  if (child < 0) input_error("capture: cannot start {}: {}", program, std::strerror(errno));
  if (child == 0) {
    int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    become(program, words);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool has_package(const std::string& python, const char* name) {
  std::string look =
      fmt::format("import importlib.util, sys; sys.exit(not importlib.util.find_spec('{}'))", name);
  return succeeds(python, {"-c", look});
}

std::string python_with_torch() {
  for (const std::string& python : candidates())
    if (has_package(python, "torch")) return python;
  input_error(
      "capture: it needs a Python with torch, and {} has none; activate an environment that has torch, or "
      "set PARTITA_PYTHON to its python",
      fmt::join(candidates(), " or "));
}

/// In a source tree the package lies beside the command and not in the environment.
void add_package() {
  for (const fs::path& folder : folders_around()) {
    if (!fs::exists(folder / "python" / "partita" / "__main__.py")) continue;
    std::string path = folder / "python";
    if (const char* given = std::getenv("PYTHONPATH")) path += std::string(":") + given;
    setenv("PYTHONPATH", path.c_str(), 1);
    return;
  }
}

/// The compiled part of the package that belongs to this command.
void add_library() {
  for (const fs::path& folder : folders_around()) {
    if (!fs::exists(folder / "lib" / "_partita.so")) continue;
    setenv("PARTITA_LIBRARY_DIR", (folder / "lib").c_str(), 0);
    return;
  }
}

}  // namespace

void hand_over_to_python(const std::vector<std::string>& words) {
  std::string python = python_with_torch();
  add_package();
  add_library();
  if (!has_package(python, "partita"))
    input_error("capture: {} has no package partita; install it there, or set PYTHONPATH to its folder",
                python);
  std::vector<std::string> arguments = {"-m", "partita"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  become(python, arguments);
}

}  // namespace partita::cli
