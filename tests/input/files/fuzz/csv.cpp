#include <cohort/input/files/csv.h>

#include "read_all.h"

namespace cohort::fuzz {

void fuzz_one(std::string_view input) {
  const MemoryFile file(input);
  read_all(csv_dataset<Tensor>({file.path()}), file);
  read_all(csv_dataset<Tensor>({file.path()}, {.dtype = DType::kInt8, .has_header = true, .columns = {"a"}}),
           file);
  using Row = std::tuple<std::string, std::optional<int>>;
  read_all(csv_dataset<Row>({file.path()}, {.delimiter = ';', .comment = std::nullopt}), file);
}

}  // namespace cohort::fuzz
