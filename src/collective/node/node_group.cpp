#include "node_group.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/config.h>
#include <cohort/base/deadline.h>

#include "base/system_calls.h"
#include "levels.h"

namespace cohort::node {
namespace {

bool is_neighbour_of(const NodeGroupOptions& options, const WorkerInfo& worker) {
  return worker.node == options.workers[static_cast<std::size_t>(options.rank)].node;
}

/// Where this process's members are in the machine.
std::vector<LevelGroups> groups_of_own_members(const NodeGroupOptions& options) {
  if (options.workers.empty()) return groups_of_members({}, options.members);
  if (config().topology().empty()) return groups_of_members(options.memory->core_sharers(), options.members);
  // It may describe a machine with other cores than this one has: the workers of the node take them in turn.
  CoreSharers neighbours{.count = 0};
  for (const WorkerInfo& worker : options.workers) {
    if (!is_neighbour_of(options, worker)) continue;
    if (worker.rank < options.rank) ++neighbours.own_index;
    ++neighbours.count;
  }
  return groups_of_members(neighbours, options.members);
}

/// Checked for all nodes, so that all workers come to the same result.
void require_room_for_members(const NodeGroupOptions& options) {
  std::map<int, std::size_t> workers_by_node;
  for (const WorkerInfo& worker : options.workers) ++workers_by_node[worker.node];
  if (options.workers.empty()) workers_by_node[0] = 1;
  for (const auto& [node, workers] : workers_by_node) {
    const std::size_t members = workers * static_cast<std::size_t>(options.members);
    if (members <= kMostMembers) continue;
    throw Unimplemented("a communicator with {} members on node {}: at most {} of one node can take part",
                        members, node, kMostMembers);
  }
}

/// Wrong options are refused before anybody waits for other workers.
const NodeGroupOptions& checked(const NodeGroupOptions& options) {
  if (options.members < 1)
    throw InvalidArgument("a group needs at least one member, not {}", options.members);
  require_room_for_members(options);
  static_cast<void>(options.communication.deadline());
  return options;
}

/// The name of the next communicator that is not a group of another one.
std::string next_name() {
  static std::atomic<int> made{0};
  return fmt::format("{}", ++made);
}

}  // namespace

/// What a worker tells the others of each of its members, sent as raw bytes: the same program runs
/// everywhere.
struct NodeGroup::MemberPlace {
  std::uint64_t offset = 0;  ///< of its control block in the worker's heap
  LevelGroups groups{};
  bool is_described = false;  ///< the machine, by COHORT_TOPOLOGY

