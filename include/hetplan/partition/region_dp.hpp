// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Exact splits of a chain of layers over regions under DeepCEE's cost, for one order of the regions or over all of them.

#include <cstddef>
#include <limits>
#include <vector>

#include <hetplan/partition/region_beam.hpp>
#include <hetplan/partition/region_chain.hpp>

namespace hetplan::partition {

/// The most regions that all orders of are searched exactly.
inline constexpr std::size_t max_exact_regions = 12;

struct region_dp_options {
  region_cost cost = region_cost::printed;
  region_use use = region_use::all;
  long long most_extensions = 300'000'000;  ///< weighed, in a few seconds; then the best so far is the answer, status stopped
};

/// The best split of regions in this order.
///
/// From the last layer to the first: with a_s = F_s + c_s + max(0, c_s - F_s),
///     G(s, l) = min over l' of max(m T_s + AL_s, a_s + G(s + 1, l')),
/// for eq. 1 is the largest of terms that all grow by a_s where a stage is put in front. Under serial_links the second maximum grows by
/// F_s + c_s instead, so a cell keeps every pair (largest term of eq. 1, largest of all) that no other is below in both.
///
/// @param order  regions, each once at most. region_use::all: each has a stage; any: may be left out.
/// @return       feasible, or infeasible with a proof; or stopped, without a split.
/// Complexity    O(R L^2) for R regions and L positions, O(R^2 L^2) with region_use::any; times the pairs of a cell, a few, under
///               serial_links. Memory O(R L^2).
/// Throws        invalid_input (a chain that is none, an order with a region twice or that the chain lacks); invalid_model (seconds NaN
///               or negative).
/// Determinism   ties: the earlier region of the order in front, then the earlier boundaries.
/// Source        ours, for DeepCEE, section 3.3.2, eq. 1.
[[nodiscard]] region_result split_in_order(const region_chain& chain, const std::vector<std::size_t>& order,
                                           const region_dp_options& options = {});

/// The best split over all orders of at most max_exact_regions regions: the same recurrence over (set of the regions behind, the one in
/// front, position).
///
/// The beam's split is the first best one known. A cell (U, g, l) is left out where the regions outside U cannot hold the layers before l,
/// or those of U the others, each stage below the best known; and where its value and what at least lies before it, by stages in any
/// regions, reach the best known. Neither needs times that grow with a run.
///
/// @return       feasible: a best split; infeasible, with a proof; or stopped: the best so far, if any.
/// Complexity    O(2^R R^2 L^2) at worst; what the bounds leave is measured by bench_regions. Memory O(2^R R L + R L^2).
/// Throws        invalid_input (a chain that is none, too many regions); invalid_model (seconds NaN or negative).
/// Determinism   yes; ties: the beam's split, else the first found.
/// Source        ours, for DeepCEE, section 3.3.3, whose beam it judges.
[[nodiscard]] region_result split_exactly(const region_chain& chain, const region_dp_options& options = {});

/// What a planner asks for: split_exactly up to max_exact_regions; the beam above, and then split_in_order of what it found.
///
/// @param beam   its cost and use are those of `options`.
/// @return       feasible for a split of the beam, too, which nothing proves to be best.
/// Throws, Complexity, Determinism  as the parts.
/// Source        DeepCEE, section 3.3.3; the exact parts are ours.
[[nodiscard]] region_result split_regions(const region_chain& chain, const region_dp_options& options = {}, region_beam_options beam = {});

/// The beam beside the exact search.
struct beam_against_exact {
  region_result exact, beam;

  /// By how much the beam's split is slower, relative; infinite where it found none and there is one, 0 where there is none.
  [[nodiscard]] double gap() const;
};
/// Cost and use are the beam's.   Throws, Complexity  as the two.
[[nodiscard]] beam_against_exact compare_with_exact(const region_chain& chain, const region_beam_options& beam = {},
                                                    long long most_extensions = region_dp_options{}.most_extensions);

}  // namespace hetplan::partition

#ifndef HETPLAN_COMPILED
#include <hetplan/partition/region_dp.ipp>
#endif
