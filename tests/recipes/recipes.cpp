// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include <hetplan/hetplan.hpp>
#include <hetplan/recipes/baselines.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

#include "support/found_none.hpp"
#include "support/sound.hpp"
#include "support/three_devices.hpp"

using namespace hetplan;
using test::chain;
using test::three;

namespace {}  // namespace

TEST_CASE("every planner's plans are valid, within limits, ranked, and simulate to what they promise") {
  const planning_graph model = chain(9);
  const cluster c = three();
  for (const mode how : {mode::training, mode::inference, mode::generation}) {
    for (const schedule_kind schedule : {schedule_kind::one_f_one_b, schedule_kind::gpipe}) {
      job j{.workload = {.mode = how, .tokens = 4}, .batch = 8, .schedule = schedule};
      const planning_problem problem{model, c, roofline{}, j};
      test::require_sound(recipes::on_device(problem, minimize_latency{}), problem, minimize_latency{});
      test::require_sound(recipes::data_parallel(problem, minimize_energy{}), problem, minimize_energy{});
      test::require_sound(recipes::pipeline(problem, minimize_latency{}), problem, minimize_latency{});
    }
  }
}

TEST_CASE("on-device finds the best single device and microbatch size by trying all") {
  const planning_graph model = chain(4);
  const cluster c = three();
  const planning_problem problem{model, c, roofline{}, job{.batch = 8}};
  const plan_result r = recipes::on_device(problem, minimize_latency{}, 1000);
  REQUIRE(r.candidates == 3 * 4);  // devices x divisors of 8
  REQUIRE(r.plans.size() == 12);
  REQUIRE(r.plans.front().plan.stages.front().devices.front().device == c.find("fast"));
}

TEST_CASE("the pipeline is no worse than every contiguous plan with one device a stage, simulated, by more than its estimate is off") {
  // 6 layers, 3 devices, batch 4: small enough to simulate every contiguous cut on every increasing choice of devices.
  const planning_graph model = chain(6);
  const cluster c = three();
  const job j{.batch = 4};
  const planning_problem problem{model, c, roofline{}, j};
  double best = 1e300;
  for (const int size : j.candidate_microbatch_sizes()) {
    std::function<void(plan, std::size_t, std::size_t)> extend = [&](plan p, std::size_t first, std::size_t device) {
      if (first == model.size()) {
        best = std::min(best, judge(p, model, c, roofline{}).evaluation.latency.value());
        return;
      }
      for (std::size_t d = device; d < c.size(); ++d) {
        stage s{.name = "s", .devices = {{device_id(d), size}}};
        for (std::size_t l = first; l < model.size(); ++l) {
          s.layers.push_back(layer_id(l));
          plan longer = p;
          longer.stages.push_back(s);
          extend(longer, l + 1, d + 1);
        }
      }
    };
    extend(blank_plan(problem, "brute force", size), 0, 0);
  }
  const double found = recipes::pipeline(problem, minimize_latency{}).plans.front().evaluation.latency.value();
  REQUIRE(found >= best * (1 - 1e-9));
  REQUIRE(found <= best * 1.15);
}

TEST_CASE("the pipeline tries devices as they are listed and by speed, and the better order wins") {
  const planning_graph model = chain(6);
  const cluster given = three();
  std::vector<int> listed{0, 1, 2};
  const double never = std::numeric_limits<double>::infinity();
  const auto balanced_in = [](const planning_problem& problem, const std::vector<std::vector<device_id>>& orders) {
    return recipes::detail::pipeline_in(problem, minimize_latency{}, 10, orders, {});
  };
  int better = 0;
  double sorted_s = never, least_s = never;
  do {
    std::vector<device> devices;
    for (const int d : listed) devices.push_back(given.devices()[static_cast<std::size_t>(d)]);
    const cluster c("listed", devices, shared_medium{20000_Mbit_per_s, 1_ms});
    const planning_problem problem{model, c, roofline{}, job{.batch = 8}};
    const std::vector<device_id> as_listed{device_id(0), device_id(1), device_id(2)},
        by_speed{c.find("fast"), c.find("middle"), c.find("slow")};
    long long last_total = 0;
    const plan_result r = recipes::pipeline(problem, minimize_latency{}, 10, [&](const candidate_judged& e) {
      if (last_total == 0) last_total = e.total;
      return control::go;
    });
    const plan_result in_list = balanced_in(problem, {as_listed}), in_speed = balanced_in(problem, {by_speed});
    const auto latency_s = [](const plan_result& x) { return x.plans.front().evaluation.latency.value(); };
    CHECK(latency_s(r) == std::min(latency_s(in_list), latency_s(in_speed)));
    CHECK(r.candidates <= in_list.candidates + in_speed.candidates);
    better += latency_s(r) < latency_s(in_list) ? 1 : 0;
    if (as_listed == by_speed) CHECK(r.plans == in_list.plans);
    CHECK(last_total == (as_listed == by_speed ? 1 : 2) * 4 * 3);  // orders, sizes, stages
    for (std::size_t i = 0; i < r.plans.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) CHECK(r.plans[i].plan != r.plans[j].plan);
    }
    if (as_listed == by_speed) sorted_s = latency_s(in_list);
    least_s = std::min(least_s, latency_s(r));
  } while (std::next_permutation(listed.begin(), listed.end()));
  CHECK(better > 0);
  CHECK(least_s <= sorted_s);
}

