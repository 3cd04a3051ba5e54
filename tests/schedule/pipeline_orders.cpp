// SPDX-License-Identifier: BSL-1.0
// Pipeline orders: rules against values of independent programs, and invariants of every order.

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <hetplan/core/error.hpp>
#include <hetplan/schedule/automatic_orders.hpp>
#include <hetplan/schedule/order_rules.hpp>
#include <hetplan/schedule/partial_orders.hpp>
#include <hetplan/schedule/pipeline_times.hpp>

#include "support/random_source.hpp"
#include "support/shared_data.hpp"
#include "support/zero_bubble_rows.hpp"

namespace test_pipeline_orders {

using namespace hetplan;
using namespace hetplan::test;
using namespace hetplan::schedule;

namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();

double longest(const std::vector<double>& x) { return *std::max_element(x.begin(), x.end()); }

/// Requires that the orders finish, run each task once, and stay within memory.
void require_runs(const pipeline_times& p, const orders_by_device& orders) {
  const order_timeline run = replay_orders(p, orders);
  REQUIRE(run.ends);
  std::size_t tasks = 0;
  for (std::size_t d = 0; d < run.tasks.size(); ++d) {
    tasks += run.tasks[d].size();
    REQUIRE(run.peaks[d] <= p.memory_of(d) * (1 + 1e-9));
  }
  REQUIRE(tasks == 3 * p.stages.size() * static_cast<std::size_t>(p.microbatches));
}

pipeline_times scaled(pipeline_times p, double by) {
  for (phase_times& s : p.stages) {
    for (double* t : {&s.forward, &s.backward_input, &s.backward_weight}) *t *= by;
  }
  for (stage_delay& e : p.edges) {
    for (double* t : {&e.forward, &e.backward}) *t *= by;
  }
  return p;
}

/// Returns a random pipeline: chain, V shape, interleaved or scattered stages, branches; least feasible memory or slightly more.
pipeline_times drawn(random_source& random) {
  const int devices = random.integer(1, 4), shape = random.integer(0, 4);
  const bool whole = random.chance(0.5);
  const int stages = shape == 0 ? devices : shape == 1 ? 2 * devices : shape == 2 ? devices * random.integer(1, 3) : random.integer(1, 7);
  const auto time = [&](int low) -> double { return whole ? random.integer(low, 6) : random.between(low, 6); };
  std::vector<phase_times> s;
  for (int i = 0; i < stages; ++i) {
    const int d = shape == 1 ? std::min(i, stages - 1 - i) : shape < 3 ? i % devices : random.integer(0, devices - 1);
    const double activation = whole ? 1 : random.between(0.5, 2);
    s.push_back({.device = static_cast<std::size_t>(d),
                 .forward = time(1),
                 .backward_input = time(1),
                 .backward_weight = time(0),
                 .activation = activation,
                 .kept_for_weights = activation * (random.chance(0.2) ? 0.0 : 0.5),
                 .recomputed = random.chance(0.1) ? 1.5 : 0.0});
  }
  const double transfer = random.chance(0.5) ? 0 : time(0);  // drawn apart: compilers evaluate arguments in orders of their own
  pipeline_times p = chain_of(std::move(s), transfer, random.integer(1, 7));
  if (shape == 4 && p.stages.size() > 2) {
    p.edges.clear();
    const std::size_t last = p.stages.size() - 1;
    for (std::size_t i = 1; i < last; ++i) {
      p.edges.push_back({.from = i < 3 ? 0 : i - 2, .to = i, .forward = time(0), .backward = time(0)});
    }
    for (std::size_t i = last < 3 ? 1 : last - 2; i < last; ++i)
      p.edges.push_back({.from = i, .to = last, .forward = time(0), .backward = time(0)});
  }
  if (random.chance(0.3)) return p;
  p.memory.assign(p.devices(), 0);
  std::vector<double> recomputed(p.devices(), 0);
  for (const phase_times& x : p.stages) {
    p.memory[x.device] += x.activation;
    recomputed[x.device] = std::max(recomputed[x.device], x.recomputed);
  }
  for (std::size_t d = 0; d < p.memory.size(); ++d) p.memory[d] += recomputed[d] + (random.chance(0.5) ? 0 : random.between(0, 4));
  return p;
}

}  // namespace

