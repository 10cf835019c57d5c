#include "peer_watch.h"

#include <sys/resource.h>

#include <algorithm>

#include <cohort/base/log.h>

#include "watch_link.h"
#include "watch_loop.h"

namespace cohort {
namespace {

/// Raises this process's limit of descriptors, as far as the system allows, where its links may not fit: to
/// each worker one, and one to wait for the end of its process.
void make_room_for_links(std::size_t workers) {
  constexpr rlim_t kForTheProgram = 512;
  const rlim_t needed = 2 * workers + kForTheProgram;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return;
  limit.rlim_cur = std::min(needed, limit.rlim_max);
  if (::setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur == needed) return;
  logging::warning(
      "the watch of {} workers needs up to {} descriptors in this process, and {} are allowed: some may not "
      "be "
      "watched; raise the limit (ulimit -n, or LimitNOFILE of the service that starts the job)",
      workers, needed, limit.rlim_cur);
}

constexpr const char* kLinked = "linked";
constexpr const char* kNotLinked = "";

/// Makes the links of one process; lives only while the PeerWatch is constructed.
class Setup {
 public:
  Setup(const PeerWatchOptions& options, watch::Loop& loop)
      : options_(options), loop_(loop), hub_(lowest_on_node()) {
    address_.key = watch::random_token();
    address_.answer = watch::random_token();
  }

  /// The workers that found no uplink.
  std::vector<int> run() {
    if (options_.rank == hub_) make_room_for_links(options_.workers.size());
    if (has_company_on_node() && options_.rank == hub_) listen_locally();
    if (spans_nodes() && is_chief()) listen_on_network();
    std::vector<std::string> addresses = options_.exchange(watch::to_blob(address_));
    if (!is_chief()) {
      if (options_.rank == hub_)
        link_to_chief(addresses.front());
      else
        link_to_hub(addresses[static_cast<std::size_t>(hub_)]);
    }
    std::vector<int> unlinked = exchange_unlinked();

    // A container may have a network namespace, and with it local sockets, of its own, and still share the
    // node's memory. Everyone sees the same list, so either all get here or none.
    if (!unlinked.empty()) {
      if (is_chief() && address_.network.empty()) listen_on_network();
      addresses = options_.exchange(watch::to_blob(address_));
      if (!is_chief() && !linked_) link_to_chief(addresses.front());
      unlinked = exchange_unlinked();
    }
    loop_.stop_listening();
    return unlinked;
  }

 private:
  [[nodiscard]] const WorkerInfo& self() const {
    return options_.workers[static_cast<std::size_t>(options_.rank)];
  }
  [[nodiscard]] bool is_chief() const { return options_.rank == 0; }

  [[nodiscard]] int lowest_on_node() const {
    const auto on_node = [this](const WorkerInfo& worker) { return worker.node == self().node; };
    return std::find_if(options_.workers.begin(), options_.workers.end(), on_node)->rank;
  }
  [[nodiscard]] bool has_company_on_node() const {
    const auto on_node = [this](const WorkerInfo& worker) { return worker.node == self().node; };
    return std::count_if(options_.workers.begin(), options_.workers.end(), on_node) > 1;
  }
  [[nodiscard]] bool spans_nodes() const {
    const auto elsewhere = [this](const WorkerInfo& worker) { return worker.node != self().node; };
    return std::any_of(options_.workers.begin(), options_.workers.end(), elsewhere);
  }

  void listen_locally() {
    const std::string name = "cohort-" + watch::random_token();
    watch::Fd socket = watch::listen_local(name);
    if (!socket) return;
    address_.local_name = name;
    loop_.listen(std::move(socket), watch::Reach::kNode, address_);
  }

  void listen_on_network() {
    watch::Fd socket = watch::listen_network();
    if (!socket) return;
    address_.network = watch::network_addresses(socket.get());
    loop_.listen(std::move(socket), watch::Reach::kNetwork, address_);
  }

  void link_to_chief(const std::string& blob) {
    adopt(watch::connect_network(watch::parse_address(blob), options_.rank, options_.connect), 0);
  }

  void link_to_hub(const std::string& blob) {
    adopt(watch::connect_local(watch::parse_address(blob), options_.rank, options_.connect), hub_);
  }

  void adopt(std::unique_ptr<watch::Link> link, int rank) {
    if (!link) return;
    link->rank = rank;
    loop_.set_uplink(std::move(link));
    linked_ = true;
  }

  std::vector<int> exchange_unlinked() {
    const std::vector<std::string> states = options_.exchange(is_chief() || linked_ ? kLinked : kNotLinked);
    std::vector<int> unlinked;
    for (std::size_t rank = 0; rank < states.size(); ++rank) {
      if (states[rank] == kNotLinked) unlinked.push_back(static_cast<int>(rank));
    }
    return unlinked;
  }

  const PeerWatchOptions& options_;
  watch::Loop& loop_;
  int hub_;
  watch::Address address_;
  bool linked_ = false;
};

}  // namespace

PeerWatch::PeerWatch(PeerWatchOptions options) : loop_(std::make_unique<watch::Loop>(options)) {
  unwatched_ = Setup(options, *loop_).run();
  for (const int rank : unwatched_) {
    if (options.rank != 0 && options.rank != rank) continue;
    logging::warning(
        "no side channel from {} to the chief: when one of the two sides is lost, the other notices it only "
        "when a collective's deadline passes",
        describe(options.workers[static_cast<std::size_t>(rank)]));
  }
}

PeerWatch::~PeerWatch() = default;

const Error* PeerWatch::fault() const noexcept { return loop_->record()->fault(); }

std::shared_ptr<const FaultRecord> PeerWatch::record() const noexcept { return loop_->record(); }

void PeerWatch::announce_failure(std::string_view text) noexcept {
  try {
    loop_->announce_failure(std::string(text));
  } catch (const std::exception&) {
    // Only memory can run out here; the others still see this process end.
  }
}

void PeerWatch::mute() noexcept { loop_->mute(); }

void PeerWatch::tell(int worker, std::string note) { loop_->tell(worker, std::move(note)); }

void PeerWatch::tell_all(std::string note) { loop_->tell_all(std::move(note)); }

void PeerWatch::hear_notes(std::function<void(std::string_view note)> hear) {
  loop_->hear_notes(std::move(hear));
}

bool PeerWatch::leave() { return loop_->leave(); }

bool PeerWatch::leave_within(std::chrono::milliseconds limit) { return loop_->leave_within(limit); }

}  // namespace cohort
