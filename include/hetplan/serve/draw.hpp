// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Random numbers that depend on what they are for, not on who asked before.

#include <cstdint>

#include <hetplan/core/linkage.hpp>

namespace hetplan::serve {

/// A number in [0, 1) that depends on a seed, a number (of a request), a turn from 0 to 63 and an attempt, and on nothing else. Handlers
/// take the turns 0 to 62: how often the request was passed on.
/// Source  SplitMix64 (Steele, Lea and Flood, OOPSLA 2014); semantics, section 11 (passing on).
[[nodiscard]] constexpr double draw(std::uint64_t seed, std::uint64_t number, int turn, int attempt = 0) {
  std::uint64_t z = seed + 0x9E3779B97F4A7C15U * (64 * number + static_cast<std::uint64_t>(turn) + 1) +
                    0xD1B54A32D192ED03U * static_cast<std::uint64_t>(attempt);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

}  // namespace hetplan::serve
