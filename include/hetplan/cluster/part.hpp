// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A view: some of a cluster's devices, on a network with other capacities.

#include <span>
#include <vector>

#include <hetplan/cluster/cluster.hpp>

namespace hetplan {

/// A part of a cluster and how its devices are numbered here and there. Resources keep their ids.
struct cluster_part {
  cluster devices;
  std::vector<device_id> original;  ///< by id in the part: the id in the whole
  std::vector<device_id> renamed;   ///< by id in the whole: the id in the part, invalid where it is left out
};

/// Source  semantics, section 10: what is left of a cluster when devices are away.
/// @param keep        by device of the whole: is it in the part; at least one is.
/// @param capacities  by resource, finite >= 0; one at 0 takes its routes away.
/// Throws  invalid_input (no device is kept, a size does not match).   Complexity  O(devices^2 + resources).
[[nodiscard]] cluster_part part_of(const cluster& whole, std::span<const char> keep, std::span<const bytes_per_second> capacities);

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/cluster/part.ipp>
#endif
