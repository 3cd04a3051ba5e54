// SPDX-License-Identifier: BSL-1.0
// Plans with the orders of named and of user-defined schedules.

#include <hetplan/schedule/order_plan.hpp>

#include <map>

#include <catch2/catch.hpp>

#include <hetplan/cluster/network.hpp>
#include <hetplan/estimate/step_law.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/recipes/baselines.hpp>
#include <hetplan/recipes/dora.hpp>
#include <hetplan/recipes/pipeline.hpp>
#include <hetplan/simulate/evaluate.hpp>

#include "support/by_hand.hpp"
#include "support/random_source.hpp"

namespace test_order_plan {

using namespace hetplan;
using namespace hetplan::test;
namespace schedule = hetplan::schedule;

namespace {

/// Returns a training job of one sample per microbatch, without optimizer state.
job ones(int batch) {
  job j{.batch = batch};
  j.workload.optimizer_factor = 0;
  j.microbatch_sizes = {1};
  return j;
}

/// Returns n trainable layers of 1 byte of activations each, half of it for the weight gradient.
planning_graph chain_of_layers(int n = 8) {
  std::vector<layer_spec> layers;
  std::vector<tensor> edges;
  for (int l = 0; l < n; ++l) {
    layers.push_back(work_of("l" + std::to_string(l), 5, 6, 4));
    layers.back().activation = 1_B;
    layers.back().activation_for_weights = 0.5_B;
    layers.back().traffic = bytes{};
    if (l > 0) edges.push_back({l - 1, l, 1, 1});
  }
  return model_of(layers, edges);
}
/// Returns a plan of `stages` equal runs of layers, the k-th on device_of(k).
template <class F>
plan placed(const planning_graph& m, int stages, int microbatches, F device_of) {
  std::vector<stage> all;
  const int each = static_cast<int>(m.size()) / stages;
  for (int s = 0; s < stages; ++s) {
    std::vector<int> layers;
    for (int l = 0; l < each; ++l) layers.push_back(s * each + l);
    all.push_back(stage_of(layers, {{device_of(s), 1}}));
    all.back().name = "s" + std::to_string(s);
  }
  plan p = plan_of(mode::training, 1, microbatches, all);
  p.workload.optimizer_factor = 0;
  return p;
}

/// User-defined interleaved 1F1B: each device cycles through its chunks, with as many microbatches of each as there are devices.
struct my_interleaved {
  [[nodiscard]] schedule::orders_by_device orders(const schedule::pipeline_times& t) const {
    const int n = static_cast<int>(t.devices()), chunks = static_cast<int>(t.stages.size()) / n, all = t.microbatches * chunks;
    schedule::orders_by_device orders(t.devices());
    for (int d = 0; d < n; ++d) {
      const auto entry = [&](phase what, int k) {
        const int chunk = k / n % chunks, s = (what == phase::forward ? chunk : chunks - 1 - chunk) * n + d;
        return order_entry{what, stage_id(s), k / (n * chunks) * n + k % n};
      };
      const int first = std::min(all, 2 * (n - d - 1) + (chunks - 1) * n + 1);
      for (int k = 0; k < all + first; ++k) {
        if (k < all) orders[static_cast<std::size_t>(d)].push_back(entry(phase::forward, k));
        if (k + 1 >= first && k + 1 - first < all)
          orders[static_cast<std::size_t>(d)].push_back(entry(phase::backward_input, k + 1 - first));
      }
    }
    return orders;
  }
};

}  // namespace

TEST_CASE("interleaved 1F1B of one's own is as fast as the one that ships") {
  const planning_graph m = chain_of_layers();
  const cluster c = wired(4, 0, 1e9);
  const planning_problem problem(m, c, roofline{});
  const plan p = placed(m, 8, 8, [](int s) { return s % 4; });
  const auto time = [&](const plan& x) { return judge(x, m, c, roofline{}).evaluation.latency.value(); };
  const double mine = time(schedule::order_plan(p, problem, my_interleaved{}));
  CHECK(mine == near(time(schedule::order_plan(p, problem, order_rule::interleaved))));
  const double one_stage_each = time(placed(m, 4, 8, [](int s) { return s; }));
  CHECK(mine < one_stage_each);
}

TEST_CASE("every rule gives orders that run within memory where stages are placed for it") {
  const planning_graph m = chain_of_layers();
  const cluster c = wired(4, 0, 1e9);
  const planning_problem problem(m, c, roofline{});
  const plan straight = placed(m, 4, 8, [](int s) { return s; }), folded = placed(m, 8, 8, [](int s) { return s < 4 ? s : 7 - s; }),
             turns = placed(m, 8, 8, [](int s) { return s % 4; });
  std::map<order_rule, double> period, latency;
  for (const order_rule r : order_rules) {
    const bool v = r == order_rule::zb_v || r == order_rule::v_half || r == order_rule::v_min;
    const plan& p = v ? folded : r == order_rule::interleaved ? turns : straight;
    const plan ordered = schedule::order_plan(p, problem, r);
    CHECK(ordered.schedule.kind == schedule_kind::explicit_orders);
    const evaluation e = judge(ordered, m, c, roofline{}).evaluation;
    period[r] = e.period().value();
    latency[r] = e.latency.value();
    CHECK(e.latency.value() >= 8 * 2 * 15);
    // Activations of a whole stage are 2 bytes. The limits for p devices are p, (p + 2) / 2 and (p + 4) / 3 of them.
    const double most = e.peak_memory().value() / 2;
    if (r == order_rule::zb_v) CHECK(most <= 4);
    if (r == order_rule::v_half) CHECK(most <= 3);
    if (r == order_rule::v_min) CHECK(most <= 2);
    if (v) CHECK_THROWS_WITH(schedule::order_plan(straight, problem, r), Catch::Contains("must hold stages d and 2 devices - 1 - d"));
  }
  CHECK(latency[order_rule::automatic] <= latency[order_rule::original] * (1 + 1e-9));
  CHECK(period[order_rule::zb_v] <= period[order_rule::v_half]);
  CHECK(period[order_rule::v_half] <= period[order_rule::v_min]);
}

TEST_CASE("replicas and grids have one order; what has no table says so") {
  const planning_graph m = chain_of_layers(4);
  const cluster c = wired(4, 0, 1e3);
  const planning_problem problem(m, c, roofline{});
  plan p = plan_of(mode::training, 2, 4, {stage_of({0, 1}, {{0, 1}, {1, 1}}), stage_of({2}, {{2, 2}}), stage_of({3}, {{3, 2}})});
  for (const order_rule r : {order_rule::compact, order_rule::eager, order_rule::original, order_rule::automatic}) {
    const plan ordered = schedule::order_plan(p, problem, r);
    CHECK(judge(ordered, m, c, roofline{}).evaluation.latency.value() > 0);
    if (r == order_rule::original || r == order_rule::automatic) CHECK(ordered.schedule.orders[0] == ordered.schedule.orders[1]);
  }
  plan overlapping = p;
  overlapping.stages[1].devices = {{device_id(1), 2}};
  CHECK_THROWS_WITH(schedule::order_plan(overlapping, problem, order_rule::original),
                    Catch::Contains("expected stages on the same devices or on none in common"));
  CHECK_NOTHROW(schedule::order_plan(overlapping, problem, order_rule::eager));  // these orders are found during the run
  plan sizes = p;
  sizes.stages[2].microbatch_size = 4;
  sizes.stages[2].devices = {{device_id(3), 4}};
  CHECK_THROWS_WITH(schedule::order_plan(sizes, problem, order_rule::automatic), Catch::Contains("expected one microbatch size, got 4"));
  plan answers = p;
  answers.workload.mode = mode::inference;
  CHECK_THROWS_WITH(schedule::order_plan(answers, problem, order_rule::original), Catch::Contains("expected a plan for training"));
}

namespace {
struct too_few {
  [[nodiscard]] schedule::orders_by_device orders(const schedule::pipeline_times&) const { return {}; }
};
struct unknown_stage {
  [[nodiscard]] schedule::orders_by_device orders(const schedule::pipeline_times& t) const {
    schedule::orders_by_device all(t.devices());
    all[0] = {{phase::forward, stage_id(99), 0}};
    return all;
  }
};
struct backwards_first {
  [[nodiscard]] schedule::orders_by_device orders(const schedule::pipeline_times& t) const {
    schedule::orders_by_device all(t.devices());
    for (const phase what : {phase::backward_input, phase::forward}) {
      for (int k = 0; k < t.microbatches; ++k) {
        for (std::size_t s = 0; s < t.stages.size(); ++s) all[t.stages[s].device].push_back({what, stage_id(s), k});
      }
    }
    return all;
  }
};
struct no_orders {
  [[nodiscard]] schedule::orders_by_device orders(const schedule::pipeline_times&) const { throw invalid_input("not today"); }
};
}  // namespace

TEST_CASE("orders that no run can follow are told, by a search only where a schedule gave no others") {
  const planning_graph m = chain_of_layers(8);
  const cluster c = wired(2, 0, 1e9);
  job wanted = ones(4);
  const planning_problem problem(m, c, roofline{}, wanted);
  const plan p = placed(m, 2, 4, [](int s) { return s; });
  CHECK_THROWS_AS(schedule::order_plan(p, problem, backwards_first{}), invalid_model);
  CHECK_THROWS_WITH(schedule::order_plan(p, problem, backwards_first{}),
                    Catch::Contains("/schedule/orders/d0/0: backward_input of stage \"s0\""));
  recipes::dora_options options;
  options.schedules.emplace_back("mine", backwards_first{});
  CHECK_THROWS_WITH(recipes::dora(problem, minimize_latency{}, 1, options), Catch::StartsWith("schedule mine: schedule: "));
  options.schedules = {{"mine", no_orders{}}};
  const plan_result passed_over = recipes::dora(problem, minimize_latency{}, 1, options);
  CHECK(passed_over.status.ok());
  CHECK_THAT(passed_over.status.reason, Catch::StartsWith("schedule mine: "));
  job nothing = wanted;
  nothing.only_orders = true;
  CHECK_THROWS_WITH(recipes::dora(planning_problem(m, c, roofline{}, nothing), minimize_latency{}),
                    "job: only_orders = true, and orders are empty; expected at least one");
}

TEST_CASE("a device without room for a microbatch is named") {
  const planning_graph m = chain_of_layers(4);
  const cluster c = wired(2, 0, 1e3);
  const planning_problem problem(m, c, roofline{});
  const plan p = placed(m, 2, 2, [](int s) { return s; });
  CHECK_THROWS_WITH(schedule::order_plan(p, problem, order_rule::original, {.memory = {100_B, 1_B}}),
                    "schedule: device \"d1\" may hold 1 B; expected at least 2 B, 0 B of weights and what belongs to them and 2 B for one "
                    "microbatch of each of its stages");
}

TEST_CASE("pipelines are cut anew so that the longest stage is as short as can be, and one way through") {
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 40; ++seed) {
    INFO("seed " << seed);
    random_source r(seed);
    std::vector<layer_spec> layers;
    std::vector<tensor> edges;
    for (int l = 0; l < 8; ++l) {
      layers.push_back(work_of("l" + std::to_string(l), r.integer(1, 4), r.integer(1, 4), r.integer(1, 4)));
      if (l > 0) edges.push_back({l - 1, l, static_cast<double>(r.integer(1, 3)), static_cast<double>(r.integer(1, 3))});
    }
    const planning_graph m = model_of(layers, edges);
    const cluster c = wired(2, 0, r.chance(0.5) ? 0.2 : 1e3);  // half of the time, the boundary is the bottleneck
    const planning_problem problem(m, c, roofline{});
    const plan straight = placed(m, 2, 2, [](int s) { return s; });
    struct quality {
      double longest, sum;
    };
    const auto rate = [&](const plan& unordered) {
      const plan p = with_any_orders(unordered, problem);
      const stage_costs s(problem, p);
      quality q{0, 0};
      for (std::size_t i = 0; i < p.stages.size(); ++i) {
        const stage_costs::part& part = s.stages[i].devices[0];
        const double mine = part.forward_task_s() + part.backward_task_s();
        q.longest = std::max(q.longest, mine), q.sum += mine;
      }
      for (const stage_edge& e : s.graph.edges) {
        const device_id from = p[e.from].devices[0].device, to = p[e.to].devices[0].device;
        if (from != to)
          q.longest = std::max(
              q.longest, p.microbatch_size * (e.forward_cut + e.backward_cut).value() * peak_transfer(c.network(), from, to).s_per_byte);
      }
      return q;
    };
    const auto cuts = partition::in_a_v(straight, problem);
    REQUIRE(!cuts.empty());
    double longest = 1e300;
    std::vector<quality> all;
    for (int a = 1; a < 6; ++a) {
      for (int b = a + 1; b < 7; ++b) {
        for (int d = b + 1; d < 8; ++d) {
          plan p = cuts.front();
          const std::vector<int> ends{0, a, b, d, 8};
          for (std::size_t k = 0; k < 4; ++k) {
            p.stages[k].layers.clear();
            for (int l = ends[k]; l < ends[k + 1]; ++l) p.stages[k].layers.emplace_back(l);
          }
          all.push_back(rate(p));
          longest = std::min(longest, all.back().longest);
        }
      }
    }
    double sum = 1e300;
    for (const quality& q : all) {
      if (q.longest <= longest * (1 + 1e-9)) sum = std::min(sum, q.sum);
    }
    double shortest = 1e300;
    for (const plan& cut : cuts) {
      CHECK(rate(cut).longest == near(longest));
      shortest = std::min(shortest, rate(cut).sum);
    }
    CHECK(shortest == near(sum));
  }
}

