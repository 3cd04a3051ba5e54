// SPDX-License-Identifier: BSL-1.0
// Searches that prove: orders of jobs against all permutations, placements against all devices and orders, rows of parts against the
// whole.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/core/error.hpp>
#include <hetplan/exchange/moirai_json.hpp>
#include <hetplan/place/device_domains.hpp>
#include <hetplan/place/list_schedule.hpp>
#include <hetplan/place/optimal_schedule.hpp>
#include <hetplan/place/relaxed_placement.hpp>
#include <hetplan/place/series_schedule.hpp>
#include <hetplan/simulate/simulation.hpp>
#include <hetplan/simulate/simulator.hpp>
#include <hetplan/solve/glpk.hpp>
#include <hetplan/tasks/expand_placement.hpp>
#include <support/placement_cases.hpp>
#include <support/random_source.hpp>
#include <support/random_tables.hpp>
#include <support/shared_data.hpp>
#include <support/shortest_makespan.hpp>

namespace test_optimal_schedule {

using namespace hetplan;
using namespace hetplan::place;
using Catch::Matchers::Contains;

constexpr double inf = std::numeric_limits<double>::infinity();

/// Up to seven jobs; some need two machines, some take no time.
disjunctive_graph random_jobs(std::uint64_t seed) {
  support::draws draw(seed + 77);
  disjunctive_graph g;
  const std::size_t n = 2 + draw.below(6);
  g.machines.resize(3);
  for (std::size_t i = 0; i < n; ++i) {
    g.work_s.push_back(static_cast<double>(draw.below(6)));
    for (std::size_t j = 0; j < i; ++j) {
      if (draw.below(100) < 20) g.arcs.emplace_back(j, i);
    }
    const std::size_t first = draw.below(3);
    g.machines[first].push_back(i);
    if (draw.below(4) == 0) g.machines[(first + 1) % 3].push_back(i);
  }
  return g;
}

/// Every order of all jobs that keeps the arcs, each job as soon as its machines are free.
double shortest_of_all_orders(const disjunctive_graph& g) {
  std::vector<std::size_t> order(g.work_s.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  double best = inf;
  do {
    std::vector<double> end(order.size(), -1), free(g.machines.size(), 0);
    double last = 0;
    bool possible = true;
    for (const std::size_t i : order) {
      double start = 0;
      for (const auto& [before, after] : g.arcs) {
        if (after != i) continue;
        possible = possible && end[before] >= 0;
        start = std::max(start, end[before]);
      }
      if (!possible) break;
      for (std::size_t m = 0; m < g.machines.size(); ++m) {
        if (std::count(g.machines[m].begin(), g.machines[m].end(), i) > 0) start = std::max(start, free[m]);
      }
      end[i] = start + g.work_s[i];
      for (std::size_t m = 0; m < g.machines.size(); ++m) {
        if (std::count(g.machines[m].begin(), g.machines[m].end(), i) > 0) free[m] = end[i];
      }
      last = std::max(last, end[i]);
    }
    if (possible) best = std::min(best, last);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST_CASE("the shortest order of jobs on machines is that of all permutations, and none is found below it") {
  disjunctive_search search;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    const disjunctive_graph g = random_jobs(seed);
    const double optimum = shortest_of_all_orders(g);
    long long nodes = 100'000;
    const job_order found = search.run(g, inf, nodes);
    REQUIRE(found.complete);
    CHECK(found.makespan_s == optimum);
    double last = 0;
    for (std::size_t i = 0; i < g.work_s.size(); ++i) last = std::max(last, found.start_s[i] + g.work_s[i]);
    CHECK(last == optimum);
    for (const auto& [before, after] : g.arcs) CHECK(found.start_s[after] >= found.start_s[before] + g.work_s[before]);
    for (const auto& machine : g.machines) {
      for (const std::size_t i : machine) {
        for (const std::size_t j : machine) {
          const bool overlap =
              i != j && found.start_s[i] < found.start_s[j] + g.work_s[j] && found.start_s[j] < found.start_s[i] + g.work_s[i];
          CHECK(!overlap);
        }
      }
    }
    const job_order below_it = search.run(g, below(optimum), nodes);
    CHECK(below_it.complete);
    CHECK(below_it.start_s.empty());
  }
}

TEST_CASE("an order search without nodes says that it is not complete") {
  disjunctive_search search;
  long long none = 0;
  const job_order found = search.run(random_jobs(1), inf, none);
  CHECK(!found.complete);
  CHECK(found.start_s.empty());
}

placement_table table_of(std::uint64_t seed, std::size_t operators) {
  return support::random_table(seed, {.operators = operators,
                                      .devices = 2 + seed % 3,
                                      .edge_percent = 30,
                                      .memory_percent = seed % 2 == 0 ? 0U : 95U + 5 * static_cast<unsigned>(seed % 7)});
}

TEST_CASE("branch and bound without contention finds the makespan of all orders on all devices, or that there is none") {
  int infeasible = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    CAPTURE(seed);
    const placement_table t = table_of(seed, 4 + seed % 3);
    const double optimum = support::shortest_makespan_s(t);
    const operator_schedule found = optimal_schedule(t, {});
    if (!std::isfinite(optimum)) {
      ++infeasible;
      CHECK(found.status.result == outcome::infeasible);
      CHECK(!found.found());
      continue;
    }
    CHECK(found.status.ok());
    CHECK(found.makespan_s == optimum);
    CHECK(found.gap() == 0);
    CHECK(find_broken_rule(t, {}, found).value_or("") == "");
  }
  CHECK(infeasible > 0);
}

/// Has an infeasible answer a proof that can be checked: a row that needs more than there is, or a space that was searched?
bool proves(const status& s) {
  if (s.result != outcome::infeasible || !s.proof || s.proof->of.empty()) return false;
  return s.proof->searched > 0 || std::any_of(s.proof->rows.begin(), s.proof->rows.end(),
                                              [](const infeasibility_proof::row& r) { return r.needed > r.available && !r.what.empty(); });
}

TEST_CASE("branch and bound finds what an independent enumeration finds, under every contention and both rules of copies", "[long]") {
  const std::uint64_t seed = test::first_seed();
  const std::vector<test::placement_case> cases = test::placement_cases(seed, 800);
  REQUIRE(cases.size() == 800);
  int number = 0, proven = 0, infeasible = 0;
  for (const test::placement_case& c : cases) {
    INFO(test::placement_oracle(seed, 800) << ": case " << number++ << ", " << c.kind << ", " << to_string(c.rules.contention) << ", "
                                           << to_string(c.rules.copies));
    const operator_schedule found = optimal_schedule(c.table, c.rules);
    const operator_schedule searched = find_schedule(c.table, c.rules, {.steps = 20'000});
    if (!c.optimum_s) {
      ++infeasible;
      CHECK(found.status.result == outcome::infeasible);
      CHECK(proves(found.status));
      CHECK(!searched.found());
      CHECK((searched.status.result == outcome::infeasible ? proves(searched.status) : searched.status.result == outcome::none_found));
      continue;
    }
    CHECK(found.makespan_s == Approx(*c.optimum_s).epsilon(1e-9));
    CHECK(find_broken_rule(c.table, c.rules, found).value_or("") == "");
    CHECK(searched.bound_s <= *c.optimum_s * (1 + 1e-9));
    CHECK(searched.makespan_s >= *c.optimum_s * (1 - 1e-9));
    CHECK(found.exhausted);
    if (c.rules.contention == contention::shared) {
      CHECK(found.bound_s <= *c.optimum_s * (1 + 1e-9));
      continue;
    }
    CHECK(found.gap() == 0);
    proven += searched.gap() == 0;
  }
  CAPTURE(proven, infeasible);
  CHECK(proven > 400);
  CHECK(infeasible > 50);
}

TEST_CASE("narrowing keeps an optimal placement, and its bound is below the optimum") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const placement_table t = table_of(seed, 7);
    for (const contention c : {contention::none, contention::per_link, contention::one_port}) {
      for (const transfer_copies copies : {transfer_copies::per_edge, transfer_copies::per_device}) {
        CAPTURE(seed, to_string(c), to_string(copies));
        const placement_rules rules{c, copies};
        const operator_schedule best = optimal_schedule(t, rules);
        if (!best.found()) continue;
        REQUIRE(best.gap() == 0);
        CHECK(find_broken_rule(t, rules, best).value_or("") == "");
        device_domains domains(t, rules);
        // Of what the optimum keeps to, some devices are given away, some are left open.
        support::draws draw(seed);
        std::vector<device_set> sets = domains.all();
        for (std::size_t v = 0; v < t.size(); ++v) {
          if (draw.below(2) == 0) sets[v] = device_set{1} << best.device[v];
        }
        CHECK(domains.narrow(sets, best.makespan_s * (1 + 1e-6)) <= best.makespan_s * (1 + 1e-9));
        for (std::size_t v = 0; v < t.size(); ++v) CHECK(has(sets[v], best.device[v]));
      }
    }
  }
}

TEST_CASE("more contention never makes the optimum shorter, outputs sent once never longer") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    placement_data d = support::random_table(seed, {.operators = 8, .devices = 3, .edge_times = seed % 2 == 0}).data();
    for (operator_edge& e : d.edges) e.bytes = 3;
    const placement_table t(d);
    const auto optimum = [&](contention c, transfer_copies copies) { return optimal_schedule(t, {c, copies}).makespan_s; };
    const double none = optimum(contention::none, transfer_copies::per_edge);
    for (const contention c : {contention::per_link, contention::one_port}) {
      const double each = optimum(c, transfer_copies::per_edge);
      CHECK(none <= each);
      // Where all edges of an output carry the same bytes, once is enough.
      if (d.edge_time_s.empty()) CHECK(optimum(c, transfer_copies::per_device) <= each);
    }
  }
}

