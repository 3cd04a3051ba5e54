// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/plan/validate.hpp>

#include "support/by_hand.hpp"
#include "support/random_instance.hpp"

using namespace hetplan;
using namespace hetplan::test;

namespace {

/// Returns devices "d0", "d1", ... of these rates in FLOP/s.
std::vector<device> of_rates(const std::vector<double>& rates) {
  std::vector<device> all;
  for (const double r : rates) all.push_back(worker("d" + std::to_string(all.size()), r));
  return all;
}
cluster joined(std::vector<device> devices) { return {"joined", std::move(devices), mesh{bytes_per_second(1)}}; }
int median_of(const std::vector<double>& rates) { return median_device(joined(of_rates(rates))).value; }

/// Returns the device without its identity.
device unnamed(device d) {
  d.id = {};
  d.name = "any";
  return d;
}

void check_same_names(const cluster& a, const cluster& b) {
  REQUIRE(a.name() == b.name());
  REQUIRE(a.size() == b.size());
  for (const device& d : a.devices()) {
    REQUIRE(b[d.id].id == d.id);
    REQUIRE(b[d.id].name == d.name);
  }
}

/// Checks that the networks agree up to the rounding of a mean of equal numbers.
void check_same_network(const cluster& a, const cluster& b) {
  REQUIRE(a.network().resources().size() == b.network().resources().size());
  for (const device& x : a.devices()) {
    for (const device& y : a.devices()) {
      const route *one = a.network().find(x.id, y.id), *other = b.network().find(x.id, y.id);
      REQUIRE((one == nullptr) == (other == nullptr));
      if (one == nullptr) continue;
      REQUIRE(one->latency.value() == near(other->latency.value()));
      const double rate = a.network().peak_bandwidth(x.id, y.id).value(), other_rate = b.network().peak_bandwidth(x.id, y.id).value();
      REQUIRE((rate == other_rate || rate == near(other_rate)));
    }
  }
}

}  // namespace

TEST_CASE("other devices take the places of a cluster's, and its network stays") {
  const cluster c("c", of_rates({1, 2, 3}), star{5_MB_per_s, 1_ms});
  std::vector<device> others = of_rates({7, 8, 9});
  others[0].name = "new";
  others[1].id = device_id(17);  // ignored
  const cluster other = c.with_devices(others);
  CHECK(other.name() == "c");
  CHECK(other.network() == c.network());
  CHECK(other[device_id(0)].name == "new");
  CHECK(other[device_id(0)].kind == "new");
  CHECK(other[device_id(1)].id == device_id(1));
  CHECK(other[device_id(2)].compute == flops_per_second(9));
  CHECK(c[device_id(2)].compute == flops_per_second(3));
  CHECK(c.with_devices({c.devices().begin(), c.devices().end()}) == c);
  const cluster one("one", worker("only"));
  CHECK(one.with_devices({worker("other")})[device_id(0)].name == "other");
}

TEST_CASE("with_devices keeps the rules of a cluster and says what breaks one") {
  const cluster c = wired(3);
  CHECK_THROWS_WITH(c.with_devices(workers(2)), "cluster \"wired\": with_devices got 2 devices; expected 3");
  CHECK_THROWS_AS(c.with_devices(workers(4)), invalid_input);
  std::vector<device> twice = workers(3);
  twice[2].name = "d0";
  CHECK_THROWS_WITH(c.with_devices(twice), Catch::Contains("device \"d0\" appears twice"));
  std::vector<device> empty = workers(3);
  empty[1].memory = 0_B;
  CHECK_THROWS_WITH(c.with_devices(empty), Catch::Contains("device \"d1\": memory = 0"));
}

TEST_CASE("the median device by hand: the slower of two middles, and the smaller id of equals") {
  CHECK(median_of({4}) == 0);
  CHECK(median_of({3, 1, 2}) == 2);
  CHECK(median_of({3, 1}) == 1);
  CHECK(median_of({4, 1, 3, 2}) == 3);
  CHECK(median_of({5, 5, 5, 5}) == 1);
  CHECK(median_of({2, 1, 1, 9, 1}) == 4);  // by rate 1 1 1 2 9, by id 1 2 4 0 3
  // Three accelerators of 2 FLOP/s exceed one of 5 FLOP/s.
  std::vector<device> devices = of_rates({5, 2, 1});
  devices[1].accelerators = 3;
  CHECK(median_device(joined(devices)) == device_id(0));
  CHECK(median_device(cluster("one", worker("only"))) == device_id(0));
}

