// SPDX-License-Identifier: BSL-1.0
// Memory of devices by hand: tensors shared by stages, and activations from phase to phase.

#include <hetplan/estimate/estimate.hpp>
#include <hetplan/plan/describe.hpp>
#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/solve/glpk.hpp>

#include <catch2/catch.hpp>

#include "support/by_hand.hpp"

namespace test_memory_by_hand {

using namespace hetplan;
using namespace hetplan::test;

namespace {

plan explicitly(plan p, const std::vector<std::string>& orders) {
  p.schedule.kind = schedule_kind::explicit_orders;
  for (const std::string& o : orders) p.schedule.orders.push_back(order_of(o));
  return p;
}

double peak(const plan& p, const planning_graph& m, int devices = 1) {
  return judged(p, m, wired(devices)).evaluation.devices[0].peak_memory.value();
}

/// Returns a model whose embedding and head share 4 bytes; the block between them has 10 bytes.
planning_graph tied() {
  layer_spec in = work_of("embedding", 1, 1), block = work_of("block", 1, 1, 1), out = work_of("head", 1, 1);
  in.weight = out.weight = 4_B;
  in.weight_group = out.weight_group = "tied";
  block.weight = 10_B;
  for (layer_spec* l : {&in, &block, &out}) l->kv_bytes_per_token = 1_B;
  return model_of({in, block, out}, {{0, 1, 1, 1}, {1, 2, 1, 1}});
}

}  // namespace

TEST_CASE("a device holds a tensor once however many of its stages have it") {
  const planning_graph m = tied();
  const std::vector<stage> apart{stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}}), stage_of({2}, {{0, 1}})};
  plan p = explicitly(plan_of(mode::training, 1, 1, apart), {"F0.0 F2.0 B2.0 B0.0", "F1.0 B1.0"});
  const judgement trained = judged(p, m, wired(2));
  CHECK(trained.evaluation.devices[0].peak_memory.value() == near(4 * 4));  // weights, gradients, two optimizer states
  CHECK(trained.evaluation.devices[1].peak_memory.value() == near(4 * 10));
  p = explicitly(plan_of(mode::inference, 1, 1, apart), {"F0.0 F2.0", "F1.0"});
  CHECK(peak(p, m, 2) == near(4));
  p.workload.mode = mode::generation;
  p.workload.context = 5;
  p.workload.tokens = 3;
  CHECK(peak(p, m, 2) == near(4 + 8 + 8));  // each stage has its own cache
}

TEST_CASE("a device that runs the same layers in two pipelines holds their weights once") {
  const planning_graph m = tied();
  plan p = plan_of(mode::training, 1, 2, {stage_of({0, 1, 2}, {{0, 1}}, 0, 0), stage_of({0, 1, 2}, {{0, 1}}, 0, 1)});
  p.pipelines = {1, 1};
  p = explicitly(p, {"F0.0 B0.0 F1.0 B1.0"});
  CHECK(peak(p, m) == near(4 * (4 + 10)));
}

TEST_CASE("a tensor that the user's model sizes by the layer counts at the largest of the stages' holdings") {
  struct by_layer {
    [[nodiscard]] bytes state(const layer& l, const workload&) const {
      return bytes(l.name == "embedding" ? 5 : l.name == "head" ? 7 : 100);
    }
    [[nodiscard]] bytes activations(const layer&, const workload&) const { return {}; }
    [[nodiscard]] bytes cache(const layer&, const workload&) const { return {}; }
  };
  const planning_graph m = tied();
  for (const bool head_first : {false, true}) {
    plan p = plan_of(mode::training, 1, 1, {stage_of({0}, {{0, 1}}), stage_of({1}, {{0, 1}}), stage_of({2}, {{0, 1}})});
    p = explicitly(p, {"F0.0 F1.0 F2.0 B2.0 B1.0 B0.0"});
    if (head_first) {  // the order of the list is not the order of time
      std::swap(p.stages[0], p.stages[2]);
      p.schedule.orders = {order_of("F2.0 F1.0 F0.0 B0.0 B1.0 B2.0")};
    }
    const judgement j = judge(p, m, wired(1), roofline{}, judge_models{by_layer{}});
    CHECK(j.evaluation.devices[0].peak_memory.value() == near(100 + 7));
  }
}

