// SPDX-License-Identifier: BSL-1.0
// Orders that devices choose during the run.

#include <hetplan/simulate/dispatch.hpp>

#include <fstream>
#include <iostream>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <hetplan/simulate/evaluate.hpp>

#include "support/by_hand.hpp"
#include "support/random_source.hpp"
#include "support/shared_data.hpp"

namespace test_dispatch {

using namespace hetplan;
using namespace hetplan::test;

namespace {

/// A chain of stages with F, B, W in seconds, activations of 1 byte per microbatch of which W needs half, and pure delays.
struct pipeline {
  std::vector<double> f, b, w, delay;  // [stage]; delay after the stage
  std::vector<int> device;             // [stage]
  std::vector<double> memory;          // [device], in activations; empty: no limit
  std::vector<bool> recompute = {};
  int microbatches = 1;
  double scale = 1;

  [[nodiscard]] int devices() const { return *std::max_element(device.begin(), device.end()) + 1; }
  [[nodiscard]] planning_graph model() const {
    std::vector<layer_spec> layers;
    std::vector<tensor> edges;
    for (std::size_t s = 0; s < f.size(); ++s) {
      layers.push_back(work_of("l" + std::to_string(s), scale * f[s], scale * b[s], scale * w[s]));
      layers.back().activation = 1_B;
      layers.back().activation_for_weights = 0.5_B;
      if (s > 0) edges.push_back({static_cast<int>(s) - 1, static_cast<int>(s), 1, 1});
    }
    return model_of(layers, edges);
  }
  [[nodiscard]] cluster net() const {
    route_table table;
    for (std::size_t s = 0; s + 1 < f.size(); ++s) {
      const std::string from = "d" + std::to_string(device[s]), to = "d" + std::to_string(device[s + 1]);
      if (from == to) continue;
      table.rules.push_back({from, to, route{seconds(scale * delay[s]), {}}});
      table.rules.push_back({to, from, route{seconds(scale * delay[s]), {}}});
    }
    auto all = workers(devices());
    for (std::size_t d = 0; d < all.size(); ++d) all[d].memory = bytes(memory.empty() ? 1e9 : std::max(memory[d], 1e-9));
    if (all.size() == 1) return {"one", all.front()};
    return {"pipeline", all, table};
  }
  [[nodiscard]] plan given() const {
    std::vector<stage> stages;
    for (std::size_t s = 0; s < f.size(); ++s) {
      stages.push_back(stage_of({static_cast<int>(s)}, {{device[s], 1}}));
      if (!recompute.empty()) stages.back().recompute = whole_stage_if(recompute[s]);
    }
    plan p = plan_of(mode::training, 1, microbatches, stages);
    p.workload.optimizer_factor = 0;
    return p;
  }
};

struct run {
  plan ordered;
  evaluation judged;
};
template <class P>
run dispatched(const pipeline& x, const P& policy) {
  const planning_graph m = x.model();
  const cluster c = x.net();
  const planning_problem problem(m, c, roofline{});
  plan p = dispatch(x.given(), problem, policy);
  const evaluation e = judge(p, m, c, roofline{}).evaluation;
  return {std::move(p), e};
}

pipeline equal_stages(int p, int m, double f, double b, double w, double c, double memory) {
  const auto n = static_cast<std::size_t>(p);
  pipeline x{.f = std::vector<double>(n, f),
             .b = std::vector<double>(n, b),
             .w = std::vector<double>(n, w),
             .delay = std::vector<double>(n, c),
             .device = {},
             .memory = {}};
  for (int d = 0; d < p; ++d) x.device.push_back(d);
  if (memory > 0) x.memory.assign(n, memory);
  x.microbatches = m;
  return x;
}

std::string text_of(const std::vector<order_entry>& order) {
  std::string text;
  for (const order_entry& e : order) text += letter(e.what) + std::to_string(e.microbatch) + " ";
  return text;
}

}  // namespace

TEST_CASE("compact and eager take as long as two independent programs say") {
  const auto makespan = [](auto policy, double f, double b, double w, double c, double memory) {
    return dispatched(equal_stages(4, 8, f, b, w, c, memory), policy).judged.latency.value();
  };
  CHECK(makespan(compact{}, 5, 6, 4, 0, 4) == near(161));
  CHECK(makespan(compact{}, 5, 6, 4, 0, 6) == near(153));
  CHECK(makespan(compact{}, 5, 6, 4, 0, 0) == near(153));
  CHECK(makespan(eager{}, 5, 6, 4, 0, 4) == near(151));
  CHECK(makespan(eager{}, 5, 6, 4, 0, 6) == near(135));
  CHECK(makespan(eager{}, 5, 6, 4, 0, 0) == near(135));
  CHECK(makespan(compact{}, 10, 10, 10, 1, 4) == near(328));
  CHECK(makespan(eager{}, 10, 10, 10, 1, 0) == near(273));
  CHECK(makespan(compact{}, 10, 10, 10, 20, 6) == near(500));
  CHECK(makespan(eager{}, 10, 10, 10, 20, 0) == near(350));
  CHECK(dispatched(equal_stages(4, 8, 5, 6, 4, 0, 4), eager{}).judged.period().value() == near(151));
  CHECK(dispatched(equal_stages(4, 8, 5, 6, 4, 0, 0), eager{}).judged.period().value() == near(127));
}

TEST_CASE("dispatched pipelines have the reference makespans, spans, peaks and orders") {
  const auto path = shared_data("reference/dispatch_cases.json");
  if (!path) return;
  std::ifstream file(*path);
  int cases = 0;
  const nlohmann::json document = nlohmann::json::parse(file);
  for (const auto& given : document.at("cases")) {
    pipeline x{.f = given.at("F"), .b = given.at("B"), .w = given.at("W"), .delay = given.at("c"), .device = {}, .memory = {}};
    for (std::size_t s = 0; s < x.f.size(); ++s) x.device.push_back(static_cast<int>(s));
    x.delay.push_back(0);
    x.microbatches = given.at("m");
    for (const auto& most : given.at("memory")) x.memory.push_back(most.is_null() ? 1e9 : most.get<double>());
    for (const bool is_compact : {true, false}) {
      const auto& expected = given.at("values").at(is_compact ? "compact" : "eager");
      const run r = is_compact ? dispatched(x, compact{}) : dispatched(x, eager{});
      INFO(given.at("name") << (is_compact ? " compact" : " eager"));
      CHECK(r.judged.latency.value() == near(expected.at("makespan").get<double>()));
      for (std::size_t d = 0; d < x.f.size(); ++d) {
        CHECK(r.judged.devices[d].span.value() == near(expected.at("spans")[d].get<double>()));
        CHECK(r.judged.devices[d].peak_memory.value() == near(expected.at("peak")[d].get<double>()));
        std::string order;
        for (const auto& e : expected.at("orders")[d]) order += e.get<std::string>() + " ";
        CHECK(text_of(r.ordered.schedule.orders[d]) == order);
      }
    }
    ++cases;
  }
  CHECK(cases == 80);
}

TEST_CASE("the tightest memory that is feasible ends in no deadlock, and a change of the unit of time changes no order") {
  const std::uint64_t seed = first_seed();
  std::cout << "seed " << seed << "\n";
  random_source random(seed);
  for (int i = 0; i < 400; ++i) {
    pipeline x{.f = {}, .b = {}, .w = {}, .delay = {}, .device = {}, .memory = {}};
    const int p = random.integer(1, 4), chunks = random.integer(1, 3);
    const bool folded = random.chance(0.5);
    for (int c = 0; c < chunks; ++c) {
      for (int d = 0; d < p; ++d) x.device.push_back(folded && c % 2 == 1 ? p - 1 - d : d);
    }
    const bool whole = random.chance(0.5);  // to cause ties
    const auto draw = [&] { return whole ? random.integer(1, 4) : random.between(0.1, 4); };
    for (std::size_t s = 0; s < x.device.size(); ++s) {
      x.f.push_back(draw()), x.b.push_back(draw()), x.w.push_back(draw()), x.delay.push_back(random.chance(0.3) ? 0 : draw());
      x.recompute.push_back(random.chance(0.2));
    }
    x.microbatches = random.integer(1, 7);
    x.memory.assign(static_cast<std::size_t>(p), 0);
    for (std::size_t s = 0; s < x.device.size(); ++s) {
      // A stage that recomputes keeps its input of 1 byte; the first stage keeps nothing.
      x.memory[static_cast<std::size_t>(x.device[s])] += x.recompute[s] && s == 0 ? 0 : 1;
    }
    for (int d = 0; d < p; ++d) {
      for (std::size_t s = 0; s < x.device.size(); ++s) {
        if (x.device[s] == d && x.recompute[s]) {
          x.memory[static_cast<std::size_t>(d)] += 1;
          break;
        }
      }
      if (random.chance(0.5)) x.memory[static_cast<std::size_t>(d)] += random.integer(0, 3);
    }
    INFO("seed " << seed << ", pipeline " << i);
    for (const bool is_compact : {true, false}) {
      const run r = is_compact ? dispatched(x, compact{}) : dispatched(x, eager{});
      for (std::size_t d = 0; d < x.memory.size(); ++d) CHECK(r.judged.devices[d].peak_memory.value() <= x.memory[d] * (1 + 1e-9));
      pipeline small = x;
      small.scale = 0.001;
      const run again = is_compact ? dispatched(small, compact{}) : dispatched(small, eager{});
      CHECK(again.ordered.schedule.orders == r.ordered.schedule.orders);
    }
  }
}

TEST_CASE("replicas, branches and whole backwards are dispatched, too") {
  const std::uint64_t seed = first_seed();
  random_source random(seed);
  for (int i = 0; i < 200; ++i) {
    // A diamond of layers on random devices, several of which may share one.
    std::vector<layer_spec> layers;
    for (int l = 0; l < 4; ++l) {
      layers.push_back(work_of("l" + std::to_string(l), random.integer(1, 4), random.integer(1, 4), random.integer(0, 3)));
      layers.back().activation = 2_B;
    }
    const planning_graph m = model_of(layers, {{0, 1, 1, 1}, {0, 2, 2, 1}, {1, 3, 1, 2}, {2, 3, 1, 1}});
    std::vector<stage> stages;
    std::vector<double> needed(3, 0);
    for (int l = 0; l < 4; ++l) {
      const bool two = random.chance(0.4);
      const int first = random.integer(0, 2);
      std::vector<std::pair<int, int>> devices{{first, two ? 1 : 2}};
      if (two) devices.push_back({(first + 1) % 3, 1});
      for (const auto& [d, samples] : devices) needed[static_cast<std::size_t>(d)] += 2 * samples;
      stages.push_back(stage_of({l}, devices));
    }
    auto all = workers(3);
    for (std::size_t d = 0; d < 3; ++d) all[d].memory = bytes(std::max(needed[d] + (random.chance(0.5) ? 2 : 0), 1e-9));
    const cluster c("three", all, mesh{bytes_per_second(2), seconds(0.5)});
    plan p = plan_of(mode::training, 2, random.integer(1, 4), stages);
    const planning_problem problem(m, c, roofline{});
    const bool split = random.chance(0.5);
    INFO("seed " << seed << ", diamond " << i);
    for (const bool is_compact : {true, false}) {
      const dispatch_options how{.split_backward = split};
      const plan out = is_compact ? dispatch(p, problem, compact{}, how) : dispatch(p, problem, eager{}, how);
      const evaluation e = judge(out, m, c, roofline{}).evaluation;
      for (std::size_t d = 0; d < 3; ++d) CHECK(e.devices[d].peak_memory.value() <= all[d].memory.value() * (1 + 1e-9));
    }
  }
}

namespace {
struct last_first {
  [[nodiscard]] std::optional<std::size_t> next(const dispatch_view& v) const { return v.ready.size() - 1; }
};
struct idle {
  [[nodiscard]] std::optional<std::size_t> next(const dispatch_view&) const { return std::nullopt; }
};
struct beyond {
  [[nodiscard]] std::optional<std::size_t> next(const dispatch_view& v) const { return v.ready.size(); }
};
}  // namespace

TEST_CASE("a policy of one's own is asked about what is ready, with what fits") {
  const run r = dispatched(equal_stages(2, 3, 1, 1, 1, 0, 0), last_first{});
  CHECK(text_of(r.ordered.schedule.orders[1]).size() > 0);
  CHECK_THROWS_WITH(dispatched(equal_stages(2, 3, 1, 1, 1, 0, 0), idle{}),
                    "dispatch: device \"d0\" waits for ever with 3 tasks that could run, the first forward of stage \"\", microbatch 0; "
                    "expected a policy that takes one, and memory for it");
  CHECK_THROWS_WITH(dispatched(equal_stages(2, 3, 1, 1, 1, 0, 0), beyond{}),
                    "dispatch policy: next(device \"d0\", 3 ready tasks) = 3; expected the index of one of them, or nothing");
}

TEST_CASE("what cannot be dispatched says why") {
  pipeline x = equal_stages(2, 3, 1, 1, 1, 0, 0.5);
  CHECK_THROWS_WITH(dispatched(x, compact{}),
                    "dispatch: device \"d0\" may hold 0.5 B; expected at least 1 B, 0 B of weights and what "
                    "belongs to them and 1 B for one microbatch of each of its stages");
  x.memory.clear();
  const planning_graph m = x.model();
  const cluster c = x.net();
  const planning_problem problem(m, c, roofline{});
  CHECK_THROWS_WITH(dispatch(x.given(), problem, compact{}, {.memory = {bytes(1)}}),
                    "dispatch: memory for 1 devices; expected one entry for each of the 2");
  CHECK_THROWS_WITH(dispatch(x.given(), problem, compact{}, {.memory = {bytes(1), bytes(0)}}),
                    Catch::Contains("may hold 0 B; expected at least 1 B"));
  plan tokens = x.given();
  tokens.workload.mode = mode::generation;
  CHECK_THROWS_WITH(dispatch(tokens, problem, compact{}), Catch::Contains("a plan for generation"));
  plan nowhere = x.given();
  nowhere.stages[0].layers = {layer_id(7)};
  CHECK_THROWS_WITH(dispatch(nowhere, problem, compact{}), Catch::Contains("expected a layer of the model, got id 7"));
}

}  // namespace test_dispatch
