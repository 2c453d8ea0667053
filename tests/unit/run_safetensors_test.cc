#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "run/safetensors.h"

namespace partita::run {
namespace {

HostTensors some() {
  return {{"a.weight", from_doubles({2, 3}, DType::kFloat32, {1, 2, 3, 4, 5, 6})},
          {"b", from_doubles({}, DType::kInt64, {-7})},
          {"empty", HostTensor({0, 4}, DType::kBFloat16)}};
}

std::string file(const std::string& header, size_t data) {
  uint64_t length = header.size();
  std::string bytes(8, 0);
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + std::string(data, 0);
}

std::string complaint(const std::string& bytes) {
  try {
    parse_safetensors(bytes, "w.safetensors");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Safetensors, ReadsWhatItWrites) { EXPECT_EQ(parse_safetensors(to_safetensors(some()), "f"), some()); }

TEST(Safetensors, MetadataIsNoTensor) {
  EXPECT_TRUE(parse_safetensors(file(R"({"__metadata__": {"format": "pt"}})", 0), "f").empty());
}

TEST(Safetensors, ACutFileIsRefusedWhereverItIsCut) {
  std::string bytes = to_safetensors(some());
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_NE(complaint(bytes.substr(0, size)), "") << size;
}

TEST(Safetensors, OffsetsMustHoldTheShape) {
  auto tensor = [](const std::string& rest) { return file(R"({"w": {"dtype": "F32", )" + rest + "}}", 16); };
  EXPECT_EQ(complaint(tensor(R"("shape": [4], "data_offsets": [0, 16])")), "");
  EXPECT_NE(
      complaint(tensor(R"("shape": [3], "data_offsets": [0, 16])")).find("16 bytes where the shape needs 12"),
      std::string::npos);
  EXPECT_NE(complaint(tensor(R"("shape": [4], "data_offsets": [16, 32])")), "");
  EXPECT_NE(complaint(tensor(R"("shape": [4], "data_offsets": [16, 0])")), "");
  EXPECT_NE(complaint(tensor(R"("shape": [-4], "data_offsets": [0, 16])")), "");
  EXPECT_NE(complaint(tensor(R"("shape": [4294967296, 4294967296, 4], "data_offsets": [0, 0])")), "");
  EXPECT_NE(complaint(file(R"({"w": {"dtype": "F8_E4M3", "shape": [1], "data_offsets": [0, 1]}})", 1)), "");
}

}  // namespace
}  // namespace partita::run
