// SPDX-License-Identifier: BSL-1.0
// The linear program of an event order: against the runs that keep the order, by hand, and with solvers that fail or lie.

#include <hetplan/schedule/exact_schedule.hpp>
#include <hetplan/schedule/local_search.hpp>
#include <hetplan/schedule/transfer_scheduler.hpp>
#include <hetplan/simulate/simulator.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "support/by_hand.hpp"
#include "support/random_cep.hpp"
#include "support/solvers.hpp"

namespace test_order_search {

using namespace hetplan;
using namespace hetplan::test;
using schedule::cep_graph;
using schedule::event_order;
using schedule::network_schedule;
using schedule::order_program;
using schedule::order_search_result;

namespace {

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

/// Returns runs of whole transfers: uncontrolled, by the priority rules, and by search.
std::vector<network_schedule> runs_of(const cep_graph& cep) {
  return {schedule::uncontrolled(cep),
          schedule::list_schedule(cep, schedule::critical_path_first{}),
          schedule::list_schedule(cep, schedule::longest_tail_first{}),
          schedule::list_schedule(cep, schedule::earliest_first{}),
          schedule::list_schedule(cep, schedule::smallest_first{}),
          schedule::local_search(cep, {.steps = 30, .most_chunks = 1})};
}

/// Two transfers on one link: 1 byte, then 4 s; and 5 bytes, then 2 s.
struct two_on_a_link {
  cluster joined = wireless(4);
  tasks::task_graph graph;
  two_on_a_link() {
    tasks::task_graph_builder b(4);
    for (const auto& [from, volume, tail] : {std::tuple(0, 1.0, 4.0), std::tuple(2, 5.0, 2.0)}) {
      const auto after = b.add(tasks::compute_task{.stage = stage_id(from + 1), .device = device_id(from + 1), .duration_s = tail});
      b.append_to_order(after);
      const auto t = b.add(tasks::transfer{.from = device_id(from),
                                           .to = device_id(from + 1),
                                           .from_stage = stage_id(from),
                                           .to_stage = stage_id(from + 1),
                                           .route = b.add_route(*joined.network().find(device_id(from), device_id(from + 1))),
                                           .volume_bytes = volume});
      b.depend(t, after);
    }
    graph = std::move(b).build();
  }
};

/// Returns three flows of 2 bytes, each over two of three links of 1 B/s.
transfers_alone triangle() {
  transfers_alone x(3, {1, 1, 1});
  x.add(0, 1, 2, 0, {{0, 1}, {1, 1}});
  x.add(1, 2, 2, 0, {{1, 1}, {2, 1}});
  x.add(2, 0, 2, 0, {{2, 1}, {0, 1}});
  return x;
}

/// The solver without warm starts.
struct cold {
  [[nodiscard]] lp_solution solve(const lp_problem& p) const { return glpk_lp{}.solve(p); }
};
static_assert(!warm_starts_lp<cold> && warm_starts_lp<glpk_lp>);

/// Solves correctly, then changes the answer by `twist`, from call number `from` on.
template <class Twist>
struct liar {
  Twist twist;
  int from = 1;
  int* calls;
  [[nodiscard]] lp_solution solve(const lp_problem& p) const {
    lp_solution s = glpk_lp{}.solve(p);
    if (++*calls >= from) twist(p, s);
    return s;
  }
};

using twist = void (*)(const lp_problem&, lp_solution&);
const std::vector<std::pair<std::string, twist>> lies{
    {"unsolved", [](const lp_problem&, lp_solution& s) { s = {}; }},
    {"unsolved, with an x", [](const lp_problem&, lp_solution& s) { s.status = lp_status::unsolved; }},
    {"infeasible", [](const lp_problem&, lp_solution& s) { s.status = lp_status::infeasible; }},
    {"unbounded", [](const lp_problem&, lp_solution& s) { s.status = lp_status::unbounded; }},
    {"no x", [](const lp_problem&, lp_solution& s) { s.x.clear(); }},
    {"a short x", [](const lp_problem&, lp_solution& s) { s.x.resize(s.x.size() / 2); }},
    {"a long x", [](const lp_problem&, lp_solution& s) { s.x.resize(s.x.size() + 7, 1.0); }},
    {"x of NaN", [](const lp_problem&, lp_solution& s) { s.x.assign(s.x.size(), no_number); }},
    {"some x of NaN",
     [](const lp_problem&, lp_solution& s) {
       for (std::size_t c = 0; c < s.x.size(); c += 2) s.x[c] = no_number;
     }},
    {"x of infinity", [](const lp_problem&, lp_solution& s) { s.x.assign(s.x.size(), std::numeric_limits<double>::infinity()); }},
    {"x of zero", [](const lp_problem&, lp_solution& s) { s.x.assign(s.x.size(), 0.0); }},
    {"x of one", [](const lp_problem&, lp_solution& s) { s.x.assign(s.x.size(), 1.0); }},
    {"negative x",
     [](const lp_problem&, lp_solution& s) {
       for (double& v : s.x) v = -v;
     }},
    {"half of every time",
     [](const lp_problem&, lp_solution& s) {
       for (double& v : s.x) v /= 2;
       s.objective /= 2;
     }},
    {"a schedule worse than the given one", [](const lp_problem& p, lp_solution& s) {
       lp_problem late = p;
       late.lower[0] = 1.2;  // the makespan in units of the given run; all events may wait
       for (std::size_t c = 1; c < p.objective.size(); ++c) late.objective[c] = -1e-3;
       for (std::size_t c = 0; c < p.objective.size(); ++c) late.upper[c] = std::min(late.upper[c], 1.2);
       s = glpk_lp{}.solve(late);
       if (!s.x.empty()) s.objective = s.x[0];
     }}};

bool same_but_for_status(const network_schedule& a, const network_schedule& b) {
  return a.sharing_policy == b.sharing_policy && a.rules == b.rules && a.rates.rates == b.rates.rates && a.latency == b.latency &&
         a.bound == b.bound && a.gap == b.gap;
}

}  // namespace

TEST_CASE("the order of a run: ends before starts at one time, but none before its own start") {
  transfers_alone x(8, {1});
  const auto first = x.add(0, 1, 2, 0, {{0, 1}});
  const auto second = x.add(2, 3, 1, 0, {{0, 1}}, 0, 0.5);
  x.builder.depend(first, second);
  x.add(4, 5, 0, 0, {{0, 1}}, 0, 1);  // no bytes
  x.add(6, 7, 3, 1, {}, 0, 1);        // no shared resource
  const auto third = x.add(6, 7, 1, 0, {{0, 1}});
  x.builder.depend(first, third);
  const tasks::task_graph g = std::move(x.builder).build();
  const cep_graph cep(g, x.joined.network());
  const event_order order = schedule::order_of_run(cep, schedule::run(cep, schedule::uncontrolled(cep)));
  // Transfer 0 lasts from 0 to 2, transfer 4 from 2 to about 3.25; transfer 1 has its latency until 2.5.
  CHECK(order == event_order{{0, false}, {0, true}, {4, false}, {1, false}, {4, true}, {1, true}});
  CHECK(schedule::sequence_of_order(cep, order) == std::vector<schedule::message_chunk>{{2, 0}, {3, 0}, {0, 0}, {4, 0}, {1, 0}});
}

TEST_CASE("two transfers on one link in closed form: within the order of fair sharing the shorter one goes first") {
  const two_on_a_link x;
  const cep_graph cep(x.graph, x.joined.network());
  const network_schedule alone = schedule::uncontrolled(cep);
  CHECK(alone.latency.value() == near(8));  // 0-2 (6), 0-6 (8)
  const network_schedule slow = schedule::list_schedule(cep, schedule::critical_path_first{});
  CHECK(slow.latency.value() == near(10));  // the long transfer first
  const order_search_result kept = schedule::order_search(cep, slow, glpk_lp{}, {.solves = 1});
  // Both start at 0 and the long transfer ends first, at 5 at the earliest; then 1 byte of the other one is left.
  CHECK(kept.schedule.latency.value() == Approx(10).epsilon(1e-9));
  CHECK(kept.order == event_order{{0, false}, {1, false}, {1, true}, {0, true}});
  CHECK(schedule::order_search(cep, alone, glpk_lp{}, {.solves = 1}).schedule.latency.value() == Approx(8).epsilon(1e-9));
}

TEST_CASE("three flows on three links in closed form: half a link each takes 4 s, one after the other 6 s") {
  transfers_alone x = triangle();
  const cep_graph cep(std::move(x.builder).build(), x.joined.network());
  const network_schedule one_by_one = schedule::list_schedule(cep, schedule::critical_path_first{});
  CHECK(one_by_one.latency.value() == near(6));
  for (const long long solves : {1, 20}) {
    const order_search_result r = schedule::order_search(cep, one_by_one, glpk_lp{}, {.solves = solves});
    CHECK(r.schedule.status.ok());
    CHECK(r.schedule.latency.value() == Approx(4).epsilon(1e-9));
    CHECK(r.schedule.gap == Approx(0).margin(1e-9));
    CHECK(r.schedule.steps == 1);  // the bound is reached
    CHECK(r.schedule.is_prescribed());
  }
}

TEMPLATE_TEST_CASE("the program of a run's order is no slower than that run, and its rates take no longer than it says", "", LP_SOLVERS) {
  int faster = 0, checked = 0, same_order = 0, sooner = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 220; ++seed) {
    INFO("seed " << seed);
    const random_cep r = random_small_cep(seed, 3, 8);
    const cep_graph cep(r.graph, r.cluster.network());
    for (const network_schedule& given : runs_of(cep)) {
      const event_order order = schedule::order_of_run(cep, schedule::run(cep, given));
      const order_program program(cep, order, given.latency.value());
      const lp_solution s = TestType{}.solve(program.problem());
      REQUIRE(s.status == lp_status::optimal);
      const double value_s = program.makespan_s(s);
      REQUIRE(value_s <= given.latency.value() * (1 + 1e-9));
      REQUIRE(value_s >= cep.bound().value() * (1 - 1e-9));
      // The replay may end earlier: in the program, each event waits for the one before it; in the simulator it does not.
      const trace replay = simulate(r.graph, r.cluster.network(), program.rates(s));
      REQUIRE(replay.latency.value() <= value_s * (1 + 1e-6));
      ++checked;
      sooner += replay.latency.value() < value_s * (1 - 1e-6);
      faster += value_s < given.latency.value() * (1 - 1e-6);

      const order_search_result found = schedule::order_search(cep, given, TestType{}, {.solves = 1});
      REQUIRE(found.schedule.status.ok());
      REQUIRE(found.schedule.steps == 1);
      REQUIRE(found.schedule.latency == std::min(replay.latency, given.latency));
      REQUIRE(found.schedule.bound == cep.bound());
      REQUIRE(found.schedule.gap == std::max(0.0, gap_to(found.schedule.latency, cep.bound())));
      REQUIRE(schedule::run(cep, found.schedule).latency == found.schedule.latency);
      // If the order alone delayed an event, the rates end earlier than the program, in another order.
      const bool as_solved = replay.latency.value() >= value_s * (1 - 1e-6);
      REQUIRE(found.order == (as_solved ? order : schedule::order_of_run(cep, replay)));

      // Priorities by the order's ends may lead to another order of events. If not, the program's optimum is no worse.
      const network_schedule followed =
          schedule::follow(cep, schedule::rules_of_sequence(cep.messages(), schedule::sequence_of_order(cep, order)));
      if (schedule::order_of_run(cep, schedule::run(cep, followed)) != order) continue;
      ++same_order;
      REQUIRE(value_s <= followed.latency.value() * (1 + 1e-9));
    }
  }
  CHECK(checked == 220 * 6);
  CHECK(faster >= 100);
  CHECK(same_order >= 300);
  CHECK(sooner <= checked / 20);
}

