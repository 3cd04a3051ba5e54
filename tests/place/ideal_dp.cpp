// SPDX-License-Identifier: BSL-1.0
// Ideals against all subsets and closed forms; contiguous partitions against all assignments; the bound against small programs.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iostream>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <catch2/catch.hpp>

#include <hetplan/graph/ideals.hpp>
#include <hetplan/place/contiguous_partition.hpp>

#include "support/random_source.hpp"

namespace test_ideal_dp {

using namespace hetplan;
using namespace hetplan::place;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
using edge_list = std::vector<std::pair<std::size_t, std::size_t>>;
using rows = std::vector<std::vector<double>>;

auto graph_of(std::size_t nodes, edge_list edges) {
  std::sort(edges.begin(), edges.end());
  return boost::compressed_sparse_row_graph<boost::directedS>(boost::edges_are_sorted, edges.begin(), edges.end(), nodes);
}

/// Returns a random DAG with shuffled node numbers, which are no topological order.
edge_list random_dag(test::random_source& random, int nodes) {
  std::vector<std::size_t> name;
  for (int v = 0; v < nodes; ++v) name.push_back(static_cast<std::size_t>(v));
  random.shuffle(name);
  const double density = random.between(0, 0.8);
  edge_list edges;
  for (std::size_t a = 0; a < name.size(); ++a) {
    for (std::size_t b = a + 1; b < name.size(); ++b) {
      if (random.chance(density)) edges.emplace_back(name[a], name[b]);
    }
  }
  return edges;
}

std::uint32_t mask_of(const ideal_family& f, std::size_t ideal) {
  std::uint32_t mask = 0;
  for (std::size_t v = 0; v < f.nodes(); ++v) mask |= f[ideal].contains(v) ? 1U << v : 0U;
  return mask;
}

/// Load of at least the sum of work, not monotone in the part; a part that does not fit never fits when it grows.
struct wild_load {
  std::vector<std::vector<double>> time;  // [kind][node]
  std::vector<double> room;               // [kind]
  std::vector<double> size;               // [node]
  std::vector<double> extra;              // [hash of kind and set of nodes]
  std::uint32_t part = 0;

  double of(std::uint32_t set, std::size_t kind) const {
    double sum = 0, taken = 0;
    for (std::size_t v = 0; v < size.size(); ++v) {
      if ((set >> v & 1U) == 0) continue;
      sum += time[kind][v];
      taken += size[v];
    }
    return taken > room[kind] ? inf : sum + extra[(set * 2654435761U + kind * 40503U) % extra.size()];
  }

