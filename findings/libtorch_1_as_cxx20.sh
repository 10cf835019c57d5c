#!/usr/bin/env bash
# Headers of libtorch 1.13 compile as C++20 with GCC, and not with Clang. ATen/core/List.h defaults a constructor which needs
# that of std::vector<c10::IValue> where IValue is only declared. A vector's functions are constexpr in C++20, and Clang
# instantiates them at that place, GCC at the end of the file. As C++17 both take the headers.
#
# Seen with libtorch-dev 1.13.1+dfsg-4, Clang 14.0.6 and libstdc++ 12 of Debian 12; Clang 19.1.7 says the same.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq libtorch-dev=1.13.1+dfsg-4 libgoogle-glog-dev=0.6.0-2 libgflags-dev=2.2.2-2 clang-14=1:14.0.6-12 \
  libclang-common-14-dev=1:14.0.6-12 libclang-cpp14=1:14.0.6-12 libllvm14=1:14.0.6-12 2>warnings || { cat warnings >&2; exit 1; }
for package in *.deb; do dpkg -x "$package" root; done
LD_LIBRARY_PATH=$(dirname "$(find "$PWD/root" -name 'libLLVM-14.so.1')")
export LD_LIBRARY_PATH

echo '#include <torch/torch.h>' >program.cpp
compile() {
  "$@" -fsyntax-only -w -I root/usr/include -I root/usr/include/x86_64-linux-gnu -I root/usr/include/torch/csrc/api/include \
    program.cpp 2>errors
}
for compiler in g++-12 root/usr/lib/llvm-14/bin/clang++; do
  for standard in 17 20; do
    if compile "$compiler" -std=c++$standard; then result=compiles; else result="$(grep -o -m 1 "incomplete type.*" errors)"; fi
    echo "$(basename "$compiler"), C++$standard: $result"
  done
done | tee seen
diff - seen <<'SEEN' || { echo "changed: the lines with < were seen before" >&2; exit 1; }
g++-12, C++17: compiles
g++-12, C++20: compiles
clang++, C++17: compiles
clang++, C++20: incomplete type 'c10::IValue'
SEEN
