// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/exchange/moirai_json.hpp>
#include <hetplan/place/device_domains.hpp>
#include <hetplan/place/list_schedule.hpp>
#include <hetplan/place/optimal_schedule.hpp>
#include <hetplan/place/partial_schedule.hpp>
#include <hetplan/place/series_schedule.hpp>
#include <hetplan/solve/glpk.hpp>
#include <support/random_tables.hpp>
#include <support/shared_data.hpp>
#include <support/shortest_makespan.hpp>

namespace test_list_schedule {

using namespace hetplan;
using namespace hetplan::place;
using Catch::Matchers::Contains;

struct scheduler {
  std::string name;
  std::function<operator_schedule(const placement_table&, const placement_rules&)> run;
};

std::vector<scheduler> all_schedulers() {
  return {{"HEFT", heft},
          {"PEFT", peft},
          {"m-ETF", m_etf},
          {"m-SCT", [](const auto& t, const auto& r) { return m_sct(t, r); }},
          {"m-SCT by LP", [](const auto& t, const auto& r) { return m_sct(t, r, glpk_lp{}); }},
          {"GETF", [](const auto& t, const auto& r) { return getf(t, r); }},
          {"GETF by LP", [](const auto& t, const auto& r) { return getf(t, r, glpk_lp{}); }},
          {"one device", one_device}};
}

placement_rules rules_of(std::uint64_t seed) {
  return {all_contentions[seed % all_contentions.size()], seed % 8 < 4 ? transfer_copies::per_edge : transfer_copies::per_device};
}

TEST_CASE("every list schedule keeps all rules, and one within memory is found wherever there is one") {
  for (std::uint64_t seed = 0; seed < 240; ++seed) {
    const unsigned memory = seed % 3 == 0 ? 0 : seed % 3 == 1 ? 110 : 150;
    const placement_table t = support::random_table(seed, {.operators = 4 + seed % 9,
                                                           .devices = 2 + seed % 3,
                                                           .shortest_s = seed % 4 == 0 ? 0U : 1U,
                                                           .longest_s = seed % 4 == 0 ? 2U : 9U,
                                                           .memory_percent = memory,
                                                           .tied_percent = seed % 5 == 0 ? 40U : 0U});
    const placement_rules rules = rules_of(seed);
    const fitting any = find_fitting_placement(t);
    CHECK((any.device.empty() || largest_overflow_bytes(t, any.device) <= 0));
    CHECK(any.status.ok() == !any.device.empty());
    if (any.status.result == outcome::infeasible) {
      REQUIRE(any.status.proof.has_value());
      CHECK((any.status.proof->searched > 0 || any.status.proof->rows.front().needed > any.status.proof->rows.front().available));
    }
    for (const scheduler& s : all_schedulers()) {
      CAPTURE(seed, s.name, any.status.reason);
      const operator_schedule found = s.run(t, rules);
      if (found.found()) CHECK(find_broken_rule(t, rules, found).value_or("") == "");
      if (s.name != "one device") CHECK(found.found() == !any.device.empty());
      if (!found.found()) CHECK(!found.status.reason.empty());
    }
  }
}

TEST_CASE("no list schedule is longer than everything on one device, and one device is found where nothing else is") {
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    const placement_table t = support::random_table(seed, {.operators = 5 + seed % 12,
                                                           .devices = 1 + seed % 4,
                                                           .shortest_s = 0,
                                                           .longest_s = seed % 2 == 0 ? 1U : 3U,
                                                           .longest_edge_s = seed % 3 == 0 ? 40U : 5U,
                                                           .memory_percent = seed % 5 == 0 ? 150U : 0U,
                                                           .tied_percent = seed % 4 == 0 ? 40U : 0U,
                                                           .edge_times = seed % 2 == 0});
    const placement_rules rules = rules_of(seed);
    double alone_s = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < t.devices(); ++k) {
      const std::vector<std::size_t> device(t.size(), k);
      if (largest_overflow_bytes(t, device) > 0) continue;
      double sum_s = 0;
      for (std::size_t v = 0; v < t.size(); ++v) sum_s += t.time_s(v, k);
      alone_s = std::min(alone_s, sum_s);
    }
    for (const scheduler& s : all_schedulers()) {
      CAPTURE(seed, s.name);
      const operator_schedule found = s.run(t, rules);
      CHECK(found.makespan_s <= alone_s);
      if (s.name == "one device") CHECK(found.makespan_s == alone_s);
      if (s.name == "one device" && !found.found()) CHECK(found.status.result == outcome::none_found);
    }
  }
}

