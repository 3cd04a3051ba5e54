// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Dora's recurrence to read: nothing pruned, nothing dropped. What two_substate_dp finds faster.

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <hetplan/partition/candidate_costs.hpp>
#include <hetplan/partition/group_links.hpp>
#include <hetplan/partition/search_result.hpp>
#include <hetplan/partition/search_tables.hpp>
#include <hetplan/plan/step_law.hpp>

namespace hetplan::partition {

/// Blocks [first, last) of the sequence on a group of the device space.
struct plain_stage {
  std::size_t first, last, group;
};
struct plain_plan {
  double score = std::numeric_limits<double>::infinity();  ///< infinite: nothing keeps the limits
  std::vector<plain_stage> stages = {};                    ///< the last one first
};

/// The best plan of a serial sequence, by the recurrence as it stands in the paper, from the last block to the first.
///
/// @param law   tail of the pipeline -> longer tail; any, monotone or not, for nothing is dropped.
/// Complexity   all plans of the space: for a dozen blocks on a few devices.
/// Throws       invalid_input: a device space that is none.
/// Determinism  ties: the first found.
/// Source       Dora, section 4.1, eqs. 3-5. Deviations: those of two_substate_dp.
template <step_law Law>
[[nodiscard]] plain_plan plain_dp(const search_tables& t, const device_space& space, const plan& blank, const any_objective& objective,
                                  const Law& law, const search_options& options = {}) {
  struct partial_pipeline {
    pipeline_tail tail = {};
    stage_budget budget = {};
    std::vector<plain_stage> stages = {};
  };
  require_device_space(space, t.cluster, "plain_dp");
  const candidate_costs costs(t.table, space, t.cluster, t.slopes, blank, options.keep_budgets);
  const group_links links(space, t.cluster.network(), blank);
  const warmup_levels warmup(blank, options);
  const pipelining job = pipelining_of(blank, options.warmup);
  const std::size_t blocks = t.sequence.size();
  // Q(l, n): the blocks from l on, with the devices of state n taken; in as many stages as each has.
  std::vector Q(blocks + 1, std::vector(space.states(), std::vector<partial_pipeline>()));
  Q[blocks][0].push_back({});
  plain_plan best;

  /// One stage more: blocks [first, l) on a group, and the link to what is behind. Nothing where they break a limit.
  const auto prepend = [&](std::size_t first, std::size_t l, std::size_t group, partial_pipeline next) -> std::optional<partial_pipeline> {
    const int in_flight = warmup.in_flight(static_cast<int>(next.stages.size()) + 1);
    const placed_stage stage = costs.place(first, l, group, in_flight);
    if (!stage.exists || next.stages.size() == static_cast<std::size_t>(options.max_stages)) return {};
    if (l < blocks) {
      double forward = 0, gradient = 0;
      for (const crossing& c : t.crossings.crossings(l)) {
        forward += c.forward_bytes;
        gradient += c.gradient_bytes;
      }
      next.tail = law.extend(job, links.time(links.between(group, next.stages.back().group), forward, gradient), next.tail);
    }
    next.tail = law.extend(job, stage_times{stage.total_s, stage.backward_s, stage.collective_s}, next.tail);
    next.budget += costs.budget(first, l, group, in_flight, costs.traffic(t.cuts.bytes_in(first, l), t.cuts.bytes_in(l, blocks)));
    next.stages.push_back({first, l, group});
    return next;
  };

  for (std::size_t l = blocks; l > 0; --l) {
    for (std::size_t n = 0; n < space.states(); ++n) {
      for (const partial_pipeline& behind : Q[l][n]) {
        for (const auto& [group, to] : space.moves[n]) {
          for (std::size_t first = 0; first < l; ++first) {
            if (!t.sequence.is_stage(first, l)) continue;  // a piece of one chain (eq. 3) or whole chains (eq. 4)
            auto next = prepend(first, l, group, behind);
            if (!next) continue;
            if (first > 0) {
              Q[first][to].push_back(*std::move(next));
              continue;
            }  // all blocks: the best is the answer (eq. 5)
            const double response_s = std::max(law.response_s(job, next->tail), next->budget.stretch_s);
            if (!std::isfinite(response_s) || response_s > next->budget.limit_s) continue;
            const double score = detail::checked_score(objective, response_s, next->budget.energy_J + next->budget.idle_W * response_s);
            if (score < best.score) best = {score, std::move(next->stages)};
          }
        }
      }
    }
  }
  return best;
}

}  // namespace hetplan::partition