TEST_CASE("a schedule that answers nonsense is told what was expected") {
  const planning_graph m = chain_of_layers(4);
  const cluster c = wired(2, 0, 1e3);
  const planning_problem problem(m, c, roofline{});
  const plan p = placed(m, 2, 2, [](int s) { return s; });
  CHECK_THROWS_WITH(schedule::order_plan(p, problem, too_few{}), "schedule: orders for 0 devices; expected one for each of the 2");
  CHECK_THROWS_WITH(schedule::order_plan(p, problem, unknown_stage{}),
                    "schedule: an order with stage 99; expected one of the 2 of the table");
}

TEST_CASE("the law of split backwards is the bound on the longest span") {
  const auto reach = [](double f, double b, double w, double c, int p, int m, int most) {
    const split_backward law{.forward_share = f / (f + b + w), .input_share = b / (f + b + w), .most_in_flight = most};
    const pipelining how{m, 1};
    pipeline_tail t;
    for (int s = p; s-- > 0;) {
      if (s + 1 < p) t = law.extend(how, link_times{2 * c, c, 0}, t);
      t = law.extend(how, hetplan::stage_times{f + b + w, b + w, 0}, t);
    }
    return law.response_s(how, t);
  };
  constexpr int any = 1000;
  CHECK(reach(5, 6, 4, 0, 4, 8, 4) == near(138));
  CHECK(reach(5, 6, 4, 0, 4, 8, 6) == near(128));
  CHECK(reach(5, 6, 4, 0, 4, 8, any) == near(120));
  CHECK(reach(10, 10, 10, 1, 4, 8, 4) == near(276));
  CHECK(reach(1, 1, 1, 0, 8, 8, 8) == near(31));
  CHECK(reach(5478, 5806, 3534, 200, 8, 16, 8) == near(280530));
  check_law(split_backward{}, {8, 1});
  check_law(split_backward{.forward_share = 0.2, .input_share = 0.5, .most_in_flight = 3}, {8, 1});
}