TEST_CASE("an optimum scales with the times, and the numbers of devices and operators do not matter") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    const placement_table t = table_of(seed, 8);
    const placement_rules rules{seed % 2 == 0 ? contention::one_port : contention::none};
    const operator_schedule best = optimal_schedule(t, rules);
    placement_data scaled = t.data();
    for (double& s : scaled.time_s) s *= 4;
    for (double& s : scaled.edge_time_s) s *= 4;
    placement_data turned = t.data();
    const std::size_t n = t.size(), d = t.devices();
    for (std::size_t v = 0; v < n; ++v) {
      turned.held_bytes[n - 1 - v] = t.held_bytes(v);
      for (std::size_t k = 0; k < d; ++k) turned.time_s[(n - 1 - v) * d + (d - 1 - k)] = t.time_s(v, k);
    }
    for (std::size_t k = 0; k < d; ++k) turned.capacity_bytes[d - 1 - k] = t.capacity_bytes(k);
    for (std::size_t e = 0; e < t.edges().size(); ++e) {
      turned.edges[e].from = n - 1 - t.edges()[e].from;
      turned.edges[e].to = n - 1 - t.edges()[e].to;
      for (std::size_t a = 0; a < d; ++a) {
        for (std::size_t b = 0; b < d; ++b)
          turned.edge_time_s[(e * d + (d - 1 - a)) * d + (d - 1 - b)] = t.data().edge_time_s[(e * d + a) * d + b];
      }
    }
    const operator_schedule four = optimal_schedule(placement_table(scaled), rules),
                            other = optimal_schedule(placement_table(turned), rules);
    CHECK(four.found() == best.found());
    CHECK(other.found() == best.found());
    if (!best.found()) continue;
    CHECK(four.makespan_s == 4 * best.makespan_s);
    CHECK(other.makespan_s == best.makespan_s);
  }
}

