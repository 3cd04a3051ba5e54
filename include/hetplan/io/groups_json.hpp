// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What `groups` prints with --json.

#include <string>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/coarsen/device_groups.hpp>

namespace hetplan::io {

/// Regions and their classes by names; then by device, in the cluster's order, names, scores and a row of distances (null where nothing
/// joins two devices); and the merge tree.
[[nodiscard]] std::string write_groups(const coarsen::device_groups& g, const cluster& c);

}  // namespace hetplan::io

#ifndef HETPLAN_COMPILED
#include <hetplan/io/groups_json.ipp>
#endif