TEST_CASE("at most half of a cluster is faster than its median device, and less than half slower") {
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 200; ++seed) {
    INFO("seed " << seed);
    random_source random(seed);
    std::vector<double> rates;
    for (int n = random.integer(1, 9); n > 0; --n) rates.push_back(random.integer(1, 5));
    const double middle = rates[static_cast<std::size_t>(median_of(rates))];
    const auto faster = std::count_if(rates.begin(), rates.end(), [&](double r) { return r > middle; });
    const auto slower = std::count_if(rates.begin(), rates.end(), [&](double r) { return r < middle; });
    REQUIRE(2 * faster <= static_cast<std::ptrdiff_t>(rates.size()));
    REQUIRE(2 * slower < static_cast<std::ptrdiff_t>(rates.size()));
  }
}

TEST_CASE("the homogeneous view by hand: the median device, the least memory, the mean wire") {
  std::vector<device> devices = of_rates({1, 4, 2});
  devices[0].memory = 8_GB;
  devices[0].memory_budget = 3_GB;
  devices[1].memory = 4_GB;
  devices[2].memory = 6_GB;
  devices[2].memory_budget = 5_GB;
  devices[2].power = {1_W, 7_W};
  // d0 <-> d1: 30 B/s, 1 s. d1 -> d2: 60 B/s, 4 s. d2 -> d1: no bandwidth limit. d0 and d2 are not connected.
  route_table t{{{"a", bytes_per_second(30)}, {"b", bytes_per_second(120)}}, {}};
  t.rules = {{"d0", "d1", {1_s, {{resource_id(0), 1}}}},
             {"d1", "d0", {1_s, {{resource_id(0), 1}}}},
             {"d1", "d2", {4_s, {{resource_id(1), 2}}}},
             {"d2", "d1", {9_s, {}}}};
  const cluster c("uneven", devices, t), seen = homogeneous(c);
  check_same_names(c, seen);
  for (const device& d : seen.devices()) {
    CHECK(d.memory == 3_GB);
    CHECK_FALSE(d.memory_budget.has_value());
    CHECK(d.compute == flops_per_second(2));
    CHECK(d.kind == "d2");  // kind of the median device
    CHECK(d.power == power_profile{1_W, 7_W});
  }
  for (const auto& [from, to] : std::vector<std::pair<int, int>>{{0, 1}, {1, 0}, {1, 2}, {2, 1}, {0, 2}, {2, 0}}) {
    const route* way = seen.network().find(device_id(from), device_id(to));
    REQUIRE(way != nullptr);
    CHECK(way->latency.value() == near(2));                                                    // (1 + 1 + 4) / 3
    CHECK(seen.network().peak_bandwidth(device_id(from), device_id(to)).value() == near(40));  // (30 + 30 + 60) / 3
  }
  // Another device may be the model for all.
  const cluster slow = homogeneous(c, device_id(1));
  for (const device& d : slow.devices()) CHECK(d.compute == flops_per_second(4));
}

TEST_CASE("where no route takes time at a finite rate, the homogeneous view keeps the routes that there are") {
  const cluster islands("islands", of_rates({1, 2, 3}), route_table{{{"unused", bytes_per_second(1)}}, {}});
  CHECK(homogeneous(islands).network() == islands.network());
  const cluster free = without_network_costs(joined(of_rates({1, 2, 3})));
  CHECK(homogeneous(free).network() == free.network());
  const cluster one("one", worker("only", 3));
  CHECK(homogeneous(one) == one);
}

TEST_CASE("in a homogeneous view all devices are alike but for their names, and so are all wires") {
  for_random_instances(6, [](const instance& i) {
    const cluster c = i.cluster(), seen = homogeneous(c);
    check_same_names(c, seen);
    bytes least(std::numeric_limits<double>::infinity());
    for (const device& d : c.devices()) least = std::min(least, d.usable_memory());
    const device& like = c[median_device(c)];
    for (const device& d : seen.devices()) {
      REQUIRE(unnamed(d) == unnamed(seen[device_id(0)]));
      REQUIRE(d.usable_memory() == least);
      REQUIRE(d.compute == like.compute);
      REQUIRE(d.accelerators == like.accelerators);
      REQUIRE(d.kind == like.kind);
    }
    double slowest = std::numeric_limits<double>::infinity(), fastest = 0;
    for (const device& a : c.devices()) {
      for (const device& b : c.devices()) {
        const route* way = c.network().find(a.id, b.id);
        if (way == nullptr || way->via.empty()) continue;
        slowest = std::min(slowest, c.network().peak_bandwidth(a.id, b.id).value());
        fastest = std::max(fastest, c.network().peak_bandwidth(a.id, b.id).value());
      }
    }
    if (fastest > 0) {
      for (const device& a : seen.devices()) {
        for (const device& b : seen.devices()) {
          if (a.id == b.id) continue;
          const double rate = seen.network().peak_bandwidth(a.id, b.id).value();
          REQUIRE(rate >= slowest * (1 - 1e-12));
          REQUIRE(rate <= fastest * (1 + 1e-12));
        }
      }
    }
    // A homogeneous cluster does not change.
    const cluster again = homogeneous(seen);
    REQUIRE(std::equal(again.devices().begin(), again.devices().end(), seen.devices().begin(), seen.devices().end()));
    check_same_network(again, seen);
  });
}

