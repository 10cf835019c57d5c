#include "exchange_message.h"

#include <cstring>

namespace cohort::mpi {
namespace {

/// Precedes a worker's blob.
struct ContributionHeader {
  std::int64_t round_kind = 0;
  std::uint64_t bytes = 0;
};

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

std::string to_bytes(const Contribution& contribution) {
  const ContributionHeader header{static_cast<std::int64_t>(contribution.round_kind),
                                  contribution.blob.size()};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  return bytes.append(contribution.blob);
}

std::vector<Contribution> parse_contributions(std::string_view bytes) {
  std::vector<Contribution> contributions;
  while (!bytes.empty()) {
    ContributionHeader header;
    COHORT_CHECK(bytes.size() >= sizeof header);
    std::memcpy(&header, bytes.data(), sizeof header);
    bytes.remove_prefix(sizeof header);
    COHORT_CHECK(bytes.size() >= header.bytes);
    contributions.push_back({static_cast<RoundKind>(header.round_kind), bytes.substr(0, header.bytes)});
    bytes.remove_prefix(header.bytes);
  }
  return contributions;
}

}  // namespace cohort::mpi
