#include "messages.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "eager.h"

namespace cohort::mpi {
namespace {

struct Header {
  std::uint64_t elements = 0;
  DType dtype = DType::kUInt8;
  std::array<std::uint8_t, 7> padding{};
};

using Packet = std::vector<std::byte>;
constexpr std::size_t kLongestPacket = sizeof(Header) + kEagerBytes;

std::size_t bytes_of(const Header& header) { return header.elements * size_of(header.dtype); }
bool fits_packet(const Header& header) { return bytes_of(header) <= kEagerBytes; }

class Sending final : public Message {
 public:
  Sending(const Place& place, const CollectiveCall& asked, std::uint64_t sequence, Deadline deadline)
      : Message(asked, sequence, deadline), packet_(sizeof(Header)) {
    const Header header{call().elements, call().dtype, {}};
    std::memcpy(packet_.data(), &header, sizeof header);
    const int peer = call().root;
    const bool in_packet = fits_packet(header);
    if (in_packet) packet_.insert(packet_.end(), call().input, call().input + bytes_of(header));
    packet_request_ =
        isend(packet_.data(), static_cast<int>(packet_.size()), MPI_BYTE, peer, call().tag, place.comm);
    if (in_packet) return;
    content_request_ = isend(call().input, static_cast<int>(header.elements), storage_type(header.dtype),
                             peer, call().tag, place.comm);
  }

  bool advance() override {
    if (!test(packet_request_) || !test(content_request_)) return false;
    finish();
    return true;
  }

  [[nodiscard]] bool pending_in_mpi() const noexcept override {
    return packet_request_ != MPI_REQUEST_NULL || content_request_ != MPI_REQUEST_NULL;
  }

 private:
  Packet packet_;
  MPI_Request packet_request_ = MPI_REQUEST_NULL;
  MPI_Request content_request_ = MPI_REQUEST_NULL;
};

class Receiving final : public Message {
 public:
  Receiving(const Place& place, const MemberInfo& sender, const CollectiveCall& asked, std::uint64_t sequence,
            Deadline deadline)
      : Message(asked, sequence, deadline), place_(place), sender_(sender) {}

  bool advance() override {
    switch (stage_) {
      case Stage::kWaitingInLine:
        packet_.resize(kLongestPacket);
        request_ = irecv(packet_.data(), kLongestPacket, MPI_BYTE, call().root, call().tag, place_.comm);
        stage_ = Stage::kPacket;
        [[fallthrough]];
      case Stage::kPacket:
        if (!test(request_)) return false;
        open_packet();
        return true;
      case Stage::kContent:
        if (!test(request_)) return false;
        end();
        return true;
    }
    return false;
  }

  void withdraw() override {
    if (stage_ == Stage::kPacket) cancel(request_);
  }

  [[nodiscard]] bool waits_for_arrival() const noexcept override { return stage_ != Stage::kContent; }
  [[nodiscard]] bool pending_in_mpi() const noexcept override { return request_ != MPI_REQUEST_NULL; }

 private:
  enum class Stage { kWaitingInLine, kPacket, kContent };

  void open_packet() {
    std::memcpy(&header_, packet_.data(), sizeof header_);
    const bool fits = header_.dtype == call().dtype && header_.elements == call().elements;
    if (fits_packet(header_)) {
      if (fits && header_.elements > 0)
        std::memcpy(call().output, packet_.data() + sizeof header_, bytes_of(header_));
      return end();
    }
    std::byte* target = call().output;
    if (!fits) {
      // What does not fit is still taken off the line, so that the next message can be received.
      packet_.resize(bytes_of(header_));
      target = packet_.data();
    }
    request_ = irecv(target, static_cast<int>(header_.elements), storage_type(header_.dtype), call().root,
                     call().tag, place_.comm);
    stage_ = Stage::kContent;
  }

  void end() {
    if (header_.dtype == call().dtype && header_.elements == call().elements) return finish();
    fail(InvalidArgument(
        ErrorOrigin{name(), call().root, sender_.host},
        fmt::format("{}: {} sent {}[{}] with tag {}, but member {} receives {}[{}]. Both must name the same "
                    "dtype and "
                    "number of elements; the message is lost, later ones can be received",
                    name(), describe(call().root, sender_), to_string(header_.dtype), header_.elements,
                    call().tag, place_.rank, to_string(call().dtype), call().elements)));
  }

  const Place place_;
  const MemberInfo& sender_;
  Stage stage_ = Stage::kWaitingInLine;
  Packet packet_;
  Header header_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace

std::shared_ptr<Message> make_message(const Place& place, std::span<const MemberInfo> members,
                                      const CollectiveCall& call, std::uint64_t sequence, Deadline deadline) {
  if (call.kind == CollectiveKind::kSend) {
    return std::make_shared<Sending>(place, call, sequence, deadline);
  }
  const MemberInfo& sender = members[static_cast<std::size_t>(call.root)];
  return std::make_shared<Receiving>(place, sender, call, sequence, deadline);
}

void Messages::start(std::shared_ptr<Message> message) { under_way_.push_back(std::move(message)); }

bool Messages::advance() {
  bool moved = false;
  for (auto message = under_way_.begin(); message != under_way_.end(); ++message) {
    const auto is_ahead_in_line = [&](const std::shared_ptr<Message>& earlier) {
      return earlier->is_receive() && !earlier->finished() &&
             earlier->call().root == (*message)->call().root && earlier->call().tag == (*message)->call().tag;
    };
    if ((*message)->is_receive() && std::any_of(under_way_.begin(), message, is_ahead_in_line)) continue;
    while (!(*message)->finished() && (*message)->advance()) moved = true;
  }
  std::erase_if(under_way_, [](const auto& message) { return message->finished(); });
  return moved;
}

std::shared_ptr<Message> Messages::expired() const {
  const auto found = std::find_if(under_way_.begin(), under_way_.end(),
                                  [](const auto& message) { return message->deadline().expired(); });
  return found == under_way_.end() ? nullptr : *found;
}

bool Messages::fail_all(const Error& error) {
  bool some_pending = false;
  for (const std::shared_ptr<Message>& message : under_way_) {
    message->withdraw();
    message->fail(error);
    if (!message->pending_in_mpi()) continue;
    some_pending = true;
    keep_for_ever(message);
  }
  under_way_.clear();
  return some_pending;
}

}  // namespace cohort::mpi
