// SPDX-License-Identifier: BSL-1.0
// Boundary costs between layers of a stage in the judge: by hand, and as the stage's sum on random plans.
#include <catch2/catch.hpp>

#include <hetplan/hetplan.hpp>

#include "support/by_hand.hpp"
#include "support/random_instance.hpp"

using namespace hetplan;
using namespace hetplan::test;

namespace test_boundary {
namespace {

/// 1 s per layer and sample, 0.5 s between two layers.
struct half {
  [[nodiscard]] seconds time(const work& w, const device&) const { return 1_s * w.batch; }
  [[nodiscard]] seconds boundary(const layer&, const layer&, const work_kind&, const device&) const { return 0.5_s; }
};
/// Roofline model with a boundary price that depends on the order of layers, the phase and the batch.
struct ordered : roofline {
  [[nodiscard]] seconds boundary(const layer& before, const layer& after, const work_kind& k, const device& d) const {
    return seconds((1 + before.id.value + 0.1 * after.id.value) * (1 + static_cast<int>(k.phase)) * k.batch * (1 + d.id.value) * 1e-3);
  }
};

/// Returns the time of a stage by definition, pair by pair.
double by_hand_s(const planning_graph& m, const stage& s, const assignment& a, const device& d, phase what, const token_pass& pass) {
  const work_kind k = pass.asks(what, a.samples, a.tensor_parallel);
  double total = 0;
  for (std::size_t i = 0; i < s.layers.size(); ++i) {
    total += ordered{}.time(k.of(m[s.layers[i]]), d).value();
    if (i > 0) total += ordered{}.boundary(m[s.layers[i - 1]], m[s.layers[i]], k, d).value();
  }
  return total;
}

TEST_CASE("four layers take three boundaries in every phase; cut in two, each part takes one, whoever runs them") {
  const planning_graph m =
      model_of({work_of("a", 1), work_of("b", 1), work_of("c", 1), work_of("d", 1)}, {{0, 1, 0}, {1, 2, 0}, {2, 3, 0}});
  const cluster c = wired(2);
  const std::vector<layer_id> all{layer_id(0), layer_id(1), layer_id(2), layer_id(3)};
  plan p{
      .workload = {.mode = mode::inference}, .microbatches = 2, .stages = {{.name = "all", .layers = all, .devices = {{device_id(0), 1}}}}};
  CHECK(judge(p, m, c, half{}).evaluation.latency == 11_s);
  CHECK(judge(p, m, c, half{}).evaluation.devices[0].busy == 11_s);
  p.workload.mode = mode::training;
  CHECK(judge(p, m, c, half{}).evaluation.latency == 33_s);
  p.stages[0].recompute = recomputation::stage;
  CHECK(judge(p, m, c, half{}).evaluation.latency == 44_s);

  p.workload.mode = mode::inference;
  p.stages = {{.name = "head", .layers = {all[0], all[1]}, .devices = {{device_id(0), 1}}},
              {.name = "tail", .layers = {all[2], all[3]}, .devices = {{device_id(1), 1}}}};
  CHECK(judge(p, m, c, half{}).evaluation.latency == 7.5_s);  // 2.5 s per step, three steps
  p.stages[1].devices[0].device = device_id(0);               // stages on one device pay no boundary between them
  p.schedule.kind = schedule_kind::explicit_orders;
  p.schedule.orders.resize(c.size());
  for (const int microbatch : {0, 1}) {
    for (const int s : {0, 1}) p.schedule.orders[0].push_back({phase::forward, stage_id(s), microbatch});
  }
  CHECK(judge(p, m, c, half{}).evaluation.latency == 10_s);
}

TEST_CASE("what the tasks of a device take is what its stages' layers and boundaries add up to, plan by plan") {
  int priced = 0;
  for_random_instances(30, [&](const instance& i) {
    const planning_graph m = i.model();
    const cluster c = i.cluster();
    std::vector<double> expected(c.size(), 0), got(c.size(), 0);
    for (const stage& s : i.plan.stages) {
      priced += s.layers.size() > 1 ? 1 : 0;
      const bool training = i.plan.workload.mode == mode::training;
      for (const assignment& a : s.devices) {
        const token_passes passes(i.plan.workload, m);
        const auto in = [&](phase what) {
          double all = 0;
          for (int pass = 0; pass < passes.size(); ++pass) all += by_hand_s(m, s, a, c[a.device], what, passes[pass]);
          return all;
        };
        double once = in(phase::forward) * (training && s.recomputes() ? 2 : 1);
        if (training) once += in(phase::backward_input) + in(phase::backward_weight);
        expected[a.device.index()] += once * i.plan.microbatches_of(s);
      }
    }
    for (const tasks::compute_task& t : tasks::expand(i.plan, m, c, ordered{}).computes) got[t.device.index()] += t.duration_s;
    for (std::size_t d = 0; d < c.size(); ++d) REQUIRE(got[d] == Approx(expected[d]).epsilon(1e-9).margin(1e-15));
  });
  CHECK(priced > 200);
}

}  // namespace
}  // namespace test_boundary
