// SPDX-License-Identifier: BSL-1.0
// Crowds of flows: detail::flow_class against flows that are updated one by one.

#include <hetplan/simulate/simulator.hpp>

#include <catch2/catch.hpp>

#include "support/by_hand.hpp"
#include "support/random_source.hpp"

namespace test_crowd {

using namespace hetplan;
using namespace hetplan::test;

namespace {

/// Runs flows over one medium of 10 B/s that degrades from 500 s on; the first 1 400 start within 10 s. `apart` adds a flow on another
/// resource, which prevents joint updates. The last `urgent` flows have a tier of their own.
trace run(std::uint64_t seed, bool apart, int urgent) {
  random_source random(seed);
  transfers_alone x(4, {10, 1e9, 1});
  for (int i = 0; i < 1500; ++i) {
    const double weight = random.chance(0.2) ? 2 : 1, volume = 1 + 20 * random.unit(),
                 release = i < 1400 ? 10 * random.unit() : 3000 * random.unit();
    std::vector<std::pair<int, double>> via{{0, weight}};
    if (random.chance(0.3)) via.push_back({1, 1});
    x.add(i % 3, 3, volume, release, via, i >= 1500 - urgent ? 0 : 1);
  }
  if (apart) x.add(3, 0, 1e6, 0, {{2, 1}});
  const simulator_options changes{.capacities = {{500_s, resource_id(0), bytes_per_second(5)},
                                                 {600_s, resource_id(0), bytes_per_second(0)},
                                                 {650_s, resource_id(0), bytes_per_second(8)}}};
  return std::move(x).run(by_priority{}, changes);
}

}  // namespace

TEST_CASE("flows in a crowd end when each of them would on its own") {
  for (const int urgent : {0, 20}) {
    for (const std::uint64_t seed : {1U, 2U}) {
      INFO("seed " << seed << ", " << urgent << " of another tier");
      const trace together = run(seed, false, urgent), alone = run(seed, true, urgent);
      double worst = 0;
      for (std::size_t i = 0; i < together.transfers.size(); ++i) {
        worst = std::max(worst, std::abs(together.transfers[i].end_s / alone.transfers[i].end_s - 1));
      }
      CHECK(worst < 1e-10);
      CHECK(together.resource_bytes[0] == near(alone.resource_bytes[0]));
    }
  }
}

TEST_CASE("the rates of a crowd are told when they change, and only then") {
  // 1 500 equal flows on 3 000 B/s and one more from 10 s on; an unused wire changes all the time.
  constexpr std::uint32_t n = 1500;
  transfers_alone x(2, {2 * n, 1});
  for (std::uint32_t i = 0; i < n; ++i) x.add(0, 1, 100, 0, {{0, 1}});
  x.add(0, 1, 1, 10, {{0, 1}});
  simulator_options options{.record = true};
  for (int i = 1; i < 40; ++i) options.capacities.push_back({seconds(i), resource_id(1), bytes_per_second(1 + i % 2)});
  const trace t = std::move(x).run(fair_share{}, options);
  std::vector<double> rate(n + 1, 0);
  for (const rate_change& c : t.rates) {
    if (c.rate == rate[c.transfer]) FAIL("transfer " << c.transfer << " is told its rate again at " << c.at_s << " s");
    rate[c.transfer] = c.rate;
  }
  // Each flow starts and ends; 1 500 slow down when the last one starts, and speed up when it ends.
  CHECK(t.rates.size() == 2 * (n + 1) + 2 * n);
}

TEST_CASE("tens of thousands of flows share a medium") {
  // One flow of each volume from 1 to n B on 1 B/s: flow k + 1 ends n - k s after flow k. Updating all rates each time: 4.5e8 changes.
  constexpr int n = 30000;
  transfers_alone x(2, {1});
  for (int i = 0; i < n; ++i) x.add(0, 1, i + 1, 0, {{0, 1}});
  const trace t = std::move(x).run();
  double expected = 0;
  for (int k = 0; k < n; ++k) {
    expected += n - k;
    if (k % 997 == 0) CHECK(t.transfers[static_cast<std::size_t>(k)].end_s == near(expected));
  }
  CHECK(t.latency.value() == near(expected));
}

}  // namespace test_crowd
