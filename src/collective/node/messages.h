// Send and receive between two members. The sender posts a parcel in its own seat; the
// receiver finds it there, copies the contents itself and marks it as taken. Short ones
// are copied on sending, so that the sender need not wait.
//
// An error of a message, also a late one, ends that message alone.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "seat.h"
#include "steps.h"

namespace cohort::node {

class Mailbox {
 public:
  explicit Mailbox(Seat& seat) : seat_(seat) {}

  /// `call` must outlive them. Sends are posted in the order in which they are resumed.
  Steps send(const CollectiveCall& call);
  Steps receive(const CollectiveCall& call);

  /// Looks for a reason not to wait any longer. @throws the message's error.
  void look_around(const CollectiveCall& call, const Waiting& waiting);

  /// Copies of contents that their receivers may still want.
  [[nodiscard]] std::vector<std::shared_ptr<const Buffer>> take_contents();

 private:
  [[nodiscard]] int seat_of(const CollectiveCall& call) const;
  [[nodiscard]] Parcel* find_free();
  [[nodiscard]] Parcel* find_for(const CollectiveCall& call);
  void fetch(const CollectiveCall& call, Parcel& parcel);

  Seat& seat_;
  std::uint64_t number_ = 0;
  std::array<std::shared_ptr<const Buffer>, kParcels> contents_;
  std::map<const CollectiveCall*, Parcel*> posted_;  ///< sends that wait for their receiver
};

}  // namespace cohort::node
