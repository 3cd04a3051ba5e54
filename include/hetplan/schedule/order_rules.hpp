// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Rules for device orders: zero-bubble rounds, V shapes, dispatch rules, interleaved 1F1B.

#include <array>
#include <cstddef>
#include <vector>

#include <hetplan/schedule/order_beam.hpp>
#include <hetplan/schedule/partial_orders.hpp>
#include <hetplan/schedule/pipeline_times.hpp>

namespace hetplan::schedule::detail {

// Orders in rounds: a gradient passes up the pipeline, then a microbatch passes down, and weight gradients fill the gaps.

struct round_options {
  std::vector<int> warmup;     ///< by stage: forwards before its first gradient, as far as memory admits them
  std::vector<gap_rule> gaps;  ///< by device: gaps that take weight gradients
  std::vector<bool> skip;      ///< by stage: true if a stage more than one forward ahead skips a forward that would delay a gradient
};

/// Returns by stage the forwards that fit before its first gradient arrives; with `one_more` also the forward during which it arrives.
[[nodiscard]] std::vector<int> filling_warmup(const tick_table& t, bool one_more);

/// Returns the sequence of the rounds. Complexity O(tasks * stages of a device). Source: Qi et al., Zero Bubble, 2023, section 3.1.
[[nodiscard]] std::vector<partial_orders::task> orders_in_rounds(const tick_table& t, const round_options& options);

/// Returns the settings of the paper's grid: one more forward or not, skipped forwards or not, three gap rules.
/// Source  Qi et al., Zero Bubble Pipeline Parallelism, 2023, section 3.1.
[[nodiscard]] std::vector<round_options> round_grid(const tick_table& t);

[[nodiscard]] found_orders best_rounds(const tick_table& t, order_goal goal);

/// Returns the best orders of hill climbing from each setting of the grid. A move changes the warm-up of one stage or of all up to it, a
/// gap rule, or a skip. It is kept if it lowers the goal or, at the same goal, the total by which devices exceed `target`.
///
/// @param steps  approximate limit on tasks scheduled; keeps the remainder.
/// Complexity    steps.   Source  ours.
[[nodiscard]] found_orders searched_rounds(const tick_table& t, order_goal goal, ticks target, long long& steps);

// V shapes: the passes of one microbatch, repeated with a fixed period.

/// Slots of one microbatch's passes. A device has six per microbatch: two forwards, two input gradients, two weight gradients.
struct v_block {
  std::array<int, 4> step = {};  ///< slots from one device to the next: forward down and up, gradient down and up
  std::array<int, 3> turn = {};  ///< slots from one direction to the next, on the device where it turns
  int slots = 0;                 ///< from the first forward to the last input gradient
  double peak = 0;               ///< most stage activations that a device holds
};

/// True if device d holds stages d and 2 devices - 1 - d of a chain.
[[nodiscard]] bool is_v_shape(const tick_table& t);

/// Returns the shortest `most` blocks in which no two passes of a device collide and whose activations fit, the shortest first.
///
/// @param memory  in activations of a stage; a pending weight gradient keeps half of one.
/// Complexity     O(devices) for each of 6^7 blocks at most; most collide in their first passes.
/// Source         Qi et al., Pipeline Parallelism with Controllable Memory, 2024, sections 3.2 and 3.3: building blocks, their lifespans.
[[nodiscard]] std::vector<v_block> v_blocks(std::size_t devices, double memory, std::size_t most);

/// Returns the sequence of a repeated block; each task starts as early as its predecessors allow.
[[nodiscard]] std::vector<partial_orders::task> orders_of_block(const tick_table& t, const v_block& block,
                                                                const std::vector<gap_rule>& gaps, bool pull = false);

/// Returns the sequence of ZB-V: forwards until gradients arrive, then on each device a forward and a gradient of each stage in turn.
/// Source  Qi et al., Pipeline Parallelism with Controllable Memory, 2024, section 3.4.
[[nodiscard]] std::vector<partial_orders::task> zero_bubble_v(const tick_table& t, const std::vector<gap_rule>& gaps, bool pull = false);

struct v_orders {
  std::vector<found_orders> as_they_are;  ///< one gap rule for all devices; the best first
  std::vector<found_orders> gaps_chosen;  ///< after hill climbing over the gap rules of single devices; the best first
};

/// Returns the best orders of building blocks and ZB-V.
///
/// @param most   limit on orders of each kind.
/// @param steps  approximate limit on tasks scheduled; keeps the remainder.
/// Complexity    steps.   Source  Qi et al., Pipeline Parallelism with Controllable Memory, 2024; the choice of gaps is ours.
[[nodiscard]] v_orders searched_v(const tick_table& t, order_goal goal, ticks target, std::size_t most, long long& steps);

}  // namespace hetplan::schedule::detail

