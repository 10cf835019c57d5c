// Arrays as NumPy saves them: one in a .npy file (numpy.save), several by name in a .npz file
// (numpy.savez, numpy.savez_compressed).
//
// Read are booleans, integers and floats of all sizes that tensors have, in either byte order,
// in C order. Arrays of text, objects, complex numbers or structures, and arrays in Fortran order,
// are `Unimplemented`.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <cohort/input/dataset.h>
#include <cohort/input/detail/file_source.h>

namespace cohort {

struct NpyOptions {
  std::optional<DType> dtype = {};  ///< the dtype that the arrays must have; unset: any
};

/// One element per row of the array in each .npy file: of float32[1000, 28, 28], tensors float32[28, 28],
/// which are views of the mapped file where its byte order is the machine's.
/// @throws InvalidArgument without a file. When iterated: Unavailable for a file that cannot be opened;
/// InvalidArgument for another dtype than `options.dtype`; Unimplemented for what is listed above;
/// DataLoss for a file that is damaged.
[[nodiscard]] Dataset<Tensor> npy_dataset(std::vector<std::string> files, const NpyOptions& options = {});

struct NpzOptions {
  /// The arrays that make an element, one for each of its tensors; none: the only one in the file.
  std::vector<std::string> arrays = {};
};

/// One element per row of the named arrays of each .npz file, which have equally many rows. The arrays of one
/// file at a time are in memory.
///
///     npz_dataset<Batch>({"mnist.npz"}, {.arrays = {"x_train", "y_train"}})
///
/// @throws as npy_dataset; InvalidArgument, when iterated, for a name that is not in the file.
template <class Element = Tensor>
[[nodiscard]] Dataset<Element> npz_dataset(std::vector<std::string> files, const NpzOptions& options = {});

// ---- implementation of the templates ----

namespace detail {

/// The arrays of a .npz file, in the order of their names; without names, the only one.
[[nodiscard]] std::vector<Tensor> read_npz(const std::string& path, const std::vector<std::string>& names);

/// @throws InvalidArgument naming the numbers.
void require_as_many(std::size_t arrays, std::size_t tensors, const std::string& path);

template <class Element>
class NpzFormat final : public FileFormat<Element> {
 public:
  explicit NpzFormat(NpzOptions options) : options_(std::move(options)) {}

  [[nodiscard]] std::string_view name() const override { return "npz"; }

  [[nodiscard]] std::unique_ptr<ElementIterator<Element>> open(const std::string& path) const override {
    const std::vector<Tensor> arrays = read_npz(path, options_.arrays);
    Element element;
    std::size_t tensors = 0;
    for_each_leaf([&](const Tensor& /*tensor*/) { ++tensors; }, element);
    require_as_many(arrays.size(), tensors, path);
    auto array = arrays.begin();
    for_each_leaf([&](Tensor& tensor) { tensor = *array++; }, element);
    return std::make_unique<InOrder<Element>>(std::make_shared<const TensorRows<Element>>(element));
  }

 private:
  NpzOptions options_;
};

}  // namespace detail

template <class Element>
Dataset<Element> npz_dataset(std::vector<std::string> files, const NpzOptions& options) {
  return Dataset<Element>(detail::read_files<Element>(
      std::move(files), std::make_shared<const detail::NpzFormat<Element>>(options)));
}

}  // namespace cohort
