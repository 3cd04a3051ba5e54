// SPDX-License-Identifier: BSL-1.0
// Plans by hand. Devices do 1 FLOP/s and wires carry 1 B/s unless stated, so FLOP and bytes are seconds.

#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/tasks/task_graph.hpp>

#include <catch2/catch.hpp>

#include "support/by_hand.hpp"

namespace test_pipelines_by_hand {

using namespace hetplan;
using namespace hetplan::test;

TEST_CASE("one stage works off its microbatches one after the other") {
  // F 2, B 1, W 3 per sample, 2 samples per microbatch, launch 1/4 per phase: F 4.25, B + W 2.25 + 6.25 = 8.5.
  const planning_graph m = model_of({work_of("a", 2, 1, 3)}, {});
  device d = worker("d0");
  d.launch = seconds(0.25);
  const cluster c("alone", d);
  const judgement j = judged(plan_of(mode::training, 2, 3, {stage_of({0}, {{0, 2}})}), m, c);
  CHECK(j.evaluation.latency.value() == near(3 * (4.25 + 8.5)));
  CHECK(j.evaluation.devices[0].busy.value() == near(38.25));
  CHECK(j.trace.bubble_ratio(0) == near(0));
  CHECK(j.evaluation.schedule_gap == near(0));
  check_interval(when(j, phase::forward, 0, 2), 8.5, 12.75);  // GPipe: all forwards first
  check_interval(when(j, phase::backward_input, 0, 1), 21.25, 29.75);
}

namespace {
// F 1, B 2 on both stages; 1 byte forward, 2 backward; latency 1/2: a forward transfer takes 1.5 s, a backward one 2.5 s.
struct two_stages {
  planning_graph model = model_of({work_of("a", 1, 2), work_of("b", 1, 2)}, {{0, 1, 1, 2}});
  cluster net = wired(2, 0.5);
  plan p = plan_of(mode::training, 1, 3, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})});

  two_stages() {
    planning_graph_builder b("kept");
    for (layer_spec l : {work_of("a", 1, 2), work_of("b", 1, 2)}) {
      l.activation = 5_B;
      b.add_layer(l);
    }
    b.add_edge(layer_id(0), layer_id(1), 1_B, 2_B);
    model = std::move(b).build();
  }
};
}  // namespace

TEST_CASE("two stages and one link under GPipe") {
  two_stages x;
  const judgement j = judged(x.p, x.model, x.net);
  // d0: F at 0, 1, 2. Transfers 1-2.5, 2-3.5, 3-4.5. d1: F 2.5-3.5-4.5-5.5, B 5.5-7.5-9.5-11.5.
  // Backward transfers 7.5-10, 9.5-12, 11.5-14. d0: B 10-12-14-16.
  CHECK(j.evaluation.latency.value() == near(16));
  check_interval(sent(j, transfer_kind::forward, 0, 1, 1), 2, 3.5);
  check_interval(when(j, phase::forward, 1, 2), 4.5, 5.5);
  check_interval(sent(j, transfer_kind::backward, 1, 0, 2), 11.5, 14);
  check_interval(when(j, phase::backward_input, 0, 0), 10, 12);
  CHECK(j.trace.bubble_ratio(0) == near(1 - 9.0 / 16));
  CHECK(j.evaluation.devices[1].peak_memory.value() == near(15));  // three microbatches of 5 bytes
  CHECK(j.evaluation.schedule_bound.value() == near(16));
}

TEST_CASE("two stages and one link under 1F1B with the default warm-up") {
  two_stages x;
  x.p.schedule.kind = schedule_kind::one_f_one_b;  // K = 3, 1
  const judgement j = judged(x.p, x.model, x.net);
  // d1: F 2.5-3.5, B -5.5, F -6.5, B -8.5, F -9.5, B -11.5. Back: 5.5-8, 8.5-11, 11.5-14. d0: B 8-10, 11-13, 14-16.
  CHECK(j.evaluation.latency.value() == near(16));
  check_interval(when(j, phase::forward, 1, 1), 5.5, 6.5);
  check_interval(when(j, phase::backward_input, 0, 0), 8, 10);
  check_interval(when(j, phase::backward_input, 0, 1), 11, 13);
  CHECK(j.evaluation.devices[0].peak_memory.value() == near(15));
  CHECK(j.evaluation.devices[1].peak_memory.value() == near(5));  // one in flight instead of GPipe's three
}

