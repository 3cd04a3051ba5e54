// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/reorder_transfers.hpp>

#include <hetplan/adapt/goal.hpp>
#include <hetplan/core/error.hpp>

namespace hetplan::adapt {

HETPLAN_INLINE std::optional<reaction> reorder_transfers(const planning_problem& problem, known_plans& known, const situation& s,
                                                         const policy_options& options) {
  if (s.running == nullptr) throw invalid_input("reorder_transfers: no plan runs; expected one in situation::running");
  const std::size_t running = known.add(*s.running);
  const auto scheduled = known.reschedule(running, s.noticed, s.traffic, s.wanted, options.network);
  if (!scheduled) return std::nullopt;
  const goal wanted(problem.job, s);
  const auto serves = [&](std::size_t i) { return known.serves(wanted, i, s.noticed, s.traffic); };
  if (!serves(*scheduled).beats(serves(running))) return std::nullopt;
  return reaction{
      .next = known[*scheduled], .reached = rung::network, .thinking = options.thinking.reschedule, .reason = "transfers in another order"};
}

}  // namespace hetplan::adapt
