// A TCP connection between two members of a communicator, and how messages lie in its stream: each is a
// header and its bytes. A message is written from where it lies and read to where it shall be, in as few
// calls of the system as there are; what a call cannot take waits for the next. Its owner serialises calls.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cluster/sockets.h"

namespace cohort::rendezvous {

/// Tells the messages between two members apart: those with the same label arrive in the order in which they
/// were sent.
struct Label {
  std::uint64_t generation = 0;  ///< of the group; 0 for the whole communicator
  std::uint32_t tag = 0;
  std::uint16_t group = 0;    ///< its number
  std::uint16_t channel = 0;  ///< of Transport, or kControl

  // NOLINTNEXTLINE(modernize-use-nullptr): the check takes the default's comparison with 0 for a pointer
  auto operator<=>(const Label&) const = default;
};

inline constexpr std::uint16_t kControl = 2;

struct MessageHeader {
  Label label;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(MessageHeader) == 24);

class TcpSocket;

/// Who takes what arrives.
class Receiver {
 public:
  Receiver() = default;
  virtual ~Receiver() = default;
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  /// A message begins. Returns where its bytes go; null: they are dropped.
  [[nodiscard]] virtual std::byte* begin(TcpSocket& from, const MessageHeader& header) = 0;
  /// It is there.
  virtual void end(TcpSocket& from) = 0;
};

class TcpSocket {
 public:
  /// `member` is, or shall be, at the other end.
  TcpSocket(int member, Receiver& receiver);
  /// Sends what the system has taken, as long as the other end takes it.
  ~TcpSocket();
  TcpSocket(const TcpSocket&) = delete;
  TcpSocket& operator=(const TcpSocket&) = delete;

  /// What was sent before goes out from now on.
  void connect(watch::Fd socket);
  [[nodiscard]] bool is_connected() const noexcept { return static_cast<bool>(socket_); }

  [[nodiscard]] int fd() const noexcept { return socket_.get(); }
  [[nodiscard]] int member() const noexcept { return member_; }

  /// Adds a message; `data` stays as it is until the ticket is among those of `take_sent`.
  void send(const MessageHeader& header, std::span<const std::byte> data, std::uint32_t ticket);
  /// The same for a copy, which nobody asks for.
  void send_copy(const MessageHeader& header, std::span<const std::byte> data);

  /// Writes what the system has room for. True if something was written.
  bool flush();
  [[nodiscard]] bool has_unsent() const noexcept { return !outbox_.empty(); }
  /// The messages that the system has taken since the last call.
  [[nodiscard]] std::vector<std::uint32_t> take_sent() { return std::exchange(sent_, {}); }

  /// Keeps a copy of what is unsent of a message: its memory may change from now on.
  void copy_unsent(std::uint32_t ticket);

  /// Reads what has arrived, up to some MiB. True if something has.
  bool read();

  /// The message that arrives now goes on elsewhere; null: the rest is dropped. `next` is where its next
  /// bytes would have gone.
  void redirect(std::byte* next) noexcept { next_ = next; }
  [[nodiscard]] std::byte* next() const noexcept { return next_; }
  /// Bytes of it that are missing; 0: none arrives.
  [[nodiscard]] std::size_t missing() const noexcept { return missing_; }

  /// Why nothing more comes or goes; nothing while the connection is there.
  [[nodiscard]] const std::optional<std::string>& loss() const noexcept { return loss_; }

 private:
  static constexpr std::size_t kStagingBytes = std::size_t{32} << 10;
  static constexpr std::uint32_t kNoTicket = ~std::uint32_t{0};

  struct Outgoing {
    MessageHeader header;
    std::size_t header_left = sizeof(MessageHeader);
    std::span<const std::byte> data = {};
    std::uint32_t ticket = kNoTicket;
    std::unique_ptr<std::byte[]> copy = {};
  };
  void note_written(std::size_t bytes);
  void take_staged();
  void lose(std::string why);

  watch::Fd socket_;
  const int member_;
  const pid_t process_ = ::getpid();
  Receiver& receiver_;
  std::deque<Outgoing> outbox_;
  std::vector<std::uint32_t> sent_;
  std::unique_ptr<std::byte[]> staging_;  ///< what was read behind a message, or between two
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool in_message_ = false;
  std::byte* next_ = nullptr;
  std::size_t missing_ = 0;
  std::optional<std::string> loss_;
};

}  // namespace cohort::rendezvous
