// Registered memory: pages of the program's own that are moved into the node heap, so that the other
// processes of the node read and write them in place, as they do the library's tensors. Addresses stay valid
// and the content is kept; tensors made over the range (`Tensor::wrap`, `from_dlpack`) benefit wherever they
// lie in it.
//
// From the beginning of its registration to the end of the destructor, a range must stay mapped; while it is
// moved into the heap or back, no other thread or call may write to it. Locks and advice on the pages (mlock,
// madvise) are lost, and forked children share them. Memory that another driver has pinned must not be
// registered. Any thread may register.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace cohort {

/// The destructor ends the registration: the range is private memory again, with its content. Finish the
/// Works over it first. If one is still in flight, or memory is short, the pages stay in the heap for the
/// life of the process, with a warning, and remain usable.
class [[nodiscard]] MemoryRegistration {
 public:
  MemoryRegistration(MemoryRegistration&& other) noexcept;
  MemoryRegistration& operator=(MemoryRegistration&& other) noexcept;
  ~MemoryRegistration();

  /// Ends the registration without a copy of the content, where the caller unmaps the range next.
  void end_before_unmapping() noexcept;

  /// Whether the range lies in the node heap now.
  [[nodiscard]] bool in_node_heap() const noexcept { return why_private_.empty(); }

  /// Why the range was not moved; empty when it was. Collectives accept it all the same.
  [[nodiscard]] const std::string& why_private() const noexcept { return why_private_; }

 private:
  friend MemoryRegistration register_memory(std::span<std::byte> pages);
  explicit MemoryRegistration(std::span<std::byte> pages);
  void end() noexcept;

  std::span<std::byte> pages_;
  std::string why_private_;
};

/// Moves whole pages of ordinary memory into the node heap. Both copies exist during the move. Memory that
/// cannot be moved stays private: mapped files, shared and huge-page mappings, the stack, and everything when
/// there is no heap or no room in it.
/// @throws InvalidArgument when `pages` is empty, does not begin and end at a page, is not mapped or not
/// writable throughout, overlaps another registration, or is the heap's own.
[[nodiscard]] MemoryRegistration register_memory(std::span<std::byte> pages);

}  // namespace cohort