TEMPLATE_TEST_CASE("searching around an order never loses to it, and the answer's order gives its rates", "", LP_SOLVERS) {
  int better = 0, as_told = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 120; ++seed) {
    INFO("seed " << seed);
    const random_cep r = random_small_cep(seed, 3, 8);
    const cep_graph cep(r.graph, r.cluster.network());
    const network_schedule given = schedule::uncontrolled(cep);
    const order_search_result one = schedule::order_search(cep, given, TestType{}, {.solves = 1});
    const order_search_result more = schedule::order_search(cep, given, TestType{}, {.solves = 25, .seed = seed});
    REQUIRE(more.schedule.status.ok());
    REQUIRE(more.schedule.steps >= 1);
    REQUIRE(more.schedule.steps <= 25);
    REQUIRE(more.schedule.latency.value() <= one.schedule.latency.value() * (1 + 1e-9));
    REQUIRE(more.schedule.latency.value() >= cep.bound().value() * (1 - 1e-6));
    better += more.schedule.latency.value() < one.schedule.latency.value() * (1 - 1e-6);
    const order_program program(cep, more.order, given.latency.value());
    const double value_s = program.makespan_s(TestType{}.solve(program.problem()));
    REQUIRE(more.schedule.latency.value() <= value_s * (1 + 1e-6));
    as_told += more.schedule.latency.value() >= value_s * (1 - 1e-6);
    const order_search_result again = schedule::order_search(cep, given, TestType{}, {.solves = 25, .seed = seed});
    REQUIRE(again.schedule.rates.rates == more.schedule.rates.rates);
    REQUIRE(again.order == more.order);
  }
  CHECK(better >= 3);
  CHECK(as_told >= 115);  // a replay reproduces the program's value
}

