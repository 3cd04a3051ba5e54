// SPDX-License-Identifier: BSL-1.0
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/cost/cost_model.hpp>
#include <hetplan/graph/planning_graph.hpp>

#include "support/message_of.hpp"

using namespace hetplan;

namespace {

/// Layer "conv" with 2 GFLOP forward, 4 and 6 backward, 100 MB of weights, 10 MB of traffic per sample, and an output of 3 MB.
planning_graph model() {
  planning_graph_builder b("m");
  b.add_layer({.name = "conv",
               .forward_flops = 2_GFLOP,
               .backward_input_flops = 4_GFLOP,
               .backward_weight_flops = 6_GFLOP,
               .weight = 100_MB,
               .traffic = 10_MB});
  b.add_layer({.name = "pool", .forward_flops = 0_FLOP, .traffic = 20_MB});
  b.add_edge("conv", "pool", 3_MB, 1_MB);
  return std::move(b).build();
}
device gpu() {
  return {.id = device_id(1),
          .name = "gpu",
          .kind = "rtx",
          .memory = 8_GB,
          .compute = 1_TFLOP_per_s,
          .memory_bandwidth = 10_GB_per_s,
          .launch = 1_ms};
}
double ms(const planning_graph& g, const char* layer, phase p, double batch, const device& d, int g_degree = 1) {
  return 1e3 * roofline{}.time({.layer = g[g.find(layer)], .phase = p, .batch = batch, .tensor_parallel = g_degree}, d).value();
}

layer measured(std::vector<double> batch, std::vector<double> forward, std::vector<double> backward, double input_flops = 0,
               double weight_flops = 0) {
  layer l;
  l.name = "norm";
  l.backward_input_flops = flops(input_flops);
  l.backward_weight_flops = flops(weight_flops);
  l.has_flops = false;
  l.profiles = {{"rtx", std::move(batch), std::move(forward), std::move(backward)}};
  return l;
}
double profiled_s(const layer& l, double batch, phase p = phase::forward) {
  return profiled{}.time({.layer = l, .phase = p, .batch = batch}, gpu()).value();
}

template <class Model>
std::string refusal(const Model& m, const work& w, const device& d) {
  return test::message_of([&] { return m.time(w, d); });
}

struct fixed_time {
  double s;
  [[nodiscard]] seconds time(const work&, const device&) const { return seconds(s); }
};
struct si_time {
  [[nodiscard]] double time(const work& w, const device&) const { return 0.25 * w.batch; }
};

}  // namespace

TEST_CASE("the roofline takes the longer of computing and moving, and a launch on top") {
  const planning_graph g = model();
  // conv, 1 sample: 2 GFLOP take 2 ms, 110 MB take 11 ms.
  CHECK(ms(g, "conv", phase::forward, 1, gpu()) == Approx(11 + 1));
  // 20 samples: 40 ms against (100 + 200) MB, 30 ms.
  CHECK(ms(g, "conv", phase::forward, 20, gpu()) == Approx(40 + 1));
  CHECK(ms(g, "conv", phase::backward_input, 20, gpu()) == Approx(80 + 1));
  CHECK(ms(g, "conv", phase::backward_weight, 20, gpu()) == Approx(120 + 1));
  device fast_memory = gpu();
  fast_memory.memory_bandwidth = bytes_per_second(std::numeric_limits<double>::infinity());
  CHECK(ms(g, "conv", phase::forward, 1, fast_memory) == Approx(2 + 1));
}

TEST_CASE("at half_batch a device reaches half of its peak rate") {
  const planning_graph g = model();
  device d = gpu();
  d.half_batch = 4;
  d.memory_bandwidth = bytes_per_second(std::numeric_limits<double>::infinity());
  CHECK(ms(g, "conv", phase::forward, 4, d) == Approx(2 * 4 / 0.5 + 1));
  CHECK(ms(g, "conv", phase::forward, 12, d) == Approx(2 * 12 / 0.75 + 1));
}

TEST_CASE("a backward part without FLOP takes no time, a forward always counts") {
  const planning_graph g = model();
  CHECK(ms(g, "pool", phase::forward, 1, gpu()) == Approx(2 + 1));  // traffic and launch
  CHECK(ms(g, "pool", phase::backward_input, 1, gpu()) == 0);
  CHECK(ms(g, "pool", phase::backward_weight, 1, gpu()) == 0);
}

