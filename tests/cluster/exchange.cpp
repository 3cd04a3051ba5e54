// SPDX-License-Identifier: BSL-1.0
#include <limits>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cluster/network.hpp>
#include <hetplan/cluster/topology.hpp>

#include "cluster/support.hpp"

namespace test_exchange {

using namespace hetplan;
using test::named;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

std::vector<device_id> ids(const std::vector<int>& numbers) {
  std::vector<device_id> all;
  for (const int n : numbers) all.emplace_back(n);
  return all;
}
exchange_cost between(const cluster& c, const std::vector<int>& a, const std::vector<int>& b) {
  return peak_exchange(c.network(), ids(a), ids(b));
}

/// Three devices with one wire per ordered pair, each of its own bandwidth and latency; c -> a is missing.
cluster uneven() {
  return {"uneven", named("abc"),
          route_table{{{"ab", 8_MB_per_s}, {"ba", 4_MB_per_s}, {"ac", 2_MB_per_s}, {"bc", 1_MB_per_s}, {"cb", 16_MB_per_s}},
                      {{"a", "b", {1_ms, {{resource_id(0), 1}}}},
                       {"b", "a", {2_ms, {{resource_id(1), 1}}}},
                       {"a", "c", {3_ms, {{resource_id(2), 1}}}},
                       {"b", "c", {4_ms, {{resource_id(3), 2}}}},
                       {"c", "b", {5_ms, {{resource_id(4), 1}}}}}}};
}

}  // namespace

TEST_CASE("a transfer takes its latency and then its bytes; without bytes the latency alone") {
  const transfer_cost t{0.5, 0.25};
  CHECK(t.time_s(8) == 2.5);
  CHECK(t.time_s(0) == 0.5);
  CHECK(transfer_cost{0.5, inf}.time_s(0) == 0.5);
  CHECK(transfer_cost{inf, inf}.time_s(0) == inf);
  CHECK(transfer_cost{}.time_s(1e9) == 0);
}

TEST_CASE("on a shared medium both directions take turns at the medium's rate") {
  const cluster c("c", named("abc"), shared_medium{4_MB_per_s, 2_ms});
  const exchange_cost expected{{0.002, 0.25e-6}, {0.002, 0.25e-6}, true};
  CHECK(between(c, {0}, {1}) == expected);
  CHECK(between(c, {0, 1}, {2}) == expected);
}

TEST_CASE("on a mesh the directions have wires of their own, unless it is half duplex") {
  const exchange_cost expected{{0.001, 0.25e-6}, {0.001, 0.25e-6}, false};
  CHECK(between({"c", named("abcd"), mesh{4_MB_per_s, 1_ms}}, {0, 1}, {2, 3}) == expected);
  CHECK(between({"c", named("abcd"), mesh{4_MB_per_s, 1_ms, duplex::half}}, {0, 1}, {2, 3}) ==
        exchange_cost{expected.forward, expected.backward, true});
  CHECK_FALSE(between({"c", named("ab"), star{4_MB_per_s}}, {0}, {1}).half_duplex);
  CHECK(between({"c", named("ab"), star{4_MB_per_s, {}, duplex::half}}, {0}, {1}).half_duplex);
}

TEST_CASE("a way over several hops has the latency of all of them, and the farthest pair is charged") {
  const cluster c("c", named("abcde"), ring{4_MB_per_s, 1_ms});
  CHECK(between(c, {0}, {1}) == exchange_cost{{0.001, 0.25e-6}, {0.001, 0.25e-6}, false});
  CHECK(between(c, {0}, {2}).forward.latency_s == Approx(0.002));
  CHECK(between(c, {0}, {1, 2}).forward.latency_s == Approx(0.002));
  CHECK(between({"c", named("abcde"), ring{4_MB_per_s, 1_ms, duplex::half}}, {0}, {2}).half_duplex);
}

TEST_CASE("the least bandwidth and the largest latency of all pairs are charged, there and back apart") {
  const cluster c = uneven();
  const exchange_cost near = between(c, {0}, {1});
  CHECK(near == exchange_cost{{0.001, 1 / 8e6}, {0.002, 1 / 4e6}, false});
  CHECK(between(c, {1}, {0}) == exchange_cost{near.backward, near.forward, false});
  CHECK(between(c, {1}, {2}) == exchange_cost{{0.004, 1 / 0.5e6}, {0.005, 1 / 16e6}, false});  // weight 2 halves the wire's bandwidth
  const exchange_cost all = between(c, {1}, {0, 2});
  CHECK(all == exchange_cost{{0.004, 1 / 0.5e6}, {0.005, 1 / 8e6}, false});
}

