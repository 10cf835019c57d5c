// TerminateOnNaN ends a training whose loss is infinite or not a number. Losses are those of all replicas, so
// all workers end together, whichever has the bad example.
#pragma once

#include <cstdint>

#include <cohort/trainer/callback.h>

namespace cohort {

class TerminateOnNaN final : public Callback {
 public:
  enum class Looks {
    kEachBatch,  ///< costs a collective in each step
    kEachEpoch,
  };

  explicit TerminateOnNaN(Looks looks = Looks::kEachBatch) noexcept : looks_(looks) {}

  [[nodiscard]] bool needs_batch_logs() const override { return looks_ == Looks::kEachBatch; }
  void on_train_batch_end(std::int64_t batch, const Logs& logs) override;
  void on_epoch_end(int epoch, Logs& logs) override;

 private:
  void look(const Logs& logs);

  Looks looks_;
};

}  // namespace cohort
