// Ten thousand damaged checkpoints: each is refused by an error that names it, or is as good as it was.

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <cohort/base/error.h>
#include <cohort/checkpoint/checkpoint.h>
#include <cohort/checkpoint/checkpoint_folder.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>

#include "../../strategy/fake_cluster.h"
#include "../../strategy/strategies.h"
#include "base/crc32c.h"
#include "checkpoint/format/manifest.h"
#include "temporary_folder.h"

namespace cohort::testing {
namespace {

/// The files of a checkpoint, by name.
using Files = std::map<std::string, std::string>;

/// Random damage to these files, the same in each run.
class Damage {
 public:
  /// `other` has files of the same names: those of another step.
  Damage(Files sound, Files other) : sound_(std::move(sound)), other_(std::move(other)) {}

  /// The files after an accident: bits that changed, files that were cut off, lost or mixed up.
  [[nodiscard]] Files by_accident();

  /// The files after somebody edited JSON in one of them and made all checksums right again, so that no
  /// checksum stops a reader from believing it.
  [[nodiscard]] Files by_intent();

 private:
  std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
  }
  std::string any_name();
  void change(std::string& bytes, std::string& twin);
  void edit(nlohmann::json& json);
  nlohmann::json strange();

  Files sound_;
  Files other_;
  std::mt19937_64 random_{20260102};
};

using Json = nlohmann::json;

std::string checksum(const std::string& text) {
  return checkpoint::hexadecimal(detail::crc32c(std::as_bytes(std::span(text))));
}

/// The values of JSON below `json`, itself first.
void collect(Json& json, std::vector<Json*>& found) {
  found.push_back(&json);
  for (Json& each : json)
    if (each.is_structured())
      collect(each, found);
    else
      found.push_back(&each);
}

/// The header of a safetensors file, and what comes behind it.
std::pair<Json, std::string> parts_of(const std::string& file) {
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  return {Json::parse(file.substr(sizeof length, length)), file.substr(sizeof length + length)};
}

std::string with_header(const Json& header, const std::string& data) {
  const std::string text = header.dump();
  const auto length = static_cast<std::uint64_t>(text.size());
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  return file + text + data;
}

std::string Damage::any_name() {
  auto file = sound_.begin();
  std::advance(file, static_cast<std::ptrdiff_t>(below(sound_.size())));
  return file->first;
}

void Damage::change(std::string& bytes, std::string& twin) {
  const std::size_t at = below(bytes.size());
  switch (below(8)) {
    case 0: bytes.resize(at); break;
    case 1: bytes += twin.substr(0, 1 + below(twin.size())); break;
    case 2: bytes.replace(at, 1 + below(64), std::string(1 + below(64), '\0')); break;
    case 3: bytes.erase(at, 1 + below(16)); break;
    case 4: std::swap(bytes, twin); break;
    case 5: bytes = bytes.substr(0, at) + twin.substr(std::min(at, twin.size())); break;
    default:
      for (std::size_t bits = 1 + below(8); bits > 0; --bits)
        bytes[below(bytes.size())] ^= static_cast<char>(1U << below(8));
  }
}

Files Damage::by_accident() {
  Files files = sound_;
  std::string& file = files.at(any_name());
  if (below(50) == 0) {
    files.erase(any_name());
  } else {
    // What the file is mixed up with: the same one of another step, or another one of this step.
    const std::string name = any_name();
    Files others = other_;
    change(file, below(2) == 0 ? others.at(name) : files.at(name));
  }
  return files;
}

Json Damage::strange() {
  switch (below(12)) {
    case 0: return nullptr;
    case 1: return -1;
    case 2: return std::uint64_t{1} << below(64);
    case 3: return (std::uint64_t{1} << below(64)) - 1;
    case 4: return 1e300;
    case 5: return "../../etc/passwd";
    case 6: return std::string(1, static_cast<char>(below(128)));
    case 7: return Json::array();
    case 8: return Json::object();
    case 9: return Json{std::uint64_t{1} << 62, std::uint64_t{1} << 62};
    case 10: return "ffffffff";
    default: {
      Json nested = 1;
      for (std::size_t depth = below(100); depth > 0; --depth) nested = Json::array({nested});
      return nested;
    }
  }
}

void Damage::edit(Json& json) {
  std::vector<Json*> values;
  collect(json, values);
  Json& value = *values[below(values.size())];
  const Json& source = *values[below(values.size())];
  switch (below(5)) {
    case 0: value = Json(source); break;  // a copy: it may be a part of itself
    case 1:
      if (value.is_structured() && !value.empty()) {
        auto member = value.begin();
        std::advance(member, static_cast<std::ptrdiff_t>(below(value.size())));
        value.erase(member);
      }
      break;
    case 2:
      if (value.is_object()) value["x"] = Json(source);
      if (value.is_array()) value.push_back(Json(source));
      break;
    case 3:
      if (value.is_number_integer()) value = value.get<std::int64_t>() + (below(2) == 0 ? 1 : -1);
      break;
    default: value = strange();
  }
}

Files Damage::by_intent() {
  Files files = sound_;
  Json manifest = Json::parse(files.at(checkpoint::kManifestName));
  Json& content = manifest.at("checkpoint");
  const std::string name = any_name();
  std::string& file = files.at(name);
  if (name == checkpoint::kManifestName) {
    for (std::size_t edits = 1 + below(3); edits > 0; --edits) edit(content);
  } else if (name == checkpoint::kIndexName) {
    Json index = Json::parse(file);
    edit(index);
    file = index.dump();
  } else {
    auto [header, data] = parts_of(file);
    edit(header);
    file = with_header(header, data);
  }
  if (name != checkpoint::kManifestName)
    content["files"][name] = {{"size", file.size()}, {"crc32c", checksum(file)}};
  manifest["crc32c"] = checksum(content.dump());
  files.at(checkpoint::kManifestName) = manifest.dump();
  return files;
}

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// What is saved, and restored in another process.
struct State {
  explicit State(float value = 0)
      : table({.initial_value = Tensor::full({20, 3}, DType::kFloat32, static_cast<double>(value))}),
        halves(Tensor::full({5}, DType::kFloat16, static_cast<double>(value))),
        text(value == 0 ? "" : "text of " + std::to_string(value)) {}
  void add_to(Checkpoint& checkpoint) {
    checkpoint.add("table", table);
    checkpoint.add("halves", halves);
    checkpoint.add("text", text);
  }
  friend bool operator==(const State& a, const State& b) {
    return bitwise_equal(a.table.read(), b.table.read()) && bitwise_equal(a.halves, b.halves) &&
           a.text == b.text;
  }

