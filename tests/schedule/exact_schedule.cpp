// SPDX-License-Identifier: BSL-1.0
// The optimum over all orders: against the linear programs of all orders, against the other schedulers, and with solvers that fail or lie.

#include <hetplan/schedule/exact_schedule.hpp>
#include <hetplan/schedule/local_search.hpp>
#include <hetplan/schedule/transfer_scheduler.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "support/by_hand.hpp"
#include "support/random_cep.hpp"
#include "support/solvers.hpp"

namespace test_exact_schedule {

using namespace hetplan;
using namespace hetplan::test;
using schedule::cep_graph;
using schedule::event_order;
using schedule::network_schedule;

namespace {

constexpr double no_number = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();

/// The least optimum of the linear programs over all orders in which each start precedes its end.
class all_orders {
 public:
  all_orders(const cep_graph& cep, double unit_s) : cep_(cep), unit_s_(unit_s) {
    for (std::uint32_t t = 0; t < cep.tasks().transfers.size(); ++t) {
      if (schedule::drains(cep.tasks(), cep.tasks().transfers[t])) left_.emplace_back(t, 2);
    }
    extend();
  }
  [[nodiscard]] double least_s() const { return least_s_; }
  [[nodiscard]] int orders() const { return orders_; }

 private:
  void extend() {
    if (order_.size() == 2 * left_.size()) {
      const schedule::order_program p(cep_, order_, unit_s_);
      const lp_solution s = glpk_lp{}.solve(p.problem());
      if (s.status == lp_status::optimal) least_s_ = std::min(least_s_, p.makespan_s(s));
      ++orders_;
      return;
    }
    for (auto& [transfer, events] : left_) {
      if (events == 0) continue;
      order_.push_back({transfer, events == 1});
      --events;
      extend();
      ++events;
      order_.pop_back();
    }
  }

