// Saves a checkpoint that the scripts beside this file look at: make_checkpoint FOLDER STEP
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include <cohort/checkpoint/checkpoint.h>

int main(int argc, char** argv) {
  using namespace cohort;
  if (argc != 3) return 2;
  Checkpoint checkpoint;
  for (const DType dtype : kAllDTypes) {
    std::vector<float> values(6);
    std::iota(values.begin(), values.end(), 0.0F);
    checkpoint.add(std::string(to_string(dtype)), Tensor::from(values, {2, 3}).cast(dtype));
  }
  std::string text = "hello";
  checkpoint.add("text", text);
  double scalar = 1.5;
  checkpoint.add("scalar", scalar);
  checkpoint.add("no rows", Tensor::zeros({0, 3}, DType::kInt64));
  checkpoint.save(argv[1], std::atoll(argv[2]));
  return 0;
}
