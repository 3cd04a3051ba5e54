// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The best orders of a small pipeline, proven.

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include <hetplan/schedule/order_beam.hpp>

namespace hetplan::schedule::detail {

/// What branch and bound came to.
struct optimum {
  found_orders orders;   ///< the given ones, where it found none better
  bool proven = false;   ///< all others come to as much: it was not stopped
  long long states = 0;  ///< visited
};

/// Branch and bound over what devices do next. States of the same counts in which nothing is earlier than in one seen before are left out.
///
/// Of the tasks that the device which can end one first could begin before that end, one comes next (Giffler and Thompson); but where that
/// task is a forward and memory may run short, to wait for another task is a choice as well.
///
/// @param t      with `starts_known`, where spans are the goal; else the bound may be above the optimum.
/// @param given  whose value is to be beaten.
/// @param most   states, at most.
/// Complexity    exponential in the tasks.   Source  ours; Giffler and Thompson, 1960.
[[nodiscard]] optimum proven_optimum(const tick_table& t, order_goal goal, const found_orders& given, long long most);

}  // namespace hetplan::schedule::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/schedule/order_optimum.ipp>
#endif