  void add(std::size_t node) { part |= 1U << node; }
  void remove(std::size_t node) { part &= ~(1U << node); }
  double load(std::size_t kind) const { return of(part, kind); }
  double work(std::size_t node, std::size_t kind) const { return time[kind][node]; }
};
static_assert(check_part_load<wild_load>());

wild_load random_load(test::random_source& random, std::size_t nodes, std::size_t kinds) {
  wild_load l;
  const double extra = random.chance(0.3) ? 0 : random.between(0, 8);
  for (int i = 0; i < 61; ++i) l.extra.push_back(std::floor(random.between(0, extra + 1)));
  for (std::size_t v = 0; v < nodes; ++v) l.size.push_back(random.integer(0, 4));
  for (std::size_t k = 0; k < kinds; ++k) {
    l.room.push_back(random.chance(0.5) ? inf : random.integer(3, 12));
    auto& row = l.time.emplace_back();
    for (std::size_t v = 0; v < nodes; ++v) row.push_back(random.chance(0.05) ? inf : random.integer(0, 9));
  }
  return l;
}

/// Returns the least maximum load over all assignments of nodes to devices whose parts can be ordered along the edges.
double brute_force(std::size_t nodes, const edge_list& edges, const std::vector<int>& devices, const wild_load& load) {
  std::vector<std::size_t> kind_of_device;
  for (std::size_t k = 0; k < devices.size(); ++k) kind_of_device.insert(kind_of_device.end(), static_cast<std::size_t>(devices[k]), k);
  const std::size_t count = kind_of_device.size();
  std::vector<std::size_t> device(nodes, 0);
  double best = inf;
  const std::function<void(std::size_t)> go = [&](std::size_t v) {
    if (v < nodes) {
      for (device[v] = 0; device[v] < count; ++device[v]) go(v + 1);
      return;
    }
    // Transitive closure between devices: a part that reaches itself through another is not contiguous.
    std::vector<std::vector<char>> reach(count, std::vector<char>(count, 0));
    for (const auto& [a, b] : edges) {
      if (device[a] != device[b]) reach[device[a]][device[b]] = 1;
    }
    for (std::size_t m = 0; m < count; ++m) {
      for (std::size_t a = 0; a < count; ++a) {
        for (std::size_t b = 0; b < count; ++b) reach[a][b] = static_cast<char>(reach[a][b] | (reach[a][m] & reach[m][b]));
      }
    }
    double worst = 0;
    for (std::size_t d = 0; d < count; ++d) {
      if (reach[d][d]) return;
      std::uint32_t set = 0;
      for (std::size_t u = 0; u < nodes; ++u) set |= device[u] == d ? 1U << u : 0U;
      if (set != 0) worst = std::max(worst, load.of(set, kind_of_device[d]));
    }
    best = std::min(best, worst);
  };
  if (count > 0) go(0);
  return best;
}

/// Checks that the parts are disjoint, cover all nodes, use existing devices, follow the edges, and have the claimed loads.
void check_parts(const ideal_partition& found, std::size_t nodes, const edge_list& edges, const std::vector<int>& devices,
                 const wild_load& load) {
  std::vector<std::size_t> part_of(nodes, nodes);
  std::vector<int> used(devices.size(), 0);
  double worst = 0;
  for (std::size_t p = 0; p < found.parts.size(); ++p) {
    std::uint32_t set = 0;
    for (const std::size_t v : found.parts[p].nodes) {
      CHECK(part_of[v] == nodes);
      part_of[v] = p;
      set |= 1U << v;
    }
    CHECK(set != 0);
    CHECK(found.parts[p].load == load.of(set, found.parts[p].kind));
    worst = std::max(worst, found.parts[p].load);
    ++used[found.parts[p].kind];
  }
  CHECK(worst == found.value);
  for (const std::size_t p : part_of) CHECK(p < nodes);
  for (std::size_t k = 0; k < devices.size(); ++k) CHECK(used[k] <= devices[k]);
  for (const auto& [a, b] : edges) CHECK(part_of[a] <= part_of[b]);
}

}  // namespace

