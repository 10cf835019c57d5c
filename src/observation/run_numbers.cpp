#include "run_numbers.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "cluster/peer_watch.h"

namespace cohort {
namespace {

/// At the beginning of a note; no other begins like that, for others begin with a time, which is positive.
constexpr std::int64_t kNumbersMark = std::numeric_limits<std::int64_t>::min() + 1;

/// A note has all kinds and some of the workers: these follow it.
struct NumbersNoteHead {
  std::int64_t mark = kNumbersMark;
  std::int32_t reader = 0;
  std::int32_t workers = 0;
  double calls = 0;
  double seen = 0;
  std::array<KindNumbers, kCollectiveKinds> kinds{};
};
struct NoteWorker {
  std::int64_t worker = 0;
  WorkerNumbers numbers = {};
};
constexpr std::size_t kWorkersInNote =
    (PeerWatch::kLongestNote - sizeof(NumbersNoteHead)) / sizeof(NoteWorker);

void put(std::string& note, const void* data, std::size_t bytes) {
  note.append(static_cast<const char*>(data), bytes);
}

}  // namespace

double WorkerNumbers::compute() const noexcept { return std::max(elapsed - communication - input, 0.0); }

void RunNumbers::add(const RunNumbers& other) {
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    kinds[kind].calls += other.kinds[kind].calls;
    kinds[kind].bytes += other.kinds[kind].bytes;
    kinds[kind].seconds += other.kinds[kind].seconds;
  }
  calls += other.calls;
  seen += other.seen;
  for (const auto& [rank, numbers] : other.workers) {
    WorkerNumbers& worker = workers[rank];
    worker.elapsed = std::max(worker.elapsed, numbers.elapsed);
    worker.communication += numbers.communication;
    worker.input = std::max(worker.input, numbers.input);  // each reader sees that of the whole process
  }
}

Spread spread_of(const std::map<int, double>& by_worker) {
  Spread spread;
  for (const auto& [worker, value] : by_worker) {
    if (spread.of_least < 0 || value < spread.least) {
      spread.least = value;
      spread.of_least = worker;
    }
    if (spread.of_most < 0 || value > spread.most) {
      spread.most = value;
      spread.of_most = worker;
    }
    spread.mean += value / static_cast<double>(by_worker.size());
  }
  return spread;
}

std::vector<std::string> to_notes(const RunNumbers& numbers, int reader) {
  std::vector<NoteWorker> workers;
  for (const auto& [rank, of_worker] : numbers.workers) workers.push_back({rank, of_worker});
  std::vector<std::string> notes;
  std::size_t told = 0;
  do {
    const std::size_t some = std::min(workers.size() - told, kWorkersInNote);
    const NumbersNoteHead head{.reader = reader,
                               .workers = static_cast<std::int32_t>(some),
                               .calls = numbers.calls,
                               .seen = numbers.seen,
                               .kinds = numbers.kinds};
    std::string& note = notes.emplace_back();
    put(note, &head, sizeof head);
    if (some > 0) put(note, &workers[told], some * sizeof(NoteWorker));
    told += some;
  } while (told < workers.size());
  return notes;
}

bool hear(std::string_view note, std::map<int, RunNumbers>& by_reader) {
  NumbersNoteHead head;
  if (note.size() < sizeof head) return false;
  std::memcpy(&head, note.data(), sizeof head);
  note.remove_prefix(sizeof head);
  if (head.mark != kNumbersMark || head.workers < 0) return false;
  if (note.size() != static_cast<std::size_t>(head.workers) * sizeof(NoteWorker)) return false;
  RunNumbers& numbers = by_reader[head.reader];
  numbers.calls = head.calls;
  numbers.seen = head.seen;
  numbers.kinds = head.kinds;
  while (!note.empty()) {
    NoteWorker worker;
    std::memcpy(&worker, note.data(), sizeof worker);
    note.remove_prefix(sizeof worker);
    numbers.workers[static_cast<int>(worker.worker)] = worker.numbers;
  }
  return true;
}

}  // namespace cohort
