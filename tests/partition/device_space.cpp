// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/partition/search_tables.hpp>

#include "support/by_hand.hpp"
#include "support/random_source.hpp"

using namespace hetplan;
using namespace hetplan::partition;

namespace {

using classes = std::vector<std::vector<device_id>>;

classes of_sizes(const std::vector<int>& sizes) {
  classes all;
  int next = 0;
  for (const int n : sizes) {
    all.emplace_back();
    for (int i = 0; i < n; ++i) all.back().push_back(device_id(next++));
  }
  return all;
}

std::size_t count_moves(const device_space& s) {
  return std::accumulate(s.moves.begin(), s.moves.end(), std::size_t{0}, [](std::size_t n, const auto& m) { return n + m.size(); });
}

/// Returns the moves of a space as text: "from>to:class*devices ".
std::multiset<std::string> moves_of(const device_space& s) {
  std::multiset<std::string> all;
  for (std::size_t from = 0; from < s.states(); ++from) {
    for (const device_space::move& m : s.moves[from]) {
      std::string text = std::to_string(from) + ">" + std::to_string(m.to) + ":";
      for (const auto& p : s.groups[m.group]) text += std::to_string(p.of_class) + "*" + std::to_string(p.devices) + " ";
      all.insert(text);
    }
  }
  return all;
}

/// Checks the invariants of a space: moves lead to later states, groups are taken from the devices left, no two groups are equal.
void check_sound(const device_space& s, int largest_group) {
  REQUIRE(s.left.size() == s.states());
  REQUIRE(std::set<device_space::device_group>(s.groups.begin(), s.groups.end()).size() == s.groups.size());
  for (std::size_t c = 0; c < s.classes.size(); ++c) REQUIRE(s.left[0][c] == static_cast<int>(s.classes[c].size()));
  for (std::size_t from = 0; from < s.states(); ++from) {
    for (const device_space::move& m : s.moves[from]) {
      REQUIRE(m.to > from);
      REQUIRE(m.to < s.states());
      const auto& g = s.groups[m.group];
      REQUIRE(std::is_sorted(g.begin(), g.end()));
      int members = 0;
      for (const auto& p : g) {
        members += p.devices;
        REQUIRE(p.devices >= 1);
        REQUIRE(s.left[from][p.of_class] >= s.left[m.to][p.of_class] + p.devices);
      }
      REQUIRE(members <= largest_group);
      REQUIRE(s.example(m.group).size() == static_cast<std::size_t>(members));
    }
  }
}

classes classes_of(const cluster& c) {
  return device_classes(c, [](const device& a, const device& b) { return a.compute == b.compute; });
}
/// Returns true if a and b are exchangeable by definition: some renaming of resources maps every route to the one with a and b swapped.
bool exchangeable(const cluster& c, device_id a, device_id b) {
  const auto other = [&](device_id d) { return d == a ? b : d == b ? a : d; };
  std::map<resource_id, resource_id> image, preimage;
  for (const device& x : c.devices()) {
    for (const device& y : c.devices()) {
      const route *r = c.network().find(x.id, y.id), *s = c.network().find(other(x.id), other(y.id));
      if (r == nullptr || s == nullptr) {
        if (r != s) return false;
        continue;
      }
      if (r->latency != s->latency || r->via.size() != s->via.size()) return false;
      for (std::size_t i = 0; i < r->via.size(); ++i) {
        const resource_use &u = r->via[i], &v = s->via[i];
        if (u.weight != v.weight || c.network()[u.resource].capacity != c.network()[v.resource].capacity) return false;
        if (image.emplace(u.resource, v.resource).first->second != v.resource) return false;
        if (preimage.emplace(v.resource, u.resource).first->second != u.resource) return false;
      }
    }
  }
  return true;
}
/// Returns a cluster with few devices, resources, weights and latencies, so that many of them are equal.
cluster drawn_cluster(test::random_source& random) {
  std::vector<device> devices = test::workers(random.integer(2, 6));
  route_table t;
  const int resources = random.integer(1, 5);
  for (int r = 0; r < resources; ++r) t.listed.push_back({"r" + std::to_string(r), bytes_per_second(1e6 * random.integer(1, 2))});
  const auto way = [&] {
    route w{seconds(random.integer(0, 1)), {}};
    for (int r = random.integer(0, 2); r > 0; --r)
      w.via.push_back({resource_id(random.integer(0, resources - 1)), random.chance(0.8) ? 1.0 : 2.0});
    return w;
  };
  if (random.chance(0.8)) t.rules.push_back({"*", "*", way()});
  for (int n = random.integer(0, 6); n > 0; --n) {
    const auto end = [&] { return random.chance(0.3) ? std::string("*") : devices[random.index(devices.size())].name; };
    t.rules.push_back({end(), end(), way()});
  }
  return {"c", devices, t};
}
classes numbers(const std::vector<std::vector<int>>& wanted) {
  classes all;
  for (const auto& ids : wanted) {
    all.emplace_back();
    for (const int i : ids) all.back().push_back(device_id(i));
  }
  return all;
}

}  // namespace

