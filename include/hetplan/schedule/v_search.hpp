// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The best orders of a V shape that repeat a block.

#include <array>
#include <cstddef>
#include <vector>

#include <hetplan/schedule/order_beam.hpp>
#include <hetplan/schedule/partial_orders.hpp>

namespace hetplan::schedule::detail {

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

#ifndef HETPLAN_COMPILED
#include <hetplan/schedule/v_search.ipp>
#endif