TEST_CASE("a search without enough steps stops with the best so far and a bound that holds") {
  int open = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    const placement_table t = support::random_table(seed, {.operators = 16, .devices = 3, .edge_percent = 15});
    const placement_rules rules{contention::one_port};
    const operator_schedule best = optimal_schedule(t, rules, heft(t, rules));
    REQUIRE(best.gap() == 0);
    const operator_schedule early = optimal_schedule(t, rules, heft(t, rules), {.steps = 60});
    CHECK(early.steps <= 60);
    CHECK(early.makespan_s >= best.makespan_s);
    CHECK(early.bound_s <= best.makespan_s * (1 + 1e-9));
    if (early.status.ok()) continue;
    ++open;
    CHECK(early.status.result == outcome::stopped);
    CHECK_THAT(early.status.reason, Contains("the budget of 60 steps"));
  }
  CHECK(open > 20);
}

TEST_CASE("devices that are alike are tried once") {
  placement_data d = support::random_table(9, {.operators = 12, .devices = 4, .edge_percent = 12, .edge_times = false}).data();
  for (std::size_t v = 0; v < 12; ++v) {
    for (std::size_t k = 1; k < 4; ++k) d.time_s[v * 4 + k] = d.time_s[v * 4];
  }
  for (device_pair& p : d.pairs) p.latency_s = 1, p.s_per_byte = 1;
  const operator_schedule alike = optimal_schedule(placement_table(d), {});
  d.capacity_bytes = {1e9, 2e9, 3e9, 4e9};  // never full, but told apart
  const operator_schedule apart = optimal_schedule(placement_table(d), {});
  CHECK(alike.makespan_s == apart.makespan_s);
  CHECK(alike.steps < apart.steps);
}