TEST_CASE("every order has as many states and moves as the closed formulas say") {
  for (const std::vector<int>& sizes : std::vector<std::vector<int>>{{1}, {4}, {1, 1}, {2, 3}, {1, 1, 1}, {3, 2, 2}, {5, 1, 2}}) {
    const device_space s = every_order(of_sizes(sizes), 100);
    check_sound(s, 100);
    std::size_t states = 1, pairs = 1;
    for (const int n : sizes) {
      states *= static_cast<std::size_t>(n + 1);
      pairs *= static_cast<std::size_t>((n + 1) * (n + 2) / 2);  // taken before <= taken after
    }
    CHECK(s.states() == states);
    // The closed formula also counts the empty group of each state, which is no move.
    CHECK(count_moves(s) == pairs - states);
    CHECK(moves_of_every_order(of_sizes(sizes)) == static_cast<double>(pairs));
    CHECK(s.groups.size() == states - 1);
    const auto all = moves_of(s);
    CHECK(std::set<std::string>(all.begin(), all.end()).size() == all.size());
  }
}

TEST_CASE("more orders than memory holds, and orders of no devices, are refused before any work") {
  CHECK_THROWS_MATCHES(
      every_order(of_sizes(std::vector<int>(64, 1)), 1), invalid_input,
      Catch::Message("every_order: 64 classes of devices make " + to_text(moves_of_every_order(of_sizes(std::vector<int>(64, 1)))) +
                     " moves; expected at most 1e+08, or in_class_order, which takes one order"));
  CHECK_THROWS_WITH(every_order({}, 1), Catch::Contains("expected at least one device in each"));
  CHECK_THROWS_WITH(every_order({{device_id(0)}, {}}, 1), Catch::Contains("expected at least one device in each"));
  CHECK(every_order(of_sizes({200}), 1).states() == 201);
}

TEST_CASE("every order leaves out groups of more devices than a microbatch has samples") {
  const device_space s = every_order(of_sizes({2, 2}), 2);
  check_sound(s, 2);
  std::size_t expected = 0;  // states by the devices left of each class, times groups (i, j) with 1 <= i + j <= 2
  for (int a = 0; a <= 2; ++a) {
    for (int b = 0; b <= 2; ++b) {
      for (int i = 0; i <= a; ++i) {
        for (int j = 0; j <= b; ++j) expected += i + j >= 1 && i + j <= 2 ? 1 : 0;
      }
    }
  }
  CHECK(count_moves(s) == expected);
}

TEST_CASE("class order by hand: the tail stage takes the last class first") {
  // Device row from the tail: class 1, class 0, class 0.
  const std::vector<std::size_t> order{0, 1};
  const device_space s = in_class_order(of_sizes({2, 1}), order, 100);
  check_sound(s, 100);
  CHECK(s.states() == 4);
  CHECK(s.left == std::vector<std::vector<int>>{{2, 1}, {2, 0}, {1, 0}, {0, 0}});
  // From state 0, a group is a run that begins at 0 or at 1, the first of class 0. From 1 and 2, it takes the next devices of class 0.
  CHECK(moves_of(s) ==
        std::multiset<std::string>{"0>1:1*1 ", "0>2:0*1 1*1 ", "0>3:0*2 1*1 ", "0>2:0*1 ", "0>3:0*2 ", "1>2:0*1 ", "1>3:0*2 ", "2>3:0*1 "});
  // Reverse order with at most two devices per group. Device row from the tail: class 0, class 0, class 1.
  const std::vector<std::size_t> reverse{1, 0};
  const device_space r = in_class_order(of_sizes({2, 1}), reverse, 2);
  check_sound(r, 2);
  CHECK(moves_of(r) == std::multiset<std::string>{"0>1:0*1 ", "0>2:0*2 ", "0>3:1*1 ", "1>2:0*1 ", "1>3:0*1 1*1 ", "1>3:1*1 ", "2>3:1*1 "});
}

