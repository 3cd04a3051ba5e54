// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/cost/cost_model.hpp>
#include <hetplan/estimate/bounds.hpp>
#include <hetplan/solve/glpk.hpp>
#include "plan/support.hpp"

namespace test_bounds {

using namespace plan_tests;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const workload inference{.mode = mode::inference};

/// Returns layers without edges, of these weights in bytes.
planning_graph weights(const std::vector<double>& bytes_of, const std::vector<std::string>& groups = {}) {
  planning_graph_builder b("m");
  for (std::size_t i = 0; i < bytes_of.size(); ++i) {
    b.add_layer({.name = std::to_string(i),
                 .forward_flops = 1_FLOP,
                 .weight = bytes(bytes_of[i]),
                 .weight_group = groups.empty() ? "" : groups[i]});
  }
  return std::move(b).build();
}

/// Returns layer minima from times[layer][device] per sample.
layer_minima minima(const std::vector<std::vector<double>>& times) {
  layer_minima m;
  m.devices = times.front().size();
  for (const auto& row : times) {
    m.per_sample_s.insert(m.per_sample_s.end(), row.begin(), row.end());
    m.forward_s.push_back(0);
    m.forward_backward_s.push_back(0);
  }
  return m;
}

template <class Lp>
double bound(const std::vector<std::vector<double>>& times, const std::vector<double>& held, std::vector<double> capacity, const Lp& lp,
             double batch = 1) {
  return compute_bound(weights(held), minima(times), plain_memory{}, inference, batch, capacity, lp).value();
}

/// Returns the fractional optimum by a plain LP, with a column for every layer and device.
double direct_lp(const std::vector<std::vector<double>>& times, const std::vector<double>& held, const std::vector<double>& capacity) {
  lp_problem p;
  const int makespan = p.add_column(1);
  std::vector<lp_problem::row> load(capacity.size()), memory(capacity.size());
  for (std::size_t d = 0; d < capacity.size(); ++d) {
    load[d] = {.terms = {{makespan, -1}}, .upper = 0};
    memory[d].upper = capacity[d];
  }
  for (std::size_t l = 0; l < times.size(); ++l) {
    lp_problem::row whole{.terms = {}, .lower = 1, .upper = 1};
    for (std::size_t d = 0; d < capacity.size(); ++d) {
      const int x = p.add_column(0);
      whole.terms.emplace_back(x, 1);
      load[d].terms.emplace_back(x, times[l][d]);
      memory[d].terms.emplace_back(x, held[l]);
    }
    p.rows.push_back(whole);
  }
  p.rows.insert(p.rows.end(), load.begin(), load.end());
  p.rows.insert(p.rows.end(), memory.begin(), memory.end());
  const lp_solution s = glpk_lp{}.solve(p);
  return s.status == lp_status::optimal ? s.objective : inf;
}

/// Returns the fractional optimum for two devices: device 0 takes layers in order of its advantage until both end together.
double two_device_optimum(std::vector<std::vector<double>> times) {
  std::sort(times.begin(), times.end(), [](const auto& a, const auto& b) { return a[0] * b[1] < b[0] * a[1]; });
  double there = 0, here = 0;
  for (const auto& t : times) there += t[1];
  for (const auto& t : times) {
    if (here + t[0] <= there - t[1]) {
      here += t[0];
      there -= t[1];
      continue;
    }
    const double part = (there - here) / (t[0] + t[1]);
    return here + part * t[0];
  }
  return here;
}

/// Returns the best integral assignment that fits into memory; infinity if there is none.
double whole_layers(const std::vector<std::vector<double>>& times, const std::vector<double>& held, const std::vector<double>& capacity) {
  const std::size_t devices = capacity.size();
  std::vector<std::size_t> of(times.size(), 0);
  double best = inf;
  for (;;) {
    std::vector<double> load(devices, 0), used(devices, 0);
    for (std::size_t l = 0; l < times.size(); ++l) {
      load[of[l]] += times[l][of[l]];
      used[of[l]] += held[l];
    }
    bool fits = true;
    for (std::size_t d = 0; d < devices; ++d) fits = fits && used[d] <= capacity[d];
    if (fits) best = std::min(best, *std::max_element(load.begin(), load.end()));
    std::size_t l = 0;
    while (l < of.size() && ++of[l] == devices) of[l++] = 0;
    if (l == of.size()) return best;
  }
}

std::vector<std::vector<double>> random_times(std::mt19937_64& random, std::size_t layers, std::size_t devices, int kinds) {
  std::uniform_real_distribution<double> time(0.2, 5);
  std::vector<std::vector<double>> drawn(static_cast<std::size_t>(kinds), std::vector<double>(devices)), times;
  for (auto& row : drawn) {
    for (double& t : row) t = time(random);
  }
  for (std::size_t l = 0; l < layers; ++l) times.push_back(drawn[random() % drawn.size()]);
  return times;
}

/// Times by phase, device and batch: device 1 runs a second sample for free, and two accelerators halve F.
struct stepwise {
  [[nodiscard]] seconds time(const work& w, const device& d) const {
    const double calls = d.id == device_id(1) ? std::ceil(w.batch / 2) : w.batch;
    const double base = w.phase == phase::forward ? 6.0 / w.tensor_parallel : w.phase == phase::backward_input ? 7 : 8;
    return seconds(base * calls);
  }
};

}  // namespace