TEST_CASE("more than 64 devices are refused, and an observer ends the search") {
  const placement_table many = support::random_table(1, {.operators = 3, .devices = 65});
  CHECK_THROWS_WITH(optimal_schedule(many, {}), Contains("at most 64 devices, got 65"));
  CHECK(find_schedule(many, {}, {.steps = 1000}).found());
  const placement_table t = support::random_table(3, {.operators = 12, .devices = 3, .edge_percent = 20});
  const operator_schedule stopped = optimal_schedule(t, {}, {}, {.steps = 20}, [](const schedule_improved&) { return control::stop; });
  CHECK(stopped.status.result == outcome::none_found);
}

/// Small graphs one behind the other, joined at single operators.
placement_table row_of_graphs(std::uint64_t seed, std::size_t graphs, unsigned memory_percent, bool crossing) {
  support::draws draw(seed + 5);
  placement_data d = support::random_table(seed, {.operators = 1 + graphs * 5, .devices = 2 + seed % 2, .edge_percent = 0}).data();
  const std::size_t devices = d.devices.size();
  const auto add = [&](std::size_t from, std::size_t to) {
    d.edges.push_back({from, to, 1});
    for (std::size_t p = 0; p < devices * devices; ++p)
      d.edge_time_s.push_back(p / devices == p % devices ? 0 : static_cast<double>(draw.below(6)));
  };
  for (std::size_t g = 0; g < graphs; ++g) {
    const std::size_t entry = g * 5, exit = entry + 5;
    for (std::size_t i = 1; i < 5; ++i) {
      bool reads = false, read = false;
      for (std::size_t j = 1; j < i; ++j) {
        if (draw.below(100) < 25) add(entry + j, entry + i), reads = true;
      }
      if (!reads) add(entry, entry + i);
      for (const operator_edge& e : d.edges) read = read || e.from == entry + i;
    }
    for (std::size_t i = 1; i < 5; ++i) {
      const bool read = std::any_of(d.edges.begin(), d.edges.end(), [&](const operator_edge& e) { return e.from == entry + i; });
      if (!read) add(entry + i, exit);
    }
  }
  if (crossing && graphs > 1) add(0, 6);
  if (memory_percent > 0) {
    const double held = std::accumulate(d.held_bytes.begin(), d.held_bytes.end(), 0.0);
    for (double& c : d.capacity_bytes) c = std::floor(held * memory_percent / 100 / static_cast<double>(devices)) + 3;
  }
  return placement_table(std::move(d));
}