TEST_CASE("with warm-up 1 everywhere a pipeline runs one microbatch at a time") {
  two_stages x;
  x.p.schedule.kind = schedule_kind::one_f_one_b;
  x.p.schedule.warmup = {1, 1};
  const judgement j = judged(x.p, x.model, x.net);
  // 0-1, 1-2.5, 2.5-3.5-5.5, 5.5-8, 8-10: 10 s per microbatch.
  CHECK(j.evaluation.latency.value() == near(30));
  CHECK(j.evaluation.devices[0].peak_memory.value() == near(5));
  CHECK(j.evaluation.schedule_gap == near(0));
}

TEST_CASE("a warm-up between the extremes") {
  two_stages x;
  x.p.schedule.kind = schedule_kind::one_f_one_b;
  x.p.schedule.warmup = {2, 1};
  const judgement j = judged(x.p, x.model, x.net);
  // d0: F 0-2. d1: F 2.5-3.5, B -5.5, F -6.5, B -8.5. Back 5.5-8, 8.5-11. d0: B 8-10, F 10-11, B 11-13.
  // Third: 11-12.5, d1 F 12.5-13.5, B -15.5, back -18, d0 B 18-20.
  CHECK(j.evaluation.latency.value() == near(20));
  check_interval(when(j, phase::forward, 0, 2), 10, 11);
  CHECK(j.evaluation.devices[0].peak_memory.value() == near(10));
}

TEST_CASE("two transfers share a medium fairly and the rest goes to who is left") {
  // a on d0 feeds b (1 byte) and c (2 bytes) at 1: half each until 3, then 1 byte alone until 4.
  const planning_graph m = model_of({work_of("a", 1), work_of("b", 1), work_of("c", 1)}, {{0, 1, 1}, {0, 2, 2}});
  const plan p = plan_of(mode::inference, 1, 1, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}}), stage_of({2}, {{2, 1}})});
  const judgement j = judged(p, m, wireless(3));
  check_interval(sent(j, transfer_kind::forward, 0, 1), 1, 3);
  check_interval(sent(j, transfer_kind::forward, 0, 2), 1, 4);
  CHECK(j.evaluation.latency.value() == near(5));
  CHECK(j.evaluation.resource_bytes[0].value() == near(3));
  // On separate wires, c runs 3-4.
  CHECK(judged(p, m, wired(3)).evaluation.latency.value() == near(4));
}

TEST_CASE("a tensor that two layers of a stage read crosses once, with its larger size") {
  const planning_graph m = model_of({work_of("a", 1), work_of("b", 1), work_of("c", 1)}, {{0, 1, 1}, {0, 2, 2}});
  const judgement j = judged(plan_of(mode::inference, 1, 1, {stage_of({0}, {{0, 1}}), stage_of({1, 2}, {{1, 1}})}), m, wired(2));
  CHECK(j.graph.transfers.size() == 1);
  check_interval(sent(j, transfer_kind::forward, 0, 1), 1, 3);
  CHECK(j.evaluation.latency.value() == near(5));
  // Tensors of two producers add up: b and c both feed d.
  const planning_graph n = model_of({work_of("b", 1), work_of("c", 1), work_of("d", 1)}, {{0, 2, 1}, {1, 2, 2}});
  const judgement k = judged(plan_of(mode::inference, 1, 1, {stage_of({0, 1}, {{0, 1}}), stage_of({2}, {{1, 1}})}), n, wired(2));
  check_interval(sent(k, transfer_kind::forward, 0, 1), 2, 5);
}