  Variable table;
  Tensor halves;
  std::string text;
};

Files read_files(const std::string& folder) {
  Files files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    files[entry.path().filename().string()] = {std::istreambuf_iterator<char>(file), {}};
  }
  return files;
}

/// What a file says, without the spaces between, which may change in a manifest.
nlohmann::json meaning_of(const std::string& manifest) {
  return nlohmann::json::parse(manifest, nullptr, false);
}

class DamagedCheckpoint : public ::testing::Test {
 protected:
  DamagedCheckpoint() {
    for_each_worker(2, [&](Bootstrap& worker) {
      const MultiWorkerMirroredStrategy strategy(worker, kPatient, cpu_devices(1));
      const auto scope = strategy.scope();
      for (const int step : {1, 2}) {
        State state(static_cast<float>(step));
        Checkpoint checkpoint(strategy);
        state.add_to(checkpoint);
        checkpoint.save(folder_.path().string(), step);
      }
    });
    sound_ = read_files(path_);
    placed_ = sound_;
  }

  /// Writes the files that differ from those that are there.
  void place(const Files& files) {
    for (const auto& [name, bytes] : placed_) {
      const auto now = files.find(name);
      if (now == files.end() || now->second != bytes) std::filesystem::remove(path_ + "/" + name);
    }
    for (const auto& [name, bytes] : files) {
      if (!std::filesystem::exists(path_ + "/" + name))
        static_cast<void>(folder_.file("step-1/" + name, bytes));
    }
    placed_ = files;
  }

