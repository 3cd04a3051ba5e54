// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <functional>
#include <string>
#include <vector>

#include <hetplan/cost/cost_model.hpp>
#include <hetplan/partition/brute_force.hpp>
#include <hetplan/partition/search_tables.hpp>
#include <hetplan/partition/two_substate_dp.hpp>
#include <hetplan/plan/plan.hpp>

#include "support/search_instance.hpp"

namespace test_device_orders {
using namespace hetplan;
using namespace hetplan::partition;

/// Answers a space that was bent.
struct bent_ordering {
  std::function<void(device_space&)> bend;
  [[nodiscard]] std::vector<device_space> operator()(const search_tables& t, int largest_group) const {
    device_space s = by_memory(t, largest_group);
    bend(s);
    return {s};
  }
};

TEST_CASE("a user's device ordering is checked whole: groups, states and moves, and no device is taken twice") {
  const auto i = test::random_search_instance(test::first_seed(), {.most_layers = 4, .most_devices = 3});
  std::vector<device> three;
  for (int d = 0; d < 3; ++d) three.push_back({.name = std::to_string(d), .memory = bytes(1e9 + d), .compute = flops_per_second(1e12)});
  const cluster c("three", three, shared_medium{bytes_per_second(1e6), seconds(0)});
  const search_tables t(i.model, i.sequence, c, roofline{}, plain_memory{}, linear_power{}, i.blank.workload, 4);
  REQUIRE(t.classes.size() == 3);
  const auto asked = [&](std::function<void(device_space&)> bend) { return any_device_ordering(bent_ordering{std::move(bend)})(t, 2); };
  CHECK(asked([](device_space&) {}).size() == 1);
  const std::vector<std::pair<std::string, std::function<void(device_space&)>>> faults{
      {"space 0, group 0: no devices; expected at least one", [](device_space& s) { s.groups[0].clear(); }},
      {"space 0, group 0: class 3; expected one of 3", [](device_space& s) { s.groups[0][0].of_class = 3; }},
      {"space 0, group 0: 0 devices of class 2; expected 1 to 1", [](device_space& s) { s.groups[0][0].devices = 0; }},
      {"space 0, group 0: 2 devices of class 2; expected 1 to 1", [](device_space& s) { s.groups[0][0].devices = 2; }},
      {"space 0, group 0: class 2 behind class 2; expected ascending classes",
       [](device_space& s) { s.groups[0].push_back(s.groups[0].front()); }},
      {"space 0, group 0: 3 devices; expected at most 2",
       [](device_space& s) {
         s.groups[0] = {{0, 1}, {1, 1}, {2, 1}};
       }},
      {"space 0, state 0: no moves; expected at least one", [](device_space& s) { s.moves[0].clear(); }},
      {"space 0, state 0: no moves; expected at least one", [](device_space& s) { s.moves.clear(); }},
      {"space 0: left has 3 states, moves 4; expected as many", [](device_space& s) { s.left.pop_back(); }},
      {"space 0, state 1: left names 2 classes; expected 3", [](device_space& s) { s.left[1].pop_back(); }},
      {"space 0, state 1: -1 devices of class 0 are left; expected 0 to 1", [](device_space& s) { s.left[1][0] = -1; }},
      {"space 0, state 0, move 0: group 99; expected one of", [](device_space& s) { s.moves[0][0].group = 99; }},
      {"space 0, state 0, move 0: to state 0; expected a later one of 4", [](device_space& s) { s.moves[0][0].to = 0; }},
      {"space 0, state 1, move 0: to state 4; expected a later one of 4", [](device_space& s) { s.moves[1][0].to = 4; }},
      {"space 0, state 0, move 0: leaves 1 devices of class 2 of 1 with group 0; expected at most 0",
       [](device_space& s) { s.left[1][2] = 1; }},
      {"0 devices of class 2 of 0 with group 0; expected at most 0", [](device_space& s) { s.moves[1][0].group = 0; }},
  };
  for (const auto& [message, bend] : faults) {
    CAPTURE(message);
    CHECK_THROWS_WITH(asked(bend), Catch::Contains("device ordering: ") && Catch::Contains(message));
    CHECK_THROWS_AS(asked(bend), invalid_model);
  }
}

TEST_CASE("searches that are given a device space check it") {
  const auto i = test::random_search_instance(test::first_seed(), {.most_layers = 4, .most_devices = 3});
  const search_tables t(i.model, i.sequence, i.cluster, roofline{}, plain_memory{}, linear_power{}, i.blank.workload, 4);
  const auto refused = [&](const std::string& fault, const std::function<void(device_space&)>& bend) {
    device_space s = by_memory(t, 2);
    bend(s);
    CHECK_THROWS_WITH(least_overflow(t, s, i.blank), "least_overflow: device space, " + fault);
    CHECK_THROWS_WITH(two_substate_dp(t, s, i.blank, minimize_latency{}), "two_substate_dp: device space, " + fault);
    CHECK_THROWS_WITH(plain_dp(t, s, i.blank, minimize_latency{}, training_pipeline{}), "plain_dp: device space, " + fault);
    CHECK_THROWS_AS(least_overflow(t, s, i.blank), invalid_input);
  };
  refused("state 0: no moves; expected at least one", [](device_space& s) { s = {}; });
  const std::string groups = std::to_string(by_memory(t, 2).groups.size()), devices = std::to_string(i.cluster.size());
  refused("state 0, move 0: group 9999; expected one of " + groups, [](device_space& s) { s.moves[0][0].group = 9999; });
  refused("class 0: device 9999; expected one of the " + devices + " of the cluster",
          [](device_space& s) { s.classes[0][0] = device_id(9999); });
}

TEST_CASE("where nothing fits, least_overflow answers: memory of nearly nothing, state of nearly everything, a space without a plan") {
  for (const double memory : {1e-310, 1e-300, 1.0}) {
    for (const double weight : {1.0, 1e6, 4e307}) {
      CAPTURE(memory, weight);
      planning_graph_builder b("m");
      for (int l = 0; l < 2; ++l) b.add_layer({.name = std::to_string(l), .forward_flops = flops(1e9), .weight = bytes(weight)});
      b.add_edge(layer_id(0), layer_id(1), bytes(1000));
      const planning_graph model = std::move(b).build();
      std::vector<device> two(2, device{.name = "a", .memory = bytes(memory), .compute = flops_per_second(1e12)});
      two[1].name = "b";
      const cluster c("two", two, shared_medium{bytes_per_second(1e8), seconds(0)});
      const planning_problem problem{model, c, roofline{}, job{.batch = 4}};
      const layer_sequence row = sequence_of(model);
      const search_tables t(model, row, c, problem.cost, plain_memory{}, linear_power{}, problem.job.workload, 4);
      const auto nearest = least_overflow(t, by_memory(t, 4), blank_plan(problem, "test", 4));
      REQUIRE(nearest);
      std::size_t layers = 0;
      for (const stage& s : nearest->stages) layers += s.layers.size();
      CHECK(layers == 2);
      device_space nowhere = by_memory(t, 4);
      for (auto& moves : nowhere.moves) moves.clear();
      CHECK_FALSE(least_overflow(t, nowhere, blank_plan(problem, "test", 4)));
    }
  }
}

}  // namespace test_device_orders