TEST_CASE("dora takes a schedule where the job allows it, and is never worse for it") {
  const planning_graph m = chain_of_layers();
  const cluster c = wired(3, 0.2, 1);
  job wanted{.batch = 8};
  wanted.workload.optimizer_factor = 0;
  const planning_problem plain(m, c, roofline{}, wanted);
  const double without = recipes::dora(plain, minimize_latency{}, 1).plans.at(0).evaluation.latency.value();
  wanted.orders.assign(order_rules.begin(), order_rules.end());
  const planning_problem any(m, c, roofline{}, wanted);
  const auto [best, e] = recipes::dora(any, minimize_latency{}, 1).plans.at(0);
  CHECK(e.latency.value() <= without * (1 + 1e-9));
  CHECK(judge(best, m, c, roofline{}).evaluation.latency.value() == near(e.latency.value()));
  wanted.orders = {order_rule::eager};
  wanted.only_orders = true;
  const planning_problem only(m, c, roofline{}, wanted);
  const plan ordered = recipes::dora(only, minimize_latency{}, 1).plans.at(0).plan;
  CHECK(ordered.schedule.kind == schedule_kind::explicit_orders);
  CHECK_THAT(ordered.planner, Catch::Contains("eager"));
}

TEST_CASE("a search judges schedules of one's own beside those that ship") {
  const planning_graph m = chain_of_layers(16);
  const cluster c = wired(4, 0, 1e9);
  job wanted = ones(8);
  wanted.only_orders = true;
  const planning_problem problem(m, c, roofline{}, wanted);
  recipes::dora_options options;
  options.schedules.emplace_back("mine", my_interleaved{}, schedule::stage_shape::turns, 2);
  options.schedules.emplace_back("backwards first", eager{});
  const plan_result r = recipes::dora(problem, minimize_latency{}, 100, options);
  REQUIRE_FALSE(r.plans.empty());
  bool mine = false;
  for (const auto& [p, e] : r.plans) {
    CHECK(p.schedule.kind == schedule_kind::explicit_orders);
    mine = mine || (p.planner.ends_with(", mine") && p.stages.size() > 4);
  }
  CHECK(mine);
}

TEST_CASE("zero bubble's plans are no worse than the pipeline's with its orders, and folds it") {
  const planning_graph m = chain_of_layers(16);
  const cluster c = wired(4, 0, 10);
  job wanted = ones(8);
  const planning_problem problem(m, c, roofline{}, wanted);
  const plan_result base = recipes::pipeline(problem, minimize_latency{}, 1), found = recipes::zero_bubble(problem, minimize_latency{}, 3);
  REQUIRE(found.status.ok());
  const auto& [best, e] = found.plans.front();
  CHECK(best.planner.starts_with("zero-bubble, "));
  CHECK(e.latency.value() <= base.plans.front().evaluation.latency.value() * (1 + 1e-9));
  const auto v = partition::in_a_v(base.plans.front().plan, problem);
  if (base.plans.front().plan.stages.size() > 1) {
    REQUIRE(!v.empty());
    CHECK(v.front().stages.size() == 2 * base.plans.front().plan.stages.size());
    CHECK(v.front().stages.front().devices.front().device == v.front().stages.back().devices.front().device);
  }
}

}  // namespace test_order_plan
