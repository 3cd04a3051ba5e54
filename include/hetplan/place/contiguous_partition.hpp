// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A DAG in contiguous parts on devices of several kinds: exactly where its ideals can be counted, else along linear orders.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/graph/linear_orders.hpp>
#include <hetplan/place/ideal_dp.hpp>

namespace HETPLAN_NAMESPACE::place {

/// What every partition of nodes 0 ... n-1 has as its largest load at least, contiguous or not: the work as if it could be split
/// (load_bound.hpp), and the node that is heaviest wherever it goes.
///
/// Complexity  of bound_weights.
/// Throws      as ideal_dp.
/// Source      ours.
template <part_load Load>
[[nodiscard]] double partition_bound(std::size_t nodes, std::span<const int> devices, const Load& load) {
  const auto work = detail::work_of(load, nodes, devices);
  double bound = detail::device_counts(devices, work).rest(0, ideal_family(nodes)[0]);
  for (std::size_t v = 0; v < nodes; ++v) {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < devices.size(); ++k) {
      if (devices[k] > 0) least = std::min(least, work[k][v]);
    }
    bound = std::max(bound, least);
  }
  return bound;
}

/// The best partition along the linear orders of a graph, and how far it can be from the best of all.
///
/// @param g       a graph as ideals_of takes it: a planning graph with graph/bgl.hpp.
/// @return        `bound` is partition_bound. None found: none of these orders has a partition that fits, which does not say that the
///                graph has none; infeasible where a node fits no device.
/// Complexity     of ideal_dp with n + 1 ideals, for each order.
/// Throws, Determinism: as ideal_dp; of equal partitions that of the earlier order.
template <class Graph, part_load Load>
[[nodiscard]] ideal_partition linear_partition(const Graph& g, std::span<const int> devices, Load&& load) {
  const std::size_t n = num_vertices(g);
  const auto edges = hetplan::detail::edges_of_dag(g);
  ideal_partition best;
  for (const auto& order : linear_orders(n, edges)) {
    ideal_partition found = ideal_dp(prefixes_of(order), devices, load, best.value);
    found.pairs += best.pairs;
    if (found.status.ok()) best = std::move(found);
    else best.pairs = found.pairs;
  }
  best.ideals = 0;
  best.bound = std::min(best.value, partition_bound(n, devices, load));  // rounding may lift it above
  if (best.parts.empty() && n > 0)
    best.status = best.bound < std::numeric_limits<double>::infinity()
                      ? status{outcome::none_found, "no contiguous partition along the graph's linear orders fits the devices"}
                      : status{outcome::infeasible, "a node fits no device, or there is none",
                               infeasibility_proof{"partitions of " + std::to_string(n) + " nodes",
                                                   {{"devices for the node that is heaviest wherever it goes", 1, 0}},
                                                   0}};
  return best;
}

struct contiguous_options {
  std::size_t max_ideals = 1'000'000;   ///< fewer where 16 bytes for each and each combination of devices come to more than 1 GiB
  long long max_pairs = 2'000'000'000;  ///< of nested ideals to weigh, in the order of 10^7 to 10^8 a second
};

/// The contiguous partition with the smallest largest load.
///
/// @param g       a graph as ideals_of takes it: a planning graph with graph/bgl.hpp.
/// @param devices how many there are of each kind.
/// @param load    what a part costs; a model of part_load.
/// @return        feasible: proven optimal, gap 0. Infeasible: nothing fits. Stopped: more ideals or pairs than the options allow; the
///                best that is known, with its bound; none found where that is none.
/// Complexity     of linear_partition, ideals_of and ideal_dp.
/// Throws, Determinism: as these.
template <class Graph, part_load Load>
[[nodiscard]] ideal_partition contiguous_partition(const Graph& g, std::span<const int> devices, Load&& load,
                                                   const contiguous_options& o = {}) {
  ideal_partition best = linear_partition(g, devices, load);
  const std::size_t n = num_vertices(g);
  const detail::device_counts counts(devices, detail::work_of(load, n, devices));
  const std::size_t most = std::min(o.max_ideals, (std::size_t{1} << 30) / (sizeof(detail::ideal_cell) * counts.states()));
  const auto ideals = ideals_of(g, most);
  if (!ideals) {
    if (best.status.result == outcome::infeasible) return best;
    const bool any = best.status.ok();
    best.status = {any ? outcome::stopped : outcome::none_found,
                   "more than " + std::to_string(most) + " ideals; " +
                       (any ? "the best along linear orders" : "nothing along linear orders fits the devices")};
    return best;
  }
  ideal_partition exact = ideal_dp(*ideals, devices, load, best.value, o.max_pairs);
  exact.pairs += best.pairs;
  if (exact.parts.empty() && !best.parts.empty()) {  // nothing below
    exact.value = best.value;
    exact.parts = std::move(best.parts);
    if (exact.status.result == outcome::infeasible) exact.status = {};
  }
  if (exact.status.result == outcome::stopped) {
    exact.bound = std::min(exact.value, best.bound);
    if (exact.parts.empty()) exact.status.result = outcome::none_found;
  }
  return exact;
}

}  // namespace HETPLAN_NAMESPACE::place
