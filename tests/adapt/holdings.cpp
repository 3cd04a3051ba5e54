// SPDX-License-Identifier: BSL-1.0
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/adapt/migration.hpp>
#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/tasks/expand.hpp>

#include "support/random_instance.hpp"

using namespace hetplan;

namespace {

/// Four layers a, b, c and d; a and d share one tensor.
planning_graph tied() {
  planning_graph_builder b("tied");
  for (const char* name : {"a", "b", "c", "d"}) {
    const bool end = *name == 'a' || *name == 'd';
    b.add_layer({.name = name, .forward_flops = 1_GFLOP, .weight = 1_MB, .trainable = *name != 'b', .weight_group = end ? "ends" : ""});
  }
  b.add_edge("a", "b", 1_kB);
  b.add_edge("b", "c", 1_kB);
  b.add_edge("c", "d", 1_kB);
  return std::move(b).build();
}

}  // namespace

TEST_CASE("a device that holds one layer of a weight group holds them all") {
  const planning_graph model = tied();
  adapt::holdings held(model, 2);
  held.add(device_id(1), layer_id(3));
  CHECK(held.has(device_id(1), layer_id(0)));
  CHECK(held.tensor_of(layer_id(3)) == layer_id(0));
  CHECK(held.holders(layer_id(3)) == std::vector<device_id>{device_id(1)});
  CHECK(held.holders(layer_id(1)).empty());
  for (int l = 0; l < 4; ++l) CHECK_FALSE(held.has(device_id(0), layer_id(l)));
}

TEST_CASE("in a plan every device holds the tensors of the stages that list it, and no others") {
  test::for_random_instances(20, [](const test::instance& i) {
    const planning_graph model = i.model();
    const adapt::holdings held = adapt::holdings_of(i.plan, model, i.devices.size());
    std::set<std::pair<int, std::string>> expected;  // pairs of device and tensor name
    const auto tensor = [&](const layer& l) {
      return l.weight_group < 0 ? "layer " + l.name
                                : "group " + std::string(model.weight_groups()[static_cast<std::size_t>(l.weight_group)]);
    };
    for (const stage& s : i.plan.stages) {
      for (const assignment& a : s.devices) {
        for (const layer_id l : s.layers) expected.insert({a.device.value, tensor(model[l])});
      }
    }
    for (const layer& l : model.layers()) {
      for (std::size_t d = 0; d < i.devices.size(); ++d) {
        REQUIRE(held.has(device_id(d), l.id) == expected.contains({static_cast<int>(d), tensor(l)}));
      }
    }
  });
}

TEST_CASE("devices that share out the optimizer's state hold all weights and a part of the state each") {
  const planning_graph model = tied();
  plan p{.microbatch_size = 2, .microbatches = 1};
  p.stages = {{.name = "s0", .layers = {layer_id(0)}, .devices = {{device_id(1), 1}, {device_id(0), 1}}, .shard = sharding::state},
              {.name = "s1", .layers = {layer_id(1), layer_id(2)}, .devices = {{device_id(2), 2}}, .shard = sharding::state},
              {.name = "s2", .layers = {layer_id(3)}, .devices = {{device_id(3), 1}, {device_id(1), 1}}, .shard = sharding::state}};
  using parts = std::vector<adapt::state_part>;
  const adapt::holdings held = adapt::holdings_of(p, model, 5);
  CHECK(held.state_of(device_id(0), layer_id(0)) == parts{{0.5, 1}});
  CHECK(held.state_of(device_id(3), layer_id(0)) == parts{{0, 0.5}});  // a and d share this tensor
  CHECK(held.state_of(device_id(1), layer_id(3)) == parts{{0, 1}});    // one half through each of its two stages
  CHECK(held.state_of(device_id(2), layer_id(2)) == parts{{0, 1}});    // one device alone: not sharded
  CHECK(held.state_of(device_id(4), layer_id(2)).empty());
  CHECK(held.has_parts(layer_id(0)));
  CHECK_FALSE(held.has_parts(layer_id(2)));
  CHECK(adapt::state_pieces(layer_id(0), {{0, 1.0 / 3}}, held) == parts{{0, 1.0 / 3}, {1.0 / 3, 0.5}, {0.5, 1}});
}

TEST_CASE("a sequence's cache is where its tasks run") {
  int with_caches = 0;
  test::for_random_instances(30, [&](const test::instance& i) {
    const planning_graph model = i.model();
    const adapt::holdings held = adapt::holdings_of(i.plan, model, i.devices.size());
    if (i.plan.workload.mode != mode::generation) {
      REQUIRE(held.sequences() == 0);
      return;
    }
    REQUIRE(held.sequences() == i.plan.batch());
    ++with_caches;
    // Task expansion is the reference for which device computes which samples.
    long long checked = 0;
    const tasks::task_graph g = tasks::expand(i.plan, model, i.cluster(), roofline{});
    for (const tasks::compute_task& t : g.computes) {
      if (t.pass != 0) continue;
      for (const layer_id l : i.plan[t.stage].layers) {
        for (long long s = t.first_sample; s < t.last_sample; ++s, ++checked) REQUIRE(held.cache_owner(l, s) == t.device);
      }
    }
    REQUIRE(checked == i.plan.batch() * static_cast<long long>(model.size()));
  });
  CHECK(with_caches >= 30);
}