  const cep_graph& cep_;
  double unit_s_, least_s_ = inf;
  int orders_ = 0;
  std::vector<std::pair<std::uint32_t, int>> left_;
  event_order order_;
};

/// Returns transfers that share few routes, wait for several (possibly dependent) tasks, and have several consumers or none: the hardest
/// cases for the conclusions that the exact program draws about orders.
random_cep tangled(std::uint64_t seed, int transfers) {
  random_source random(seed * 0x2545f4914f6cdd1dU);
  const int devices = 4;
  const cluster c = random.chance(0.5) ? wireless(devices) : random_network(random, devices);
  tasks::task_graph_builder b(static_cast<std::size_t>(devices));
  const auto out = b.add_route(*c.network().find(device_id(0), device_id(1))),
             back = b.add_route(*c.network().find(device_id(1), device_id(0)));
  std::vector<tasks::task_graph_builder::handle> first, last;
  const auto task = [&](int device, int stage) {
    const auto t = b.add(tasks::compute_task{.stage = stage_id(stage), .device = device_id(device), .duration_s = random.between(0.1, 1)});
    b.append_to_order(t);
    return t;
  };
  for (int i = 0; i < 3; ++i) first.push_back(task(random.chance(0.7) ? 0 : 2, i));
  for (int i = 0; i < 3; ++i) last.push_back(task(random.chance(0.5) ? 1 : 3, 3 + i));
  for (int i = 0; i < transfers; ++i) {
    const bool there = random.chance(0.8);
    const auto t = b.add(tasks::transfer{.from = device_id(there ? 0 : 1),
                                         .to = device_id(there ? 1 : 0),
                                         .microbatch = i,
                                         .route = there ? out : back,
                                         .volume_bytes = random.between(0.2, 1),
                                         .latency_s = random.chance(0.7) ? 0 : random.between(0, 0.3),
                                         .release_s = random.chance(0.7) ? 0 : random.between(0, 1.5)});
    for (const auto before : first) {
      if (random.chance(0.5)) b.depend(before, t);
    }
    for (const auto after : last) {
      if (random.chance(0.4)) b.depend(t, after);
    }
  }
  return {c, std::move(b).build()};
}

/// Returns the same graph with each route of the network listed once.
tasks::task_graph with_shared_routes(tasks::task_graph g) {
  for (tasks::transfer& t : g.transfers) {
    t.route = static_cast<std::uint32_t>(std::find(g.routes.begin(), g.routes.end(), g.routes[t.route]) - g.routes.begin());
  }
  return g;
}

template <class Twist>
struct liar {
  Twist twist;
  [[nodiscard]] milp_solution solve(const milp_problem& p) const {
    milp_solution s = glpk_milp{}.solve(p);
    twist(s);
    return s;
  }
};
using twist = void (*)(milp_solution&);

bool same_but_for_status(const network_schedule& a, const network_schedule& b) {
  return a.sharing_policy == b.sharing_policy && a.rules == b.rules && a.rates.rates == b.rates.rates && a.latency == b.latency &&
         a.bound == b.bound && a.gap == b.gap;
}

/// Returns three transfers of one sender over one medium: volumes 1, 2, 1 with tails 3, 1, 2, all ready at 0.
random_cep three_by_hand() {
  const cluster c = wireless(4);
  tasks::task_graph_builder b(4);
  for (const auto& [to, volume, tail] : {std::tuple(1, 1.0, 3.0), std::tuple(2, 2.0, 1.0), std::tuple(3, 1.0, 2.0)}) {
    const auto after = b.add(tasks::compute_task{.stage = stage_id(to), .device = device_id(to), .duration_s = tail});
    b.append_to_order(after);
    const auto t = b.add(tasks::transfer{.from = device_id(0),
                                         .to = device_id(to),
                                         .microbatch = to,
                                         .route = b.add_route(*c.network().find(device_id(0), device_id(to))),
                                         .volume_bytes = volume});
    b.depend(t, after);
  }
  return {c, std::move(b).build()};
}

}  // namespace

TEMPLATE_TEST_CASE("the optimum by hand: three transfers on one medium, and three flows on three links", "", MILP_SOLVERS) {
  // By longest tail: 0-1 (4), 1-2 (4), 2-4 (5), which is the bound by the medium and the shortest tail.
  const random_cep r = three_by_hand();
  const cep_graph cep(r.graph, r.cluster.network());
  const network_schedule slow = schedule::list_schedule(cep, schedule::earliest_first{});  // in the given order: 0-1, 1-3, 3-4 (6)
  CHECK(slow.latency.value() == near(6));
  const network_schedule best = schedule::exact_schedule(cep, slow, TestType{});
  CHECK(best.status.ok());
  CHECK(best.latency.value() == Approx(5).epsilon(1e-7));
  CHECK(best.gap == Approx(0).margin(1e-6));
  CHECK(best.is_prescribed());

  transfers_alone x(3, {1, 1, 1});
  x.add(0, 1, 2, 0, {{0, 1}, {1, 1}});
  x.add(1, 2, 2, 0, {{1, 1}, {2, 1}});
  x.add(2, 0, 2, 0, {{2, 1}, {0, 1}});
  const cep_graph three(std::move(x.builder).build(), x.joined.network());
  const network_schedule one_by_one = schedule::list_schedule(three);
  CHECK(one_by_one.latency.value() == near(6));
  CHECK(schedule::exact_schedule(three, one_by_one, TestType{}).latency.value() == Approx(4).epsilon(1e-7));
}

TEMPLATE_TEST_CASE("the optimum is the best of the linear programs of all orders", "", MILP_SOLVERS) {
  int below_given = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 60; ++seed) {
    INFO("seed " << seed);
    const random_cep r = random_small_cep(seed, 2, 3);
    const cep_graph cep(with_shared_routes(r.graph), r.cluster.network());
    const network_schedule given = schedule::uncontrolled(cep);
    const all_orders orders(cep, given.latency.value());
    REQUIRE((orders.orders() == 6 || orders.orders() == 90));
    const network_schedule best = schedule::exact_schedule(cep, given, TestType{});
    REQUIRE(best.status.ok());
    REQUIRE(best.latency.value() == Approx(orders.least_s()).epsilon(1e-6));
    REQUIRE(best.bound.value() == Approx(orders.least_s()).epsilon(1e-6));
    below_given += best.latency.value() < given.latency.value() * (1 - 1e-6);
  }
  CHECK(below_given >= 10);
}

