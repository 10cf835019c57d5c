#include "handshake.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cohort/base/error.h>

#include "base/json.h"
#include "supervised_task.h"

namespace cohort::remote {
namespace {

template <class Integer>
Integer integer(const nlohmann::json& json, const char* name) {
  const nlohmann::json& value = json.at(name);
  if (!value.is_number_integer()) throw InvalidArgument("'{}' of a task's introduction is no number", name);
  return value.get<Integer>();
}

constexpr std::array<char, 8> kMagic{'c', 'o', 'h', 'o', 'r', 't', '-', 'r'};
constexpr std::uint32_t kByteOrder = 0x01020304;
constexpr std::uint32_t kSwappedByteOrder = 0x04030201;

/// To be raised whenever frames, rings or introductions change.
constexpr std::uint32_t kVersion = 2;

/// The first bytes of either end, in all versions.
struct Opening {
  std::array<char, 8> magic = kMagic;
  std::uint32_t byte_order = kByteOrder;
  std::uint32_t version = kVersion;
  watch::Nonce nonce{};
};
static_assert(sizeof(Opening) == 48);

constexpr const char* kNoTask = "what answers there is no task of Cohort";

/// Precedes the text of an introduction.
struct IntroductionHeader {
  watch::Proof proof{};
  std::uint64_t text_bytes = 0;
};
constexpr std::size_t kLongestIntroduction = 4096;

template <class T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

template <class T>
T from_bytes(std::string_view bytes) {
  T value;
  std::memcpy(static_cast<void*>(&value), bytes.data(), sizeof value);
  return value;
}

/// Why no conversation is possible with an end that begins like this; empty: none.
std::string objection_to(const Opening& opening) {
  if (opening.magic != kMagic) return kNoTask;
  if (opening.byte_order == kSwappedByteOrder) {
    return "it runs on a machine of the other byte order; a job's machines have the same";
  }
  if (opening.byte_order != kByteOrder || opening.version != kVersion) {
    return fmt::format(
        "it speaks version {} of Cohort's messages, and this task version {}; link all programs of a job "
        "with the same Cohort",
        opening.version, kVersion);
  }
  return {};
}

}  // namespace

std::string to_text(const Introduction& introduction) {
  return nlohmann::json{{"type", introduction.task.type},
                        {"id", introduction.task.id},
                        {"wanted_type", introduction.wanted.type},
                        {"wanted_id", introduction.wanted.id},
                        {"host", introduction.host},
                        {"incarnation", introduction.incarnation},
                        {"pid", introduction.pid},
                        {"heartbeat_ms", introduction.heartbeat.count()},
                        {"offers_descriptor", introduction.offers_descriptor},
                        {"nonce_address", introduction.nonce_address},
                        {"nonce", introduction.nonce}}  // A host may have any name.
      .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

Introduction parse_introduction(std::string_view text) {
  using Json = nlohmann::json;
  return read_json<Json>(text, "a task introduces itself by what is no introduction", [](const Json& json) {
    Introduction introduction;
    json.at("type").get_to(introduction.task.type);
    introduction.task.id = integer<int>(json, "id");
    json.at("wanted_type").get_to(introduction.wanted.type);
    introduction.wanted.id = integer<int>(json, "wanted_id");
    json.at("host").get_to(introduction.host);
    introduction.incarnation = integer<std::uint64_t>(json, "incarnation");
    introduction.pid = integer<std::int64_t>(json, "pid");
    introduction.heartbeat = std::chrono::milliseconds(integer<std::int32_t>(json, "heartbeat_ms"));
    json.at("offers_descriptor").get_to(introduction.offers_descriptor);
    introduction.nonce_address = integer<std::uint64_t>(json, "nonce_address");
    introduction.nonce = integer<std::uint64_t>(json, "nonce");
    return introduction;
  });
}

SharedMemory make_rings() { return SharedMemory(kRingsBytes); }

Handshake::Handshake(watch::Fd socket, Reach reach, Side side, const Identity& identity, bool connecting)
    : identity_(&identity),
      side_(side),
      stage_(connecting ? Stage::kConnecting : Stage::kOpening),
      proof_(side) {
  connected_.socket = std::move(socket);
  connected_.reach = reach;
  connected_.side = side;
  if (reach == Reach::kNode) {
    const int on = 1;
    // The process that listens need not be the one that has made the listener: messages say who sends them.
    ::setsockopt(descriptor(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  }
  if (!connecting) open();
}

void Handshake::open() {
  stage_ = Stage::kOpening;
  if (side_ == Side::kListener) return;
  send(bytes_of(Opening{.nonce = proof_.own_nonce()}), {});
}

void Handshake::advance() {
  if (stage_ == Stage::kConnecting) {
    const std::optional<int> error = watch::connect_error(descriptor());
    if (!error) return;
    if (*error != 0) return fail(std::strerror(*error));
    open();
  }
  if (stage_ == Stage::kOpening) read_opening();
  if (stage_ == Stage::kIntroducing) read_introduction();
}

void Handshake::read_opening() {
  const bool answer = side_ == Side::kConnector;
  if (!read_to(sizeof(Opening))) {
    // Others may say less, and wait for an answer.
    const std::string_view begin = std::string_view(input_).substr(0, kMagic.size());
    if (!std::string_view(kMagic.data(), kMagic.size()).starts_with(begin)) fail(kNoTask, true);
    return;
  }
  const auto opening = from_bytes<Opening>(input_);
  const std::string objection = objection_to(opening);
  if (!answer) {
    proof_.hear(opening.nonce);
    // An end of another version finds out by the same bytes; a stranger learns no more than that Cohort
    // listens.
    const Opening own{.nonce = proof_.own_nonce()};
    const watch::Proof own_proof = proof_.prove(identity_->secret);
    if (opening.magic == kMagic) send(std::string(bytes_of(own)).append(bytes_of(own_proof)), {});
  }
  if (!objection.empty()) return fail(objection, true);
  if (!answer) {
    input_.clear();
    if (stage_ != Stage::kFailed) stage_ = Stage::kIntroducing;
    return;
  }
  if (!read_to(sizeof(Opening) + sizeof(watch::Proof))) return;
  proof_.hear(opening.nonce);
  const auto claimed = from_bytes<watch::Proof>(std::string_view(input_).substr(sizeof(Opening)));
  if (!proof_.accepts(claimed, identity_->secret))
    return fail("what answers there has another secret, so it belongs to another job", true);
  input_.clear();
  stage_ = Stage::kProven;
}

void Handshake::introduce(const ClusterTask& wanted) {
  COHORT_CHECK(stage_ == Stage::kProven);
  if (connected_.reach == Reach::kNode) connected_.rings = make_rings();
  Introduction introduction = identity_->introduction;
  introduction.wanted = wanted;
  stage_ = Stage::kIntroducing;
  send_introduction(std::move(introduction));
}

void Handshake::send_introduction(Introduction introduction) {
  std::vector<int> descriptors;
  if (connected_.reach == Reach::kNode) {
    if (side_ == Side::kConnector) descriptors.push_back(connected_.rings->descriptor());
    descriptors.push_back(identity_->bell.page_descriptor());
    descriptors.push_back(identity_->bell.event_descriptor());
    if (identity_->offered) descriptors.push_back(identity_->offered.get());
  }
  introduction.offers_descriptor = connected_.reach == Reach::kNode && identity_->offered;
  const std::string text = to_text(introduction);
  const IntroductionHeader header{proof_.prove(identity_->secret, text), text.size()};
  send(std::string(bytes_of(header)).append(text), descriptors);
}

void Handshake::read_introduction() {
  const bool from_listener = side_ == Side::kConnector;
  if (!read_to(sizeof(IntroductionHeader))) return;
  const auto header = from_bytes<IntroductionHeader>(input_);
  if (header.text_bytes > kLongestIntroduction) return fail("its introduction is too long", true);
  if (!read_to(sizeof header + header.text_bytes)) return;
  const std::string_view text = std::string_view(input_).substr(sizeof header);
  if (!proof_.accepts(header.proof, identity_->secret, text))
    return fail("it could not prove that it belongs to the job", true);
  try {
    connected_.peer = parse_introduction(text);
    if (connected_.reach == Reach::kNode) take_descriptors(connected_.peer.offers_descriptor);
  } catch (const Error& e) {
    return fail(e.what(), true);
  }
  if (!from_listener) {
    send_introduction(identity_->introduction);
    if (stage_ == Stage::kFailed) return;
    const ClusterTask& wanted = connected_.peer.wanted;
    if (wanted != identity_->introduction.task)
      return fail(fmt::format("it looked for {}", name_of(wanted)), true);
  }
  stage_ = Stage::kDone;
}

void Handshake::take_descriptors(bool offers) {
  const bool with_rings = side_ == Side::kListener;
  std::vector<watch::Fd>& descriptors = attached_.descriptors;
  if (descriptors.size() != 2U + (with_rings ? 1 : 0) + (offers ? 1 : 0))
    throw InvalidArgument("it has sent {} descriptors, which is not what it should", descriptors.size());
  auto next = descriptors.begin();
  if (with_rings) connected_.rings.emplace(std::move(*next++), kRingsBytes);
  watch::Fd page = std::move(*next++);
  watch::Fd event = std::move(*next++);
  connected_.bell.emplace(std::move(page), std::move(event));
  if (offers) connected_.offered = std::move(*next);
  connected_.pid = attached_.sender;
  descriptors.clear();
}

bool Handshake::read_to(std::size_t bytes) {
  std::array<char, kLongestIntroduction + sizeof(IntroductionHeader)> buffer;
  while (input_.size() < bytes && stage_ != Stage::kFailed) {
    // No further than that: behind it the messages begin.
    const ssize_t got =
        watch::receive_with(descriptor(), std::span(buffer).first(bytes - input_.size()), attached_);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (got <= 0) {
      fail(got < 0 ? std::strerror(errno) : "it closed the connection before it had introduced itself");
      return false;
    }
    if (attached_.descriptors.size() > watch::kMostDescriptors)
      fail("it sends descriptors that nobody wants", true);
    input_.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return stage_ != Stage::kFailed;
}

void Handshake::send(std::string_view bytes, std::span<const int> descriptors) {
  const ssize_t sent = watch::send_with(descriptor(), bytes, descriptors);
  // A fresh socket has room for what is sent here, so less is a failure.
  if (sent == static_cast<ssize_t>(bytes.size())) return;
  fail(sent < 0 ? std::strerror(errno) : "it does not read what it is told");
}

void Handshake::fail(std::string why, bool stranger) {
  stage_ = Stage::kFailed;
  failure_ = std::move(why);
  stranger_ = stranger;
  attached_.descriptors.clear();
}

}  // namespace cohort::remote