TEST_CASE("devices with uneven shares exchange the samples that overlap") {
  // 4 samples: d0 has 0-2, d1 has 3; then d2 has 0-1, d3 has 2-3. One byte a sample.
  // d0 ends at 3, d1 at 1. d1->d3 1-2, d0->d3 (sample 2) 3-4, d0->d2 (samples 0, 1) 3-5. d3 4-6, d2 5-7.
  const planning_graph m = model_of({work_of("a", 1), work_of("b", 1)}, {{0, 1, 1}});
  const plan p = plan_of(mode::inference, 4, 1, {stage_of({0}, {{0, 3}, {1, 1}}), stage_of({1}, {{2, 2}, {3, 2}})});
  const judgement j = judged(p, m, wired(4));
  CHECK(j.graph.transfers.size() == 3);
  check_interval(sent(j, transfer_kind::forward, 1, 3), 1, 2);
  check_interval(sent(j, transfer_kind::forward, 0, 3), 3, 4);
  check_interval(sent(j, transfer_kind::forward, 0, 2), 3, 5);
  check_interval(when(j, phase::forward, 1, 0, 3), 4, 6);
  check_interval(when(j, phase::forward, 1, 0, 2), 5, 7);
  CHECK(j.evaluation.latency.value() == near(7));
}

TEST_CASE("a stage starts on each device as soon as that device's own inputs are there") {
  // The mirror in training: gradients return along the same routes.
  const planning_graph m = model_of({work_of("a", 1, 1), work_of("b", 1, 1)}, {{0, 1, 1, 1}});
  const plan p = plan_of(mode::training, 4, 1, {stage_of({0}, {{0, 3}, {1, 1}}), stage_of({1}, {{2, 2}, {3, 2}})});
  const judgement j = judged(p, m, wired(4));
  // d3: F 4-6, B 6-8; d2: F 5-7, B 7-9. d3->d1 8-9, d3->d0 8-9, d2->d0 9-11. d1 B 9-10, d0 B 11-14.
  check_interval(when(j, phase::backward_input, 0, 0, 1), 9, 10);
  check_interval(when(j, phase::backward_input, 0, 0, 0), 11, 14);
  CHECK(j.evaluation.latency.value() == near(14));
}

TEST_CASE("a stage of two and of three devices reduces its gradient in a ring") {
  // F 1, B 1 per sample; W 6 bytes; each device has one sample and ends at 2.
  layer_spec l = work_of("a", 1, 1);
  l.weight = 6_B;
  const planning_graph m = model_of({l}, {});
  const plan two = plan_of(mode::training, 2, 1, {stage_of({0}, {{0, 1}, {1, 1}})});
  const plan three = plan_of(mode::training, 3, 1, {stage_of({0}, {{0, 1}, {1, 1}, {2, 1}})});
  // 2 (n-1)/n * 6 bytes on each wire of the ring: 6 and 8. The latency of 1/2 counts once.
  CHECK(judged(two, m, wired(2, 0.5)).evaluation.latency.value() == near(2 + 0.5 + 6));
  const judgement j = judged(three, m, wired(3, 0.5));
  CHECK(j.evaluation.latency.value() == near(2 + 0.5 + 8));
  check_interval(sent(j, transfer_kind::sync, 2, 0), 2, 10.5);
  CHECK(j.graph.transfers.size() == 3);
  // On a shared medium, all bytes add up: 12 and 24.
  CHECK(judged(two, m, wireless(2)).evaluation.latency.value() == near(14));
  CHECK(judged(three, m, wireless(3)).evaluation.latency.value() == near(26));
}

TEST_CASE("a ring starts when the last device of the stage is done, and frozen weights need none") {
  layer_spec l = work_of("a", 1, 1);
  l.weight = 6_B;
  const plan p = plan_of(mode::training, 3, 1, {stage_of({0}, {{0, 1}, {1, 2}})});
  const judgement j = judged(p, model_of({l}, {}), wired(2, 0.5));
  check_interval(sent(j, transfer_kind::sync, 0, 1), 4, 10.5);  // d0 ends at 2, d1 at 4
  l.trainable = false;
  const judgement frozen = judged(p, model_of({l}, {}), wired(2, 0.5));
  CHECK(frozen.graph.transfers.empty());
  CHECK(frozen.evaluation.latency.value() == near(4));
  CHECK(frozen.evaluation.devices[0].peak_memory.value() == near(6));
}

