#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/checkpoint/safetensors.h>

#include "checkpoint/format/file.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint/format/safetensors.h"
#include "input/files/foreign_data.h"
#include "input/files/input_file.h"
#include "tensor_rules.h"

namespace cohort {
namespace {

using ::cohort::detail::MappedFile;

constexpr const char* kSingleName = "model.safetensors";
constexpr std::uint64_t kLargestIndex = std::uint64_t{1} << 30;

/// What is often taken for a safetensors file, by how it begins.
struct Mistake {
  std::string_view magic;
  std::string_view hint;
};
constexpr std::array kMistakes{
    Mistake{"PK\x03\x04",
            "it is a file of torch.save: load it in Python and write it by "
            "safetensors.torch.save_file"},
    Mistake{"version ", "it is a pointer of Git LFS: fetch what it stands for by `git lfs pull`"},
    Mistake{"GGUF", "it is a file of llama.cpp: take the model's safetensors files"},
};

std::string_view hint_for(MappedFile& file) {
  constexpr std::uint64_t kLongest = 16;
  const auto start = file.bytes(0, std::min(file.size(), kLongest));
  const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  for (const auto& [magic, hint] : kMistakes)
    if (text.starts_with(magic)) return hint;
  return detail::compression_hint(start, "");
}

std::uint64_t length_of_header(MappedFile& file) {
  const auto first = file.bytes(0, std::min<std::uint64_t>(file.size(), checkpoint::kHeaderLengthBytes));
  try {
    return checkpoint::header_length(first, file.size(), file.path());
  } catch (const DataLoss& error) {
    const std::string_view hint = hint_for(file);
    if (hint.empty()) throw;
    throw DataLoss("{}; {}", error.what(), hint);
  }
}

checkpoint::SafetensorsHeader header_of(MappedFile& file) {
  const std::uint64_t length = length_of_header(file);
  const auto text = file.bytes(checkpoint::kHeaderLengthBytes, length);
  return checkpoint::parse_header({reinterpret_cast<const char*>(text.data()), text.size()}, file.size(),
                                  file.path());
}

/// The file or the index that a path means. @throws InvalidArgument for a folder without either.
std::string resolved(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(path, error)) return path;
  const auto in_folder = [&](const char* name) { return (fs::path(path) / name).string(); };
  if (fs::exists(in_folder(checkpoint::kManifestName), error)) {
    throw InvalidArgument("'{}' is a checkpoint of Cohort: restore it by Checkpoint::restore, or export it",
                          path);
  }
  for (const char* name : {kSingleName, checkpoint::kIndexName})
    if (fs::exists(in_folder(name), error)) return in_folder(name);
  throw InvalidArgument("the folder '{}' has neither {} nor {}: name the files themselves", path, kSingleName,
                        checkpoint::kIndexName);
}

}  // namespace

class SafetensorsReader::Files {
 public:
  explicit Files(std::span<const std::string> paths) {
    if (paths.empty()) throw InvalidArgument("no safetensors files are named");
    for (const std::string& path : paths) add(resolved(path));
  }

  [[nodiscard]] const std::map<std::string, SafetensorsTensor>& tensors() const noexcept { return tensors_; }

  Tensor read(const std::string& name) {
    const auto found = places_.find(name);
    if (found == places_.end()) {
      throw InvalidArgument("there is no tensor '{}' in '{}'{}", name, files_.front()->path(),
                            files_.size() == 1 ? "" : " and the files beside it");
    }
    const auto& [file, place] = found->second;
    Tensor tensor;
    if (place.begin % size_of(place.dtype) == 0) {
      tensor = file->tensor(place.begin, place.shape, place.dtype);
    } else {
      tensor = Tensor::uninitialized(place.shape, place.dtype);
      const auto bytes = file->bytes(place.begin, tensor.bytes());
      std::memcpy(tensor.data(), bytes.data(), bytes.size());
    }
    detail::require_valid_elements(tensor, fmt::format("tensor '{}' in '{}'", name, file->path()),
                                   place.begin);
    return tensor;
  }

 private:
  void add(const std::string& path) {
    if (path.ends_with(".json"))
      add_index(path);
    else
      add_file(path);
  }

  void add_file(const std::string& path) {
    MappedFile& file = open(path);
    for (const auto& [name, place] : header_of(file).tensors) add_tensor(name, file, place);
  }

  void add_index(const std::string& path) {
    const auto index = checkpoint::parse_index(checkpoint::read_text(path, kLargestIndex), path);
    std::map<std::string, std::vector<std::string>> by_file;
    for (const auto& [tensor, file] : index) by_file[file].push_back(tensor);
    for (const auto& [name, tensors] : by_file) {
      MappedFile& file = open((std::filesystem::path(path).parent_path() / name).string());
      const checkpoint::SafetensorsHeader header = header_of(file);
      for (const std::string& tensor : tensors) {
        const auto found = header.tensors.find(tensor);
        if (found == header.tensors.end()) {
          throw DataLoss(
              "'{}' says that tensor '{}' is in '{}', which does not have it: the files are not of one "
              "model, "
              "so get them anew",
              path, tensor, file.path());
        }
        add_tensor(tensor, file, found->second);
      }
    }
  }

  MappedFile& open(const std::string& path) {
    files_.push_back(std::make_unique<MappedFile>(path, "safetensors"));
    return *files_.back();
  }

  void add_tensor(const std::string& name, MappedFile& file, const checkpoint::TensorPlace& place) {
    const auto [other, is_new] = places_.try_emplace(name, &file, place);
    if (!is_new) {
      throw InvalidArgument("tensor '{}' is both in '{}' and in '{}': name the files of one model", name,
                            other->second.first->path(), file.path());
    }
    const bool is_foreign = !place.foreign.empty();
    tensors_.emplace(
        name,
        SafetensorsTensor{place.dtype, place.shape,
                          std::string(is_foreign ? place.foreign : checkpoint::safetensors_name(place.dtype)),
                          is_foreign, file.path()});
  }

  std::vector<std::unique_ptr<MappedFile>> files_;
  std::map<std::string, std::pair<MappedFile*, checkpoint::TensorPlace>> places_;
  std::map<std::string, SafetensorsTensor> tensors_;
};

SafetensorsReader::SafetensorsReader(const std::string& path)
    : SafetensorsReader(std::span<const std::string>(&path, 1)) {}
SafetensorsReader::SafetensorsReader(std::span<const std::string> paths)
    : files_(std::make_unique<Files>(paths)) {}
SafetensorsReader::~SafetensorsReader() = default;
SafetensorsReader::SafetensorsReader(SafetensorsReader&& other) noexcept = default;
SafetensorsReader& SafetensorsReader::operator=(SafetensorsReader&& other) noexcept = default;

const std::map<std::string, SafetensorsTensor>& SafetensorsReader::tensors() const& noexcept {
  return files_->tensors();
}

std::map<std::string, SafetensorsTensor> SafetensorsReader::tensors() && { return files_->tensors(); }

Tensor SafetensorsReader::read(const std::string& name) { return files_->read(name); }

}  // namespace cohort
