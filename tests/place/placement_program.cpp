// SPDX-License-Identifier: BSL-1.0
// Mixed-integer programs of a placement against the enumeration of tests/oracle/placement.py; HETPLAN_TEST_SEED gives other cases.
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/core/error.hpp>
#include <hetplan/exchange/moirai_json.hpp>
#include <hetplan/place/list_schedule.hpp>
#include <hetplan/place/partial_schedule.hpp>
#include <hetplan/place/series_schedule.hpp>
#include <hetplan/place/solve_placement.hpp>
#include <hetplan/solve/glpk.hpp>
#include <support/placement_cases.hpp>
#include <support/random_source.hpp>
#include <support/random_tables.hpp>
#include <support/shared_data.hpp>
#include <support/solvers.hpp>

namespace test_placement_program {

using namespace hetplan;
using namespace hetplan::place;
using Catch::Matchers::Contains;

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr formulation both[] = {formulation::printed, formulation::tight};
constexpr transfer_copies both_copies[] = {transfer_copies::per_edge, transfer_copies::per_device};

std::string text(formulation f) { return f == formulation::printed ? "printed" : "tight"; }

/// Returns true if a solver has the enumerated optimum, false if it met a limit; its answer must be valid in both cases.
template <class Solver>
bool agrees(const test::placement_case& c, const operator_schedule& known, const Solver& solver, formulation f) {
  const operator_schedule s = solve_placement(c.table, c.rules, known, solver, f);
  if (s.found()) CHECK(find_broken_rule(c.table, c.rules, s).value_or("") == "");
  if (s.status.result == outcome::stopped) {
    CAPTURE(s.status.reason);
    CHECK_THAT(s.status.reason, Contains("met a limit"));
    CHECK(s.bound_s <= c.optimum_s.value_or(inf) * (1 + 1e-6));
    CHECK(s.makespan_s >= c.optimum_s.value_or(inf) * (1 - 1e-9));
    return false;
  }
  CHECK(s.found() == c.optimum_s.has_value());
  CHECK(s.status.ok() == s.found());
  if (!s.found()) return true;
  if (c.rules.contention == contention::shared) {  // the program's transfers take turns, latencies included
    CHECK(s.makespan_s >= *c.optimum_s * (1 - 1e-9));
    CHECK(s.bound_s <= *c.optimum_s * (1 + 1e-9));
    return true;
  }
  CHECK(s.makespan_s == Approx(*c.optimum_s).epsilon(1e-9));
  CHECK(s.bound_s == s.makespan_s);
  return true;
}

/// Solves every case by the tight program with GLPK, most from HEFT's schedule, and small cases also as printed, some with Cbc.
void check_against_oracle(std::uint64_t seed, int count) {
  const std::vector<test::placement_case> cases = test::placement_cases(seed, count);
  REQUIRE(cases.size() == static_cast<std::size_t>(count));
  const glpk_milp glpk{.max_nodes = 1000};
  int number = 0, asked = 0, proven = 0, infeasible = 0, known_optima = 0;
  for (const test::placement_case& c : cases) {
    INFO(test::placement_oracle(seed, count) << ": case " << number << ", " << c.kind << ", " << to_string(c.rules.contention)
                                             << (c.rules.copies == transfer_copies::per_edge ? ", per edge" : ", per device"));
    const operator_schedule known = number % 5 == 0 ? operator_schedule{} : heft(c.table, c.rules);
    infeasible += static_cast<int>(!c.optimum_s);
    known_optima += static_cast<int>(c.optimum_s && known.makespan_s <= *c.optimum_s);
    const auto count_one = [&](bool done) { ++asked, proven += static_cast<int>(done); };
    count_one(agrees(c, known, glpk, formulation::tight));
    if (c.table.size() <= 5) count_one(agrees(c, known, glpk, formulation::printed));
#ifdef HETPLAN_HAS_CBC
    if (c.table.size() <= 6 && number % 7 == 1) count_one(agrees(c, known, cbc_milp{.max_nodes = 1000}, formulation::tight));
#endif
    ++number;
  }
  CAPTURE(seed, asked, proven, infeasible, known_optima);
  CHECK(proven * 50 >= asked * 49);
  CHECK(infeasible * 4 < count);
  CHECK(known_optima * 4 < count * 3);  // else the programs have nothing to improve
}

TEST_CASE("both programs have the enumerated optimum") { check_against_oracle(test::first_seed() + 1000, 150); }

TEST_CASE("both programs have the enumerated optimum of more cases", "[long]") { check_against_oracle(test::first_seed(), 1500); }

/// Returns operators without bytes on devices without limits; each pair has its own wire, 1 s per byte.
placement_data plain(std::vector<double> time_s, std::size_t devices, std::vector<operator_edge> edges) {
  placement_data d{.edges = std::move(edges), .time_s = std::move(time_s)};
  const std::size_t n = d.time_s.size() / devices;
  for (std::size_t v = 0; v < n; ++v) d.operators.push_back("o" + std::to_string(v));
  for (std::size_t k = 0; k < devices; ++k) d.devices.push_back("d" + std::to_string(k));
  d.held_bytes.assign(n, 0);
  d.capacity_bytes.assign(devices, inf);
  for (std::size_t p = 0; p < devices * devices; ++p) d.pairs.push_back({0, 1, {d.resources++}});
  return d;
}

double optimum(const placement_data& d, const placement_rules& r, formulation f) {
  const placement_table t(d);
  const operator_schedule s = solve_placement(t, r, {}, glpk_milp{}, f);
  if (s.found()) CHECK(find_broken_rule(t, r, s).value_or("") == "");
  CHECK(s.status.result == (s.found() ? outcome::feasible : outcome::infeasible));
  return s.makespan_s;
}

TEST_CASE("each equation by hand") {
  for (const formulation f : both) {
    CAPTURE(text(f));
    // Eq. 4a, 4b: a reader starts when its producer has ended.
    CHECK(optimum(plain({3, 4}, 1, {{0, 1, 1}}), {}, f) == 7);
    // Eq. 4c: an operator runs on one device, the better one.
    CHECK(optimum(plain({3, 2}, 2, {}), {}, f) == 2);
    CHECK(optimum(plain({inf, 5}, 2, {}), {}, f) == 5);
    CHECK(optimum(plain({inf, inf}, 2, {}), {}, f) == inf);
    // Eq. 5: both operators are on the fast device if they fit there; of working bytes, only the largest count.
    placement_data memory = plain({2, 9, 2, 9}, 2, {});
    memory.held_bytes = {5, 6};
    memory.capacity_bytes = {11, 11};
    CHECK(optimum(memory, {}, f) == 4);
    memory.capacity_bytes = {10, 11};
    CHECK(optimum(memory, {}, f) == 9);
    memory.working_bytes = {2, 3};
    memory.capacity_bytes = {14, 11};
    CHECK(optimum(memory, {}, f) == 4);
    memory.capacity_bytes = {13, 11};
    CHECK(optimum(memory, {}, f) == 9);
    memory.capacity_bytes = {8, 6};
    CHECK(optimum(memory, {}, f) == inf);
    // Eq. 6: operators run one after another on one device, in parallel on two.
    CHECK(optimum(plain({3, 4}, 1, {}), {}, f) == 7);
    CHECK(optimum(plain({3, 3, 4, 4}, 2, {}), {}, f) == 4);
    // Eq. 7: a transfer between devices takes the time of its edge and its directed pair.
    placement_data apart = plain({1, inf, inf, 4}, 2, {{0, 1, 8}});
    apart.pairs[1] = {0.5, 0.25, {1}};
    apart.pairs[2] = {9, 9, {2}};
    CHECK(optimum(apart, {}, f) == 7.5);
    apart.pairs[1].s_per_byte = inf;
    CHECK(optimum(apart, {}, f) == inf);
    apart.edge_time_s = {0, 2, 9, 0};
    CHECK(optimum(apart, {}, f) == 7);
    // Eq. 8: transfers out of one device take turns, and so do transfers into one.
    const placement_data out = plain({1, inf, inf, inf, 1, inf, inf, inf, 1}, 3, {{0, 1, 4}, {0, 2, 4}});
    const placement_data in = plain({1, inf, inf, inf, 1, inf, inf, inf, 1}, 3, {{0, 2, 4}, {1, 2, 4}});
    for (const placement_data& given : {out, in}) {
      for (const transfer_copies copies : both_copies) {
        placement_data d = given;
        CHECK(optimum(d, {contention::none, copies}, f) == 6);
        CHECK(optimum(d, {contention::one_port, copies}, f) == 10);
        CHECK(optimum(d, {contention::per_link, copies}, f) == 6);
        for (device_pair& p : d.pairs) p.resources = {0};
        CHECK(optimum(d, {contention::per_link, copies}, f) == 10);
        CHECK(optimum(d, {contention::shared, copies}, f) == 10);
      }
    }
    // One copy for both readers takes as long as the longest edge; otherwise each reader has its own copy.
    const placement_data twice = plain({1, inf, inf, 1, inf, 1}, 2, {{0, 1, 4}, {0, 2, 6}});
    CHECK(optimum(twice, {contention::none, transfer_copies::per_edge}, f) == 8);
    CHECK(optimum(twice, {contention::one_port, transfer_copies::per_edge}, f) == 12);
    CHECK(optimum(twice, {contention::none, transfer_copies::per_device}, f) == 9);
    CHECK(optimum(twice, {contention::one_port, transfer_copies::per_device}, f) == 9);
  }
}

TEST_CASE("memory that is full to the byte is no matter of a solver's tolerance") {
  struct counted {
    glpk_milp inner;
    int* times;
    milp_solution solve(const milp_problem& p) const { return ++*times, inner.solve(p); }
  };
  placement_data d = plain({2, 9, 2, 9}, 2, {});
  d.held_bytes = {1e12, 1e12 + 1};
  d.capacity_bytes = {2e12 + 1, 2e12};
  for (const formulation f : both) {
    int times = 0;
    CHECK(solve_placement(placement_table(d), {}, {}, counted{{}, &times}, f).makespan_s == 4);
    placement_data less = d;
    less.capacity_bytes[0] = 2e12;
    const int before = times;
    CHECK(solve_placement(placement_table(less), {}, {}, counted{{}, &times}, f).makespan_s == 9);
    CHECK(times > before + 1);  // the first answer kept the row, but not the memory
  }
}

TEST_CASE("a start is the schedule that it was made from, and the program's limits leave it in") {
  for (std::uint64_t seed = 0; seed < 64; ++seed) {
    const placement_table t = support::random_table(
        seed,
        {.operators = 3 + seed % 5, .devices = 1 + seed % 3, .memory_percent = seed % 2 == 0 ? 0U : 150U, .edge_times = seed % 3 != 0});
    const placement_rules r{all_contentions[seed % 4], both_copies[seed / 4 % 2]};
    const operator_schedule known = heft(t, r);
    if (!known.found()) continue;
    for (const formulation f : both) {
      CAPTURE(seed, text(f));
      const placement_program program(t, r, known, f);
      const std::vector<double> start = program.start_of(known);
      const operator_schedule again = program.read(start);
      CHECK(again.device == known.device);
      CHECK(again.makespan_s <= known.makespan_s * (1 + 1e-9));
      CHECK(again.transfers.size() == known.transfers.size());
      CHECK(find_broken_rule(t, r, again).value_or("") == "");
      const milp_solution begun = hetplan::detail::begin_with(glpk_lp{}, program.problem(), start);
      REQUIRE(begun.status == milp_status::feasible);
      CHECK(begun.objective * program.unit_s() == Approx(again.makespan_s).epsilon(1e-6));
    }
  }
}

TEST_CASE("a solver that has next to no time returns what is known, or better") {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const placement_table t = support::random_table(seed, {.operators = 10, .devices = 3});
    const placement_rules r{all_contentions[seed % 4], both_copies[seed / 4 % 2]};
    const operator_schedule known = heft(t, r);
    for (const formulation f : both) {
      CAPTURE(seed, text(f));
      const operator_schedule s = solve_placement(t, r, known, glpk_milp{.max_nodes = 1}, f);
      CHECK(s.makespan_s <= known.makespan_s);
      CHECK(s.bound_s <= s.makespan_s);
      CHECK(find_broken_rule(t, r, s).value_or("") == "");
      if (!s.status.ok()) CHECK_THAT(s.status.reason, Contains("met a limit after"));
    }
  }
}

