// Random inputs: samples with bytes changed, removed, doubled and spliced together, the same in each run.
#pragma once

#include <cstddef>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace cohort::fuzz {

class Mutator {
 public:
  /// At least one sample.
  explicit Mutator(std::vector<std::string> samples) : samples_(std::move(samples)) {}

  [[nodiscard]] std::string next() {
    std::string input = sample();
    for (std::size_t changes = 1 + below(6); changes > 0; --changes) change(input);
    return input;
  }

 private:
  static constexpr std::size_t kLongest = 2000;

  std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
  }
  const std::string& sample() { return samples_[below(samples_.size())]; }

  void change(std::string& input) {
    const std::size_t at = below(input.size() + 1);
    const std::size_t length = below(input.size() - at + 1);
    switch (below(5)) {
      case 0: insert_byte_of_a_sample(input, at); break;
      case 1: input.erase(at, 1 + below(4)); break;
      case 2: input.insert(at, input.substr(at, length)); break;
      case 3: input = input.substr(0, at) + sample().substr(0, below(20)); break;
      default:
        if (at < input.size()) input[at] = static_cast<char>(below(256));
    }
    if (input.size() > kLongest) input.resize(kLongest);
  }

  /// More often of meaning than any byte.
  void insert_byte_of_a_sample(std::string& input, std::size_t at) {
    const std::string& other = sample();
    if (!other.empty()) input.insert(at, 1, other[below(other.size())]);
  }

  std::vector<std::string> samples_;
  std::mt19937_64 random_{20260101};
};

}  // namespace cohort::fuzz
