#include "store.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include <cohort/base/error.h>

#include "store_blocks.h"
#include "store_mapping.h"
#include "stored_variable.h"

namespace cohort::server {
namespace {

constexpr std::size_t kEntriesAtATime = 256;

std::string describe_variable(std::string_view name, const Shape& shape, DType dtype) {
  return fmt::format("variable \"{}\" ({}{})", name, to_string(dtype), to_string(shape));
}

/// @throws Unavailable for a size that no memory has.
std::uint64_t bytes_of_copies(std::uint64_t tensors, const Shape& shape, DType dtype,
                              std::string_view purpose) {
  constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();
  const std::uint64_t bytes_per_element = 2 * tensors * size_of(dtype);
  if (tensors != 0 && shape.elements() > (kLargest - tensors * 2 * kBlockAlignment) / bytes_per_element) {
    throw Unavailable("a server's memory is short: {} takes more than 2^63 bytes", purpose);
  }
  return 2 * tensors * copy_stride(shape.elements() * size_of(dtype));
}

}  // namespace

class Store::Impl {
 public:
  explicit Impl(int descriptor)
      : mapping_(std::make_shared<StoreMapping>(descriptor, StoreMapping::Access::kWrite)),
        memory_(
            std::make_shared<const Buffer>(mapping_->base(), mapping_->reserved_bytes(), Device(), mapping_)),
        commits_(*mapping_),
        blocks_(*mapping_, take_over()) {}

  [[nodiscard]] const StoreMapping& mapping() const noexcept { return *mapping_; }
  [[nodiscard]] StoreCommits& commits() noexcept { return commits_; }
  [[nodiscard]] StoreBlocks& blocks() noexcept { return blocks_; }
  [[nodiscard]] std::size_t size() const noexcept { return variables_.size(); }

  [[nodiscard]] const StoredVariable& variable(VariableIndex index) const {
    require_variable(index);
    return variables_[index];
  }

  [[nodiscard]] std::optional<VariableIndex> find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? std::nullopt : std::optional(found->second);
  }

  VariableIndex create(std::string_view name, const Shape& shape, DType dtype, std::size_t slots);
  void require_slots(VariableIndex index, std::size_t slots);

  void begin() {
    COHORT_CHECK(!in_commit_);
    in_commit_ = true;
    size_before_commit_ = size();
  }
  template <class MakeChange>
  Change change(VariableIndex index, MakeChange&& make_change) {
    COHORT_CHECK(in_commit_);
    require_variable(index);
    StoredVariable& changed = variables_[index];
    const bool again = changed.is_changed();
    Change change = make_change(changed);
    if (!again) changed_.push_back(index);
    return change;
  }
  void commit(const std::optional<Execution>& execution, std::span<const std::byte> result);
  void abandon();

 private:
  void require_variable(VariableIndex index) const {
    if (index >= variables_.size())
      throw InvalidArgument("there is no variable {} on this server, which has {}", index, variables_.size());
  }
  void back_next_entry(std::string_view purpose);
  std::vector<StoreBlocks::Range> take_over();
  void complete_recorded_commit();
  void record_commit(std::uint64_t record);
  void remove_last();

  std::shared_ptr<StoreMapping> mapping_;
  std::shared_ptr<const Buffer> memory_;
  std::vector<StoredVariable> variables_;
  std::map<std::string, VariableIndex, std::less<>> by_name_;
  StoreCommits commits_;
  StoreBlocks blocks_;
  std::size_t backed_entries_ = size();
  bool in_commit_ = false;
  std::size_t size_before_commit_ = 0;
  std::vector<VariableIndex> changed_;
};

/// Goes on from what is in the file, and returns the blocks that are in use.
std::vector<StoreBlocks::Range> Store::Impl::take_over() {
  const std::uint64_t count = mapping_->header().variables.load(std::memory_order_acquire);
  if (count > kMostVariables)
    throw DataLoss("the memory of a server's variables is damaged: it counts {} variables", count);
  const std::uint64_t file_bytes = mapping_->file_bytes();
  std::vector<StoreBlocks::Range> used = commits_.find_blocks();
  variables_.reserve(count);
  for (std::uint64_t index = 0; index < count; ++index) {
    VariableEntry& entry = mapping_->entry(index);
    variables_.emplace_back(memory_, entry, checked_shape(entry, index, file_bytes));
    used.push_back({entry.name, entry.name_bytes});
    used.push_back({entry.value, 2 * copy_stride(entry.bytes)});
    for (const std::uint64_t slot : std::span(entry.slot).first(variables_.back().slots()))
      used.push_back({slot, 2 * copy_stride(entry.bytes)});
    if (!by_name_.emplace(variables_.back().name(), static_cast<VariableIndex>(index)).second)
      throw DataLoss("the memory of a server's variables is damaged: variables {} and another have one name",
                     index);
  }
  complete_recorded_commit();
  const std::vector<StoreBlocks::Range> results = commits_.read_records();
  used.insert(used.end(), results.begin(), results.end());
  return used;
}

