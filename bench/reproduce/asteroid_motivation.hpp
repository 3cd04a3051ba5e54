// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What moves, what is held and what is profiled: Asteroid's Figs 1 and 5 and its Table 8, as far as they follow from models.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/plan/describe.hpp>
#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/recipes/baselines.hpp>
#include <hetplan/recipes/pipeline.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/tasks/expand.hpp>

#include "reproduce/asteroid_setting.hpp"
#include "reproduce/sections.hpp"

namespace bench {

/// Fig 1: DP's iteration with and without its network, and the bytes of a sample under DP and PP. Five Nanos, 100 Mbit/s.
inline void add_communication(const sections& page, const std::vector<trained_model>& models) {
  using namespace hetplan;
  std::vector<row> rows{{"model", "DP, an iteration", "without its network", "the network's part", "DP, bytes of a sample",
                         "PP, bytes of a sample", "PP / DP"}};
  const cluster c = on_a_switch(environments[0], 100);
  for (const trained_model& m : models) {
    if (page.quick() && m.name != "mobilenetv2") continue;
    const edge_problem p{m.graph, c, speeds(m, models[2]).on(c), m.job()};
    const auto [ring, e] = recipes::data_parallel(p, minimize_latency{}, 1).plans.at(0);
    const plan row_of_stages = balanced_pipeline(p).plans.at(0).plan;
    const seconds with = e.latency, without = judge(ring, m.graph, without_network_costs(c), p.cost).evaluation.latency;
    const auto bytes_of_a_sample = [&](const plan& x) {
      double all = 0;
      const tasks::task_graph g = tasks::expand(x, m.graph, c, p.cost);
      for (const tasks::transfer& t : g.transfers) all += t.volume_bytes;
      return all / m.batch;
    };
    const double dp = bytes_of_a_sample(ring), pp = bytes_of_a_sample(row_of_stages);
    rows.push_back({m.title, readable(with), readable(without), number("%.0f %%", 100 * (1 - without / with)), readable(bytes(dp)),
                    readable(bytes(pp)), number("%.1f", pp / dp)});
  }
  page.add_csv("asteroid.communication.csv", rows);
}

/// Fig 5: what training holds on one device, by kind.
inline void add_memory(const sections& page, const std::vector<trained_model>& models) {
  using namespace hetplan;
  std::vector<row> rows{{"model, 32 samples at once", "weights and gradients", "Adam's state", "activations", "activations' part"}};
  for (const trained_model& m : models) {
    double weights = 0, kept = 0;
    for (const layer& l : m.graph.layers()) {
      weights += l.weight.value();
      kept += 32 * l.activation.value();
    }
    rows.push_back({m.title, readable(bytes(2 * weights)), readable(bytes(2 * weights)), readable(bytes(kept)),
                    number("%.0f %%", 100 * kept / (4 * weights + kept))});
  }
  page.add_csv("asteroid.memory.csv", rows);
}

/// Table 8: one forward and backward of every model at every batch size that the paper profiles.
inline void add_profiling(const sections& page, const std::vector<trained_model>& models) {
  using namespace hetplan;
  std::vector<row> rows{{"device", "EfficientNet-B1", "MobileNetV2", "ResNet-50", "BERT-small", "all", "the paper's"}};
  for (const auto& [kind, paper] : {std::pair{"jetson-nano", "82 min"}, {"jetson-tx2", "51 min"}, {"jetson-nx", "25 min"}}) {
    row r{kind};
    double all_s = 0;
    const auto minutes = [](double s) { return number("%.1f min", s / 60); };
    for (const trained_model& m : models) {
      const cluster alone = on_a_switch({"alone", {kind}}, 100);
      const edge_costs cost = speeds(m, models[2]).on(alone);
      stage whole{.name = "whole"};
      for (const layer& l : m.graph.layers()) whole.layers.push_back(l.id);
      double s = 0;
      for (int batch = 1; batch <= m.microbatch_sizes.back(); ++batch) {
        for (const phase what : {phase::forward, phase::backward_input, phase::backward_weight})
          s += stage_time_s(cost, m.graph, whole, {device_id(std::size_t{0}), batch}, alone[device_id(std::size_t{0})], what, token_pass{});
      }
      r.push_back(minutes(s));
      all_s += s;
    }
    r.push_back(minutes(all_s));
    r.push_back(paper);
    rows.push_back(std::move(r));
  }
  page.add_csv("asteroid.profiling.csv", rows);
}

}  // namespace bench
