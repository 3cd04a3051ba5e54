// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A plan as a split_spec of torch.distributed.pipelining.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/io/json_text.hpp>
#include <hetplan/io/runtime_stages.hpp>

namespace hetplan::io {

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
[[nodiscard]] inline torch_split split_for_torch(const plan& p, const planning_graph& model) {
  const std::vector<runtime_stage> stages = runtime_stages(p, model, "torch");
  const std::size_t blocks = stages.back().end_block;
  torch_split split;
  std::vector<char> cut(blocks + 1, 0);  // before each block, and behind the last
  for (const runtime_stage& s : stages) {
    split.devices.push_back(s.device);
    if (split.devices.size() > 1) cut[s.first_block] = 1;
  }
  std::size_t whole = blocks + 1;  // behind the last place without a cut
  while (whole > 0 && cut[whole - 1] != 0) --whole;
  if (whole == 0) detail::refuse_export("torch", "a split point names a block; the plan has more cuts than blocks");
  for (std::size_t b = 0; b <= blocks; ++b) {
    if (cut[b] != 0) split.points.push_back(b < whole ? torch_split_point{b, false} : torch_split_point{b - 1, true});
  }
  return split;
}

/// Python text that defines `split_spec`.
///
/// @param blocks  where the module has its blocks, as in "model.layers".
/// Throws         as split_for_torch.
[[nodiscard]] inline std::string torch_split_spec(const plan& p, const planning_graph& model, const cluster& c,
                                                  std::string_view blocks = "layers") {
  const torch_split split = split_for_torch(p, model);
  std::string stages, points;
  for (const device_id d : split.devices) stages += (stages.empty() ? "" : ", ") + escaped(c[d].name);
  for (const torch_split_point& x : split.points) {
    const std::string module = json_text(std::string(blocks) + "." + std::to_string(x.block));
    points += "    " + module.substr(0, module.size() - 1) + ": SplitPoint." + (x.at_end ? "END" : "BEGINNING") + ",\n";
  }
  return "from torch.distributed.pipelining import SplitPoint\n\n# stages: " + stages + "\nsplit_spec = {\n" + points + "}\n";
}

}  // namespace hetplan::io