TEMPLATE_TEST_CASE(
    "the optimum is the best of all orders where transfers share routes, wait for several tasks and have many consumers or none", "[long]",
    MILP_SOLVERS) {
  int below_given = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 120; ++seed) {
    INFO("seed " << seed);
    const random_cep r = tangled(seed, 3);
    const cep_graph cep(r.graph, r.cluster.network());
    const network_schedule given = schedule::uncontrolled(cep);
    const double least_s = all_orders(cep, given.latency.value()).least_s();
    const network_schedule best = schedule::exact_schedule(cep, given, TestType{});
    REQUIRE(best.status.ok());
    REQUIRE(best.latency.value() == Approx(least_s).epsilon(1e-6));
    below_given += best.latency.value() < given.latency.value() * (1 - 1e-6);
  }
  CHECK(below_given >= 10);
}

namespace {

/// Requires exact <= order search <= local search <= uncontrolled; returns the relative errors of local search.
template <class Milp>
std::vector<double> check_ladder(std::uint64_t seeds, int most_transfers, int* above_bound) {
  std::vector<double> off;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + seeds; ++seed) {
    INFO("seed " << seed);
    const random_cep r = random_small_cep(seed, 3, most_transfers);
    const cep_graph cep(with_shared_routes(r.graph), r.cluster.network());
    const network_schedule alone = schedule::uncontrolled(cep), local = schedule::local_search(cep, {.most_chunks = 1});
    const network_schedule ordered = schedule::order_search(cep, local, glpk_lp{}).schedule;
    const network_schedule best = schedule::exact_schedule(cep, alone, Milp{});
    REQUIRE(best.status.ok());
    REQUIRE(local.latency <= alone.latency);
    REQUIRE(ordered.latency.value() <= local.latency.value() * (1 + 1e-6));
    REQUIRE(best.latency.value() <= ordered.latency.value() * (1 + 1e-6));
    REQUIRE(best.latency.value() >= cep.bound().value() * (1 - 1e-6));
    REQUIRE(best.bound >= cep.bound());
    REQUIRE(best.gap == std::max(0.0, gap_to(best.latency, best.bound)));
    REQUIRE(best.gap <= 1e-6);
    REQUIRE(schedule::run(cep, best).latency == best.latency);
    // The optimum is over schedules with chunks as well.
    REQUIRE(schedule::local_search(cep, {.steps = 60, .seed = seed, .most_chunks = 3}).latency.value() >=
            best.latency.value() * (1 - 1e-6));
    // The given schedule does not change the optimum.
    if (seed % 4 == 0)
      REQUIRE(schedule::exact_schedule(cep, ordered, Milp{}).latency.value() == Approx(best.latency.value()).epsilon(1e-6));
    *above_bound += best.latency.value() > cep.bound().value() * (1 + 1e-6);
    off.push_back(local.latency / best.latency - 1);
  }
  std::sort(off.begin(), off.end());
  return off;
}

}  // namespace

TEST_CASE("no scheduler beats the optimum, none loses to what it starts from, and local search is close") {
  int above_bound = 0;
  const std::vector<double> off = check_ladder<glpk_milp>(220, 5, &above_bound);
  INFO("local search beyond the optimum: median " << off[off.size() / 2] << ", nine of ten " << off[off.size() * 9 / 10] << ", worst "
                                                  << off.back());
  CHECK(off[off.size() / 2] <= 0.02);
  CHECK(off.back() <= 0.1);
  CHECK(off.front() >= -1e-6);
}

#ifdef HETPLAN_HAS_CBC
TEST_CASE("Cbc proves the same optima", "[long]") {
  int above_bound = 0;
  const std::vector<double> off = check_ladder<cbc_milp>(60, 5, &above_bound);
  INFO("worst " << off.back());
  CHECK(off.back() <= 0.1);
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 60; ++seed) {
    INFO("seed " << seed);
    const random_cep r = random_small_cep(seed + 1000, 3, 5);
    const cep_graph cep(r.graph, r.cluster.network());
    const network_schedule given = schedule::uncontrolled(cep);
    REQUIRE(schedule::exact_schedule(cep, given, cbc_milp{}).latency.value() ==
            Approx(schedule::exact_schedule(cep, given, glpk_milp{}).latency.value()).epsilon(1e-6));
  }
}
#endif

