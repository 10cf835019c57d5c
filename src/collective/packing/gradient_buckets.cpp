#include <cohort/collective/gradient_buckets.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/fingerprint.h>
#include <cohort/device/tensor.h>
#include <cohort/device/tensor_ops.h>

#include "tensor_lists.h"

namespace cohort {
namespace {

/// Elements from one gradient of a bucket to the next: each begins a cache line, so that it is aligned for
/// the code that writes it.
std::int64_t stride_of(const TensorSpec& spec) {
  const std::size_t unit = kAlignment / size_of(spec.dtype);
  return static_cast<std::int64_t>((spec.elements() + unit - 1) / unit * unit);
}

}  // namespace

GradientBuckets::GradientBuckets(Communicator& communicator, std::span<const TensorSpec> gradients,
                                 const GradientBucketsOptions& options)
    : communicator_(communicator), op_(options.op), gradients_(gradients.size()) {
  for (std::size_t index = 0; index < gradients.size(); ++index) {
    gradients_[index].spec = gradients[index];
    require_legal(op_, gradients[index].dtype);
  }
  const std::uint64_t layout = layout_of(gradients);
  // A cost that decides nothing need not be known.
  const bool cost_matters = gradients.size() > 1 && options.bytes_per_bucket == 0;
  const CommunicationCost cost = options.cost   ? *options.cost
                                 : cost_matters ? communicator.cost()
                                                : CommunicationCost{};
  for (Pack& pack : make_buckets(gradients, options.bytes_per_bucket, cost)) {
    for (const std::size_t index : pack) gradients_[index].bucket = buckets_.size();
    Bucket bucket;
    bucket.layout = Fingerprint().add(layout).add(options.bytes_per_bucket).add(buckets_.size()).value();
    bucket.awaited = pack.size();
    bucket.gradients = std::move(pack);
    buckets_.push_back(std::move(bucket));
  }
  make_shared_buckets();
}

void GradientBuckets::make_shared_buckets() {
  const auto is_lone = [](const Bucket& bucket) { return bucket.gradients.size() == 1; };
  std::vector<TensorSpec> specs;
  for (const Bucket& bucket : buckets_) {
    if (!is_lone(bucket)) specs.push_back(whole(bucket));
  }
  std::vector<Tensor> memory = allocate_together(communicator_, specs);
  std::size_t next = 0;
  for (Bucket& bucket : buckets_) {
    if (!is_lone(bucket)) use_memory(bucket, std::move(memory[next++]));
  }
}

TensorSpec GradientBuckets::whole(const Bucket& bucket) const {
  std::int64_t elements = 0;
  for (const std::size_t index : bucket.gradients) elements += stride_of(gradients_[index].spec);
  return {{elements}, gradients_[bucket.gradients.front()].spec.dtype};
}

void GradientBuckets::use_memory(Bucket& bucket, Tensor memory) {
  bucket.memory = std::move(memory);
  bucket.memory->fill(0);  // because what lies between the gradients is reduced with them
  bucket.elsewhere.reserve(bucket.gradients.size());
  bucket.places.reserve(bucket.gradients.size());
  std::int64_t begin = 0;
  for (const std::size_t index : bucket.gradients) {
    Gradient& gradient = gradients_[index];
    const auto end = begin + static_cast<std::int64_t>(gradient.spec.elements());
    gradient.view = bucket.memory->rows(begin, end).reshape(gradient.spec.shape);
    begin += stride_of(gradient.spec);
  }
}

const Tensor& GradientBuckets::tensor(std::size_t index) {
  require_gradient(index);
  Bucket& bucket = buckets_[gradients_[index].bucket];
  if (!bucket.memory) {
    // Each member decides for itself whether a lone gradient needs any, so they do not make it together.
    const TensorSpec lone = whole(bucket);
    use_memory(bucket, Tensor::uninitialized(lone.shape, lone.dtype, communicator_.device()));
  }
  return gradients_[index].view;
}

void GradientBuckets::ready(std::size_t index, const Tensor& gradient) {
  require_usable();
  require_gradient(index);
  Gradient& announced = gradients_[index];
  if (!matches(announced.spec, gradient)) {
    throw InvalidArgument("GradientBuckets: {} was announced with {}; give a tensor of its shape and dtype",
                          name_of(index), describe(gradient));
  }
  if (announced.announced) {
    throw InvalidArgument(
        "GradientBuckets: {} was announced twice in one step; announce each gradient once, then call wait()",
        name_of(index));
  }
  Bucket& bucket = buckets_[announced.bucket];
  const bool lone = bucket.gradients.size() == 1;
  announced.result = lone ? gradient : announced.view;
  if (!lone && announced.view.data() != gradient.data()) take(bucket, gradient, announced.view);
  announced.announced = true;
  --bucket.awaited;
  while (next_bucket_ < buckets_.size() && buckets_[next_bucket_].awaited == 0) start_next_bucket();
}

/// On a GPU the copies into a bucket are made together, for each would be a kernel.
void GradientBuckets::take(Bucket& bucket, const Tensor& gradient, const Tensor& place) {
  if (is_cpu(place) || gradient.device() != place.device()) return place.copy_from(gradient);
  bucket.elsewhere.push_back(gradient);
  bucket.places.push_back(place);
}

void GradientBuckets::start_next_bucket() {
  Bucket& bucket = buckets_[next_bucket_++];
  const bool lone = bucket.gradients.size() == 1;
  const Tensor& whole = lone ? gradients_[bucket.gradients.front()].result : *bucket.memory;
  try {
    copy_each(bucket.elsewhere, bucket.places);
    bucket.elsewhere.clear();
    bucket.places.clear();
    for_each_call_part(communicator_, whole, whole, [&](const Tensor& part, const Tensor&) {
      works_.push_back(communicator_.all_reduce_async(part, part, op_, {.layout = bucket.layout}));
    });
  } catch (const Error& error) {
    fail(error);
  }
}

void GradientBuckets::wait() {
  require_usable();
  require_all_announced();
  try {
    for (Work& work : works_) work.wait();
  } catch (const Error& error) {
    fail(error);
  }
  works_.clear();
  next_bucket_ = 0;
  for (Bucket& bucket : buckets_) bucket.awaited = bucket.gradients.size();
  for (Gradient& gradient : gradients_) gradient.announced = false;
}

const Tensor& GradientBuckets::result(std::size_t index) const {
  require_gradient(index);
  return gradients_[index].result;
}

void GradientBuckets::require_gradient(std::size_t index) const {
  if (index < gradients_.size()) return;
  throw InvalidArgument("GradientBuckets: there is no gradient {}; it was made for {} gradients", index,
                        gradients_.size());
}

void GradientBuckets::require_usable() const {
  if (failure_) throw_error(*failure_);
}

void GradientBuckets::require_all_announced() const {
  constexpr std::size_t kNamed = 4;
  std::vector<std::string> missing;
  std::size_t count = 0;
  for (std::size_t index = 0; index < gradients_.size(); ++index) {
    if (!gradients_[index].announced && count++ < kNamed) missing.push_back(name_of(index));
  }
  if (count == 0) return;
  if (count > kNamed) missing.push_back(fmt::format("and {} more", count - kNamed));
  throw InvalidArgument(
      "GradientBuckets: wait() before all gradients were announced; missing: {}. Call ready() for each, with "
      "zeros for one that this step does not have: the other members wait for it",
      fmt::join(missing, ", "));
}

std::string GradientBuckets::name_of(std::size_t index) const {
  return fmt::format("gradient {} ({})", index, describe(gradients_[index].spec));
}

void GradientBuckets::fail(const Error& error) {
  failure_ = error;
  throw_error(error);
}

}  // namespace cohort
