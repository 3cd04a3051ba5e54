// SPDX-License-Identifier: BSL-1.0
#include <hetplan/cluster/cluster.hpp>

#include <catch2/catch.hpp>

#include <hetplan/cost/cost_model.hpp>
#include <hetplan/simulate/evaluate.hpp>

#include "support/by_hand.hpp"
#include "support/random_instance.hpp"

using namespace hetplan;
using namespace hetplan::test;

TEST_CASE("without contention every pair keeps its peak bandwidth and latency, on a wire of its own") {
  for_random_instances(10, [](const instance& i) {
    const cluster real = i.cluster(), seen = uncontended(real);
    REQUIRE(seen.size() == real.size());
    for (const device& a : real.devices()) {
      REQUIRE(seen[a.id].name == a.name);
      for (const device& b : real.devices()) {
        const route *way = real.network().find(a.id, b.id), *mine = seen.network().find(a.id, b.id);
        REQUIRE((way == nullptr) == (mine == nullptr));
        if (way == nullptr) continue;
        REQUIRE(mine->latency == way->latency);
        REQUIRE(seen.network().peak_bandwidth(a.id, b.id) == real.network().peak_bandwidth(a.id, b.id));
        REQUIRE(mine->via.size() == (way->via.empty() ? 0U : 1U));
        for (const device& c : real.devices()) {
          for (const device& d : real.devices()) {
            const route* other = seen.network().find(c.id, d.id);
            if (other == nullptr || other->via.empty() || mine->via.empty() || (a.id == c.id && b.id == d.id)) continue;
            REQUIRE(other->via.front().resource != mine->via.front().resource);
          }
        }
      }
    }
  });
}

TEST_CASE("transfers that meet in the air have it to themselves in the view") {
  // One medium for two transfers at once: twice as long as on wires.
  const cluster air = wireless(3);
  const planning_graph m = model_of({work_of("a", 1), work_of("b", 1), work_of("c", 1)}, {{0, 1, 4}, {0, 2, 4}});
  const plan p = plan_of(mode::inference, 1, 1, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}}), stage_of({2}, {{2, 1}})});
  CHECK(judge(p, m, air, roofline{}).evaluation.latency.value() == near(10));              // 1 + 8 + 1
  CHECK(judge(p, m, uncontended(air), roofline{}).evaluation.latency.value() == near(6));  // 1 + 4 + 1
}

TEST_CASE("on half-duplex wires both directions of a pair share one, as fast as the slower of them") {
  for_random_instances(10, [](const instance& i) {
    const cluster real = i.cluster(), seen = uncontended(real, duplex::half);
    for (const device& a : real.devices()) {
      for (const device& b : real.devices()) {
        if (a.id == b.id) continue;
        const route *there = real.network().find(a.id, b.id), *back = real.network().find(b.id, a.id),
                    *mine = seen.network().find(a.id, b.id);
        REQUIRE((there == nullptr) == (mine == nullptr));
        if (there == nullptr) continue;
        REQUIRE(mine->latency == there->latency);
        REQUIRE(mine->via.empty() == there->via.empty());
        if (mine->via.empty()) continue;
        auto least = real.network().peak_bandwidth(a.id, b.id);
        const bool both = back != nullptr && !back->via.empty();
        if (both) least = std::min(least, real.network().peak_bandwidth(b.id, a.id));
        REQUIRE(seen.network().peak_bandwidth(a.id, b.id) == least);
        if (both) REQUIRE(seen.network().find(b.id, a.id)->via.front().resource == mine->via.front().resource);
      }
    }
  });
}

TEST_CASE("a pair's two wires have the rates of their directions; shared, the slower one's") {
  route_table uneven;
  uneven.listed = {{"up", bytes_per_second(10)}, {"down", bytes_per_second(4)}};
  uneven.rules = {{"a", "b", {seconds(1), {{resource_id(0), 1}}}}, {"b", "a", {seconds(2), {{resource_id(1), 2}}}}};
  device a{.name = "a", .memory = bytes(1e9), .compute = flops_per_second(1)}, b = a;
  b.name = "b";
  const cluster real("uneven", {a, b}, uneven);
  const cluster full = uncontended(real), half = uncontended(real, duplex::half);
  CHECK(full.network().resources().size() == 2);
  CHECK(full.network().peak_bandwidth(device_id(0), device_id(1)).value() == 10);
  CHECK(full.network().peak_bandwidth(device_id(1), device_id(0)).value() == 2);
  CHECK(half.network().resources().size() == 1);
  CHECK(half.network().resources()[0].name == "a--b");
  CHECK(half.network().peak_bandwidth(device_id(0), device_id(1)).value() == 2);
  CHECK(half.network().find(device_id(0), device_id(1))->latency == seconds(1));
  CHECK(half.network().find(device_id(1), device_id(0))->latency == seconds(2));
}
