#include "tcp_network.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/system_calls.h"

namespace cohort::rendezvous {
namespace {

using namespace std::chrono_literals;

/// So few connections are read without asking the system first which of them have something.
constexpr std::size_t kFewSockets = 4;

/// How often it is looked whether others connect.
constexpr auto kBetweenQuestions = 200us;

/// The end of a connection may be that of a process, or of a failed call, of which others tell at once. They
/// know why it ended, so they have this time to say so.
constexpr auto kTimeToExplain = 500ms;

constexpr const char* kJob = "member";

}  // namespace

TcpNetwork::TcpNetwork(TcpNetworkOptions options)
    : options_(std::move(options)), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) throw Unavailable("the system has no epoll to wait for members by: {}", std::strerror(errno));
  identity_.introduction.task = {kJob, options_.rank};
  identity_.introduction.host = worker_of(options_.rank).host;
  identity_.introduction.pid = ::getpid();
  identity_.introduction.heartbeat = 1s;  // it has none
  identity_.secret = options_.secret;
  watch::Fd listener = watch::listen_network();
  if (!listener) throw Unavailable("cannot listen for other members over TCP: {}", std::strerror(errno));
  listens_at_ = watch::network_addresses(listener.get());
  lobby_ = std::make_unique<remote::Lobby>(identity_, std::move(listener), watch::Fd());
}

TcpNetwork::~TcpNetwork() = default;

std::string TcpNetwork::address() const { return fmt::format("{}", fmt::join(listens_at_, " ")); }

