#include "messages.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

namespace cohort::mpi {

void PendingSends::send(MPI_Comm comm, int to, int tag, std::span<const std::byte> first,
                        std::span<const std::byte> second) {
  std::vector<std::byte> bytes = std::move(spare_);
  bytes.assign(first.begin(), first.end());
  bytes.insert(bytes.end(), second.begin(), second.end());
  MPI_Request request = isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, to, tag, comm);
  if (test(request))
    spare_ = std::move(bytes);
  else
    pending_.push_back({request, std::move(bytes)});
}

bool PendingSends::advance() {
  return std::erase_if(pending_, [](Message& message) { return test(message.request); }) > 0;
}

void PendingSends::leak() {
  if (pending_.empty()) return;
  keep_for_ever(std::make_shared<const std::vector<Message>>(std::move(pending_)));
  pending_.clear();
}

void keep_for_ever(std::shared_ptr<const void> thing) {
  static std::mutex mutex;
  static auto& kept = *new std::vector<std::shared_ptr<const void>>;
  const std::lock_guard lock(mutex);
  kept.push_back(std::move(thing));
}

namespace {

constexpr int kExchangeTag = 1;

}  // namespace

ExchangeMessage ExchangeMessage::parse(std::string bytes, int from) {
  ExchangeMessage message;
  COHORT_CHECK(bytes.size() >= sizeof message.header);
  std::memcpy(&message.header, bytes.data(), sizeof message.header);
  bytes.erase(0, sizeof message.header);
  message.text = std::move(bytes);
  message.from = from;
  return message;
}

ExchangeMailbox::~ExchangeMailbox() {
  for (auto& [receiver, sends] : sends_) sends.leak();
  if (!arriving_.empty()) keep_for_ever(std::make_shared<const std::list<Transfer>>(std::move(arriving_)));
}

void ExchangeMailbox::send(const ExchangeMessage::Header& header, std::string_view text, int to) {
  COHORT_CHECK(text.size() <= kLongestText);
  const auto place = sends_.try_emplace(to).first;
  place->second.send(comm_, to, kExchangeTag, std::as_bytes(std::span(&header, 1)),
                     std::as_bytes(std::span(text)));
  if (place->second.empty()) sends_.erase(place);
}

void ExchangeMailbox::advance() {
  for (auto& [receiver, sends] : sends_) static_cast<void>(sends.advance());
  std::erase_if(sends_, [](const auto& to_one) { return to_one.second.empty(); });
}

std::vector<int> ExchangeMailbox::unsent_to() const {
  std::vector<int> receivers;
  for (const auto& [receiver, sends] : sends_) receivers.push_back(receiver);
  return receivers;
}

std::optional<ExchangeMessage> ExchangeMailbox::receive() {
  if (std::optional<ExchangeMessage> arrived = take_arrived()) return arrived;
  while (const std::optional<MessageInfo> info = iprobe_any(kExchangeTag, comm_)) {
    Transfer& transfer = arriving_.emplace_back();
    transfer.from = info->source;
    transfer.bytes.resize(info->bytes);
    transfer.request = irecv(transfer.bytes.data(), static_cast<int>(info->bytes), MPI_BYTE, info->source,
                             kExchangeTag, comm_);
    if (std::optional<ExchangeMessage> arrived = take_arrived()) return arrived;
  }
  return std::nullopt;
}

std::optional<ExchangeMessage> ExchangeMailbox::take_arrived() {
  const auto arrived =
      std::ranges::find_if(arriving_, [](Transfer& transfer) { return test(transfer.request); });
  if (arrived == arriving_.end()) return std::nullopt;
  ExchangeMessage message = ExchangeMessage::parse(std::move(arrived->bytes), arrived->from);
  arriving_.erase(arrived);
  return message;
}

}  // namespace cohort::mpi
