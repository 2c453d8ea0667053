#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "model/rewrite/retype.h"

namespace partita::model {
namespace {

std::set<std::string> captured_files() {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(PARTITA_SOURCE_DIR "/tests/data")) {
    if (entry.path().string().ends_with(".model.json")) files.insert(entry.path().string());
  }
  return files;
}

TEST(ModelCaptured, FilesReadBackToTheSameBytes) {
  EXPECT_GE(captured_files().size(), 4u);
  for (const std::string& file : captured_files()) {
    std::string text = read_file(file);
    Model model = parse_model(text, file);
    EXPECT_EQ(to_json(model), text) << file;
    EXPECT_EQ(check(retype(model, DType::kFloat64)), std::vector<std::string>{}) << file;
  }
}

TEST(ModelCaptured, FilesCutShortAreRefused) {
  for (const std::string& file : captured_files()) {
    std::string text = read_file(file);
    for (size_t part = 1; part < 8; ++part) {
      EXPECT_THROW(parse_model(std::string_view(text).substr(0, text.size() * part / 8), file), InputError);
    }
  }
}

}  // namespace
}  // namespace partita::model