TEST_CASE("parts, milestones and sides are all operators once, and milestones come in order") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    const placement_table t = seed % 2 == 0 ? row_of_graphs(seed, 1 + seed % 5, 0, seed % 3 == 0)
                                            : support::random_table(seed, {.operators = 20, .devices = 2, .edge_percent = 12});
    const series_parts s = find_series_parts(t, {.wanted_operators = 1 + seed % 6, .most_dropped = 0.1 * static_cast<double>(seed % 8)});
    REQUIRE(s.parts.size() == s.milestones.size() + 1);
    std::vector<int> times(t.size(), 0);
    std::vector<std::size_t> part(t.size(), 0);  // 2 i + 1: milestone i; 2 i: part i
    for (std::size_t i = 0; i < s.milestones.size(); ++i) ++times[s.milestones[i]], part[s.milestones[i]] = 2 * i + 1;
    for (std::size_t i = 0; i < s.parts.size(); ++i) {
      for (const std::size_t v : s.parts[i]) ++times[v], part[v] = 2 * i;
    }
    for (const std::size_t v : s.sides) ++times[v];
    CHECK(std::all_of(times.begin(), times.end(), [](int n) { return n == 1; }));
    std::size_t crossing = 0;
    std::vector<char> side(t.size(), 0);
    for (const std::size_t v : s.sides) side[v] = 1;
    for (const operator_edge& e : t.edges()) {
      if (side[e.from] || side[e.to]) continue;
      CHECK(part[e.from] <= part[e.to]);
      crossing += part[e.to] / 2 > (part[e.from] + 1) / 2;
    }
    CHECK(crossing == s.crossing_edges);
  }
}

TEST_CASE("a row of small graphs is cut at the operators that join them, and solved as the whole is") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const placement_table t = row_of_graphs(seed, 3, 0, false);
    const series_parts s = find_series_parts(t, {.wanted_operators = 1, .most_dropped = 0});
    CHECK(s.milestones.size() >= 4);
    CHECK(s.exact());
    for (const contention c : all_contentions) {
      CAPTURE(seed, to_string(c));
      const placement_rules rules{c, seed % 2 == 0 ? transfer_copies::per_edge : transfer_copies::per_device};
      const operator_schedule parts = series_schedule(t, rules, s);
      const operator_schedule whole = optimal_schedule(t, rules, heft(t, rules));
      CHECK(find_broken_rule(t, rules, parts).value_or("") == "");
      CHECK(parts.makespan_s == Approx(whole.makespan_s).epsilon(1e-9));
      if (c != contention::shared) CHECK(parts.gap() == 0);
      CHECK(parts.bound_s <=
            optimal_schedule(t, {contention::none, rules.copies}).makespan_s * (1 + 1e-9) + (c == contention::none ? 0 : 1e9));
    }
  }
}

