#include "notices.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "tags.h"

namespace cohort::mpi {
namespace {

struct Header {
  std::uint64_t sequence = 0;
  NoticeKind kind = NoticeKind::kPresent;
  std::int32_t code = 0;
  std::int32_t member = -1;
  std::array<std::uint32_t, 3> lengths{};  ///< of call, host and text
};

/// Long enough for any of our messages, short enough never to wait for a receiver.
constexpr std::size_t kLongestText = 2500;

std::span<const std::byte> as_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace

void Notices::send(const Notice& notice, int to) {
  Header header;
  header.sequence = notice.sequence;
  header.kind = notice.kind;
  std::string texts;
  if (notice.error) {
    header.code = static_cast<std::int32_t>(notice.error->code());
    header.member = notice.error->origin().member;
    const std::array<std::string, 3> parts{notice.error->origin().call, notice.error->origin().host,
                                           std::string(notice.error->what()).substr(0, kLongestText)};
    for (std::size_t i = 0; i < parts.size(); ++i) {
      header.lengths[i] = static_cast<std::uint32_t>(parts[i].size());
      texts += parts[i];
    }
  }
  outbox_.send(comm_, to, kNoticeTag, std::as_bytes(std::span(&header, 1)), as_bytes(texts));
}

void Notices::send_to_all(const Notice& notice) {
  for (int member = 0; member < size_; ++member) {
    if (member != rank_) send(notice, member);
  }
}

std::optional<Notice> Notices::receive() {
  const std::optional<Envelope> envelope = iprobe_any(kNoticeTag, comm_);
  if (!envelope) return std::nullopt;
  std::vector<std::byte> bytes(envelope->bytes);
  recv(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, envelope->source, kNoticeTag, comm_);
  Header header;
  COHORT_CHECK(bytes.size() >= sizeof header);
  std::memcpy(&header, bytes.data(), sizeof header);
  const std::string texts(reinterpret_cast<const char*>(bytes.data()) + sizeof header,
                          bytes.size() - sizeof header);
  const auto [call, host, text] = header.lengths;
  COHORT_CHECK(texts.size() == std::size_t{call} + host + text);
  Notice notice{header.kind, header.sequence, std::nullopt, envelope->source};
  if (text > 0) {
    notice.error.emplace(static_cast<ErrorCode>(header.code), texts.substr(call + host),
                         ErrorOrigin{texts.substr(0, call), header.member, texts.substr(call, host)});
  }
  return notice;
}

}  // namespace cohort::mpi
