#include "checkpoint_writer.h"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <future>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/base/log.h>

#include "base/crc32c.h"
#include "base/json.h"
#include "base/quiet_thread.h"
#include "checkpoint/format/file.h"
#include "checkpoint/format/safetensors.h"

namespace cohort::checkpoint {
namespace {

std::uint64_t bytes_of(const Divisible& value) {
  return value.bytes_of_row * static_cast<std::uint64_t>(value.rows);
}

constexpr std::string_view kOfRows = ".rows-";

std::string tensor_name(const std::string& name, const Shape& shape, const Part& part) {
  if (part.rows == rows_of(shape)) return name;
  return fmt::format("{}{}{}-{}", name, kOfRows, part.first_row, part.first_row + part.rows - 1);
}

std::string file_name(int worker, int workers) {
  return fmt::format("values-{:05}-of-{:05}.safetensors", worker, workers);
}

/// Where the program's threads need all cores, this one has what they leave.
void go_behind_the_program() {
  constexpr int kLowest = 19;
  // Of this thread, on Linux. If it is refused, steps are slower.
  ::setpriority(PRIO_PROCESS, 0, std::min(::getpriority(PRIO_PROCESS, 0) + kLowest, kLowest));
}

}  // namespace

std::vector<Part> divide(const std::vector<Divisible>& values, int workers) {
  const auto count_of_workers = static_cast<std::uint64_t>(workers);
  std::uint64_t total = 0;
  for (const Divisible& value : values) total += bytes_of(value);
  const std::uint64_t share = std::max<std::uint64_t>((total + count_of_workers - 1) / count_of_workers, 1);

  std::vector<Part> parts;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Divisible& value = values[i];
    // An empty value has one part, too, so that it is found in a file.
    const std::uint64_t pieces = std::max<std::uint64_t>((bytes_of(value) + share - 1) / share, 1);
    const auto count =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(pieces), 1, std::max<std::int64_t>(value.rows, 1));
    for (std::int64_t n = 0, row = 0; n < count; ++n) {
      const std::int64_t rows = value.rows / count + (n < value.rows % count ? 1 : 0);
      parts.push_back({i, row, rows, 0});
      row += rows;
    }
  }

  // The largest first, each to the worker that has the least: Graham's rule, at most 4/3 of the optimum.
  const auto bytes_of_part = [&](const Part& part) {
    return values[part.value].bytes_of_row * static_cast<std::uint64_t>(part.rows);
  };
  std::vector<std::uint64_t> load(static_cast<std::size_t>(workers));
  std::vector<Part*> by_size;
  by_size.reserve(parts.size());
  for (Part& part : parts) by_size.push_back(&part);
  std::ranges::stable_sort(by_size, std::ranges::greater(),
                           [&](const Part* part) { return bytes_of_part(*part); });
  for (Part* part : by_size) {
    const auto least = std::ranges::min_element(load);
    *least += bytes_of_part(*part);
    part->worker = static_cast<int>(least - load.begin());
  }
  return parts;
}

void require_name(const std::string& name) {
  if (name.empty()) throw InvalidArgument("values of a checkpoint need names");
  if (name.find(kOfRows) != std::string::npos)
    throw InvalidArgument("a value of a checkpoint cannot be '{}': '{}' is for parts of values", name,
                          kOfRows);
  std::vector<NamedTensor> tensors{{name, DType::kInt8, {0}}};
  static_cast<void>(begin_safetensors(tensors, {}));
}

CheckpointWriter::CheckpointWriter(const Workers& workers, const std::map<std::string, NamedValue>& values,
                                   std::string folder, std::int64_t step, const WriterLock* lock,
                                   std::map<std::string, double> metrics)
    : values_(&values), folder_(std::move(folder)), step_(step), lock_(lock), metrics_(std::move(metrics)) {
  const auto list_and_plan = [&] {
    plan(workers);
    return workers.size() == 1 ? std::string() : list_values();
  };
  workers.agree(list_and_plan, "the values of the checkpoint");
  // All workers read these together, in one order, so that it is no part of what each does alone.
  for (const auto& [name, value] : values) {
    if (!value.is_collective) continue;
    const Tensor aggregate = value.read();
    for (const PlannedPiece* piece : own_)
      if (piece->name == name) aggregates_.insert_or_assign(piece->tensor, rows_of_piece(*piece, aggregate));
  }
}

