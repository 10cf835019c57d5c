#include "profile/profile.h"

#include <algorithm>
#include <functional>
#include <memory>

#include <cohort/collective/gradient_buckets.h>
#include <cohort/device/tensor.h>

#include "buffers.h"
#include "busy_loop.h"
#include "collective/packing/tensor_lists.h"
#include "device/memory_limits.h"
#include "errors.h"
#include "exact_values.h"
#include "gpu/gpu_side.h"
#include "timing.h"

namespace cohort::bench {
namespace {

/// Tensors that are reduced, with what is written to them and expected of them.
struct GradientSet {
  std::vector<Tensor> tensors;
  std::optional<Gradients> gradients;  ///< in the tensors, or in those of the host that go to the GPU
  std::unique_ptr<const OffHost> gpu;  ///< null on the CPU
};

/// One way to spend a step.
struct Mode {
  std::string library;
  std::string name;
  const Gradients* gradients = nullptr;  ///< null when it only computes
  const OffHost* gpu = nullptr;          ///< null on the CPU
  std::function<void()> run;
  std::optional<CallLimit> limit = {};  ///< of a peer's calls on GPUs
};

/// One mode's figures while they are being collected, of this member alone.
struct Record {
  std::vector<double> step_us;
  std::uint64_t wrong = 0;
};

/// Neighbouring parts of `whole`, one for each gradient.
std::vector<std::span<std::byte>> split(std::span<std::byte> whole, const Model& model, DType dtype) {
  std::vector<std::span<std::byte>> parts;
  std::size_t start = 0;
  for (const std::size_t elements : model.gradients) {
    parts.push_back(whole.subspan(start, elements * size_of(dtype)));
    start += elements * size_of(dtype);
  }
  return parts;
}

void wait_for(std::span<Work> works) {
  for (Work& work : works) work.wait();
}

std::vector<TensorSpec> specs(const Model& model, DType dtype) {
  std::vector<TensorSpec> specs;
  for (const std::size_t elements : model.gradients)
    specs.push_back({.shape = Shape{static_cast<std::int64_t>(elements)}, .dtype = dtype});
  return specs;
}

class Profile {
 public:
  Profile(const Model& model, const ProfileOptions& options, const RunOptions& run,
          const MemberContext& context);

  [[nodiscard]] ProfileResult measure();

 private:
  void require_memory() const;
  void agree_on_memory(bool enough) const;
  void allocate();
  [[nodiscard]] bool on_gpu() const { return run_.device == DeviceKind::kCuda; }
  [[nodiscard]] Tensor make_reduced(std::size_t elements) const;
  [[nodiscard]] GradientSet set_of(std::vector<Tensor> tensors) const;
  void prepare_peer();
  [[nodiscard]] Mode cohort_mode(std::string name, const GradientSet& set, std::function<void()> run) const;
  [[nodiscard]] Mode peer_mode(std::string name, const GradientSet& set, std::function<void()> run) const;
  void step(const Mode& mode, Record& record);
  [[nodiscard]] double time(const Mode& mode) const;
  [[nodiscard]] std::vector<Record> take_steps(std::span<const Mode> modes);
  [[nodiscard]] std::vector<Mode> modes_without_computing();
  [[nodiscard]] std::vector<ProfileRow> measure_overlapped(double compute_us, double alone_us);
  [[nodiscard]] ProfileRow to_row(const Mode& mode, const Record& record) const;
  [[nodiscard]] PeerCall peer_call(std::size_t elements, std::byte* memory = nullptr) const;
  [[nodiscard]] std::vector<Work> start_all(double compute_us) const;
  void start_and_wait();
  void announce_all(double compute_us);

  const Model& model_;
  const ProfileOptions& options_;
  const RunOptions& run_;
  const MemberContext& context_;
  ExactValues values_;
  std::function<void(double microseconds)> compute_;
  bool with_peer_;

