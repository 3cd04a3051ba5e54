// SPDX-License-Identifier: BSL-1.0
// Prescribed rates by hand, refused rates, and replays of the recorded rates of other policies.

#include <hetplan/simulate/prescribed.hpp>

#include <limits>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/simulate/simulator.hpp>

#include "support/by_hand.hpp"
#include "support/random_cep.hpp"
#include "support/random_instance.hpp"

using namespace hetplan;
using namespace hetplan::test;

namespace {

using Catch::Contains;

/// Returns two transfers of 4 and 3 bytes on one resource of 2 B/s.
transfers_alone pair(double second_release_s = 0) {
  transfers_alone x(4, {2});
  x.add(0, 1, 4, 0, {{0, 1}});
  x.add(2, 3, 3, second_release_s, {{0, 1}});
  return x;
}

}  // namespace

TEST_CASE("prescribed rates change while a transfer moves") {
  // First: 1 byte until 1, pause until 2, then 2 B/s until 3.5. Second: from 1 on 1 B/s until 2, pause until 3.5, then 2 B/s until 4.5.
  const prescribed rates{{{0, 0, 1}, {1, 0, 0}, {1, 1, 1}, {2, 1, 0}, {2, 0, 2}, {3.5, 0, 0}, {3.5, 1, 2}}};
  const trace t = pair().run(rates, {.record = true});
  check_interval(t.transfers[0], 0, 3.5);
  check_interval(t.transfers[1], 0, 4.5);
  CHECK(t.latency.value() == near(4.5));
  CHECK(t.resource_bytes[0] == near(7));
  CHECK(t.sent_bytes[2] == near(3));
  // Recorded are the prescribed rates and the ends.
  const std::vector<rate_change> expected{{0, 0, 1}, {1, 0, 0}, {1, 1, 1}, {2, 0, 2}, {2, 1, 0}, {3.5, 0, 0}, {3.5, 1, 2}, {4.5, 1, 0}};
  CHECK(std::is_permutation(t.rates.begin(), t.rates.end(), expected.begin(), expected.end()));
}

TEST_CASE("a transfer that starts late finds the rate of its last change, after its latency too") {
  transfers_alone x(4, {2});
  x.add(0, 1, 3, 5, {{0, 1}}, 0, 0.5);
  const trace t = std::move(x).run(prescribed{{{0, 0, 2}, {1, 0, 1}}});
  check_interval(t.transfers[0], 5, 8.5);  // 1 B/s from 5.5 on
}

TEST_CASE("rates for a transfer that is gone, or not there yet, take nothing of a resource") {
  // Both are prescribed 2 B/s on a resource of 2 B/s; the second starts when the first has ended.
  const trace t = pair(2).run(prescribed{{{0, 0, 2}, {0, 1, 2}}});
  check_interval(t.transfers[0], 0, 2);
  check_interval(t.transfers[1], 2, 3.5);
}

TEST_CASE("of several rates at one time the last counts, and the order of times does not") {
  const trace t = pair().run(prescribed{{{2, 1, 2}, {0, 0, 1}, {0, 0, 2}, {2, 0, 0}}});
  check_interval(t.transfers[0], 0, 2);
  check_interval(t.transfers[1], 0, 3.5);
}

TEST_CASE("rates beyond a capacity are refused by time and resource, weights included") {
  CHECK_THROWS_WITH(pair().run(prescribed{{{0, 0, 1}, {0, 1, 1}, {1.5, 1, 1.25}}}),
                    Contains("at 1.5 s") && Contains("take 2.25 B/s of resource 0") && Contains("has 2 B/s"));
  CHECK_THROWS_AS(pair().run(prescribed{{{0, 0, 1}, {0, 1, 1.001}}}), invalid_input);
  CHECK_NOTHROW(pair().run(prescribed{{{0, 0, 1}, {0, 1, 1 + 1e-6}}}));  // within the rounding tolerance
  CHECK_THROWS_AS(pair().run(prescribed{{{0, 0, 1}, {0, 1, 1 + 1e-5}}}), invalid_input);
  transfers_alone weighted(2, {9, 2});
  weighted.add(0, 1, 4, 0, {{0, 1}, {1, 2}});
  CHECK_THROWS_WITH(std::move(weighted).run(prescribed{{{0, 0, 1.5}}}), Contains("take 3 B/s of resource 1"));
  // The capacity falls below the rates.
  CHECK_THROWS_WITH(pair().run(prescribed{{{0, 0, 2}}}, {.capacities = {{1_s, resource_id(0), bytes_per_second(1)}}}),
                    Contains("at 1 s") && Contains("has 1 B/s"));
}