TEST_CASE("a program's optimum is the same warm, cold, and by every solver") {
  int warm_solves = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 60; ++seed) {
    INFO("seed " << seed);
    const random_cep r = random_small_cep(seed, 3, 8);
    const cep_graph cep(r.graph, r.cluster.network());
    const network_schedule given = schedule::uncontrolled(cep);
    const event_order order = schedule::order_of_run(cep, schedule::run(cep, given));
    const order_program first(cep, order, given.latency.value());
    const lp_solution solved = glpk_lp{}.solve(first.problem());
    for (std::size_t i = 0; i + 1 < order.size(); ++i) {
      if (order[i].transfer == order[i + 1].transfer) continue;
      event_order swapped = order;
      std::swap(swapped[i], swapped[i + 1]);
      const order_program next(cep, swapped, given.latency.value());
      const lp_solution cold_answer = glpk_lp{}.solve(next.problem()),
                        warm_answer = glpk_lp{}.solve(next.problem(), next.start_from(first, solved.basis));
      REQUIRE(warm_answer.status == cold_answer.status);
      const auto agree = [&](const lp_solution& s) {
        REQUIRE(s.status == cold_answer.status);
        if (s.status == lp_status::optimal) REQUIRE(s.objective == Approx(cold_answer.objective).epsilon(1e-7));
      };
      agree(warm_answer);
#ifdef HETPLAN_HAS_CLP
      agree(clp_lp{}.solve(next.problem()));
      agree(clp_lp{}.solve(next.problem(), next.start_from(first, solved.basis)));
#endif
      ++warm_solves;
    }
    // An order's rates, and so the end of their replay, are not unique; the program's value is.
    REQUIRE(schedule::order_search(cep, given, cold{}, {.solves = 1}).schedule.latency.value() <= first.makespan_s(solved) * (1 + 1e-6));
#ifdef HETPLAN_HAS_CLP
    REQUIRE(clp_lp{}.solve(first.problem()).objective == Approx(solved.objective).epsilon(1e-7));
#endif
  }
  CHECK(warm_solves >= 300);
}