void Store::Impl::complete_recorded_commit() {
  StoreHeader& header = mapping_->header();
  const std::uint64_t recorded = header.commit_recorded.load(std::memory_order_acquire);
  if (recorded == 0) return;
  const auto damaged = [] {
    return DataLoss("the memory of a server's variables is damaged: its last commit is no commit");
  };
  if (recorded != 1 || header.recorded_changes > variables_.size()) throw damaged();
  if (header.recorded_record != 0 && !commits_.has_slot(header.recorded_record)) throw damaged();
  for (std::uint64_t place = 0; place < header.recorded_changes; ++place) {
    const auto [variable, version] = mapping_->recorded_change(place);
    if (variable >= variables_.size()) throw damaged();
    const std::uint64_t present = variables_[variable].version();
    if (present != version && present + 1 != version) throw damaged();
  }
  for (std::uint64_t place = 0; place < header.recorded_changes; ++place) {
    const auto [variable, version] = mapping_->recorded_change(place);
    if (variables_[variable].version() != version) variables_[variable].publish();
  }
  if (header.recorded_record != 0) commits_.publish_unread(header.recorded_record);
  header.commit_recorded.store(0, std::memory_order_release);
  keep_order();
}

/// Gives the tables their pages, for many variables at a time.
void Store::Impl::back_next_entry(std::string_view purpose) {
  if (size() < backed_entries_) return;
  const std::size_t more = std::min(kEntriesAtATime, kMostVariables - size());
  mapping_->back_with_pages(kChangesBegin + size() * sizeof(RecordedChange), more * sizeof(RecordedChange),
                            purpose);
  mapping_->back_with_pages(kTableBegin + size() * sizeof(VariableEntry), more * sizeof(VariableEntry),
                            purpose);
  backed_entries_ = size() + more;
}

VariableIndex Store::Impl::create(std::string_view name, const Shape& shape, DType dtype, std::size_t slots) {
  const std::string purpose = describe_variable(name, shape, dtype);
  if (const auto taken = find(name)) {
    throw InvalidArgument("{}: this server has another variable of that name ({})", purpose,
                          describe(variables_[*taken].value()));
  }
  if (slots > kMostSlots)
    throw InvalidArgument("{} with {} slots: {} are possible", purpose, slots, kMostSlots);
  if (size() == kMostVariables)
    throw Unavailable("{}: this server has {} variables, and no room for more", purpose, kMostVariables);

  const std::uint64_t bytes = shape.elements() * size_of(dtype);
  const std::uint64_t copies = bytes_of_copies(1 + slots, shape, dtype, purpose);
  back_next_entry(purpose);
  const std::uint64_t block = blocks_.allocate(copies + name.size(), purpose);

  VariableEntry& entry = mapping_->entry(size());
  std::uint64_t at = block;
  const auto next_pair = [&] { return std::exchange(at, at + 2 * copy_stride(bytes)); };
  entry.sequence.store(0, std::memory_order_relaxed);
  entry.value = next_pair();
  entry.bytes = bytes;
  entry.row_bytes = shape.rank() == 0 || shape[0] == 0 ? 0 : bytes / static_cast<std::uint64_t>(shape[0]);
  entry.dtype = static_cast<std::uint32_t>(dtype);
  entry.rank = static_cast<std::uint32_t>(shape.rank());
  std::ranges::copy(shape.extents(), entry.extents.begin());
  for (std::uint64_t& slot : std::span(entry.slot).first(slots)) slot = next_pair();
  entry.slots.store(static_cast<std::uint32_t>(slots), std::memory_order_relaxed);
  entry.name = at;
  entry.name_bytes = static_cast<std::uint32_t>(name.size());
  std::memcpy(mapping_->base() + at, name.data(), name.size());

  const auto index = static_cast<VariableIndex>(size());
  variables_.emplace_back(memory_, entry, shape);
  by_name_.emplace(name, index);
  mapping_->header().variables.store(size(), std::memory_order_release);
  return index;
}

void Store::Impl::require_slots(VariableIndex index, std::size_t slots) {
  const StoredVariable& extended = variable(index);
  const std::size_t present = extended.slots();
  if (slots <= present) return;
  const Tensor value = extended.value();
  const std::string purpose = describe_variable(extended.name(), value.shape(), value.dtype());
  if (slots > kMostSlots)
    throw InvalidArgument("{} with {} slots: {} are possible", purpose, slots, kMostSlots);
  std::uint64_t at =
      blocks_.allocate(bytes_of_copies(slots - present, value.shape(), value.dtype(), purpose), purpose);
  VariableEntry& entry = mapping_->entry(index);
  for (std::uint64_t& slot : std::span(entry.slot).subspan(present, slots - present))
    slot = std::exchange(at, at + 2 * copy_stride(entry.bytes));
  entry.slots.store(static_cast<std::uint32_t>(slots), std::memory_order_release);
}