TEST_CASE("graphs with more transfers than allowed come back as given, with both numbers") {
  const random_cep r = three_by_hand();
  const cep_graph cep(r.graph, r.cluster.network());
  const network_schedule given = schedule::list_schedule(cep, schedule::earliest_first{});
  const network_schedule s = schedule::exact_schedule(cep, given, glpk_milp{}, {.most_transfers = 2});
  CHECK(s.status.result == outcome::stopped);
  CHECK_THAT(s.status.reason, Catch::Contains("3 transfers; at most 2 are solved"));
  CHECK(same_but_for_status(s, given));
  CHECK(s.steps == 0);
  CHECK(schedule::exact_schedule(cep, given, glpk_milp{}, {.most_transfers = 3}).status.ok());
}

TEST_CASE("without transfers that drain the given schedule is the optimum") {
  transfers_alone x(4, {1});
  x.add(0, 1, 0, 0, {{0, 1}}, 0, 2);
  x.add(2, 3, 5, 1, {}, 0, 0.5);
  const cep_graph cep(std::move(x.builder).build(), x.joined.network());
  const network_schedule given = schedule::uncontrolled(cep);
  const network_schedule s = schedule::exact_schedule(cep, given, no_milp{}, {.most_transfers = 0});
  CHECK(s.status.ok());
  CHECK(same_but_for_status(s, given));
}

TEST_CASE("few transfers among many tasks take memory for the tasks, not for their square") {
  const cluster c = wireless(2);
  tasks::task_graph_builder b(2);
  const auto way = b.add_route(*c.network().find(device_id(0), device_id(1)));
  tasks::task_graph_builder::handle last;
  for (int i = 0; i < 60'000; ++i) {  // 60 000 squared would take 3.6 GB
    last = b.add(tasks::compute_task{.stage = stage_id(0), .device = device_id(0), .microbatch = i, .duration_s = 1e-3});
    b.append_to_order(last);
  }
  for (int i = 0; i < 2; ++i) {
    const auto t = b.add(tasks::transfer{.from = device_id(0), .to = device_id(1), .microbatch = i, .route = way, .volume_bytes = 1});
    b.depend(last, t);
  }
  const random_cep r{c, std::move(b).build()};
  const cep_graph cep(r.graph, r.cluster.network());
  const network_schedule s = schedule::exact_schedule(cep, schedule::uncontrolled(cep), glpk_milp{});
  CHECK(s.status.ok());
  CHECK(s.gap < 1e-6);
}

TEST_CASE("a given schedule at its bound may be given to the exact program") {
  int at_bound = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 150; ++seed) {
    INFO("seed " << seed);
    const random_cep r = random_small_cep(seed, 2, 4);
    const cep_graph cep(r.graph, r.cluster.network());
    const network_schedule given = schedule::local_search(cep, {.steps = 40});
    if (given.gap > 1e-9) continue;
    ++at_bound;
    const network_schedule s = schedule::exact_schedule(cep, given, glpk_milp{});
    REQUIRE(s.status.ok());
    REQUIRE(s.latency.value() == Approx(given.latency.value()).epsilon(1e-9));
  }
  CHECK(at_bound >= 50);
}

