// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A plan as a split_spec of torch.distributed.pipelining.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/core/id.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::exchange {

/// A stage begins before a block, or behind one.
struct torch_split_point {
  std::size_t block = 0;
  bool at_end = false;  ///< SplitPoint.END; else BEGINNING

  friend bool operator==(const torch_split_point&, const torch_split_point&) = default;
};

/// What torch.distributed.pipelining is told about who has what.
struct torch_split {
  std::vector<device_id> devices;  ///< by stage
  std::vector<torch_split_point> points;
};

/// Splits for torch.distributed.pipelining.
///
/// A stage begins before its first block. Where the head is a stage of its own, that is the end of the last block; a module is
/// named once, so boundaries behind the last block without one (counted from the back) are the ends of the blocks before them.
///
/// Throws      invalid_input (see runtime_stages; a boundary before and behind every block: no module is left to name).
/// Complexity  that of runtime_stages.
/// Source      pytorch/pytorch, torch/distributed/pipelining/_IR.py (pipeline(split_spec), annotate_split_points: a boundary before
///             or behind the call of the named module).
[[nodiscard]] torch_split split_for_torch(const plan& p, const planning_graph& model);

/// Python text that defines `split_spec`.
///
/// @param blocks  where the module has its blocks, as in "model.layers".
/// Throws         as split_for_torch.
[[nodiscard]] std::string torch_split_spec(const plan& p, const planning_graph& model, const cluster& c,
                                           std::string_view blocks = "layers");

}  // namespace hetplan::exchange

#ifndef HETPLAN_COMPILED
#include <hetplan/exchange/export_torch.ipp>
#endif
