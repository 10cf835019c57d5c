#include "communicator_contracts.h"

#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cohort/collective/communication_scope.h>
#include <cohort/collective/gradient_buckets.h>

#include "collective/packing/tensor_lists.h"
#include "reduction_inputs.h"

namespace cohort::testing {
namespace {

/// A reduction that all members make with the same kind of elements.
struct Case {
  Communicator& communicator;
  DType dtype;
  ReduceOp op;

  [[nodiscard]] Tensor input(std::size_t elements) const {
    return ordered_inputs(communicator.rank(), dtype, op, elements);
  }
  [[nodiscard]] Tensor wanted(std::size_t elements) const {
    return ordered_result(communicator.size(), dtype, op, elements);
  }
  [[nodiscard]] Tensor zeros(std::size_t elements) const {
    return Tensor::zeros({static_cast<std::int64_t>(elements)}, dtype);
  }

  void expect_same(const Tensor& got, const Tensor& wanted, std::string_view what) const {
    EXPECT_TRUE(bitwise_equal(got, wanted)) << fmt::format(
        "{}: member {} of {}, {} of {}[{}], {}", what, communicator.rank(), communicator.size(),
        to_string(op), to_string(dtype), got.elements(), communicator.last_algorithm());
  }
};

/// The same elements in memory that is not Cohort's.
Tensor in_ordinary_memory(const Tensor& source) {
  auto memory = std::make_shared<std::vector<std::byte>>(source.elements() * size_of(source.dtype()) + 64);
  auto buffer = std::make_shared<const Buffer>(memory->data(), memory->size(), Device(), memory);
  Tensor copy = Tensor::wrap(std::move(buffer), 0, source.shape(), source.dtype());
  copy.copy_from(source);
  return copy;
}

void check_all_reduce(const Case& test, std::size_t elements) {
  const Tensor input = test.input(elements);
  const Tensor wanted = test.wanted(elements);
  const Tensor output = test.zeros(elements);
  test.communicator.all_reduce(input, output, test.op);
  test.expect_same(output, wanted, "all_reduce");
  test.communicator.all_reduce(input, test.op);
  test.expect_same(input, wanted, "all_reduce in place");
}

void check_reduce(const Case& test, std::size_t elements) {
  for (const int root : {0, test.communicator.size() - 1}) {
    const Tensor output = test.zeros(elements);
    test.communicator.reduce(test.input(elements), output, test.op, root);
    if (test.communicator.rank() == root) test.expect_same(output, test.wanted(elements), "reduce");
  }
}

void check_reduce_scatter(const Case& test, std::size_t block) {
  const auto begin = static_cast<std::int64_t>(block) * test.communicator.rank();
  const auto end = begin + static_cast<std::int64_t>(block);
  const std::size_t all = block * static_cast<std::size_t>(test.communicator.size());
  const Tensor input = test.input(all);
  const Tensor wanted = test.wanted(all).rows(begin, end);
  const Tensor output = test.zeros(block);
  test.communicator.reduce_scatter(input, output, test.op);
  test.expect_same(output, wanted, "reduce_scatter");
  test.communicator.reduce_scatter(input, input.rows(begin, end), test.op);
  test.expect_same(input.rows(begin, end), wanted, "reduce_scatter in place");
}

void check_in_flight(const Case& test, std::size_t elements) {
  constexpr int kCalls = 3;
  std::vector<Tensor> tensors;
  std::vector<Work> works;
  for (int call = 0; call < kCalls; ++call) {
    tensors.push_back(test.input(elements + static_cast<std::size_t>(call)));
    works.push_back(test.communicator.all_reduce_async(tensors.back(), test.op));
  }
  for (std::size_t call = works.size(); call-- > 0;) {
    works[call].wait();
    test.expect_same(tensors[call], test.wanted(tensors[call].elements()), "all_reduce_async");
  }
}

/// Small and large tensors of several dtypes.
std::vector<TensorSpec> packed_specs() {
  return {{{3, 5}, DType::kFloat32}, {{7}, DType::kFloat16},      {{1000}, DType::kFloat32},
          {{900}, DType::kBFloat16}, {{30'001}, DType::kFloat32}, {{20}, DType::kFloat64},
          {{5000}, DType::kFloat16}, {{1}, DType::kFloat32}};
}

std::vector<Tensor> own_tensors(Communicator& communicator, ReduceOp op) {
  std::vector<Tensor> tensors;
  for (const TensorSpec& spec : packed_specs())
    tensors.push_back(
        ordered_inputs(communicator.rank(), spec.dtype, op, spec.elements()).reshape(spec.shape));
  return tensors;
}

void expect_results(Communicator& communicator, std::span<const Tensor> got, ReduceOp op,
                    const std::string& what) {
  for (const Tensor& tensor : got) {
    const Tensor wanted =
        ordered_result(communicator.size(), tensor.dtype(), op, tensor.elements()).reshape(tensor.shape());
    EXPECT_TRUE(bitwise_equal(tensor, wanted)) << what << ", " << tensor.elements() << " elements";
  }
}

}  // namespace

void check_rank_order(Communicator& communicator) {
  for (const DType dtype : kAllDTypes) {
    for (const ReduceOp op : kAllOps) {
      if (!is_legal(op, dtype)) continue;
      const Case test{communicator, dtype, op};
      for (const std::size_t elements : {1u, 7u, 1000u}) {
        check_all_reduce(test, elements);
        check_reduce(test, elements);
        check_reduce_scatter(test, elements);
      }
    }
  }
}

void check_rank_order_of_sizes(Communicator& communicator) {
  const Case floats{communicator, DType::kFloat32, ReduceOp::kSum};
  const Case halves{communicator, DType::kBFloat16, ReduceOp::kMean};
  constexpr std::size_t kBytes[] = {56,       60,        8 << 10,   (8 << 10) + 4, 56 << 10,
                                    64 << 10, 100 << 10, 128 << 10, 300 << 10,     (1 << 20) + 12};
  for (const std::size_t bytes : kBytes) {
    check_all_reduce(floats, bytes / sizeof(float));
    check_all_reduce(halves, bytes / sizeof(bfloat16));
    check_reduce(floats, bytes / sizeof(float));
    const std::size_t elements = bytes / sizeof(float);
    const Tensor ordinary = in_ordinary_memory(floats.input(elements));
    communicator.all_reduce(ordinary, floats.op);
    floats.expect_same(ordinary, floats.wanted(elements), "all_reduce of ordinary memory");
  }
  for (const std::size_t elements : {3'000u, 30'000u}) {
    check_reduce_scatter(floats, elements);
    check_reduce_scatter(halves, elements);
    check_in_flight(floats, elements);
    check_in_flight(halves, elements);
  }
}

void check_rank_order_of_packs(Communicator& communicator) {
  for (const std::size_t limit : {std::size_t{0}, std::size_t{100}, std::size_t{1} << 30}) {
    const std::vector<Tensor> batch = own_tensors(communicator, ReduceOp::kSum);
    const CommunicationScope scope(communicator, {.bytes_per_pack = limit});
    BatchReducer().all_reduce(communicator, batch, ReduceOp::kSum);
    expect_results(communicator, batch, ReduceOp::kSum, fmt::format("a batch in packs of {}", limit));

    const std::vector<Tensor> gradients = own_tensors(communicator, ReduceOp::kMean);
    GradientBuckets buckets(communicator, packed_specs(), {.bytes_per_bucket = limit, .op = ReduceOp::kMean});
    for (std::size_t i = 0; i < gradients.size(); ++i) buckets.ready(i, gradients[i]);
    buckets.wait();
    std::vector<Tensor> results;
    for (std::size_t i = 0; i < gradients.size(); ++i) results.push_back(buckets.result(i));
    expect_results(communicator, results, ReduceOp::kMean, fmt::format("gradients in buckets of {}", limit));
  }
}

}  // namespace cohort::testing
