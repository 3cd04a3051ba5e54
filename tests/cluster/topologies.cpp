// SPDX-License-Identifier: BSL-1.0
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cluster/topology.hpp>
#include <hetplan/core/error.hpp>

#include "cluster/support.hpp"

namespace test_topologies {

using namespace hetplan;
using test::named;
using test::way;

namespace {

std::string resources(const cluster& c) {
  std::string text;
  for (const resource& r : c.network().resources()) text += (text.empty() ? "" : " ") + r.name;
  return text;
}
double peak_MB_per_s(const cluster& c, const std::string& from, const std::string& to) {
  return c.network().peak_bandwidth(c.find(from), c.find(to)).value() / 1e6;
}

}  // namespace

TEST_CASE("in a shared medium every route takes the one resource") {
  const cluster c("c", named("abc"), shared_medium{6_MB_per_s, 2_ms});
  CHECK(resources(c) == "shared");
  for (const char* from : {"a", "b", "c"}) {
    for (const char* to : {"a", "b", "c"}) CHECK(way(c, from, to) == (std::string(from) == to ? "none" : "shared: 2 ms"));
  }
  CHECK(peak_MB_per_s(c, "a", "c") == Approx(6));
}

TEST_CASE("a mesh has a wire per ordered pair, or per unordered pair if half duplex") {
  const cluster full("c", named("abcd"), mesh{6_MB_per_s, 1_ms});
  CHECK(resources(full) == "a->b a->c a->d b->a b->c b->d c->a c->b c->d d->a d->b d->c");
  const cluster half("c", named("abcd"), mesh{6_MB_per_s, 1_ms, duplex::half});
  CHECK(resources(half) == "a--b a--c a--d b--c b--d c--d");
  for (const std::string from : {"a", "b", "c", "d"}) {
    for (const std::string to : {"a", "b", "c", "d"}) {
      if (from == to) continue;
      CHECK(way(full, from, to) == from + "->" + to + ": 1 ms");
      CHECK(way(half, from, to) == std::min(from, to) + "--" + std::max(from, to) + ": 1 ms");
    }
  }
}

TEST_CASE("a ring takes the shorter way round, in device order on a tie, with a latency per hop") {
  const cluster five("c", named("abcde"), ring{6_MB_per_s, 1_ms});
  CHECK(resources(five) == "a->b b->a b->c c->b c->d d->c d->e e->d e->a a->e");
  CHECK(way(five, "a", "b") == "a->b: 1 ms");
  CHECK(way(five, "a", "c") == "a->b b->c: 2 ms");
  CHECK(way(five, "a", "d") == "a->e e->d: 2 ms");
  CHECK(way(five, "a", "e") == "a->e: 1 ms");
  CHECK(way(five, "d", "a") == "d->e e->a: 2 ms");
  CHECK(way(five, "e", "a") == "e->a: 1 ms");
  CHECK(way(five, "b", "e") == "b->a a->e: 2 ms");
  CHECK(way(five, "d", "b") == "d->c c->b: 2 ms");

  const cluster four("c", named("abcd"), ring{6_MB_per_s, 1_ms});
  CHECK(way(four, "a", "c") == "a->b b->c: 2 ms");
  CHECK(way(four, "c", "a") == "c->d d->a: 2 ms");
  CHECK(way(four, "b", "d") == "b->c c->d: 2 ms");
  CHECK(way(four, "d", "b") == "d->a a->b: 2 ms");
}

TEST_CASE("both directions of a half-duplex ring share the wire, named in device order") {
  const cluster c("c", named("abcde"), ring{6_MB_per_s, 1_ms, duplex::half});
  CHECK(resources(c) == "a--b b--c c--d d--e a--e");
  CHECK(way(c, "a", "c") == "a--b b--c: 2 ms");
  CHECK(way(c, "c", "a") == "b--c a--b: 2 ms");
  CHECK(way(c, "a", "d") == "a--e d--e: 2 ms");
  CHECK(way(c, "e", "b") == "a--e a--b: 2 ms");
}

TEST_CASE("a ring of two devices has one wire, a ring of one none") {
  const cluster full("c", named("ab"), ring{6_MB_per_s, 1_ms});
  CHECK(resources(full) == "a->b b->a");
  CHECK(way(full, "a", "b") == "a->b: 1 ms");
  CHECK(way(full, "b", "a") == "b->a: 1 ms");
  const cluster half("c", named("ab"), ring{6_MB_per_s, 1_ms, duplex::half});
  CHECK(resources(half) == "a--b");
  CHECK(way(half, "a", "b") == "a--b: 1 ms");
  CHECK(way(half, "b", "a") == "a--b: 1 ms");
  CHECK(resources(cluster("c", named("a"), ring{6_MB_per_s})).empty());
}

TEST_CASE("in a star a route takes the sender's uplink and the receiver's downlink, latency once") {
  const cluster full("c", named("abc"), star{6_MB_per_s, 3_ms});
  CHECK(resources(full) == "a.up a.down b.up b.down c.up c.down");
  CHECK(way(full, "a", "c") == "a.up c.down: 3 ms");
  CHECK(way(full, "c", "b") == "c.up b.down: 3 ms");
  const cluster half("c", named("abc"), star{6_MB_per_s, 3_ms, duplex::half});
  CHECK(resources(half) == "a.link b.link c.link");
  CHECK(way(half, "a", "c") == "a.link c.link: 3 ms");
  CHECK(way(half, "c", "a") == "c.link a.link: 3 ms");
}

TEST_CASE("between groups a route takes both groups and their up- and downlink, and adds three latencies") {
  const std::vector<hierarchical::group> rooms{{"lab", {"a", "c"}, 100_MB_per_s, 1_ms}, {"attic", {"b"}, 50_MB_per_s, 2_ms}};
  const cluster full("c", named("abc"), hierarchical{.capacity = 10_MB_per_s, .latency = 20_ms, .groups = rooms});
  CHECK(resources(full) == "lab lab.up lab.down attic attic.up attic.down");
  CHECK(way(full, "a", "c") == "lab: 1 ms");
  CHECK(way(full, "a", "b") == "lab lab.up attic.down attic: 23 ms");
  CHECK(way(full, "b", "c") == "attic attic.up lab.down lab: 23 ms");
  CHECK(peak_MB_per_s(full, "a", "c") == Approx(100));
  CHECK(peak_MB_per_s(full, "a", "b") == Approx(10));

  const cluster half("c", named("abc"), hierarchical{10_MB_per_s, 20_ms, duplex::half, rooms});
  CHECK(resources(half) == "lab lab.link attic attic.link");
  CHECK(way(half, "c", "a") == "lab: 1 ms");
  CHECK(way(half, "a", "b") == "lab lab.link attic.link attic: 23 ms");
  CHECK(way(half, "b", "a") == "attic attic.link lab.link lab: 23 ms");
}

TEST_CASE("every device is in exactly one group") {
  const auto with = [](std::vector<std::string> second) {
    return cluster("c", named("abc"),
                   hierarchical{10_MB_per_s, 0_ms, duplex::full, {{"g", {"a", "b"}, 1_MB_per_s}, {"h", second, 1_MB_per_s}}});
  };
  CHECK_NOTHROW(with({"c"}));
  CHECK_THROWS_MATCHES(with({}), invalid_input,
                       Catch::Message(R"(hierarchical topology: device "c" is in 0 groups; expected exactly one)"));
  CHECK_THROWS_MATCHES(with({"b", "c"}), invalid_input,
                       Catch::Message(R"(hierarchical topology: device "b" is in 2 groups; expected exactly one)"));
  CHECK_THROWS_MATCHES(with({"c", "c"}), invalid_input,
                       Catch::Message(R"(hierarchical topology: device "c" is in 2 groups; expected exactly one)"));
}

TEST_CASE("of several routes that match, both ends win over one end, one over none, the first on a tie") {
  const auto path = [](int ms) { return route{seconds(1e-3 * ms), {{resource_id(0), 1}}}; };
  route_table t{
      .listed = {{"wifi", 8_MB_per_s}},
      .rules = {
          {"*", "*", path(1)}, {"*", "*", path(2)}, {"*", "b", path(3)}, {"a", "*", path(4)}, {"a", "c", path(5)}, {"a", "c", path(6)}}};
  const cluster c("c", named("abc"), t);
  CHECK(way(c, "a", "c") == "wifi: 5 ms");
  CHECK(way(c, "a", "b") == "wifi: 3 ms");  // {*, b} and {a, *} are equally specific: the first listed applies
  CHECK(way(c, "c", "b") == "wifi: 3 ms");
  CHECK(way(c, "c", "a") == "wifi: 1 ms");
  CHECK(way(c, "b", "c") == "wifi: 1 ms");
  std::swap(t.rules[2], t.rules[3]);
  CHECK(way(cluster("c", named("abc"), t), "a", "b") == "wifi: 4 ms");
}

TEST_CASE("a pair without a route is no error by itself") {
  const cluster c("c", named("abc"), route_table{{{"wire", 8_MB_per_s}}, {{"a", "b", {1_ms, {{resource_id(0), 1}}}}}});
  CHECK(way(c, "a", "b") == "wire: 1 ms");
  CHECK(way(c, "b", "a") == "none");
  CHECK(peak_MB_per_s(c, "b", "a") == 0);
}

TEST_CASE("a resource that a route lists twice adds its weights, and the peak is the least capacity per weight") {
  const route_table t{{{"wifi", 8_MB_per_s}, {"wire", 5_MB_per_s}},
                      {{"a", "b", {0_ms, {{resource_id(0), 1}, {resource_id(1), 1}, {resource_id(0), 1.5}}}},
                       {"b", "a", {1_ms, {{resource_id(1), 0.5}, {resource_id(0), 1}}}},
                       {"a", "c", {2_ms, {}}}}};
  const cluster c("c", named("abc"), t);
  CHECK(way(c, "a", "b") == "wifi*2.5 wire: 0 ms");
  CHECK(peak_MB_per_s(c, "a", "b") == Approx(3.2));
  CHECK(peak_MB_per_s(c, "b", "a") == Approx(8));
  CHECK(way(c, "a", "c") == ": 2 ms");
  CHECK(peak_MB_per_s(c, "a", "c") == std::numeric_limits<double>::infinity());
}

TEST_CASE("a network asks a model that prepares its routes once, and gets what the model says of each pair") {
  struct counting {
    int* prepared;
    [[nodiscard]] std::vector<resource> resources(std::span<const device>) const { return {{"air", 1_MB_per_s}}; }
    [[nodiscard]] std::optional<route> find_route(std::span<const device>, device_id, device_id) const {
      FAIL("asked for a single pair");
      return std::nullopt;
    }
    [[nodiscard]] auto route_finder(std::span<const device> devices) const {
      ++*prepared;
      return [devices](device_id from, device_id to) -> std::optional<route> {
        return route{seconds(static_cast<double>(10 * from.index() + to.index() + devices.size())), {}};
      };
    }
  };
  static_assert(check_network_model<counting>() && prepares_routes<counting> && prepares_routes<hierarchical> && !prepares_routes<mesh>);
  int prepared = 0;
  const cluster c("c", named("abc"), counting{&prepared});
  CHECK(prepared == 1);
  CHECK(way(c, "b", "c") == ": 15000 ms");
}

TEST_CASE("hundreds of groups are joined as pair by pair") {
  hierarchical h{.capacity = 1_MB_per_s, .latency = 5_ms, .groups = {}};
  std::vector<device> devices;
  for (int g = 0; g < 150; ++g) {
    h.groups.push_back({"g" + std::to_string(g), {}, bytes_per_second(1e6 + g), seconds(1e-3 * g)});
    for (const char* letter : {"a", "b"}) {
      devices.push_back({.name = letter + std::to_string(g), .memory = 1_GB});
      h.groups.back().devices.push_back(devices.back().name);
    }
  }
  const cluster c("c", devices, h);
  for (std::size_t i = 0; i < c.size(); i += 7) {
    for (std::size_t j = 0; j < c.size(); j += 11) {
      if (i != j) REQUIRE(*c.network().find(device_id(i), device_id(j)) == h.find_route(c.devices(), device_id(i), device_id(j)));
    }
  }
}

}  // namespace test_topologies
