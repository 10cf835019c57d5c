// What a profiler does with NVTX, as a library that NVTX_INJECTION64_PATH names: keeps the ranges.
#include <string>

#include <nvtx3/nvToolsExt.h>

namespace {

std::string& ranges() {
  static auto& text = *new std::string;
  return text;
}

int push(const char* name) {
  ranges() += std::string("(") + name;
  return 0;
}

int pop() {
  ranges() += ")";
  return 0;
}

}  // namespace

extern "C" {

/// Each range as `(name...)`.
const char* nvtx_ranges() { return ranges().c_str(); }

// NOLINTNEXTLINE(readability-identifier-naming): NVTX looks for this name.
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  const auto* const callbacks = static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable functions = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &functions, &size) != 1)
    return 0;
  *functions[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(&push);
  *functions[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(&pop);
  return 1;
}
}