TEST_CASE("rates that do not move everything are refused") {
  CHECK_THROWS_WITH(pair().run(prescribed{}), Contains("its prescribed rates do not move all of it"));
  CHECK_THROWS_WITH(pair().run(prescribed{{{0, 0, 2}, {2, 1, 2}, {3, 1, 0}}}), Contains("do not move all of it"));
}

TEST_CASE("what rounding leaves of a transfer is forgiven, and no more") {
  const auto end_with = [](double left) { return pair().run(prescribed{{{0, 0, 2}, {2 - left / 2, 0, 0}, {2, 1, 2}}}).transfers[0].end_s; };
  CHECK(end_with(4 * 0.9e-6) == Approx(2).epsilon(1e-6));
  CHECK(end_with(4 * 0.9e-6) < 2);
  CHECK_THROWS_AS(end_with(4 * 1.1e-6), invalid_input);
}

TEST_CASE("a prescribed rate that is none, or of no transfer, is refused before the run") {
  constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const auto with = [](rate_change r) { return pair().run(prescribed{{{0, 0, 1}, r}}); };
  CHECK_THROWS_WITH(with({0, 1, -1}), Contains("prescribed rate 1 is -1 B/s for transfer 1 at 0 s"));
  CHECK_THROWS_WITH(with({0, 2, 1}), Contains("transfer 2") && Contains("one of 2 transfers"));
  CHECK_THROWS_WITH(with({0, 1, not_a_number}), Contains("finite rate"));
  CHECK_THROWS_AS(with({not_a_number, 1, 1}), invalid_input);
  CHECK_THROWS_AS(with({inf, 1, 1}), invalid_input);
  CHECK_THROWS_AS(with({0, 1, inf}), invalid_input);
}

TEST_CASE("transfers without volume or without a resource need no rate") {
  transfers_alone x(4, {1});
  x.add(0, 1, 0, 0, {{0, 1}}, 0, 2);
  x.add(2, 3, 5, 1, {}, 0, 0.5);
  const trace t = std::move(x).run(prescribed{});
  check_interval(t.transfers[0], 0, 2);
  check_interval(t.transfers[1], 1, 1.5);
}

TEST_CASE("the recorded rates of a run on a random plan, prescribed, give that run again") {
  std::size_t replayed = 0;
  for_random_instances(12, [&](const instance& i) {
    const cluster c = i.cluster();
    const tasks::task_graph g = tasks::expand(i.plan, i.model(), c, roofline{});
    for (const sharing kind : {sharing::fair_share, sharing::priority}) {
      const trace given = simulate(g, c.network(), policy_of_plan{kind}, {.record = true});
      const trace again = simulate(g, c.network(), prescribed{given.rates});
      REQUIRE(again.latency.value() == Approx(given.latency.value()).epsilon(1e-6));
      replayed += !g.transfers.empty();
      for (std::size_t t = 0; t < g.transfers.size(); ++t) {
        REQUIRE(std::abs(again.transfers[t].end_s - given.transfers[t].end_s) <= 1e-6 * given.latency.value());
      }
    }
  });
  CHECK(replayed >= 100);
}

TEST_CASE("the recorded rates of small random graphs, prescribed, give the same ends") {
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 300; ++seed) {
    INFO("seed " << seed);
    const random_cep r = random_small_cep(seed, 1, 8);
    const trace given = simulate(r.graph, r.cluster.network(), fair_share{}, {.record = true});
    const trace again = simulate(r.graph, r.cluster.network(), prescribed{given.rates});
    for (std::size_t n = 0; n < r.graph.computes.size(); ++n)
      REQUIRE(again.computes[n].end_s == Approx(given.computes[n].end_s).epsilon(1e-6));
    REQUIRE(again.latency.value() == Approx(given.latency.value()).epsilon(1e-6));
  }
}
