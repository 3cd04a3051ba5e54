// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Number formats of models and devices: their size, and what stands in for one in which a device does not compute.

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace hetplan {

enum class precision { fp32, tf32, bf16, fp16, fp8, int8, int4 };

inline constexpr std::array<std::pair<std::string_view, precision>, 7> precisions{{{"fp32", precision::fp32},
                                                                                   {"tf32", precision::tf32},
                                                                                   {"bf16", precision::bf16},
                                                                                   {"fp16", precision::fp16},
                                                                                   {"fp8", precision::fp8},
                                                                                   {"int8", precision::int8},
                                                                                   {"int4", precision::int4}}};

[[nodiscard]] constexpr std::string_view to_string(precision p) { return precisions[static_cast<std::size_t>(p)].first; }

[[nodiscard]] constexpr double bytes_per_element(precision p) {
  switch (p) {
    case precision::fp32:
    case precision::tf32: return 4;
    case precision::bf16:
    case precision::fp16: return 2;
    case precision::fp8:
    case precision::int8: return 1;
    case precision::int4: break;
  }
  return 0.5;
}

/// Calls f(p), then f of each precision that may stand in for it, the nearest first, until f returns true; returns whether it did. bf16
/// and fp16 stand in for each other, then a wider format does: int4, int8, bf16, fp16, tf32, fp32; fp8 begins with bf16.
/// Source  semantics, section 3.
template <class F>
constexpr bool any_substitute(precision p, F&& f) {
  constexpr std::array widening{precision::int4, precision::int8, precision::bf16, precision::fp16, precision::tf32, precision::fp32};
  if (f(p)) return true;
  if (p == precision::fp16 && f(precision::bf16)) return true;
  bool wider = p == precision::fp8;  // int4 and int8 cannot stand in for fp8
  for (const precision q : widening) {
    const bool skipped = p == precision::fp8 && (q == precision::int4 || q == precision::int8);
    if (wider && !skipped && f(q)) return true;
    wider = wider || q == p;
  }
  return false;
}

}  // namespace hetplan
