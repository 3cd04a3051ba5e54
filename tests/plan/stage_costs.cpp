// SPDX-License-Identifier: BSL-1.0
// stage_costs gives every reader what the models give, bit for bit, without a second call of any model.

#include <hetplan/plan/stage_costs.hpp>

#include <catch2/catch.hpp>
#include <hetplan/estimate/estimate.hpp>
#include <hetplan/simulate/evaluate.hpp>

#include "support/by_hand.hpp"
#include "support/random_instance.hpp"

namespace test_staged {

using namespace hetplan;
using namespace hetplan::test;

namespace {

struct roofline_with_step {
  [[nodiscard]] seconds time(const work& w, const device& d) const { return roofline{}.time(w, d); }
  [[nodiscard]] seconds optimizer_step(const layer& l, const device&) const { return seconds(1 + l.id.value); }
};

struct counting {
  long long* asked;
  [[nodiscard]] seconds time(const work& w, const device& d) const { return ++*asked, roofline{}.time(w, d); }
  [[nodiscard]] seconds optimizer_step(const layer& l, const device& d) const {
    return ++*asked, roofline_with_step{}.optimizer_step(l, d);
  }
};

}  // namespace

TEST_CASE("a part of a stage has the sums of its layers, device by device") {
  int parts = 0, optimized = 0;
  for_random_instances(40, [&](const instance& i) {
    const planning_graph model = i.model();
    const cluster c = i.cluster();
    long long asked = 0;
    const any_cost_model cost(counting{&asked});
    const stage_costs all(i.plan, model, c, cost);
    REQUIRE(all.stages.size() == i.plan.stages.size());
    for (std::size_t s = 0; s < all.stages.size(); ++s) {
      const stage& mine = i.plan.stages[s];
      REQUIRE(all.stages[s].devices.size() == mine.devices.size());
      double weight = 0;
      for_each_tensor(model, mine, [&](const layer& l) { weight += l.trainable_weight().value(); });
      REQUIRE(all.stages[s].trainable_bytes == (all.training() && mine.devices.size() > 1 ? weight : 0));
      for (std::size_t n = 0; n < mine.devices.size(); ++n, ++parts) {
        const device& d = c[mine.devices[n].device];
        const stage_costs::part& got = all.stages[s].devices[n];
        const auto sum_s = [&](phase what, double before) {
          double total = 0;
          for (int pass = 0; pass < all.passes.size(); ++pass) {
            const work_kind k = all.passes[pass].asks(what, mine.devices[n].samples, mine.devices[n].tensor_parallel);
            for (const layer_id l : mine.layers) total += roofline{}.time(k.of(model[l]), d).value();
          }
          return before + total / all.passes.size();
        };
        REQUIRE(got.forward_s == Approx(sum_s(phase::forward, 0)).epsilon(1e-12));
        if (!all.training()) {
          REQUIRE(got.backward_task_s() + got.optimizer_s == 0);
          continue;
        }
        REQUIRE(got.backward_input_s == Approx(sum_s(phase::backward_input, mine.recomputes() ? got.forward_s : 0)).epsilon(1e-12));
        REQUIRE(got.backward_weight_s == Approx(sum_s(phase::backward_weight, 0)).epsilon(1e-12));
        optimized += got.optimizer_s > 0 ? 1 : 0;
      }
    }
  });
  CHECK(parts > 100);
  CHECK(optimized > 20);
}

TEST_CASE("estimate, expansion and judgement read a staged plan and ask no model again") {
  int estimated = 0;
  for_random_instances(40, [&](const instance& i) {
    const planning_graph model = i.model();
    const cluster c = i.cluster();
    long long asked = 0;
    const any_cost_model cost(counting{&asked});
    const judgement direct = judge(i.plan, model, c, cost);
    const stage_costs all(i.plan, model, c, cost);
    const long long before = asked;
    REQUIRE(judge(all).evaluation == direct.evaluation);
    if (tasks::expand(all).computes.empty()) FAIL("no work");
    try {
      const evaluation e = estimate(all);
      REQUIRE(asked == before);
      REQUIRE(e == estimate(i.plan, model, c, roofline_with_step{}));
      ++estimated;
    } catch (const invalid_input&) {  // estimators reject plans of several pipelines, sizes or orders
    }
    REQUIRE(asked == before);
  });
  CHECK(estimated > 5);
}

TEST_CASE("plans are equal that decide alike") {
  for_random_instances(5, [](const instance& i) {
    plan p = i.plan;
    CHECK(p == i.plan);
    ++p.microbatches;
    CHECK_FALSE(p == i.plan);
  });
}

}  // namespace test_staged
