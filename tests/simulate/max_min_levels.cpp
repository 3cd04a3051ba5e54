// SPDX-License-Identifier: BSL-1.0
// Local updates of max-min rates against filling from scratch; tournament ends against a full scan.

#include <hetplan/simulate/fluid_sharing.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "support/random_source.hpp"

namespace test_max_min_levels {

using namespace hetplan;
using namespace hetplan::test;

namespace {

constexpr double rounding = 1e-12;  // relative

std::vector<resource_use> random_route(random_source& random, int n) {
  std::set<int> on;
  for (int k = random.integer(1, 3); k > 0; --k) on.insert(random.integer(0, n - 1));
  std::vector<resource_use> via;
  for (const int r : on) via.push_back({resource_id(r), random.chance(0.5) ? 1 : random.between(0.1, 3)});
  return via;
}

/// Returns one of few capacities, so that many levels are equal.
double random_capacity(random_source& random) { return random.chance(0.7) ? random.integer(1, 3) : random.spread(0.125, 8); }

/// Flows and resources in the representation of fluid_network.
struct crossing {
  std::vector<hetplan::detail::fluid_flow> flows;
  std::vector<hetplan::detail::fluid_resource> resources;

  crossing(const std::vector<double>& capacity, const std::vector<std::vector<resource_use>>& routes) : resources(capacity.size()) {
    for (std::size_t r = 0; r < capacity.size(); ++r) resources[r].capacity = resources[r].left = capacity[r];
    for (const std::vector<resource_use>& via : routes) {
      hetplan::detail::fluid_flow x;
      x.via = via;
      for (const resource_use& u : via) {
        std::vector<std::uint32_t>& on = resources[u.resource.index()].flows;
        x.at.push_back(static_cast<std::uint32_t>(on.size()));
        on.push_back(static_cast<std::uint32_t>(flows.size()));
      }
      flows.push_back(std::move(x));
    }
  }
  std::vector<double> filled() {
    std::vector<std::uint32_t> all;
    for (std::uint32_t f = 0; f < flows.size(); ++f) all.push_back(f);
    if (!all.empty()) hetplan::detail::max_min().fill(all, flows, resources);
    std::vector<double> rates;
    for (const hetplan::detail::fluid_flow& x : flows) rates.push_back(x.next_rate);
    return rates;
  }
};

}  // namespace

TEST_CASE("levels that are settled after any change give the rates of filling") {
  int compared = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 5000; ++seed) {
    INFO("seed " << seed);
    random_source random(seed);
    const int n = random.integer(1, 30);
    std::vector<double> capacity;
    for (int r = 0; r < n; ++r) capacity.push_back(random_capacity(random));
    hetplan::detail::max_min_levels levels(capacity.size());
    std::vector<std::vector<resource_use>> routes;
    double worst = 0;
    for (int steps = random.integer(3, 20); steps > 0; --steps) {
      std::set<std::uint32_t> changed;
      const auto change = [&](const std::vector<resource_use>& via) {
        for (const resource_use& u : via) changed.insert(static_cast<std::uint32_t>(u.resource.index()));
      };
      for (int changes = random.integer(1, 4); changes > 0; --changes) {
        const double what = random.unit();
        if (what < 0.6 || routes.empty()) {
          routes.push_back(random_route(random, n));
          change(routes.back());
        } else if (what < 0.9) {
          const std::size_t f = random.index(routes.size());
          change(routes[f]);
          routes.erase(routes.begin() + static_cast<std::ptrdiff_t>(f));
        } else {
          const std::size_t r = random.index(capacity.size());
          capacity[r] = random.chance(0.1) ? 0 : random_capacity(random);
          changed.insert(static_cast<std::uint32_t>(r));
        }
      }
      crossing now(capacity, routes);
      REQUIRE(levels.update(std::vector<std::uint32_t>(changed.begin(), changed.end()), now.flows, now.resources, 1000000));
      const std::vector<double> expected = now.filled();
      for (std::size_t f = 0; f < routes.size(); ++f) {
        worst = std::max(worst, std::abs(levels.rate(now.flows[f]) - expected[f]) / std::max(expected[f], 1e-6));
        ++compared;
      }
    }
    REQUIRE(worst <= rounding);
  }
  CHECK(compared > 200000);
}

TEST_CASE("a resource whose level does not change passes nothing on, and few looks are too few") {
  // A row of wires of 1, 10, 11, ... 29 B/s, with a flow over each pair of neighbours.
  std::vector<double> capacity{1};
  std::vector<std::vector<resource_use>> routes;
  for (int r = 0; r < 20; ++r) {
    capacity.push_back(10 + r);
    routes.push_back({{resource_id(r), 1}, {resource_id(r + 1), 1}});
  }
  hetplan::detail::max_min_levels levels(capacity.size());
  std::vector<std::uint32_t> all;
  for (std::uint32_t r = 0; r < capacity.size(); ++r) all.push_back(r);
  crossing now(capacity, routes);
  CHECK_FALSE(levels.update(all, now.flows, now.resources, 3));
  for (const std::uint32_t r : all) levels.set(r, hetplan::detail::max_min_levels::none);
  REQUIRE(levels.update(all, now.flows, now.resources, 1000));
  CHECK(levels.rate(now.flows[0]) == 1);
  CHECK(levels.rate(now.flows[1]) == 5.5);  // half of 11, although the previous wire has 9 left
  now.resources[0].capacity = 2;            // leaves 8 on that wire, still more than needed
  REQUIRE(levels.update(std::vector<std::uint32_t>{0}, now.flows, now.resources, 3));
  CHECK(levels.rate(now.flows[0]) == 2);
  const auto reached = levels.reached();
  CHECK(std::all_of(reached.begin(), reached.end(), [](std::uint32_t r) { return r == 0; }));
}

