// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Small models, clusters and plans for the tests of plans.

#include <algorithm>
#include <string>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cluster/topology.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>

namespace plan_tests {

using namespace hetplan;

/// Returns a -> b -> c ..., 1 GFLOP and 1 MB each; `silent` lists the layers whose out-edge has no gradient.
inline planning_graph chain(std::size_t layers, const std::vector<std::size_t>& silent = {}) {
  planning_graph_builder b("chain");
  for (std::size_t i = 0; i < layers; ++i) {
    b.add_layer({.name = std::string(1, static_cast<char>('a' + i)), .forward_flops = 1_GFLOP});
    if (i == 0) continue;
    const bool back = std::find(silent.begin(), silent.end(), i - 1) == silent.end();
    b.add_edge(layer_id(i - 1), layer_id(i), 1_MB, back ? 1_MB : 0_MB);
  }
  return std::move(b).build();
}

inline cluster devices(std::size_t count) {
  std::vector<device> all;
  for (std::size_t i = 0; i < count; ++i) {
    all.push_back({.name = "d" + std::to_string(i), .memory = 1_GB, .compute = 1_TFLOP_per_s});
  }
  return {"cluster", all, shared_medium{1_MB_per_s}};
}

inline std::vector<layer_id> ids(const std::vector<int>& numbers) {
  std::vector<layer_id> all;
  for (const int n : numbers) all.emplace_back(n);
  return all;
}

/// Returns a plan with stage s alone on device s; `sizes` are the stages' microbatch sizes (empty: that of the plan).
inline plan stage_per_device(const std::vector<std::vector<int>>& layers, int microbatch_size, int microbatches,
                             const std::vector<int>& sizes = {}) {
  plan p{.model = "chain", .cluster = "cluster", .microbatch_size = microbatch_size, .microbatches = microbatches};
  for (std::size_t s = 0; s < layers.size(); ++s) {
    const int size = sizes.empty() ? microbatch_size : sizes[s];
    p.stages.push_back({.name = "s" + std::to_string(s),
                        .layers = ids(layers[s]),
                        .devices = {{.device = device_id(s), .samples = size}},
                        .microbatch_size = sizes.empty() ? 0 : size});
  }
  return p;
}

/// Returns the order as text: "F0 F1 B0 W0 ...", or "s1F0 ..." with stages.
inline std::string text(const std::vector<order_entry>& order, bool with_stage = false) {
  std::string all;
  for (const order_entry& e : order) {
    all += (all.empty() ? "" : " ") + (with_stage ? "s" + std::to_string(e.stage.value) : std::string());
    all += (e.what == phase::forward ? "F" : e.what == phase::backward_input ? "B" : "W") + std::to_string(e.microbatch);
  }
  return all;
}

/// Returns the order of a text, in which "F0 B0" are of stage 0 and "1F0" is of stage 1.
inline std::vector<order_entry> order(const std::string& text) {
  std::vector<order_entry> all;
  for (std::size_t i = 0; i < text.size(); ++i) {
    int stage = 0;
    while (text[i] >= '0' && text[i] <= '9') stage = 10 * stage + (text[i++] - '0');
    const phase what = text[i] == 'F' ? phase::forward : text[i] == 'B' ? phase::backward_input : phase::backward_weight;
    int microbatch = 0;
    for (++i; i < text.size() && text[i] != ' '; ++i) microbatch = 10 * microbatch + (text[i] - '0');
    all.push_back({what, stage_id(stage), microbatch});
  }
  return all;
}

}  // namespace plan_tests
