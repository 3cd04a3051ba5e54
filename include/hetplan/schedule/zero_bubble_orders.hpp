// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The zero-bubble scheduler's heuristic, for pipelines and for V shapes.

#include <hetplan/schedule/order_outlook.hpp>
#include <hetplan/schedule/pipeline_times.hpp>

namespace hetplan::schedule {

/// `original`: a warm-up of forwards that fills the time until the first gradient, then gradients and forwards in turn; gradients of
/// weights where a gap or a full memory asks for them. The best over two warm-ups, forwards let out or not, and three rules for short gaps.
///
/// Made for one stage per device; where devices have several it still gives orders that end, but poor ones.
/// Complexity   O(tasks * stages of a device).   Determinism  a change of the unit of time changes no order.
/// Source       Qi et al., Zero Bubble Pipeline Parallelism, 2023, section 3.1.
/// Throws       invalid_input (see check).
[[nodiscard]] orders_by_device zero_bubble_orders(const pipeline_times& p, order_goal goal = order_goal::longest_span);

/// How much a V shape holds at once, in microbatches of both stages of each of p devices.
enum class v_schedule {
  zero_bubble,  ///< ZB-V: p
  half,         ///< V-half: (p + 2) / 2, rounded down
  least         ///< V-min: (p + 4) / 3, rounded down
};
[[nodiscard]] constexpr std::size_t held_by(v_schedule v, std::size_t devices) {
  return v == v_schedule::zero_bubble ? devices : v == v_schedule::half ? (devices + 2) / 2 : (devices + 4) / 3;
}

/// The best repeated block that holds no more than that, nor than the memory of the devices.
///
/// @param p     device d holds stages d and 2 devices - 1 - d (see v_shape).
/// Complexity   some 10^5 blocks looked at, some 10^2 run.   Determinism  as above.
/// Source       Qi et al., Pipeline Parallelism with Controllable Memory, 2024, section 3.
/// Throws       invalid_input (another placement; see check).
[[nodiscard]] orders_by_device v_orders(const pipeline_times& p, v_schedule v, order_goal goal = order_goal::longest_span);

}  // namespace hetplan::schedule

#ifndef HETPLAN_COMPILED
#include <hetplan/schedule/zero_bubble_orders.ipp>
#endif
