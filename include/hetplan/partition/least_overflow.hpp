// SPDX-License-Identifier: BSL-1.0
#pragma once
/// When nothing fits: the cut that comes nearest to the devices' memories, so that one can say what is missing.

#include <optional>

#include <hetplan/partition/search_tables.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::partition {

/// The plan whose fullest device is least full, in units of its memory, over a device space; times do not matter.
/// Warm-up is 1 under 1F1B, which needs least. Of fullnesses that no number holds all are alike.
///
/// Shares: one sample to each device; then hand_out with fullness for time.
///
/// Complexity  O(boundaries^2 x moves x microbatch size).
/// Throws      invalid_input: a device space that is none.
/// Determinism ties: the stage that ends later, then the smaller state behind it, then the earlier move.
/// Source      own: a bottleneck recurrence over the space of Dora, section 4.1, eqs. 3-5, with fullness for time.
/// @return     nothing where the space has no plan at all: no group is as small as the microbatch, or no move begins.
[[nodiscard]] std::optional<plan> least_overflow(const search_tables& t, const device_space& space, const plan& blank);

}  // namespace hetplan::partition

#ifndef HETPLAN_COMPILED
#include <hetplan/partition/least_overflow.ipp>
#endif
