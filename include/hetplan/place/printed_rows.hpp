// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Rows of Moirai's mixed-integer program as the paper prints them: the formulation to compare with.

#include <hetplan/place/placement_columns.hpp>

namespace HETPLAN_NAMESPACE::place {

/// Adds eqs. 4a, 4b, 6, 7 and 8 to a program: a completion for every node, z and u for every transfer, a disjunction with large numbers
/// for every two operators on every device and every two transfers at every port. M^s = M^l = M^r is the limit of the makespan, the
/// least that is safe whatever is known: no start is below 0, no completion above the limit.
///
/// Complexity  O(operators^2 x devices + transfers^2 x channels) rows.
/// Source      Moirai, section III-D. Deviations:
///             - Eq. 4a for direct successors; for indirect ones it follows.
///             - Eqs. 6 and 8 once for every unordered pair: the other order has the same two rows with delta negated.
///             - Eq. 6 excludes pairs of which one is a successor of the other; so does eq. 8, in the augmented graph.
///             - Eq. 7: pairs of devices without a route have no u, and then no two ends of an edge.
///             - Eq. 8 is printed for one port out and one port in per device, though the text speaks of channels. Channels per link
///               have the same rows with the u of a channel in place of z and x.
///             - Copies per device are ours: a node for each output and receiving device; a reader waits for its device's.
void add_printed_rows(placement_columns& c);

}  // namespace HETPLAN_NAMESPACE::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/printed_rows.ipp>
#endif