std::string CheckpointWriter::list_values() const {
  std::string list = fmt::format("step {}\n", step_);
  for (const auto& [name, value] : *values_)
    list += fmt::format("'{}' {}{}\n", name, to_string(value.dtype),
                        value.is_everywhere ? to_string(value.shape()) : "");
  return list;
}

/// All workers plan the same; but the first one adds what it alone has, which others need not know.
void CheckpointWriter::plan(const Workers& workers) {
  std::vector<Divisible> divisible;
  std::vector<PlannedPiece> shared;
  for (const auto& [name, value] : *values_) {
    const ValueEntry entry{value.dtype, value.shape(), {}};
    const std::int64_t rows = rows_of(entry.shape);
    if (value.is_everywhere) {
      divisible.push_back({piece_shape(entry.shape, 1).elements() * size_of(entry.dtype), rows});
      shared.push_back({name, {}, entry});
    } else if (workers.is_first()) {
      pieces_.push_back({name, name, entry, {.rows = rows}});
    }
  }
  const std::vector<Part> parts = divide(divisible, workers.size());
  pieces_.reserve(pieces_.size() + parts.size());
  for (const Part& part : parts) {
    PlannedPiece piece = shared[part.value];
    piece.part = part;
    piece.tensor = tensor_name(piece.name, piece.entry.shape, part);
    pieces_.push_back(std::move(piece));
  }
  own_ = pieces_of(workers.rank());
  std::vector<NamedTensor> tensors;
  tensors.reserve(own_.size());
  std::unordered_map<std::string_view, PlannedPiece*> by_tensor;
  for (PlannedPiece* piece : own_) {
    tensors.push_back({piece->tensor, piece->entry.dtype, piece->shape()});
    by_tensor.emplace(piece->tensor, piece);
  }
  beginning_ = begin_safetensors(tensors, {});
  std::ranges::transform(tensors, own_.begin(),
                         [&](const NamedTensor& tensor) { return by_tensor.at(tensor.name); });
}

std::vector<CheckpointWriter::PlannedPiece*> CheckpointWriter::pieces_of(int worker) {
  std::vector<PlannedPiece*> pieces;
  for (PlannedPiece& piece : pieces_)
    if (piece.part.worker == worker) pieces.push_back(&piece);
  return pieces;
}

/// The rest of the value is not kept.
Tensor CheckpointWriter::rows_of_piece(const PlannedPiece& piece, const Tensor& whole) {
  if (piece.part.rows == rows_of(piece.entry.shape)) return whole;
  return whole.rows(piece.part.first_row, piece.part.first_row + piece.part.rows).clone();
}

Tensor CheckpointWriter::read(const PlannedPiece& piece) const {
  const auto aggregate = aggregates_.find(piece.tensor);
  if (aggregate != aggregates_.end()) return aggregate->second.on_host();
  const Tensor whole = values_->at(piece.name).read();
  if (piece.part.rows == rows_of(piece.entry.shape)) return whole.on_host();
  return whole.rows(piece.part.first_row, piece.part.first_row + piece.part.rows).on_host();
}

void CheckpointWriter::copy(Tensor& memory) {
  std::size_t bytes = 0;
  for (const PlannedPiece* piece : own_) bytes += piece->bytes();
  if (memory.bytes() != bytes) {
    memory = Tensor();  // never two copies
    memory = Tensor::uninitialized({static_cast<std::int64_t>(bytes)}, DType::kUInt8);
  }
  std::size_t offset = 0;
  for (PlannedPiece* piece : own_) {
    piece->copied = Tensor::wrap(memory.buffer(), offset, piece->shape(), piece->entry.dtype);
    piece->copied->copy_from(read(*piece));
    offset += piece->bytes();
  }
  aggregates_.clear();
}

void CheckpointWriter::write(const Workers& workers) {
  workers.first_does([&] {
    if (lock_ == nullptr) own_lock_.emplace(folder_);
    unfinished_.emplace(folder_, step_);
  });
  const auto reports = workers.together([&] {
    if (own_.empty()) return std::string();
    const std::string name = file_name(workers.rank(), workers.size());
    return report(write_file(unfinished_path(folder_, step_) + "/" + name), workers.rank());
  });
  workers.first_does([&] { unfinished_->publish(manifest_of(reports)); });
}

