// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A pipeline in whole numbers, so that instants which are the same are equal whatever the unit of time.

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <hetplan/schedule/pipeline_times.hpp>

namespace HETPLAN_NAMESPACE::schedule::detail {

using ticks = std::int64_t;
/// Later than any time; sums of a few do not overflow.
inline constexpr ticks never = std::int64_t{1} << 60;

/// The largest unit of which all given times are multiples, to one part in 10^11; where there is none, 2^-36 of the longest.
///
/// Source  ours: semantics, section 1 calls instants the same that differ by one part in 10^9.
[[nodiscard]] double common_unit(const std::vector<double>& times);

/// The three phases of a stage are numbered as in `phase`.
struct tick_table {
  explicit tick_table(const pipeline_times& p);

  struct edge {
    std::size_t stage;  ///< at the other end
    ticks delay;
  };
  struct stage {
    std::size_t device;
    std::array<ticks, 3> length;
    std::vector<edge> ahead, behind;  ///< whose outputs it takes, with the delay forward; who takes its own, with the delay backward
    double activation, kept;
    ticks window = 0;  ///< from the start of a microbatch's forward to that of its gradient, at least
  };
  struct device {
    std::vector<std::size_t> stages;  ///< ascending
    double memory = 0;                ///< less what a backward may recompute, plus one part in 10^9
    ticks work = 0;                   ///< of a microbatch
    ticks first_start = 0;            ///< no order lets it begin earlier
  };

  [[nodiscard]] std::size_t tasks() const { return 3 * stages.size() * m; }

  std::vector<stage> stages;
  std::vector<device> devices;
  /// By stage: those of its device whose forwards all run before its last gradient, and whether their gradients do.
  std::vector<std::vector<std::pair<std::size_t, bool>>> before_last_gradient;
  std::size_t m;
  double unit;
  bool chain = true;         ///< no stage has two inputs or two consumers
  bool starts_known = true;  ///< every order lets every device begin at its `first_start`
};

}  // namespace HETPLAN_NAMESPACE::schedule::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/schedule/tick_table.ipp>
#endif
