// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A view: the same devices where every pair has its peak bandwidth to itself.

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cluster/topology.hpp>

namespace hetplan {

/// What a planner sees that knows bandwidths between pairs and nothing of contention.
///
/// Plans of the view are plans of the cluster: devices keep their ids and names. A plan's latency here bounds nothing; but no
/// schedule on the cluster ends before the best schedule of the same plan on the view with full-duplex wires.
///
/// @param wires  full: one for each direction; half: one for both, as fast as the slower direction, so that what goes there and
///               what comes back add up, as in Asteroid, eq. 6.
/// Complexity    O(N^2) for N devices.  Source: the "D2D" setting of Dora, section 2.2 and Fig 2.
[[nodiscard]] cluster uncontended(const cluster& c, duplex wires = duplex::full);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/cluster/uncontended.ipp>
#endif
