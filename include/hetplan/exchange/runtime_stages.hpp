// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A plan as runtimes that split a model between blocks can run it: one device after the other, each with a range of blocks.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/cluster/device.hpp>
#include <hetplan/core/id.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::exchange {

/// One device's part: blocks [first_block, end_block).
struct runtime_stage {
  stage_id stage;
  device_id device;
  std::size_t first_block = 0;
  std::size_t end_block = 0;
  bool has_head = false;  ///< the last stage; a model without a head has one all the same: the runtime's

  [[nodiscard]] std::size_t blocks() const { return end_block - first_block; }
};

namespace detail {

[[noreturn]] void refuse_export(std::string_view runtime, const std::string& why);

struct stage_row {
  std::vector<stage_id> order;     ///< the model's
  std::vector<std::size_t> place;  ///< by layer: of its stage in that order
};

/// Throws invalid_input where the plan is no row of single devices.
stage_row stages_in_a_row(const plan& p, const planning_graph& model, std::string_view runtime);

}  // namespace detail

/// The stages of a plan in the order of the model, as ranges of its blocks. The first one has the embedding, the last one the
/// head; either may have nothing else.
///
/// @param runtime  its name, for messages.
/// Throws          invalid_input, one sentence: the model has no blocks (see find_runtime_layers); several pipelines, a stage with
///                 several devices or tensor parallelism, a device with two stages, no row of stages; a cut inside a block, the
///                 embedding or the head.
/// Complexity      O(layers log layers + edges).
/// Source          ours: what the runtimes of the exports have in common, each of whose headers names its own rule.
[[nodiscard]] std::vector<runtime_stage> runtime_stages(const plan& p, const planning_graph& model, std::string_view runtime);

namespace detail {

/// Throws invalid_input for a plan of training, which the runtime does not do.
void require_inference(const plan& p, std::string_view runtime);

/// A device's name, where a command line has it for an address: a comma would make two of it, a hyphen at its begin an option.
///
/// Throws invalid_input for a name that no machine has.
/// Source  RFC 1123, section 2.1 (names of machines: letters, digits, hyphens, dots), and the underscore that many have all the same.
const std::string& address_of(const device& d, std::string_view runtime);

/// Throws invalid_input for a stage that has nothing but the embedding or the head.
void require_blocks(const std::vector<runtime_stage>& stages, const plan& p, std::string_view runtime);

}  // namespace detail

}  // namespace hetplan::exchange

#ifndef HETPLAN_COMPILED
#include <hetplan/exchange/runtime_stages.ipp>
#endif