/// Solver stub that returns a given answer.
struct told {
  std::function<milp_solution(const milp_problem&)> answer;
  milp_solution solve(const milp_problem& p) const { return answer(p); }
};

TEST_CASE("a solver that fails or lies is found out, and what is known stays") {
  const placement_table t(plain({3, 4, 4, 3, 2, 2}, 2, {{0, 1, 2}, {0, 2, 1}}));
  const operator_schedule best = solve_placement(t, {}, {}, glpk_milp{}), known = schedule_in_order(t, {}, {0, 1, 2}, {1, 0, 0});
  REQUIRE(best.status.ok());
  REQUIRE(best.makespan_s < known.makespan_s);
  const auto stops = [&](const told& solver, const std::string& why) {
    const operator_schedule s = solve_placement(t, {}, known, solver);
    CAPTURE(why);
    CHECK(s.status.result == outcome::stopped);
    CHECK_THAT(s.status.reason, Contains(why));
    CHECK(s.makespan_s <= known.makespan_s);
    CHECK(s.bound_s <= s.makespan_s);
    CHECK(find_broken_rule(t, {}, s).value_or("") == "");
    return s;
  };
  const auto says = [](milp_solution s) { return told{[s](const milp_problem&) { return s; }}; };
  const operator_schedule none = solve_placement(t, {}, known, no_milp{});
  CHECK(none.device == known.device);
  CHECK_THAT(none.status.reason, Contains("the solver met a limit after 0 nodes"));
  CHECK(solve_placement(t, {}, {}, no_milp{}).status.result == outcome::none_found);
  CHECK(!solve_placement(t, {}, {}, no_milp{}).found());
  CHECK(stops(says({.bound = 0.25}), "met a limit").bound_s == Approx(known.makespan_s / 4));
  stops(says({.status = milp_status::infeasible}), "no schedule, but one is known");
  stops(says({.status = milp_status::unbounded}), "unbounded");
  stops(says({.status = milp_status::optimal, .x = {1, 2, 3}}), "another size");
  stops(told{[](const milp_problem& p) {
          return milp_solution{.status = milp_status::optimal, .x = std::vector<double>(p.relaxation.objective.size(), 0)};
        }},
        "no placement");
  const auto changed = [](auto change) {
    return told{[change](const milp_problem& p) {
      milp_solution s = glpk_milp{}.solve(p);
      change(s);
      return s;
    }};
  };
  CHECK(stops(changed([](milp_solution& s) { s.objective *= 0.9; }), "does not confirm").makespan_s == best.makespan_s);
  CHECK(stops(changed([](milp_solution& s) { s.objective *= 1.1; }), "does not confirm").makespan_s == best.makespan_s);
  const auto worse_bound = changed([](milp_solution& s) { s.status = milp_status::feasible, s.bound *= 0.5; });
  CHECK(stops(worse_bound, "the best so far").bound_s == Approx(best.makespan_s / 2));

  placement_data small = t.data();
  small.held_bytes = {4, 4, 4};
  small.capacity_bytes = {8, 8};
  const placement_table narrow(small);
  const operator_schedule fits = heft(narrow, {});
  const told forgetful{[](const milp_problem& p) {
    milp_solution s{.status = milp_status::optimal, .objective = 0.1, .x = std::vector<double>(p.relaxation.objective.size(), 0)};
    for (const int c : {1, 3, 5}) s.x[static_cast<std::size_t>(c)] = 1;  // all operators on the first device
    return s;
  }};
  CHECK_THAT(solve_placement(narrow, {}, fits, forgetful).status.reason, Contains("exceed memory"));
}