/// Returns source -> n independent operators -> sink on equal devices. Most outputs take far longer to send than to compute; the other
/// operators send nothing. Each input is as large as the output, or a few bytes for all.
placement_table independent_operators(std::size_t n, std::size_t devices, double latency_s, bool read_as_much) {
  support::draws draw(11);
  placement_data d;
  const auto add = [&](const std::string& name, double time_s) {
    d.operators.push_back(name);
    d.held_bytes.push_back(0);
    d.time_s.insert(d.time_s.end(), devices, time_s);
  };
  add("source", 0);
  for (std::size_t v = 1; v <= n; ++v) {
    add("o" + std::to_string(v), 1e-6 * static_cast<double>(1 + draw.below(6)));
    const double bytes = draw.below(10) < 3 ? 0 : 1e3 * static_cast<double>(100 + draw.below(900));
    d.edges.push_back({0, v, read_as_much ? bytes : 1000});
    d.edges.push_back({v, n + 1, bytes});
  }
  add("sink", 0);
  for (std::size_t k = 0; k < devices; ++k) d.devices.push_back("d" + std::to_string(k)), d.capacity_bytes.push_back(1);
  for (std::size_t p = 0; p < devices * devices; ++p) {
    device_pair pair;
    if (p / devices != p % devices) pair = {latency_s, 1e-9, {d.resources}, {1e-9}}, ++d.resources;
    d.pairs.push_back(pair);
  }
  return placement_table(d);
}

TEST_CASE("windows move independent operators without bytes to other devices, and list schedules leave them on one", "[long]") {
  for (const transfer_copies copies : {transfer_copies::per_edge, transfer_copies::per_device}) {
    for (const std::size_t n : {400U, 2998U}) {
      const double latency_s = n == 400U ? 1e-6 : 0;
      const placement_table t = independent_operators(n, 8, latency_s, copies == transfer_copies::per_edge);
      double all_s = 0, heavy_s = 0;
      for (std::size_t v = 0; v < t.size(); ++v) all_s += t.time_s(v, 0);
      for (const operator_edge& e : t.edges()) heavy_s += e.to == n + 1 && e.bytes > 0 ? t.time_s(e.from, 0) : 0;
      CAPTURE(to_string(copies), latency_s, n, all_s, heavy_s);
      const placement_rules rules{contention::shared, copies};
      if (n < 1000) {
        for (const scheduler& s : all_schedulers()) {
          CAPTURE(s.name);
          CHECK(s.run(t, rules).makespan_s <= all_s * (1 + 1e-12));
        }
      }
      const operator_schedule found = find_schedule(t, rules, {.steps = 500'000});
      CHECK(find_broken_rule(t, rules, found).value_or("") == "");
      CHECK(found.makespan_s <= heavy_s * 1.004);
    }
  }
}

TEST_CASE("HEFT schedules the example of its paper in 80") {
  // Topcuoglu et al., 2002, figure 2: ten tasks, three processors, one communication cost per edge.
  placement_data d{
      .operators = {"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"},
      .devices = {"p1", "p2", "p3"},
      .time_s = {14, 16, 9, 13, 19, 18, 11, 13, 19, 13, 8, 17, 12, 13, 10, 13, 16, 9, 7, 15, 11, 5, 11, 14, 18, 12, 20, 21, 7, 16},
      .held_bytes = std::vector<double>(10, 0),
      .capacity_bytes = {1, 1, 1},
      .pairs = std::vector<device_pair>(9, {0, 1, {}})};
  const double cost[][3] = {{1, 2, 18}, {1, 3, 12}, {1, 4, 9},  {1, 5, 11}, {1, 6, 14},  {2, 8, 19},  {2, 9, 16}, {3, 7, 23},
                            {4, 8, 27}, {4, 9, 23}, {5, 9, 13}, {6, 8, 15}, {7, 10, 17}, {8, 10, 11}, {9, 10, 13}};
  for (const auto& [from, to, c] : cost) d.edges.push_back({static_cast<std::size_t>(from) - 1, static_cast<std::size_t>(to) - 1, c});
  const placement_table t(d);
  const std::vector<double> rank = upward_ranks(t);
  CHECK(rank[0] == Approx(108));
  CHECK(rank[2] == Approx(80));
  CHECK(heft(t, {}).makespan_s == 80);
}

TEST_CASE("a favourite reader has one favourite producer, with and without the relaxed program") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const placement_table t = support::random_table(seed, {.operators = 12, .devices = 3});
    for (const auto& favourite : {favourite_readers(t), favourite_readers(t, glpk_lp{})}) {
      std::vector<int> times(t.size(), 0);
      for (std::size_t v = 0; v < t.size(); ++v) {
        if (favourite[v] == no_operator) continue;
        CHECK(++times[favourite[v]] == 1);
        bool reads = false;
        for (const std::uint32_t e : t.out_edges(v)) reads = reads || t.edges()[e].to == favourite[v];
        CHECK(reads);
      }
    }
  }
}

