// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Rows of Moirai's placement problem whose relaxation is close: the formulation for solvers that are to come to an end.

#include <hetplan/place/placement_columns.hpp>

namespace hetplan::place {

/// Adds the rules of time to a program.
///
/// transport: a column for each edge and pair of devices, the flow from its producer's device to its reader's. Columns for times of
/// transfers only where they contend.
/// order: for two nodes that may meet on a machine (a device, a channel) and that no path orders, a binary each way and machine; it
/// is 0 unless both use the machine, and one of the two is 1 if they do.
/// windows: each operator on each device has a head (what must come before it) and a tail (itself and what must come behind it). What they
/// leave no room for is fixed, and they are the big-M.
/// instants: operators at the ends of the graph that take no time, and their transfers that take none, come first and last without a
/// choice. loads: before a node its machine did all that a path or an order puts there; so behind it, and between the first and the last.
///
/// Complexity  O(nodes^2 x machines) rows and binaries.
/// Source      ours, for Moirai's eqs. 4a, 4b, 6, 7 and 8.
void add_tight_rows(placement_columns& c);

}  // namespace hetplan::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/tight_rows.ipp>
#endif