TEST_CASE("when nothing fits, the answer names the limit, the device and the overflow") {
  const planning_graph model = chain(4, 400);
  const cluster c = three(200_MB);
  const planning_problem problem{model, c, roofline{}, job{.batch = 4}};
  for (const auto& r : {recipes::on_device(problem, minimize_latency{}), recipes::data_parallel(problem, minimize_latency{}),
                        recipes::pipeline(problem, minimize_latency{})}) {
    REQUIRE(test::found_none(r.status));
    REQUIRE(r.plans.empty());
    REQUIRE_THAT(r.status.reason, Catch::Contains("memory: ") && Catch::Contains(" needs ") && Catch::Contains("may use 200 MB") &&
                                      Catch::Contains("too much"));
  }
}

TEST_CASE("the pipeline lowers its warm-up before it gives up on memory") {
  const planning_graph model = chain(6, 1);
  const job j{.batch = 16, .microbatch_sizes = {4}};
  const auto needed = [&](const plan_result& r) { return r.plans.front().evaluation.peak_memory(); };
  const cluster roomy = three();
  const planning_problem easy{model, roomy, roofline{}, j};
  // Just less than what the default warm-up needs, but enough for fewer microbatches in flight.
  plan three_stages = recipes::pipeline(easy, minimize_latency{}).plans.front().plan;
  const bytes most = needed(recipes::pipeline(easy, minimize_latency{}));
  const cluster tight = three(most * 0.7);
  const planning_problem hard{model, tight, roofline{}, j};
  const plan_result r = recipes::pipeline(hard, minimize_latency{});
  REQUIRE(r.status.ok());
  REQUIRE(needed(r) <= most * 0.7);
}

TEST_CASE("an energy budget and a busy share are limits as memory is") {
  const planning_graph model = chain(4);
  device d{.name = "only", .memory = 4_GB, .compute = 1_TFLOP_per_s, .power = {1_W, 10_W}, .energy_budget = 1_J};
  const cluster frugal("frugal", d);
  REQUIRE_THAT(recipes::on_device(planning_problem{model, frugal, roofline{}}, minimize_latency{}).status.reason,
               Catch::StartsWith("energy: only needs"));
  d.energy_budget.reset();
  d.max_busy = 0.5;
  const cluster polite("polite", d);
  REQUIRE_THAT(recipes::on_device(planning_problem{model, polite, roofline{}}, minimize_latency{}).status.reason,
               Catch::StartsWith("busy share: only needs 100 %"));
}

TEST_CASE("a planner that is asked for no plan says so before any work") {
  const planning_graph model = chain(6);
  const cluster c = three();
  int events = 0;
  const auto count = [&](const candidate_judged&) {
    ++events;
    return control::go;
  };
  const planning_problem problem{model, c, roofline{}, job{.batch = 8}};
  const minimize_latency fastest;
  for (const int none : {0, -1}) {
    const std::string given = ": keep = " + std::to_string(none) + "; expected an integer >= 1";
    CHECK_THROWS_MATCHES(recipes::on_device(problem, fastest, none, count), invalid_input, Catch::Message("planner" + given));
    CHECK_THROWS_MATCHES(recipes::pipeline(problem, fastest, none, count), invalid_input, Catch::Message("planner" + given));
    CHECK_THROWS_MATCHES(recipes::dora(problem, fastest, none, count), invalid_input, Catch::Message("dora" + given));
    CHECK_THROWS_MATCHES(recipes::dora_partitioner(problem, fastest, none, count), invalid_input,
                         Catch::Message("dora_partitioner" + given));
  }
  CHECK(events == 0);
}

TEST_CASE("an observer stops a planner, which returns the best so far") {
  const planning_graph model = chain(6);
  const cluster c = three();
  const planning_problem problem{model, c, roofline{}, job{.batch = 8}};
  int events = 0;
  const auto stop_at_two = [&](const candidate_judged& e) {
    ++events;
    REQUIRE(e.judged == events);
    return events == 2 ? control::stop : control::go;
  };
  for (const auto& r : {recipes::on_device(problem, minimize_latency{}, 10, stop_at_two)}) {
    REQUIRE(r.status.result == outcome::stopped);
    REQUIRE(r.candidates == 2);
    REQUIRE_FALSE(r.plans.empty());
  }
}

TEST_CASE("the real models plan on the real settings, or say which limit binds") {
  for (const char* setting : {"smart-home-1", "smart-home-2", "traffic-monitor", "edge-cluster"}) {
    const cluster c = zoo::cluster(setting);
    for (const char* name : {"qwen3-0.6b", "bert-base", "resnet50"}) {
      const planning_graph model = zoo::model(name, {});
      const planning_problem problem{model, c, profiled_or_roofline{}};
      const plan_result r = recipes::pipeline(problem, minimize_latency{}, 2);
      INFO(name << " on " << setting << ": " << r.status.reason);
      REQUIRE(r.status.ok());
      for (const ranked_plan& p : r.plans) {
        REQUIRE(p.evaluation.gap >= -1e-9);
        REQUIRE(p.evaluation.schedule_gap >= -1e-9);
      }
    }
  }
}