TEST_CASE("the least times are over batch sizes, degrees and devices, per sample with all phases, per call without W") {
  std::vector<device> two{{.name = "d0", .memory = 1_GB, .accelerators = 2, .interconnect = 1_GB_per_s}, {.name = "d1", .memory = 1_GB}};
  const cluster c("c", two, shared_medium{1_MB_per_s});
  const layer_minima one = minimal_times(chain(1), c, stepwise{}, {}, 1);
  CHECK(one.per_sample_s == std::vector<double>{3 + 7 + 8, 6 + 7 + 8});
  CHECK(one.forward_s == std::vector<double>{3});
  CHECK(one.forward_backward_s == std::vector<double>{10});
  const layer_minima several = minimal_times(chain(1), c, stepwise{}, {}, 3);
  CHECK(several.per_sample_s == std::vector<double>{18, 10.5});
  CHECK(several.forward_backward_s == std::vector<double>{10});
  const layer_minima forwards = minimal_times(chain(1), c, stepwise{}, inference, 3);
  CHECK(forwards.per_sample_s == std::vector<double>{3, 3});
  CHECK(forwards.forward_backward_s == std::vector<double>{3});

  two[0].interconnect.reset();
  CHECK(minimal_times(chain(1), cluster("c", two, shared_medium{1_MB_per_s}), stepwise{}, inference, 1).per_sample_s ==
        std::vector<double>{6, 6});
}

TEST_CASE("a layer that is profiled for a kind is never asked for several accelerators of it") {
  planning_graph_builder b("m");
  b.add_layer({.name = "a", .profiles = {{"d0", {1}, {4}, {2}}}});
  const planning_graph g = std::move(b).build();
  const cluster c("c", device{.name = "d0", .memory = 1_GB, .accelerators = 4, .interconnect = 1_GB_per_s});
  CHECK(minimal_times(g, c, profiled{}, {}, 1).per_sample_s == std::vector<double>{6});
}

TEST_CASE("too many questions leave the bound out, however they multiply") {
  const layer_minima samples = minimal_times(chain(1), devices(1), stepwise{}, inference, 100'000'001);
  CHECK(samples.per_sample_s == std::vector<double>{0});
  CHECK(samples.forward_s == std::vector<double>{0});
  const cluster rack("c", device{.name = "d0", .memory = 1_GB, .accelerators = 100'000'001, .interconnect = 1_GB_per_s});
  CHECK(minimal_times(chain(1), rack, stepwise{}, inference, 1).per_sample_s == std::vector<double>{0});
}

TEST_CASE("an invalid answer of the cost model is not hidden in a minimum") {
  struct negative {
    [[nodiscard]] seconds time(const work&, const device&) const { return seconds(-1); }
  };
  CHECK_THROWS_AS(minimal_times(chain(1), devices(1), negative{}, {}, 1), invalid_model);
}