TEST_CASE("a start from another graph's basis is no start") {
  const two_on_a_link x;
  const cep_graph cep(x.graph, x.joined.network());
  const order_program p(cep, {{0, false}, {1, false}, {0, true}, {1, true}}, 8);
  const lp_solution s = glpk_lp{}.solve(p.problem());
  CHECK(p.start_from(p, s.basis) == s.basis);
  CHECK(p.start_from(p, {}) == lp_basis{});
  lp_basis short_one = s.basis;
  short_one.rows.pop_back();
  CHECK(p.start_from(p, short_one) == lp_basis{});
}

TEST_CASE("a solver that fails or lies costs nothing: the given schedule comes back, and it is said") {
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 12; ++seed) {
    const random_cep r = random_small_cep(seed, 3, 8);
    const cep_graph cep(r.graph, r.cluster.network());
    for (const network_schedule& given : runs_of(cep)) {
      for (const auto& [name, twisted] : lies) {
        INFO("seed " << seed << ", " << name);
        int calls = 0;
        const order_search_result r1 = schedule::order_search(cep, given, liar<twist>{twisted, 1, &calls});
        REQUIRE(r1.schedule.status.result == outcome::stopped);
        REQUIRE_THAT(r1.schedule.status.reason, Catch::StartsWith("order search: "));
        REQUIRE(same_but_for_status(r1.schedule, given));
        REQUIRE(r1.order.empty());
        REQUIRE(r1.schedule.steps == 1);
        // A solver that lies later does not lose earlier results.
        calls = 0;
        const order_search_result later = schedule::order_search(cep, given, liar<twist>{twisted, 2, &calls});
        REQUIRE(later.schedule.status.ok());
        REQUIRE(later.schedule.latency.value() <=
                schedule::order_search(cep, given, cold{}, {.solves = 1}).schedule.latency.value() * (1 + 1e-9));
        REQUIRE(schedule::run(cep, later.schedule).latency == later.schedule.latency);
      }
      const order_search_result none = schedule::order_search(cep, given, no_lp{});
      REQUIRE(none.schedule.status.result == outcome::stopped);
      REQUIRE(same_but_for_status(none.schedule, given));
    }
  }
}

