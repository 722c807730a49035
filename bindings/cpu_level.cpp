#include "cpu_level.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cstdint>

namespace tack {

#if defined(__x86_64__)
namespace {

struct Registers {
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers cpuid(std::uint32_t leaf, std::uint32_t subleaf = 0) {
  Registers r;
  if (__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return {};
  return r;
}

// The register state that the operating system saves: without it the instructions fault.
std::uint64_t extended_control_register() {
  std::uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<std::uint64_t>(high) << 32) | low;
}

constexpr bool has(std::uint64_t value, std::uint64_t bits) { return (value & bits) == bits; }

template <typename... Bits>
constexpr std::uint32_t bits(Bits... positions) {
  return (0U | ... | (1U << positions));
}

// The x86-64 psABI, section "Micro-Architecture Levels"; bit numbers as in the CPUID manual.
constexpr std::uint32_t kV2Leaf1Ecx =
    bits(0 /*SSE3*/, 9 /*SSSE3*/, 13 /*CX16*/, 19 /*SSE4.1*/, 20 /*SSE4.2*/, 23 /*POPCNT*/);
constexpr std::uint32_t kV2Leaf80000001Ecx = bits(0 /*LAHF-SAHF*/);
constexpr std::uint32_t kV3Leaf1Ecx =
    bits(12 /*FMA*/, 22 /*MOVBE*/, 27 /*OSXSAVE*/, 28 /*AVX*/, 29 /*F16C*/);
constexpr std::uint32_t kV3Leaf7Ebx = bits(3 /*BMI1*/, 5 /*AVX2*/, 8 /*BMI2*/);
constexpr std::uint32_t kV3Leaf80000001Ecx = bits(5 /*LZCNT*/);
constexpr std::uint32_t kV4Leaf7Ebx =
    bits(16 /*AVX512F*/, 17 /*DQ*/, 28 /*CD*/, 30 /*BW*/, 31 /*VL*/);
constexpr std::uint64_t kXmmYmm = 0x06;     // states saved for v3
constexpr std::uint64_t kXmmYmmZmm = 0xE6;  // and for v4: opmask, upper ZMM, ZMM16-31

}  // namespace

std::vector<std::string_view> cpu_levels() {
  std::vector<std::string_view> levels{"x86-64"};
  const Registers leaf1 = cpuid(1);
  const Registers leaf7 = cpuid(7);
  const Registers extended = cpuid(0x80000001);
  if (!has(leaf1.ecx, kV2Leaf1Ecx) || !has(extended.ecx, kV2Leaf80000001Ecx)) return levels;
  levels.push_back("x86-64-v2");
  if (!has(leaf1.ecx, kV3Leaf1Ecx) || !has(leaf7.ebx, kV3Leaf7Ebx) ||
      !has(extended.ecx, kV3Leaf80000001Ecx) || !has(extended_control_register(), kXmmYmm)) {
    return levels;
  }
  levels.push_back("x86-64-v3");
  if (!has(leaf7.ebx, kV4Leaf7Ebx) || !has(extended_control_register(), kXmmYmmZmm)) return levels;
  levels.push_back("x86-64-v4");
  return levels;
}
#elif defined(__aarch64__)
std::vector<std::string_view> cpu_levels() { return {"aarch64"}; }
#else
std::vector<std::string_view> cpu_levels() { return {}; }
#endif

}  // namespace tack