TEST_CASE("views without memory limits or network costs change that and nothing else") {
  for_random_instances(6, [](const instance& i) {
    std::vector<device> given = i.devices;
    for (std::size_t d = 0; d < given.size(); d += 2) given[d].memory_budget = given[d].memory / 2;
    given[0].energy_budget = 3_J;
    given[0].max_busy = 0.5;
    const cluster c = i.cluster().with_devices(given);

    const cluster roomy = without_memory_limits(c);
    check_same_names(c, roomy);
    REQUIRE(roomy.network() == c.network());
    for (const device& d : roomy.devices()) {
      REQUIRE(d.usable_memory() == bytes(1e18));
      device back = d;
      back.memory = c[d.id].memory;
      back.memory_budget = c[d.id].memory_budget;
      REQUIRE(back == c[d.id]);
    }
    REQUIRE(without_memory_limits(roomy) == roomy);

    const cluster free = without_network_costs(c);
    check_same_names(c, free);
    REQUIRE(std::equal(free.devices().begin(), free.devices().end(), c.devices().begin(), c.devices().end()));
    REQUIRE(free.network().resources().empty());
    for (const device& a : c.devices()) {
      for (const device& b : c.devices()) {
        const route* way = free.network().find(a.id, b.id);
        REQUIRE((way == nullptr) == (a.id == b.id));
        if (way != nullptr) REQUIRE(*way == route{});
      }
    }
    REQUIRE(without_network_costs(free) == free);

    // Views commute.
    REQUIRE(without_memory_limits(free) == without_network_costs(roomy));
    REQUIRE(homogeneous(roomy) == without_memory_limits(homogeneous(c)));
    const cluster alike = homogeneous(c);
    REQUIRE(without_network_costs(homogeneous(roomy)) == without_network_costs(without_memory_limits(alike)));
  });
}

TEST_CASE("views of a single device are single devices") {
  device only = worker("only", 2);
  only.memory_budget = 1_MB;
  const cluster one("one", only);
  CHECK(homogeneous(one)[device_id(0)].memory == 1_MB);
  CHECK(without_memory_limits(one)[device_id(0)].usable_memory() == bytes(1e18));
  for (const cluster& view : {homogeneous(one), without_memory_limits(one), without_network_costs(one)}) {
    check_same_names(one, view);
    CHECK(view[device_id(0)].compute == flops_per_second(2));
  }
}

TEST_CASE("a plan that splits no tensors is valid on a cluster exactly where it is valid on its views") {
  int broken = 0;
  for_random_instances(4, [&](const instance& i) {
    const planning_graph m = i.model();
    const cluster c = i.cluster();
    plan p = i.plan;
    for (stage& s : p.stages) {
      for (assignment& a : s.devices) a.tensor_parallel = 1;
    }
    plan wrong = p;
    wrong.stages.back().devices.back().device = device_id(c.size());  // no such device
    for (const cluster& view :
         {homogeneous(c), without_memory_limits(c), without_network_costs(c), homogeneous(without_network_costs(c))}) {
      REQUIRE_FALSE(validate(p, m, c));
      REQUIRE_FALSE(validate(p, m, view));
      REQUIRE(validate(wrong, m, view)->where == validate(wrong, m, c)->where);
      broken += 1;
    }
  });
  REQUIRE(broken > 50);
}

TEST_CASE("a plan has all the time of the network in the view that overlooks it") {
  // As it is, 1 + 4 on the wire + 1. Without network costs, 2. Homogeneous: a wire with the mean of 2 and 6 B/s.
  const planning_graph m = model_of({work_of("a", 1), work_of("b", 1)}, {{0, 1, 8}});
  const plan p = plan_of(mode::inference, 1, 1, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})});
  const route_table t{{{"there", bytes_per_second(2)}, {"back", bytes_per_second(6)}},
                      {{"d0", "d1", {0_s, {{resource_id(0), 1}}}}, {"d1", "d0", {0_s, {{resource_id(1), 1}}}}}};
  const cluster c("uneven", workers(2), t);
  CHECK(judge(p, m, c, roofline{}).evaluation.latency.value() == near(6));
  CHECK(judge(p, m, homogeneous(c), roofline{}).evaluation.latency.value() == near(4));
  CHECK(judge(p, m, without_network_costs(c), roofline{}).evaluation.latency.value() == near(2));
}
