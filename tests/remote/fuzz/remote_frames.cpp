// What arrives from a task of the job: any bytes are messages or are refused, and which ones they are does
// not depend on where the stream is cut.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "fuzz_one.h"
#include "remote/frames.h"

namespace cohort::fuzz {
namespace {

using remote::FrameReader;

struct Found {
  std::vector<std::string> messages;
  bool broken = false;
  friend bool operator==(const Found&, const Found&) = default;
};

/// In pieces of half of what is left at first, if `cut`.
Found read(std::string_view input, bool cut) {
  constexpr std::uint64_t kLongestBody = std::uint64_t{1} << 20;
  std::string place;
  bool placed = false;
  FrameReader reader(
      [&](std::uint16_t, std::uint64_t number, std::span<const std::byte>, std::size_t large_bytes) {
        placed = number % 2 == 0;
        if (placed) place.assign(large_bytes, '\0');
        return placed ? std::as_writable_bytes(std::span(place)) : std::span<std::byte>();
      },
      kLongestBody);
  Found found;
  std::size_t shown = cut ? input.size() / 2 : input.size();
  try {
    while (true) {
      const FrameReader::Step step = reader.step(std::as_bytes(std::span(input.substr(0, shown))));
      if (step.bytes > shown) throw std::logic_error("more was taken than there is");
      input.remove_prefix(step.bytes);
      shown -= step.bytes;
      if (step.message) {
        const auto body = reader.message().body;
        found.messages.emplace_back(reinterpret_cast<const char*>(body.data()), body.size());
        if (std::exchange(placed, false)) found.messages.back() += place;
      } else if (step.bytes == 0) {
        if (shown == input.size()) return found;
        shown += std::max<std::size_t>(1, (input.size() - shown) / 2);
      }
    }
  } catch (const remote::BrokenStream&) {
    found.broken = true;
  }
  return found;
}

}  // namespace

void fuzz_one(std::string_view input) {
  if (read(input, true) != read(input, false)) throw std::logic_error("a cut changes the messages");
}

}  // namespace cohort::fuzz
