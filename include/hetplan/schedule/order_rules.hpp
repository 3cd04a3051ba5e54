// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The zero-bubble scheduler's heuristic, for pipelines and for V shapes.

#include <array>
#include <cstddef>
#include <vector>

#include <hetplan/schedule/order_beam.hpp>
#include <hetplan/schedule/partial_orders.hpp>
#include <hetplan/schedule/pipeline_times.hpp>

namespace hetplan::schedule::detail {

// The best orders in rounds, over warm-ups and over which gaps are filled.

// Orders made in rounds: a gradient runs up the pipeline, then a microbatch runs down, and gaps are filled with gradients of weights.

struct round_options {
  std::vector<int> warmup;     ///< by stage: forwards before its first gradient, as far as memory goes
  std::vector<gap_rule> gaps;  ///< by device
  std::vector<bool> skip;      ///< by stage: where it is more than one forward ahead, it lets one out that would delay a gradient
};

/// Forwards that each stage can do before its first gradient comes.
///
/// @param one_more  and the one during which it comes.
[[nodiscard]] std::vector<int> filling_warmup(const tick_table& t, bool one_more);

/// Complexity  O(tasks * stages of a device).   Source  Qi et al., Zero Bubble Pipeline Parallelism, 2023, section 3.1.
[[nodiscard]] std::vector<partial_orders::task> orders_in_rounds(const tick_table& t, const round_options& options);

/// The settings that the paper's grid has: with and without one more forward and letting one out, three rules for gaps.
///
/// Source  Qi et al., Zero Bubble Pipeline Parallelism, 2023, section 3.1.
[[nodiscard]] std::vector<round_options> round_grid(const tick_table& t);

/// The best of the grid.
[[nodiscard]] found_orders best_rounds(const tick_table& t, order_goal goal);

/// From each setting of the grid: changes of one stage, or of all up to it, as long as one is better, by the goal and by how much devices
/// exceed `target` together.
///
/// @param steps       tasks given out, about at most; what is left stays.
/// Complexity  steps.   Source  ours.
[[nodiscard]] found_orders searched_rounds(const tick_table& t, order_goal goal, ticks target, long long& steps);

// The best orders of a V shape that repeat a block.

// V shapes: the forwards and gradients of one microbatch, repeated in a fixed rhythm.

/// When a microbatch passes, in slots of which a device has six a microbatch: two forwards, two gradients of inputs, two of weights.
struct v_block {
  std::array<int, 4> step = {};  ///< from device to device: forward down and up, gradient down and up
  std::array<int, 3> turn = {};  ///< from a direction to the next, on the device where it turns
  int slots = 0;                 ///< from the first forward to the last gradient of inputs
  double peak = 0;               ///< activations of a stage that a device holds at most
};

/// Is device d given stages d and 2 devices - 1 - d of a chain?
[[nodiscard]] bool is_v_shape(const tick_table& t);

/// Those in which no two passes of a device meet and whose activations fit, the shortest first.
///
/// @param memory  in activations of a stage, of which a gradient of weights keeps half.
/// Complexity     O(devices) for each of some 10^5 blocks.
/// Source         Qi et al., Pipeline Parallelism with Controllable Memory, 2024, sections 3.2 and 3.3: building blocks, their lifespans.
[[nodiscard]] std::vector<v_block> v_blocks(std::size_t devices, double memory, std::size_t most);

/// The block repeated, each task as early as what stands before it allows.
[[nodiscard]] std::vector<partial_orders::task> orders_of_block(const tick_table& t, const v_block& block,
                                                                const std::vector<gap_rule>& gaps, bool pull = false);

/// ZB-V: forwards go on until gradients come, then each device takes in turn a forward and a gradient of each of its stages.
///
/// Source  Qi et al., Pipeline Parallelism with Controllable Memory, 2024, section 3.4.
[[nodiscard]] std::vector<partial_orders::task> zero_bubble_v(const tick_table& t, const std::vector<gap_rule>& gaps, bool pull = false);

struct v_orders {
  std::vector<found_orders> as_they_are;  ///< one rule for all gaps; the best first
  std::vector<found_orders> gaps_chosen;  ///< these, with other rules for single devices as long as one is better
};

/// Blocks, and ZB-V's passes.
///
/// @param most   of each kind.
/// @param steps  tasks given out, about at most; what is left stays.
/// Complexity    steps.   Source  Qi et al., Pipeline Parallelism with Controllable Memory, 2024; which gaps are filled is ours.
[[nodiscard]] v_orders searched_v(const tick_table& t, order_goal goal, ticks target, std::size_t most, long long& steps);

}  // namespace hetplan::schedule::detail

namespace hetplan::schedule {

// Orders that devices find by themselves: whoever is free takes the first ready task of the first class that has one.

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

// Interleaved 1F1B.

/// Each device runs its stages in groups of as many microbatches as there are devices, after a warm-up one forward and one backward in
/// turn. With one stage per device it is 1F1B.
///
/// @param p        device d holds stages d, d + devices, … of a chain (see interleaved).
/// @param split    the gradient of the weights follows that of the inputs, which leaves before it; else backwards are whole.
/// Complexity      O(tasks).   Source  Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters, 2021, section 2.2.
/// Throws          invalid_input (another placement; see check). Memory is not asked: the orders hold what they hold.
[[nodiscard]] orders_by_device interleaved_orders(const pipeline_times& p, bool split = false);

namespace detail {
/// Forwards and gradients of inputs of those orders; none where stages are placed otherwise.
[[nodiscard]] std::vector<std::vector<partial_orders::task>> interleaved_passes(const tick_table& t);
}  // namespace detail

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

#ifndef HETPLAN_SEPARATE
#include <hetplan/schedule/order_rules.ipp>
#endif