  static std::vector<MemberPlace> parse(const std::string& blob) {
    std::vector<MemberPlace> places(blob.size() / sizeof(MemberPlace));
    if (!places.empty()) std::memcpy(places.data(), blob.data(), places.size() * sizeof(MemberPlace));
    return places;
  }
};

NodeGroup::NodeGroup(const NodeGroupOptions& options)
    : process_(::getpid()),
      name_(next_name()),
      memory_(checked(options).memory),
      selection_(Selection::agreed(options.workers, options.exchange)),
      most_members_without_tree_(options.levels.most_members_without_tree),
      counter_(options.levels.counter),
      timeout_(options.communication.timeout()),
      while_waiting_(options.communication.while_waiting),
      reproducible_(options.communication.reproducible),
      eager_(options.communication.eager),
      blocks_in_heap_(options.blocks_in_heap),
      any_thread_(options.any_thread),
      fault_(options.fault),
      on_failure_(options.on_failure) {
  DepartedControlBlocks::of_this_process().sweep();

  std::vector<ControlBlock*> own_blocks;
  for (int i = 0; i < options.members; ++i) {
    own_buffers_.push_back(allocate_block(options.blocks_in_heap));
    own_blocks.push_back(make_control_block(*own_buffers_.back()));
    const std::optional<std::uint64_t> latch = ReportLatch::of_this_process().offset();
    own_blocks.back()->record.latch_offset = latch ? *latch + 1 : 0;
  }
  if (options.workers.empty()) {
    members_.assign(own_blocks.size(), MemberInfo{0, host_name()});
    add_blocks(own_blocks, memory_->worker(), 0);
    const bool is_described = !options.levels.groups.empty() || !config().topology().empty();
    if (needs_tree(size(), is_described))
      groups_ = options.levels.groups.empty() ? groups_of_own_members(options) : options.levels.groups;
  } else {
    for (const WorkerInfo& worker : options.workers)
      members_.insert(members_.end(), own_blocks.size(), MemberInfo{worker.rank, worker.host});
    gather_blocks(options, own_blocks);
  }
  make_tree();
  report_place_ = place_of_reports(options);
  detect_oversubscription();
  show_records(options.observer);
}

/// All processes of a node use the latch of the one that has its first member.
ReportPlace NodeGroup::place_of_reports(const NodeGroupOptions& options) const {
  ReportPlace place{.latch = &ReportLatch::of_this_process(), .on_report = options.on_report};
  const int first_worker = worker_of(0);
  const std::uint64_t offset = control_block(0).record.latch_offset;
  if (!memory_->is_this_process(first_worker) && offset != 0)
    place.latch = reinterpret_cast<ReportLatch*>(memory_->address(first_worker, offset - 1));
  if (!options.workers.empty() && std::ranges::max(options.workers, {}, &WorkerInfo::node).node > 0)
    place.file_suffix = fmt::format(".worker-{}", first_worker);
  return place;
}

NodeGroup::NodeGroup(const NodeGroup& parent, std::span<const SplitMember> split_members, int own_rank,
                     NewControlBlock own_block, std::string name)
    : process_(parent.process_),
      name_(std::move(name)),
      memory_(parent.memory_),
      selection_(parent.selection_),
      most_members_without_tree_(parent.most_members_without_tree_),
      counter_(parent.counter_),
      timeout_(parent.timeout_),
      while_waiting_(parent.while_waiting_),
      reproducible_(parent.reproducible_),
      eager_(parent.eager_),
      blocks_in_heap_(parent.blocks_in_heap_),
      any_thread_(parent.any_thread_),
      fault_(parent.fault_),
      on_failure_(parent.on_failure_),
      report_place_(parent.report_place_) {
  for (const SplitMember& member : split_members) {
    const MemberInfo& info = parent.members_[static_cast<std::size_t>(member.rank)];
    if (member.contribution.control_block == std::array<std::uint64_t, 2>{}) {
      throw Unavailable("the node heap of {} has no room for a communicator's {} KiB per member",
                        describe(member.rank, info), sizeof(ControlBlock) / 1024);
    }
    const auto rank = static_cast<int>(members_.size());
    members_.push_back(info);
    const std::optional<int> local_rank = parent.local_rank_of(member.rank);
    if (!local_rank) continue;
    if (member.rank == own_rank) first_own_ = size();
    ControlBlock* const memory = find_block(member, parent.worker_of(*local_rank));
    add_blocks({&memory, 1}, parent.worker_of(*local_rank), rank);
    if (!parent.groups_.empty()) groups_.push_back(parent.groups_[static_cast<std::size_t>(*local_rank)]);
  }
  own_buffers_.push_back(own_block.take());
  make_tree();
  detect_oversubscription();
  // The parent's other members need cores meanwhile.
  oversubscribed_ = oversubscribed_ || parent.oversubscribed_;
  shares_cores_ = shares_cores_ || parent.shares_cores_;
  show_records(parent.observer_);
}

void NodeGroup::make_tree() {
  const auto members = blocks_.size();
  if (groups_.empty() || size() <= most_members_without_tree_ || members > kMostMembersInTree) return;
  COHORT_CHECK(groups_.size() == members);
  tree_ = make_level_tree(groups_);
  sockets_ = members_by_socket(groups_);
}

void NodeGroup::detect_oversubscription() {
  one_process_ =
      std::ranges::all_of(workers_, [this](int worker) { return memory_->is_this_process(worker); });
  // A member that waits for another node waits for long, and its neighbours may need the core.
  const bool waits_for_others = members_.size() > blocks_.size() && size() > 1;
  // Members of one host may be on nodes of their own, where they cannot share memory.
  const std::string& host = members_[static_cast<std::size_t>(rank_of(first_own_))].host;
  const auto on_host = static_cast<int>(std::ranges::count(members_, host, &MemberInfo::host));
  const bool more_than_cores = std::max(size(), on_host) > memory_->cores();
  oversubscribed_ = waits_for_others || more_than_cores;
  // Lines are counted for a machine that is only described, on which each member has a core of its own.
  shares_cores_ = more_than_cores && !counter_;
}

ControlBlock* NodeGroup::find_block(const SplitMember& member, int worker) const noexcept {
  const auto [address, offset] = member.contribution.control_block;
  if (!memory_->is_this_process(worker))
    return reinterpret_cast<ControlBlock*>(memory_->address(worker, offset - 1));
  return reinterpret_cast<ControlBlock*>(address);  // NOLINT(performance-no-int-to-ptr): came from a pointer
}

void NodeGroup::gather_blocks(const NodeGroupOptions& options, std::span<ControlBlock* const> own_blocks) {
  const auto is_neighbour = [&](const WorkerInfo& worker) { return is_neighbour_of(options, worker); };
  const auto neighbours = std::ranges::count_if(options.workers, is_neighbour);
  const auto members = static_cast<int>(neighbours) * options.members;
  const bool is_described = !config().topology().empty();
  const std::vector<LevelGroups> groups = needs_tree(members, is_described)
                                              ? groups_of_own_members(options)
                                              : std::vector<LevelGroups>(own_blocks.size());
  std::vector<MemberPlace> own_places;
  for (std::size_t i = 0; i < own_blocks.size(); ++i) {
    const std::optional<std::uint64_t> offset = offset_of(*own_blocks[i]);
    if (offset || neighbours == 1) own_places.push_back({offset.value_or(0), groups[i], is_described});
  }
  const std::vector<std::string> blobs = exchange_places(options, own_places, own_blocks.size());
  bool all_described = true;
  for (const WorkerInfo& worker : options.workers) {
    if (!is_neighbour(worker)) continue;
    const bool is_own = worker.rank == options.rank;
    const std::vector<MemberPlace> places =
        is_own ? own_places : MemberPlace::parse(blobs[static_cast<std::size_t>(worker.rank)]);
    std::vector<ControlBlock*> blocks(own_blocks.begin(), own_blocks.end());
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (!is_own)
        blocks[i] = reinterpret_cast<ControlBlock*>(memory_->address(worker.rank, places[i].offset));
      groups_.push_back(places[i].groups);
      all_described = all_described && places[i].is_described;
    }
    if (is_own) first_own_ = size();
    add_blocks(blocks, is_own ? memory_->worker() : worker.rank, worker.rank * options.members);
  }
  if (!needs_tree(members, all_described)) groups_.clear();
}

