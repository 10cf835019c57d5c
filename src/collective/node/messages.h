// Send and receive between two members of a node: the program's messages, and those of an algorithm that it
// has registered. The sender posts an envelope in its own control block; the receiver finds it there, copies
// the contents itself and marks it as taken. Short ones are copied on sending, so that the sender need not
// wait.
//
// An error of a message, even that it is late, ends that message alone. A sender may give up while its
// receiver copies: then the receiver drops the copy, since the contents may have changed, and goes on to the
// next message.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <cohort/collective/algorithm.h>
#include <cohort/collective/task.h>

#include "collective/task/scratch_pool.h"
#include "endpoint.h"

namespace cohort::node {

/// One member's messages.
class Mailbox {
 public:
  explicit Mailbox(Endpoint& endpoint);

  /// `call` must outlive them. Sends are posted in the order in which they are resumed.
  Task<> send(const CollectiveCall& call);
  Task<> receive(const CollectiveCall& call);

  /// Looks for a reason not to wait any longer. @throws the message's error.
  void check_for_failure(const CollectiveCall& call, const Waiting& waiting);

  /// After an error of the message: whether its receiver may still be copying the contents. Once.
  [[nodiscard]] bool is_still_read(const CollectiveCall& call) { return posted_.erase(&call) > 0; }

  /// Hands over the buffers that receivers may still read when this member has left.
  [[nodiscard]] std::vector<std::shared_ptr<const void>> take_contents();

 private:
  [[nodiscard]] ControlBlock& own() const noexcept {
    return endpoint_.group().control_block(endpoint_.position().rank);
  }
  [[nodiscard]] int local_rank_of(const CollectiveCall& call) const;

  /// An envelope of this member, and the copy of its contents if there is one.
  struct Sending {
    Envelope* envelope = nullptr;
    std::shared_ptr<const Buffer> contents;
  };

  [[nodiscard]] Sending* find_free();
  [[nodiscard]] Sending* add_envelopes();
  [[nodiscard]] MoreEnvelopes* follow(int member, const EnvelopeChain& link) const;
  [[nodiscard]] bool is_for(const Envelope& envelope, const CollectiveCall& receive) const noexcept;
  struct Found {
    Envelope* envelope = nullptr;
    std::uint64_t number = 0;

    bool operator==(const Found&) const = default;
  };

  /// The first message for the call that is there; nothing while one is only looked at for another receive.
  [[nodiscard]] std::optional<Found> find_for(const CollectiveCall& call) const;
  [[nodiscard]] std::optional<Found> look_for(const CollectiveCall& call) const;
  [[nodiscard]] Envelope* take_for(const CollectiveCall& call) const;
  [[nodiscard]] bool take_back(const CollectiveCall& call);
  [[nodiscard]] bool fetch(const CollectiveCall& call, Envelope& envelope) const;
  void copy_contents(const CollectiveCall& call, const Envelope& envelope) const;

  Endpoint& endpoint_;
  std::uint64_t number_ = 0;
  std::deque<Sending> sendings_;  ///< one for each envelope; the first kEnvelopes lie in the control block
  std::vector<std::shared_ptr<const Buffer>> more_envelopes_;
  EnvelopeChain* last_link_;
  std::map<const CollectiveCall*, Envelope*> posted_;  ///< sends that wait for their receiver
};

/// The Peers of a registered algorithm: messages go through the same mailbox as the program's own, with tags
/// that programs cannot use.
class NodePeers final : public Peers {
 public:
  NodePeers(Endpoint& endpoint, Mailbox& mailbox) : endpoint_(endpoint), mailbox_(mailbox) {}

  [[nodiscard]] int rank() const noexcept override { return endpoint_.position().rank; }
  [[nodiscard]] int size() const noexcept override { return endpoint_.position().size; }
  [[nodiscard]] int node_of(int /*member*/) const noexcept override { return 0; }
  [[nodiscard]] Task<> send(int to, std::span<const std::byte> data, int tag) override;
  [[nodiscard]] Task<> receive(int from, std::span<std::byte> into, int tag) override;
  [[nodiscard]] std::shared_ptr<std::byte> scratch(std::size_t bytes) override {
    return scratch_pool_.shared_scratch(bytes);
  }
  /// The scratch memory, for an owner that has to keep it while others may still read it.
  [[nodiscard]] std::vector<std::shared_ptr<const Buffer>> take_scratch() { return scratch_pool_.take(); }

 private:
  [[nodiscard]] CollectiveCall message(CollectiveKind kind, int other, std::size_t bytes, int tag) const;

  Endpoint& endpoint_;
  Mailbox& mailbox_;
  ScratchPool scratch_pool_;
};

}  // namespace cohort::node
