// What a collective is for, in words of the program: `assigns w`. All members must agree on it, as on dtypes
// and sizes: two sums of the same shape may belong to different variables. A call carries the purpose's
// fingerprint; its words are put together only once a difference has been found, or nobody comes.
//
// A purpose lives on the caller's stack, longer than the CommunicationScope that gives it to the calls of a
// block:
//
//     PurposeOf purpose(fingerprint, Caller::kReplica, device,
//                       [&] { return PurposeWords{fmt::format("assigns {}", variable.name())}; });
//     const CommunicationScope scope(communicator, options, purpose);
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <cohort/device/device.h>

namespace cohort {

/// As what messages name a member.
enum class Caller : std::uint8_t { kMember, kReplica, kWorker };

struct PurposeWords {
  std::string action;        ///< follows the name of the member, for example `assigns w`
  std::string details = {};  ///< tell two calls apart whose actions read alike, for example `variable 3`
};

/// What a member says of its call, where members differ.
struct CallWords {
  Caller caller = Caller::kMember;
  std::string device = {};  ///< where a replica runs; empty if that is not known
  PurposeWords purpose = {};
};

class CallPurpose {
 public:
  CallPurpose(const CallPurpose&) = delete;
  CallPurpose& operator=(const CallPurpose&) = delete;

  [[nodiscard]] Caller caller() const noexcept { return caller_; }

  /// Of this purpose alone.
  [[nodiscard]] std::uint64_t own_fingerprint() const noexcept { return own_fingerprint_; }

  /// Of this purpose and of those in whose scopes it is: what the members of a call must agree on.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return fingerprint_; }

  /// The words of the outermost purpose, with those of the inner ones as details.
  [[nodiscard]] virtual CallWords words() const;

  /// The same in words, for calls that outlive the purpose; put together once for all of them, by the thread
  /// that makes the calls.
  [[nodiscard]] virtual std::shared_ptr<const CallPurpose> spoken() const;

 protected:
  /// `device`: where a replica runs.
  CallPurpose(std::uint64_t fingerprint, Caller caller, Device device = {}) noexcept
      : own_fingerprint_(fingerprint), fingerprint_(fingerprint), device_(device), caller_(caller) {}
  virtual ~CallPurpose() = default;

  [[nodiscard]] virtual PurposeWords own_words() const = 0;

 private:
  friend class CommunicationScope;

  std::uint64_t own_fingerprint_;
  std::uint64_t fingerprint_;
  const CallPurpose* outer_ = nullptr;
  mutable std::shared_ptr<const CallPurpose> spoken_;
  Device device_;
  Caller caller_;
};

/// A purpose whose words come from `Words`, a function that returns PurposeWords.
template <class Words>
class PurposeOf final : public CallPurpose {
 public:
  PurposeOf(std::uint64_t fingerprint, Caller caller, Device device, Words words)
      : CallPurpose(fingerprint, caller, device), words_(std::move(words)) {}
  PurposeOf(std::uint64_t fingerprint, Caller caller, Words words)
      : CallPurpose(fingerprint, caller), words_(std::move(words)) {}

 protected:
  [[nodiscard]] PurposeWords own_words() const override { return words_(); }

 private:
  Words words_;
};

/// A call's words as one line of bounded length, in which they reach other members; and back. Empty for none.
[[nodiscard]] std::string to_line(const CallWords& words);
[[nodiscard]] CallWords from_line(std::string_view line);

/// As much of a text as messages show of it.
[[nodiscard]] std::string shortened(std::string text, std::size_t limit = 160);

}  // namespace cohort