TEST_CASE("a mixed-integer solver that fails or lies costs nothing, and proves nothing") {
  const std::vector<std::pair<std::string, twist>> lies{{"unsolved", [](milp_solution& s) { s = {}; }},
                                                        {"infeasible", [](milp_solution& s) { s.status = milp_status::infeasible; }},
                                                        {"unbounded", [](milp_solution& s) { s.status = milp_status::unbounded; }},
                                                        {"no x", [](milp_solution& s) { s.x.clear(); }},
                                                        {"a short x", [](milp_solution& s) { s.x.resize(s.x.size() / 2); }},
                                                        {"a long x", [](milp_solution& s) { s.x.resize(s.x.size() + 3, 1.0); }},
                                                        {"x of NaN", [](milp_solution& s) { s.x.assign(s.x.size(), no_number); }},
                                                        {"some x of NaN",
                                                         [](milp_solution& s) {
                                                           for (std::size_t c = 0; c < s.x.size(); c += 2) s.x[c] = no_number;
                                                         }},
                                                        {"x of zero", [](milp_solution& s) { s.x.assign(s.x.size(), 0.0); }},
                                                        {"x of one", [](milp_solution& s) { s.x.assign(s.x.size(), 1.0); }},
                                                        {"half of every x", [](milp_solution& s) {
                                                           for (double& v : s.x) v /= 2;
                                                           s.objective /= 2;
                                                         }}};
  const std::vector<std::pair<std::string, twist>> boasts{
      {"an objective too good", [](milp_solution& s) { s.objective *= 0.5; }},
      {"an objective of NaN", [](milp_solution& s) { s.objective = no_number; }},
      {"an objective that is worse than the given schedule", [](milp_solution& s) { s.objective = 1.5; }},
      {"feasible with a bound of NaN",
       [](milp_solution& s) {
         s.status = milp_status::feasible;
         s.bound = no_number;
       }},
      {"feasible with a bound above itself",
       [](milp_solution& s) {
         s.status = milp_status::feasible;
         s.bound = 7;
       }},
      {"feasible with no bound", [](milp_solution& s) {
         s.status = milp_status::feasible;
         s.bound = -inf;
       }}};
  const random_cep r = three_by_hand();
  const cep_graph cep(r.graph, r.cluster.network());
  for (const network_schedule& given : {schedule::list_schedule(cep, schedule::earliest_first{}),
                                        schedule::list_schedule(cep, schedule::smallest_first{}), schedule::uncontrolled(cep)}) {
    for (const auto& [name, twisted] : lies) {
      INFO(name);
      const network_schedule s = schedule::exact_schedule(cep, given, liar<twist>{twisted});
      REQUIRE(s.status.result == outcome::stopped);
      REQUIRE_THAT(s.status.reason, Catch::StartsWith("exact schedule: "));
      REQUIRE(same_but_for_status(s, given));
    }
    for (const auto& [name, twisted] : boasts) {  // the rates are good and kept, the claims about them are not
      INFO(name);
      const network_schedule s = schedule::exact_schedule(cep, given, liar<twist>{twisted});
      REQUIRE(s.status.result == outcome::stopped);
      REQUIRE(s.latency <= given.latency);
      REQUIRE(s.latency.value() == Approx(5).epsilon(1e-7));
      REQUIRE(s.bound == cep.bound());
      REQUIRE(s.gap == std::max(0.0, gap_to(s.latency, cep.bound())));
      REQUIRE(schedule::run(cep, s).latency == s.latency);
    }
    const network_schedule none = schedule::exact_schedule(cep, given, no_milp{});
    REQUIRE(none.status.result == outcome::stopped);
    REQUIRE_THAT(none.status.reason, Catch::Contains("the solver met a limit after 0 nodes"));
    REQUIRE(same_but_for_status(none, given));
  }
}

TEST_CASE("a mixed-integer solver that meets its limit leaves the better of what was given and found, within its bound") {
  int stopped = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 60; ++seed) {
    INFO("seed " << seed);
    const random_cep r = random_small_cep(seed, 4, 6);
    const cep_graph cep(r.graph, r.cluster.network());
    const network_schedule given = schedule::uncontrolled(cep);
    const network_schedule s = schedule::exact_schedule(cep, given, glpk_milp{.max_nodes = 3});
    REQUIRE(s.latency <= given.latency);
    REQUIRE(s.bound >= cep.bound());
    REQUIRE(s.latency.value() >= s.bound.value() * (1 - 1e-6));
    REQUIRE(schedule::run(cep, s).latency == s.latency);
    stopped += !s.status.ok();
  }
  CHECK(stopped >= 10);
}

}  // namespace test_exact_schedule