  GradientSet separate_;
  GradientSet fused_;
  GradientSet bucketed_;
  BatchReducer batch_;
  GradientBuckets buckets_;
  std::optional<PrivateMemory> peer_memory_;          ///< of a peer on the host
  std::optional<Gradients> peer_gradients_;           ///< in it
  std::vector<std::function<void()>> peer_separate_;  ///< one for each gradient
  std::function<void()> peer_fused_;
  std::size_t steps_taken_ = 0;
  std::vector<double> start_us_;  ///< of one call, in each step of `async`
};

std::function<void(double)> make_compute(const MemberContext& context, bool on_gpu) {
  if (on_gpu) return GpuBusyLoop(context.device);
  context.team->barrier();  // all calibrate at once
  return BusyLoop(*context.clock);
}

Profile::Profile(const Model& model, const ProfileOptions& options, const RunOptions& run,
                 const MemberContext& context)
    : model_(model),
      options_(options),
      run_(run),
      context_(context),
      values_(run.dtype, ReduceOp::kSum, context.size()),
      with_peer_(context.peer != nullptr && context.peer->why_not(peer_call(model.elements())).empty()),
      buckets_(*context.communicator, specs(model, run.dtype)) {
  require_memory();
  allocate();
  compute_ = make_compute(context, on_gpu());
  if (with_peer_) prepare_peer();
}

/// For the separate tensors, the fused and the packed ones, the buckets, the peer's, and a tenth for the
/// rest.
void Profile::require_memory() const {
  const int sets = with_peer_ && !on_gpu() ? 5 : 4;
  const double wanted = 1.1 * sets * context_.members_on_node * static_cast<double>(model_.elements()) *
                        static_cast<double>(size_of(run_.dtype));
  agree_on_memory(wanted <= static_cast<double>(available_memory()));
}

/// @throws AgreedError on all members when it is not enough on one of them.
void Profile::agree_on_memory(bool enough) const {
  const std::uint64_t without = context_.team->sum(enough ? 0 : 1);
  if (without == 0) return;
  throw AgreedError("{} of the members have no memory for the gradients of {}: take a smaller model", without,
                    model_.name);
}

/// Only this shows whether the memory of GPUs is enough.
void Profile::allocate() {
  bool enough = true;
  try {
    std::vector<Tensor> tensors;
    for (const std::size_t elements : model_.gradients) tensors.push_back(make_reduced(elements));
    separate_ = set_of(std::move(tensors));
    fused_ = set_of({make_reduced(model_.elements())});
    tensors.clear();
    for (std::size_t i = 0; i < buckets_.size(); ++i) tensors.push_back(buckets_.tensor(i));
    bucketed_ = set_of(std::move(tensors));
  } catch (const Unavailable&) {
    enough = false;
  }
  agree_on_memory(enough);
}

Tensor Profile::make_reduced(std::size_t elements) const {
  if (!on_gpu()) return make_tensor(elements, run_);
  return Tensor::uninitialized({static_cast<std::int64_t>(elements)}, run_.dtype, context_.device);
}

/// Of a tensor for each gradient, or of one for all of them.
GradientSet Profile::set_of(std::vector<Tensor> tensors) const {
  GradientSet set;
  std::vector<std::span<std::byte>> pieces;
  std::vector<GpuTensor> transfers;
  for (const Tensor& tensor : tensors) {
    const Tensor host = is_cpu(tensor) ? tensor : Tensor::uninitialized(tensor.shape(), tensor.dtype());
    pieces.push_back(host.raw());
    if (!is_cpu(tensor)) transfers.push_back({tensor, host});
  }
  if (tensors.size() < model_.gradients.size()) pieces = split(pieces.front(), model_, run_.dtype);
  if (!transfers.empty()) set.gpu = make_gpu_side(transfers, transfers);
  set.gradients.emplace(std::move(pieces), values_, context_.rank());
  set.tensors = std::move(tensors);
  return set;
}

PeerCall Profile::peer_call(std::size_t elements, std::byte* memory) const {
  return {.collective = &kAllReduce,
          .role = {.member = context_.rank(), .members = context_.size(), .elements = elements},
          .dtype = run_.dtype,
          .in_place = true,
          .input = memory,
          .output = memory};
}

/// On the host it has memory of its own, as a program without Cohort has; on a GPU that of Cohort.
void Profile::prepare_peer() {
  std::vector<std::byte*> pieces;
  std::byte* whole = nullptr;
  if (on_gpu()) {
    for (const Tensor& tensor : separate_.tensors) pieces.push_back(tensor.data());
    whole = fused_.tensors.front().data();
  } else {
    peer_memory_.emplace(model_.elements() * size_of(run_.dtype), run_.huge_pages);
    peer_gradients_.emplace(split(peer_memory_->bytes(), model_, run_.dtype), values_, context_.rank());
    for (const std::span<std::byte> piece : peer_gradients_->pieces()) pieces.push_back(piece.data());
    whole = peer_memory_->bytes().data();
  }
  for (std::size_t i = 0; i < pieces.size(); ++i)
    peer_separate_.push_back(context_.peer->prepare(peer_call(model_.gradients[i], pieces[i])));
  peer_fused_ = context_.peer->prepare(peer_call(model_.elements(), whole));
}

/// A backward pass of `compute_us`: computes each tensor's part of it, and then starts its all-reduce.
std::vector<Work> Profile::start_all(double compute_us) const {
  const double us_per_element = compute_us / static_cast<double>(model_.elements());
  std::vector<Work> works;
  works.reserve(separate_.tensors.size());
  for (const Tensor& tensor : separate_.tensors) {
    if (compute_us > 0) compute_(us_per_element * static_cast<double>(tensor.elements()));
    works.push_back(context_.communicator->all_reduce_async(tensor, ReduceOp::kSum));
  }
  return works;
}

void Profile::start_and_wait() {
  const std::uint64_t before = context_.clock->now();
  std::vector<Work> works = start_all(0);
  start_us_.push_back(context_.clock->microseconds(context_.clock->now() - before) /
                      static_cast<double>(works.size()));
  wait_for(works);
}

/// The same with buckets, each of which starts when its last gradient is ready.
void Profile::announce_all(double compute_us) {
  const double us_per_element = compute_us / static_cast<double>(model_.elements());
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    compute_(us_per_element * static_cast<double>(model_.gradients[i]));
    buckets_.ready(i);
  }
  buckets_.wait();
}

Mode Profile::cohort_mode(std::string name, const GradientSet& set, std::function<void()> run) const {
  return {.library = "cohort",
          .name = std::move(name),
          .gradients = &*set.gradients,
          .gpu = set.gpu.get(),
          .run = std::move(run)};
}

/// On GPUs in the memory of `set`.
Mode Profile::peer_mode(std::string name, const GradientSet& set, std::function<void()> run) const {
  Mode mode{.library = std::string(to_string(run_.peer)),
            .name = std::move(name),
            .gradients = on_gpu() ? &*set.gradients : &*peer_gradients_,
            .gpu = set.gpu.get(),
            .run = std::move(run)};
  if (on_gpu()) {
    const std::string_view function = function_of(run_.peer, kAllReduce);
    mode.limit = context_.limit_of(fmt::format("{} ({})", function, mode.name),
                                   model_.elements() * size_of(run_.dtype));
  }
  return mode;
}

std::vector<Mode> Profile::modes_without_computing() {
  Communicator& communicator = *context_.communicator;
  std::vector<Mode> modes;
  modes.push_back(cohort_mode("per_tensor", separate_, [&] {
    for (const Tensor& tensor : separate_.tensors) communicator.all_reduce(tensor, ReduceOp::kSum);
  }));
  modes.push_back(cohort_mode("packed", separate_,
                              [&] { batch_.all_reduce(communicator, separate_.tensors, ReduceOp::kSum); }));
  modes.push_back(
      cohort_mode("fused", fused_, [&] { communicator.all_reduce(fused_.tensors.front(), ReduceOp::kSum); }));
  modes.push_back(cohort_mode("async", separate_, [&] { start_and_wait(); }));
  if (!with_peer_) return modes;
  modes.push_back(peer_mode("per_tensor", separate_, [&] {
    for (const std::function<void()>& call : peer_separate_) call();
  }));
  modes.push_back(peer_mode("fused", fused_, peer_fused_));
  return modes;
}

/// Writes the gradients, and reads and compares the sums, outside the timer.
void Profile::step(const Mode& mode, Record& record) {
  const std::size_t number = steps_taken_++;
  if (mode.gradients != nullptr) mode.gradients->write(number);
  if (mode.gpu != nullptr) mode.gpu->bring();
  record.step_us.push_back(time(mode));
  if (mode.gpu != nullptr) mode.gpu->fetch();
  if (!options_.check || mode.gradients == nullptr) return;
  record.wrong += mode.gradients->count_wrong(mode.gradients->pieces(), number);
}

/// In microseconds.
double Profile::time(const Mode& mode) const {
  constexpr double kMicrosecondsPerNanosecond = 1e-3;
  if (mode.gpu != nullptr)
    return kMicrosecondsPerNanosecond * static_cast<double>(mode.gpu->time(mode.run, mode.limit));
  const std::uint64_t before = context_.clock->now();
  mode.run();
  return context_.clock->microseconds(context_.clock->now() - before);
}

std::vector<Record> Profile::take_steps(std::span<const Mode> modes) {
  std::vector<Record> warm_up(modes.size());
  std::vector<Record> records(modes.size());
  for (std::size_t i = 0; i < modes.size(); ++i) step(modes[i], warm_up[i]);
  for (int taken = 0; taken < options_.steps; ++taken) {
    // A step stands alone, and there are few: without a barrier each mode would pay for the skew of the last.
    for (std::size_t i = 0; i < modes.size(); ++i) {
      context_.team->barrier();
      step(modes[i], records[i]);
    }
  }
  for (std::size_t i = 0; i < modes.size(); ++i) {
    context_.team->take_maximum(records[i].step_us);
    records[i].wrong = context_.team->sum(records[i].wrong + warm_up[i].wrong);
  }
  return records;
}

ProfileRow Profile::to_row(const Mode& mode, const Record& record) const {
  ProfileRow row;
  row.library = mode.library;
  row.mode = mode.name;
  row.buffers = mode.library == to_string(Peer::kMpi) ? "private" : buffers_of(run_);
  row.step_us = median(record.step_us);
  row.exposed_us = row.step_us;
  if (options_.check) row.wrong = record.wrong;
  return row;
}

/// The backward pass with communication in it. Hidden is what communication takes alone, `alone_us`, less
/// what it adds to the step.
std::vector<ProfileRow> Profile::measure_overlapped(double compute_us, double alone_us) {
  std::vector<Mode> modes;
  modes.push_back(
      {.library = {}, .name = "compute", .gpu = separate_.gpu.get(), .run = [&] { compute_(compute_us); }});
  modes.push_back(cohort_mode("overlapped", separate_, [&] {
    std::vector<Work> works = start_all(compute_us);
    wait_for(works);
  }));
  modes.push_back(cohort_mode("buckets", bucketed_, [&] { announce_all(compute_us); }));
  const std::vector<Record> records = take_steps(modes);
  std::vector<ProfileRow> rows;
  for (std::size_t mode = 1; mode < modes.size(); ++mode) {
    ProfileRow row = to_row(modes[mode], records[mode]);
    row.compute_us = median(records[0].step_us);
    row.exposed_us = std::max(row.step_us - row.compute_us, 0.0);
    row.hidden_us = std::max(alone_us - row.exposed_us, 0.0);
    row.hidden_share = alone_us > 0 ? *row.hidden_us / alone_us : 0;
    rows.push_back(row);
  }
  return rows;
}

/// What `mode` of `library` adds to a step, if it was measured.
std::optional<double> exposed(std::span<const ProfileRow> rows, std::string_view library,
                              std::string_view mode) {
  for (const ProfileRow& row : rows) {
    if (row.library == library && row.mode == mode) return row.exposed_us;
  }
  return std::nullopt;
}

void compare_with_peer(std::span<ProfileRow> rows, std::string_view peer) {
  const std::optional<double> per_tensor_us = exposed(rows, peer, "per_tensor");
  const std::optional<double> fused_us = exposed(rows, peer, "fused");
  for (ProfileRow& row : rows) {
    if (row.exposed_us <= 0) continue;  // wholly hidden: no ratio says how much better that is
    if (per_tensor_us) row.ratio_to_per_tensor = *per_tensor_us / row.exposed_us;
    if (fused_us) row.ratio_to_fused = *fused_us / row.exposed_us;
  }
}

ProfileResult Profile::measure() {
  ProfileResult result{.model = model_.name,
                       .tensors = model_.gradients.size(),
                       .elements = model_.elements(),
                       .bytes = model_.elements() * size_of(run_.dtype),
                       .dtype = std::string(to_string(run_.dtype)),
                       .buffers = std::string(buffers_of(run_)),
                       .members = context_.size(),
                       .steps = options_.steps,
                       .through_host = on_gpu() && context_.communicator->name() == "staged",
                       .rows = {}};
  const std::vector<Mode> modes = modes_without_computing();
  const std::vector<Record> records = take_steps(modes);
  for (std::size_t i = 0; i < modes.size(); ++i) result.rows.push_back(to_row(modes[i], records[i]));
  context_.team->take_maximum(start_us_);
  result.start_us = median(start_us_);
  const double alone_us = exposed(result.rows, "cohort", "async").value();
  for (const ProfileRow& row :
       measure_overlapped(options_.compute_ms ? *options_.compute_ms * 1e3 : alone_us, alone_us))
    result.rows.push_back(row);
  compare_with_peer(result.rows, to_string(run_.peer));
  return result;
}

}  // namespace

ProfileResult measure_profile(const Model& model, const ProfileOptions& options, const RunOptions& run,
                              const MemberContext& context) {
  return Profile(model, options, run, context).measure();
}

}  // namespace cohort::bench
