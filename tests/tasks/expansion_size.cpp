// SPDX-License-Identifier: BSL-1.0
// The predicted size of expansions against their real size.

#include <hetplan/plan/expansion_size.hpp>

#include <set>

#include <catch2/catch.hpp>

#include "support/by_hand.hpp"
#include "support/random_instance.hpp"

namespace test_expansion_size {

using namespace hetplan;
using namespace hetplan::test;

namespace {

struct with_steps {
  [[nodiscard]] seconds time(const work& w, const device& d) const { return roofline{}.time(w, d); }
  [[nodiscard]] seconds optimizer_step(const layer&, const device&) const { return seconds(1); }
};

/// Returns true if the predicted size is exact: one device per stage, one stage per device, no rules, server or tokens.
bool is_plain(const plan& p) {
  std::set<device_id> used;
  for (const stage& s : p.stages) {
    if (s.devices.size() > 1 || !used.insert(s.devices.front().device).second) return false;
  }
  return p.schedule.transfers.empty() && !p.parameter_server && p.workload.mode != mode::generation;
}

}  // namespace

TEST_CASE("no plan expands to more than it is said to, W apart, reductions and optimizer steps included") {
  int tight = 0, split = 0;
  for_random_instances(40, [&](const instance& i) {
    const planning_graph model = i.model();
    const tasks::task_graph g = tasks::expand(i.plan, model, i.cluster(), with_steps{});
    const expansion_size size = size_of_expansion(i.plan, model, make_stage_graph(i.plan, model));
    REQUIRE(static_cast<double>(g.computes.size()) == size.tasks);
    REQUIRE(static_cast<double>(g.transfers.size()) <= size.transfers);
    for (const tasks::compute_task& t : g.computes) split += t.what == phase::backward_weight ? 1 : 0;
    if (!is_plain(i.plan)) return;
    REQUIRE(static_cast<double>(g.transfers.size()) == size.transfers);
    tight += g.transfers.empty() ? 0 : 1;
  });
  CHECK(tight > 20);
  CHECK(split > 20);
}

TEST_CASE("a plan whose reductions alone are too many transfers is told so") {
  // A stage of two devices: only a ring of 2, while the microbatches' tasks just fit.
  layer_spec l = work_of("a", 1, 1, 1);
  l.weight = 1_MB;
  const planning_graph model = model_of({l}, {});
  plan p = plan_of(mode::training, 2, 1'000'000, {stage_of({0}, {{0, 1}, {1, 1}})});
  CHECK(too_large_an_expansion(p, model) == 4e6 + 2 + 2);
  p.microbatches = 999'999;
  CHECK_FALSE(too_large_an_expansion(p, model));
}

}  // namespace test_expansion_size