/// Members that share a core take turns on it: then a tree costs a turn per level, and saves no waiting for
/// lines that are far away. A machine that is described is taken at its word.
bool NodeGroup::needs_tree(int members, bool is_described) const noexcept {
  return members > most_members_without_tree_ && (is_described || members <= memory_->cores());
}

void NodeGroup::add_blocks(std::span<ControlBlock* const> blocks, int worker, int first_rank) {
  for (ControlBlock* const block : blocks) {
    blocks_.push_back(block);
    for (std::size_t priority = 0; priority < kPriorities; ++priority)
      priority_blocks_[priority].push_back(&block->priority_blocks[priority]);
    workers_.push_back(worker);
    ranks_.push_back(first_rank++);
  }
}

std::vector<std::string> NodeGroup::exchange_places(const NodeGroupOptions& options,
                                                    std::span<const MemberPlace> own_places,
                                                    std::size_t members) {
  if (options.workers.size() == 1 || !options.exchange) return {};
  // A worker without memory for it says so by an empty list: it must not give up alone, since the others
  // would wait for it.
  if (own_places.size() < members) own_places = {};
  std::vector<std::string> blobs =
      options.exchange({reinterpret_cast<const char*>(own_places.data()), own_places.size_bytes()});
  for (const WorkerInfo& worker : options.workers) {
    const std::size_t theirs = MemberPlace::parse(blobs[static_cast<std::size_t>(worker.rank)]).size();
    if (theirs == 0) {
      throw Unavailable("the node heap of {} has no room for a communicator's {} KiB per member",
                        describe(worker), sizeof(ControlBlock) / 1024);
    }
    if (theirs != members) {
      throw InvalidArgument(
          "{} makes a communicator with {} members, this worker one with {}; the numbers must agree",
          describe(worker), theirs, members);
    }
  }
  return blobs;
}

