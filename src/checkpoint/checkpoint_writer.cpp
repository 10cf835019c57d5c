#include "checkpoint_writer.h"

#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <cohort/base/error.h>

#include "input/files/crc32c.h"

#include "division.h"
#include "file.h"
#include "folder.h"
#include "manifest.h"
#include "safetensors.h"

namespace cohort::checkpoint {
namespace {

/// Rows of a value as a tensor in the file of a worker.
struct PlannedPiece {
  std::string name = {};  ///< the value's
  std::string tensor = {};
  ValueEntry entry = {};  ///< without pieces
  Part part = {};
  std::uint32_t checksum = 0;  ///< once it is written
};

constexpr std::string_view kOfRows = ".rows-";

std::string tensor_name(const std::string& name, const Shape& shape, const Part& part) {
  if (part.rows == rows_of(shape)) return name;
  return fmt::format("{}{}{}-{}", name, kOfRows, part.first_row, part.first_row + part.rows - 1);
}

/// All workers plan the same; but the first one adds what it alone has, which others need not know.
std::vector<PlannedPiece> plan(const Workers& workers, const std::map<std::string, NamedValue>& values) {
  std::vector<Divisible> divisible;
  std::vector<PlannedPiece> shared;
  std::vector<PlannedPiece> pieces;
  for (const auto& [name, value] : values) {
    const ValueEntry entry{value.dtype, value.shape(), {}};
    const std::int64_t rows = rows_of(entry.shape);
    if (value.is_everywhere) {
      divisible.push_back({piece_shape(entry.shape, 1).elements() * size_of(entry.dtype), rows});
      shared.push_back({name, {}, entry});
    } else if (workers.is_first()) {
      pieces.push_back({name, name, entry, {.rows = rows}});
    }
  }
  for (const Part& part : divide(divisible, workers.size())) {
    PlannedPiece piece = shared[part.value];
    piece.part = part;
    piece.tensor = tensor_name(piece.name, piece.entry.shape, part);
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

std::span<const std::byte> bytes_of(const Tensor& host, const PlannedPiece& piece) {
  const std::size_t row = piece_shape(piece.entry.shape, 1).elements() * size_of(piece.entry.dtype);
  return std::span<const std::byte>(host.raw())
      .subspan(row * static_cast<std::size_t>(piece.part.first_row),
               row * static_cast<std::size_t>(piece.part.rows));
}

std::string file_name(int worker, int workers) {
  return fmt::format("values-{:05}-of-{:05}.safetensors", worker, workers);
}

/// The values of this worker's pieces. Those that all workers read together are read by all, in one order.
class Contents {
 public:
  Contents(const std::map<std::string, NamedValue>& values, const std::set<std::string>& own)
      : values_(values) {
    for (const auto& [name, value] : values) {
      if (!value.is_collective) continue;
      const Tensor aggregate = value.read();
      if (own.contains(name)) aggregates_.emplace(name, aggregate.on_host());
    }
  }

  [[nodiscard]] Tensor on_host(const std::string& name) const {
    const auto aggregate = aggregates_.find(name);
    return aggregate != aggregates_.end() ? aggregate->second : values_.at(name).read().on_host();
  }

 private:
  const std::map<std::string, NamedValue>& values_;
  std::map<std::string, Tensor> aggregates_;
};

/// Writes a file with these pieces, and notes their checksums.
FileEntry write_file(const std::string& path, const std::vector<PlannedPiece*>& pieces,
                     const Contents& contents) {
  std::vector<NamedTensor> tensors;
  std::map<std::string_view, PlannedPiece*> by_tensor;
  for (PlannedPiece* piece : pieces) {
    tensors.push_back({piece->tensor, piece->entry.dtype, piece_shape(piece->entry.shape, piece->part.rows)});
    by_tensor.emplace(piece->tensor, piece);
  }
  const std::string beginning = begin_safetensors(tensors, {});
  OutputFile file(path);
  file.write(std::as_bytes(std::span(beginning)));
  for (const NamedTensor& tensor : tensors) {
    PlannedPiece& piece = *by_tensor.at(tensor.name);
    const Tensor host = contents.on_host(piece.name);
    const auto bytes = bytes_of(host, piece);
    piece.checksum = detail::crc32c(bytes);
    file.write(bytes);
  }
  file.finish();
  return {file.size(), file.checksum()};
}

/// What a worker tells the first one of its file: size, checksum, and the checksums of its pieces.
std::string report_of(const FileEntry& file, const std::vector<PlannedPiece*>& pieces) {
  std::string text = fmt::format("{} {}", file.size, file.checksum);
  for (const PlannedPiece* piece : pieces) text += fmt::format(" {}", piece->checksum);
  return text;
}

FileEntry take_report(const std::string& report, const std::vector<PlannedPiece*>& pieces) {
  std::istringstream text(report);
  FileEntry file;
  text >> file.size >> file.checksum;
  for (PlannedPiece* piece : pieces) text >> piece->checksum;
  COHORT_CHECK(!text.fail());
  return file;
}

std::vector<PlannedPiece*> pieces_of(int worker, std::vector<PlannedPiece>& pieces) {
  std::vector<PlannedPiece*> own;
  for (PlannedPiece& piece : pieces)
    if (piece.part.worker == worker) own.push_back(&piece);
  return own;
}

Manifest manifest_of(std::int64_t step, const std::vector<std::string>& reports,
                     std::vector<PlannedPiece>& pieces) {
  const auto workers = static_cast<int>(reports.size());
  Manifest manifest{.step = step, .workers = workers};
  for (int worker = 0; worker < workers; ++worker) {
    const auto own = pieces_of(worker, pieces);
    if (!own.empty())
      manifest.files[file_name(worker, workers)] =
          take_report(reports[static_cast<std::size_t>(worker)], own);
  }
  // Pieces of a value were planned in the order of their rows.
  for (const PlannedPiece& piece : pieces) {
    ValueEntry& entry = manifest.values.try_emplace(piece.name, piece.entry).first->second;
    entry.pieces.push_back({file_name(piece.part.worker, workers), piece.tensor, piece.part.first_row,
                            piece.part.rows, piece.checksum});
  }
  return manifest;
}

}  // namespace

void require_name(const std::string& name) {
  if (name.empty()) throw InvalidArgument("values of a checkpoint need names");
  if (name.find(kOfRows) != std::string::npos)
    throw InvalidArgument("a value of a checkpoint cannot be '{}': '{}' is for parts of values", name,
                          kOfRows);
  std::vector<NamedTensor> tensors{{name, DType::kInt8, {0}}};
  static_cast<void>(begin_safetensors(tensors, {}));
}

void write_checkpoint(const Workers& workers, const std::map<std::string, NamedValue>& values,
                      const std::string& folder, std::int64_t step, const WriterLock* lock,
                      const std::map<std::string, double>& metrics) {
  std::optional<WriterLock> own_lock;
  std::optional<UnfinishedFolder> unfinished;
  workers.first_does([&] {
    if (lock == nullptr) own_lock.emplace(folder);
    unfinished.emplace(folder, step);
  });
  std::vector<PlannedPiece> pieces = plan(workers, values);
  const std::vector<PlannedPiece*> own = pieces_of(workers.rank(), pieces);
  std::set<std::string> own_names;
  for (const PlannedPiece* piece : own) own_names.insert(piece->name);

  const Contents contents(values, own_names);
  const auto reports = workers.together([&] {
    if (own.empty()) return std::string();
    const std::string name = file_name(workers.rank(), workers.size());
    return report_of(write_file(unfinished_path(folder, step) + "/" + name, own, contents), own);
  });
  workers.first_does([&] {
    Manifest manifest = manifest_of(step, reports, pieces);
    manifest.metrics = metrics;
    unfinished->publish(std::move(manifest));
  });
}

}  // namespace cohort::checkpoint