TEST_CASE("stages that hold one tensor reduce it among themselves when both are done") {
  layer_spec in = work_of("embedding", 1, 1), out = work_of("head", 1, 2);
  for (layer_spec* l : {&in, &out}) {
    l->weight = 4_B;
    l->weight_group = "tied";
  }
  const planning_graph m = model_of({in, out}, {{0, 1, 1, 1}});
  const plan p = plan_of(mode::training, 1, 1, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})});
  const judgement j = judged(p, m, wired(2));
  // F 0-1, transfer 1-2, F 2-3, B 3-5, transfer 5-6, B 6-7. Then 2 (1/2) 4 = 4 bytes in each direction.
  check_interval(sent(j, transfer_kind::sync, 0, 1), 7, 11);
  check_interval(sent(j, transfer_kind::sync, 1, 0), 7, 11);
  CHECK(j.evaluation.latency.value() == near(11));
  // A single stage reduces nothing and holds the tensor once: 4 + 4 (1 + 2).
  const judgement one = judged(plan_of(mode::training, 1, 1, {stage_of({0, 1}, {{0, 1}})}), m, wired(1));
  CHECK(one.graph.transfers.empty());
  CHECK(one.evaluation.latency.value() == near(5));
  CHECK(one.evaluation.devices[0].peak_memory.value() == near(16));
}

TEST_CASE("two pipelines reduce their common layers in a ring over their first devices") {
  layer_spec l = work_of("a", 1, 1);
  l.weight = 4_B;
  const planning_graph m = model_of({l}, {});
  // Pipeline 0: d0 and d1, two samples each; pipeline 1: d2, two samples.
  plan p = plan_of(mode::training, 2, 3, {stage_of({0}, {{0, 1}, {1, 1}}, 2, 0), stage_of({0}, {{2, 2}}, 2, 1)});
  p.pipelines = {4, 2};
  const judgement j = judged(p, m, wired(3, 0.5));
  // d0, d1: two microbatches of F 1, B 1 until 4, a ring of 4 bytes 4-8.5. d2: F 2, B 2 until 4. Ring of d0 and d2: 4 bytes 8.5-13.
  check_interval(sent(j, transfer_kind::sync, 0, 1), 4, 8.5);
  check_interval(sent(j, transfer_kind::sync, 0, 2), 8.5, 13);
  check_interval(sent(j, transfer_kind::sync, 2, 0), 8.5, 13);
  CHECK(j.graph.transfers.size() == 4);
  CHECK(j.evaluation.latency.value() == near(13));
}

TEST_CASE("two pipelines reduce through a parameter server") {
  layer_spec l = work_of("a", 1, 1);
  l.weight = 4_B;
  const planning_graph m = model_of({l}, {});
  plan p = plan_of(mode::training, 1, 3, {stage_of({0}, {{0, 1}}, 1, 0), stage_of({0}, {{1, 1}}, 1, 1)});
  p.pipelines = {1, 2};
  p.parameter_server = device_id(2);
  const auto done = [&](const judgement& j) { return j.evaluation.latency.value(); };
  // d0 ends at 2, d1 at 4. Both send 4 bytes 4-8; the server sends 4 bytes to each 8-12.
  const judgement j = judged(p, m, wired(3));
  CHECK(done(j) == near(12));
  check_interval(sent(j, transfer_kind::sync, 0, 2), 4, 8);
  check_interval(sent(j, transfer_kind::sync, 2, 1), 8, 12);
  CHECK(done(judged(p, m, wireless(3))) == near(4 + 8 + 8));
  // The server counts as used: it idles for the whole run, but holds and computes nothing.
  CHECK(j.evaluation.devices[2].used);
  CHECK(j.evaluation.devices[2].busy.value() == 0);
  CHECK(j.evaluation.devices[2].peak_memory.value() == 0);
  // A server that is a member needs no transfer for its own copy: d1 -> d0 4-8, d0 -> d1 8-12.
  p.parameter_server = device_id(0);
  const judgement member = judged(p, m, wireless(3));
  CHECK(member.graph.transfers.size() == 2);
  CHECK(done(member) == near(12));
  CHECK_FALSE(member.evaluation.devices[2].used);
}

