// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The shortest schedule of a small placement table, with its proof: branch and bound over devices, then over orders.

#include <cstddef>

#include <hetplan/core/observer.hpp>
#include <hetplan/core/step_budget.hpp>
#include <hetplan/place/improve_schedule.hpp>
#include <hetplan/place/operator_schedule.hpp>

namespace hetplan::place {

struct optimal_options {
  long long steps = standard_steps / 4;
};

/// Steps that a node of the search costs: narrowing looks at every edge between every two devices, ordering at all pairs of operators.
[[nodiscard]] long long steps_per_node(std::size_t operators, std::size_t edges, std::size_t devices);

/// Chooses a device for one operator after the other, the one on the longest path first, and narrows what is left for the others
/// (device_domains); devices that are alike are tried once. Where all are chosen, the order of operators on devices and of transfers on
/// channels is a disjunctive graph, searched likewise (disjunctive_search). Where half of the steps do not suffice, the rest goes into
/// proofs that no schedule is shorter than something in between, so that the bound rises.
///
/// @param known  a schedule to begin with and its bound; may hold none. The answer is never longer.
/// @return       gap 0: proven, to a part in 1e9. Infeasible: proven that nothing keeps memory and routes. Stopped: the steps ended, or an
///               observer, who is asked after each search below a limit; then the best so far with its bound. None found: the steps ended
///               before any. Feasible with a gap, under contention::shared: no schedule in which transfers take turns is shorter, and the
///               bound holds for every way to share; between the two is what turns may cost.
/// Complexity    exponential; some 1e5 to 1e6 steps a second. Ten operators on four devices take milliseconds.
/// Throws        invalid_input: more than 64 devices.
/// Determinism   yes, unless the observer stops it.
/// Source        ours; Moirai hands its program (eqs. 4-8) to Gurobi, see solve_placement.hpp. Bounds that are proven from below:
///               "destructive improvement" (Klein and Scholl, 1999).
[[nodiscard]] operator_schedule optimal_schedule(const placement_table& t, const placement_rules& r, operator_schedule known = {},
                                                 const optimal_options& options = {}, const any_observer<schedule_improved>& observer = {});

}  // namespace hetplan::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/optimal_schedule.ipp>
#endif
