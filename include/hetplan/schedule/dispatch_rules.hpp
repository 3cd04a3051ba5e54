// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Orders that devices find by themselves: whoever is free takes the first ready task of the first class that has one.

#include <vector>

#include <hetplan/schedule/partial_orders.hpp>

namespace hetplan::schedule {

/// Which class of ready tasks goes first.
enum class dispatch_rule {
  compact,  ///< forward, gradient of inputs, gradient of weights: bubbles are filled as early as possible (DeepCEE, section 3.3.1)
  eager     ///< gradient of inputs, forward, gradient of weights: activations go as early as possible
};

/// Within a class the least microbatch goes first, then the least stage. A forward is ready when its device has room for it and for
/// one microbatch of each of the device's stages that has not had this microbatch, which in a chain are the later ones; so no memory that
/// holds one of each ends in a deadlock.
///
/// Complexity   O(tasks * stages).   Determinism  none drawn; a change of the unit of time changes no order.
/// Source       DeepCEE, section 3.3.1; ties and memory as in semantics, section 7.
/// Throws       invalid_input (see check).
[[nodiscard]] orders_by_device dispatched_orders(const pipeline_times& p, dispatch_rule rule);

namespace detail {
[[nodiscard]] std::vector<partial_orders::task> dispatched_sequence(const tick_table& table, dispatch_rule rule);
}  // namespace detail

}  // namespace hetplan::schedule

#ifndef HETPLAN_COMPILED
#include <hetplan/schedule/dispatch_rules.ipp>
#endif
