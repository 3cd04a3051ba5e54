// SPDX-License-Identifier: BSL-1.0
#pragma once
// Histories of several policies under one timeline: random ones, and building blocks for hand-made ones.

#include <string>
#include <utility>
#include <vector>

#include <hetplan/io/timeline_json.hpp>

#include "support/by_hand.hpp"
#include "support/random_history.hpp"
#include "support/random_instance.hpp"

namespace hetplan::test {

/// A random timeline and possible histories of some policies, with plans that share layouts.
struct comparison {
  planning_graph model;
  hetplan::cluster cluster;
  adapt::timeline timeline;
  std::vector<io::policy_history> rows;
};
inline comparison random_comparison(random_source& random, const instance& i, int policies, int most_stretches) {
  comparison x{i.model(), i.cluster(), {}, {}};
  x.timeline = random_timeline(random, x.cluster);
  plan other = i.plan;
  other.sharing_policy = other.sharing_policy == sharing::fair_share ? sharing::priority : sharing::fair_share;
  for (int p = 0; p < policies; ++p) {
    std::vector<plan> plans{i.plan, other};
    if (random.chance(0.5)) plans.pop_back();
    x.rows.push_back({"<policy & " + std::to_string(p) + ">",
                      random_history(random, x.timeline, x.cluster, std::move(plans), random.integer(0, most_stretches))});
  }
  return x;
}

inline const planning_graph& two_layers() {
  static const planning_graph m = model_of({work_of("a", 1), work_of("b", 3)}, {{0, 1, 2, 2}});
  return m;
}
inline plan two_stages() {
  plan p = plan_of(mode::inference, 1, 4, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})});
  p.model = "by hand";
  p.cluster = "wireless";
  return p;
}
inline plan one_stage() {
  plan p = plan_of(mode::inference, 1, 4, {stage_of({0, 1}, {{0, 1}})});
  p.model = "by hand";
  p.cluster = "wireless";
  return p;
}
inline adapt::stretch runs(double from, double to, std::size_t index, long long n, double response, bool late = false) {
  return {adapt::activity::running, from, to, index, n, response, 10 * (to - from), late};
}

}  // namespace hetplan::test
