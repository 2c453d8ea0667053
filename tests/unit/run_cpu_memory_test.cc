// The host's memory behind the seam; a second Memory would have to pass the same.
#include <gtest/gtest.h>

#include <numeric>

#include "run/cpu/cpu_memory.h"

namespace partita::run {
namespace {

HostTensor counting(Shape shape, DType dtype = DType::kFloat32) {
  std::vector<double> values(numel(shape));
  std::iota(values.begin(), values.end(), 1);
  return from_doubles(std::move(shape), dtype, values);
}

TEST(CpuMemory, WhatIsAllocatedIsAlignedAndCanBeWrittenAndRead) {
  CpuMemory memory;
  EXPECT_EQ(memory.allocate(0).get(), nullptr);
  HostTensor value = counting({2, 3});
  TensorType columns{{2, 3}, {1, 2}, DType::kFloat32};
  Block block = memory.allocate(bytes_of(columns));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block.get()) % 64, 0u);
  TensorSpan span{{block.get()}, columns};
  memory.write(value, span.data, walk_dense(columns));
  EXPECT_EQ(memory.read(view_of(span)), value);
}

TEST(CpuMemory, CopiesBetweenAnyStrides) {
  CpuMemory memory;
  HostTensor rows = counting({2, 3}), columns({2, 3}, DType::kFloat32), again({2, 3}, DType::kFloat32);
  TensorSpan from = span_of(rows), to = span_of(columns);
  to.type.strides = {1, 2};
  memory.copy(view_of(from), view_of(to));
  EXPECT_EQ(to_doubles(columns), (std::vector<double>{1, 4, 2, 5, 3, 6}));
  memory.copy(view_of(to), view_of(span_of(again)));
  EXPECT_EQ(again, rows);
}

TEST(CpuMemory, ZerosLeaveGapsAlone) {
  CpuMemory memory;
  HostTensor tensor = counting({6});
  memory.zero(view_of(TensorSpan{{tensor.data.data()}, {{2, 2}, {3, 1}, DType::kFloat32}}));
  EXPECT_EQ(to_doubles(tensor), (std::vector<double>{0, 0, 3, 0, 0, 6}));
  memory.zero(view_of(TensorSpan{{tensor.data.data()}, {{2}, {3}, DType::kFloat32}}));
  memory.zero(view_of(TensorSpan{{tensor.data.data() + 8}, {{1, 0}, {1, 1}, DType::kFloat32}}));
  EXPECT_EQ(to_doubles(tensor), (std::vector<double>{0, 0, 3, 0, 0, 6}));
}

TEST(CpuMemory, SquaresAreAddedUp) {
  CpuMemory memory;
  HostTensor sum = from_doubles({1}, DType::kFloat64, {0.5}), a = from_doubles({2}, DType::kBFloat16, {3, 4});
  memory.add_squares(view_of(span_of(a)), span_of(sum).data);
  EXPECT_EQ(memory.number(span_of(sum).data), 25.5);
}

TEST(CpuMemory, SlicesAndPlacesAlongACut) {
  CpuMemory memory;
  Cut cut{.dim = 0, .outer = 2, .inner = 2};
  HostTensor whole = counting({8}), part({4}, DType::kFloat32), back({8}, DType::kFloat32);
  memory.slice(span_of(whole), span_of(part), cut, 1);
  EXPECT_EQ(to_doubles(part), (std::vector<double>{3, 4, 7, 8}));
  memory.place(span_of(part), span_of(back), cut, 0);
  EXPECT_EQ(to_doubles(back), (std::vector<double>{3, 4, 0, 0, 7, 8, 0, 0}));
}

TEST(CpuMemory, LoadsABoxOfAValueOfTheHost) {
  CpuMemory memory;
  HostTensor whole = counting({2, 4}), part({2, 2}, DType::kFloat32);
  memory.load(whole, {{2}, {4}}, {{{0, 2}}, {{1, 3}}}, span_of(part));
  EXPECT_EQ(to_doubles(part), (std::vector<double>{2, 3, 6, 7}));
}

}  // namespace
}  // namespace partita::run
