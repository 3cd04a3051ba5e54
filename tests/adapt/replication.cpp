// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/adapt/migration.hpp>
#include <hetplan/adapt/replication.hpp>

#include "adapt/support.hpp"
#include "support/random_instance.hpp"
#include "support/search_instance.hpp"

using namespace hetplan;
using namespace adapt_tests;

namespace {

/// Six layers of 10 MB; the fourth is frozen.
planning_graph six() {
  planning_graph_builder b("six");
  for (int i = 0; i < 6; ++i) {
    b.add_layer({.name = "l" + std::to_string(i), .forward_flops = 1_GFLOP, .weight = 10_MB, .trainable = i != 3, .activation = 1_MB});
    if (i > 0) b.add_edge(layer_id(i - 1), layer_id(i), 1_MB);
  }
  return std::move(b).build();
}
cluster four(std::vector<bytes> memory) {
  std::vector<device> all;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    all.push_back({.name = std::string(1, static_cast<char>('a' + i)), .memory = memory[i], .compute = 1_TFLOP_per_s});
  }
  return {"four", all, shared_medium{10_MB_per_s}};
}
/// Three stages: one on a, one shared by b and c, one on d.
plan three_stages() {
  plan p{.microbatch_size = 2, .microbatches = 4};
  p.stages = {{.name = "s0", .layers = {layer_id(0), layer_id(1)}, .devices = {{device_id(0), 2}}},
              {.name = "s1", .layers = {layer_id(2)}, .devices = {{device_id(1), 1}, {device_id(2), 1}}},
              {.name = "s2", .layers = {layer_id(3), layer_id(4), layer_id(5)}, .devices = {{device_id(3), 2}}}};
  return p;
}

}  // namespace

TEST_CASE("a stage on one device is backed up in the next stage, the last in the first, where most memory is free") {
  const planning_graph model = six();
  const cluster c = four({1_GB, 500_MB, 600_MB, 1_GB});
  const auto r = adapt::replicate_by_topology(three_stages(), model, c);
  REQUIRE(r.backups.size() == 2);
  CHECK(r.unprotected.empty());
  CHECK(r.backups[0] == adapt::backup{stage_id(0), device_id(0), device_id(2), {layer_id(0), layer_id(1)}, 0_B, 60_MB});
  CHECK(r.backups[1] == adapt::backup{stage_id(2), device_id(3), device_id(0), {layer_id(3), layer_id(4), layer_id(5)}, 10_MB, 60_MB});
  const auto only_weights = adapt::replicate_by_topology(three_stages(), model, c, adapt::backup_content::weights);
  CHECK(only_weights.backups[1].once == 10_MB);
  CHECK(only_weights.backups[1].each_time == 20_MB);
}

TEST_CASE("the traffic of a backup is its weights and optimizer state, the frozen ones the first time only") {
  const planning_graph model = six();
  const cluster c = four({1_GB, 500_MB, 600_MB, 1_GB});
  const auto r = adapt::replicate_by_topology(three_stages(), model, c);
  const adapt::migration first = adapt::backup_fetches(r, model, {});
  CHECK(first.volume() == 130_MB);
  const adapt::migration later = adapt::split_immutable(first).second;
  CHECK(later.volume() == 120_MB);
  CHECK(adapt::run_migration(later, c, adapt::nominal(c)).time.value() == Approx(12));
  CHECK(adapt::backup_fetches({}, model, {}).empty());
}

TEST_CASE("a backup goes where there is room for it, and a stage for which there is none is named") {
  const planning_graph model = six();
  // a: 80 MB of state and 2 layers x 4 microbatches (5, but only 4 exist) x 2 MB. b, c: 40 MB and 3 x 1 MB. d: 90 MB and 6 MB.
  const plan p = three_stages();
  const auto free = adapt::free_bytes(p, model, four({200_MB, 100_MB, 100_MB, 1_GB}));
  CHECK(free == std::vector<double>{104e6, 57e6, 57e6, 904e6});
  // a's 60 MB do not fit into b and c, but into d. d's 70 MB fit into a.
  const auto r = adapt::replicate_by_topology(p, model, four({200_MB, 100_MB, 100_MB, 1_GB}));
  REQUIRE(r.backups.size() == 2);
  CHECK(r.backups[0].to == device_id(3));
  CHECK(r.backups[1].to == device_id(0));
  const auto tight = adapt::replicate_by_topology(p, model, four({160_MB, 100_MB, 100_MB, 150_MB}));
  CHECK(tight.backups.empty());
  CHECK(tight.unprotected == std::vector<stage_id>{stage_id(0), stage_id(2)});
  plan alone = p;
  alone.stages = {{.name = "all", .layers = {}, .devices = {{device_id(0), 2}}}};
  for (const layer& l : model.layers()) alone.stages[0].layers.push_back(l.id);
  CHECK(adapt::replicate_by_topology(alone, model, four({1_GB, 1_GB})).unprotected == std::vector<stage_id>{stage_id(0)});
}