TEST_CASE("each set of stages that share tensors reduces the sum of what exactly these share") {
  layer_spec a = work_of("a", 1, 1), b = work_of("b", 1, 1), c = work_of("c", 1, 1);
  a.weight = 4_B;
  b.weight = 2_B;
  c.weight = 3_B;
  const planning_graph m = model_of({a, b, c}, {{0, 1, 0}, {1, 2, 0}});
  // Pipeline 0: a and b on d0, c on d1. Pipeline 1: all on d2. Reductions: a and b (6 bytes) of stages 0, 2; c (3 bytes) of 1, 2.
  plan p =
      plan_of(mode::training, 1, 2, {stage_of({0, 1}, {{0, 1}}, 1, 0), stage_of({2}, {{1, 1}}, 1, 0), stage_of({0, 1, 2}, {{2, 1}}, 1, 1)});
  p.pipelines = {1, 1};
  const judgement j = judged(p, m, wired(3));
  // d0: F 0-2, B 2-4 (no gradient returns). d1: F 2-3, B 3-4. d2: 0-6.
  check_interval(sent(j, transfer_kind::sync, 0, 2), 6, 12);
  check_interval(sent(j, transfer_kind::sync, 2, 1), 6, 9);
  CHECK(j.graph.transfers.size() == 1 + 4);
  CHECK(j.evaluation.latency.value() == near(12));
}

TEST_CASE("a split backward lets the stage before go on, and the weight part fills a bubble") {
  // F, B, W 1 each; 1 byte in each direction; two microbatches.
  const planning_graph m = model_of({work_of("a", 1, 1, 1), work_of("b", 1, 1, 1)}, {{0, 1, 1, 1}});
  plan p = plan_of(mode::training, 1, 2, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})}, schedule_kind::explicit_orders);
  // d1: F0 2-3, B0 3-4, F1 4-5, B1 5-6, W 6-8. Transfers 4-5, 6-7. d0: B0 5-6, B1 7-8, W 8-10.
  p.schedule.orders = {order_of("F0.0 F0.1 B0.0 B0.1 W0.0 W0.1"), order_of("F1.0 B1.0 F1.1 B1.1 W1.0 W1.1")};
  const judgement late = judged(p, m, wired(2));
  CHECK(late.evaluation.latency.value() == near(10));
  check_interval(when(late, phase::backward_weight, 1, 0), 6, 7);
  // d0: B0 5-6, W0 6-7, B1 7-8, W1 8-9.
  p.schedule.orders[0] = order_of("F0.0 F0.1 B0.0 W0.0 B0.1 W0.1");
  CHECK(judged(p, m, wired(2)).evaluation.latency.value() == near(9));
  // Unsplit on d1: B + W 3-5, 6-8, transfers 5-6, 8-9; split on d0: B0 6-7, W0 7-8, B1 9-10, W1 10-11.
  p.schedule.orders[1] = order_of("F1.0 B1.0 F1.1 B1.1");
  const judgement mixed = judged(p, m, wired(2));
  CHECK(mixed.evaluation.latency.value() == near(11));
  check_interval(when(mixed, phase::backward_input, 1, 1), 6, 8);
}

TEST_CASE("a reduction waits for the last weight part, by the device's order") {
  layer_spec l = work_of("a", 1, 1, 1);
  l.weight = 2_B;
  plan p = plan_of(mode::training, 2, 2, {stage_of({0}, {{0, 1}, {1, 1}})}, schedule_kind::explicit_orders);
  p.schedule.orders = {order_of("F0.0 F0.1 B0.1 B0.0 W0.1 W0.0"), order_of("F0.0 B0.0 F0.1 B0.1")};
  const judgement j = judged(p, model_of({l}, {}), wired(2));
  check_interval(sent(j, transfer_kind::sync, 0, 1), 6, 8);
  CHECK(j.evaluation.latency.value() == near(8));
}