void TcpNetwork::set_addresses(std::span<const std::string> addresses) {
  COHORT_CHECK(addresses.size() == options_.worker_of.size());
  for (std::size_t member = 0; member < addresses.size(); ++member) {
    remote::Address address;
    address.task = {kJob, static_cast<int>(member)};
    address.host = worker_of(static_cast<int>(member)).host;
    std::string_view text = addresses[member];
    while (!text.empty()) {
      const std::size_t end = std::min(text.find(' '), text.size());
      address.network.emplace_back(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    addresses_.push_back(std::move(address));
  }
}

bool TcpNetwork::is_elsewhere(int member) const {
  return worker_of(member).node != worker_of(options_.rank).node;
}

void TcpNetwork::start_connecting() {
  const std::lock_guard lock(mutex_);
  for (int member = 0; member < options_.rank; ++member)
    if (is_elsewhere(member)) static_cast<void>(connected_peer(member));
}

std::vector<int> TcpNetwork::unconnected() {
  const std::lock_guard lock(mutex_);
  std::vector<int> members;
  for (int member = 0; member < static_cast<int>(options_.worker_of.size()); ++member)
    if (is_elsewhere(member) && !peer(member).is_connected()) members.push_back(member);
  return members;
}

std::string TcpNetwork::report(int member) {
  const std::lock_guard lock(mutex_);
  const Peer& of_member = peer(member);
  return of_member.attempts ? of_member.attempts->report() : std::string("it has not connected");
}

TcpNetwork::Peer& TcpNetwork::peer(int member) {
  Peer& peer = peers_[member];
  if (peer.sockets.empty()) peer.sockets.push_back(std::make_unique<TcpSocket>(member, *this));
  return peer;
}

TcpNetwork::Peer& TcpNetwork::connected_peer(int member) {
  Peer& found = peer(member);
  if (found.is_connected() || found.attempts) return found;
  found.attempts.emplace(identity_, addresses_[static_cast<std::size_t>(member)], true);
  ++connecting_;
  look_for_connections(Clock::now());
  return found;
}

void TcpNetwork::attach(watch::Fd socket, int member) {
  if (member < 0 || member >= static_cast<int>(options_.worker_of.size())) return;
  Peer& of_member = peer(member);
  if (of_member.is_connected()) of_member.sockets.push_back(std::make_unique<TcpSocket>(member, *this));
  TcpSocket& added = *of_member.sockets.back();
  epoll_event event{.events = EPOLLIN, .data = {.ptr = &added}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.get(), &event) != 0)
    throw Unavailable("cannot wait for {}: {}", describe(worker_of(member)), std::strerror(errno));
  added.connect(std::move(socket));
  sockets_.push_back(&added);
  flush(added);
}

TcpNetwork::Ticket TcpNetwork::new_ticket(int member, const Label& label, std::size_t bytes) {
  if (free_.empty()) {
    free_.push_back(static_cast<Ticket>(transfers_.size()));
    transfers_.emplace_back();
  }
  const Ticket ticket = free_.back();
  free_.pop_back();
  transfers_[ticket] = {.in_use = true, .bytes = bytes, .member = member, .label = label, .polled = rounds_};
  return ticket;
}

void TcpNetwork::release(Ticket ticket) {
  transfers_[ticket] = {};
  free_.push_back(ticket);
}

void TcpNetwork::complete(Ticket ticket, std::size_t bytes) {
  Transfer& transfer = transfers_[ticket];
  transfer.done = true;
  transfer.bytes = bytes;
}

TcpNetwork::Ticket TcpNetwork::send(int to, const Label& label, std::span<const std::byte> data) {
  const std::lock_guard lock(mutex_);
  const Ticket ticket = new_ticket(to, label, data.size());
  TcpSocket& socket = *connected_peer(to).sockets.front();
  socket.send({label, data.size()}, data, ticket);
  flush(socket);
  return ticket;
}

void TcpNetwork::send_control(int to, const Label& label, std::string_view text) {
  const std::lock_guard lock(mutex_);
  TcpSocket& socket = *connected_peer(to).sockets.front();
  socket.send_copy({label, text.size()}, std::as_bytes(std::span(text)));
}

TcpNetwork::Ticket TcpNetwork::receive(int from, const Label& label, std::span<std::byte> into) {
  const std::lock_guard lock(mutex_);
  const Ticket ticket = new_ticket(from, label, 0);
  transfers_[ticket].receives = true;
  transfers_[ticket].into = into;
  Peer& of_member = peer(from);
  const auto found = std::ranges::find_if(
      of_member.arrived, [&](const auto& message) { return message->header.label == label; });
  if (found == of_member.arrived.end()) {
    of_member.receives.push_back(ticket);
    return ticket;
  }
  const std::shared_ptr<Unexpected> message = *found;
  of_member.arrived.erase(found);
  const std::size_t bytes = message->header.bytes;
  if (bytes > into.size()) return ticket;  // never completes
  if (message->complete) {
    std::copy_n(message->memory.get(), bytes, into.begin());
    complete(ticket, bytes);
    return ticket;
  }
  // What is still to come goes to its place.
  for (const std::unique_ptr<TcpSocket>& socket : of_member.sockets) {
    Arriving& arriving = arriving_[socket.get()];
    if (arriving.unexpected != message) continue;
    const std::size_t here = bytes - socket->missing();
    std::copy_n(message->memory.get(), here, into.begin());
    socket->redirect(into.data() + here);
    arriving.ticket = ticket;
    arriving.unexpected.reset();
  }
  return ticket;
}

std::byte* TcpNetwork::begin(TcpSocket& from, const MessageHeader& header) {
  Arriving& arriving = arriving_[&from];
  arriving = {.header = header};
  if (is_closed(header.label)) return nullptr;
  Peer& of_member = peers_.at(from.member());
  const bool is_control = header.label.channel == kControl;
  const auto found = std::ranges::find_if(of_member.receives, [&](Ticket ticket) {
    return !is_control && transfers_[ticket].label == header.label;
  });
  if (found != of_member.receives.end()) {
    const Ticket ticket = *found;
    of_member.receives.erase(found);
    if (header.bytes > transfers_[ticket].into.size()) return nullptr;  // which never completes it
    arriving.ticket = ticket;
    return transfers_[ticket].into.data();
  }
  arriving.unexpected = std::make_shared<Unexpected>();
  arriving.unexpected->header = header;
  arriving.unexpected->memory = std::make_unique_for_overwrite<std::byte[]>(header.bytes);
  if (!is_control) of_member.arrived.push_back(arriving.unexpected);
  return arriving.unexpected->memory.get();
}

void TcpNetwork::end(TcpSocket& from) {
  Arriving& arriving = arriving_[&from];
  if (arriving.ticket) complete(*arriving.ticket, arriving.header.bytes);
  if (arriving.unexpected) {
    arriving.unexpected->complete = true;
    if (arriving.header.label.channel == kControl)
      control_[arriving.header.label].emplace_back(
          from.member(),
          std::string(reinterpret_cast<const char*>(arriving.unexpected->memory.get()), arriving.header.bytes));
  }
  arriving = {};
}

// Each look at a connection is a call of the system, so all are looked at together: by the first poll of a
// transfer that was polled since the last look, and has not completed.
std::optional<std::size_t> TcpNetwork::poll(Ticket ticket) {
  const std::lock_guard lock(mutex_);
  if (!transfers_[ticket].done) {
    if (transfers_[ticket].polled == rounds_) move_on();
    transfers_[ticket].polled = rounds_;
    if (!transfers_[ticket].done) {
      judge_loss(transfers_[ticket]);
      return std::nullopt;
    }
  }
  const std::size_t bytes = transfers_[ticket].bytes;
  release(ticket);
  return bytes;
}

bool TcpNetwork::cancel(Ticket ticket) {
  const std::lock_guard lock(mutex_);
  std::vector<Ticket>& receives = peer(transfers_[ticket].member).receives;
  const auto found = std::ranges::find(receives, ticket);
  if (found == receives.end()) return false;
  receives.erase(found);
  release(ticket);
  return true;
}

std::optional<std::pair<int, std::string>> TcpNetwork::receive_control(const Label& label) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return std::nullopt;
  auto found = control_.find(label);
  if (found == control_.end()) {
    move_on();
    found = control_.find(label);
    if (found == control_.end()) return std::nullopt;
  }
  std::pair<int, std::string> message = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) control_.erase(found);
  return message;
}