TEST_CASE("a chain of n nodes has n + 1 ideals, n nodes without edges 2^n, k chains of m nodes (m + 1)^k") {
  for (std::size_t n = 0; n <= 130; n += 13) {
    edge_list chain;
    for (std::size_t v = 1; v < n; ++v) chain.emplace_back(v - 1, v);
    CHECK(ideals_of(graph_of(n, chain), 1000)->size() == n + 1);
  }
  for (std::size_t n = 0; n <= 12; ++n) CHECK(ideals_of(graph_of(n, {}), 5000)->size() == std::size_t{1} << n);
  for (const auto& [k, m] : {std::pair<std::size_t, std::size_t>{2, 40}, {3, 20}, {4, 9}, {7, 3}}) {
    edge_list chains;
    std::size_t expected = 1;
    for (std::size_t c = 0; c < k; ++c) {
      expected *= m + 1;
      for (std::size_t i = 1; i < m; ++i) chains.emplace_back(c + k * (i - 1), c + k * i);
    }
    CHECK(ideals_of(graph_of(k * m, chains), 20'000)->size() == expected);
    CHECK(ideals_of(graph_of(k * m, chains), expected).has_value());
    CHECK(!ideals_of(graph_of(k * m, chains), expected - 1));
  }
}

TEST_CASE("the family of ideals is the closed subsets, and its steps are all pairs that differ by one node") {
  const std::uint64_t seed = test::first_seed();
  for (std::uint64_t i = 0; i < 60; ++i) {
    INFO("seed " << seed << ", graph " << i);
    test::random_source random(seed + i);
    const int n = random.integer(1, 10);
    auto edges = random_dag(random, n);
    const auto nodes = static_cast<std::size_t>(n);
    std::set<std::uint32_t> closed;
    for (std::uint32_t set = 0; set < 1U << n; ++set) {
      if (std::all_of(edges.begin(), edges.end(), [&](const auto& e) { return (set >> e.second & 1U) <= (set >> e.first & 1U); }))
        closed.insert(set);
    }
    if (!edges.empty() && random.chance(0.3)) edges.push_back(random.pick(edges));  // a duplicate edge changes nothing
    const ideal_family family = ideals_of(graph_of(nodes, edges), 1024).value();
    REQUIRE(family.size() == closed.size());
    std::size_t steps = 0;
    for (std::size_t k = 0; k < family.size(); ++k) {
      const std::uint32_t mask = mask_of(family, k);
      CHECK(closed.erase(mask) == 1);  // each ideal once
      for (const ideal_family::step& s : family.steps(k)) {
        CHECK(s.to > k);
        CHECK(mask_of(family, s.to) == (mask | 1U << s.node));
        CHECK((mask >> s.node & 1U) == 0);
        ++steps;
      }
    }
    std::size_t expected = 0;
    for (std::size_t k = 0; k < family.size(); ++k) {
      for (std::size_t j = 0; j < k; ++j) {
        const std::uint32_t more = mask_of(family, k) & ~mask_of(family, j);
        if ((mask_of(family, j) & ~mask_of(family, k)) == 0 && std::has_single_bit(more)) ++expected;
      }
    }
    CHECK(steps == expected);
    CHECK(mask_of(family, 0) == 0);
    CHECK(mask_of(family, family.size() - 1) == (1U << n) - 1);
  }
}

TEST_CASE("every linear order is topological, and a chain has one") {
  const std::uint64_t seed = test::first_seed();
  std::size_t several = 0;
  for (std::uint64_t i = 0; i < 50; ++i) {
    INFO("seed " << seed << ", graph " << i);
    test::random_source random(seed + i);
    const int n = random.integer(1, 14);
    const auto edges = random_dag(random, n);
    const auto orders = linear_orders(static_cast<std::size_t>(n), edges);
    REQUIRE(!orders.empty());
    several += orders.size() > 2;
    for (const auto& order : orders) {
      CHECK(std::count(orders.begin(), orders.end(), order) == 1);
      std::vector<std::size_t> at(static_cast<std::size_t>(n), 99);
      REQUIRE(order.size() == at.size());
      for (std::size_t p = 0; p < order.size(); ++p) at[order[p]] = p;
      CHECK(std::count(at.begin(), at.end(), 99U) == 0);
      for (const auto& [a, b] : edges) CHECK(at[a] < at[b]);
    }
  }
  CHECK(several > 20);
  CHECK(linear_orders(4, edge_list{{2, 0}, {0, 3}, {3, 1}}) == std::vector<std::vector<std::size_t>>{{2, 0, 3, 1}});
}

TEST_CASE("contiguous partitions are those of trying every assignment, for loads of any kind") {
  const std::uint64_t seed = test::first_seed();
  int feasible = 0, infeasible = 0, linear_worse = 0, linear_misses = 0, stopped_early = 0;
  for (std::uint64_t i = 0; i < 400; ++i) {
    INFO("seed " << seed << ", instance " << i);
    test::random_source random(seed * 1000 + i);
    const int n = random.integer(1, 6);
    const auto nodes = static_cast<std::size_t>(n);
    const auto edges = random_dag(random, n);
    std::vector<int> devices;
    for (int k = random.integer(1, 3), left = 4; k > 0; --k) {
      devices.push_back(random.integer(0, std::min(left, 3)));
      left -= devices.back();
    }
    const wild_load load = random_load(random, nodes, devices.size());
    const auto g = graph_of(nodes, edges);
    const double best = brute_force(nodes, edges, devices, load);

    const ideal_partition found = contiguous_partition(g, devices, wild_load(load));
    CHECK(found.value == best);  // exact: small integers
    CHECK(found.status.result == (best == inf ? outcome::infeasible : outcome::feasible));
    if (best < inf) {
      ++feasible;
      CHECK(found.gap() == 0);
      check_parts(found, nodes, edges, devices, load);
    } else {
      ++infeasible;
      CHECK(found.parts.empty());
      CHECK(!found.status.reason.empty());
    }
    const ideal_partition linear = linear_partition(g, devices, wild_load(load));
    CHECK(linear.value >= best);
    CHECK(linear.bound <= best * (1 + 1e-12));
    if (linear.status.ok()) check_parts(linear, nodes, edges, devices, load);
    linear_worse += linear.value > best && linear.status.ok();
    linear_misses += !linear.status.ok() && best < inf;

    // A limit at the optimum is infeasible; any larger limit leaves the optimum.
    const auto ideals = ideals_of(g, 100).value();
    CHECK(ideal_dp(ideals, devices, wild_load(load), best).status.result == outcome::infeasible);
    if (best < inf) CHECK(ideal_dp(ideals, devices, wild_load(load), best + 1).value == best);
    CHECK(ideal_dp(ideals, devices, wild_load(load)).value == best);

    const ideal_partition stopped = contiguous_partition(g, devices, wild_load(load), {.max_ideals = 1});
    const bool proven = linear.status.result == outcome::infeasible;  // a node fits nowhere
    CHECK((!proven || best == inf));
    CHECK(stopped.status.result == (linear.status.ok() ? outcome::stopped : linear.status.result));
    CHECK(stopped.status.proof.has_value() == proven);
    if (!proven) {
      CHECK(stopped.status.reason == (linear.status.ok() ? "more than 1 ideals; the best along linear orders"
                                                         : "more than 1 ideals; nothing along linear orders fits the devices"));
    }
    CHECK(stopped.parts == linear.parts);
    CHECK(stopped.bound == linear.bound);
    // With too few pairs, the search returns some partition or none, but no false proof.
    wild_load walked = load;
    const ideal_partition cut_short = contiguous_partition(g, devices, walked, {.max_pairs = random.integer(0, 60)});
    CHECK(walked.part == 0);
    stopped_early += cut_short.status.result == outcome::stopped || cut_short.status.result == outcome::none_found;
    CHECK(cut_short.value >= best);
    CHECK(cut_short.value <= linear.value);
    CHECK(cut_short.bound <= best * (1 + 1e-12));
    if (!cut_short.parts.empty()) check_parts(cut_short, nodes, edges, devices, load);
    if (cut_short.status.ok() || cut_short.status.result == outcome::infeasible) CHECK(cut_short.value == best);
  }
  INFO("feasible " << feasible << ", infeasible " << infeasible << ", linear worse " << linear_worse << ", linear misses "
                   << linear_misses);
  CHECK(feasible > 200);
  CHECK(infeasible > 20);
  CHECK(linear_worse > 0);
  CHECK(stopped_early > 50);
}

TEST_CASE("laws of contiguous partitions: scale, one more device, edges turned round, fewer edges") {
  const std::uint64_t seed = test::first_seed();
  for (std::uint64_t i = 0; i < 60; ++i) {
    INFO("seed " << seed << ", instance " << i);
    test::random_source random(seed * 777 + i);
    const int n = random.integer(3, 14);
    const auto nodes = static_cast<std::size_t>(n);
    const auto edges = random_dag(random, n);
    const wild_load load = random_load(random, nodes, 2);
    const std::vector<int> devices{random.integer(1, 3), random.integer(1, 3)};
    const ideal_partition found = contiguous_partition(graph_of(nodes, edges), devices, wild_load(load));
    CHECK(contiguous_partition(graph_of(nodes, edges), devices, wild_load(load)).parts == found.parts);

    wild_load doubled = load;
    for (auto& row : doubled.time) {
      for (double& t : row) t *= 2;
    }
    for (double& e : doubled.extra) e *= 2;
    const ideal_partition twice = contiguous_partition(graph_of(nodes, edges), devices, wild_load(doubled));
    CHECK(twice.value == 2 * found.value);

    CHECK(contiguous_partition(graph_of(nodes, edges), std::vector{devices[0] + 1, devices[1]}, wild_load(load)).value <= found.value);
    edge_list turned;
    for (const auto& [a, b] : edges) turned.emplace_back(b, a);
    CHECK(contiguous_partition(graph_of(nodes, turned), devices, wild_load(load)).value == found.value);
    edge_list fewer;
    for (const auto& e : edges) {
      if (random.chance(0.7)) fewer.push_back(e);
    }
    CHECK(contiguous_partition(graph_of(nodes, fewer), devices, wild_load(load)).value <= found.value);
  }
}

TEST_CASE("the bound is the optimum where nodes may be split: closed forms and all weights of two kinds") {
  const auto bound = [](const std::vector<int>& devices, const std::vector<std::vector<double>>& work) {
    const auto weight = bound_weights(devices, work);
    double sum = 0, share = 0;
    for (std::size_t v = 0; v < work[0].size(); ++v) {
      double least = inf;
      for (std::size_t k = 0; k < devices.size(); ++k) {
        if (devices[k] > 0) least = std::min(least, weight[k] * work[k][v]);
      }
      sum += least;
    }
    for (std::size_t k = 0; k < devices.size(); ++k) share += devices[k] > 0 ? devices[k] * weight[k] : 0;
    CHECK(share == Approx(1));
    return sum;
  };
  CHECK(bound({4}, {{1, 2, 3, 6}}) == Approx(3));
  // A CPU ten times as slow counts as a tenth of an accelerator.
  CHECK(bound({6, 1}, {{1, 2, 3, 6}, {10, 20, 30, 60}}) == Approx(12 / 6.1));
  CHECK(bound({6, 0}, {{1, 2, 3, 6}, {10, 20, 30, 60}}) == Approx(2));
  // Each node is fast on one of the two kinds.
  CHECK(bound({1, 1}, {{1, 9}, {9, 1}}) == Approx(1));
  CHECK(bound({1, 1}, {{1, inf}, {9, 7}}) == Approx(7));
  // Each node is fast on one of the three kinds.
  CHECK(bound({1, 1, 1}, {{3, 30, 30}, {30, 3, 30}, {30, 30, 3}}) == Approx(3));
  const std::uint64_t seed = test::first_seed();
  for (std::uint64_t i = 0; i < 100; ++i) {
    INFO("seed " << seed << ", instance " << i);
    test::random_source random(seed * 31 + i);
    const int nodes = random.integer(1, 8);
    std::vector<std::vector<double>> work(2);
    for (auto& row : work) {
      for (int v = 0; v < nodes; ++v) row.push_back(random.integer(0, 9));
    }
    const std::vector<int> devices{random.integer(1, 4), random.integer(1, 4)};
    double most = 0;  // maximum over a fine grid of weights
    for (int step = 0; step <= 2000; ++step) {
      const double a = step / 2000.0 / devices[0], b = (1 - step / 2000.0) / devices[1];
      double sum = 0;
      for (std::size_t v = 0; v < work[0].size(); ++v) sum += std::min(a * work[0][v], b * work[1][v]);
      most = std::max(most, sum);
    }
    const double found = bound(devices, work);
    CHECK(found >= most * (1 - 1e-12));
    CHECK(found <= most * 1.01 + 1e-12);
  }
}

TEST_CASE("work alone is balanced as far as contiguity allows") {
  // The optimum of the chain is 4 4 | 4 1 | 5 on three devices and 4 4 | 4 1 5 on two.
  const auto chain = graph_of(5, {{0, 1}, {1, 2}, {2, 3}, {3, 4}});
  const ideal_partition three = contiguous_partition(chain, std::vector{3}, work_load(rows{{4, 4, 4, 1, 5}}));
  CHECK(three.value == 8);
  const ideal_partition two = contiguous_partition(chain, std::vector{2}, work_load(rows{{4, 4, 4, 1, 5}}));
  CHECK(two.value == 10);
  CHECK(two.parts[0].nodes == std::vector<std::size_t>{0, 1});
  CHECK(two.parts[1].nodes == std::vector<std::size_t>{2, 3, 4});
  // Two branches a0 a1 and b0 b1 with heavy heads: no linear order of ours cuts them evenly.
  const auto branches = graph_of(4, {{0, 1}, {2, 3}});
  CHECK(contiguous_partition(branches, std::vector{2}, work_load(rows{{5, 1, 5, 1}})).value == 6);
  CHECK(contiguous_partition(graph_of(0, {}), std::vector{2}, work_load(rows{std::vector<double>{}})).value == 0);
  CHECK(contiguous_partition(chain, std::vector<int>{}, work_load(rows{})).status.result == outcome::infeasible);
  CHECK(contiguous_partition(chain, std::vector{0}, work_load(rows{{4, 4, 4, 1, 5}})).status.result == outcome::infeasible);
  CHECK(contiguous_partition(chain, std::vector{1'000'000}, work_load(rows{{4, 4, 4, 1, 5}})).value == 5);
}

TEST_CASE("what breaks the rules of ideal_dp is named") {
  const auto chain = graph_of(2, {{0, 1}});
  const auto message = [](auto&& call) -> std::string {
    try {
      static_cast<void>(call());
    } catch (const invalid_input& e) {
      return e.what();
    } catch (const invalid_model& e) {
      return std::string("model: ") + e.what();
    }
    return "no error";
  };
  const auto refused = [&](const auto& graph, const std::vector<int>& devices, auto load) {
    return message([&] { return contiguous_partition(graph, devices, load); });
  };
  CHECK(refused(chain, std::vector{-1}, work_load(rows{{1, 1}})) == "ideal_dp: devices[0] = -1; expected >= 0");
  CHECK(refused(graph_of(64, {}), std::vector{64, 64}, work_load(rows(2, std::vector<double>(64, 1)))) ==
        "ideal_dp: devices can be taken in more than 4096 combinations; expected fewer devices or kinds");
  CHECK(refused(chain, std::vector{1}, work_load(rows{{1, -2}})) == "model: ideal_dp: work(node 1, kind 0) = -2; expected >= 0");
  CHECK(refused(chain, std::vector{1}, work_load(rows{{1, std::nan("")}})) == "model: ideal_dp: work(node 1, kind 0) = nan; expected >= 0");
  struct minus_load : work_load {
    using work_load::work_load;
    double load(std::size_t) const { return -1; }
  };
  CHECK(refused(chain, std::vector{1}, minus_load(rows{{1, 1}})) == "model: ideal_dp: load(kind 0) = -1; expected >= 0");
  CHECK(message([&] { return ideals_of(graph_of(4, {{0, 1}, {1, 2}, {2, 1}, {2, 3}}), 100); }).starts_with("ideals: edge "));
  CHECK(refused(graph_of(1, {{0, 0}}), std::vector{1}, work_load(rows{{1}})) ==
        "ideals: edge 0 -> 0 is on a cycle; expected a graph without");
}

}  // namespace test_ideal_dp