TEST_CASE("a device may hold several stages; neighbours on one device exchange nothing") {
  // a and c on d0, b on d1. F 1, 2, 1; 1 byte on every edge.
  const planning_graph m = model_of({work_of("a", 1), work_of("b", 2), work_of("c", 1)}, {{0, 1, 1}, {1, 2, 1}});
  plan p = plan_of(mode::inference, 1, 2, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}}), stage_of({2}, {{0, 1}})},
                   schedule_kind::explicit_orders);
  p.schedule.orders = {order_of("F0.0 F0.1 F2.0 F2.1"), order_of("F1.0 F1.1")};
  // a 0-2; transfers 1-2, 2-3; b 2-4-6; transfers 4-5, 6-7; c 5-6, 7-8.
  const judgement j = judged(p, m, wired(2));
  CHECK(j.evaluation.latency.value() == near(8));
  check_interval(when(j, phase::forward, 2, 0), 5, 6);
  // A worse order is kept: c of the first microbatch before a of the second.
  p.schedule.orders[0] = order_of("F0.0 F2.0 F0.1 F2.1");
  CHECK(judged(p, m, wired(2)).evaluation.latency.value() == near(12));
  p.stages[1].devices[0].device = device_id(0);
  p.schedule.orders = {order_of("F0.0 F1.0 F0.1 F1.1 F2.0 F2.1")};
  const judgement one = judged(p, m, wired(2));
  CHECK(one.graph.transfers.empty());
  CHECK(one.evaluation.latency.value() == near(8));
  CHECK_FALSE(one.evaluation.devices[1].used);
}

TEST_CASE("stages may cut the batch into microbatches of their own size") {
  const planning_graph m = model_of({work_of("a", 1), work_of("b", 1)}, {{0, 1, 1}});
  // 2 + 2 samples, then 4 at once: a 0-2-4; transfers of 2 bytes 2-4, 4-6; b 6-10.
  const plan gathers = plan_of(mode::inference, 2, 2, {stage_of({0}, {{0, 2}}), stage_of({1}, {{1, 4}}, 4)});
  const judgement j = judged(gathers, m, wired(2));
  CHECK(j.evaluation.latency.value() == near(10));
  check_interval(sent(j, transfer_kind::forward, 0, 1, 1), 4, 6);
  // 4 at once, then 2 + 2: a 0-4; two transfers of 2 bytes share the wire 4-8; b 8-10-12.
  const plan scatters = plan_of(mode::inference, 2, 2, {stage_of({0}, {{0, 4}}, 4), stage_of({1}, {{1, 2}})});
  const judgement k = judged(scatters, m, wired(2));
  CHECK(k.graph.transfers.size() == 2);
  check_interval(when(k, phase::forward, 1, 0), 8, 10);
  CHECK(k.evaluation.latency.value() == near(12));
}

TEST_CASE("without gradient there is no backward transfer and nothing to wait for") {
  const planning_graph m = model_of({work_of("frozen", 1, 2), work_of("b", 1, 2)}, {{0, 1, 1, 0}});
  const judgement j = judged(plan_of(mode::training, 1, 1, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})}), m, wired(2));
  // d0: F 0-1, B at once 1-3. Transfer 1-2. d1: F 2-3, B 3-5.
  CHECK(j.graph.transfers.size() == 1);
  check_interval(when(j, phase::backward_input, 0, 0), 1, 3);
  CHECK(j.evaluation.latency.value() == near(5));
}

TEST_CASE("a transfer of no bytes waits its latency, and a route without resources only that") {
  const planning_graph empty = model_of({work_of("a", 1, 1), work_of("b", 1, 1)}, {{0, 1, 0, 3}});
  const plan p = plan_of(mode::training, 1, 1, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})});
  const judgement j = judged(p, empty, wired(2, 0.5));
  check_interval(sent(j, transfer_kind::forward, 0, 1), 1, 1.5);  // 0 bytes
  CHECK(j.evaluation.latency.value() == near(1 + 0.5 + 2 + 3.5 + 1));
  const cluster beam("beam", workers(2), route_table{{}, {{"*", "*", {seconds(0.5), {}}}}});
  const judgement k = judged(p, empty, beam);
  check_interval(sent(k, transfer_kind::backward, 1, 0), 3.5, 4);  // 3 bytes
  CHECK(k.evaluation.latency.value() == near(5));
  CHECK(k.evaluation.schedule_bound.value() == near(5));
  // Without latency, an empty transfer ends as it starts.
  const cluster none("none", workers(2), route_table{{}, {{"*", "*", {}}}});
  CHECK(judged(p, empty, none).evaluation.latency.value() == near(4));
}