TEST_CASE("the backward of a layer's inputs moves its own traffic, also without FLOP; that of its weights moves the forward's") {
  planning_graph_builder b("m");
  b.add_layer({.name = "norm", .forward_flops = 0_FLOP, .weight = 10_MB, .traffic = 20_MB, .backward_traffic = 60_MB});
  b.add_layer({.name = "sum", .forward_flops = 0_FLOP, .traffic = 20_MB, .backward_traffic = 0_B});
  b.add_layer({.name = "fc", .forward_flops = 1_MFLOP, .weight = 10_MB, .traffic = 20_MB, .backward_traffic = 50_MB});
  const planning_graph g = std::move(b).build();
  CHECK(ms(g, "norm", phase::forward, 2, gpu()) == Approx(1 + 2 * 2 + 1));  // weights, traffic of two samples, launch
  CHECK(ms(g, "norm", phase::backward_input, 2, gpu()) == Approx(1 + 2 * 6 + 1));
  CHECK(ms(g, "norm", phase::backward_weight, 2, gpu()) == 0);
  CHECK(ms(g, "sum", phase::backward_input, 2, gpu()) == 0);
  CHECK(ms(g, "fc", phase::backward_input, 2, gpu()) == Approx(1 + 2 * 5 + 1));
  CHECK(ms(g, "fc", phase::backward_weight, 2, gpu()) == Approx(1 + 2 * 2 + 1));
  CHECK(ms(g, "norm", phase::backward_input, 2, gpu(), 2) == Approx((1 + 2 * 6) / 2.0 + 1));  // gathers nothing
}

TEST_CASE("tensor parallelism divides work and traffic and gathers the largest output in F and B") {
  const planning_graph g = model();
  device d = gpu();
  d.accelerators = 4;
  d.interconnect = 1_GB_per_s;
  // 20 samples on 4: 40/4 ms; 2 * 3/4 * 3 MB * 20 over 1 GB/s = 90 ms.
  CHECK(ms(g, "conv", phase::forward, 20, d, 4) == Approx(10 + 1 + 90));
  CHECK(ms(g, "conv", phase::backward_input, 20, d, 4) == Approx(20 + 1 + 90));  // the forward's bytes, not the gradient's
  CHECK(ms(g, "conv", phase::backward_weight, 20, d, 4) == Approx(30 + 1));
  CHECK(ms(g, "conv", phase::forward, 1, d, 2) == Approx(5.5 + 1 + 3));  // (100 + 10) MB / 2; 2 * 1/2 * 3 MB
  CHECK(ms(g, "pool", phase::forward, 1, d, 2) == Approx(1 + 1));        // a phase without FLOP gathers nothing
  CHECK(ms(g, "conv", phase::forward, 20, d, 1) == ms(g, "conv", phase::forward, 20, gpu()));
}

TEST_CASE("the roofline does not read the context") {
  const planning_graph g = model();
  CHECK(roofline{}.time({.layer = g.layers()[0], .context = 4096}, gpu()) == roofline{}.time({.layer = g.layers()[0]}, gpu()));
}

TEST_CASE("the roofline says what it does not know: FLOP, compute, interconnect") {
  const planning_graph g = model();
  const layer unknown = measured({1}, {1}, {});
  CHECK(refusal(roofline{}, {.layer = unknown}, {.name = "pi", .kind = "pi4", .compute = 1_TFLOP_per_s}) ==
        R"(roofline: layer "norm" has neither forward_flops nor a profile for device "pi" of kind "pi4")");
  CHECK(refusal(roofline{}, {.layer = g.layers()[0]}, {.name = "pi", .kind = "pi4"}) ==
        R"(roofline: device "pi" has no compute and layer "conv" no profile for its kind "pi4")");
  CHECK(refusal(roofline{}, {.layer = g.layers()[0], .tensor_parallel = 2}, gpu()) ==
        R"(roofline: tensor parallelism on device "gpu" needs its interconnect)");
}

