// SPDX-License-Identifier: BSL-1.0
#pragma once
/// View of a cluster in which every pair of devices has its peak bandwidth to itself.

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cluster/topology.hpp>

namespace hetplan {

/// Returns the view of a planner that knows the bandwidths between pairs and ignores contention.
///
/// Plans of the view are plans of the cluster: devices keep their ids and names. A plan's latency on the view is no bound, but
/// no schedule on the cluster ends before the best schedule of the same plan on the view with full-duplex wires.
///
/// @param wires  full: one per direction; half: one for both, as fast as the slower direction, so that traffic in both
///               directions adds up, as in Asteroid, eq. 6.
/// Complexity    O(N^2) for N devices.  Source: the "D2D" setting of Dora, section 2.2 and Fig 2.
[[nodiscard]] cluster uncontended(const cluster& c, duplex wires = duplex::full);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/cluster/uncontended.ipp>
#endif