namespace {
/// Returns layers of 2 + 3 bytes of activations per sample, of which a split W needs 2 + 1.
planning_graph kept() {
  layer_spec a = work_of("a", 1, 1, 1), b = work_of("b", 1, 1, 1);
  a.activation = 2_B;
  b.activation = 3_B;
  b.activation_for_weights = 1_B;
  return model_of({a, b}, {{0, 1, 7, 1}});
}
}  // namespace

TEST_CASE("a split backward keeps for its weight part what that needs and no more") {
  const planning_graph m = kept();
  const plan p = plan_of(mode::training, 2, 2, {stage_of({0, 1}, {{0, 2}})});
  CHECK(peak(explicitly(p, {"F0.0 B0.0 F0.1 B0.1 W0.0 W0.1"}), m) == near(10 + 6));
  CHECK(peak(explicitly(p, {"F0.0 B0.0 W0.0 F0.1 B0.1 W0.1"}), m) == near(10));
  CHECK(peak(explicitly(p, {"F0.0 B0.0 F0.1 B0.1"}), m) == near(10));  // no split, so W keeps nothing
  CHECK(peak(explicitly(p, {"F0.0 F0.1 B0.0 B0.1"}), m) == near(20));
}

TEST_CASE("with a memory model that says nothing of the weight part a split backward keeps everything for it") {
  struct undivided {
    [[nodiscard]] bytes state(const layer&, const workload&) const { return {}; }
    [[nodiscard]] bytes activations(const layer& l, const workload&) const { return l.activation; }
    [[nodiscard]] bytes cache(const layer&, const workload&) const { return {}; }
  };
  const plan p = explicitly(plan_of(mode::training, 2, 2, {stage_of({0, 1}, {{0, 2}})}), {"F0.0 B0.0 F0.1 B0.1 W0.0 W0.1"});
  CHECK(judge(p, kept(), wired(1), roofline{}, judge_models{undivided{}}).evaluation.devices[0].peak_memory.value() == near(20));
}

TEST_CASE("a stage that recomputes keeps its inputs, runs its forward again, and holds activations in its backward alone") {
  // Stages on d1 and d0: 2 + 3 bytes of activations and 7 of inputs per sample; F 1, B 1, W 1 per layer.
  const planning_graph m = kept();
  plan p = plan_of(mode::training, 2, 3, {stage_of({0}, {{1, 2}}), stage_of({1}, {{0, 2}})});
  const double before = judged(p, m, wired(2, 0, 1e9)).evaluation.devices[0].busy.value();
  CHECK(peak(p, m, 2) == near(3 * 2 * 3));  // GPipe: three microbatches of two samples
  p.stages[1].recompute = recomputation::stage;
  const judgement j = judged(p, m, wired(2, 0, 1e9));
  CHECK(j.evaluation.devices[0].peak_memory.value() == near(3 * 2 * 7 + 2 * 3));
  CHECK(j.evaluation.devices[0].busy.value() == near(before + 3 * 2));
  CHECK(when(j, phase::backward_input, 1, 0).end_s - when(j, phase::backward_input, 1, 0).start_s == near(2 * 3));
  CHECK(j.evaluation.devices[1].peak_memory.value() == near(3 * 2 * 2));  // unchanged on the other stage
  // With a split backward, B releases 3 - 1 bytes of each sample, and W the last byte and the inputs.
  plan split = explicitly(p, {"F1.0 B1.0 F1.1 B1.1 F1.2 B1.2 W1.0 W1.1 W1.2", "F0.0 F0.1 F0.2 B0.0 B0.1 B0.2"});
  CHECK(peak(split, m, 2) == near(2 * (7 + 1) + 2 * (7 + 1) + 2 * (7 + 3)));
  // A source has no inputs.
  p.stages[0].recompute = recomputation::stage;
  CHECK(judged(p, m, wired(2)).evaluation.devices[1].peak_memory.value() == near(2 * 2));
}

