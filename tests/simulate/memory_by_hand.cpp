// SPDX-License-Identifier: BSL-1.0
// What a device holds, worked by hand: tensors that its stages share, and activations from phase to phase.

#include <hetplan/simulate/evaluate.hpp>

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

/// Embedding and head share 4 bytes; the block between them has 10 of its own.
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
  CHECK(trained.evaluation.devices[0].peak_memory.value() == near(4 * 4));  // weights, gradients, two of the optimizer
  CHECK(trained.evaluation.devices[1].peak_memory.value() == near(4 * 10));
  p = explicitly(plan_of(mode::inference, 1, 1, apart), {"F0.0 F2.0", "F1.0"});
  CHECK(peak(p, m, 2) == near(4));
  p.workload.mode = mode::generation;
  p.workload.context = 8;
  CHECK(peak(p, m, 2) == near(4 + 8 + 8));  // each stage has a cache of its own
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
    [[nodiscard]] bytes state(const layer& l, const workload&) const { return bytes(l.name == "embedding" ? 5 : l.name == "head" ? 7 : 100); }
    [[nodiscard]] bytes activations(const layer&, const workload&) const { return {}; }
    [[nodiscard]] bytes cache(const layer&, const workload&) const { return {}; }
  };
  const planning_graph m = tied();
  for (const bool head_first : {false, true}) {
    plan p = plan_of(mode::training, 1, 1, {stage_of({0}, {{0, 1}}), stage_of({1}, {{0, 1}}), stage_of({2}, {{0, 1}})});
    p = explicitly(p, {"F0.0 F1.0 F2.0 B2.0 B1.0 B0.0"});
    if (head_first) {  // the order of the list is no order of time
      std::swap(p.stages[0], p.stages[2]);
      p.schedule.orders = {order_of("F2.0 F1.0 F0.0 B0.0 B1.0 B2.0")};
    }
    const judgement j = judge(p, m, wired(1), roofline{}, judge_models<by_layer>{});
    CHECK(j.evaluation.devices[0].peak_memory.value() == near(100 + 7));
  }
}

namespace {
/// 2 + 3 bytes of activations a sample, of which a split-off W needs 2 + 1.
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
  CHECK(peak(explicitly(p, {"F0.0 B0.0 F0.1 B0.1"}), m) == near(10));  // nothing is split: nothing to keep
  CHECK(peak(explicitly(p, {"F0.0 F0.1 B0.0 B0.1"}), m) == near(20));
}

TEST_CASE("with a memory model that says nothing of the weight part a split backward keeps everything for it") {
  struct undivided {
    [[nodiscard]] bytes state(const layer&, const workload&) const { return {}; }
    [[nodiscard]] bytes activations(const layer& l, const workload&) const { return l.activation; }
    [[nodiscard]] bytes cache(const layer&, const workload&) const { return {}; }
  };
  const plan p = explicitly(plan_of(mode::training, 2, 2, {stage_of({0, 1}, {{0, 2}})}), {"F0.0 B0.0 F0.1 B0.1 W0.0 W0.1"});
  CHECK(judge(p, kept(), wired(1), roofline{}, judge_models<undivided>{}).evaluation.devices[0].peak_memory.value() == near(20));
}

TEST_CASE("a weight part that needs more than all activations is refused") {
  struct greedy {
    [[nodiscard]] bytes state(const layer&, const workload&) const { return {}; }
    [[nodiscard]] bytes activations(const layer&, const workload&) const { return 1_B; }
    [[nodiscard]] bytes activations_for_weights(const layer&, const workload&) const { return 2_B; }
    [[nodiscard]] bytes cache(const layer&, const workload&) const { return {}; }
  };
  const plan p = explicitly(plan_of(mode::training, 1, 1, {stage_of({0, 1}, {{0, 1}})}), {"F0.0 B0.0 W0.0"});
  CHECK_THROWS_MATCHES(judge(p, kept(), wired(1), roofline{}, judge_models<greedy>{}), invalid_model,
                       Catch::Message("memory model: activations_for_weights(layer 0 \"a\") = 2 B; expected at most its activations, 1 B"));
}

}  // namespace test_memory_by_hand
