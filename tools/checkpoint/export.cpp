#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/device/tensor.h>

#include "base/new_file.h"
#include "base/uninterrupted.h"
#include "checkpoint/format/folder.h"
#include "checkpoint/format/piece_reader.h"
#include "checkpoint/format/safetensors.h"
#include "command.h"
#include "npz.h"

namespace cohort::tool {
namespace {

void write(const NewFile& file, const std::string& path, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        uninterrupted([&] { return ::write(file.descriptor(), bytes.data(), bytes.size()); });
    if (written < 0) throw Unavailable("cannot write '{}': {}", path, std::strerror(errno));
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

/// One file in which each value is whole.
void write_safetensors(const std::string& target, const std::string& path,
                       const checkpoint::Manifest& manifest) {
  checkpoint::PieceReader reader(path);
  std::vector<checkpoint::NamedTensor> tensors;
  for (const auto& [name, value] : manifest.values) tensors.push_back({name, value.dtype, value.shape});
  const std::string beginning =
      checkpoint::begin_safetensors(tensors, {{"step", std::to_string(manifest.step)}});
  NewFile file(target);
  write(file, target, std::as_bytes(std::span(beginning)));
  for (const checkpoint::NamedTensor& tensor : tensors) {
    const Tensor value = reader.read(tensor.name, manifest.values.at(tensor.name));
    write(file, target, value.raw());
  }
  file.publish();
}

}  // namespace

int export_values(const Arguments& arguments) {
  const std::string& path = arguments.paths.front();
  const auto option = arguments.options.find("--to");
  if (option == arguments.options.end()) throw WrongUse("export needs --to FILE");
  const std::string& target = option->second;
  const bool is_npz = target.ends_with(".npz");
  if (!is_npz && !target.ends_with(".safetensors"))
    throw WrongUse(fmt::format("export writes .safetensors and .npz, and '{}' is neither", target));

  const checkpoint::Manifest manifest = checkpoint::read_manifest(path);
  if (is_npz)
    write_npz(target, path, manifest);
  else
    write_safetensors(target, path, manifest);
  fmt::print("{}: {} values of step {}\n", target, manifest.values.size(), manifest.step);
  return kSound;
}

}  // namespace cohort::tool
