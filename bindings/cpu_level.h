// Which CPU levels this machine runs, asked of the CPU and of the operating system.
#pragma once

#include <string_view>
#include <vector>

namespace tack {

// The least first: x86-64, x86-64-v2, ... ; or aarch64; or nothing where neither is known.
std::vector<std::string_view> cpu_levels();

}  // namespace tack
