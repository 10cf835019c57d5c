// TFRecord: records of any length, each with checksums of its length and of its bytes. The program interprets
// the bytes.
#pragma once

#include <cstddef>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include <cohort/input/dataset.h>

namespace cohort {

/// One element per record, uint8[length of the record]: a view of the mapped file, without a copy.
/// Files that are compressed as a whole are not read.
/// @throws InvalidArgument without a file. When iterated: Unavailable for a file that cannot be
/// opened; DataLoss naming the byte where a record is truncated or does not match its checksum.
[[nodiscard]] Dataset<Tensor> tf_record_dataset(std::vector<std::string> files);

/// Writes a TFRecord file. One thread at a time.
class TfRecordWriter {
 public:
  /// Replaces an existing file. @throws Unavailable when it cannot be written, InvalidArgument for a pipe.
  explicit TfRecordWriter(std::string path);

  /// @throws Unavailable when the disk is full, for example.
  void write(std::span<const std::byte> record);
  /// The elements of a CPU tensor as they lie in memory.
  void write(const Tensor& record) { write(record.raw()); }

  /// Ends the file, and finds out whether everything has been written. A file without records is empty;
  /// readers refuse it.
  /// @throws Unavailable as write().
  void close();

 private:
  void require_good() const;

  std::string path_;
  std::ofstream stream_;
};

}  // namespace cohort