TEST_CASE("dispatched pipelines have the makespans, spans, peaks, orders and bounds of an independent program") {
  const auto path = shared_data("reference/dispatch_cases.json");
  if (!path) return;
  const nlohmann::json file = nlohmann::json::parse(std::ifstream(*path));
  REQUIRE(file.at("cases").size() == 80);
  for (const auto& c : file.at("cases")) {
    INFO(c.at("name"));
    pipeline_times p{.stages = {}, .edges = {}, .microbatches = c.at("m")};
    for (std::size_t s = 0; s < c.at("F").size(); ++s) {
      p.stages.push_back({.device = s, .forward = c["F"][s], .backward_input = c["B"][s], .backward_weight = c["W"][s]});
      if (s > 0) p.edges.push_back({.from = s - 1, .to = s, .forward = c["c"][s - 1], .backward = c["c"][s - 1]});
      if (!c.at("memory").is_null()) p.memory.push_back(c["memory"][s].is_null() ? unlimited : c["memory"][s].get<double>());
    }
    CHECK(step_law_spans(p) == c.at("lower_bound_of_span").get<std::vector<double>>());
    for (const auto& [rule, name] : {std::pair{dispatch_rule::compact, "compact"}, std::pair{dispatch_rule::eager, "eager"}}) {
      const auto& want = c.at("values").at(name);
      const orders_by_device orders = dispatched_orders(p, rule);
      std::vector<std::vector<std::string>> said(orders.size());
      for (std::size_t d = 0; d < orders.size(); ++d) {
        for (const order_entry& e : orders[d]) said[d].push_back("FBW"[static_cast<int>(e.what)] + std::to_string(e.microbatch));
      }
      CHECK(said == want.at("orders").get<std::vector<std::vector<std::string>>>());
      const order_timeline run = replay_orders(p, orders);
      CHECK(run.makespan == want.at("makespan").get<double>());
      CHECK(run.spans == want.at("spans").get<std::vector<double>>());
      CHECK(run.peaks == want.at("peak").get<std::vector<double>>());
      CHECK(dispatched_orders(scaled(p, 0.001), rule) == orders);
    }
  }
}

TEST_CASE("the step law gives the bounds of all published configurations") {
  for (const zero_bubble_row& r : zero_bubble_rows()) {
    for (std::size_t column = 0; column < 4; ++column)
      CHECK(longest(step_law_spans(r.pipeline(column))) == Approx(r.bound[column]).epsilon(1e-12));
  }
}

TEST_CASE("1F1B with whole backwards has the published spans") {
  for (const zero_bubble_row& r : zero_bubble_rows()) {
    if (r.one_f_one_b == 0) continue;
    const pipeline_times p = r.pipeline(0);
    const order_timeline run = replay_orders(p, interleaved_orders(p));
    CHECK(run.ends);
    CHECK(run.longest_span() <= r.one_f_one_b * (1 + zero_bubble_rounding));
    CHECK(longest(run.peaks) <= r.devices);
  }
}

TEST_CASE("the original rule is as good as the published scheduler within the memory of 1F1B") {
  for (const zero_bubble_row& r : zero_bubble_rows()) {
    const pipeline_times p = r.pipeline(0);
    const orders_by_device orders = zero_bubble_orders(p);
    require_runs(p, orders);
    CHECK(replay_orders(p, orders).longest_span() <= r.cost[0] * (1 + zero_bubble_rounding));
  }
}

TEST_CASE("ZB-V, V-half and V-min hold what they say; ZB-V and V-min come to no more than published") {
  for (const zero_bubble_row& r : zero_bubble_rows()) {
    if (r.microbatches > 16 || r.v_cost[0] == 0) continue;
    const pipeline_times p = r.v_pipeline(unlimited);
    for (const v_schedule v : {v_schedule::zero_bubble, v_schedule::half, v_schedule::least}) {
      const orders_by_device orders = v_orders(p, v);
      require_runs(p, orders);
      const order_timeline run = replay_orders(p, orders);
      CHECK(longest(run.peaks) <= static_cast<double>(held_by(v, p.devices())));
      const double published = r.v_cost[static_cast<std::size_t>(v)];
      CHECK(run.longest_span() <= published * (v == v_schedule::half ? 1.02 : 1 + zero_bubble_rounding));
    }
  }
}

TEST_CASE("interleaved stages shorten the fill") {
  for (const int m : {8, 10, 16}) {
    double before = unlimited;
    for (const std::size_t chunks : {std::size_t{1}, std::size_t{2}, std::size_t{4}}) {
      const double share = 1.0 / static_cast<double>(chunks);
      const pipeline_times p =
          interleaved({.forward = 5 * share, .backward_input = 6 * share, .backward_weight = 4 * share}, 4, chunks, 0, m);
      const order_timeline whole = replay_orders(p, interleaved_orders(p)), split = replay_orders(p, interleaved_orders(p, true));
      REQUIRE(whole.ends);
      REQUIRE(split.ends);
      CHECK(split.makespan <= whole.makespan);
      if (m % 4 == 0) CHECK(whole.makespan == Approx(15 * (m + 3 * share)));  // fill and drain: one share of a stage per device
      if (m % 4 == 0) CHECK(whole.makespan < before);
      before = whole.makespan;
    }
  }
}

