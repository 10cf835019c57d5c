#include "profile/profile.h"

#include <algorithm>
#include <functional>
#include <new>

#include <cohort/collective/batch_reducer.h>
#include <cohort/collective/gradient_buckets.h>
#include <cohort/device/memory_limits.h>

#include "agreed_error.h"
#include "buffers.h"
#include "exact_values.h"
#include "profile/busy_loop.h"
#include "profile/gradients.h"
#include "statistics.h"

namespace cohort::bench {
namespace {

/// One way to spend a step.
struct Mode {
  std::string library;
  std::string name;
  const Gradients* gradients = nullptr;  ///< null when it only computes
  std::function<void()> run;
};

/// One mode's figures while they are being collected, of this member alone.
struct Record {
  std::vector<double> step_us;
  std::uint64_t wrong = 0;
};

std::vector<std::span<std::byte>> raw(std::span<const Tensor> tensors) {
  std::vector<std::span<std::byte>> spans;
  for (const Tensor& tensor : tensors) spans.push_back(tensor.raw());
  return spans;
}

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

std::vector<std::span<std::byte>> raw(GradientBuckets& buckets) {
  std::vector<std::span<std::byte>> spans;
  for (std::size_t i = 0; i < buckets.size(); ++i) spans.push_back(buckets.tensor(i).raw());
  return spans;
}

class Profile {
 public:
  Profile(const Model& model, const ProfileOptions& options, const RunOptions& run, const Member& member);

  [[nodiscard]] ProfileResult measure();

 private:
  void require_memory() const;
  void step(const Mode& mode, Record& record);
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
  const Member& member_;
  ExactValues values_;
  BusyLoop busy_loop_;
  bool with_peer_;