  [[nodiscard]] bool is_the_same(Files files) const {
    const auto manifest = files.find("manifest.json");
    if (manifest == files.end()) return false;
    const std::string& sound = sound_.at("manifest.json");
    if (meaning_of(manifest->second) == meaning_of(sound)) manifest->second = sound;
    return files == sound_;
  }

  /// The error of a restore; nothing if it succeeds.
  std::optional<std::string> refusal(State& state) {
    Checkpoint checkpoint;
    state.add_to(checkpoint);
    try {
      checkpoint.restore(path_).expect_partial();
      return std::nullopt;
    } catch (const Error& error) {
      return error.what();
    }
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.path("step-1");
  Files sound_;
  Files placed_;
};

TEST_F(DamagedCheckpoint, ByAccidentIsRefusedByName) {
  Damage damage(sound_, read_files(folder_.path("step-2")));
  const State expected(1);
  int refused = 0;
  for (int i = 0; i < 6000 && !HasFailure(); ++i) {
    const Files files = damage.by_accident();
    place(files);
    const auto problems = verify_checkpoint(path_);
    EXPECT_EQ(problems.empty(), is_the_same(files)) << i;
    for (const std::string& problem : problems) EXPECT_THAT(problem, HasSubstr("step-1")) << i;
    State state;
    const auto error = refusal(state);
    if (error) {
      EXPECT_THAT(*error, HasSubstr("step-1")) << i;
      EXPECT_TRUE(state == State()) << i << ": a refused restore changed something";
      ++refused;
    } else {
      // Only what is not needed for a restore was hit.
      EXPECT_TRUE(state == expected) << i;
    }
  }
  EXPECT_GT(refused, 3000);
}

TEST_F(DamagedCheckpoint, ByIntentDoesNoHarm) {
  Damage damage(sound_, {});
  int refused = 0;
  for (int i = 0; i < 4000 && !HasFailure(); ++i) {
    place(damage.by_intent());
    const auto problems = verify_checkpoint(path_);
    for (const std::string& problem : problems) EXPECT_THAT(problem, HasSubstr("step-1")) << i;
    State state;
    const auto error = refusal(state);
    if (!error) continue;
    ++refused;
    EXPECT_THAT(*error, HasSubstr("step-1")) << i;
    EXPECT_TRUE(state == State()) << i << ": a refused restore changed something";
  }
  EXPECT_GT(refused, 1000);
}

TEST_F(DamagedCheckpoint, OfAnotherStepIsRefused) {
  std::filesystem::remove_all(path_);
  std::filesystem::rename(folder_.path("step-2"), path_);
  State state;
  EXPECT_THAT(refusal(state).value_or("restored"), HasSubstr("of step 2, and its folder of step 1"));
  EXPECT_THAT(verify_checkpoint(path_), ::testing::ElementsAre(HasSubstr("of step 2")));
  // Under a name that says no step, it is that of step 2.
  std::filesystem::rename(path_, folder_.path("best"));
  EXPECT_THAT(verify_checkpoint(folder_.path("best")), IsEmpty());
}

TEST_F(DamagedCheckpoint, ThatIsNestedDeeplyIsRefused) {
  constexpr std::size_t kDepth = 1'000'000;
  const std::string nested = std::string(kDepth, '[') + std::string(kDepth, ']');
  Files files = sound_;
  files["manifest.json"] = R"({"checkpoint":{"version":1,"x":)" + nested + R"(},"crc32c":"00000000"})";
  place(files);
  State state;
  EXPECT_THAT(refusal(state).value_or("restored"), HasSubstr("nested"));
}

}  // namespace
}  // namespace cohort::testing