TEST_CASE("batch sizes whose time no profile tells are no plan's, so the bound leaves them out") {
  planning_graph_builder b("m");
  b.add_layer({.name = "a", .profiles = {{"d0", {1, 2}, {4, 3}, {2, 2}}}});
  const planning_graph g = std::move(b).build();
  const layer_minima m = minimal_times(g, devices(1), profiled{}, {}, 100);  // 3 + 2 at batch 2, 0 + 2 at 5, none from 6 on
  CHECK(m.per_sample_s[0] == Approx(2.0 / 5));
  struct watched {
    double* largest;
    [[nodiscard]] seconds time(const work& w, const device& d) const {
      *largest = std::max(*largest, w.batch);
      return profiled{}.time(w, d);
    }
    [[nodiscard]] double largest_batch(const work& w, const device& d) const { return profiled{}.largest_batch(w, d); }
  };
  double largest = 0;
  CHECK(minimal_times(g, devices(1), any_cost_model(watched{&largest}), {}, 100).per_sample_s == m.per_sample_s);
  CHECK(largest == 5);  // unknown batches are not asked for
  struct tells_no_limit {
    [[nodiscard]] seconds time(const work& w, const device& d) const { return profiled{}.time(w, d); }
  };
  CHECK(minimal_times(g, devices(1), tells_no_limit{}, {}, 100).per_sample_s == m.per_sample_s);
  struct tells_nothing {
    [[nodiscard]] seconds time(const work&, const device&) const { throw unknown_time("nothing is known"); }
  };
  CHECK_THROWS_AS(minimal_times(chain(1), devices(1), tells_nothing{}, {}, 3), unknown_time);
}

TEST_CASE("the path goes there and back; where no gradient returns it turns earlier or only goes there") {
  const auto path = [](const planning_graph& g, std::vector<double> forward_s, std::vector<double> forward_backward_s,
                       mode how = mode::training) {
    layer_minima m;
    m.devices = 1;
    m.forward_s = std::move(forward_s);
    m.forward_backward_s = std::move(forward_backward_s);
    return path_bound(g, m, how).value();
  };
  const std::vector<double> f{1, 2, 4}, fb{10, 20, 40};
  CHECK(path(chain(3), f, fb) == 70);
  CHECK(path(chain(3), f, fb, mode::inference) == 7);
  CHECK(path(chain(3), f, fb, mode::generation) == 7);
  CHECK(path(chain(3, {1}), f, fb) == 1 + 2 + 40);       // b -> c has no gradient: backward of c only
  CHECK(path(chain(3, {0}), f, fb) == 1 + 20 + 40);      // backward of b and c only
  CHECK(path(chain(3, {0, 1}), f, {10, 60, 40}) == 61);  // forward of a, both passes of b; c is shorter

  planning_graph_builder b("diamond");
  for (const char* name : {"a", "b", "c", "d"}) b.add_layer({.name = name, .forward_flops = 1_FLOP});
  b.add_edge("a", "b", 1_B);
  b.add_edge("a", "c", 1_B, 0_B);
  b.add_edge("b", "d", 1_B);
  b.add_edge("c", "d", 1_B, 0_B);
  const planning_graph diamond = std::move(b).build();
  CHECK(path(diamond, {1, 2, 100, 4}, {10, 20, 1000, 40}) == 1 + 1000);  // forward of a, both passes of c
  CHECK(path(diamond, {1, 2, 100, 4}, {10, 20, 200, 40}) == 201);
  CHECK(path(diamond, {1, 2, 100, 4}, {10, 200, 101, 40}) == 10 + 200 + 40);  // the path with gradients
  CHECK(path(diamond, {1, 2, 100, 4}, {10, 20, 101, 40}) == 1 + 100 + 40);    // the path without gradients, backward of d only
  CHECK(path(diamond, {1, 2, 100, 4}, {10, 20, 101, 40}, mode::inference) == 1 + 100 + 4);
}

TEST_CASE("for related devices the closed bound is the optimum: all work over all speed") {
  // Work of 1, 2, 3 s on the first device; the others are twice and half as fast.
  const std::vector<std::vector<double>> times{{1, 0.5, 2}, {2, 1, 4}, {3, 1.5, 6}};
  CHECK(bound(times, {0, 0, 0}, {inf, inf, inf}, no_lp{}) == Approx(6 / 3.5));
  CHECK(bound(times, {0, 0, 0}, {inf, inf, inf}, glpk_lp{}) == Approx(6 / 3.5));
  CHECK(bound(times, {0, 0, 0}, {inf, inf, inf}, no_lp{}, 10) == Approx(60 / 3.5));
  CHECK(bound({{3}, {4}}, {0, 0}, {inf}, no_lp{}) == 7);
  CHECK(bound({{3}, {4}}, {0, 0}, {inf}, glpk_lp{}) == 7);
}

