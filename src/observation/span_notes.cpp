#include "span_notes.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "cluster/peer_watch.h"

namespace cohort {
namespace {

constexpr std::string_view kSpanMark = "cohort: span\n";

struct Told {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int32_t worker = 0;
  std::int32_t thread = 0;
  std::array<char, 64> name{};
};

constexpr std::size_t kSpansInNote = (PeerWatch::kLongestNote - kSpanMark.size()) / sizeof(Told);

}  // namespace

std::vector<std::string> to_notes(std::span<const WorkerSpan> spans) {
  std::vector<std::string> notes;
  for (; !spans.empty(); spans = spans.subspan(std::min(spans.size(), kSpansInNote))) {
    std::string note(kSpanMark);
    for (const auto& [worker, span] : spans.first(std::min(spans.size(), kSpansInNote))) {
      Told told{.begin = span.begin, .end = span.end, .worker = worker, .thread = span.thread};
      span.name.copy(told.name.data(), told.name.size() - 1);
      note.append(reinterpret_cast<const char*>(&told), sizeof told);
    }
    notes.push_back(std::move(note));
  }
  return notes;
}

std::optional<std::vector<WorkerSpan>> spans_of_note(std::string_view note) {
  if (!note.starts_with(kSpanMark)) return std::nullopt;
  std::vector<WorkerSpan> spans;
  for (note.remove_prefix(kSpanMark.size()); note.size() >= sizeof(Told); note.remove_prefix(sizeof(Told))) {
    Told told;
    std::memcpy(&told, note.data(), sizeof told);
    told.name.back() = '\0';
    spans.push_back({told.worker, {told.name.data(), told.thread, told.begin, told.end}});
  }
  return spans;
}

}  // namespace cohort
