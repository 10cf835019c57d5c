// One save of a checkpoint. Workers plan it together, so that each value is written once and each worker
// writes as much as the others; each writes a file with its pieces of the values; then the first one adds
// what makes them a checkpoint. A thread can do the writing while the program goes on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <cohort/checkpoint/checkpoint.h>
#include <cohort/collective/communicator.h>
#include <cohort/device/tensor.h>

#include "checkpoint/format/folder.h"
#include "checkpoint/format/manifest.h"
#include "workers.h"

namespace cohort::checkpoint {

/// A value that workers divide by rows.
struct Divisible {
  std::uint64_t bytes_of_row = 0;
  std::int64_t rows = 1;
};

/// Rows of a value that one worker writes.
struct Part {
  std::size_t value = 0;  ///< its index
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  int worker = 0;
};

/// The parts by value and first row. Values stay whole unless they are larger than a worker's fair share,
/// for other programs read them more easily. No worker has more than twice the share and one row.
[[nodiscard]] std::vector<Part> divide(const std::vector<Divisible>& values, int workers);

/// @throws InvalidArgument for a name that is empty, reserved by the format or not UTF-8.
void require_name(const std::string& name);

/// One save.
class CheckpointWriter {
 public:
  /// Plans the save, and reads what all workers read together. Collective over the workers, as all functions.
  /// `values` outlive copy(), or write() where nothing is copied. `lock` is the first worker's on `folder`,
  /// or null: then write() takes it. The first worker's `metrics` are stored.
  /// @throws as Checkpoint::save.
  CheckpointWriter(const Workers& workers, const std::map<std::string, NamedValue>& values,
                   std::string folder, std::int64_t step, const WriterLock* lock,
                   std::map<std::string, double> metrics);

  /// Copies this worker's pieces to `memory`, which is replaced if it has another size. Afterwards write()
  /// needs the values no more. Not collective.
  void copy(Tensor& memory);

  /// Makes the folder, the files and the checkpoint. @throws as Checkpoint::save.
  void write(const Workers& workers);

 private:
  /// Rows of a value as a tensor in the file of a worker.
  struct PlannedPiece {
    std::string name = {};  ///< the value's
    std::string tensor = {};
    ValueEntry entry = {};  ///< without pieces
    Part part = {};
    std::optional<Tensor> copied = {};
    std::uint32_t checksum = 0;  ///< once it is written

    [[nodiscard]] Shape shape() const { return piece_shape(entry.shape, part.rows); }
    [[nodiscard]] std::size_t bytes() const { return shape().elements() * size_of(entry.dtype); }
  };

  [[nodiscard]] std::string list_values() const;
  void plan(const Workers& workers);
  [[nodiscard]] std::vector<PlannedPiece*> pieces_of(int worker);
  [[nodiscard]] static Tensor rows_of_piece(const PlannedPiece& piece, const Tensor& whole);
  [[nodiscard]] Tensor read(const PlannedPiece& piece) const;
  [[nodiscard]] FileEntry write_file(const std::string& path);
  [[nodiscard]] std::string report(const FileEntry& file, int rank);
  [[nodiscard]] Manifest manifest_of(const std::vector<std::string>& reports);

  const std::map<std::string, NamedValue>* values_;
  std::string folder_;
  std::int64_t step_;
  const WriterLock* lock_;
  std::map<std::string, double> metrics_;
  std::vector<PlannedPiece> pieces_;          ///< of all workers; by value and first row, where all have it
  std::vector<PlannedPiece*> own_;            ///< in the order of the file
  std::string beginning_;                     ///< of the own file
  std::map<std::string, Tensor> aggregates_;  ///< own pieces of values that all workers read together
  std::optional<WriterLock> own_lock_;
  std::optional<UnfinishedFolder> unfinished_;  ///< the first worker's
};

/// A save that a thread writes while the program goes on. The threads of the workers meet on a communicator
/// of their own, so that what they do there has no order among the calls of the program.
///
/// Used by the thread that has the Checkpoint. A save ends on all workers with the same error, if any.
class BackgroundSave {
 public:
  BackgroundSave() = default;
  /// Waits, and logs a failure.
  ~BackgroundSave();
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;

  /// Copies what `writer` writes, and has a thread write it. None is under way. Collective over the workers.
  void start(const Workers& workers, std::unique_ptr<CheckpointWriter> writer);

  /// Until the save has ended. @throws what went wrong, once. Not collective.
  void wait();

 private:
  void make_group(const Workers& workers);

  std::unique_ptr<Communicator> group_;  ///< of the threads; null for one worker
  Tensor memory_;                        ///< for the copy
  std::exception_ptr failure_;           ///< written by the thread
  std::jthread thread_;
};

}  // namespace cohort::checkpoint
