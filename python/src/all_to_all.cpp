// All-to-all with blocks of any sizes. The ranks first tell each other the sizes, in one small all-gather:
// then all know whether blocks have one size, which is faster, and who is to blame where two of them differ.
#include <algorithm>
#include <cstring>
#include <exception>
#include <vector>

#include <fmt/format.h>

#include <cohort/base/error.h>

#include "backend.h"
#include "tags.h"
#include "tensors.h"

namespace cohort::pytorch {
namespace {

using c10d::OpType;

/// Bytes from each member to each other one.
class BlockSizes {
 public:
  /// `own` has the bytes that this member sends to each one, and then those that it expects from each.
  BlockSizes(Communicator& communicator, std::vector<std::int64_t> own, const CallOptions& options)
      : members_(static_cast<std::size_t>(communicator.size())) {
    all_.resize(own.size() * members_);
    const auto row = [](std::vector<std::int64_t>& values) {
      return Tensor::wrap(std::span(values), {static_cast<std::int64_t>(values.size())});
    };
    communicator.all_gather(row(own), row(all_), options);
    require_agreement(communicator);
  }

  [[nodiscard]] bool are_equal() const {
    return std::ranges::adjacent_find(all_, std::ranges::not_equal_to()) == all_.end();
  }

 private:
  [[nodiscard]] std::int64_t sent(std::size_t from, std::size_t to) const {
    return all_[from * 2 * members_ + to];
  }
  [[nodiscard]] std::int64_t expected(std::size_t from, std::size_t to) const {
    return all_[to * 2 * members_ + members_ + from];
  }

  /// @throws InvalidArgument naming the first two that differ, the same on all members.
  void require_agreement(const Communicator& communicator) const {
    for (std::size_t from = 0; from < members_; ++from) {
      for (std::size_t to = 0; to < members_; ++to) {
        if (sent(from, to) == expected(from, to)) continue;
        const auto who = [&](std::size_t member) {
          return describe(static_cast<int>(member), communicator.members()[member]);
        };
        throw InvalidArgument(
            "all_to_all: {} sends {} bytes to {}, which has room for {}; the sizes must agree", who(from),
            sent(from, to), who(to), expected(from, to));
      }
    }
  }

  std::size_t members_;
  std::vector<std::int64_t> all_;
};

/// Appends the bytes of each block of rows.
void add_sizes(std::vector<std::int64_t>& sizes, const at::Tensor& tensor,
               const std::vector<std::int64_t>& splits, int size) {
  const std::int64_t rows = tensor.size(0);
  const auto bytes = static_cast<std::int64_t>(tensor.nbytes());
  if (splits.empty()) sizes.insert(sizes.end(), static_cast<std::size_t>(size), bytes / size);
  for (const std::int64_t split : splits) sizes.push_back(rows == 0 ? 0 : bytes / rows * split);
}

/// Views of the rows of a tensor, by rank.
std::vector<at::Tensor> blocks_of(const at::Tensor& tensor, const std::vector<std::int64_t>& splits,
                                  int size) {
  std::vector<at::Tensor> blocks;
  std::int64_t row = 0;
  for (int member = 0; member < size; ++member) {
    const std::int64_t rows =
        splits.empty() ? tensor.size(0) / size : splits[static_cast<std::size_t>(member)];
    blocks.push_back(tensor.narrow(0, row, rows));
    row += rows;
  }
  return blocks;
}

void require_splits(const std::vector<std::int64_t>& splits, const at::Tensor& tensor, int size) {
  TORCH_CHECK_VALUE(tensor.dim() > 0, "cohort: all_to_all_single takes tensors with rows, not a number");
  c10d::checkSplitSizes(splits, tensor, size);
}

}  // namespace

CohortBackend::WorkPointer CohortBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                                        std::vector<std::int64_t>& output_splits,
                                                        std::vector<std::int64_t>& input_splits,
                                                        const c10d::AllToAllOptions& options) {
  TORCH_CHECK_TYPE(output.scalar_type() == input.scalar_type(), "cohort: all_to_all_single: input is ",
                   input.scalar_type(), " but output is ", output.scalar_type());
  require_splits(output_splits, output, size_);
  require_splits(input_splits, input, size_);
  return start(label(OpType::ALLTOALL_BASE, "cohort:all_to_all", options),
               [this, output, input, output_splits, input_splits](const CallOptions& call) {
                 const at::Tensor row = row_major(input);
                 const at::Tensor result = row_major_result(output);
                 std::vector<std::int64_t> sizes;
                 add_sizes(sizes, row, input_splits, size_);
                 add_sizes(sizes, result, output_splits, size_);
                 if (BlockSizes(*collectives_, std::move(sizes), call).are_equal())
                   collectives_->all_to_all(contents_of(row), contents_of(result), call);
                 else
                   exchange_by_messages(blocks_of(row, input_splits, size_),
                                        blocks_of(result, output_splits, size_), call);
                 put_into(output, result);
               },
               {input}, {output});
}