TEST_CASE("a profile is linear between its batches, constant below and straight on above") {
  const layer l = measured({2, 4, 8}, {1, 2, 6}, {});
  CHECK(profiled_s(l, 1) == 1);
  CHECK(profiled_s(l, 2) == 1);
  CHECK(profiled_s(l, 3) == Approx(1.5));
  CHECK(profiled_s(l, 4) == Approx(2));
  CHECK(profiled_s(l, 5) == Approx(3));
  CHECK(profiled_s(l, 8) == Approx(6));
  CHECK(profiled_s(l, 10) == Approx(8));  // the last slope, 1 s per sample
  const layer one = measured({4}, {3}, {});
  for (const double batch : {1.0, 4.0, 400.0}) CHECK(profiled_s(one, batch) == 3);
}

TEST_CASE("B and W share the measured backward in proportion to their FLOP, half each where both are 0") {
  const layer l = measured({1, 3}, {1, 1}, {4, 8}, 1, 3);
  CHECK(profiled_s(l, 2, phase::backward_input) == Approx(1.5));
  CHECK(profiled_s(l, 2, phase::backward_weight) == Approx(4.5));
  const layer plain = measured({1}, {1}, {4});
  CHECK(profiled_s(plain, 1, phase::backward_input) == 2);
  CHECK(profiled_s(plain, 1, phase::backward_weight) == 2);
  const layer frozen = measured({1}, {1}, {4}, 5, 0);
  CHECK(profiled_s(frozen, 1, phase::backward_input) == 4);
  CHECK(profiled_s(frozen, 1, phase::backward_weight) == 0);
}

TEST_CASE("what was not measured is said: another kind, no backward, several accelerators") {
  const layer l = measured({1}, {1}, {});
  device other = gpu();
  other.kind = "pi4";
  CHECK(refusal(profiled{}, {.layer = l}, other) == R"(profiled: layer "norm" on device "gpu" of kind "pi4" has no profile for that kind)");
  for (const phase p : {phase::backward_input, phase::backward_weight}) {
    CHECK(refusal(profiled{}, {.layer = l, .phase = p}, gpu()) ==
          R"(profiled: layer "norm" on device "gpu" of kind "rtx" has no measured backward, which training needs)");
  }
  CHECK(refusal(profiled{}, {.layer = l, .tensor_parallel = 2}, gpu()) ==
        R"(profiled: layer "norm" on device "gpu" of kind "rtx" is measured for one accelerator; expected tensor_parallel 1)");
}

TEST_CASE("a layer measured on the device's kind uses the measurement, any other the roofline") {
  const planning_graph g = model();
  layer both = g.layers()[0];
  both.profiles = {{"rtx", {1}, {7}, {}}};
  device other = gpu();
  other.kind = "pi4";
  CHECK(profiled_or_roofline{}.time({.layer = both}, gpu()) == 7_s);
  CHECK(profiled_or_roofline{}.time({.layer = both}, other) == roofline{}.time({.layer = both}, other));
  CHECK(refusal(profiled_or_roofline{}, {.layer = both, .tensor_parallel = 2}, gpu()) ==
        R"(profiled: layer "conv" on device "gpu" of kind "rtx" is measured for one accelerator; expected tensor_parallel 1)");
  const layer unknown = measured({1}, {1}, {});
  CHECK(refusal(profiled_or_roofline{}, {.layer = unknown}, other) ==
        R"(roofline: layer "norm" has neither forward_flops nor a profile for device "gpu" of kind "pi4")");
}

TEST_CASE("any_cost_model answers what the model it holds answers, and so do its copies") {
  const planning_graph g = model();
  const any_cost_model holds = roofline{};
  const any_cost_model copy = holds;
  for (const layer& l : g.layers()) {
    for (const phase p : {phase::forward, phase::backward_input, phase::backward_weight}) {
      const work w{.layer = l, .phase = p, .batch = 3};
      CHECK(holds.time(w, gpu()) == roofline{}.time(w, gpu()));
      CHECK(copy.time(w, gpu()) == roofline{}.time(w, gpu()));
    }
  }
  any_cost_model other = fixed_time{2};
  const work w{.layer = g.layers()[0]};
  CHECK(other.time(w, gpu()) == 2_s);
  other = any_cost_model(fixed_time{3});
  CHECK(other.time(w, gpu()) == 3_s);
}

