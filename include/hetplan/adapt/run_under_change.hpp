// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A run of the simulator from now on, in an environment that changes meanwhile.

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/adapt/environment.hpp>
#include <hetplan/core/at_most.hpp>

namespace HETPLAN_NAMESPACE::adapt {

/// Runs something until it ends, a device that it needs leaves, or the time is up, and says when.
///
/// What ends, but for rounding, when it would be cut off or held up, has ended: then it is run as far as that time and the tolerance.
/// @param run   from simulator_options to something that says whether it `ended`.
/// @param halt  not after a given time: when it is given up; infinite: it is not.
/// Complexity   the runs: their windows grow by four from twice a guess; one more for each speed and capacity that becomes 0 before it
///              ends, and where it does not.
/// Source       semantics, section 10 (a device that leaves at the end of an iteration).
template <class Run, class Halt>
[[nodiscard]] auto run_under_change(const environment& e, std::span<const device_id> needed, double now_s, double duration_s,
                                    double guess_s, Run&& run, Halt&& halt) {
  for (double window = std::max(2 * guess_s, 1e-3);; window *= 4) {
    double until = std::min(now_s + window, duration_s);
    const double loss = std::min(e.next_loss(needed, until), halt(until));
    until = std::min(until, loss);
    auto result = run(e.options(now_s, until));
    if (!result.ended && until != loss && until < duration_s) continue;
    std::vector<double> ends = e.halts(until);
    if (!result.ended) ends.push_back(until);
    for (const double end : ends) {
      simulator_options o = e.options(now_s, end);
      o.until = seconds(end * (1 + relative_tolerance) - now_s);
      auto in_time = run(o);
      if (in_time.ended) return std::pair(std::move(in_time), until);
    }
    return std::pair(std::move(result), until);
  }
}

}  // namespace HETPLAN_NAMESPACE::adapt
