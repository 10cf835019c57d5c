// A change of a variable as it travels to the server that keeps it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <cohort/device/tensor.h>
#include <cohort/server/detail/codec.h>
#include <cohort/value/detail/variable_state.h>

#include "optimizers_on_server.h"
#include "server/store/store.h"
#include "value_in_peer.h"

namespace cohort::server {

enum class WriteKind : std::uint8_t {
  kAssign,
  kAssignAdd,
  kAssignSub,
  kScatterAdd,
  kScatterSub,
  kScatterMul,
  kScatterDiv,
  kScatterMin,
  kScatterMax,
  kScatterUpdate,
  kOptimize,      ///< one step of an optimizer, with a gradient of the variable's shape
  kOptimizeRows,  ///< the same with the gradient of some rows: the others, and their slots, stay as they are
  kAssignSlot,    ///< what is kept for optimizers
};

/// The kind of what `assign` and the scatter functions do, by the function's name.
[[nodiscard]] WriteKind kind_of(std::string_view function);

struct Write {
  VariableIndex variable = 0;
  WriteKind kind = WriteKind::kAssign;
  Tensor value = {};    ///< of the variable, its gradient, or of rows
  Tensor indices = {};  ///< of the rows, int64; for kinds of rows alone
  OptimizerRecipe optimizer = {};
  std::uint64_t read_version = kNotRead;      ///< of the variable, when the gradient's task read it last
  std::optional<ValueInPeer> elsewhere = {};  ///< instead of `value`, at the server that it was sent to
  bool in_message = false;                    ///< `value` is a view of the message that has brought it
  std::uint8_t slot = 0;                      ///< for kAssignSlot; or VariableState::kSteps

  static constexpr std::uint64_t kNotRead = ~std::uint64_t{0};
};

/// How large values travel: where they stand in the message; at its end, where the sender need not copy
/// them; or, to a server of this node, as the place where they lie.
enum class Carriage : std::uint8_t { kInMessage, kAtEnd, kByAddress };

/// Of a request for a variable that the store does not have.
struct NoVariable {};

[[nodiscard]] bool changes_rows(WriteKind kind) noexcept;

/// A value that travels at the end is left to the caller.
void encode(Encoder& encoder, const Write& write, Carriage carriage = Carriage::kInMessage);
/// Of the values, that at the end is not copied: the bytes that `decoder` reads outlive the write, or
/// `fetch_value` copies it.
[[nodiscard]] Write decode_write(Decoder& decoder, const Sender& sender);

/// Before a value that lies elsewhere is read: whoever sent the write says how large it is.
/// @throws InvalidArgument for a write that the variable cannot take; NoVariable.
void require_fitting(const Write& write, const Store& store);

/// Has the write own its value, which may lie elsewhere or in the message. @throws OutOfReach.
void fetch_value(Write& write);

/// Part of the store's open commit. @throws InvalidArgument for a write that the variable cannot take;
/// OutOfReach; NoVariable.
void apply(const Write& write, Store& store, OptimizersOnServer& optimizers);

}  // namespace cohort::server