TEST_CASE("any_cost_model holds a model that can only be moved") {
  struct owner {
    std::unique_ptr<double> s;
    [[nodiscard]] seconds time(const work&, const device&) const { return seconds(*s); }
  };
  const any_cost_model m = owner{std::make_unique<double>(5)};
  const planning_graph g = model();
  CHECK(m.time({.layer = g.layers()[0]}, gpu()) == 5_s);
}

TEST_CASE("a profile whose last slope falls has no time for a batch that is too large, rather than none") {
  const layer l = measured({1, 2}, {2, 1}, {3, 2});
  CHECK(profiled_s(l, 3) == 0);
  CHECK(profiled_s(l, 4, phase::backward_input) == 0);
  CHECK_THROWS_MATCHES(profiled_s(l, 10), unknown_time,
                       Catch::Message(R"(profiled: layer "norm", kind "rtx": the last slope of forward falls and gives -7 s at batch 10; )"
                                      "expected >= 0, so measure a larger batch"));
  CHECK_THROWS_WITH(profiled_s(l, 5, phase::backward_weight),
                    Catch::Contains("the last slope of backward falls and gives -1 s at batch 5"));
}

TEST_CASE("a profile tells the last batch that a falling slope leaves time for, however it rounds, and adapters pass it on") {
  const auto largest = [](const auto& m, const layer& l, phase what) { return m.largest_batch(work{.layer = l, .phase = what}, gpu()); };
  const layer falls = measured({1, 2}, {2, 1}, {3, 2});
  const double any = std::numeric_limits<double>::infinity();
  const std::vector<double> half(8, 0.5);
  CHECK(largest(profiled{}, falls, phase::forward) == 3);
  CHECK(largest(profiled_or_roofline{}, falls, phase::backward_weight) == 4);
  CHECK(largest(any_cost_model(profiled{}), falls, phase::forward) == 3);
  CHECK(largest(slow_down(profiled{}, half), falls, phase::forward) == 3);
  CHECK(largest(slow_down(any_cost_model(profiled{}), half), falls, phase::forward) == 3);
  CHECK(largest(any_cost_model(roofline{}), falls, phase::forward) == any);
  CHECK(largest(profiled{}, measured({1, 2}, {1, 1}, {1, 2}), phase::forward) == any);
  CHECK(largest(profiled{}, measured({2}, {1}, {1}), phase::backward_input) == any);
  CHECK(largest(profiled{}, measured({1, 2}, {1, 1 - 1e-15}, {1, 2}), phase::forward) == any);
  for (int n = 1; n < 400; ++n) {
    const double fall = 0.001 * n, seconds_left = 0.7 / n;
    const layer l = measured({1, 1 + 0.1 * n}, {seconds_left + fall, seconds_left}, {1, 1});
    const double last = largest(profiled{}, l, phase::forward);
    INFO(n);
    CHECK(last == std::floor(last));
    CHECK(profiled_s(l, last) >= 0);
    CHECK_THROWS_AS(profiled_s(l, last + 1), unknown_time);
  }
}

TEST_CASE("assume_si takes a model's plain double for seconds, and only a double") {
  static_assert(!cost_model<si_time> && cost_model<assume_si<si_time>>);
  static_assert(!cost_model<assume_si<fixed_time>>, "seconds need no adapter");
  const planning_graph g = model();
  CHECK(assume_si{si_time{}}.time({.layer = g.layers()[0], .batch = 8}, gpu()) == 2_s);
}

