// The kernels compute what the CPU computes, to the bit: over the stand-in this is about the bodies of
// kernels, on a GPU about the kernels themselves.
#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include <cohort/value/indexed_slices.h>
#include <cohort/value/variable.h>

#include "collective/kernels/reduce_tensors.h"

namespace cohort {
namespace {

const Device kGpu(DeviceKind::kCuda, 0);
constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool takes(ReduceOp op, DType dtype) {
  try {
    require_legal(op, dtype);
    return true;
  } catch (const InvalidArgument&) {
    return false;
  }
}

/// Values of all signs and sizes, another order of them for each seed.
Tensor mixed(DType dtype, std::size_t seed) {
  std::vector<double> values{0, -0.0, 1, -1, 1.0 / 3, 2.5, -7, 60000, 1e-5, 3, 100, 5};
  if (is_floating(dtype)) values.insert(values.end(), {kInfinity, -kInfinity, std::nan("")});
  const Tensor tensor = Tensor::uninitialized({1000}, DType::kFloat64);
  std::size_t next = seed;
  for (double& element : tensor.span<double>()) {
    next = (next * 5 + 1 + seed) % 1009;
    element = values[next % values.size()];
    if (!is_floating(dtype)) element = std::fmod(std::abs(element), 100);
  }
  return tensor.cast(dtype);
}

TEST(GpuArithmetic, ReducesAsTheCpu) {
  for (const ReduceOp op :
       {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProd}) {
    for (const DType dtype : kAllDTypes) {
      if (!takes(op, dtype)) continue;
      for (const std::size_t count : {1U, 2U, 3U, 7U}) {
        std::vector<Tensor> here;
        std::vector<Tensor> there;
        for (std::size_t i = 0; i < count; ++i) {
          here.push_back(mixed(dtype, i));
          there.push_back(here.back().to(kGpu));
        }
        if (count == 1 && op != ReduceOp::kMean) continue;
        EXPECT_TRUE(bitwise_equal(reduced(op, there), reduced(op, here)))
            << to_string(op) << " of " << count << ' ' << to_string(dtype);
      }
    }
  }
}

TEST(GpuArithmetic, DividesAsTheCpu) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    const Tensor here = mixed(dtype, 3);
    const Tensor there = here.to(kGpu);
    divide(here, 7);
    divide(there, 7);
    EXPECT_TRUE(bitwise_equal(there, here)) << to_string(dtype);
  }
}

/// Rows that are named several times, in an order that shows in the result.
IndexedSlices rows(DType dtype, DType index_dtype, Device device) {
  const Tensor indices = Tensor::from({std::int64_t{2}, std::int64_t{0}, std::int64_t{2}, std::int64_t{69},
                                       std::int64_t{5}, std::int64_t{2}});
  const Tensor values = Tensor::full({6, 3}, dtype, 1);
  double value = 1;
  for (std::int64_t i = 0; i < 6; ++i) values.row(i).fill(value += 2);
  return {values.to(device), indices.cast(index_dtype).to(device), {70, 3}};
}

TEST(GpuArithmetic, ChangesRowsAsTheCpu) {
  using Scatter = const Variable& (Variable::*)(const IndexedSlices&) const;
  const Scatter scatters[] = {&Variable::scatter_add,   &Variable::scatter_sub, &Variable::scatter_mul,
                              &Variable::scatter_div,   &Variable::scatter_min, &Variable::scatter_max,
                              &Variable::scatter_update};
  for (const DType dtype : kAllDTypes) {
    for (const DType index_dtype : {DType::kInt32, DType::kInt64}) {
      for (std::size_t i = 0; i < std::size(scatters); ++i) {
        if (dtype == DType::kBool && i + 1 < std::size(scatters)) continue;
        const Variable here({.initial_value = Tensor::full({70, 3}, dtype, 100)});
        const Variable there({.initial_value = Tensor::full({70, 3}, dtype, 100, kGpu)});
        (here.*scatters[i])(rows(dtype, index_dtype, Device()));
        (there.*scatters[i])(rows(dtype, index_dtype, kGpu));
        EXPECT_TRUE(bitwise_equal(there.read(), here.read())) << to_string(dtype) << " operation " << i;
      }
    }
  }
}

TEST(GpuArithmetic, AddsRowsToZerosAsTheCpu) {
  EXPECT_TRUE(bitwise_equal(densify(rows(DType::kFloat32, DType::kInt32, kGpu)),
                            densify(rows(DType::kFloat32, DType::kInt32, Device()))));
}

TEST(GpuArithmetic, RefusesADivisionByZeroAndRowsOutOfRange) {
  const Variable there({.initial_value = Tensor::full({70, 3}, DType::kInt32, 100, kGpu)});
  IndexedSlices zeros = rows(DType::kInt32, DType::kInt32, kGpu);
  zeros.values.fill(0);
  EXPECT_THROW(there.scatter_div(zeros), InvalidArgument);
  IndexedSlices stray = rows(DType::kInt32, DType::kInt32, kGpu);
  stray.indices.fill(70);
  EXPECT_THROW(there.scatter_add(stray), InvalidArgument);
}

}  // namespace
}  // namespace cohort
