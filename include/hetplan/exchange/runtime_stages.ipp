// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/runtime_stages.hpp>

#include <algorithm>

#include <range/v3/view/drop.hpp>
#include <range/v3/view/zip.hpp>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/exchange/runtime_layers.hpp>
#include <hetplan/io/text.hpp>
#include <hetplan/plan/plain_stages.hpp>
#include <hetplan/plan/stage_graph.hpp>

namespace hetplan::exchange {

namespace detail {

HETPLAN_INLINE void refuse_export(std::string_view runtime, const std::string& why) {
  throw invalid_input("export to " + std::string(runtime) + ": " + why);
}

HETPLAN_INLINE stage_row stages_in_a_row(const plan& p, const planning_graph& model, std::string_view runtime) {
  const auto fail = [&](const std::string& why) { refuse_export(runtime, why); };
  if (p.pipeline_count() > 1) fail("it runs one pipeline; the plan has " + std::to_string(p.pipeline_count()));
  std::vector<device_id> taken;
  for (const stage& s : p.stages) {
    const std::string name = "stage " + io::in_quotes(s.name);
    if (const std::string more = beyond_plain(s); !more.empty()) fail("it knows stages of whole layers; " + name + " is " + more);
    if (s.devices.size() > 1) fail("it gives a stage one device; " + name + " has " + std::to_string(s.devices.size()));
    const assignment& a = s.devices.front();
    if (a.tensor_parallel > 1) {
      fail("it splits a model between blocks; " + name + " splits its layers " + std::to_string(a.tensor_parallel) + " ways");
    }
    if (std::find(taken.begin(), taken.end(), a.device) != taken.end()) {
      fail("it gives a device one range of blocks; that of " + name + " has another stage");
    }
    taken.push_back(a.device);
  }
  const stage_graph stages = make_stage_graph(p, model);
  stage_row row{stages.topological, std::vector<std::size_t>(model.size())};
  for (std::size_t k = 0; k < row.order.size(); ++k) {
    for (const layer_id l : p[row.order[k]].layers) row.place[l.index()] = k;
    if (k + 1 == row.order.size()) break;
    const auto& out = stages[row.order[k]].out;
    const stage_id next = row.order[k + 1];
    if (out.size() != 1 || stages.edges[out.front()].to != next) {
      fail("it runs a row of stages; stage " + io::in_quotes(p[row.order[k]].name) + " feeds others than " + io::in_quotes(p[next].name));
    }
  }
  return row;
}

}  // namespace detail

HETPLAN_INLINE std::vector<runtime_stage> runtime_stages(const plan& p, const planning_graph& model, std::string_view runtime) {
  const auto fail = [&](const std::string& why) { detail::refuse_export(runtime, why); };
  const detail::stage_row row = detail::stages_in_a_row(p, model, runtime);
  for (const stage& s : p.stages) {  // optimizer state in parts needs several devices, which are refused above
    if (s.recompute) fail("it keeps activations; stage " + io::in_quotes(s.name) + " recomputes them");
  }
  const runtime_layers parts = find_runtime_layers(model);
  const auto place_of = [&](const std::vector<layer_id>& part) {
    for (const auto& [a, b] : ranges::views::zip(part, part | ranges::views::drop(1))) {
      if (row.place[a.index()] == row.place[b.index()]) continue;
      fail("it cuts a model between blocks; the plan cuts between layers " + io::in_quotes(model[a].name) + " and " +
           io::in_quotes(model[b].name));
    }
    return row.place[part.front().index()];
  };
  std::vector<runtime_stage> stages;
  for (const stage_id s : row.order) stages.push_back({.stage = s, .device = p[s].devices.front().device});
  stages.back().has_head = true;
  if (!parts.embedding.empty() && place_of(parts.embedding) != 0) fail("it has the embedding before all blocks; the plan has not");
  if (!parts.head.empty() && place_of(parts.head) + 1 != stages.size()) fail("it has the head behind all blocks; the plan has not");
  std::size_t before = 0;
  for (std::size_t b = 0; b < parts.blocks.size(); ++b) {
    const std::size_t here = place_of(parts.blocks[b]);
    if (here < before)
      fail("it runs blocks in their order; the plan has block " + std::to_string(b) + " before block " + std::to_string(b - 1));
    before = here;
    runtime_stage& s = stages[here];
    if (s.end_block == 0) s.first_block = b;
    s.end_block = b + 1;
  }
  for (std::size_t k = 1; k < stages.size(); ++k) {  // without blocks: the head alone
    if (stages[k].blocks() == 0) stages[k].first_block = stages[k].end_block = stages[k - 1].end_block;
  }
  return stages;
}

namespace detail {

HETPLAN_INLINE void require_inference(const plan& p, std::string_view runtime) {
  if (p.workload.mode == mode::training) refuse_export(runtime, "it runs inference; the plan is for training");
}

HETPLAN_INLINE const std::string& address_of(const device& d, std::string_view runtime) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); };
  bool fits = !d.name.empty() && plain(d.name.front());
  for (const char c : d.name) fits = fits && (plain(c) || c == '-' || c == '.' || c == '_');
  if (!fits) {
    refuse_export(
        runtime,
        "a device's name stands for its address: expected letters, digits, \"-\", \".\" and \"_\", a letter or a digit first; got " +
            io::in_quotes(d.name));
  }
  return d.name;
}

HETPLAN_INLINE void require_blocks(const std::vector<runtime_stage>& stages, const plan& p, std::string_view runtime) {
  for (const runtime_stage& s : stages) {
    if (s.blocks() == 0) refuse_export(runtime, "it gives every device a block; stage " + io::in_quotes(p[s.stage].name) + " has none");
  }
}

}  // namespace detail

}  // namespace hetplan::exchange