TEST_CASE("an answer that is no time is refused with layer, phase, batch and device") {
  const planning_graph g = model();
  const work w{.layer = g.layers()[1], .phase = phase::backward_weight, .batch = 2.5};
  CHECK(checked_time_s(fixed_time{0}, w, gpu()) == 0);
  CHECK(checked_time_s(fixed_time{0.5}, w, gpu()) == 0.5);
  for (const double bad : {-0.5, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_THROWS_MATCHES(checked_time_s(fixed_time{bad}, w, gpu()), invalid_model,
                         Catch::Message(R"(cost model: time(layer 1 "pool", backward_weight, batch 2.5, device 1 "gpu") = )" +
                                        to_text(bad) + " s; expected finite >= 0"));
  }
}

namespace {
struct steps {
  [[nodiscard]] seconds time(const work&, const device&) const { return 1_s; }
  [[nodiscard]] seconds optimizer_step(const layer& l, const device&) const { return l.weight / 1_MB_per_s; }
};
struct si_steps {
  [[nodiscard]] double time(const work&, const device&) const { return 1; }
  [[nodiscard]] double optimizer_step(const layer& l, const device&) const { return 1e-6 * l.weight.value(); }
};
struct bad_step {
  double s;
  [[nodiscard]] seconds time(const work&, const device&) const { return 1_s; }
  [[nodiscard]] seconds optimizer_step(const layer&, const device&) const { return seconds(s); }
};
}  // namespace

TEST_CASE("a run that samples few steps of many leaves contexts out") {
  planning_graph_builder b("m", {.tokens_per_sample = 1});
  b.add_layer({.name = "a", .forward_flops = flops(1)});
  const planning_graph m = std::move(b).build();
  for (const int all : {5, 16, 17, 64, 1000}) {
    for (const int prompt : {0, 3}) {
      for (int some = 1; some <= all; some = some < 20 ? some + 1 : some * 2) {
        const workload w{.mode = mode::generation, .tokens = some, .prompt = prompt, .sampled_from = all};
        const token_passes passes(w, m), whole({.mode = mode::generation, .tokens = all, .prompt = prompt}, m);
        INFO(some << " of " << all << " behind " << prompt);
        double sum = 0;
        for (std::size_t k = 0; k < passes.distinct().size(); ++k) {
          CHECK(passes.count_of(k) > 0);
          sum += passes.count_of(k);
          const auto is_same = [&](const token_pass& p) { return p == passes.distinct()[k]; };
          CHECK(std::any_of(whole.distinct().begin(), whole.distinct().end(), is_same));  // no context of its own
        }
        CHECK(sum == passes.size());
        for (int i = 1; i < passes.size(); ++i)
          CHECK((passes[i].context >= passes[i - 1].context && passes.which(i) < passes.distinct().size()));
      }
    }
  }
}

TEST_CASE("the optimizer's step is an ability that a cost model may have") {
  static_assert(!times_optimizer_step<roofline> && !names_optimizer_step<roofline>);
  static_assert(check_cost_model<steps>() && times_optimizer_step<steps>);
  static_assert(check_cost_model<assume_si<si_steps>>() && times_optimizer_step<assume_si<si_steps>>);
  static_assert(check_cost_model<assume_si<si_time>>() && !times_optimizer_step<assume_si<si_time>>);
  const planning_graph g = model();
  const layer& conv = g.layers()[0];
  CHECK(any_cost_model(steps{}).optimizer_step(conv, gpu()) == 100_s);
  CHECK(any_cost_model(roofline{}).optimizer_step(conv, gpu()) == 0_s);
  CHECK(assume_si{si_steps{}}.optimizer_step(conv, gpu()).value() == Approx(100));
  CHECK(checked_optimizer_step_s(steps{}, conv, gpu()) == 100);
  for (const double bad : {-1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_THROWS_MATCHES(
        checked_optimizer_step_s(bad_step{bad}, conv, gpu()), invalid_model,
        Catch::Message(R"(cost model: optimizer_step(layer 0 "conv", device 1 "gpu") = )" + to_text(bad) + " s; expected finite >= 0"));
  }
}

TEST_CASE("phases and modes have the names that messages use") {
  CHECK(to_string(phase::forward) == "forward");
  CHECK(to_string(phase::backward_input) == "backward_input");
  CHECK(to_string(phase::backward_weight) == "backward_weight");
  CHECK(to_string(phase::optimizer_step) == "optimizer_step");
  CHECK(std::string{letter(phase::forward), letter(phase::backward_input), letter(phase::backward_weight), letter(phase::optimizer_step)} ==
        "FBWU");
  CHECK(to_string(mode::training) == "training");
  CHECK(to_string(mode::inference) == "inference");
  CHECK(to_string(mode::generation) == "generation");
}
