#include <cohort/value/context.h>

namespace cohort {
namespace {

thread_local ContextScope* innermost = nullptr;
constexpr ContextMode kDefaultMode;

}  // namespace

const ContextMode& current_mode() noexcept { return innermost == nullptr ? kDefaultMode : innermost->mode_; }

ContextScope::ContextScope(ContextMode mode) noexcept : mode_(mode), outer_(innermost) { innermost = this; }

ContextScope::~ContextScope() { innermost = outer_; }

}  // namespace cohort