std::optional<int> NodeGroup::local_rank_of(int rank) const noexcept {
  const auto found = std::ranges::lower_bound(ranks_, rank);
  if (found == ranks_.end() || *found != rank) return std::nullopt;
  return static_cast<int>(found - ranks_.begin());
}

NodeGroup::~NodeGroup() {
  if (is_shown_ && is_of_this_process()) observer_->remove(this);
}

/// One process of the node does: that of the first member here.
void NodeGroup::show_records(const std::shared_ptr<RecordObserver>& observer) {
  observer_ = observer;
  is_shown_ = observer_ != nullptr && first_own_ == 0;
  if (!is_shown_) return;
  ObservedGroup group{.id = this, .communicator = name_, .shares_cores = shares_cores_};
  for (const ControlBlock* block : blocks_) group.records.push_back(&block->record);
  for (const MemberInfo& member : members_) group.workers.push_back(member.worker);
  observer_->add(std::move(group));
}

bool NodeGroup::fixes_order_of(const CollectiveCall& call) const noexcept {
  return reproducible_ && reduces(call.kind) && depends_on_order(call.op, call.dtype);
}

void NodeGroup::keep_for_ever(std::shared_ptr<const void> memory) {
  DepartedControlBlocks::of_this_process().keep_for_ever(std::move(memory));
}

std::optional<Error> NodeGroup::fault() const {
  const Error* const fault = fault_ ? fault_() : nullptr;
  if (fault == nullptr) return std::nullopt;
  ErrorOrigin origin = fault->origin();
  const auto member = std::ranges::find(members_, origin.member, &MemberInfo::worker);
  origin.member = member == members_.end() ? -1 : static_cast<int>(member - members_.begin());
  return Error(fault->code(), fault->what(), std::move(origin));
}

bool NodeGroup::fail(const Error& error) {
  if (on_failure_) on_failure_();
  return write_failure(record(), error);
}

void NodeGroup::report(const Error& error) {
  report_failure(*this, error);
  record().reported.store(true, std::memory_order_release);
}

Error NodeGroup::failure() const {
  const Deadline deadline = Deadline::after(std::chrono::seconds(1));
  Error error = first_error();
  while (!record().reported.load(std::memory_order_acquire) && !deadline.expired()) std::this_thread::yield();
  return error;
}

Error NodeGroup::first_error() const { return read_failure(record()); }

bool NodeGroup::is_of_this_process() const noexcept { return process_ == ::getpid(); }

void NodeGroup::leave(int member, std::vector<std::shared_ptr<const void>> held) {
  if (is_shown_.exchange(false)) observer_->remove(this);
  control_block(member).left.store(true, std::memory_order_release);
  for (int other = 0; other < size(); ++other) {
    if (other != member) control_block(other).departures.fetch_add(1, std::memory_order_acq_rel);
  }
  held.push_back(std::move(own_buffers_[static_cast<std::size_t>(member - first_own_)]));
  DepartedControlBlocks::of_this_process().add(control_block(member), size() - 1, std::move(held));
}

}  // namespace cohort::node
