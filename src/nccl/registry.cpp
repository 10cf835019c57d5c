#include "registry.h"

#include <functional>
#include <utility>

#include <cohort/base/fingerprint.h>
#include <cohort/base/log.h>
#include <cohort/cuda/current_device.h>
#include <cohort/cuda/stream.h>

namespace cohort::nccl {
namespace {

/// What a member's NCCL does with memory; a group does what all of its members do.
enum class Way : std::uint8_t { kNothing, kRegistered, kWindows };

constexpr Way kOwnWay = calls::kHasWindows  ? Way::kWindows
                        : calls::kHasMemory ? Way::kRegistered
                                            : Way::kNothing;

}  // namespace

/// Given back with its last owner, who waits for what was queued on the GPU: its work is there or ordered
/// with it, and this memory goes at once, not in the stream's order.
class Registry::Memory {
 public:
  Memory(Device device, std::size_t bytes) : device_(device), bytes_(bytes) {
    const cuda::CurrentDevice current(device);
    data_ = static_cast<std::byte*>(calls::mem_alloc(bytes));
  }
  ~Memory() {
    cuda::compute_stream(device_).drain();
    const cuda::CurrentDevice current(device_);
    calls::mem_free(data_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  Device device_;
  std::size_t bytes_;
  std::byte* data_ = nullptr;
};

std::shared_ptr<const Buffer> Registry::allocate(std::size_t bytes, const Exchange& exchange) {
  // The way, and for each piece whether it is of no more use.
  std::vector<std::uint8_t> agreed{static_cast<std::uint8_t>(kOwnWay)};
  for (const Piece& piece : pieces_) agreed.push_back(piece.memory.use_count() == 1 ? 1 : 0);
  exchange.least(agreed, Fingerprint().add(bytes).value());
  give_back(std::span(agreed).subspan(1));
  const auto way = static_cast<Way>(agreed.front());
  if (way == Way::kNothing || bytes == 0) return cohort::allocate(bytes, device_);

  const auto memory = std::make_shared<Memory>(device_, bytes);
  Piece piece{.number = pieces_made_++, .memory = memory};
  if (way == Way::kWindows) piece.window = open_window(*memory, exchange);
  if (piece.window == nullptr) piece.registration = comm_.register_memory(memory->data(), bytes);
  if (piece.number == 0) {
    log::debug("memory for NCCL's collectives on {} is registered{}", to_string(device_),
               piece.window != nullptr ? " as symmetric windows" : ", without symmetric windows");
  }
  pieces_.push_back(std::move(piece));
  return std::make_shared<const Buffer>(memory->data(), bytes, device_, memory);
}

void Registry::give_back(std::span<const std::uint8_t> is_unused) {
  std::vector<Piece> kept;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (is_unused[i] == 0)
      kept.push_back(std::move(pieces_[i]));
    else
      deregister(pieces_[i]);
  }
  pieces_ = std::move(kept);
}

/// Null on all members where one has got none.
calls::Window Registry::open_window(const Memory& memory, const Exchange& exchange) {
  calls::Window window =
      comm_.open_window(memory.data(), memory.bytes(), Deadline::after(exchange.timeout), exchange.look);
  std::vector<std::uint8_t> all_have_one{window != nullptr ? std::uint8_t{1} : std::uint8_t{0}};
  exchange.least(all_have_one, 0);
  if (window == nullptr || all_have_one.front() == 1) return window;
  comm_.close_window(window);
  return nullptr;
}

std::uint64_t Registry::place_of(const std::byte* data) const noexcept {
  const std::less<const std::byte*> before;
  for (const Piece& piece : pieces_) {
    const std::byte* const begin = piece.memory->data();
    if (before(data, begin) || !before(data, begin + piece.memory->bytes())) continue;
    return Fingerprint().add(piece.number).add(static_cast<std::uint64_t>(data - begin)).value();
  }
  return 0;
}

void Registry::deregister(const Piece& piece) noexcept {
  if (piece.window != nullptr)
    comm_.close_window(piece.window);
  else
    comm_.deregister(piece.registration);
}

void Registry::clear() noexcept {
  for (const Piece& piece : pieces_) deregister(piece);
  pieces_.clear();
}

}  // namespace cohort::nccl
