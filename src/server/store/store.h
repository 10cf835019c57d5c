// The memory of a parameter server: its variables, in two copies each, and which commits it has made. It is
// one memory file. Processes of the same node map it and read variables out of it (StoreReader). If others
// keep the file open, it outlives the server's process: a server that is started again goes on from it.
//
// An update reads the current copy and writes the other one, so that a reader never sees half of it; then the
// copies change places. A commit changes several variables: all their new values are written first, then the
// commit is recorded, then the copies change places. A process that ends at any point in between leaves
// either all of a commit or none of it.
//
// One thread uses the Store, and writes. Nothing here is a collective, and nothing waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <cohort/device/dtype.h>
#include <cohort/device/shape.h>
#include <cohort/device/tensor.h>

namespace cohort::server {

/// The number of a variable among those of its server.
using VariableIndex = std::uint32_t;

/// One execution of a function by a worker: `number` counts from 1 within one incarnation.
struct Execution {
  std::uint64_t incarnation = 0;
  std::uint64_t number = 0;

  friend bool operator==(const Execution&, const Execution&) = default;
  // NOLINTNEXTLINE(modernize-use-nullptr): the check takes the default's comparison with 0 for a pointer
  friend auto operator<=>(const Execution&, const Execution&) = default;
};

/// A commit that was made, and is remembered until its worker says that nobody will ask for it.
struct CommitRecord {
  Execution execution = {};
  std::vector<std::byte> result = {};  ///< what the function returned, encoded
};

/// The memory as its server has it.
class Store {
 public:
  /// Over `descriptor`, a memory file (memfd) whose size may be 0: then the store is new. Otherwise it goes
  /// on from what is there: a recorded commit is completed, an unrecorded one is undone. The descriptor is
  /// duplicated.
  /// @throws DataLoss when the file is not a store of this version; Unavailable when memory is short.
  explicit Store(int descriptor);

  /// With a memory file of its own.
  Store();
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  [[nodiscard]] int descriptor() const noexcept;

  /// Drawn at random when the store was new: a store that was lost and made again has another.
  [[nodiscard]] std::uint64_t identity() const noexcept;

  /// How many variables there are; those of a store that goes on from another process have their old numbers.
  [[nodiscard]] VariableIndex size() const noexcept;
  [[nodiscard]] std::optional<VariableIndex> find(std::string_view name) const;

  /// A new variable of zeros. `slots` more tensors of its shape and dtype lie beside it and change in the
  /// same commits. A name is unique in the store. Within a commit that is abandoned, nothing was made: stores
  /// that make the same commits give their variables the same numbers.
  /// @throws Unavailable when memory is short, naming the variable and its size; InvalidArgument for a name
  /// that is taken.
  VariableIndex create(std::string_view name, const Shape& shape, DType dtype, std::size_t slots = 0);

  /// Adds slots of zeros to a variable that has fewer; nothing where it has as many. At most 17 are possible.
  /// @throws like `create`.
  void require_slots(VariableIndex variable, std::size_t slots);

  [[nodiscard]] const std::string& name(VariableIndex variable) const;
  [[nodiscard]] std::size_t slots(VariableIndex variable) const;

  /// How often the variable was changed.
  [[nodiscard]] std::uint64_t version(VariableIndex variable) const;

  /// The current value, and that of a slot, as views of the memory: valid until the next commit.
  [[nodiscard]] Tensor value(VariableIndex variable) const;
  [[nodiscard]] Tensor slot(VariableIndex variable, std::size_t slot) const;

  // A commit: `begin`, any number of changes, `commit` or `abandon`.

  void begin();

  /// The new values of the variable and its slots, to be overwritten as a whole. `old` and `fresh` are
  /// different memory; the contents of `fresh` are unspecified. The second change of a variable in a commit
  /// starts from the result of the first: then `old` and `fresh` are the same memory.
  struct Change {
    Tensor old_value;
    Tensor fresh_value;
    std::vector<Tensor> old_slots;
    std::vector<Tensor> fresh_slots;
  };
  [[nodiscard]] Change overwrite(VariableIndex variable);

  /// To change the given rows alone, in place: `fresh_*` are equal to `old_*` in all rows. Costs as many
  /// bytes as the rows of this change and of the one before it.
  [[nodiscard]] Change change_rows(VariableIndex variable, std::span<const std::int64_t> rows);

  /// Makes the changes visible. With an execution, remembers that it was committed, and `result`. When it
  /// throws, nothing was committed, and the commit goes on: call `abandon`, or `commit` again.
  /// @throws InvalidArgument when the execution was committed before;
  /// Unavailable when memory is short.
  void commit(std::optional<Execution> execution = {}, std::span<const std::byte> result = {});
  void abandon();

  /// Whether the execution was committed, and with which result.
  [[nodiscard]] std::optional<CommitRecord> find_commit(const Execution& execution) const;

  /// All that are remembered of an incarnation, by number.
  [[nodiscard]] std::vector<CommitRecord> commits_of(std::uint64_t incarnation) const;

  /// Forgets the commits of an incarnation up to `number`.
  void forget(std::uint64_t incarnation, std::uint64_t number);

  /// Remembers that `incarnation` counts as lost, also for a server that is started again. It is the server
  /// that takes nothing more from it: what it has prepared may still have to be committed.
  void fence(std::uint64_t incarnation);
  [[nodiscard]] bool is_fenced(std::uint64_t incarnation) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// From `old` to `fresh` of a Change.
inline void copy_if_apart(const Tensor& from, const Tensor& to) {
  if (from.data() != to.data()) to.copy_from(from);
}

/// A commit of a store that is being made: abandoned at the end of its life, unless `make` was called.
class OpenCommit {
 public:
  explicit OpenCommit(Store& store) : store_(store) { store.begin(); }
  ~OpenCommit() {
    if (open_) store_.abandon();
  }
  OpenCommit(const OpenCommit&) = delete;
  OpenCommit& operator=(const OpenCommit&) = delete;

  void make(std::optional<Execution> execution, std::span<const std::byte> result) {
    store_.commit(execution, result);
    open_ = false;
  }

 private:
  Store& store_;
  bool open_ = true;
};

/// Reads variables straight out of the memory of a parameter server of this node, while the server changes
/// them. Thread-safe.
class StoreReader {
 public:
  /// Maps the store's memory file for reading. @throws DataLoss when it is not a store of this version.
  explicit StoreReader(int descriptor);
  ~StoreReader();
  StoreReader(const StoreReader&) = delete;
  StoreReader& operator=(const StoreReader&) = delete;

  /// The number of variables.
  [[nodiscard]] std::uint64_t size() const;

  /// Copies the current value to `destination`, which has the variable's size. Returns the version that was
  /// read; nothing if the server changed it so often meanwhile that another way must be taken.
  [[nodiscard]] std::optional<std::uint64_t> read(VariableIndex variable,
                                                  std::span<std::byte> destination) const;

  /// The same for rows: row `rows[i]` goes to place `i`. The rows lie within the variable.
  [[nodiscard]] std::optional<std::uint64_t> read_rows(VariableIndex variable,
                                                       std::span<const std::int64_t> rows,
                                                       std::span<std::byte> destination) const;

  [[nodiscard]] std::uint64_t version(VariableIndex variable) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::server