TEST_CASE("generation goes round for every token and reports the time between tokens") {
  // F 1 on both stages, two groups of one sequence, three tokens; 4 B/s, latency 1/2. Forward of 1 byte: 0.75 s. Token of 4 bytes: 1.5 s.
  layer_spec a = work_of("a", 1), b = work_of("b", 1);
  a.kv_bytes_per_token = 3_B;
  a.weight = 7_B;
  a.traffic = 0_B;
  const planning_graph m = model_of({a, b}, {{0, 1, 1}});
  plan p = plan_of(mode::generation, 1, 2, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})});
  p.workload.tokens = 3;
  p.workload.context = 7;
  const judgement j = judged(p, m, wired(2, 0.5, 4));
  // Group 0: a 0-1, transfer -1.75, b -2.75, token -4.25; again from 4.25 and 8.5. Group 1 is one second behind.
  check_interval(when(j, phase::forward, 1, 0), 1.75, 2.75);
  check_interval(sent(j, transfer_kind::token, 1, 0, 0), 2.75, 4.25);
  check_interval(when(j, phase::forward, 0, 0, -1, 1), 4.25, 5.25);
  check_interval(when(j, phase::forward, 0, 1, -1, 2), 9.5, 10.5);
  CHECK(j.evaluation.latency.value() == near(12.25));
  CHECK(j.evaluation.time_between_tokens->value() == near(4.25));
  CHECK(j.evaluation.response().value() == near(4.25));
  // Tokens return after the first and second step of both groups.
  CHECK(j.graph.transfers.size() == 3 * 2 + 2 * 2);
  // The cache holds two sequences of seven and three tokens for the whole run.
  CHECK(j.evaluation.devices[0].peak_memory.value() == near(7 + 2 * 10 * 3));
  CHECK(j.evaluation.devices[1].peak_memory.value() == near(0));
}

TEST_CASE("the time between tokens is that of the worst group") {
  // One stage on two devices: d0 takes 1 s per token, d1 2 s; no device sends to itself.
  const planning_graph m = model_of({work_of("a", 1)}, {});
  const cluster c("uneven", {worker("d0", 1), worker("d1", 0.5)}, mesh{bytes_per_second(1)});
  plan p = plan_of(mode::generation, 2, 1, {stage_of({0}, {{0, 1}, {1, 1}})});
  p.workload.tokens = 4;
  const judgement j = judged(p, m, c);
  CHECK(j.graph.transfers.empty());
  CHECK(j.evaluation.latency.value() == near(8));
  CHECK(j.evaluation.time_between_tokens->value() == near(2));
}

TEST_CASE("tensor parallelism divides the work and pays for gathering in F and B") {
  // F 8, B 4, W 2 FLOP per sample, 6 bytes out, 3 B/s between accelerators; g = 2: gather 2 (1/2) 6 / 3 = 2 s.
  const planning_graph m = model_of({work_of("a", 8, 4, 2), work_of("b", 1, 1)}, {{0, 1, 6, 6}});
  std::vector<device> devices = workers(2);
  devices[0].accelerators = 4;
  devices[0].interconnect = bytes_per_second(3);
  const cluster c("server", devices, mesh{bytes_per_second(6)});
  plan p = plan_of(mode::training, 1, 1, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})});
  p.stages[0].devices[0].tensor_parallel = 2;
  const judgement j = judged(p, m, c);
  // F 4 + 2 = 6; transfer 6-7; b 7-9; transfer 9-10; B 2 + 2, W 1.
  check_interval(when(j, phase::forward, 0, 0), 0, 6);
  CHECK(j.evaluation.latency.value() == near(15));
  // g = 4: gather 2 (3/4) 6 / 3 = 3 s; F 2 + 3, B 1 + 3, W 0.5.
  p.stages[0].devices[0].tensor_parallel = 4;
  CHECK(judged(p, m, c).evaluation.latency.value() == near(5 + 1 + 2 + 1 + 4 + 0.5));
  CHECK(judged(p, m, c).evaluation.devices[0].peak_memory.value() == near(0));
}