TEST_CASE("GETF's groups are devices that take the same times, and the relaxed program's operators keep to groups that can run them") {
  placement_data d = support::random_table(3, {.operators = 8, .devices = 4}).data();
  for (std::size_t v = 0; v < 8; ++v) d.time_s[v * 4 + 2] = d.time_s[v * 4];
  d.time_s[1] = std::numeric_limits<double>::infinity();
  const placement_table t(d);
  CHECK(device_groups(t) == std::vector<std::size_t>{0, 1, 0, 2});
  CHECK(operator_groups(t)[0] != 1);
  CHECK(operator_groups(t, glpk_lp{})[0] != 1);
}

TEST_CASE("memory that is full to the byte is enough, one byte less is not, and the answer says by how much") {
  placement_data d{.operators = {"a", "b", "c"},
                   .devices = {"x", "y"},
                   .edges = {{0, 1, 1}, {0, 2, 1}},
                   .time_s = {1, 2, 1, 2, 1, 2},
                   .held_bytes = {5, 4, 3},
                   .capacity_bytes = {7, 5},
                   .pairs = std::vector<device_pair>(4, {0, 1, {}})};
  for (const scheduler& s : all_schedulers()) {
    if (s.name == "one device") continue;
    CAPTURE(s.name);
    const operator_schedule full = s.run(placement_table(d), {});
    CHECK(full.found());
    CHECK(full.makespan_s == s.run(placement_table(d), {}).makespan_s);
    placement_data less = d;
    less.capacity_bytes[0] = 6;
    const operator_schedule none = s.run(placement_table(less), {});
    CHECK(none.status.result == outcome::infeasible);
    CHECK_THAT(none.status.reason, Contains("the operators hold 12 B and the devices 11 B: 1 B too much"));
  }
  placement_data alone = d;
  alone.capacity_bytes = {4, 4};
  CHECK_THAT(heft(placement_table(alone), {}).status.reason, Contains("operator \"a\" fits no device: 1 B too much"));
}

TEST_CASE("bytes that are no whole numbers fill a device in any order") {
  const placement_table t({.operators = {"a", "b", "c", "d", "e", "f", "g"},
                           .devices = {"x"},
                           .edges = {{4, 6, 0}, {6, 0, 0}, {0, 2, 0}, {6, 5, 0}, {5, 1, 0}, {2, 3, 0}},
                           .time_s = std::vector<double>(7, 1),
                           .held_bytes = {0.30000000000000004, 0.2, 0.4, 0.30000000000000004, 0.8, 0.8, 0.4},
                           .capacity_bytes = {3.1999999999999997},
                           .pairs = {{}}});
  for (const contention c : all_contentions) {
    const placement_rules rules{c, transfer_copies::per_edge};
    for (const operator_schedule& s : {find_schedule(t, rules), optimal_schedule(t, rules), heft(t, rules)}) {
      REQUIRE(s.found());
      CHECK(find_broken_rule(t, rules, s).value_or("") == "");
    }
  }
}

TEST_CASE("an operator that no device can run makes every search infeasible") {
  placement_data d = support::random_table(1, {.operators = 5, .devices = 2}).data();
  d.time_s[4] = d.time_s[5] = std::numeric_limits<double>::infinity();
  CHECK_THAT(heft(placement_table(d), {}).status.reason, Contains("\"o2\" can run on no device"));
  CHECK_THAT(find_schedule(placement_table(d), {}).status.reason, Contains("\"o2\" can run on no device"));
}

