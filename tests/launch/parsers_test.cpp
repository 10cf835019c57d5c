// Text that nobody meant to write, the same in each run: good samples with bytes changed,
// removed, doubled and spliced together.
#include "parsers.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace cohort::testing {
namespace {

const std::vector<std::string> kSamples{
    "n[1-2],m5,rack[08-11]s[0,2]",
    "3(x2),1",
    "4",
    R"({"worker": ["n0:2222", "n1:2222"], "ps": {"3": "n2:2222"}})",
    R"({"cluster": {"chief": ["a:1"], "worker": ["b:2", "c:3"]}, "task": {"type": "worker", "index": 1}, "rpc_layer": "grpc"})",
    R"({"items": [{"metadata": {"name": "a", "labels": {"job-name": "cohort"}}, "status": {"phase": "Running", "podIP": "10.0.0.1"}}]})",
};
constexpr std::string_view kPieces = "[]{}(),:\"-x019 \\\n\xff";

class Mutator {
 public:
  std::string next() {
    std::string text = sample();
    for (std::size_t changes = 1 + below(6); changes > 0; --changes) change(text);
    return text;
  }

 private:
  std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
  }
  const std::string& sample() { return kSamples[below(kSamples.size())]; }

  void change(std::string& text) {
    const std::size_t at = below(text.size() + 1);
    const std::size_t length = below(text.size() - at + 1);
    switch (below(5)) {
      case 0: text.insert(at, 1, kPieces[below(kPieces.size())]); break;
      case 1: text.erase(at, 1 + below(4)); break;
      case 2: text.insert(at, text.substr(at, length)); break;
      case 3: text = text.substr(0, at) + sample().substr(0, below(20)); break;
      default:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
    }
    if (text.size() > kLongest) text.resize(kLongest);
  }

  static constexpr std::size_t kLongest = 2000;
  std::mt19937_64 random_{20260101};
};

TEST(Parsers, ReadTheSamples) {
  for (const std::string& text : kSamples) EXPECT_NO_THROW(read_in_every_way(text)) << text;
}

TEST(Parsers, ReadOrRefuseWhatNobodyMeant) {
  Mutator mutator;
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = mutator.next();
    ASSERT_NO_THROW(read_in_every_way(text)) << "text " << i << ": " << text;
  }
}

TEST(Parsers, SurviveWhatIsLarge) {
  for (const char* text : {"[", R"({"worker":)", R"({"cluster":{"worker":[)", "n[", "(x"}) {
    std::string many;
    for (int i = 0; i < 100'000; ++i) many += text;
    EXPECT_NO_THROW(read_in_every_way(many)) << text;
  }
  for (const char* text :
       {"n[0-999999999]", "n[0-999][0-999][0-999]", "1(x999999999)", "1e999", R"({"worker": [1e999]})"})
    EXPECT_NO_THROW(read_in_every_way(text)) << text;
  const std::string nested = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_NO_THROW(read_in_every_way(R"({"worker": )" + nested + "}"));
  EXPECT_NO_THROW(read_in_every_way(R"({"task": )" + nested + "}"));
}

}  // namespace
}  // namespace cohort::testing