TEST_CASE("devices that share out their optimizer's state lose it with each of them, and their stage is named") {
  plan p = three_stages();
  const cluster c = four({1_GB, 1_GB, 1_GB, 1_GB});
  CHECK(adapt::replicate_by_topology(p, six(), c).unprotected.empty());
  p.stages[0].shard = p.stages[1].shard = sharding::state;
  const auto r = adapt::replicate_by_topology(p, six(), c);
  CHECK(r.unprotected == std::vector<stage_id>{stage_id(1)});
  CHECK(r.backups.size() == 2);
}

TEST_CASE("what other devices run anyway needs no backup") {
  planning_graph_builder b("tied");
  for (int i = 0; i < 3; ++i) {
    b.add_layer({.name = "l" + std::to_string(i), .forward_flops = 1_GFLOP, .weight = 1_MB, .weight_group = i == 1 ? "" : "ends"});
  }
  b.add_edge("l0", "l1", 1_kB);
  b.add_edge("l1", "l2", 1_kB);
  const planning_graph model = std::move(b).build();
  plan p{.microbatch_size = 1, .microbatches = 1};
  for (int s = 0; s < 3; ++s)
    p.stages.push_back({.name = "s" + std::to_string(s), .layers = {layer_id(s)}, .devices = {{device_id(s), 1}}});
  const auto r = adapt::replicate_by_topology(p, model, four({1_GB, 1_GB, 1_GB}));
  REQUIRE(r.backups.size() == 1);
  CHECK(r.backups[0].stage == stage_id(1));
  CHECK(r.backups[0].to == device_id(2));
}

TEST_CASE("with every stage protected no single loss costs weights, and backups fit beside the plan") {
  int protected_plans = 0, unprotected_stages = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 400; ++seed) {
    INFO("seed " << seed);
    test::search_instance i = test::random_search_instance(seed, {.most_layers = 9, .most_devices = 5});
    test::random_source random(seed);
    const workload w = i.blank.workload;
    const plan p = random_chain_plan(random, i.model, i.cluster, all_devices(i.cluster), w, i.blank.microbatch_size, i.blank.microbatches);
    const auto r = adapt::replicate_by_topology(p, i.model, i.cluster);
    unprotected_stages += static_cast<int>(r.unprotected.size());
    std::vector<double> room = adapt::free_bytes(p, i.model, i.cluster);
    for (const adapt::backup& b : r.backups) {
      REQUIRE(b.from != b.to);
      REQUIRE(p[b.stage].devices.size() == 1);
      REQUIRE(b.from == p[b.stage].devices[0].device);
      room[b.to.index()] -= b.held().value();
      REQUIRE(room[b.to.index()] >= 0);
    }
    const adapt::holdings held = adapt::holdings_of(p, i.model, i.cluster.size());
    CHECK(adapt::with_backups(held, r, i.model, w, adapt::nominal(i.cluster)).holders(layer_id(0)).size() >=
          held.holders(layer_id(0)).size());
    if (!r.unprotected.empty() || i.cluster.size() < 2) continue;
    ++protected_plans;
    for (const device& lost : i.cluster.devices()) {
      adapt::conditions now = adapt::nominal(i.cluster);
      now.present[lost.id.index()] = 0;
      const adapt::holdings found = adapt::with_backups(held, r, i.model, w, now);
      for (const layer& l : i.model.layers()) {
        if (l.weight.value() == 0) continue;
        const auto holders = found.holders(l.id);
        REQUIRE(std::any_of(holders.begin(), holders.end(), [&](device_id d) { return d != lost.id; }));
      }
    }
  }
  CHECK(protected_plans > 50);
  CHECK(unprotected_stages > 50);
}

TEST_CASE("an old copy of what training changes is no source while somebody has the original") {
  const planning_graph model = six();
  const plan p = three_stages();
  const cluster c = four({1_GB, 500_MB, 600_MB, 1_GB});
  const adapt::holdings held = adapt::holdings_of(p, model, 4);
  const auto r = adapt::replicate_by_topology(p, model, c);
  adapt::conditions now = adapt::nominal(c);
  const adapt::holdings all_there = adapt::with_backups(held, r, model, {}, now);
  CHECK(all_there.holders(layer_id(3)) == std::vector<device_id>{device_id(0), device_id(3)});  // frozen
  CHECK(all_there.holders(layer_id(4)) == std::vector<device_id>{device_id(3)});
  now.present[3] = 0;
  CHECK(adapt::with_backups(held, r, model, {}, now).holders(layer_id(4)) == std::vector<device_id>{device_id(0), device_id(3)});
  CHECK(adapt::with_backups(held, r, model, {}, now).holders(layer_id(0)) == std::vector<device_id>{device_id(0)});
}