CohortBackend::WorkPointer CohortBackend::alltoall(Tensors& outputs, Tensors& inputs,
                                                   const c10d::AllToAllOptions& options) {
  const auto size = static_cast<std::size_t>(size_);
  TORCH_CHECK_VALUE(outputs.size() == size && inputs.size() == size,
                    "cohort: all_to_all takes an input and an output for each of the ", size, " ranks");
  return start(
      label(OpType::ALLTOALL, "cohort:all_to_all", options),
      [this, outputs, inputs](const CallOptions& call) {
        Tensors to;
        Tensors from;
        for (const at::Tensor& input : inputs) to.push_back(row_major(input));
        for (const at::Tensor& output : outputs) from.push_back(row_major_result(output));
        exchange_blocks(to, from, call);
        for (std::size_t i = 0; i < from.size(); ++i) put_into(outputs[i], from[i]);
      },
      inputs, outputs);
}

void CohortBackend::exchange_blocks(std::span<const at::Tensor> to, std::span<const at::Tensor> from,
                                    const CallOptions& options) const {
  std::vector<std::int64_t> sizes;
  for (const at::Tensor& block : to) sizes.push_back(static_cast<std::int64_t>(block.nbytes()));
  for (const at::Tensor& block : from) sizes.push_back(static_cast<std::int64_t>(block.nbytes()));
  if (!BlockSizes(*collectives_, std::move(sizes), options).are_equal())
    return exchange_by_messages(to, from, options);
  const at::Tensor input = room_for(to);
  const at::Tensor output = room_for(from);
  pack(to, input);
  collectives_->all_to_all(contents_of(input), contents_of(output), options);
  unpack(output, from);
}

void CohortBackend::exchange_by_messages(std::span<const at::Tensor> to, std::span<const at::Tensor> from,
                                         const CallOptions& options) const {
  std::vector<cohort::Work> works;
  const auto own = static_cast<std::size_t>(rank_);
  try {
    {
      const std::lock_guard lock(starting_message_);
      // Beginning with the next rank, so that not all send to one.
      for (std::size_t step = 1; step < to.size(); ++step) {
        const std::size_t next = (own + step) % to.size();
        const std::size_t last = (own + to.size() - step) % to.size();
        if (from[last].numel() > 0)
          works.push_back(messages_->receive_async(contents_of(from[last]), static_cast<int>(last),
                                                   kAllToAllTag, options.timeout_seconds));
        if (to[next].numel() > 0)
          works.push_back(messages_->send_async(contents_of(to[next]), static_cast<int>(next), kAllToAllTag,
                                                options.timeout_seconds));
      }
    }
    if (to[own].numel() > 0) std::memcpy(from[own].data_ptr(), to[own].data_ptr(), to[own].nbytes());
    for (cohort::Work& work : works) work.wait();
  } catch (const Error& error) {
    // The other messages of this call would be taken for those of the next one.
    messages_->abort(error);
    collectives_->abort(error);
    throw;
  }
}

}  // namespace cohort::pytorch
