// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cluster/topology.hpp>
#include <hetplan/cluster/widest_routes.hpp>
#include <hetplan/core/error.hpp>

#include "cluster/support.hpp"
#include "support/random_source.hpp"

namespace test_widest_routes {

using namespace hetplan;
using test::named;
using test::way;

static_assert(check_network_model<widest_routes<route_table>>() && prepares_routes<widest_routes<route_table>>);

namespace {

struct link {
  char from, to;
  double MB_per_s, latency_ms;
};
/// Wires for both ways, "a--b".
route_table wires(const std::vector<link>& links) {
  route_table table;
  for (const link& l : links) {
    const route way{seconds(l.latency_ms * 1e-3), {{resource_id(table.listed.size()), 1}}};
    table.listed.push_back({std::string(1, l.from) + "--" + l.to, bytes_per_second(l.MB_per_s * 1e6)});
    table.rules.push_back({std::string(1, l.from), std::string(1, l.to), way});
    table.rules.push_back({std::string(1, l.to), std::string(1, l.from), way});
  }
  return table;
}

std::string widest_way(const std::string& letters, const std::vector<link>& links, const std::string& from, const std::string& to) {
  return way(cluster("c", named(letters), widest_routes{wires(links)}), from, to);
}

/// Every simple path from one device to all others, compared as the header says.
class all_paths {
 public:
  struct best_path {
    double width = 0;
    int hops = 0;
    double latency_s = 0;
    std::vector<std::size_t> backwards;  ///< from the destination, without it
  };

  all_paths(const network& direct, std::size_t devices) : direct_(direct), devices_(devices) {}

  [[nodiscard]] std::map<std::size_t, best_path> from(std::size_t source) {
    best_.clear();
    path_ = {source};
    extend(std::numeric_limits<double>::infinity(), 0);
    return best_;
  }

 private:
  void extend(double width, double latency_s) {  // NOLINT(misc-no-recursion): at most six devices
    for (std::size_t next = 0; next < devices_; ++next) {
      if (std::count(path_.begin(), path_.end(), next) > 0) continue;
      const device_id u(path_.back()), v(next);
      const route* r = direct_.find(u, v);
      if (r == nullptr) continue;
      const double now = std::min(width, direct_.peak_bandwidth(u, v).value()), sum_s = latency_s + r->latency.value();
      const best_path found{now, static_cast<int>(path_.size()), sum_s, {path_.rbegin(), path_.rend()}};
      const auto key = [](const best_path& p) { return std::tuple(-p.width, p.hops, p.latency_s, p.backwards); };
      const auto [known, fresh] = best_.emplace(next, found);
      if (!fresh && key(found) < key(known->second)) known->second = found;
      path_.push_back(next);
      extend(now, sum_s);
      path_.pop_back();
    }
  }