/// Notes the checksums of the pieces. They are taken of parts that then are in the cache when they are
/// written; small pieces are written together.
FileEntry CheckpointWriter::write_file(const std::string& path) {
  constexpr std::size_t kPartBytes = std::size_t{256} << 10;
  OutputFile file(path);
  std::vector<std::byte> gathered;
  gathered.reserve(kPartBytes);
  const auto write_gathered = [&] {
    file.write(gathered);
    gathered.clear();
  };
  file.write(std::as_bytes(std::span(beginning_)));
  for (PlannedPiece* piece : own_) {
    const Tensor content = piece->copied ? *piece->copied : read(*piece);
    for (std::span<const std::byte> rest = content.raw(); !rest.empty();) {
      const auto part = rest.first(std::min(kPartBytes, rest.size()));
      rest = rest.subspan(part.size());
      piece->checksum = detail::crc32c(part, piece->checksum);
      if (gathered.size() + part.size() > kPartBytes) write_gathered();
      if (part.size() == kPartBytes)
        file.write(part);
      else
        gathered.insert(gathered.end(), part.begin(), part.end());
    }
  }
  write_gathered();
  file.finish();
  return {file.size(), file.checksum()};
}

/// What a worker tells the first one of its file: size, checksum, and the checksums of its pieces.
std::string CheckpointWriter::report(const FileEntry& file, int rank) {
  std::string text = fmt::format("{} {}", file.size, file.checksum);
  for (const PlannedPiece* piece : pieces_of(rank)) {
    text += ' ';
    append_number(text, std::int64_t{piece->checksum});
  }
  return text;
}

Manifest CheckpointWriter::manifest_of(const std::vector<std::string>& reports) {
  const auto workers = static_cast<int>(reports.size());
  Manifest manifest{.step = step_, .workers = workers, .metrics = metrics_};
  std::vector<std::string> names;
  for (int worker = 0; worker < workers; ++worker) {
    names.push_back(file_name(worker, workers));
    const auto pieces = pieces_of(worker);
    if (pieces.empty()) continue;
    const std::string& report = reports[static_cast<std::size_t>(worker)];
    const char* at = report.data();
    const char* const last = at + report.size();
    const auto next = [&](auto& number) {
      const auto [end, error] = std::from_chars(at, last, number);
      COHORT_CHECK(error == std::errc());
      at = std::min(end + 1, last);
    };
    FileEntry& file = manifest.files[names.back()];
    next(file.size);
    next(file.checksum);
    for (PlannedPiece* piece : pieces) next(piece->checksum);
  }
  // Pieces were planned in the order of names, and of their rows.
  for (const PlannedPiece& piece : pieces_) {
    ValueEntry& entry = manifest.values.try_emplace(manifest.values.end(), piece.name, piece.entry)->second;
    entry.pieces.push_back({names[static_cast<std::size_t>(piece.part.worker)], piece.tensor,
                            piece.part.first_row, piece.part.rows, piece.checksum});
  }
  return manifest;
}

BackgroundSave::~BackgroundSave() {
  try {
    wait();
  } catch (const std::exception& error) {
    logging::error("a checkpoint was not saved: {}", error.what());
  }
}

void BackgroundSave::start(const Workers& workers, std::unique_ptr<CheckpointWriter> writer) {
  make_group(workers);
  // A thread that has begun would wait for those of workers that failed to begin.
  std::promise<bool> all_have_copied;
  try {
    workers.together_do([&] {
      writer->copy(memory_);
      const Workers threads = group_ == nullptr ? workers : workers.on(*group_);
      thread_ = start_quiet_thread(
          [this, threads, go = all_have_copied.get_future(), save = std::move(writer)]() mutable {
            go_behind_the_program();
            try {
              if (go.get()) save->write(threads);
            } catch (...) {
              failure_ = std::current_exception();
            }
            save.reset();  // with its lock, before anybody may save again
          });
    });
  } catch (...) {
    all_have_copied.set_value(false);
    wait();
    throw;
  }
  all_have_copied.set_value(true);
}

void BackgroundSave::wait() {
  if (thread_.joinable()) thread_.join();
  if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void BackgroundSave::make_group(const Workers& workers) {
  if (workers.size() == 1) return;
  // A communicator that failed is of no more use; not all of its members may have noticed.
  const auto answers = workers.together([&] {
    const bool is_usable = group_ != nullptr && !group_->failure();
    return std::string(is_usable ? "usable" : "");
  });
  if (std::ranges::find(answers, "") == answers.end()) return;
  group_.reset();
  group_ = workers.make_group();
}

}  // namespace cohort::checkpoint
