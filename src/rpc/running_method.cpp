#include "rpc/running_method.h"

namespace cohort::rpc {
namespace {

/// 0 for none: incarnations are drawn at random from 64 bits.
thread_local std::uint64_t running_for = 0;

}  // namespace

RunningMethod::RunningMethod(std::uint64_t incarnation) noexcept { running_for = incarnation; }
RunningMethod::~RunningMethod() { running_for = 0; }

bool is_running_method_of(std::uint64_t incarnation) noexcept { return running_for == incarnation; }

}  // namespace cohort::rpc