namespace hetplan::schedule {

/// Order of the classes of ready tasks.
enum class dispatch_rule {
  compact,  ///< forward, input gradient, weight gradient: bubbles are filled as early as possible (DeepCEE, section 3.3.1)
  eager     ///< input gradient, forward, weight gradient: activations are freed as early as possible
};

/// Returns the orders of a dispatch rule: a free device takes a ready task of the first class that has one, with the least microbatch,
/// then the least stage. A forward is ready if its device has room for it and for one microbatch of each of the device's stages that has
/// not had this microbatch; in a chain these are the later ones. So no memory that holds one of each causes a deadlock.
///
/// Complexity   O(tasks * stages).   Determinism  nothing is random; a change of the unit of time changes no order.
/// Source       DeepCEE, section 3.3.1; ties and memory as in semantics, section 7.
/// Throws       invalid_input (see check).
[[nodiscard]] orders_by_device dispatched_orders(const pipeline_times& p, dispatch_rule rule);

namespace detail {
[[nodiscard]] std::vector<partial_orders::task> dispatched_sequence(const tick_table& table, dispatch_rule rule);
}  // namespace detail

/// Returns the orders of interleaved 1F1B: each device runs its stages in groups of as many microbatches as there are devices, and after a
/// warm-up alternates a forward and a backward. With one stage per device it is 1F1B.
///
/// @param p        device d holds stages d, d + devices, … of a chain (see interleaved).
/// @param split    true: the weight gradient follows the input gradient, which is sent before it; false: backwards are whole.
/// Complexity      O(tasks).   Source  Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters, 2021, section 2.2.
/// Throws          invalid_input (another placement; see check). Memory is not checked.
[[nodiscard]] orders_by_device interleaved_orders(const pipeline_times& p, bool split = false);

namespace detail {
/// Returns forwards and input gradients of the interleaved orders by device; none for another placement.
[[nodiscard]] std::vector<std::vector<partial_orders::task>> interleaved_passes(const tick_table& t);
}  // namespace detail

/// Returns the orders of `original`: warm-up forwards fill the time until the first gradient, then gradients and forwards alternate.
/// Weight gradients fill gaps or free a full memory. The best over two warm-ups, skipped forwards or not, and three rules for short gaps.
///
/// Made for one stage per device; with several stages the orders end, but are poor.
/// Complexity   O(tasks * stages of a device).   Determinism  a change of the unit of time changes no order.
/// Source       Qi et al., Zero Bubble Pipeline Parallelism, 2023, section 3.1.
/// Throws       invalid_input (see check).
[[nodiscard]] orders_by_device zero_bubble_orders(const pipeline_times& p, order_goal goal = order_goal::longest_span);

/// V schedules by memory: how many microbatches of both its stages each of p devices holds at most.
enum class v_schedule {
  zero_bubble,  ///< ZB-V: p
  half,         ///< V-half: (p + 2) / 2, rounded down
  least         ///< V-min: (p + 4) / 3, rounded down
};
[[nodiscard]] constexpr std::size_t held_by(v_schedule v, std::size_t devices) {
  return v == v_schedule::zero_bubble ? devices : v == v_schedule::half ? (devices + 2) / 2 : (devices + 4) / 3;
}

/// Returns the best orders of a repeated block within held_by microbatches and the memory of the devices.
///
/// @param p     device d holds stages d and 2 devices - 1 - d (see v_shape).
/// Complexity   some 10^5 blocks examined, some 10^2 run.   Determinism  as zero_bubble_orders.
/// Source       Qi et al., Pipeline Parallelism with Controllable Memory, 2024, section 3.
/// Throws       invalid_input (another placement; see check).
[[nodiscard]] orders_by_device v_orders(const pipeline_times& p, v_schedule v, order_goal goal = order_goal::longest_span);

}  // namespace hetplan::schedule

#ifndef HETPLAN_SEPARATE
#include <hetplan/schedule/order_rules.ipp>
#endif