TEST_CASE("for unrelated devices the LP's bound is above the closed one") {
  // A on the first device, B on the second but for a fifth: 1 + 3/5 = 2 * 4/5.
  const std::vector<std::vector<double>> times{{1, 4}, {3, 2}};
  CHECK(bound(times, {0, 0}, {inf, inf}, no_lp{}) == Approx(1.4));  // shares 0.6 and 0.4
  CHECK(bound(times, {0, 0}, {inf, inf}, glpk_lp{}) == Approx(1.6));
}

TEST_CASE("memory that does not hold all layers sends work to slower devices") {
  // Both devices take 3/4 s. With room for half of the 10 bytes on the fast one, the slow one needs 3/2 s.
  CHECK(bound({{1, 3}}, {10}, {inf, inf}, glpk_lp{}) == Approx(0.75));
  CHECK(bound({{1, 3}}, {10}, {5, inf}, glpk_lp{}) == Approx(1.5));
  CHECK(bound({{1, 3}}, {10}, {5, 5}, glpk_lp{}) == Approx(1.5));
  CHECK(bound({{1, 3}}, {10}, {10, 1}, glpk_lp{}) == Approx(0.9));
  CHECK(bound({{1, 3}}, {10}, {5, inf}, no_lp{}) == Approx(0.75));  // the closed bound ignores memory
}

TEST_CASE("what no device can hold still gets a bound that is finite and valid") {
  const double b = bound({{1, 3}}, {10}, {4, 4}, glpk_lp{});
  CHECK(std::isfinite(b));
  CHECK(b >= 0.75 * (1 - 1e-9));
}

TEST_CASE("devices that take no time leave no bound") {
  CHECK(bound({{1, 0}, {2, 0}}, {0, 0}, {inf, inf}, glpk_lp{}) == 0);
  CHECK(bound({{0, 0}}, {0}, {inf, inf}, glpk_lp{}) == 0);
}

TEST_CASE("a tensor that layers share is held at least for the average of their shares") {
  // Two layers share a 10-byte tensor: they hold 10 bytes, not 20, so each device may take half of each layer.
  const planning_graph tied = weights({10, 10}, {"t", "t"}), apart = weights({10, 10});
  const layer_minima m = minima({{1, 3}, {1, 3}});
  const std::vector<double> capacity{5, inf};
  CHECK(compute_bound(tied, m, plain_memory{}, inference, 1, capacity, glpk_lp{}).value() == Approx(3));
  CHECK(compute_bound(apart, m, plain_memory{}, inference, 1, capacity, glpk_lp{}).value() == Approx(4.5));
}

TEST_CASE("in generation the cache of every sequence needs memory too") {
  planning_graph_builder b("m");
  b.add_layer({.name = "a", .forward_flops = 1_FLOP, .weight = 4_B, .kv_bytes_per_token = 1_B});
  const planning_graph g = std::move(b).build();
  const workload w{.mode = mode::generation, .context = 1, .tokens = 2};
  // Two sequences take 4 + 2 * 3 = 10 bytes; 5 fit on the fast device.
  CHECK(compute_bound(g, minima({{1, 3}}), plain_memory{}, w, 2, {5, inf}, glpk_lp{}).value() == Approx(3));
  CHECK(compute_bound(g, minima({{1, 3}}), plain_memory{}, inference, 2, {5, inf}, glpk_lp{}).value() == Approx(1.5));
}

TEST_CASE("with two devices the bound is the fractional optimum, found by sorting") {
  const unsigned seed = 8;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 200; ++trial) {
    const auto times = random_times(random, 1 + random() % 8, 2, 6);
    const std::vector<double> none(times.size(), 0);
    const double best = two_device_optimum(times);
    CHECK(bound(times, none, {inf, inf}, glpk_lp{}) == Approx(best).epsilon(1e-9));
    CHECK(bound(times, none, {inf, inf}, no_lp{}) <= best * (1 + 1e-12));
  }
}