  const network& direct_;
  std::size_t devices_;
  std::vector<std::size_t> path_;
  std::map<std::size_t, best_path> best_;
};

}  // namespace

TEST_CASE("Moirai's indirect channel: 100 MB over 10 and 5 MB/s take 20 s") {
  // Fig 3: A reaches F over B and D.
  const cluster c(
      "fig 3", named("ABCDEF"),
      widest_routes{wires({{'A', 'B', 10, 1}, {'B', 'D', 5, 2}, {'D', 'F', 8, 4}, {'A', 'C', 2, 1}, {'C', 'E', 9, 1}, {'E', 'F', 9, 1}})});
  CHECK(way(c, "A", "F") == "A--B B--D D--F: 7 ms");
  CHECK(way(c, "A", "D") == "A--B B--D: 3 ms");
  CHECK(100_MB / c.network().peak_bandwidth(c.find("A"), c.find("D")) == 20_s);
  CHECK(way(c, "A", "C") == "A--C: 1 ms");  // direct, although the way over B, D, F and E is wider
  for (const device& a : c.devices()) {
    for (const device& b : c.devices()) CHECK((c.network().find(a.id, b.id) == nullptr) == (a.id == b.id));
  }
}

TEST_CASE("of equally wide paths that with fewer hops is taken, then less latency, then smaller ids") {
  CHECK(widest_way("abcd", {{'a', 'b', 9, 1}, {'b', 'c', 9, 1}, {'a', 'c', 4, 9}, {'c', 'd', 4, 1}}, "a", "d") == "a--c c--d: 10 ms");
  CHECK(widest_way("abcd", {{'a', 'b', 4, 3}, {'b', 'd', 4, 3}, {'a', 'c', 4, 3}, {'c', 'd', 4, 2}}, "a", "d") == "a--c c--d: 5 ms");
  CHECK(widest_way("abcd", {{'a', 'c', 4, 3}, {'c', 'd', 4, 3}, {'a', 'b', 4, 3}, {'b', 'd', 4, 3}}, "a", "d") == "a--b b--d: 6 ms");
}

TEST_CASE("a resource that recurs on a path counts as often") {
  route_table table{{{"air", 6_MB_per_s}, {"wire", 9_MB_per_s}},
                    {{"a", "b", {1_ms, {{resource_id(0), 1}}}}, {"b", "c", {2_ms, {{resource_id(0), 2}, {resource_id(1), 1}}}}}};
  const cluster c("c", named("abc"), widest_routes{table});
  CHECK(way(c, "a", "c") == "air*3 wire: 3 ms");
  CHECK(c.network().peak_bandwidth(c.find("a"), c.find("c")) == 2_MB_per_s);
  CHECK(way(c, "c", "a") == "none");
  CHECK(way(c, "b", "a") == "none");
}

TEST_CASE("a network with all routes, or without any, stays as it is") {
  const auto devices = named("abcd");
  CHECK(cluster("c", devices, widest_routes{star{6_MB_per_s, 1_ms}}) == cluster("c", devices, star{6_MB_per_s, 1_ms}));
  const hierarchical groups{3_MB_per_s, 5_ms, duplex::full, {{"x", {"a", "b"}, 9_MB_per_s, 1_ms}, {"y", {"c", "d"}, 8_MB_per_s, 1_ms}}};
  CHECK(cluster("c", devices, widest_routes{groups}) == cluster("c", devices, groups));
  CHECK(cluster("c", devices, widest_routes{route_table{}}) == cluster("c", devices, route_table{}));
}

TEST_CASE("an infinitely fast route is as wide as any") {
  route_table table = wires({{'b', 'c', 4, 1}});
  table.rules.push_back({"a", "b", {}});
  table.rules.push_back({"c", "d", {2_ms, {}}});
  const cluster c("c", named("abcd"), widest_routes{table});
  CHECK(way(c, "a", "d") == "b--c: 3 ms");
}

TEST_CASE("what a model answers for one pair is what a cluster knows") {
  const route_table table = wires({{'a', 'b', 4, 1}, {'b', 'c', 4, 1}});
  std::vector<device> devices = named("abc");
  for (std::size_t i = 0; i < 3; ++i) devices[i].id = device_id(i);
  const widest_routes model{table};
  const cluster c("c", devices, model);
  CHECK(model.find_route(devices, device_id(0), device_id(2)) == *c.network().find(device_id(0), device_id(2)));
  CHECK(model.resources(devices).size() == 2);
}

TEST_CASE("a path whose weights add up to infinity is refused") {
  const double most = std::numeric_limits<double>::max();
  const route_table table{{{"air", bytes_per_second(most)}},
                          {{"a", "b", {1_ms, {{resource_id(0), most}}}}, {"b", "c", {1_ms, {{resource_id(0), most}}}}}};
  CHECK_THROWS_AS(cluster("c", named("abc"), widest_routes{table}), invalid_model);
}

TEST_CASE("every path over random networks is the best of all simple ones") {
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 300; ++seed) {
    CAPTURE(seed);
    test::random_source random(seed);
    const std::size_t n = static_cast<std::size_t>(random.integer(2, 6));
    const std::string letters = std::string("abcdef").substr(0, n);
    const double density = random.between(0.2, 0.8);
    const int widths = random.integer(1, 6), latencies = random.integer(0, 3);
    route_table table;
    for (const char a : letters) {
      for (const char b : letters) {
        if (a == b || !random.chance(density)) continue;
        const double latency_s = random.integer(0, latencies);
        table.rules.push_back({std::string(1, a), std::string(1, b), {seconds(latency_s), {{resource_id(table.listed.size()), 1}}}});
        table.listed.push_back({std::string(1, a) + "->" + b, bytes_per_second(random.integer(1, widths))});
      }
    }
    const cluster direct("c", named(letters), table), all("c", named(letters), widest_routes{table});
    all_paths paths(direct.network(), n);
    for (std::size_t a = 0; a < n; ++a) {
      const auto best = paths.from(a);
      for (std::size_t b = 0; b < n; ++b) {
        if (a == b) continue;
        const route* found = all.network().find(device_id(a), device_id(b));
        if (const route* given = direct.network().find(device_id(a), device_id(b))) {
          REQUIRE(found != nullptr);
          CHECK(*found == *given);
          continue;
        }
        const auto expected = best.find(b);
        REQUIRE((found == nullptr) == (expected == best.end()));
        if (found == nullptr) continue;
        CHECK(all.network().peak_bandwidth(device_id(a), device_id(b)).value() == expected->second.width);
        CHECK(found->latency.value() == expected->second.latency_s);
        std::vector<resource_use> via;
        std::size_t to = b;
        for (const std::size_t from : expected->second.backwards) {
          via.push_back(direct.network().find(device_id(from), device_id(to))->via.front());
          to = from;
        }
        std::reverse(via.begin(), via.end());
        CHECK(found->via == via);
      }
    }
  }
}

}  // namespace test_widest_routes