namespace {

/// Returns a chain of one layer outside, blocks of 2 and 1 layers, and one layer outside, with 7 bytes between neighbours.
planning_graph in_blocks() {
  layer_spec a = work_of("a", 1, 1, 1), b = work_of("b", 1, 1, 1), c = work_of("c", 1, 1, 1), d = work_of("d", 1, 1, 1),
             e = work_of("e", 1, 1, 1);
  a.activation = 2_B;
  b.activation = 3_B;
  c.activation = 10_B;
  d.activation = 20_B;
  e.activation = 4_B;
  b.activation_for_weights = 1_B;
  b.block = c.block = 0;
  d.block = 1;
  return model_of({a, b, c, d, e}, {{0, 1, 7, 1}, {1, 2, 7, 1}, {2, 3, 7, 1}, {3, 4, 7, 1}});
}

}  // namespace

TEST_CASE("a stage that recomputes by blocks keeps layers outside, what leaves a block, and one block at a time") {
  const planning_graph m = in_blocks();
  plan p = plan_of(mode::training, 2, 3, {stage_of({0, 1, 2, 3, 4}, {{0, 2}})});
  CHECK(peak(p, m) == near(3 * 2 * (2 + 3 + 10 + 20 + 4)));
  const double before = judged(p, m, wired(1)).evaluation.devices[0].busy.value();
  p.stages[0].recompute = recomputation::blocks;
  const judgement j = judged(p, m, wired(1));
  // Kept: a and e, and the two tensors that the blocks give to others; a's is among what a keeps.
  CHECK(j.evaluation.devices[0].peak_memory.value() == near(3 * 2 * (2 + 4 + 7 + 7) + 2 * 20));
  CHECK(j.evaluation.devices[0].busy.value() == near(before + 3 * 2 * 3));  // F of b, c and d
  CHECK(when(j, phase::backward_input, 0, 0).end_s - when(j, phase::backward_input, 0, 0).start_s == near(2 * (5 + 5 + 3)));
  // For a separate W all blocks stay: B releases b's 3 - 1.
  const plan split = explicitly(p, {"F0.0 B0.0 F0.1 B0.1 W0.0 W0.1 F0.2 B0.2 W0.2"});
  CHECK(peak(split, m) == near(2 * (39 - 2 + 14) + 2 * (39 + 14)));
  // A block that reads from another stage keeps that tensor; what a stage gives away is not its own.
  plan two = plan_of(mode::training, 2, 1, {stage_of({0, 1}, {{1, 2}}), stage_of({2, 3}, {{0, 2}}), stage_of({4}, {{1, 2}})});
  two.stages[1].recompute = recomputation::blocks;
  CHECK(peak(explicitly(two, {"F1.0 B1.0", "F0.0 F2.0 B2.0 B0.0"}), m, 2) == near(2 * (7 + 7) + 2 * 20));
}

TEST_CASE("blocks that keep nothing are not run again") {
  layer_spec a = work_of("a", 1, 1, 1), b = work_of("b", 1, 1, 1);
  a.block = b.block = 3;
  const planning_graph m = model_of({a, b}, {{0, 1, 7, 1}});
  plan p = plan_of(mode::training, 2, 1, {stage_of({0, 1}, {{0, 2}})});
  const evaluation before = judged(p, m, wired(1)).evaluation;
  p.stages[0].recompute = recomputation::blocks;
  CHECK(judged(p, m, wired(1)).evaluation == before);
}

TEST_CASE("temporary memory is the largest sum of what a layer needs for its tokens and whatever these are") {
  layer_spec a = work_of("a", 1), b = work_of("b", 1);
  a.workspace = 3_B;
  b.workspace = 1_B;
  b.scratch = 7_B;
  const planning_graph m = model_of({a, b}, {{0, 1, 1, 1}});
  for (const auto& [samples, most] : {std::pair(1, 8), std::pair(3, 10), std::pair(4, 12)}) {
    const plan p = plan_of(mode::training, samples, 2, {stage_of({0, 1}, {{0, samples}})});
    CHECK(peak(p, m) == near(most));
  }
  CHECK(peak(plan_of(mode::inference, 4, 1, {stage_of({0, 1}, {{0, 4}})}), m) == near(0));
}

