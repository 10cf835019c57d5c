// The all-reduce of sparse tensors: the elements of all ranks, gathered and added by rank.
#include <algorithm>
#include <vector>

#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/zeros.h>

#include <cohort/base/fingerprint.h>

#include "backend.h"
#include "tensors.h"

namespace cohort::pytorch {
namespace {

/// Every member's number, by rank.
std::vector<std::int64_t> all_numbers(Communicator& communicator, std::int64_t own,
                                      const CallOptions& options) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(communicator.size()));
  communicator.all_gather(Tensor::wrap(std::span(&own, 1), {1}),
                          Tensor::wrap(std::span(all), {communicator.size()}), options);
  return all;
}

/// Every member's rows, in tables of `rows` rows: members with fewer are filled up.
at::Tensor all_rows(Communicator& communicator, const at::Tensor& own, std::int64_t rows,
                    const CallOptions& options) {
  std::vector<std::int64_t> shape = own.sizes().vec();
  shape[0] = rows;
  const at::Tensor table = at::zeros(shape, own.options());
  table.narrow(0, 0, own.size(0)).copy_(own);
  const at::Tensor all = scratch(table.numel() * communicator.size(), table);
  communicator.all_gather(contents_of(table), contents_of(all), options);
  shape.insert(shape.begin(), communicator.size());
  return all.view(shape);
}

at::Tensor sum_of_sparse(Communicator& communicator, const at::Tensor& tensor, CallOptions options) {
  // Members with different shapes are told so.
  Fingerprint shape;
  for (const std::int64_t extent : tensor.sizes()) shape.add(static_cast<std::uint64_t>(extent));
  options.layout = shape.add(static_cast<std::uint64_t>(tensor.sparse_dim())).value();

  const at::Tensor own = tensor.coalesce();
  const std::vector<std::int64_t> counts = all_numbers(communicator, own._nnz(), options);
  const std::int64_t most = std::ranges::max(counts);
  const at::Tensor places = all_rows(communicator, own.indices().t().contiguous(), most, options);
  const at::Tensor values = all_rows(communicator, own.values().contiguous(), most, options);
  at::Tensor sum;
  for (std::size_t member = 0; member < counts.size(); ++member) {
    const auto row = static_cast<std::int64_t>(member);
    const at::Tensor part = at::sparse_coo_tensor(places[row].narrow(0, 0, counts[member]).t(),
                                                  values[row].narrow(0, 0, counts[member]), tensor.sizes());
    sum = sum.defined() ? sum.add(part) : part;
  }
  // The gathered memory is used no longer than this call.
  return sum.coalesce().clone();
}

}  // namespace

CohortBackend::WorkPointer CohortBackend::allreduce_sparse(Tensors& tensors,
                                                           const c10d::AllreduceOptions& options) {
  TORCH_CHECK_VALUE(tensors.size() == 1 && tensors.front().layout() == at::kSparse,
                    "cohort: a sparse all_reduce takes one sparse tensor (COO)");
  TORCH_CHECK_TYPE(options.reduceOp == c10d::ReduceOp::SUM, "cohort: a sparse all_reduce is a SUM");
  const at::Tensor tensor = tensors.front();
  return start(
      label(c10d::OpType::_ALLREDUCE_SPARSE, "cohort:all_reduce", options),
      [this, tensor](const CallOptions& call) { tensor.copy_(sum_of_sparse(*collectives_, tensor, call)); },
      tensors, tensors);
}

}  // namespace cohort::pytorch