TEST_CASE("bounds are below the optimum, and the search is at it in nine of ten small graphs") {
  int at_optimum = 0, graphs = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    CAPTURE(seed);
    const placement_table t = support::random_table(seed, {.operators = 4 + seed % 3,
                                                           .devices = 2 + seed % 2,
                                                           .memory_percent = seed % 2 == 0 ? 0U : 130U,
                                                           .tied_percent = seed % 4 == 1 ? 50U : 0U});
    const double optimum = support::shortest_makespan_s(t);
    const placement_bounds b = bounds_of(t);
    const operator_schedule found = find_schedule(t, {}, {.steps = 2000});
    CHECK(found.found() == std::isfinite(optimum));
    if (!found.found()) continue;
    CHECK(b.status.ok());
    CHECK(b.path_s <= optimum * (1 + 1e-9));
    CHECK(b.load_s <= optimum * (1 + 1e-9));
    CHECK(b.path_and_memory_s <= optimum * (1 + 1e-9));
    CHECK(b.interval_s <= optimum * (1 + 1e-9));
    CHECK(found.makespan_s >= optimum * (1 - 1e-9));
    CHECK(found.bound_s <= optimum * (1 + 1e-9));
    CHECK(find_broken_rule(t, {}, found).value_or("") == "");
    ++graphs;
    at_optimum += found.makespan_s <= optimum * (1 + 1e-9);
  }
  CAPTURE(graphs, at_optimum);
  CHECK(graphs > 100);
  CHECK(at_optimum * 10 >= graphs * 9);
}

TEST_CASE("a bound scales with the times, and independent operators on like devices share the load") {
  placement_data d = support::random_table(7, {.operators = 20, .devices = 3, .memory_percent = 130}).data();
  const double once = bounds_of(placement_table(d)).best_s();
  for (double& s : d.time_s) s *= 8;
  for (double& s : d.edge_time_s) s *= 8;
  CHECK(bounds_of(placement_table(d)).best_s() == Approx(8 * once).epsilon(1e-6));
  const placement_data flat{.operators = {"a", "b", "c", "d"},
                            .devices = {"x", "y"},
                            .time_s = std::vector<double>(8, 3),
                            .held_bytes = std::vector<double>(4, 0),
                            .capacity_bytes = {1, 1},
                            .pairs = std::vector<device_pair>(4, {0, 1, {}})};
  CHECK(bounds_of(placement_table(flat)).best_s() == Approx(6));
  CHECK(find_schedule(placement_table(flat), {}).gap() < 1e-9);
}

TEST_CASE("improving keeps all rules, never makes a schedule longer, and repeats itself") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const placement_table t = support::random_table(
        seed,
        {.operators = 30, .devices = 3, .edge_percent = 10, .memory_percent = seed % 2 == 0 ? 0U : 140U, .edge_times = seed % 3 != 0});
    const placement_rules rules = rules_of(seed);
    const operator_schedule start = heft(t, rules);
    if (!start.found()) continue;
    const improve_options how{.steps = 1000, .largest_window = seed % 4 < 2 ? 100U : 12U};
    const operator_schedule better = improve_schedule(t, rules, start, how);
    CHECK(better.makespan_s <= start.makespan_s);
    CHECK(find_broken_rule(t, rules, better).value_or("") == "");
    CHECK(improve_schedule(t, rules, start, how).device == better.device);
  }
}

TEST_CASE("an observer ends the search, and the best so far is the answer") {
  const placement_table t = support::random_table(5, {.operators = 40, .devices = 3, .edge_percent = 8});
  int told = 0;
  auto stop = [&](const schedule_improved&) { return ++told == 2 ? control::stop : control::go; };
  const operator_schedule s = find_schedule(t, {}, {}, stop);
  CHECK(told == 2);
  CHECK(s.found());
  CHECK(s.status.result == outcome::stopped);
}

TEST_CASE("Moirai's samples: HEFT is no worse than published runs, and the search is better") {
  const auto folder = test::shared_data("data/moirai");
  if (!folder) return;
  const auto table = [&](const std::string& name) {
    return exchange::read_moirai(io::json_document::load((*folder / (name + ".json")).string()));
  };
  const placement_table google = table("GoogLeNet"), transformer = table("transformer"), example = table("example-1");
  const find_options few{.steps = 500'000};
  CHECK(heft(google, {}).makespan_s == Approx(1.385e-3).epsilon(1e-4));  // published with four digits
  CHECK(heft(transformer, {}).makespan_s <= 20.07e-3);
  CHECK(find_schedule(google, {}, few).makespan_s < 1.30e-3);
  CHECK(find_schedule(transformer, {}, few).makespan_s < 17.65e-3);
  CHECK(find_schedule(example, {}, few).makespan_s == Approx(30e-3));
  CHECK(find_schedule(example, {contention::one_port}, few).makespan_s <= 31e-3 * (1 + 1e-9));
}

}  // namespace test_list_schedule