TEST_CASE("class order takes N + 1 states whatever the classes are") {
  test::random_source random(test::first_seed());
  INFO("seed " << test::first_seed());
  for (int round = 0; round < 200; ++round) {
    std::vector<int> sizes;
    for (int i = random.integer(1, 4); i > 0; --i) sizes.push_back(random.integer(1, 4));
    std::vector<std::size_t> order(sizes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    random.shuffle(order);
    const int largest = random.integer(1, 6);
    const device_space s = in_class_order(of_sizes(sizes), order, largest);
    check_sound(s, largest);
    CHECK(s.states() == static_cast<std::size_t>(std::accumulate(sizes.begin(), sizes.end(), 0)) + 1);
    // The groups are among those of every_order(); with a single class, the moves are the same.
    const device_space all = every_order(of_sizes(sizes), largest);
    for (const auto& g : s.groups) CHECK(std::count(all.groups.begin(), all.groups.end(), g) == 1);
    if (sizes.size() == 1) CHECK(moves_of(s) == moves_of(all));
  }
}

TEST_CASE("on one medium and in a mesh all equal devices are of one class") {
  auto devices = test::workers(5);
  devices[3].compute = flops_per_second(2);
  CHECK(classes_of(cluster("c", devices, shared_medium{1_MB_per_s, 1_ms})) == numbers({{0, 1, 2, 4}, {3}}));
  CHECK(classes_of(cluster("c", devices, mesh{1_MB_per_s, 1_ms})) == numbers({{0, 1, 2, 4}, {3}}));
  CHECK(classes_of(cluster("c", devices, star{1_MB_per_s, 1_ms, duplex::half})) == numbers({{0, 1, 2, 4}, {3}}));
}

TEST_CASE("neighbours in a ring are not exchangeable where a third device tells them apart") {
  // In a ring of three, all devices are neighbours; in a ring of four, only opposite devices have the same neighbours.
  CHECK(classes_of(cluster("c", test::workers(3), ring{1_MB_per_s, 1_ms})) == numbers({{0, 1, 2}}));
  const cluster four("c", test::workers(4), ring{1_MB_per_s, 1_ms});
  CHECK_FALSE(exchange_test(four)(device_id(0), device_id(1)));
  const cluster five("c", test::workers(5), ring{1_MB_per_s, 1_ms});
  for (int i = 1; i < 5; ++i) CHECK_FALSE(exchange_test(five)(device_id(0), device_id(i)));
}

TEST_CASE("devices are exchangeable where some renaming of resources makes all routes change places") {
  const std::uint64_t seed = 20261122;
  INFO("seed " << seed);
  test::random_source random(seed);
  int alike = 0, different = 0;
  for (int run = 0; run < 1500; ++run) {
    const cluster c = drawn_cluster(random);
    exchange_test test(c);
    for (int question = 0; question < 6; ++question) {
      const device_id a(random.index(c.size())), b(random.index(c.size()));
      const bool expected = exchangeable(c, a, b);
      REQUIRE(test(a, b) == expected);
      if (a != b) ++(expected ? alike : different);
    }
  }
  CHECK(alike > 500);
  CHECK(different > 500);
}

TEST_CASE("hundreds of devices fall into their classes") {
  const auto devices = test::workers(128);
  CHECK(classes_of(cluster("c", devices, mesh{1_MB_per_s, 1_ms})).size() == 1);
  CHECK(classes_of(cluster("c", devices, shared_medium{1_MB_per_s, 1_ms})).size() == 1);
}

TEST_CASE("groups of a hierarchical network are classes of their own") {
  const hierarchical net{.capacity = 1_MB_per_s,
                         .latency = 5_ms,
                         .groups = {{"a", {"d0", "d2"}, 10_MB_per_s, 1_ms}, {"b", {"d1", "d3", "d4"}, 10_MB_per_s, 1_ms}}};
  const cluster c("c", test::workers(5), net);
  CHECK(classes_of(c) == numbers({{0, 2}, {1, 3, 4}}));
  CHECK_FALSE(exchange_test(c)(device_id(0), device_id(1)));
}

TEST_CASE("a wire of another width tells devices apart, and so does a shared one") {
  // Devices 0 and 1 reach device 2 over separate wires, or over one.
  const auto joined = [](double to_0, double to_1, bool one_wire) {
    route_table t;
    t.listed = {{"a", bytes_per_second(to_0)}, {"b", bytes_per_second(to_1)}, {"c", 1_MB_per_s}};
    const auto both = [&](const char* x, const char* y, int resource) {
      t.rules.push_back({x, y, {1_ms, {{resource_id(resource), 1}}}});
      t.rules.push_back({y, x, {1_ms, {{resource_id(resource), 1}}}});
    };
    both("d0", "d2", 0);
    both("d1", "d2", one_wire ? 0 : 1);
    both("d0", "d1", 2);
    return cluster("c", test::workers(3), t);
  };
  CHECK(classes_of(joined(5e6, 5e6, false)) == numbers({{0, 1}, {2}}));
  CHECK(classes_of(joined(5e6, 5e6, true)) == numbers({{0, 1}, {2}}));
  CHECK(classes_of(joined(5e6, 4e6, false)) == numbers({{0}, {1}, {2}}));
  // Devices 0 and 1 reach device 2 over one resource, but devices 2 and 1 reach device 0 over two.
  const cluster one_wire = joined(5e6, 5e6, true);
  CHECK_FALSE(exchange_test(one_wire)(device_id(0), device_id(2)));
}