TEST_CASE("gradients of a tensor that layers of a device share wait for each other, and become a sum") {
  layer_spec a = work_of("a", 1), b = work_of("b", 1), c = work_of("c", 1);
  a.weight_group = b.weight_group = c.weight_group = "tied";
  a.scratch = 10_B;
  b.scratch = 12_B;
  c.scratch = 11_B;
  const planning_graph m = model_of({a, b, c}, {{0, 1, 1, 1}, {1, 2, 1, 1}});
  CHECK(peak(plan_of(mode::training, 1, 1, {stage_of({0, 1, 2}, {{0, 1}})}), m) == near(4 * 10));
  plan p = plan_of(mode::training, 1, 1, {stage_of({0, 1}, {{0, 1}}), stage_of({2}, {{1, 1}})});
  CHECK(peak(p, m, 2) == near(3 * 10));
  p.stages[0].devices[0].device = device_id(1);
  p.stages[1].devices[0].device = device_id(0);
  CHECK(peak(p, m, 2) == near(11));
  // In stages of one device.
  p = explicitly(plan_of(mode::training, 1, 1, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}}), stage_of({2}, {{0, 1}})}),
                 {"F0.0 F2.0 B2.0 B0.0", "F1.0 B1.0"});
  CHECK(peak(p, m, 2) == near(3 * 10));
}

TEST_CASE("outside training a layer holds its forward_activation") {
  layer_spec a = work_of("a", 1, 1, 1);
  a.activation = 9_B;
  a.forward_activation = 2_B;
  const planning_graph m = model_of({a}, {});
  CHECK(peak(plan_of(mode::training, 3, 1, {stage_of({0}, {{0, 3}})}), m) == near(27));
  CHECK(peak(plan_of(mode::inference, 3, 1, {stage_of({0}, {{0, 3}})}), m) == near(6));
}

TEST_CASE("inputs that come from the same device are kept like others, and one tensor that several layers read once") {
  layer_spec a = work_of("a", 1), b = work_of("b", 1), c = work_of("c", 1);
  const planning_graph m = model_of({a, b, c}, {{0, 1, 5, 1}, {0, 2, 4, 1}, {1, 2, 3, 1}});
  plan p = plan_of(mode::training, 1, 1, {stage_of({0}, {{0, 1}}), stage_of({1, 2}, {{0, 1}})});
  p.stages[1].recompute = recomputation::stage;
  CHECK(peak(explicitly(p, {"F0.0 F1.0 B1.0 B0.0"}), m) == near(5));
}

TEST_CASE("devices that share out their optimizer's state hold a part each, with the same transfers and shorter steps") {
  struct stepping {
    [[nodiscard]] seconds time(const work& w, const device& d) const { return roofline{}.time(w, d); }
    [[nodiscard]] seconds optimizer_step(const layer& l, const device&) const { return seconds(l.weight.value()); }
  };
  layer_spec a = work_of("a", 1, 1, 1), frozen = work_of("frozen", 1, 1);
  a.weight = 6_B;
  frozen.weight = 5_B;
  frozen.trainable = false;
  const planning_graph m = model_of({a, frozen}, {{0, 1, 1, 1}});
  plan p = plan_of(mode::training, 3, 1, {stage_of({0, 1}, {{0, 1}, {1, 1}, {2, 1}})});
  p.workload.optimizer_factor = 2;
  const judgement whole = judge(p, m, wired(3), stepping{});
  CHECK(whole.evaluation.devices[2].peak_memory.value() == near(6 * 4 + 5));
  p.stages[0].shard = sharding::state;
  const judgement shared = judge(p, m, wired(3), stepping{});
  CHECK(shared.evaluation.devices[2].peak_memory.value() == near(6 * 2 + 6 * 2 / 3.0 + 5));
  CHECK(shared.graph.transfers.size() == whole.graph.transfers.size());
  CHECK(shared.graph.volume() == whole.graph.volume());
  CHECK(whole.evaluation.latency.value() - shared.evaluation.latency.value() == near(6 - 6 / 3.0));
  // On one device, sharding changes nothing.
  plan alone = plan_of(mode::training, 3, 1, {stage_of({0, 1}, {{0, 3}})});
  const evaluation before = judge(alone, m, wired(1), stepping{}).evaluation;
  alone.stages[0].shard = sharding::state;
  CHECK(judge(alone, m, wired(1), stepping{}).evaluation == before);
}