void Store::Impl::commit(const std::optional<Execution>& execution, std::span<const std::byte> result) {
  COHORT_CHECK(in_commit_);
  std::uint64_t record = 0;
  if (execution) {
    if (commits_.contains(*execution)) {
      throw InvalidArgument("execution {} of incarnation {:016x} was committed before", execution->number,
                            execution->incarnation);
    }
    record = commits_.prepare(blocks_, *execution, result);
  }
  record_commit(record);
  for (const VariableIndex changed : changed_) variables_[changed].publish();
  if (record != 0) commits_.publish(record);
  mapping_->header().commit_recorded.store(0, std::memory_order_release);
  keep_order();  // the next commit is recorded in the same place
  changed_.clear();
  in_commit_ = false;
}

/// From the last line on the commit is made, whatever becomes of this process.
void Store::Impl::record_commit(std::uint64_t record) {
  StoreHeader& header = mapping_->header();
  std::uint64_t place = 0;
  for (const VariableIndex changed : changed_)
    mapping_->recorded_change(place++) = {changed, variables_[changed].version() + 1};
  header.recorded_changes = place;
  header.recorded_record = record;
  header.commit_recorded.store(1, std::memory_order_release);
}

void Store::Impl::abandon() {
  COHORT_CHECK(in_commit_);
  for (const VariableIndex changed : changed_) variables_[changed].abandon();
  changed_.clear();
  while (size() > size_before_commit_) remove_last();
  in_commit_ = false;
}

void Store::Impl::remove_last() {
  const VariableEntry& entry = mapping_->entry(size() - 1);
  const std::size_t slots = variables_.back().slots();
  by_name_.erase(variables_.back().name());
  variables_.pop_back();
  mapping_->header().variables.store(size(), std::memory_order_release);
  keep_order();  // its memory may be used again
  const std::uint64_t bytes_of_copies = 2 * copy_stride(entry.bytes);
  blocks_.release(entry.value, bytes_of_copies);
  for (const std::uint64_t slot : std::span(entry.slot).first(slots)) blocks_.release(slot, bytes_of_copies);
  blocks_.release(entry.name, entry.name_bytes);
}

Store::Store(int descriptor) : impl_(std::make_unique<Impl>(descriptor)) {}
Store::Store() : Store(make_store_file().get()) {}
Store::~Store() = default;

std::uint64_t Store::identity() const noexcept { return impl_->mapping().header().identity; }
int Store::descriptor() const noexcept { return impl_->mapping().descriptor(); }
VariableIndex Store::size() const noexcept { return static_cast<VariableIndex>(impl_->size()); }
std::optional<VariableIndex> Store::find(std::string_view name) const { return impl_->find(name); }

VariableIndex Store::create(std::string_view name, const Shape& shape, DType dtype, std::size_t slots) {
  return impl_->create(name, shape, dtype, slots);
}
void Store::require_slots(VariableIndex variable, std::size_t slots) {
  impl_->require_slots(variable, slots);
}

const std::string& Store::name(VariableIndex variable) const { return impl_->variable(variable).name(); }
std::size_t Store::slots(VariableIndex variable) const { return impl_->variable(variable).slots(); }
std::uint64_t Store::version(VariableIndex variable) const { return impl_->variable(variable).version(); }
Tensor Store::value(VariableIndex variable) const { return impl_->variable(variable).value(); }

Tensor Store::slot(VariableIndex variable, std::size_t slot) const {
  const StoredVariable& owner = impl_->variable(variable);
  if (slot >= owner.slots())
    throw InvalidArgument("variable \"{}\" has no slot {}, it has {}", owner.name(), slot, owner.slots());
  return owner.slot(slot);
}

void Store::begin() { impl_->begin(); }

Store::Change Store::overwrite(VariableIndex variable) {
  return impl_->change(variable, [](StoredVariable& changed) { return changed.overwrite(); });
}
Store::Change Store::change_rows(VariableIndex variable, std::span<const std::int64_t> rows) {
  return impl_->change(variable, [&](StoredVariable& changed) { return changed.change_rows(rows); });
}

void Store::commit(std::optional<Execution> execution, std::span<const std::byte> result) {
  impl_->commit(execution, result);
}
void Store::abandon() { impl_->abandon(); }

std::optional<CommitRecord> Store::find_commit(const Execution& execution) const {
  return impl_->commits().find(execution);
}
std::vector<CommitRecord> Store::commits_of(std::uint64_t incarnation) const {
  return impl_->commits().of(incarnation);
}
void Store::forget(std::uint64_t incarnation, std::uint64_t number) {
  impl_->commits().forget(impl_->blocks(), incarnation, number);
}
void Store::fence(std::uint64_t incarnation) { impl_->commits().fence(impl_->blocks(), incarnation); }
bool Store::is_fenced(std::uint64_t incarnation) const { return impl_->commits().is_fenced(incarnation); }

}  // namespace cohort::server
