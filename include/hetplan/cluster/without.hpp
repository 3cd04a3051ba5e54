// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Views for planners that do not look at something: memory, or what the network takes.

#include <hetplan/cluster/cluster.hpp>

namespace hetplan {

/// What a planner sees that does not ask whether a plan fits: every device has more memory than any plan takes (1 EB).
///
/// Plans of the view are plans of the cluster, but may not fit there.
/// Source  PipeDream, Dapple and HetPipe as Asteroid, section 5.2, describes them.
[[nodiscard]] cluster without_memory_limits(const cluster& c);

/// What a planner sees that balances work and overlooks what moves: transfers take no time at all.
///
/// Plans of the view are plans of the cluster where all pairs of devices are joined.
/// Source  GPipe's partition as Asteroid, section 5.5, describes it.
[[nodiscard]] cluster without_network_costs(const cluster& c);

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/cluster/without.ipp>
#endif