TEST_CASE("in a large network the rates after every event are those of a network that is filled at once", "[long]") {
  int large = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 400; ++seed) {
    INFO("seed " << seed);
    random_source random(seed);
    const int n = random.integer(30, 120), most = random.integer(10, 3 * n);
    const bool tiers = random.chance(0.1);
    std::vector<resource> resources;
    for (int r = 0; r < n; ++r) resources.push_back({"r", bytes_per_second(random_capacity(random))});
    fluid_network net{std::span<const resource>(resources)};
    struct transfer {
      std::vector<resource_use> via;
      int tier;
      fluid_network::flow_id handle;
      double volume, moved = 0, rate = 0;
    };
    std::map<std::uint32_t, transfer> active;
    double now = 0, worst = 0, worst_volume = 0;
    std::uint32_t tag = 0;
    const auto advance = [&](double to) {
      for (auto& [_, t] : active) t.moved += t.rate * (to - now);
      now = to;
    };
    const auto start = [&] {
      transfer& t = active[++tag];
      t = {random_route(random, n), tiers ? random.integer(0, 1) : 0, 0, random.between(0.1, 2)};
      t.handle = net.start(now, t.volume, t.via, t.tier, tag);
    };
    for (int f = random.integer(1, most); f > 0; --f) start();
    for (int steps = 60; steps > 0 && !active.empty(); --steps) {
      net.update(now, [&](std::uint32_t who, double rate) { active.at(who).rate = rate; });
      fluid_network fresh{std::span<const resource>(resources)};
      std::map<std::uint32_t, fluid_network::flow_id> same;
      for (const auto& [who, t] : active) same[who] = fresh.start(now, 1, t.via, t.tier, who);
      fresh.update(now, [](std::uint32_t, double) {});
      std::set<std::size_t> used;
      for (const auto& [who, t] : active) {
        const double expected = fresh.rate(same[who]);
        worst = std::max(worst, std::abs(t.rate - expected) / std::max(expected, 1e-6));
        if (t.rate != net.rate(t.handle)) worst = 1;
        for (const resource_use& u : t.via) used.insert(u.resource.index());
      }
      large += used.size() > 64;
      if (net.next_end() == std::numeric_limits<double>::infinity()) break;
      advance(random.chance(0.8) ? net.next_end() : now + (net.next_end() - now) / 2);
      net.finish_until(now, [&](std::uint32_t who) {
        worst_volume = std::max(worst_volume, std::abs(active.at(who).moved / active.at(who).volume - 1));
        active.erase(who);
      });
      for (int f = random.integer(0, 2); f > 0 && static_cast<int>(active.size()) < most; --f) start();
      if (random.chance(0.1)) {
        const std::size_t r = random.index(resources.size());
        resources[r].capacity = bytes_per_second(random_capacity(random));
        net.set_capacity(r, resources[r].capacity.value());
      }
    }
    REQUIRE(worst <= rounding);
    REQUIRE(worst_volume <= 1e-9);
  }
  CHECK(large > 2000);
}

TEST_CASE("the earliest end and those that are due are found among few and among many") {
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 300; ++seed) {
    INFO("seed " << seed);
    random_source random(seed);
    hetplan::detail::end_times ends;
    std::vector<double> expected;
    bool good = true;
    const int most = random.integer(1, 200);
    for (int step = 0; step < 400; ++step) {
      for (int changes = random.chance(0.05) ? most : random.integer(0, 3); changes > 0; --changes) {
        const double time = random.chance(0.2) ? hetplan::detail::end_times::never : random.integer(0, 50);
        if (expected.empty() || (random.chance(0.4) && static_cast<int>(expected.size()) < most)) {
          ends.add();
          expected.push_back(hetplan::detail::end_times::never);
        } else if (random.chance(0.3)) {
          const std::size_t f = random.index(expected.size());
          ends.remove(static_cast<std::uint32_t>(f));
          expected[f] = expected.back();
          expected.pop_back();
          continue;
        }
        const std::size_t f = random.index(expected.size());
        ends.set(static_cast<std::uint32_t>(f), time);
        expected[f] = time;
      }
      const double first = expected.empty() ? hetplan::detail::end_times::never : *std::min_element(expected.begin(), expected.end());
      good = good && ends.earliest() == first;
      std::vector<std::uint32_t> due, expected_due;
      const double time = random.integer(0, 20);
      ends.find_due(time, due);
      for (std::uint32_t f = 0; f < expected.size(); ++f) {
        if (expected[f] <= time) expected_due.push_back(f);
      }
      good = good && due == expected_due;
    }
    REQUIRE(good);
  }
}

}  // namespace test_max_min_levels
