// SPDX-License-Identifier: BSL-1.0
// Time and memory of the two-substate search by size, tables included. Chains of layers on devices of four unequal, non-linear classes with
// binding memory, M = 16, B_m = 8, K = 10, ten plans.
//
// Targets: 56 layers on 6 devices in 2 ms, 213 x 6 in 10 ms, 213 x 16 in 60 ms, 1000 x 16 in 1 s, 1000 x 64 in 6 s; three times that where
// energy counts; an infeasible 1000 x 64 detected in 1 s.
//
// bench_partition --growth prints one JSON object per line for plot_growth.py instead.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/coarsen/decomposition.hpp>
#include <hetplan/coarsen/merge_small.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/partition/two_substate_dp.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

#include "measure.hpp"

using namespace hetplan;
using namespace hetplan::partition;

namespace {

/// Small generator, uniform in [0, 1), which gives the same instances with every standard library.
class random_source {
 public:
  explicit random_source(std::uint64_t seed) : state_(seed) {}
  double unit() {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }

 private:
  std::uint64_t state_;
};

struct instance {
  planning_graph model;
  hetplan::cluster devices;
  layer_sequence sequence;
  plan blank;
};

struct size {
  int layers = 213, devices = 16, kept = 10, microbatch = 8, microbatches = 16;
};

/// Returns a random instance; at `memory` 1, memory binds at some stages.
instance make_chain(const size& s, int seed, double memory = 1) {
  random_source random(static_cast<std::uint64_t>(seed * 1000 + s.layers + s.devices));
  planning_graph_builder b("chain");
  for (int i = 0; i < s.layers; ++i) {
    const double work = 1e9 * (0.3 + random.unit());
    const double weight = (0.2 + random.unit()) * 4e8 * std::min(s.devices, 16) / s.layers;
    const double activation = (0.5 + random.unit()) * 1e8 / s.layers;
    b.add_layer({.name = "l" + std::to_string(i), .forward_flops = flops(work), .weight = bytes(weight), .activation = bytes(activation)});
    if (i > 0) b.add_edge(layer_id(i - 1), layer_id(i), bytes(1e5 * (0.5 + random.unit())));
  }
  const double speed[] = {8, 4, 2, 1}, half_batch[] = {3, 2, 1, 0.5}, gigabytes[] = {4.8, 3.6, 3, 2.4};
  std::vector<device> devices;
  for (int i = 0; i < s.devices; ++i) {
    const int c = i * 4 / s.devices;
    devices.push_back({.name = "d" + std::to_string(i),
                       .memory = bytes(gigabytes[c] * 1e9 * memory),
                       .compute = flops_per_second(1e12 * speed[c]),
                       .half_batch = half_batch[c],
                       .power = {watts(1 + c), watts(10 * speed[c] + 3)}});
  }
  instance x{std::move(b).build(), cluster("mesh", std::move(devices), mesh{1_Gbit_per_s, 1_ms}), {}, {}};
  x.sequence = sequence_of(x.model);
  x.blank.microbatch_size = s.microbatch;
  x.blank.microbatches = s.microbatches;
  return x;
}

device_space one_order(const search_tables& t) {
  std::vector<std::size_t> order(t.classes.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  return in_class_order(t.classes, order, t.table.max_share());
}
device_space all_orders(const search_tables& t) { return every_order(t.classes, t.table.max_share()); }

template <class Objective, class Space>
search_result search(const instance& x, const Objective& o, const Space& space, int kept = 10, int threads = 1) {
  const search_tables t(x.model, x.sequence, x.devices, roofline{}, plain_memory{}, linear_power{}, x.blank.workload,
                        x.blank.microbatch_size);
  return two_substate_dp(t, space(t), x.blank, o, top_k{kept}, {.threads = threads});
}

std::string name_of(const size& s) { return std::to_string(s.layers) + " layers x " + std::to_string(s.devices) + " devices"; }

/// Reports medians over instances, with latency and with energy as the objective.
void chains(bench::table& table, const size& s, int seeds, double limit_s) {
  std::vector<instance> all;
  for (int seed = 1; seed <= seeds; ++seed) all.push_back(make_chain(s, seed));
  std::vector<double> best(all.size());
  table.run_within(name_of(s), all.size(), limit_s,
                   [&](std::size_t i) { best[i] = search(all[i], minimize_latency{}, one_order).plans.at(0).estimate.response().value(); });
  if (s.layers == 1000)
    table.run_within("  on two threads", all.size(), 0, [&](std::size_t i) { search(all[i], minimize_latency{}, one_order, 10, 2); });
  table.run_within("  with energy", all.size(), 3 * limit_s, [&](std::size_t i) {
    search(all[i], keep_qoe{seconds(1.25 * best[i]), 1000}, one_order).plans.at(0);
  });
}

void infeasible(bench::table& table, const std::string& name, const size& s, int seeds, double memory) {
  std::vector<instance> all;
  for (int seed = 1; seed <= seeds; ++seed) all.push_back(make_chain(s, seed, memory));
  table.run_within(name_of(s) + ", " + name, all.size(), 1, [&](std::size_t i) {
    if (search(all[i], minimize_latency{}, one_order).status.result != outcome::none_found)
      std::fprintf(stderr, "%s: feasible after all\n", name.c_str());
  });
}

void growth_row(const char* varied, int value, const size& s) {
  std::vector<double> times, kept;
  for (int seed = 1; seed <= 3; ++seed) {
    const instance x = make_chain(s, seed);
    search_counts counts;
    times.push_back(bench::seconds_of([&] { counts = search(x, minimize_latency{}, one_order, s.kept).counts; }));
    kept.push_back(static_cast<double>(counts.kept));
  }
  std::printf("{\"varied\": \"%s\", \"value\": %d, \"median_s\": %.6g, \"kept\": %.6g}\n", varied, value, bench::median(times),
              bench::median(kept));
  std::fflush(stdout);
}

/// Varies one size at a time around 213 x 16.
void growth(bool quick) {
  const auto sweep = [&](const char* name, int size::*what, std::vector<int> values) {
    if (quick) values.resize(2);
    for (const int v : values) {
      size s;
      s.*what = v;
      growth_row(name, v, s);
    }
  };
  sweep("L", &size::layers, {50, 100, 200, 400, 800, 1600});
  sweep("N", &size::devices, {4, 8, 16, 32, 64});
  sweep("K", &size::kept, {1, 3, 10, 30, 100});
  sweep("B_m", &size::microbatch, {1, 2, 4, 8, 16, 32});
  sweep("M", &size::microbatches, {4, 8, 16, 32, 64, 128});
}

}  // namespace

int main(int argc, char** argv) {
  const bench::options options(argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--growth") == 0) return growth(options.quick), 0;
  }
  bench::table table(options);
  const int seeds = options.quick ? 1 : 5;
  chains(table, {.layers = 56, .devices = 6}, 3 * seeds, 2e-3);
  chains(table, {.layers = 213, .devices = 6}, 3 * seeds, 10e-3);
  chains(table, {.layers = 213, .devices = 16}, seeds, 60e-3);
  if (!options.quick) {
    chains(table, {.layers = 1000, .devices = 16}, seeds, 1);
    chains(table, {.layers = 1000, .devices = 64}, 3, 6);
  }
  const instance small = make_chain({.layers = 56, .devices = 6}, 1);
  table.run_within("56 layers x 6 devices, every order", static_cast<std::size_t>(seeds), 0,
                   [&](std::size_t) { search(small, minimize_latency{}, all_orders); });
  const size large{.layers = 1000, .devices = 64};
  infeasible(table, "memory far too small", large, seeds, 0.1);
  infeasible(table, "memory just too small", large, seeds, 0.3);

  instance graph{zoo::model("qwen-omni"), zoo::cluster("smart-home-2"), {}, {}};
  graph.sequence = decompose::serial(graph.model, coarsen::merge_small(graph.model, {.share = 0.05}));
  graph.blank.microbatch_size = 8;
  graph.blank.microbatches = 16;
  table.run_within("qwen-omni in blocks of 5 %, every order", static_cast<std::size_t>(seeds), 0,
                   [&](std::size_t) { search(graph, minimize_latency{}, all_orders); });
}