TEST_CASE("the bound of a row of parts holds where memory binds and where edges and operators pass milestones by") {
  int found = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    const placement_table t = seed % 3 == 0 ? support::random_table(seed, {.operators = 14, .devices = 3, .edge_percent = 20})
                                            : row_of_graphs(seed, 3, seed % 3 == 1 ? 115 : 0, true);
    const placement_rules rules{all_contentions[seed % 3], seed % 2 == 0 ? transfer_copies::per_edge : transfer_copies::per_device};
    CAPTURE(seed, to_string(rules.contention));
    const operator_schedule whole = optimal_schedule(t, rules, heft(t, rules));
    REQUIRE((whole.gap() == 0 || !whole.found()));
    const series_parts s = find_series_parts(t, {.wanted_operators = 2, .most_dropped = 0.6});
    const operator_schedule parts = series_schedule(t, rules, s, {.steps = 100'000});
    if (!whole.found()) continue;
    CHECK(parts.status.result != outcome::infeasible);
    CHECK(parts.bound_s <= whole.makespan_s * (1 + 1e-9));
    if (!parts.found()) continue;
    ++found;
    CHECK(find_broken_rule(t, rules, parts).value_or("") == "");
    CHECK(parts.makespan_s >= whole.makespan_s * (1 - 1e-9));
  }
  CHECK(found > 80);
}

/// Devices a and b are joined, b and c, but not a and c; c alone can run some operators, and no others.
placement_data three_in_a_row(std::size_t operators, const std::vector<std::size_t>& on_c, std::vector<operator_edge> edges) {
  placement_data d{.devices = {"a", "b", "c"},
                   .edges = std::move(edges),
                   .held_bytes = std::vector<double>(operators, 0),
                   .capacity_bytes = {1, 1, 1},
                   .pairs = std::vector<device_pair>(9, {.s_per_byte = inf})};
  for (const std::size_t p : std::array<std::size_t, 4>{1, 3, 5, 7}) d.pairs[p] = {.s_per_byte = 1, .resources = {d.resources++}};
  for (std::size_t v = 0; v < operators; ++v) {
    d.operators.push_back("o" + std::to_string(v));
    const bool c_only = std::find(on_c.begin(), on_c.end(), v) != on_c.end();
    for (const double s : c_only ? std::array{inf, inf, 1.0} : std::array{1.0, 1.0, inf}) d.time_s.push_back(s);
  }
  return d;
}

TEST_CASE("a list schedule that is not found proves nothing: neither of a large part, nor of operators beside the parts") {
  std::vector<operator_edge> star, chain;
  for (std::size_t v = 1; v <= 60; ++v) star.push_back({0, v, 1}), star.push_back({v, 61, 1});
  for (std::size_t v = 0; v + 1 < 50; ++v) chain.push_back({v, v + 1, 1});
  chain.push_back({0, 50, 1});
  chain.push_back({50, 49, 1});
  const placement_table parts(three_in_a_row(62, {61}, star)), side(three_in_a_row(51, {50}, chain));
  for (const contention c : all_contentions) {
    CAPTURE(to_string(c));
    const placement_rules rules{c, transfer_copies::per_edge};
    for (const placement_table* t : {&parts, &side}) {
      const operator_schedule found = find_schedule(*t, rules, {.steps = 200'000});
      REQUIRE(found.found());
      CHECK(find_broken_rule(*t, rules, found).value_or("") == "");
      CHECK(found.bound_s <= found.makespan_s);
    }
  }
  const operator_schedule by_parts = series_schedule(side, {contention::none, transfer_copies::per_edge}, find_series_parts(side));
  CHECK(by_parts.status.result != outcome::infeasible);
  CHECK(find_schedule(side, {contention::none, transfer_copies::per_edge}).makespan_s == Approx(50));
}

TEST_CASE("where a list schedule runs into a dead end, others are not forgotten") {
  placement_data d{.operators = {"a", "b", "c", "d"},
                   .devices = {"x", "y"},
                   .edges = {{0, 1, 1}, {0, 3, 1}, {2, 3, 1}},
                   .time_s = {3, 3, 3, 2, 4, 2, inf, 2},
                   .held_bytes = {0, 0, 0, 0},
                   .capacity_bytes = {1, 1},
                   .pairs = std::vector<device_pair>(4, {0.1, 0.01})};
  d.pairs[1].s_per_byte = inf;  // nothing goes from x to y
  d.time_s[3] = inf;            // b on x only: no device for all
  const placement_table t(d);
  CHECK(heft(t, {}).status.result == outcome::none_found);
  CHECK(find_schedule(t, {}).makespan_s == Approx(7));
  CHECK(optimal_schedule(t, {}, heft(t, {})).makespan_s == Approx(7));
  d.pairs[2].s_per_byte = inf;
  d.time_s[3] = 2;
  d.time_s[2] = inf;  // b on y only, and so a, and so d
  d.time_s[5] = inf;  // but c on x only
  CHECK(find_schedule(placement_table(d), {}).status.result == outcome::infeasible);
}

TEST_CASE("linear programs of a table whose operators take no time have finite numbers") {
  placement_data d{.operators = {"a", "b", "c"},
                   .devices = {"x", "y"},
                   .edges = {{0, 1, 1}, {0, 2, 1}},
                   .time_s = std::vector<double>(6, 0),
                   .held_bytes = {2, 1, 1},
                   .capacity_bytes = {2, 2},
                   .pairs = std::vector<device_pair>(4, {10, 0})};
  for (const double unit : {1.0, 1e-30, 1e30}) {
    for (device_pair& p : d.pairs) p.latency_s = 10 * unit;
    const operator_schedule s = find_schedule(placement_table(d), {}, {.lp = glpk_lp{}});
    CHECK(s.makespan_s == Approx(10 * unit));
    CHECK(s.gap() == 0);
  }
}

/// Equal branches between two operators, which are read by all or read all.
placement_table equal_branches(std::uint64_t seed, std::size_t branches, unsigned memory_percent) {
  support::draws draw(seed + 9);
  placement_data d =
      support::random_table(seed, {.operators = 2 + 2 * branches, .devices = 3, .edge_percent = 0, .edge_times = false}).data();
  const std::size_t last = 1 + 2 * branches;
  for (std::size_t b = 0; b < branches; ++b) {
    const std::size_t first = 1 + 2 * b;
    d.edges.push_back({0, first, 2});
    d.edges.push_back({first, first + 1, 3});
    d.edges.push_back({first + 1, last, 1});
    for (std::size_t i = 0; i < 2; ++i) {
      d.held_bytes[first + i] = d.held_bytes[1 + i];
      for (std::size_t k = 0; k < 3; ++k) d.time_s[(first + i) * 3 + k] = d.time_s[(1 + i) * 3 + k];
    }
  }
  for (device_pair& p : d.pairs) p.busy_s_per_byte.assign(p.resources.size(), p.s_per_byte);
  if (memory_percent > 0) {
    const double held = std::accumulate(d.held_bytes.begin(), d.held_bytes.end(), 0.0);
    for (double& c : d.capacity_bytes) c = std::floor(held * memory_percent / 300) + static_cast<double>(draw.below(6));
  }
  return placement_table(std::move(d));
}

TEST_CASE("operators that are alike have as many edges of each class as any other of their class") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    CAPTURE(seed);
    const placement_table t =
        seed % 2 == 0
            ? equal_branches(seed, 5, 0)
            : support::random_table(seed, {.operators = 12, .devices = 1, .edge_percent = 20, .longest_s = 2, .longest_edge_s = 1});
    const alike_operators a = find_alike_operators(t, device_domains(t, {}).all());
    if (seed % 2 == 0) CHECK(a.like.size() == 4);
    std::size_t operators = 0, edges = 0;
    for (const std::size_t n : a.size) operators += n;
    CHECK(operators == t.size());
    for (const auto& c : a.edges) {
      edges += c.size;
      // Of each operator at either end, the same number.
      CHECK(c.size % a.size[c.from] == 0);
      CHECK(c.size % a.size[c.to] == 0);
    }
    CHECK(edges == t.edges().size());
    for (std::size_t v = 0; v < t.size(); ++v) {
      for (const auto& c : a.edges) {
        std::size_t out = 0;
        for (const std::uint32_t e : t.out_edges(v)) {
          out += a.class_of[t.edges()[e].to] == c.to && t.edges()[e].bytes == t.edges()[c.like].bytes && t.data().edge_time_s.empty();
        }
        if (a.class_of[v] == c.from && t.data().edge_time_s.empty()) CHECK(out == c.size / a.size[c.from]);
      }
    }
  }
}

TEST_CASE("the linear program of split operators bounds the optimum, and is the same where nothing is alike", "[long]") {
  double sum = 0;
  int programs = 0;
  for (std::uint64_t seed = 0; seed < 90; ++seed) {
    const unsigned memory = seed % 3 == 0 ? 120 : 0;
    const placement_table t = seed % 2 == 0 ? equal_branches(seed, 4, memory) : table_of(seed, 8);
    for (const contention c : {contention::none, contention::per_link, contention::one_port}) {
      const placement_rules rules{c, seed % 4 < 2 ? transfer_copies::per_edge : transfer_copies::per_device};
      CAPTURE(seed, to_string(c), to_string(rules.copies));
      const operator_schedule best = optimal_schedule(t, rules);
      if (!best.found()) continue;
      REQUIRE(best.gap() == 0);
      for (const double limit_s : {inf, best.makespan_s * 1.3, best.makespan_s}) {
        const relaxed_bound b = relax_placement(t, rules, limit_s, glpk_lp{});
        CHECK(b.bound_s <= best.makespan_s * (1 + 1e-9));
        CHECK(b.bound_s > 0);
      }
      const double alike = relax_placement(t, rules, inf, glpk_lp{}).bound_s;
      placement_data apart = t.data();
      for (std::size_t i = 0; i < apart.time_s.size(); ++i) apart.time_s[i] *= 1 + 1e-10 * static_cast<double>(i);
      CHECK(relax_placement(placement_table(apart), rules, inf, glpk_lp{}).bound_s == Approx(alike).epsilon(1e-6));
      sum += alike / best.makespan_s;
      ++programs;
      // With prices: what the optimum costs at them is no less.
      const std::vector<double> price{0.3, 0.1, 0.2, 0.05};
      double paid = best.makespan_s;
      for (std::size_t v = 0; v < t.size(); ++v) paid += price[best.device[v]] * t.held_bytes(v);
      const std::vector<double> of_devices(price.begin(), price.begin() + static_cast<std::ptrdiff_t>(t.devices()));
      CHECK(relax_placement(t, rules, inf, glpk_lp{}, {.byte_price = of_devices}).bound_s <= paid * (1 + 1e-9));
    }
  }
  CAPTURE(programs);
  CHECK(sum / programs > 0.7);  // and it is not far below
}

TEST_CASE("under fair sharing, a bound with channels holds for what the simulator makes of any placement") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const placement_table t = equal_branches(seed, 3, 0);
    const placement_rules rules{contention::shared, seed % 2 == 0 ? transfer_copies::per_edge : transfer_copies::per_device};
    const relaxed_bound b = relax_placement(t, rules, inf, glpk_lp{});
    support::draws draw(seed);
    for (int i = 0; i < 20; ++i) {
      std::vector<std::size_t> device;
      for (std::size_t v = 0; v < t.size(); ++v) device.push_back(draw.below(t.devices()));
      operator_schedule s = schedule_in_order(t, rules, {t.order().begin(), t.order().end()}, device);
      for (scheduled_transfer& x : s.transfers) x.start_s = 0;  // at once, all share
      const tasks::placement_tasks run = tasks::expand(t, rules, s);
      CHECK(b.bound_s <= simulate(run.graph, run.cluster.network(), policy_of_plan{sharing::fair_share}).latency.value() * (1 + 1e-9));
    }
  }
}