TEST_CASE("the bound is the optimum of the unmerged program, above the closed one and below every real assignment") {
  const unsigned seed = 9;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  int memory_mattered = 0;
  for (int trial = 0; trial < 300; ++trial) {
    INFO("trial " << trial);
    const auto times = random_times(random, 2 + random() % 5, 3, 3);  // 3 kinds: identical layers occur
    std::vector<double> held(times.size());
    for (double& h : held) h = static_cast<double>(random() % 3);
    double all = 0;
    for (const double h : held) all += h;
    const std::vector<double> capacity{all / 3 + 0.5, all / 2 + 0.5, trial % 2 == 0 ? inf : all + 0.5};
    const double best = direct_lp(times, held, capacity);
    REQUIRE(std::isfinite(best));
    const double mine = bound(times, held, capacity, glpk_lp{});
    CHECK(mine == Approx(best).epsilon(1e-8));
    CHECK(bound(times, held, capacity, no_lp{}) <= best * (1 + 1e-9));
    CHECK(mine <= whole_layers(times, held, capacity) * (1 + 1e-9));
    if (best > direct_lp(times, held, {inf, inf, inf}) * 1.01) ++memory_mattered;
  }
  CHECK(memory_mattered > 30);
}

TEST_CASE("a solver's nonsense cannot spoil the bound") {
  struct liar {
    double dual;
    [[nodiscard]] lp_solution solve(const lp_problem& p) const {
      return {lp_status::optimal, 1e9, {}, std::vector<double>(p.rows.size(), dual)};
    }
  };
  const std::vector<std::vector<double>> times{{1, 4}, {3, 2}};
  for (const double dual : {-1.0, 0.0, 5.0, -1e300, -inf, std::numeric_limits<double>::quiet_NaN()}) {
    const double b = bound(times, {1, 1}, {10, 10}, liar{dual});
    CHECK(b >= 1.4 * (1 - 1e-12));
    CHECK(b <= 1.6 * (1 + 1e-12));
  }
}

TEST_CASE("the bound of a plan covers its batch and all its tokens, whatever its stages and microbatches") {
  // 1 GFLOP at 1 TFLOP/s takes 1 ms each for F and B; without weights, there is no W.
  const planning_graph g = chain(2);
  plan p = stage_per_device({{0}, {1}}, 2, 4);
  const auto of = [&](const cluster& c) { return 1e3 * plan_bound(p, g, c, roofline{}, plain_memory{}, glpk_lp{}, true).value(); };
  CHECK(of(devices(2)) == Approx(16));  // 8 samples * 4 ms / 2 devices; the path is 4 ms
  CHECK(of(devices(16)) == Approx(4));  // the path
  p.workload.mode = mode::inference;
  CHECK(of(devices(2)) == Approx(8));
  p.workload = {.mode = mode::generation, .tokens = 5};
  CHECK(of(devices(2)) == Approx(40));

  // A launch of 8 ms costs least if the whole batch of 8 shares it: 1 ms per sample and layer.
  p.workload = inference;
  const cluster c("c", device{.name = "d0", .memory = 1_GB, .compute = 1_TFLOP_per_s, .launch = 8_ms});
  CHECK(of(c) == Approx(8 * 2 * (1 + 1)));
  p.microbatch_size = 8;
  p.microbatches = 1;
  p.stages[1].microbatch_size = 4;
  CHECK(of(c) == Approx(8 * 2 * (1 + 1)));  // one bound for all plans of a job
}

TEST_CASE("a plan that breaks its memory is bounded without memory") {
  planning_graph_builder b("m");
  b.add_layer({.name = "a", .forward_flops = 1_GFLOP, .weight = 800_MB});
  const planning_graph g = std::move(b).build();
  const cluster c(
      "c", {{.name = "fast", .memory = 400_MB, .compute = 3_TFLOP_per_s}, {.name = "slow", .memory = 1_GB, .compute = 1_TFLOP_per_s}},
      shared_medium{1_MB_per_s});
  plan p = stage_per_device({{0}}, 1, 12);
  p.workload = inference;
  const auto ms = [&](bool within) { return 1e3 * plan_bound(p, g, c, roofline{}, plain_memory{}, glpk_lp{}, within).value(); };
  CHECK(ms(true) == Approx(6));   // half of the samples on the slow device
  CHECK(ms(false) == Approx(3));  // 12 / (3 + 1)
}

}  // namespace test_bounds
