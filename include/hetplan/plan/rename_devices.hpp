// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A plan for the same devices under other numbers.

#include <span>

#include <hetplan/plan/plan.hpp>

namespace hetplan {

/// @param to       by device id in the plan: its id in the answer; valid for every device that the plan names.
/// @param devices  how many the answer's cluster has.
/// A prediction goes along: what devices outside do is nothing, what resources carry stays.   Complexity  O(plan).
[[nodiscard]] plan rename_devices(plan p, std::span<const device_id> to, std::size_t devices);

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/plan/rename_devices.ipp>
#endif
