// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/core/status.hpp>

#include <chrono>

namespace hetplan {

namespace detail {

[[nodiscard]] HETPLAN_INLINE long long now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace detail

HETPLAN_INLINE stopwatch::stopwatch() : begin_ns_(detail::now_ns()) {}

HETPLAN_INLINE double stopwatch::elapsed_s() const { return static_cast<double>(detail::now_ns() - begin_ns_) * 1e-9; }

}  // namespace hetplan
