// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Measurements that were perhaps meant for a device of another kind.

#include <optional>
#include <string>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan::io {

/// One line about the first layer that has a profile for a kind of which no device is, where a device is timed by its FLOP for
/// want of a profile; none where every device has one, or no profile is left over: a model may know more kinds than a cluster has.
///
/// Complexity  O(layers (kinds of devices + profiles) log of them).
[[nodiscard]] std::optional<std::string> unused_profiles(const planning_graph& model, const cluster& c);

}  // namespace hetplan::io

#ifndef HETPLAN_COMPILED
#include <hetplan/io/unused_profiles.ipp>
#endif
