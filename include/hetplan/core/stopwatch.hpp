// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Seconds on the wall clock since something began, for limits on time and for reports.

#include <hetplan/core/linkage.hpp>

namespace hetplan {

/// Runs from its construction on.
class stopwatch {
 public:
  stopwatch();
  [[nodiscard]] double elapsed_s() const;

 private:
  long long begin_ns_;
};

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/core/stopwatch.ipp>
#endif