TEST_CASE("optimizers with a name hold their bytes of each parameter, and devices share out exactly the optimizer's or the gradients'") {
  layer_spec a = work_of("a", 1, 1, 1), frozen = work_of("frozen", 1, 1);
  a.weight = 2000_B;  // 1000 parameters
  frozen.weight = 500_B;
  frozen.trainable = false;
  planning_graph_builder b("m", 2);
  b.add_layer(a);
  b.add_layer(frozen);
  b.add_edge(layer_id(0), layer_id(1), 1_B, 1_B);
  const planning_graph m = std::move(b).build();
  struct row {
    optimizer named;
    double whole, gradients, state;
  };
  for (const row& r : {row{optimizer::adamw, 8000, 2000, 4000}, row{optimizer::adamw_amp, 18000, 4000, 8000},
                       row{optimizer::adamw_8bit, 4000 + 2031.25, 2000, 2031.25}, row{optimizer::sgd, 4000, 2000, 0},
                       row{optimizer::sgd_amp, 10000, 4000, 0}, row{optimizer::sgd_momentum, 6000, 2000, 2000},
                       row{optimizer::sgd_momentum_amp, 14000, 4000, 4000}}) {
    INFO(to_string(r.named));
    plan p = plan_of(mode::training, 2, 1, {stage_of({0, 1}, {{0, 1}, {1, 1}})});
    p.workload.optimizer = r.named;
    CHECK(peak(p, m, 2) == near(r.whole + 500));
    p.stages[0].shard = sharding::state;
    CHECK(peak(p, m, 2) == near(r.whole - r.state / 2 + 500));
    p.stages[0].shard = sharding::zero2;  // and room for the gradients of a whole unit
    CHECK(peak(p, m, 2) == near(r.whole - r.state / 2 - r.gradients / 2 + 500 + r.gradients));
    p.stages[0].shard = sharding::fsdp;  // and two whole units of weights
    CHECK(peak(p, m, 2) == near((r.whole + 500) / 2 + 2 * 2000));
  }
}

TEST_CASE("a memory model that cannot tell the optimizer's part refuses to share it out") {
  struct undivided {
    [[nodiscard]] bytes state(const layer& l, const workload&) const { return 4 * l.weight; }
    [[nodiscard]] bytes activations(const layer&, const workload&) const { return {}; }
    [[nodiscard]] bytes cache(const layer&, const workload&) const { return {}; }
  };
  plan p = plan_of(mode::training, 2, 1, {stage_of({0, 1, 2}, {{0, 1}, {1, 1}})});
  const planning_graph m = tied();
  CHECK_NOTHROW(judge(p, m, wired(2), roofline{}, judge_models{undivided{}}));
  p.stages[0].shard = sharding::state;
  CHECK_THROWS_MATCHES(judge(p, m, wired(2), roofline{}, judge_models{undivided{}}), invalid_input,
                       Catch::Message("shard_state: the memory model does not tell the optimizer's part of the state; expected a member "
                                      "hetplan::bytes optimizer_state(const hetplan::layer&, const hetplan::workload&) const"));
  p.stages[0].devices = {{device_id(0), 2}};
  CHECK_NOTHROW(judge(p, m, wired(2), roofline{}, judge_models{undivided{}}));
}

TEST_CASE("a framework shares out the optimizer's state in the precision that it keeps it in") {
  layer l;
  l.weight = 10_B;
  const framework_memory m{.fragmentation = 0.5, .optimizer_precision = 2};
  CHECK(checked_state(m, l, {.optimizer_factor = 2}, 1) == near(1.5 * (10 + 10 + 40)));
  CHECK(checked_state(m, l, {.optimizer_factor = 2}, 4) == near(1.5 * (10 + 10 + 10)));
}

TEST_CASE("estimates of memory and busy time are the judge's, with memory savers as without") {
  layer_spec a = work_of("a", 1, 2, 3), b = work_of("b", 2, 1, 1);
  a.weight = 12_B;
  b.weight = 20_B;
  a.activation = 5_B;
  b.activation = 9_B;
  b.block = 0;
  const planning_graph m = model_of({a, b}, {{0, 1, 3, 1}});
  for (const int saved : {0, 1, 2, 3, 4}) {
    for (const schedule_kind kind : {schedule_kind::gpipe, schedule_kind::one_f_one_b}) {
      plan p = plan_of(mode::training, 2, 4, {stage_of({0}, {{0, 1}, {1, 1}}), stage_of({1}, {{2, 2}})}, kind);
      for (stage& s : p.stages) {
        s.recompute = saved == 4 ? recomputation::blocks : whole_stage_if(saved % 2 == 1);
        s.shard = saved >= 2 ? sharding::state : sharding::none;
      }
      const evaluation judge_says = judged(p, m, wired(3)).evaluation, estimated = estimate(p, m, wired(3), roofline{});
      for (std::size_t d = 0; d < 3; ++d) {
        INFO("savers " << saved << ", " << to_string(kind) << ", device " << d);
        CHECK(estimated.devices[d].peak_memory.value() == near(judge_says.devices[d].peak_memory.value()));
        CHECK(estimated.devices[d].busy.value() == near(judge_says.devices[d].busy.value()));
      }
    }
  }
}