TEST_CASE("every rule ends within the tightest memory, and the search is no worse than any") {
  random_source random(first_seed());
  for (int i = 0; i < 300; ++i) {
    INFO("case " << i);
    const pipeline_times p = drawn(random);
    const order_goal goal = random.chance(0.5) ? order_goal::makespan : order_goal::longest_span;
    const auto judged = [&](const orders_by_device& orders) {
      require_runs(p, orders);
      const order_timeline run = replay_orders(p, orders);
      return goal == order_goal::makespan ? run.makespan : run.longest_span();
    };
    const found_by_search found = automatic_orders(p, {.goal = goal, .steps = i % 10 == 0 ? 0 : 30'000});
    CHECK(judged(found.orders) == Approx(found.value).epsilon(1e-9));
    CHECK(found.bound <= found.value * (1 + 1e-9));
    for (const auto& orders :
         {dispatched_orders(p, dispatch_rule::compact), dispatched_orders(p, dispatch_rule::eager), zero_bubble_orders(p, goal)}) {
      const double value = judged(orders);
      CHECK(found.value <= value * (1 + 1e-9));
      CHECK(found.bound <= value * (1 + 1e-9));
      const order_timeline run = replay_orders(p, orders);
      const std::vector<double> law = step_law_spans(p);
      for (std::size_t d = 0; d < law.size(); ++d) CHECK(law[d] <= run.spans[d] * (1 + 1e-9));
    }
  }
}

TEST_CASE("the unit of time changes no order") {
  random_source random(first_seed() + 1);
  for (int i = 0; i < 60; ++i) {
    INFO("case " << i);
    const pipeline_times p = drawn(random);
    for (const double by : {0.001, 1.0 / 3, 7e5}) {
      const pipeline_times q = scaled(p, by);
      for (const dispatch_rule rule : {dispatch_rule::compact, dispatch_rule::eager})
        CHECK(dispatched_orders(p, rule) == dispatched_orders(q, rule));
      CHECK(automatic_orders(p, {.steps = 20'000}).orders == automatic_orders(q, {.steps = 20'000}).orders);
    }
  }
}

TEST_CASE("orders that wait for themselves do not end, and foreign tasks are refused") {
  const pipeline_times p =
      chain_of({{.device = 0, .forward = 1, .backward_input = 1}, {.device = 1, .forward = 1, .backward_input = 1}}, 0, 1);
  const auto f = [](int s) { return order_entry{phase::forward, stage_id(s), 0}; };
  const auto b = [](int s) { return order_entry{phase::backward_input, stage_id(s), 0}; };
  CHECK(replay_orders(p, {{f(0), b(0)}, {f(1), b(1)}}).makespan == 4);
  const order_timeline stuck = replay_orders(p, {{b(0), f(0)}, {f(1), b(1)}});
  CHECK_FALSE(stuck.ends);
  CHECK(stuck.tasks[1].empty());
  CHECK_FALSE(replay_orders(p, {{}, {f(1), b(1)}}).ends);
  CHECK_THROWS_AS(replay_orders(p, {{f(1)}, {}}), invalid_input);
  CHECK_THROWS_AS(replay_orders(p, {{f(0), f(0)}, {}}), invalid_input);
  CHECK_THROWS_AS(replay_orders(p, {{order_entry{phase::forward, stage_id(0), 1}}, {}}), invalid_input);
}

TEST_CASE("pipelines that make no sense are refused") {
  const phase_times one{.device = 0, .forward = 1, .backward_input = 1, .backward_weight = 1};
  const auto refused = [&](const std::function<void(pipeline_times&)>& harm) {
    pipeline_times p = chain_of({one, one}, 0, 2, {2});
    CHECK_NOTHROW(check(p));
    harm(p);
    CHECK_THROWS_AS(automatic_orders(p), invalid_input);
    CHECK_THROWS_AS(dispatched_orders(p, dispatch_rule::compact), invalid_input);
  };
  refused([](pipeline_times& p) { p.microbatches = 0; });
  refused([](pipeline_times& p) { p.memory = {1.5}; });
  refused([](pipeline_times& p) { p.stages[1].device = 1; });
  refused([](pipeline_times& p) { p.stages[0].recomputed = 0.5; });
  refused([](pipeline_times& p) { p.stages[0].forward = -1; });
  refused([](pipeline_times& p) { p.stages[0].forward = std::nan(""); });
  refused([](pipeline_times& p) { p.stages[0].kept_for_weights = 2; });
  refused([](pipeline_times& p) { std::swap(p.edges[0].from, p.edges[0].to); });
  refused([](pipeline_times& p) { p.edges[0].to = 2; });
  refused([](pipeline_times& p) { p.edges[0].forward = unlimited; });
  CHECK_THROWS_AS(interleaved_orders(chain_of({one, one, {.device = 1}}, 0, 2)), invalid_input);
  CHECK_THROWS_AS(v_orders(chain_of({one, {.device = 1}}, 0, 2), v_schedule::half), invalid_input);
}

}  // namespace test_pipeline_orders