TEST_CASE("a run that is too large for one program gains window by window, and never loses") {
  int gained = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 100; ++seed) {
    INFO("seed " << seed);
    const random_cep r = random_small_cep(seed, 8, 14);
    const cep_graph cep(r.graph, r.cluster.network());
    for (const network_schedule& given : runs_of(cep)) {
      const order_search_result windows = schedule::order_search(cep, given, glpk_lp{}, {.solves = 40, .most_rows = 60});
      REQUIRE(windows.schedule.status.ok());
      REQUIRE(windows.schedule.steps <= 40);
      REQUIRE(windows.schedule.latency.value() <= given.latency.value() * (1 + 1e-6));
      REQUIRE(windows.schedule.latency.value() >= cep.bound().value() * (1 - 1e-6));
      if (windows.schedule.is_prescribed()) {
        REQUIRE(schedule::run(cep, windows.schedule).latency == windows.schedule.latency);
        // The reported order is that of the rates: its program is at least as good.
        const order_program whole(cep, windows.order, given.latency.value());
        REQUIRE(whole.makespan_s(glpk_lp{}.solve(whole.problem())) <= windows.schedule.latency.value() * (1 + 1e-6));
      }
      gained += windows.schedule.latency.value() < given.latency.value() * (1 - 1e-6);
    }
  }
  CHECK(gained >= 50);
}

TEST_CASE("what lies behind a window moves as a block, but no transfer before its release") {
  int gained_at_all = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 100; ++seed) {
    INFO("seed " << seed);
    random_cep r = random_small_cep(seed, 8, 14);
    random_source random(seed);
    for (tasks::transfer& t : r.graph.transfers) t.release_s = random.chance(0.3) ? random.between(0, 4) : 0;
    const cep_graph cep(r.graph, r.cluster.network());
    const trace before = schedule::run(cep, schedule::uncontrolled(cep), {.record = true});
    const double T = before.latency.value();
    const auto frame = std::make_shared<const schedule::order_frame>(schedule::order_frame{before, {0.2 * T, 0.5 * T}});
    const order_program p(cep, frame, schedule::order_of_run(cep, before, frame->window));
    const lp_solution s = glpk_lp{}.solve(p.problem());
    REQUIRE(s.status == lp_status::optimal);
    const trace after = simulate(cep.tasks(), cep.network(), p.rates(s));
    REQUIRE(after.latency.value() <= p.makespan_s(s) * (1 + 1e-6));
    gained_at_all += after.latency.value() < T * (1 - 1e-6);
  }
  CHECK(gained_at_all >= 3);
}

TEST_CASE("rates of a solver are no rules: no plan can carry them") {
  const random_cep r = random_small_cep(first_seed(), 3, 8);
  const cep_graph cep(r.graph, r.cluster.network());
  network_schedule solved = schedule::uncontrolled(cep);
  CHECK_NOTHROW(schedule::apply(plan{}, cep, solved));
  solved.rates.rates.push_back({0, 0, 1});
  CHECK_THROWS_WITH(schedule::apply(plan{}, cep, solved), Catch::Contains("a solver's rates"));
  CHECK_THROWS_WITH(cep.with(schedule::message_rules(cep.messages() + 1, {schedule::chunk_rule{}})),
                    Catch::Contains("expected a chunk at least for each of"));
  CHECK_THROWS_WITH(cep.with(schedule::message_rules(cep.messages())), Catch::Contains("a flow without a chunk"));
}