TEST_CASE("a stage that recomputes has the warm-up that its inputs leave room for") {
  layer_spec a = work_of("a", 1, 1), b = work_of("b", 1, 1), c = work_of("c", 1, 1);
  b.activation = 40_B;
  const planning_graph m = model_of({a, b, c}, {{0, 1, 10, 1}, {1, 2, 1, 1}});
  plan p = plan_of(mode::training, 1, 8, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}}), stage_of({2}, {{2, 1}})},
                   schedule_kind::one_f_one_b);
  std::vector<device> devices = workers(3);
  devices[1].memory = 60_B;
  const cluster tight("tight", devices, mesh{bytes_per_second(1)});
  fit_warmup(p, m, tight, plain_memory{});
  CHECK(p.schedule.warmup == std::vector<int>{5, 1, 1});
  p.stages[1].recompute = recomputation::stage;
  fit_warmup(p, m, tight, plain_memory{});
  CHECK(p.schedule.warmup == std::vector<int>{5, 2, 1});
  CHECK(judged(p, m, tight).evaluation.devices[1].peak_memory == 60_B);
}

TEST_CASE("no plan that shares out its optimizer's state beats its bound") {
  // The fast device can hold 7 of 10 bytes: without sharding, the slow one must do three tenths of the work.
  layer_spec l = work_of("a", 1, 1, 1);
  l.weight = 1_B;
  const planning_graph m = model_of({l}, {});
  const std::vector<device> devices = [] {
    std::vector<device> all{worker("fast", 9), worker("slow", 1)};
    for (device& d : all) d.memory = 7_B;
    return all;
  }();
  const cluster c("uneven", devices, mesh{1_GB_per_s});
  plan p = plan_of(mode::training, 10, 1, {stage_of({0}, {{0, 9}, {1, 1}})});
  p.workload.optimizer_factor = 8;
  p.stages[0].shard = sharding::state;
  const evaluation e = evaluate(p, m, c, roofline{}, {}, glpk_lp{}).evaluation;
  CHECK_FALSE(find_broken_limit(e, c));
  CHECK(e.gap >= -1e-9);
  CHECK(e.bound.value() == Approx(3));
}

TEST_CASE("a plan's description says what saves memory") {
  const planning_graph m = kept();
  plan p = plan_of(mode::training, 2, 1, {stage_of({0, 1}, {{0, 1}, {1, 1}})});
  p.stages[0].recompute = recomputation::stage;
  p.stages[0].shard = sharding::state;
  CHECK(describe(p, m, wired(2)).find("on d0 (1) d1 (1), recomputes, optimizer state in 2 parts\n") != std::string::npos);
  p.stages[0].recompute = recomputation::blocks;
  CHECK(describe(p, m, wired(2)).find("on d0 (1) d1 (1), recomputes blocks, optimizer state in 2 parts\n") != std::string::npos);
}

TEST_CASE("a weight part that needs more than all activations is refused") {
  struct greedy {
    [[nodiscard]] bytes state(const layer&, const workload&) const { return {}; }
    [[nodiscard]] bytes activations(const layer&, const workload&) const { return 1_B; }
    [[nodiscard]] bytes activations_for_weights(const layer&, const workload&) const { return 2_B; }
    [[nodiscard]] bytes cache(const layer&, const workload&) const { return {}; }
  };
  const plan p = explicitly(plan_of(mode::training, 1, 1, {stage_of({0, 1}, {{0, 1}})}), {"F0.0 B0.0 W0.0"});
  CHECK_THROWS_MATCHES(judge(p, kept(), wired(1), roofline{}, judge_models{greedy{}}), invalid_model,
                       Catch::Message("memory model: activations_for_weights(layer 0 \"a\") = 2 B; expected at most its activations, 1 B"));
}

}  // namespace test_memory_by_hand
