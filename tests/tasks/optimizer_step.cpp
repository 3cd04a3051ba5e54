// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <hetplan/hetplan.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/simulate/observed_run.hpp>

using namespace hetplan;

namespace {

/// 1 s per sample for forward and each backward part; 1 s of optimizer per 10 MB on "slow", half of it elsewhere.
struct with_optimizer {
  seconds time(const work& w, const device&) const { return w.batch * 1_s; }
  seconds optimizer_step(const layer& l, const device& d) const { return seconds(l.weight / 10_MB * (d.name == "slow" ? 1 : 0.5)); }
};
static_assert(times_optimizer_step<with_optimizer>);
static_assert(!times_optimizer_step<roofline>);

planning_graph two_layers() {
  planning_graph_builder b("two");
  b.add_layer({.name = "a", .forward_flops = 1_FLOP, .weight = 20_MB});
  b.add_layer({.name = "b", .forward_flops = 1_FLOP, .weight = 40_MB, .trainable = false});
  b.add_edge(layer_id(0), layer_id(1), 1_MB);
  return std::move(b).build();
}

cluster pair() { return cluster("pair", {{.name = "slow", .memory = 1_GB}, {.name = "fast", .memory = 1_GB}}, shared_medium{10_MB_per_s}); }

}  // namespace

TEST_CASE("the optimizer's step follows the iteration, for trainable tensors only, and counts as busy") {
  const planning_graph model = two_layers();
  const cluster c = pair();
  plan p{.microbatches = 2, .stages = {{.name = "all", .layers = {layer_id(0), layer_id(1)}, .devices = {{c.find("slow"), 1}}}}};
  const evaluation e = judge(p, model, c, with_optimizer{}).evaluation;
  // 2 microbatches x 2 layers x (F + B + W), then 20 MB / 10 MB; the frozen 40 MB take no time.
  CHECK(e.latency == 14_s);
  CHECK(e.devices[0].busy == 14_s);
}

TEST_CASE("replicas step after their reduction, each at its own speed") {
  const planning_graph model = two_layers();
  const cluster c = pair();
  plan p{.microbatch_size = 2,
         .stages = {{.name = "all", .layers = {layer_id(0), layer_id(1)}, .devices = {{c.find("slow"), 1}, {c.find("fast"), 1}}}}};
  const judgement j = judge(p, model, c, with_optimizer{});
  // 6 s of work; a ring of two, 20 MB in each direction on a shared 10 MB/s, 4 s; then 2 s and 1 s of optimizer.
  CHECK(j.evaluation.latency == 12_s);
  CHECK(j.evaluation.devices[0].busy == 8_s);
  CHECK(j.evaluation.devices[1].busy == 7_s);
}

TEST_CASE("a wrong optimizer time is the model's fault") {
  struct broken : with_optimizer {
    seconds optimizer_step(const layer&, const device&) const { return seconds(-1); }
  };
  const planning_graph model = two_layers();
  const cluster c = pair();
  const plan p{.stages = {{.name = "all", .layers = {layer_id(0), layer_id(1)}, .devices = {{c.find("slow"), 1}}}}};
  CHECK_THROWS_WITH(judge(p, model, c, broken{}),
                    Catch::Contains("optimizer_step(layer 0 \"a\", device 0 \"slow\") = -1 s; expected finite >= 0"));
}

TEST_CASE("changes of capacity and speed must name something and be numbers") {
  const planning_graph model = two_layers();
  const cluster c = pair();
  const plan p{.stages = {{.name = "all", .layers = {layer_id(0), layer_id(1)}, .devices = {{c.find("slow"), 1}}}}};
  const auto g = tasks::expand(p, model, c, with_optimizer{});
  CHECK_THROWS_WITH(simulate(g, c.network(), fair_share{}, {.capacities = {{1_s, resource_id(7), 1_MB_per_s}}}),
                    Catch::Contains("capacity change 0"));
  CHECK_THROWS_WITH(simulate(g, c.network(), fair_share{}, {.speeds = {{1_s, device_id(0), -1}}}), Catch::Contains("speed change 0"));
}