TEST_CASE("a route that is missing makes its direction endless, and only its direction") {
  const cluster c = uneven();
  CHECK(between(c, {0}, {2}) == exchange_cost{{0.003, 1 / 2e6}, {inf, inf}, false});
  CHECK(between(c, {0, 1}, {2}) == exchange_cost{{0.004, 1 / 0.5e6}, {inf, inf}, false});
  CHECK(peak_transfer(c.network(), device_id(2), device_id(0)) == transfer_cost{inf, inf});
  CHECK(peak_transfer(c.network(), device_id(0), device_id(0)) == transfer_cost{inf, inf});
}

TEST_CASE("a route without resources is as fast as its latency") {
  const cluster c("c", named("ab"), route_table{{}, {{"*", "*", {3_ms, {}}}}});
  CHECK(between(c, {0}, {1}) == exchange_cost{{0.003, 0}, {0.003, 0}, false});
  CHECK(ring_reduction(c.network(), ids({0, 1})) == transfer_cost{0.003, 0});
}

TEST_CASE("the worst exchange covers all pairs that have routes both ways, in both directions") {
  const cluster c = uneven();
  CHECK(worst_exchange(c.network(), c.devices()) == exchange_cost{{0.005, 1 / 0.5e6}, {0.005, 1 / 0.5e6}, false});
  const cluster alone("c", named("a"), shared_medium{4_MB_per_s, 2_ms});
  CHECK(worst_exchange(alone.network(), alone.devices()) == exchange_cost{});
}

TEST_CASE("a ring reduction loads a shared medium with all n flows, a mesh with one per wire") {
  const double MB = 1e6;
  for (int n = 2; n <= 5; ++n) {
    INFO(n << " devices");
    std::vector<int> first;
    for (int i = 0; i < n; ++i) first.push_back(i);
    const double each = 2.0 * (n - 1) / n / (4 * MB);
    const transfer_cost wires = ring_reduction(cluster("c", named("abcdef"), mesh{4_MB_per_s, 1_ms}).network(), ids(first));
    CHECK(wires.s_per_byte == Approx(each));
    CHECK(wires.latency_s == 0.001);
    const transfer_cost air = ring_reduction(cluster("c", named("abcdef"), shared_medium{4_MB_per_s, 1_ms}).network(), ids(first));
    CHECK(air.s_per_byte == Approx(n * each));
    CHECK(air.latency_s == 0.001);
    // In a ring, a half-duplex link carries both what its device sends and what it receives.
    CHECK(ring_reduction(cluster("c", named("abcdef"), star{4_MB_per_s}).network(), ids(first)).s_per_byte == Approx(each));
    CHECK(ring_reduction(cluster("c", named("abcdef"), star{4_MB_per_s, {}, duplex::half}).network(), ids(first)).s_per_byte ==
          Approx(2 * each));
  }
}

TEST_CASE("a ring reduction goes round in list order and waits for its slowest step") {
  const cluster c("c", named("abcd"), ring{4_MB_per_s, 1_ms});
  CHECK(ring_reduction(c.network(), ids({0, 1, 2, 3})) == transfer_cost{0.001, 2 * 0.75 / 4e6});
  // In the order a, c, b, d, some neighbours are two hops apart and share wires.
  const transfer_cost crossed = ring_reduction(c.network(), ids({0, 2, 1, 3}));
  CHECK(crossed.latency_s == Approx(0.002));
  CHECK(crossed.s_per_byte == Approx(2 * 2 * 0.75 / 4e6));  // b -> c carries a-c and b-d
  CHECK(ring_reduction(c.network(), ids({2})) == transfer_cost{});
  CHECK(ring_reduction(c.network(), {}) == transfer_cost{});
  CHECK(ring_reduction(uneven().network(), ids({0, 1})) == transfer_cost{0.002, 1 / 4e6});
  CHECK(ring_reduction(uneven().network(), ids({0, 1, 2})) == transfer_cost{inf, inf});
  CHECK(ring_reduction(uneven().network(), ids({1, 2})).s_per_byte == Approx(2 / 1e6));  // weight 2 on 1 MB/s
}

}  // namespace test_exchange
