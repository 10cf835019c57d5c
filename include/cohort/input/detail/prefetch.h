// Elements read ahead by a thread of the iterator's own.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <cohort/base/event_count.h>
#include <cohort/input/detail/dataset_node.h>

namespace cohort::detail {

/// Reading ahead of a consumer, on a thread, as long as that saves time. Handing an element over costs some
/// microseconds, so after a while the consumer reads by itself if reading is faster than that, or if it does
/// nothing between two elements. Elements come in order, and never more than the slots hold are read ahead.
///
/// The thread lives as long as this object. The destructor waits for the element that it is reading.
class ReadAhead {
 public:
  /// Reads the next element into the slot; false at the end. Never called by two threads at once.
  using Read = std::function<bool(std::size_t slot)>;
  /// Takes the element in the slot, on the consumer's thread; does not throw.
  using Take = std::function<void(std::size_t slot)>;

  /// `slots` is at least 1. @throws Unavailable when the thread cannot be started.
  ReadAhead(std::size_t slots, Read read);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// Waits for the next element and calls `take` with its slot; false at the end. Throws what reading that
  /// element threw; the next call continues with the following element.
  [[nodiscard]] bool next(const Take& take);

 private:
  using Clock = std::chrono::steady_clock;

  struct Slot {
    std::exception_ptr error;
    Clock::duration reading{};
  };

  [[nodiscard]] bool take_ready(std::unique_lock<std::mutex> lock, const Take& take, Clock::duration busy);
  [[nodiscard]] bool read_and_take(const Take& take, Clock::time_point asked, Clock::duration busy);
  [[nodiscard]] std::optional<bool> pays(Clock::duration reading, Clock::duration busy);

  void serve();
  /// False when there is nothing left to read, or this object is being destroyed.
  [[nodiscard]] bool wait_for_room(std::unique_lock<std::mutex>& lock);

  [[nodiscard]] bool has_room() const { return is_lent_ && ready_ < slots_.size(); }
  /// Whether the consumer need not wait: an element is ready, the source has ended, or the consumer may read
  /// it.
  [[nodiscard]] bool is_decided() const { return ready_ > 0 || ended_ || !(is_lent_ || is_reading_); }

  Read read_;

  // Used by the consumer alone: the time that the thread saves it, summed up over a few elements.
  Clock::duration saved_{};
  int counted_ = 0;

  EventCount slot_is_ready_;
  std::condition_variable room_;
  std::mutex mutex_;  // guards what follows; the source is read without it
  std::vector<Slot> slots_;
  std::size_t first_ = 0;    ///< the slot that is taken next
  std::size_t ready_ = 0;    ///< slots with elements, from there
  Clock::time_point given_;  ///< when the last element was given; used by the consumer while it reads itself
  Clock::duration between_takes_{};
  bool is_lent_ = true;  ///< the thread, not the consumer, may read the source
  bool is_reading_ = false;
  bool is_asleep_ = false;  ///< the thread, until it is woken
  bool ended_ = false;
  bool stopped_ = false;

  std::jthread thread_;  // last: it uses all of the above
};

/// More would be a mistake: a number of bytes, or one that stands for `all`.
inline constexpr std::int64_t kMostElementsAhead = std::int64_t{1} << 20;

template <class Element>
class Prefetched final : public ElementIterator<Element> {
 public:
  /// Holds up to `elements` elements of `source`. Reading begins when the first one is asked for.
  Prefetched(std::unique_ptr<ElementIterator<Element>> source, std::int64_t elements)
      : source_(std::move(source)), buffer_(static_cast<std::size_t>(elements)) {}

  std::optional<Element> next() override {
    if (!reader_) start();
    std::optional<Element> element;
    if (!reader_->next([&](std::size_t slot) { element = std::exchange(buffer_[slot], std::nullopt); }))
      return std::nullopt;
    return element;
  }

  std::int64_t skip(std::int64_t count) override {
    return reader_ ? ElementIterator<Element>::skip(count) : source_->skip(count);
  }

 private:
  void start() {
    reader_.emplace(buffer_.size(), [this](std::size_t slot) {
      buffer_[slot] = source_->next();
      return buffer_[slot].has_value();
    });
  }

  std::unique_ptr<ElementIterator<Element>> source_;
  std::vector<std::optional<Element>> buffer_;  // by slot
  std::optional<ReadAhead> reader_;             // last, because its thread uses all of the above
};

template <class Element>
class PrefetchNode final : public TransformationNode<Element> {
 public:
  PrefetchNode(DatasetNodePtr<Element> source, std::int64_t elements)
      : TransformationNode<Element>(std::move(source)), elements_(elements) {}

  [[nodiscard]] std::unique_ptr<ElementIterator<Element>> iterate(const Pass& pass) const override {
    return std::make_unique<Prefetched<Element>>(this->source().iterate(pass), elements_);
  }
  [[nodiscard]] Cardinality cardinality() const override { return this->source().cardinality(); }
  [[nodiscard]] std::optional<BatchSize> batch_size() const override { return this->source().batch_size(); }

 private:
  [[nodiscard]] DatasetNodePtr<Element> over(DatasetNodePtr<Element> source) const override {
    return std::make_shared<PrefetchNode>(std::move(source), elements_);
  }

  std::int64_t elements_;
};

}  // namespace cohort::detail
