#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "model/attention_kernels.h"
#include "model/rewrite/key_chunks.h"

namespace partita::model {
namespace {

Model captured(const std::string& name) {
  std::string file = fmt::format("{}/tests/data/{}.model.json", PARTITA_SOURCE_DIR, name);
  return parse_model(read_file(file), file);
}

const Op* find(const Model& model, const std::string& name) {
  for (const Op& op : model.ops)
    if (op.name == name) return &op;
  return nullptr;
}

class KeyChunks : public testing::TestWithParam<int64_t> {};

TEST_P(KeyChunks, MakeTheSameTensorsByOpsThatHold) {
  for (const char* name : {"gpt2-tiny", "llama-tiny"}) {
    Model model = captured(name), chunked = with_key_chunks(model, GetParam());
    EXPECT_EQ(check(chunked), std::vector<std::string>{}) << name;
    for (const Op& op : model.ops) {
      const Op* same = find(chunked, op.name);
      ASSERT_TRUE(same) << op.name;
      EXPECT_EQ(same->outputs[0], op.outputs[0]) << op.name;
      EXPECT_EQ(chunked[op.outputs[0]].strides, model[op.outputs[0]].strides) << op.name;
    }
  }
}

// One kernel call over all chunks, none causal, and one mask for all layers and both directions.
TEST_P(KeyChunks, KernelsRunOverTheChunks) {
  Model chunked = with_key_chunks(captured("gpt2-tiny"), GetParam());
  std::set<TensorId> masks;
  for (const Op& op : chunked.ops) {
    std::optional<AttentionKernel> kernel = attention_kernel(op);
    if (!kernel) continue;
    EXPECT_EQ(chunked[op.args[kernel->query].tensor].shape[0], GetParam()) << op.name;
    EXPECT_NE(op.name.find(".part.chunks."), std::string::npos) << op.name;
    masks.insert(argument(op, kernel->is_causal + 1, "attn_mask").tensor);
  }
  ASSERT_EQ(masks.size(), 1u);
  EXPECT_EQ(chunked[*masks.begin()].shape[0], GetParam());
}

INSTANTIATE_TEST_SUITE_P(Counts, KeyChunks, testing::Values(2, 3, 4));

TEST(KeyChunks, MoreChunksThanKeysAreRefused) {
  EXPECT_NO_THROW(with_key_chunks(captured("gpt2-tiny"), 16));
  EXPECT_THROW(with_key_chunks(captured("gpt2-tiny"), 17), InputError);
}

TEST(KeyChunks, AModelWithoutAttentionIsRefused) {
  EXPECT_THROW(with_key_chunks(captured("convnet-tiny"), 2), InputError);
}

}  // namespace
}  // namespace partita::model