  std::vector<Tensor> tensors_;
  Tensor fused_;
  BatchReducer batch_;
  std::optional<PrivateMemory> peer_memory_;
  GradientBuckets buckets_;
  std::optional<Gradients> gradients_;
  std::optional<Gradients> bucket_gradients_;
  std::optional<Gradients> fused_gradients_;
  std::optional<Gradients> peer_gradients_;
  std::vector<std::function<void()>> peer_calls_;  ///< one for each gradient
  std::size_t steps_taken_ = 0;
  std::vector<double> start_us_;  ///< of one call, in each step of `async`
};

Profile::Profile(const Model& model, const ProfileOptions& options, const RunOptions& run,
                 const Member& member)
    : model_(model),
      options_(options),
      run_(run),
      member_(member),
      values_(run.dtype, ReduceOp::kSum, member.size()),
      busy_loop_((member.team->barrier(), *member.clock)),
      with_peer_(member.peer != nullptr && member.peer->why_not(peer_call(model.elements())).empty()),
      buckets_(*member.communicator, specs(model, run.dtype)) {
  require_memory();
  for (const std::size_t elements : model.gradients) tensors_.push_back(make_tensor(elements, run));
  fused_ = make_tensor(model.elements(), run);
  gradients_.emplace(raw(tensors_), values_, member.rank());
  bucket_gradients_.emplace(raw(buckets_), values_, member.rank());
  fused_gradients_.emplace(split(fused_.raw(), model, run.dtype), values_, member.rank());
  if (with_peer_) {
    peer_memory_.emplace(model.elements() * size_of(run.dtype), run.huge_pages);
    peer_gradients_.emplace(split(peer_memory_->bytes(), model, run.dtype), values_, member.rank());
    for (const std::span<std::byte> piece : peer_gradients_->pieces())
      peer_calls_.push_back(member.peer->prepare(peer_call(piece.size() / size_of(run.dtype), piece.data())));
  }
}

/// The tensors, the fused and the packed ones, the buckets', the peer's, and a tenth for the rest.
void Profile::require_memory() const {
  const double wanted = 1.1 * (with_peer_ ? 5 : 4) * member_.members_on_node *
                        static_cast<double>(model_.elements()) * static_cast<double>(size_of(run_.dtype));
  const bool lacking = wanted > static_cast<double>(available_memory());
  const std::uint64_t without = member_.team->sum(lacking ? 1 : 0);
  if (without == 0) return;
  throw AgreedError("{} of the members have no memory for the gradients of {}: take a smaller model", without,
                    model_.name);
}

PeerCall Profile::peer_call(std::size_t elements, std::byte* memory) const {
  return {.collective = &kAllReduce,
          .seat = {.member = member_.rank(), .members = member_.size(), .elements = elements},
          .dtype = run_.dtype,
          .in_place = true,
          .input = memory,
          .output = memory};
}

/// A backward pass of `compute_us`: computes each tensor's part of it, and then starts its all-reduce.
std::vector<Work> Profile::start_all(double compute_us) const {
  const double us_per_element = compute_us / static_cast<double>(model_.elements());
  std::vector<Work> works;
  works.reserve(tensors_.size());
  for (const Tensor& tensor : tensors_) {
    if (compute_us > 0) busy_loop_.run(us_per_element * static_cast<double>(tensor.elements()));
    works.push_back(member_.communicator->all_reduce_async(tensor, ReduceOp::kSum));
  }
  return works;
}

void Profile::start_and_wait() {
  const std::uint64_t before = member_.clock->now();
  std::vector<Work> works = start_all(0);
  start_us_.push_back(member_.clock->microseconds(member_.clock->now() - before) /
                      static_cast<double>(tensors_.size()));
  wait_for(works);
}

/// The same with buckets, each of which starts when its last gradient is ready.
void Profile::announce_all(double compute_us) {
  const double us_per_element = compute_us / static_cast<double>(model_.elements());
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    busy_loop_.run(us_per_element * static_cast<double>(model_.gradients[i]));
    buckets_.ready(i);
  }
  buckets_.wait();
}

std::vector<Mode> Profile::modes_without_computing() {
  Communicator& communicator = *member_.communicator;
  std::vector<Mode> modes;
  modes.push_back({.library = "cohort", .name = "per_tensor", .gradients = &*gradients_, .run = [&] {
                     for (const Tensor& tensor : tensors_) communicator.all_reduce(tensor, ReduceOp::kSum);
                   }});
  modes.push_back({.library = "cohort", .name = "packed", .gradients = &*gradients_, .run = [&] {
                     batch_.all_reduce(communicator, tensors_, ReduceOp::kSum);
                   }});
  modes.push_back({.library = "cohort", .name = "fused", .gradients = &*fused_gradients_, .run = [&] {
                     communicator.all_reduce(fused_, ReduceOp::kSum);
                   }});
  modes.push_back(
      {.library = "cohort", .name = "async", .gradients = &*gradients_, .run = [&] { start_and_wait(); }});
  if (!with_peer_) return modes;
  modes.push_back({.library = "mpi", .name = "per_tensor", .gradients = &*peer_gradients_, .run = [&] {
                     for (const std::function<void()>& call : peer_calls_) call();
                   }});
  modes.push_back({.library = "mpi",
                   .name = "fused",
                   .gradients = &*peer_gradients_,
                   .run = member_.peer->prepare(peer_call(model_.elements(), peer_memory_->bytes().data()))});
  return modes;
}

/// Writes the gradients, and reads and compares the sums, outside the timer.
void Profile::step(const Mode& mode, Record& record) {
  const std::size_t number = steps_taken_++;
  if (mode.gradients != nullptr) mode.gradients->write(number);
  const std::uint64_t before = member_.clock->now();
  mode.run();
  record.step_us.push_back(member_.clock->microseconds(member_.clock->now() - before));
  if (!options_.check || mode.gradients == nullptr) return;
  record.wrong += mode.gradients->count_wrong(mode.gradients->pieces(), number);
}

std::vector<Record> Profile::take_steps(std::span<const Mode> modes) {
  std::vector<Record> warm_up(modes.size());
  std::vector<Record> records(modes.size());
  for (std::size_t i = 0; i < modes.size(); ++i) step(modes[i], warm_up[i]);
  for (int taken = 0; taken < options_.steps; ++taken) {
    // A step stands alone, and there are few: without a barrier each mode would pay for the skew of the last.
    for (std::size_t i = 0; i < modes.size(); ++i) {
      member_.team->barrier();
      step(modes[i], records[i]);
    }
  }
  for (std::size_t i = 0; i < modes.size(); ++i) {
    member_.team->take_maximum(records[i].step_us);
    records[i].wrong = member_.team->sum(records[i].wrong + warm_up[i].wrong);
  }
  return records;
}

ProfileRow Profile::to_row(const Mode& mode, const Record& record) const {
  ProfileRow row;
  row.library = mode.library;
  row.mode = mode.name;
  row.step_us = median(record.step_us);
  row.exposed_us = row.step_us;
  if (options_.check) row.wrong = record.wrong;
  return row;
}

/// The backward pass with communication in it, of which so much is hidden as `alone_us` exceeds what it adds.
std::vector<ProfileRow> Profile::measure_overlapped(double compute_us, double alone_us) {
  const std::vector<Mode> modes{
      {.library = {}, .name = "compute", .run = [&] { busy_loop_.run(compute_us); }},
      {.library = "cohort",
       .name = "overlapped",
       .gradients = &*gradients_,
       .run =
           [&] {
             std::vector<Work> works = start_all(compute_us);
             wait_for(works);
           }},
      {.library = "cohort", .name = "buckets", .gradients = &*bucket_gradients_, .run = [&] {
         announce_all(compute_us);
       }}};
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

void compare_with_peer(std::span<ProfileRow> rows) {
  const std::optional<double> per_tensor_us = exposed(rows, "mpi", "per_tensor");
  const std::optional<double> fused_us = exposed(rows, "mpi", "fused");
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
                       .buffers = std::string(to_string(run_.memory)),
                       .members = member_.size(),
                       .steps = options_.steps,
                       .rows = {}};
  const std::vector<Mode> modes = modes_without_computing();
  const std::vector<Record> records = take_steps(modes);
  for (std::size_t i = 0; i < modes.size(); ++i) result.rows.push_back(to_row(modes[i], records[i]));
  member_.team->take_maximum(start_us_);
  result.start_us = median(start_us_);
  const double alone_us = exposed(result.rows, "cohort", "async").value();
  for (const ProfileRow& row :
       measure_overlapped(options_.compute_ms ? *options_.compute_ms * 1e3 : alone_us, alone_us))
    result.rows.push_back(row);
  compare_with_peer(result.rows);
  return result;
}

}  // namespace

ProfileResult measure_profile(const Model& model, const ProfileOptions& options, const RunOptions& run,
                              const Member& member) {
  return Profile(model, options, run, member).measure();
}

}  // namespace cohort::bench