TEST_CASE("a window's program keeps what lies before it and moves what lies behind it as a block") {
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 100; ++seed) {
    INFO("seed " << seed);
    const random_cep r = random_small_cep(seed, 6, 12);
    const cep_graph cep(r.graph, r.cluster.network());
    const trace before = schedule::run(cep, schedule::uncontrolled(cep), {.record = true});
    const double T = before.latency.value(), from = 0.31 * T, to = 0.72 * T;
    const auto frame = std::make_shared<const schedule::order_frame>(schedule::order_frame{before, {from, to}});
    const order_program p(cep, frame, schedule::order_of_run(cep, before, frame->window));
    const order_program all(cep, schedule::order_of_run(cep, before), T);
    REQUIRE(p.problem().rows.size() <= all.problem().rows.size() + 2);
    const lp_solution s = glpk_lp{}.solve(p.problem());
    REQUIRE(s.status == lp_status::optimal);
    REQUIRE(p.makespan_s(s) <= T * (1 + 1e-9));
    REQUIRE(p.makespan_s(s) >= all.makespan_s(glpk_lp{}.solve(all.problem())) * (1 - 1e-9));
    const trace after = simulate(cep.tasks(), cep.network(), p.rates(s));
    REQUIRE(after.latency.value() <= p.makespan_s(s) * (1 + 1e-6));
    for (std::size_t c = 0; c < before.computes.size(); ++c) {
      if (before.computes[c].start_s < from) REQUIRE(after.computes[c].start_s == Approx(before.computes[c].start_s).margin(1e-6 * T));
    }
  }
}

TEST_CASE("what a solver says its objective is counts for nothing") {
  const random_cep r = random_small_cep(first_seed(), 3, 8);
  const cep_graph cep(r.graph, r.cluster.network());
  for (const network_schedule& given : runs_of(cep)) {
    for (const double factor : {0.9, 0.0, no_number}) {
      int calls = 0;
      const auto twisted = [factor](const lp_problem&, lp_solution& s) { s.objective *= factor; };
      const order_search_result lied = schedule::order_search(cep, given, liar<decltype(twisted)>{twisted, 1, &calls});
      const order_search_result honest = schedule::order_search(cep, given, glpk_lp{});
      CHECK(lied.schedule.status.ok());
      CHECK(lied.schedule.latency.value() == Approx(honest.schedule.latency.value()));
    }
  }
}

TEST_CASE("a given schedule of chunks is refused") {
  transfers_alone x = triangle();
  const cep_graph cep(std::move(x.builder).build(), x.joined.network());
  const network_schedule cut = schedule::list_schedule(cep, schedule::critical_path_first{}, {.chunks = 2});
  CHECK_THROWS_AS(schedule::order_search(cep, cut, glpk_lp{}), invalid_input);
  CHECK_THROWS_WITH(schedule::order_search(cep, cut, glpk_lp{}), Catch::Contains("expected whole transfers"));
}

TEST_CASE("where nothing drains there is nothing to solve") {
  transfers_alone x(4, {1});
  x.add(0, 1, 0, 0, {{0, 1}}, 0, 2);
  x.add(2, 3, 5, 1, {}, 0, 0.5);
  const cep_graph cep(std::move(x.builder).build(), x.joined.network());
  const network_schedule given = schedule::uncontrolled(cep);
  const order_search_result r = schedule::order_search(cep, given, no_lp{});
  CHECK(r.schedule.status.ok());
  CHECK(same_but_for_status(r.schedule, given));
  CHECK(r.order.empty());
}

TEST_CASE("programs heed releases, latencies, weights and transfers that share nothing") {
  // 2 bytes of weight 2 on a capacity of 1 from 3 + 0.5 on: 7.5. A transfer in parallel takes its latency of 9.
  transfers_alone x(4, {1});
  x.add(0, 1, 2, 3, {{0, 2}}, 0, 0.5);
  x.add(2, 3, 1, 0, {}, 0, 9);
  const cep_graph cep(std::move(x.builder).build(), x.joined.network());
  const order_program p(cep, {{0, false}, {0, true}}, 9);
  const lp_solution s = glpk_lp{}.solve(p.problem());
  CHECK(p.makespan_s(s) == Approx(9));
  CHECK(p.event_s(0, s) >= 3.5 - 1e-9);
  CHECK(p.event_s(1, s) >= 7.5 - 1e-9);
  CHECK(p.order().size() == 2);
}

}  // namespace test_order_search
