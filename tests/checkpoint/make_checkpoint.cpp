// Saves a checkpoint that the scripts beside this file look at: make_checkpoint FOLDER STEP [changed]. With
// the last word, some values are others.
#include <cstdlib>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <cohort/checkpoint/checkpoint.h>

int main(int argc, char** argv) {
  using namespace cohort;
  if (argc < 3 || argc > 4) return 2;
  const bool is_changed = argc == 4;
  Checkpoint checkpoint;
  for (const DType dtype : kAllDTypes) {
    std::vector<float> values(6);
    std::iota(values.begin(), values.end(), 0.0F);
    if (is_changed && dtype == DType::kFloat32) values[4] = 4.25F;
    if (is_changed && dtype == DType::kFloat64) values[5] = std::numeric_limits<float>::quiet_NaN();
    checkpoint.add(std::string(to_string(dtype)), Tensor::from(values, {2, 3}).cast(dtype));
  }
  std::string text = "hello";
  checkpoint.add("text", text);
  double scalar = 1.5;
  float narrow = 1.5;
  if (is_changed)
    checkpoint.add("scalar", narrow);
  else
    checkpoint.add("scalar", scalar);
  checkpoint.add(is_changed ? "none" : "no rows", Tensor::zeros({0, 3}, DType::kInt64));
  checkpoint.save(argv[1], std::atoll(argv[2]));
  return 0;
}