TEST_CASE("peak memory follows the order: warm-up, release after the last backward part, zero-length tasks count") {
  layer_spec l = work_of("a", 1, 1, 1);
  l.weight = 10_B;
  l.activation = 2_B;
  const planning_graph m = model_of({l}, {});
  const auto peak = [&](plan p, const std::string& order = "") {
    if (!order.empty()) {
      p.schedule.kind = schedule_kind::explicit_orders;
      p.schedule.orders = {order_of(order)};
    }
    return judged(p, m, wired(1)).evaluation.devices[0].peak_memory.value();
  };
  plan p = plan_of(mode::training, 3, 4, {stage_of({0}, {{0, 3}})});
  p.workload.optimizer_factor = 1.5;
  const double held = 10 + 10 * (1 + 1.5);
  CHECK(peak(p) == near(held + 4 * 6));  // GPipe: four microbatches of three samples
  p.schedule.kind = schedule_kind::one_f_one_b;
  CHECK(peak(p) == near(held + 6));
  p.schedule.warmup = {3};
  CHECK(peak(p) == near(held + 3 * 6));
  p.schedule.warmup = {9};
  CHECK(peak(p) == near(held + 4 * 6));
  p.schedule.warmup = {};
  p.microbatches = 2;
  CHECK(peak(p, "F0.0 B0.0 F0.1 B0.1") == near(held + 6));
  CHECK(peak(p, "F0.0 B0.0 F0.1 B0.1 W0.0 W0.1") == near(held + 12));  // kept until the weight part
  CHECK(peak(p, "F0.0 B0.0 W0.0 F0.1 B0.1 W0.1") == near(held + 6));
  p.workload.mode = mode::inference;
  CHECK(peak(p) == near(10 + 6));  // one microbatch at a time, weights only
  // Tasks of zero duration keep the order, too: both microbatches are held at time 0.
  layer_spec quick = work_of("quick", 0);
  quick.activation = 2_B;
  const plan q = plan_of(mode::training, 1, 2, {stage_of({0}, {{0, 1}})});
  CHECK(judged(q, model_of({quick}, {}), wired(1)).evaluation.devices[0].peak_memory.value() == near(4));
}

TEST_CASE("energy is idle power for the whole run, active power while busy, and joules per byte") {
  const planning_graph m = model_of({work_of("a", 1), work_of("b", 3)}, {{0, 1, 2}});
  std::vector<device> devices = workers(3);
  devices[0].power = {3_W, 10_W, joules_per_byte(0.5), joules_per_byte(0.25)};
  devices[1].power = {1_W, 2_W, joules_per_byte(8), joules_per_byte(0.125)};
  devices[2].power = {5_W, 5_W, {}, {}};
  const cluster c("powered", devices, mesh{bytes_per_second(1)});
  const judgement j = judged(plan_of(mode::inference, 2, 1, {stage_of({0}, {{0, 2}}), stage_of({1}, {{1, 2}})}), m, c);
  // d0 busy 0-2, 4 bytes 2-6, d1 busy 6-12.
  CHECK(j.evaluation.latency.value() == near(12));
  CHECK(j.evaluation.devices[0].energy.value() == near(3 * 12 + 7 * 2 + 0.5 * 4));
  CHECK(j.evaluation.devices[1].energy.value() == near(1 * 12 + 1 * 6 + 0.125 * 4));
  CHECK(j.evaluation.devices[2].energy.value() == 0);  // not part of the plan
  CHECK(j.evaluation.energy().value() == near(52 + 18.5));
}

}  // namespace test_pipelines_by_hand