void TcpNetwork::progress() {
  const std::lock_guard lock(mutex_);
  move_on();
}

void TcpNetwork::move_on() {
  ++rounds_;
  look_for_connections(Clock::now());
  for (TcpSocket* socket : sockets_)
    if (socket->has_unsent()) flush(*socket);
  if (sockets_.size() > kFewSockets) {
    std::array<epoll_event, 64> events;
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; ++i) move_on(*static_cast<TcpSocket*>(events[static_cast<std::size_t>(i)].data.ptr));
    return;
  }
  // One that is lost leaves the list.
  for (std::size_t i = sockets_.size(); i-- > 0;) move_on(*sockets_[i]);
}

void TcpNetwork::move_on(TcpSocket& socket) {
  static_cast<void>(socket.read());
  if (!socket.loss()) return;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket.fd(), nullptr);
  std::erase(sockets_, &socket);
  Peer& of_member = peers_.at(socket.member());
  if (!of_member.lost_at) of_member.lost_at = Clock::now();
}

void TcpNetwork::flush(TcpSocket& socket) {
  static_cast<void>(socket.flush());
  for (const Ticket ticket : socket.take_sent()) complete(ticket, transfers_[ticket].bytes);
}

void TcpNetwork::look_for_connections(Clock::time_point now) {
  if (connecting_ > 0) {
    for (auto& [member, of_member] : peers_) {
      if (!of_member.attempts) continue;
      std::optional<remote::Connected> connected = of_member.attempts->advance();
      if (!connected) continue;
      of_member.attempts.reset();
      --connecting_;
      attach(std::move(connected->socket), member);
    }
  }
  if (connecting_ == 0 && now - looked_at_ < kBetweenQuestions) return;
  looked_at_ = now;
  lobby_->advance();
  for (remote::Connected& arrived : lobby_->take_arrived())
    attach(std::move(arrived.socket), arrived.peer.task.id);
}

void TcpNetwork::judge_loss(const Transfer& transfer) {
  const Peer& of_member = peers_.at(transfer.member);
  if (!of_member.lost_at || Clock::now() - *of_member.lost_at < kTimeToExplain) return;
  std::string why;
  for (const std::unique_ptr<TcpSocket>& socket : of_member.sockets)
    if (socket->loss()) why = *socket->loss();
  const WorkerInfo& worker = worker_of(transfer.member);
  options_.lost->note(Unavailable(
      ErrorOrigin{{}, worker.rank, worker.host},
      fmt::format("the connection to {}, over which its collectives go, is lost: {}", describe(worker), why)));
}

bool TcpNetwork::is_closed(const Label& label) const {
  return label.generation <= latest_group_ && !open_groups_.contains(label.generation);
}

void TcpNetwork::open_group(std::uint64_t generation) {
  const std::lock_guard lock(mutex_);
  open_groups_.insert(generation);
  latest_group_ = std::max(latest_group_, generation);
}

void TcpNetwork::close_group(std::uint64_t generation) {
  const std::lock_guard lock(mutex_);
  open_groups_.erase(generation);
  const auto is_of_group = [&](const Label& label) { return label.generation == generation; };
  for (auto& [socket, arriving] : arriving_) {
    if (!arriving.ticket || !is_of_group(arriving.header.label)) continue;
    arriving.ticket.reset();
    const_cast<TcpSocket*>(socket)->redirect(nullptr);
  }
  for (auto& [member, of_member] : peers_) {
    std::erase_if(of_member.receives, [&](Ticket ticket) { return is_of_group(transfers_[ticket].label); });
    std::erase_if(of_member.arrived, [&](const auto& message) { return is_of_group(message->header.label); });
  }
  std::erase_if(control_, [&](const auto& messages) { return is_of_group(messages.first); });
  for (Ticket ticket = 0; ticket < transfers_.size(); ++ticket) {
    const Transfer& transfer = transfers_[ticket];
    if (!transfer.in_use || !is_of_group(transfer.label)) continue;
    if (!transfer.receives && !transfer.done) {
      for (const std::unique_ptr<TcpSocket>& socket : peer(transfer.member).sockets)
        socket->copy_unsent(ticket);
    }
    release(ticket);
  }
}

}  // namespace cohort::rendezvous
