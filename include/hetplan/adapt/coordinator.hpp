// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Who coordinates, and what it takes to agree on another when the coordinator is gone.

#include <hetplan/adapt/conditions.hpp>
#include <hetplan/core/id.hpp>
#include <hetplan/core/quantity.hpp>

namespace hetplan::adapt {

/// The device that coordinates: most compute (of all its accelerators), then most usable memory, then the smaller id, among
/// those that are there. The rule reads the cluster's numbers, not present speeds, so that everybody knows the same list.
///
/// Complexity  O(devices).
/// Throws      invalid_input if nobody is there.
/// Source      Dora, section 4.3 (failover of the coordinator); Asteroid, section 5.5: planning runs "on the most powerful
///             remaining device". The ties are ours.
[[nodiscard]] device_id elect_coordinator(const cluster& c, const conditions& now);

/// How long it takes the devices that are there to agree: every one knows the list, so one message from each to each
/// other says who is left. Runs on the network; pairs without a way receive nothing from each other.
///
/// Complexity  that of run_migration on N^2 messages.
[[nodiscard]] seconds election_time(const cluster& c, const conditions& now, bytes message = bytes(64));

}  // namespace hetplan::adapt

#ifndef HETPLAN_COMPILED
#include <hetplan/adapt/coordinator.ipp>
#endif
