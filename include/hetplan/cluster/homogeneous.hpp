// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A view: all devices alike, on wires of their own that are all alike.

#include <hetplan/cluster/cluster.hpp>

namespace hetplan {

/// The device in the middle of a cluster by compute rate, the slower of two middles; ties: the smaller id.
///
/// Complexity  O(N log N).  Source  own.
[[nodiscard]] device_id median_device(const cluster& c);

/// What a planner for clusters of equal machines sees: each device is a copy of one of them, with the least memory of all, since
/// whoever may state one memory only states one that all have; each pair has a full-duplex wire of the mean peak bandwidth
/// and the mean latency of the pairs that are joined at finite rates.
///
/// Plans of the view are plans of the cluster where all pairs of devices are joined and each has the accelerators that it
/// splits tensors among: devices keep their ids and names.
///
/// @param like  the device that all look like.
/// Complexity   O(N^2).
/// Source       what Alpa, PipeDream and Dapple assume (Asteroid, section 5.1); which device stands for all is ours.
[[nodiscard]] cluster homogeneous(const cluster& c, device_id like);
/// Each device like the median one.
[[nodiscard]] inline cluster homogeneous(const cluster& c) { return homogeneous(c, median_device(c)); }

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/cluster/homogeneous.ipp>
#endif
