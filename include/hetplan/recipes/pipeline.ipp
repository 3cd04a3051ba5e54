// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/recipes/pipeline.hpp>

#include <numeric>

#include <hetplan/graph/light_boundaries.hpp>

namespace HETPLAN_NAMESPACE::recipes {

namespace detail {

HETPLAN_INLINE std::vector<std::size_t> cut_positions(const std::vector<double>& cut_bytes) {
  std::vector<std::size_t> positions(cut_bytes.size());
  std::iota(positions.begin(), positions.end(), std::size_t{0});
  if (positions.size() <= 512) return positions;
  positions = light_boundaries(cut_bytes);
  positions.insert(positions.begin(), 0);
  return positions;
}

}  // namespace detail

HETPLAN_INLINE plan_result pipeline(const planning_problem& problem, const any_objective& objective, int keep,
                                    const candidate_observer& observer) {
  return detail::cut_chain(
      problem, objective, keep, "pipeline", 1,
      [](const auto& table, std::size_t first, std::size_t last, device_id d, int size) {
        return table.time(first, last, d, size).total_s;
      },
      [&](double bytes_per_sample, device_id from, device_id to, int size) {
        const auto rate = problem.cluster.network().peak_bandwidth(from, to);
        return rate.value() > 0 ? size * bytes_per_sample / rate.value() : std::numeric_limits<double>::infinity();
      },
      observer);
}

}  // namespace HETPLAN_NAMESPACE::recipes
