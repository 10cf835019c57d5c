// GradientBuckets all-reduce a model's gradients while the backward pass still computes
// others. Made once from the gradients in the order in which they become ready; every
// step then announces each of them, and waits:
//
//   GradientBuckets buckets(communicator, gradients);   // their TensorSpecs
//   ... compute gradient 0 into buckets.tensor(0);  buckets.ready(0);
//   ... compute gradient 1 elsewhere;               buckets.ready(1, gradient);
//   buckets.wait();
//   ... use buckets.result(0), buckets.result(1)
//
// Small gradients share a bucket, large ones have their own. As soon as all gradients of a
// bucket are ready its all-reduce starts, always in the same order: members may announce
// in any order. From the first `ready` to the end of `wait`, a member makes no other
// call of the communicator, unless all members make it between the same two buckets.
//
// Buckets are on the communicator's device, wherever gradients come from. They own their
// memory and take none after the first step. One thread at a time uses them; the
// communicator must outlive them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <cohort/collective/communicator.h>
#include <cohort/collective/packing.h>

namespace cohort {

struct GradientBucketsOptions {
  std::size_t bytes_per_bucket = 0;            ///< as in make_buckets; 0 chooses by cost
  ReduceOp op = ReduceOp::kSum;                ///< usually kSum or kMean
  std::optional<CommunicationCost> cost = {};  ///< unset: the communicator's own
};

class GradientBuckets {
 public:
  /// Collective on GPUs, where it measures the cost and allocates the shared buckets. All members describe
  /// the same gradients; one that does not is named here or by the first all-reduce.
  /// @throws InvalidArgument when `op` is not defined for a gradient's dtype; as Communicator::allocate.
  GradientBuckets(Communicator& communicator, std::span<const TensorSpec> gradients,
                  const GradientBucketsOptions& options = {});

  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  [[nodiscard]] std::size_t size() const noexcept { return gradients_.size(); }
  [[nodiscard]] std::size_t bucket_count() const noexcept { return buckets_.size(); }

  /// Gradient `index` inside its bucket, for computing it right there.
  [[nodiscard]] const Tensor& tensor(std::size_t index);

  /// Gradient `index` is complete. The second form takes it from a tensor of the caller's, which is left
  /// alone until `wait`: it is copied into the bucket, on a GPU together with the others of the bucket, or,
  /// if the bucket is its own, reduced where it is.
  /// @throws InvalidArgument, and does nothing, when there is no such gradient, when it was announced
  /// in this step already, or when `gradient` does not look like it; what ended the all-reduces.
  void ready(std::size_t index) { ready(index, tensor(index)); }
  void ready(std::size_t index, const Tensor& gradient);

  /// Ends the step: all gradients are reduced, and may be announced anew.
  /// @throws InvalidArgument, and does nothing, when some gradient was not announced, naming it; what
  /// ended the all-reduces. That one is thrown by every later call too.
  void wait();

  /// Gradient `index`, reduced: `tensor(index)`, or what `ready` was given if it was reduced there.
  /// Valid from `wait` until the gradient is announced again.
  [[nodiscard]] const Tensor& result(std::size_t index) const;

 private:
  struct Bucket {
    Pack gradients;
    std::uint64_t layout = 0;
    std::optional<Tensor> memory;   ///< for a lone gradient, which may lie elsewhere, made when first needed
    std::size_t awaited = 0;        ///< gradients that are not ready
    std::vector<Tensor> elsewhere;  ///< on a GPU: gradients that are ready to be copied
    std::vector<Tensor> places;     ///< where these are copied to
  };
  struct Gradient {
    TensorSpec spec;
    std::size_t bucket = 0;
    bool announced = false;
    Tensor view;    ///< in the bucket's memory
    Tensor result;  ///< the view, or the caller's tensor
  };

  void make_shared_buckets();
  [[nodiscard]] TensorSpec whole(const Bucket& bucket) const;
  void use_memory(Bucket& bucket, Tensor memory);
  void take(Bucket& bucket, const Tensor& gradient, const Tensor& place);
  void start_next_bucket();
  void require_gradient(std::size_t index) const;
  void require_usable() const;
  void require_all_announced() const;
  [[nodiscard]] std::string name_of(std::size_t index) const;
  [[noreturn]] void fail(const Error& error);

  Communicator& communicator_;
  ReduceOp op_;
  std::vector<Gradient> gradients_;
  std::vector<Bucket> buckets_;
  std::size_t next_bucket_ = 0;  ///< buckets before it have started in this step
  std::vector<Work> works_;
  std::optional<Error> failure_;
};

}  // namespace cohort
