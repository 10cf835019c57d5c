#include "exchange_mailbox.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

namespace cohort::mpi {
namespace {

constexpr int kExchangeTag = 1;

}  // namespace

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
