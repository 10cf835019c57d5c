#include <cohort/value/context.h>

namespace cohort {
namespace {

constexpr ContextMode kDefaultMode;

}  // namespace

namespace detail {

constinit thread_local const ContextMode* innermost_mode = &kDefaultMode;

}  // namespace detail

bool is_outside_scopes() noexcept { return detail::innermost_mode == &kDefaultMode; }

}  // namespace cohort
