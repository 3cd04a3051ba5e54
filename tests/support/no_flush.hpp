// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A user-defined step law without a bound.

#include <algorithm>

#include <hetplan/estimate/step_law.hpp>

namespace hetplan::test {

/// PipeDream-2BW: the pipeline never drains; a stage adds its collective to each iteration.
struct no_flush {
  [[nodiscard]] pipeline_tail extend(const pipelining& p, const stage_times& s, const pipeline_tail& behind) const {
    return {std::max(p.microbatches * s.total_s + s.collective_s, behind.reach_s), 0};
  }
  [[nodiscard]] pipeline_tail extend(const pipelining&, const link_times& c, const pipeline_tail& behind) const {
    return {std::max(c.own_s, behind.reach_s), 0};
  }
  [[nodiscard]] double response_s(const pipelining&, const pipeline_tail& whole) const { return whole.reach_s; }
};

}  // namespace hetplan::test
