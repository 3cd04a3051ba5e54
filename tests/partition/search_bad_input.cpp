// SPDX-License-Identifier: BSL-1.0
// Answers of the search to bad input, misbehaving models and infeasible limits.
#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <hetplan/partition/two_substate_dp.hpp>

#include "support/by_hand.hpp"
#include "support/message_of.hpp"
#include "support/search_instance.hpp"

namespace test_search_bad_input {

using namespace hetplan;
using namespace hetplan::partition;
using Catch::Matchers::Contains;

namespace {

constexpr double no_number = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();

/// Problem of six layers in a row on three devices.
struct bench_top {
  planning_graph model = row();
  layer_sequence sequence = decompose::serial(model);
  hetplan::cluster cluster = test::wired(3);
  plan blank = test::plan_of(mode::training, 4, 3, {}, schedule_kind::one_f_one_b);

  static planning_graph row() {
    std::vector<layer_spec> layers;
    std::vector<test::tensor> edges;
    for (int i = 0; i < 6; ++i) {
      layers.push_back(test::work_of("block" + std::to_string(i), 1, 0.5, 0.5));
      layers.back().weight = 100_MB;
      if (i > 0) edges.push_back({i - 1, i, 0.5, 0.5});
    }
    return test::model_of(std::move(layers), edges);
  }
  template <class Cost = roofline, class Memory = plain_memory, class Energy = linear_power>
  [[nodiscard]] search_tables tables(const Cost& cost = {}, const Memory& memory = {}, const Energy& energy = {}) const {
    return {model, sequence, cluster, cost, memory, energy, blank.workload, 4};
  }
  template <class Objective = minimize_latency, class Policy = top_k>
  [[nodiscard]] search_result search(const Objective& o = {}, const Policy& policy = {}, const search_options& options = {}) const {
    const search_tables t = tables();
    return two_substate_dp(t, test::any_order(t, blank), blank, o, policy, options);
  }
};

template <class Error, class F>
std::string words_of(F&& f) {
  return test::message_of<Error>([&] { f(); });
}

/// Cost model that returns `wrong` for one layer, share and phase on one device.
struct slip {
  double wrong;
  int layer, share, device;
  hetplan::phase phase;
  seconds time(const work& w, const hetplan::device& d) const {
    if (w.layer.id.value == layer && w.batch == share && d.id.value == device && w.phase == phase) return seconds(wrong);
    return seconds(w.batch);
  }
};

struct keeps_nothing {
  std::size_t capacity() const { return 0; }
  bool covers(const partial_plan&, const partial_plan&) const { return true; }
};

}  // namespace

TEST_CASE("options that make no sense are named, with what was given and what was expected") {
  const bench_top b;
  REQUIRE(b.search().status.ok());
  CHECK_THAT(words_of<invalid_input>([&] { static_cast<void>(b.search(minimize_latency{}, top_k{0})); }),
             Contains("k = 0") && Contains(">= 1"));
  CHECK_THAT(words_of<invalid_input>([&] { static_cast<void>(b.search(minimize_latency{}, top_k{-3})); }),
             Contains("k = -3") && Contains(">= 1"));
  CHECK_THAT(words_of<invalid_input>([&] { static_cast<void>(b.search(minimize_latency{}, keeps_nothing{})); }),
             Contains("capacity = 0") && Contains(">= 1"));
  for (const int wrong : {0, -1}) {
    const std::string given = " = " + std::to_string(wrong);
    CHECK_THAT(words_of<invalid_input>([&] { static_cast<void>(b.search(minimize_latency{}, top_k{}, {.plans = wrong})); }),
               Contains("two_substate_dp") && Contains("plans" + given) && Contains(">= 1"));
    CHECK_THAT(words_of<invalid_input>([&] { static_cast<void>(b.search(minimize_latency{}, top_k{}, {.max_stages = wrong})); }),
               Contains("two_substate_dp") && Contains("max_stages" + given) && Contains(">= 1"));
  }
}

TEST_CASE("a microbatch without samples is named") {
  bench_top b;
  b.blank.microbatch_size = 4;
  CHECK(b.search().status.ok());
  for (const int wrong : {0, -2}) {
    b.blank.microbatch_size = wrong;
    const search_tables t = b.tables();
    const device_space space = every_order(t.classes, 4);
    CHECK_THAT(words_of<invalid_input>([&] { static_cast<void>(two_substate_dp(t, space, b.blank, minimize_latency{})); }),
               Contains("microbatch_size = " + std::to_string(wrong)) && Contains(">= 1"));
  }
}

TEST_CASE("a job without microbatches or with orders of its own is refused, and what else a blank plan says is not read") {
  bench_top b;
  const search_result right = b.search();
  for (const int wrong : {0, -3}) {
    b.blank.microbatches = wrong;
    CHECK_THAT(words_of<invalid_input>([&] { static_cast<void>(b.search()); }),
               Contains("microbatches = " + std::to_string(wrong)) && Contains(">= 1"));
  }
  b = {};
  b.blank.schedule.kind = schedule_kind::explicit_orders;
  CHECK_THROWS_AS(b.search(), invalid_input);
  b = {};
  b.blank.stages = {test::stage_of({0}, {{0, 4}})};
  b.blank.schedule.warmup = {1};
  const search_result same = b.search();
  REQUIRE_FALSE(right.plans.empty());
  REQUIRE(same.plans.size() == right.plans.size());
  for (std::size_t n = 0; n < same.plans.size(); ++n) CHECK(same.plans[n].plan == right.plans[n].plan);
}

TEST_CASE("an objective that breaks its promise is shown the two points") {
  struct falls_with_time {
    double score(seconds response, joules) const { return -response.value(); }
  };
  struct falls_with_energy {
    double score(seconds response, joules energy) const { return response.value() - 1e-3 * energy.value(); }
  };
  struct power {  // falls as time grows, except at zero energy
    double score(seconds response, joules energy) const { return energy.value() / (response.value() + 1); }
  };
  const bench_top b;
  CHECK_THAT(words_of<invalid_model>([&] { static_cast<void>(b.search(falls_with_time{})); }),
             Contains("score(0 s, 0 J)") && Contains("falls to -0.001 at 0.001 s, 0 J") && Contains("non-decreasing"));
  CHECK_THAT(words_of<invalid_model>([&] { static_cast<void>(b.search(falls_with_energy{})); }),
             Contains("score(0 s, 0 J)") && Contains("at 0 s, 0.001 J") && Contains("non-decreasing"));
  CHECK_THAT(words_of<invalid_model>([&] { static_cast<void>(b.search(power{})); }),
             Contains("falls to") && Contains("J;") && Contains("non-decreasing"));
  CHECK_THAT(words_of<invalid_model>([&] { static_cast<void>(b.search(falls_with_time{}, exhaustive{})); }), Contains("falls to"));
}

TEST_CASE("an objective whose score is not a number is told so") {
  struct never_a_number {
    double score(seconds, joules) const { return no_number; }
  };
  struct no_number_without_energy {
    double score(seconds response, joules energy) const { return energy.value() * std::log(response.value()) / energy.value(); }
  };
  struct no_number_of_a_plan {
    double score(const evaluation&) const { return no_number; }
  };
  struct no_number_between_points {  // NaN only between the points of the initial check
    double score(seconds response, joules) const {
      return response > seconds(1) && response < seconds(1e3) && response != seconds(30) ? no_number : response.value();
    }
  };
  const bench_top b;
  CHECK_THAT(words_of<invalid_model>([&] { static_cast<void>(b.search(no_number_between_points{})); }),
             Contains("= nan") && Contains("expected a number"));
  CHECK_THAT(words_of<invalid_model>([&] { static_cast<void>(b.search(never_a_number{})); }),
             Contains("= nan") && Contains("expected a number"));
  CHECK_THAT(words_of<invalid_model>([&] { static_cast<void>(b.search(no_number_without_energy{})); }),
             Contains("= nan") && Contains("expected a number"));
  CHECK_THAT(words_of<invalid_model>([&] { static_cast<void>(b.search(no_number_of_a_plan{}, exhaustive{})); }),
             Contains("nan") && Contains("expected a number"));
}

TEST_CASE("a cost model that goes wrong in the middle is named with layer, device, phase and batch") {
  const bench_top b;
  REQUIRE_NOTHROW(b.tables(slip{1, 3, 2, 1, phase::backward_input}));
  for (const double wrong : {-1.0, no_number, inf, -inf}) {
    for (const phase ph : {phase::forward, phase::backward_input, phase::backward_weight}) {
      const std::string words = words_of<invalid_model>([&] { static_cast<void>(b.tables(slip{wrong, 3, 2, 1, ph})); });
      CHECK_THAT(words, Contains("layer 3 \"block3\"") && Contains("batch 2") && Contains("device 1 \"d1\"") &&
                            Contains(std::string(to_string(ph))) && Contains("expected finite >= 0"));
    }
  }
}

TEST_CASE("memory and energy models that go wrong are named") {
  struct forgetful {
    bytes state(const layer& l, const workload&) const { return bytes(l.id.value == 3 ? -1 : 1); }
    bytes activations(const layer&, const workload&) const { return bytes(1); }
    bytes cache(const layer&, const workload&) const { return {}; }
  };
  struct perpetual {
    joules energy(const device_usage& u, const device&) const { return joules(-u.busy.value()); }
  };
  const bench_top b;
  CHECK_THAT(words_of<invalid_model>([&] { static_cast<void>(b.tables(roofline{}, forgetful{})); }),
             Contains("layer 3 \"block3\"") && Contains("-1"));
  CHECK_THAT(words_of<invalid_model>([&] { static_cast<void>(b.tables(roofline{}, plain_memory{}, perpetual{})); }), Contains("energy"));
}

TEST_CASE("limits that nothing can keep are a status with a reason, whatever the search") {
  const auto check = [](const bench_top& b, const char* what) {
    INFO(what);
    for (const bool prune : {true, false}) {
      const search_options options{.prune = prune, .coarse_boundaries = 2};
      for (const search_result& r : {b.search(minimize_latency{}, dominance{}, options), b.search(minimize_energy{}, top_k{1}, options),
                                     b.search(keep_qoe{1_s}, exhaustive{}, options)}) {
        CHECK(r.status.result == outcome::none_found);
        CHECK_FALSE(r.status.reason.empty());
        CHECK(r.plans.empty());
      }
    }
  };
  const auto limited = [](auto&& tighten) {
    bench_top b;
    auto devices = test::workers(3);
    for (device& d : devices) {
      d.memory = 100_GB;
      d.power = {1_W, 2_W, {}, {}};
      tighten(d);
    }
    b.cluster = cluster("tight", devices, mesh{1_MB_per_s, 1_ms});
    return b;
  };
  CHECK(limited([](device&) {}).search().status.ok());
  check(limited([](device& d) { d.memory_budget = bytes(1); }), "memory");
  check(limited([](device& d) { d.energy_budget = joules(1e-9); }), "energy");
  // Each device has room for one of the six layers.
  check(limited([](device& d) { d.memory_budget = 450_MB; }), "memory for half of the layers");
  // The busy share stretches the response, so idling alone exceeds the energy budget.
  check(limited([](device& d) {
          d.max_busy = 1e-3;
          d.energy_budget = joules(100);
        }),
        "a busy share that the energy budget does not allow");
}

TEST_CASE("devices that cannot reach each other work alone") {
  bench_top b;
  auto devices = test::workers(3);
  for (device& d : devices) d.memory = 100_GB;
  b.cluster = cluster("islands", devices, route_table{});
  const search_result r = b.search(minimize_latency{}, dominance{});
  REQUIRE(r.status.ok());
  REQUIRE_FALSE(r.plans.empty());
  for (const found_plan& f : r.plans) {
    CHECK(f.plan.stages.size() == 1);
    CHECK(f.plan.stages.front().devices.size() == 1);
  }
}

TEST_CASE("one layer on one device is a search too") {
  bench_top b;
  b.model = test::model_of({test::work_of("only", 1)}, {});
  b.sequence = decompose::serial(b.model);
  b.cluster = test::wired(1);
  const search_result r = b.search(minimize_latency{}, top_k{1});
  REQUIRE(r.plans.size() == 1);
  CHECK(r.plans.front().estimate.latency == estimate(r.plans.front().plan, b.model, b.cluster, roofline{}).latency);
  CHECK(r.counts.cells == 0);
}

}  // namespace test_search_bad_input
