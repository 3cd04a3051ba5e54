// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/export_torch.hpp>

#include <range/v3/view/transform.hpp>

#include <hetplan/core/escaped.hpp>
#include <hetplan/exchange/runtime_stages.hpp>
#include <hetplan/io/json_text.hpp>
#include <hetplan/io/text.hpp>

namespace hetplan::exchange {

HETPLAN_INLINE torch_split split_for_torch(const plan& p, const planning_graph& model) {
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

HETPLAN_INLINE std::string torch_split_spec(const plan& p, const planning_graph& model, const cluster& c, std::string_view blocks) {
  const torch_split split = split_for_torch(p, model);
  const auto name = [&](device_id d) { return escaped(c[d].name); };
  const std::string stages = io::joined(split.devices | ranges::views::transform(name));
  std::string points;
  for (const torch_split_point& x : split.points) {
    const std::string module = io::json_text(std::string(blocks) + "." + std::to_string(x.block));
    points += "    " + module.substr(0, module.size() - 1) + ": SplitPoint." + (x.at_end ? "END" : "BEGINNING") + ",\n";
  }
  return "from torch.distributed.pipelining import SplitPoint\n\n# stages: " + stages + "\nsplit_spec = {\n" + points + "}\n";
}

}  // namespace hetplan::exchange