TEST_CASE("a schedule that breaks a rule is no start, and one that takes no time is the answer") {
  const placement_table t(plain({3, 4, 4, 3}, 2, {{0, 1, 2}}));
  operator_schedule wrong = heft(t, {});
  wrong.start_s[1] = 0;
  CHECK_THROWS_WITH(solve_placement(t, {}, wrong, glpk_milp{}), Contains("solve_placement: the known schedule: "));
  const placement_table nothing(plain({0, 0, 0, 0, 0, 0}, 2, {{0, 1, 0}, {1, 2, 0}}));
  for (const formulation f : both) {
    const operator_schedule s = solve_placement(nothing, {contention::one_port}, heft(nothing, {contention::one_port}), no_milp{}, f);
    CHECK(s.status.ok());
    CHECK(s.bound_s == 0);
    CHECK(solve_placement(nothing, {contention::one_port}, {}, glpk_milp{}, f).makespan_s == 0);
  }
}

TEST_CASE("nodes without duration may be ordered in a circle, which does no harm") {
  // Three operators at one instant, ordered in a circle; one that takes time before them, and one behind them.
  const placement_table t(plain({0, 0, 0, 2, 1}, 1, {{4, 0, 0}, {4, 1, 0}, {4, 2, 0}, {0, 3, 0}, {1, 3, 0}, {2, 3, 0}}));
  const placement_program program(t, {}, {}, formulation::tight);
  std::vector<double> x = program.start_of(schedule_in_order(t, {}, {4, 0, 1, 2, 3}, {0, 0, 0, 0, 0}));
  CHECK(program.read(x).makespan_s == 3);
  // The integers are five device variables, then a binary per direction of the pairs 01, 02, 12.
  const auto& integers = program.problem().integers;
  REQUIRE(integers.size() == 5 + 6);
  for (const std::size_t i : {7U, 8U}) {  // 2 before 0 instead of 0 before 2
    double& value = x[static_cast<std::size_t>(integers[i])];
    value = 1 - value;
  }
  CHECK(program.read(x).makespan_s == 3);
  CHECK(find_broken_rule(t, {}, program.read(x)).value_or("") == "");
}

