// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Small random planning problems whose plans can be enumerated: unequal devices, uneven networks, tight limits.

#include <string>
#include <utility>
#include <vector>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/coarsen/decomposition.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/partition/brute_force.hpp>
#include <hetplan/partition/two_substate_dp.hpp>

#include "support/random_source.hpp"

namespace hetplan::test {

struct search_shape {
  int most_layers = 7;
  int most_devices = 4;
  bool tight = true;    ///< memory and energy budgets that many plans break
  bool tokens = false;  ///< generation of token models: prompts in chunks, attention, windows, last tokens, experts, overheads
};

struct search_instance {
  planning_graph model;
  layer_sequence sequence;
  hetplan::cluster cluster;
  plan blank;
  std::string what;
};

namespace detail {

/// Makes a layer one of a token model. Behind the first layer of the last token all are of the last token.
inline void add_token_work(random_source& random, layer_spec& l, int tokens, bool last_token) {
  l.sequence.last_token = last_token;
  if (random.chance(0.4)) {
    if (random.chance(0.3)) l.sequence.window = random.integer(1, 8);
    l.sequence.attention_flops = flops(l.forward_flops->value() * random.between(0, 1) / l.sequence.pairs(tokens, 0));
    l.sequence.attention_traffic = bytes(random.chance(0.3) ? 1e4 : 0);
  }
  if (random.chance(0.2)) l.sequence.experts = expert_weights{8, random.integer(1, 4), l.weight * random.between(0, 1)};
  if (random.chance(0.2)) l.degrees = {1};
  l.calls = random.integer(0, 3);
}

inline planning_graph random_model(random_source& random, int layers, bool chain, int tokens = 1) {
  planning_graph_builder b("random", model_facts{.tokens_per_sample = tokens});
  const int last_tokens_from = tokens > 1 && random.chance(0.5) ? random.integer(1, layers) : layers;
  for (int i = 0; i < layers; ++i) {
    layer_spec l{.name = "l" + std::to_string(i),
                 .forward_flops = flops(random.between(1e9, 8e9)),
                 .weight = bytes(random.between(0, 4e7)),
                 .activation = bytes(random.between(1e5, 4e6)),
                 .kv_bytes_per_token = bytes(random.between(0, 1e4))};
    l.trainable = !random.chance(0.15);
    if (random.chance(0.3)) l.forward_workspace = bytes(random.between(0, 3e6) / tokens);
    if (random.chance(0.5)) l.backward_input_flops = flops(random.between(0, 8e9));
    if (tokens > 1) add_token_work(random, l, tokens, i >= last_tokens_from);
    b.add_layer(l);
  }
  // All readers of a tensor of tokens get the same bytes: of other tensors the mean over passes of what a stage reads is an estimate.
  std::vector<bytes> of_tensor(static_cast<std::size_t>(layers));
  const auto edge = [&](int from, int to) {
    bytes forward(random.between(1e4, 5e6));
    bytes& all = of_tensor[static_cast<std::size_t>(from)];
    if (tokens > 1) forward = all = all > bytes{} ? all : forward;
    b.add_edge(layer_id(from), layer_id(to), forward, random.chance(0.2) ? bytes() : bytes(random.between(1e4, 5e6)));
  };
  for (int i = 1; i < layers; ++i) {
    if (chain) {
      edge(i - 1, i);
      continue;
    }
    for (int j = 0; j < i; ++j) {
      if (random.chance(i - j == 1 ? 0.6 : 0.2)) edge(j, i);
    }
  }
  return std::move(b).build();
}

inline cluster random_cluster(random_source& random, int devices, const planning_graph& model, const search_shape& shape) {
  double weights = 0;
  for (const layer& l : model.layers()) weights += 4 * l.weight.value() + 3 * l.activation.value();
  std::vector<device> all;
  for (int i = 0; i < devices; ++i) {
    if (i > 0 && random.chance(0.25)) {  // equal to an earlier device
      all.push_back(all[random.index(all.size())]);
    } else {
      device d{.name = "d",
               .memory = bytes(shape.tight ? weights * random.between(0.3, 1.6) : 1e11),
               .compute = flops_per_second(random.between(0.5e12, 5e12))};
      d.half_batch = random.between(0, 3);
      if (random.chance(0.2)) d.overhead = seconds(random.between(0, 2e-3));
      if (random.chance(0.2)) d.send_overhead = seconds(random.between(0, 2e-3));
      if (shape.tokens) {
        if (random.chance(0.5)) d.half_rows = std::exchange(d.half_batch, 0);
        d.memory_bandwidth = bytes_per_second(random.between(1e10, 1e11));
        d.cache_efficiency = random.between(0.3, 1);
      }
      d.launch = seconds(random.between(0, 1e-3));
      d.power = {watts(random.between(0.5, 5)), watts(random.between(6, 40)), joules_per_byte(random.between(0, 5e-8)),
                 joules_per_byte(3e-8)};
      if (random.chance(0.2)) {
        d.accelerators = 2;
        d.interconnect = bytes_per_second(1e9);
      }
      if (shape.tight && random.chance(0.3)) d.energy_budget = joules(random.between(0.05, 3));
      if (shape.tight && random.chance(0.2)) d.max_busy = random.between(0.4, 0.9);
      all.push_back(d);
    }
    all.back().name = "d" + std::to_string(i);
    all.back().kind = "";
  }
  const bytes_per_second c(random.between(5e6, 3e8));
  const seconds l(random.between(0, 2e-3));
  switch (random.integer(0, 4)) {
    case 0: return hetplan::cluster("random", all, shared_medium{c, l});
    case 1: return hetplan::cluster("random", all, mesh{c, l});
    case 2: return hetplan::cluster("random", all, ring{c, l});
    case 3: return hetplan::cluster("random", all, star{c, l, duplex::half});
    default: break;
  }
  // An uneven network: each ordered pair has its own wire.
  route_table t;
  for (int i = 0; i < devices; ++i) {
    for (int j = 0; j < devices; ++j) {
      if (i == j) continue;
      t.listed.push_back({all[static_cast<std::size_t>(i)].name + ">" + all[static_cast<std::size_t>(j)].name, c * random.between(0.2, 3)});
      t.rules.push_back({all[static_cast<std::size_t>(i)].name,
                         all[static_cast<std::size_t>(j)].name,
                         {l * random.between(0.5, 2), {{resource_id(t.listed.size() - 1), 1}}}});
    }
  }
  return hetplan::cluster("random", all, t);
}

}  // namespace detail

inline plan random_blank(random_source& random, const workload& drawn, int largest_microbatch, int most_microbatches) {
  plan blank;
  blank.workload = drawn;
  blank.workload.context = 100;
  blank.workload.tokens = random.integer(2, 5);
  blank.microbatch_size = random.integer(1, largest_microbatch);
  blank.microbatches = random.integer(1, most_microbatches);
  if (random.chance(0.2)) blank.schedule.kind = schedule_kind::gpipe;
  return blank;
}

inline search_instance random_search_instance(std::uint64_t seed, const search_shape& shape = {}) {
  random_source random(seed * 7919 + 17);
  const bool chain = random.chance(0.4);
  const int layers = random.integer(1, shape.most_layers), devices = random.integer(1, shape.most_devices);
  planning_graph model = detail::random_model(random, layers, chain, shape.tokens ? random.integer(2, 6) : 1);
  hetplan::cluster c = detail::random_cluster(random, devices, model, shape);
  workload drawn;
  drawn.mode = random.pick(std::vector{mode::training, mode::training, mode::training, mode::inference, mode::generation});
  drawn.optimizer_factor = random.integer(0, 2);
  if (shape.tokens) drawn.mode = mode::generation;
  plan blank = random_blank(random, drawn, 5, 6);
  if (shape.tokens) {
    workload& w = blank.workload;
    w.context = random.integer(0, 20);
    if (random.chance(0.7)) w.prompt = random.integer(0, 20);
    w.tokens = random.chance(0.2) ? 1 : random.integer(2, 40);
    if (random.chance(0.5)) w.prompt_chunk = random.integer(1, 8);
    if (random.chance(0.3)) w.chunks_in_flight = random.integer(1, 3);
  }
  layer_sequence sequence = decompose::serial(model);
  return {std::move(model), std::move(sequence), std::move(c), std::move(blank), "random_search_instance(" + std::to_string(seed) + ")"};
}

inline partition::search_tables tables_of(const search_instance& i) {
  return {i.model, i.sequence, i.cluster, roofline{}, plain_memory{}, linear_power{}, i.blank.workload, i.blank.microbatch_size};
}

inline partition::device_space any_order(const partition::search_tables& t, const plan& blank) {
  return partition::every_order(t.classes, blank.microbatch_size);
}

}  // namespace hetplan::test