TEST_CASE("where memory binds, prices of bytes bound a row of parts, and find schedules that fit") {
  int priced = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const placement_table t = row_of_graphs(seed, 3, 108 + 4 * static_cast<unsigned>(seed % 4), seed % 5 == 0);
    const placement_rules rules{seed % 2 == 0 ? contention::none : contention::one_port};
    const operator_schedule whole = optimal_schedule(t, rules, heft(t, rules));
    REQUIRE((whole.gap() == 0 || !whole.found()));
    const series_parts s = find_series_parts(t, {.wanted_operators = 1, .most_dropped = 0.3});
    const operator_schedule without = series_schedule(t, rules, s), with = series_schedule(t, rules, s, {.lp = glpk_lp{}});
    if (!whole.found()) continue;
    CHECK(with.bound_s <= whole.makespan_s * (1 + 1e-9));
    CHECK(with.bound_s >= without.bound_s * (1 - 1e-9));
    priced += with.bound_s > without.bound_s * (1 + 1e-6);
    if (with.found()) CHECK(find_broken_rule(t, rules, with).value_or("") == "");
  }
  CHECK(priced > 0);
}

TEST_CASE("Moirai's samples: example-1 is 30 under every contention, GoogLeNet's optimum is proven") {
  const auto folder = test::shared_data("data/moirai");
  if (!folder) return;
  const auto table = [&](const std::string& name) {
    return exchange::read_moirai(io::json_document::load((*folder / (name + ".json")).string()));
  };
  for (const contention c : {contention::none, contention::per_link, contention::one_port}) {
    CAPTURE(to_string(c));
    const placement_table example = table("example-1");
    const operator_schedule found = find_schedule(example, {c}, {.steps = 100'000});
    CHECK(found.makespan_s == Approx(30e-3).epsilon(1e-9));
    CHECK(found.gap() == 0);
    CHECK(optimal_schedule(example, {c}).makespan_s == Approx(30e-3).epsilon(1e-9));
  }
  const operator_schedule google = find_schedule(table("GoogLeNet"), {});
  CHECK(google.makespan_s == Approx(1.24133e-3).epsilon(1e-5));
  CHECK(google.gap() == 0);
}

}  // namespace test_optimal_schedule