TEST_CASE("optima scale with times, and one more device never hurts") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    const placement_rules r{all_contentions[seed % 4], both_copies[seed / 4 % 2]};
    placement_data d = support::random_table(seed, {.operators = 6, .devices = 2}).data();
    const operator_schedule once = solve_placement(placement_table(d), r, {}, glpk_milp{});
    REQUIRE(once.status.ok());
    placement_data slower = d;
    for (double& s : slower.time_s) s *= 1e-3;
    for (double& s : slower.edge_time_s) s *= 1e-3;
    CHECK(solve_placement(placement_table(slower), r, {}, glpk_milp{}).makespan_s == Approx(once.makespan_s * 1e-3).epsilon(1e-9));
    placement_data alone = plain({}, 1, d.edges);
    alone.operators = d.operators;
    alone.held_bytes = d.held_bytes;
    for (std::size_t v = 0; v < 6; ++v) alone.time_s.push_back(d.time_s[2 * v]);
    CHECK(solve_placement(placement_table(alone), r, {}, glpk_milp{}).makespan_s >= once.makespan_s * (1 - 1e-9));
  }
}

TEST_CASE("Moirai's first example takes 30 ms at least, and the tight program proves it", "[long]") {
  const auto folder = test::shared_data("data/moirai");
  if (!folder) return;
  const placement_table t = exchange::read_moirai(io::json_document::load((*folder / "example-1.json").string()));
  for (const contention c : {contention::none, contention::one_port}) {
    const operator_schedule s = solve_placement(t, {c}, best_list_schedule(t, {c}), glpk_milp{});
    CHECK(s.status.ok());
    CHECK(s.makespan_s == Approx(30e-3));
    CHECK(s.bound_s == s.makespan_s);
    CHECK(find_broken_rule(t, {c}, s).value_or("") == "");
  }
}

}  // namespace test_placement_program
