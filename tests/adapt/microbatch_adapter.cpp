// SPDX-License-Identifier: BSL-1.0
// Pass sizes that follow the network: link loads, the halving rule by hand, and laws on random timelines.

#include <hetplan/adapt/microbatch_adapter.hpp>

#include <hetplan/adapt/fixed_policies.hpp>
#include <hetplan/adapt/run.hpp>
#include <hetplan/simulate/dispatch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "support/by_hand.hpp"
#include "support/random_source.hpp"

namespace test_microbatch_adapter {

using namespace hetplan;
using namespace hetplan::test;
using adapt::microbatch_options;
static_assert(adapt::check_adaptation_policy<adapt::microbatch_adapter>());

namespace {

/// 128 samples in four microbatches of 32. A pass takes 8 s plus 1 s per sample. Links of 4 B/s carry 1 B per sample between stages.
struct pipeline {
  int stages = 2;
  mode how = mode::inference;
  double memory = 1e9;
  planning_graph model = layers(stages, how);
  cluster devices = line(stages, memory);
  job what = wanted(how);

  [[nodiscard]] planning_problem problem() const { return {model, devices, roofline{}, what}; }
  [[nodiscard]] plan given(schedule_kind kind = schedule_kind::gpipe) const {
    std::vector<stage> all;
    for (int s = 0; s < stages; ++s) {
      all.push_back(stage_of({s}, {{s, 32}}));
      all.back().name = "s" + std::to_string(s);
    }
    plan p = plan_of(how, 32, 4, all, kind);
    p.workload.optimizer_factor = 0;
    p.sharing_policy = sharing::exclusive;
    return p;
  }
  /// Returns an event that sets the rate between two devices, in both directions.
  [[nodiscard]] adapt::event wire(double at_s, int from, int to, double rate) const {
    return {seconds(at_s),
            adapt::capacity_becomes{devices.network().find(device_id(from), device_id(to))->via.front().resource, bytes_per_second(rate)}};
  }

 private:
  static planning_graph layers(int n, mode how) {
    std::vector<layer_spec> all;
    std::vector<tensor> edges;
    for (int s = 0; s < n; ++s) {
      all.push_back(how == mode::training ? work_of("l" + std::to_string(s), 1, 1, 1) : work_of("l" + std::to_string(s), 1));
      all.back().activation = 1_B;
      all.back().activation_for_weights = 0.5_B;
      if (s > 0) edges.push_back({s - 1, s, 1, how == mode::training ? 1.0 : 0.0});
    }
    return model_of(std::move(all), edges);
  }
  static cluster line(int n, double memory) {
    auto all = workers(n);
    for (device& d : all) d.launch = 8_s, d.memory = bytes(memory);
    return {"line", all, mesh{bytes_per_second(4), seconds(0)}};
  }
  static job wanted(mode how) {
    job j{.workload = {.mode = how}, .batch = 128};
    j.workload.optimizer_factor = 0;
    return j;
  }
};

/// Options of the plain rule for each link, without fill, drain and judge.
microbatch_options rule() { return {.fill = false, .drain = false, .judged = false}; }

adapt::history life(const pipeline& x, const plan& first, const adapt::timeline& t, const microbatch_options& o) {
  const planning_problem problem = x.problem();
  adapt::microbatch_adapter policy(problem, first, o);
  return adapt::run(problem, t, policy, adapt::run_options{adapt::immediate{}, adapt::storage_options{}});
}

std::vector<long long> sizes(const plan& p, std::size_t s, phase what = phase::forward) {
  const auto& cuts = p.stages[s].cuts.of(what);
  std::vector<long long> all;
  for (std::size_t k = 1; k < cuts.size(); ++k) all.push_back(cuts[k] - cuts[k - 1]);
  return all;
}
std::vector<long long> times(std::size_t n, long long size) { return std::vector<long long>(n, size); }

/// Checks that changes of size neither stop the run nor move data.
void check_free(const adapt::history& h) {
  CHECK(h.status.ok());
  CHECK(h.stall_s == 0);
  CHECK(h.moved_bytes == 0);
  CHECK(h.switches == 0);
  CHECK(h.lost == 0);
  for (const adapt::adoption& a : h.adoptions) CHECK(a.done_s == a.decided_s);
  for (std::size_t i = 0; i < h.stretches.size(); ++i) {
    const bool last = i + 1 == h.stretches.size();  // the timeline may end in the middle of an iteration
    CHECK((h.stretches[i].what == adapt::activity::running || (last && h.stretches[i].what == adapt::activity::cut_off)));
  }
}

}  // namespace

TEST_CASE("the best size of passes in closed form") {
  // Stage times a + b m with a = 4 ms, b = 1 ms; 128 samples, 4 stages.
  const std::vector<adapt::pass_time> stages(4, {4e-3, 1e-3});
  CHECK(adapt::best_pass_size(stages, 128) == Approx(13.0639452948));
  CHECK(adapt::pipeline_time_s(stages, 128, 8) == near(0.228));
  CHECK(adapt::pipeline_time_s(stages, 128, 16) == near(0.220));
  CHECK(adapt::pipeline_time_s(stages, 128, 32) == near(0.252));
  CHECK(adapt::best_pass_size(std::vector<adapt::pass_time>{{1, 2}}, 128) == 128);        // one stage: no pipeline to fill
  CHECK(adapt::best_pass_size(std::vector<adapt::pass_time>{{0, 2}, {0, 1}}, 128) == 1);  // passes without fixed costs
  CHECK(adapt::best_pass_size(std::vector<adapt::pass_time>{{9, 2}, {4, 1e-9}}, 128) == 128);
  CHECK(adapt::best_pass_size({}, 128) == 128);
}

TEST_CASE("no size is better than that of the closed form") {
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 200; ++seed) {
    random_source random(seed);
    std::vector<adapt::pass_time> parts;
    for (int i = random.integer(1, 8); i > 0; --i) {
      const bool fixed = random.chance(0.8);
      parts.push_back({fixed ? random.between(0, 50) : 0, random.between(0, 5)});
    }
    const int samples = random.integer(1, 500);
    const double best = adapt::pipeline_time_s(parts, samples, adapt::best_pass_size(parts, samples));
    int worse = 0;
    for (int m = 1; m <= samples; ++m) worse += adapt::pipeline_time_s(parts, samples, m) < best * (1 - 1e-12) ? 1 : 0;
    CHECK(worse == 0);
  }
}

TEST_CASE("passes are halved as long as all that is shared stays whole") {
  stage s = stage_of({0}, {{0, 24}, {1, 8}});
  CHECK(adapt::most_halvings(s, 32, 32) == 3);  // sizes 24 and 8 become 3 and 1
  CHECK(adapt::most_halvings(s, 32, 16) == 2);
  CHECK(adapt::most_halvings(stage_of({0}, {{0, 31}, {1, 1}}), 32, 32) == 0);
  CHECK(adapt::most_halvings(stage_of({0}, {{0, 32}}), 32, 12) == 2);

  const pipeline x{.how = mode::training};
  plan p = adapt::split_passes(x.given(), x.model, std::vector<adapt::pass_halvings>{{1, 0, true, 64}, {}});
  CHECK(sizes(p, 0) == std::vector<long long>{8, 8, 8, 8, 16, 16, 16, 16, 16, 16});
  CHECK(sizes(p, 0, phase::backward_input) == std::vector<long long>{32, 32, 16, 16, 16, 16});
  CHECK(p.stages[1].cuts.empty());
  // Replicated stages keep each device's samples: forward and backward are cut alike.
  plan replicas = x.given();
  replicas.stages[0].devices = {{device_id(0), 16}, {device_id(1), 16}};
  replicas = adapt::split_passes(replicas, x.model, std::vector<adapt::pass_halvings>{{0, 1, true, 64}, {}});
  CHECK(sizes(replicas, 0) == std::vector<long long>{8, 8, 8, 8, 16, 16, 16, 16, 16, 16});
  CHECK(replicas.stages[0].cuts.backward == replicas.stages[0].cuts.forward);
  // Cuts that a plan already has are halved further.
  p = adapt::split_passes(p, x.model, std::vector<adapt::pass_halvings>{{1, 0}, {}});
  CHECK(sizes(p, 0) == std::vector<long long>{4, 4, 4, 4, 4, 4, 4, 4, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8});
}

TEST_CASE("what messages take of a link, beside what their receiver computes") {
  const pipeline x{.how = mode::training};
  const planning_problem problem = x.problem();
  const plan p = x.given();
  const adapt::iteration_load load = adapt::load_of(stage_costs(problem, p));
  REQUIRE(load.links.size() == 2);
  CHECK(load.links[0].kind == transfer_kind::forward);
  CHECK((load.links[0].from == stage_id(0) && load.links[0].to == stage_id(1)));
  CHECK(load.links[0].messages == 4);
  CHECK(load.links[0].comm_s == near(4 * 8));
  CHECK(load.links[0].comp_s == near(4 * 40));
  CHECK(load.links[1].kind == transfer_kind::backward);
  CHECK((load.links[1].from == stage_id(1) && load.links[1].to == stage_id(0)));
  CHECK(load.links[1].comp_s == near(4 * 80));  // gradients of inputs and of weights
  // Devices of a stage send at the same time over a shared medium.
  const cluster air = wireless(3, 2, 4);
  const plan shared = plan_of(mode::inference, 32, 4, {stage_of({0}, {{0, 32}}), stage_of({1}, {{1, 24}, {2, 8}})});
  const planning_graph m = model_of({work_of("a", 1), work_of("b", 1)}, {{0, 1, 1}});
  const planning_problem on_air(m, air, roofline{});
  const adapt::link_load both = adapt::load_of(stage_costs(on_air, shared)).links.at(0);
  CHECK(both.messages == 4);
  CHECK(both.comm_s == near(4 * (2 + 8)));
  CHECK(both.comp_s == near(4 * 24));
}

TEST_CASE("a window is of the last messages, over iterations") {
  adapt::message_window w(20);
  CHECK(w.ratio() == 0);
  w.add(1, 2, 12);
  CHECK(!w.is_full());
  CHECK(w.missing() == 8);
  w.add(4, 2, 12);
  CHECK(w.is_full());
  CHECK(w.ratio() == near((8 * 1 + 12 * 4) / 40.0));
  w.restart();
  CHECK(w.missing() == 20);
  w.add(3, 2, 1'000'000'000'000);
  CHECK(w.ratio() == near(1.5));
  w.restart();
  w.add(1, 0, 20);
  CHECK(w.ratio() == std::numeric_limits<double>::infinity());
}

TEST_CASE("32 becomes 16 when a link gets slow, and 32 again when it is calm") {
  const pipeline x;
  const plan first = x.given();
  // A message takes 45.7 s per 40 s of compute at size 32, and 22.9 s per 24 s at size 16, which is enough.
  const adapt::timeline t{seconds(20'000), {x.wire(5'000, 0, 1, 0.7), x.wire(12'000, 0, 1, 4)}};
  const adapt::history h = life(x, first, t, rule());
  check_free(h);
  REQUIRE(h.adoptions.size() == 2);
  REQUIRE(h.plans.size() == 2);
  CHECK(h.plans[0] == first);
  for (const std::size_t s : {0U, 1U}) CHECK(sizes(h.plans[1], s) == times(8, 16));
  CHECK(h.plans[1].schedule.kind == schedule_kind::gpipe);
  CHECK(h.adoptions[0].caused_s == 5'000);
  CHECK(h.adoptions[0].reached == adapt::rung::network);
  CHECK(h.adoptions[0].reason == "passes of 1/2 from \"s0\" to \"s1\"");
  CHECK(h.adoptions[1].caused_s == 12'000);
  CHECK(h.adoptions[1].reason == "passes as planned");
  // 20 messages are five slow iterations of 40 + 45.7 + 40 + 3 * 45.7 s, then two and a half calm ones of 24 + 4 + 24 + 7 * 24 s.
  const double slow_s = 80 + 4 * 32 / 0.7, calm_s = 220;
  CHECK(h.adoptions[0].decided_s - 5'000 >= 5 * slow_s);
  CHECK(h.adoptions[0].decided_s - 5'000 <= 6 * slow_s);
  CHECK(h.adoptions[1].decided_s - 12'000 >= 3 * calm_s);
  CHECK(h.adoptions[1].decided_s - 12'000 <= 3 * calm_s + 48 + 8 * 16 / 0.7);
}

TEST_CASE("each window halves once, as far as it may") {
  const pipeline x;
  const adapt::timeline t{seconds(100'000), {x.wire(5'000, 0, 1, 0.05)}};
  const auto all = [&](int most) {
    std::vector<std::size_t> passes;
    microbatch_options o = rule();
    o.most_halvings = most;
    const adapt::history h = life(x, x.given(), t, o);
    check_free(h);
    for (const plan& p : h.plans) passes.push_back(sizes(p, 0).size());
    return passes;
  };
  CHECK(all(0) == std::vector<std::size_t>{0});
  CHECK(all(1) == std::vector<std::size_t>{0, 8});
  CHECK(all(3) == std::vector<std::size_t>{0, 8, 16, 32});
  CHECK(all(20) == std::vector<std::size_t>{0, 8, 16, 32, 64, 128});
}

TEST_CASE("a slow link is the business of the stages at its ends, and of the fill") {
  const pipeline x{.stages = 4};
  const adapt::timeline t{seconds(20'000), {x.wire(1'000, 2, 3, 0.7)}};
  microbatch_options o = rule();
  o.most_halvings = 1;
  adapt::history h = life(x, x.given(), t, o);
  REQUIRE(h.plans.size() == 2);
  CHECK(h.plans[1].stages[0].cuts.empty());
  CHECK(h.plans[1].stages[1].cuts.empty());
  CHECK(sizes(h.plans[1], 2) == times(8, 16));
  CHECK(sizes(h.plans[1], 3) == times(8, 16));
  o.fill = true;
  h = life(x, x.given(), t, o);
  check_free(h);
  CHECK(sizes(h.plans[1], 0) == std::vector<long long>{16, 16, 32, 32, 32});
  CHECK(sizes(h.plans[1], 3) == std::vector<long long>{8, 8, 8, 8, 16, 16, 16, 16, 16, 16});
}

TEST_CASE("behind the last forward all passes are halved, and orders are made anew") {
  const pipeline x{.how = mode::training};
  const planning_problem problem = x.problem();
  microbatch_options o = rule();
  o.drain = true;
  const adapt::timeline calm{seconds(20'000)};
  adapt::history h = life(x, x.given(), calm, o);
  check_free(h);
  REQUIRE(h.plans.size() == 2);
  CHECK(sizes(h.plans[1], 0, phase::backward_input) == times(8, 16));  // GPipe: every backward follows the last forward
  CHECK(sizes(h.plans[1], 0) == times(4, 32));
  // In eager schedules the last stage runs all backward passes but one before its last forward.
  for (const plan& first : {dispatch(x.given(), problem, eager{}), x.given(schedule_kind::one_f_one_b)}) {
    h = life(x, first, calm, o);
    check_free(h);
    REQUIRE(h.plans.size() == 2);
    const plan& p = h.plans[1];
    CHECK(p.schedule.kind == schedule_kind::explicit_orders);
    for (const stage& s : p.stages) {
      CHECK(s.cuts.forward.size() == 5);
      CHECK(s.cuts.backward.size() > 5);
    }
    const bool splits = first.schedule.kind == schedule_kind::explicit_orders;  // split backward only if the first plan has it
    const auto& order = p.schedule.orders[0];
    CHECK(splits == std::any_of(order.begin(), order.end(), [](const order_entry& e) { return e.what == phase::backward_weight; }));
  }
}

TEST_CASE("the judge keeps the plan where smaller passes are slower, and finds the size of the closed form") {
  const pipeline x;
  // A pass has a fixed cost of 8 s. On a calm network, passes of 32 take 208 s and of 16 take 220 s, whatever the thresholds.
  microbatch_options o{.halve_above = 0.1, .double_below = 0.05};
  adapt::history h = life(x, x.given(), {seconds(20'000)}, o);
  check_free(h);
  CHECK(h.plans.size() == 1);
  o.judged = false;
  CHECK(life(x, x.given(), {seconds(20'000)}, o).plans.size() > 1);
  // On a slow network, passes of 32, 16, 8 and 4 take 336, 304, 288 and 404 s. The rule needs two steps to reach 8, the closed form one.
  const adapt::timeline slow{seconds(50'000), {x.wire(5'000, 0, 1, 0.5)}};
  h = life(x, x.given(), slow, {});
  check_free(h);
  REQUIRE(h.plans.size() == 2);
  CHECK(sizes(h.plans[1], 0) == times(16, 8));
}

TEST_CASE("options out of range are refused by name, and so are plans without cuts") {
  const pipeline x;
  const planning_problem problem = x.problem();
  const auto refused = [&](microbatch_options o, const std::string& why) {
    CHECK_THROWS_WITH(adapt::microbatch_adapter(problem, x.given(), o), Catch::Contains(why));
  };
  refused({.halve_above = 0.4}, "double_below = 0.5; expected a number from 0 to halve_above = 0.4");
  refused({.halve_above = std::nan("")}, "halve_above");
  refused({.double_below = -1}, "double_below = -1");
  refused({.window = 0}, "window = 0; expected 1 to 1000000 messages");
  refused({.most_halvings = -1}, "most_halvings = -1");
  refused({.thinking = seconds(-1)}, "thinking = -1");
  refused({.most_plans = 0}, "most_plans = 0");
  plan p = x.given();
  p.workload.mode = mode::generation;
  CHECK_THROWS_WITH(adapt::microbatch_adapter(problem, p), Catch::Contains("generation"));
  const pipeline y{.how = mode::training};
  plan shared = y.given(schedule_kind::one_f_one_b);
  shared.stages = {stage_of({0, 1}, {{0, 16}, {1, 16}})};
  shared.stages[0].shard = sharding::fsdp;
  const planning_problem training = y.problem();
  CHECK_THROWS_WITH(adapt::microbatch_adapter(training, shared), Catch::Contains("shares out"));
}

namespace {

/// A random training pipeline with noise on every link and scarce memory on some devices.
struct noisy {
  planning_graph model;
  cluster devices;
  job what;
  plan first;
  adapt::timeline events;
};
noisy random_noisy(random_source& random) {
  const int stages = random.integer(2, 4), size = 1 << random.integer(2, 4), microbatches = random.integer(2, 5);
  std::vector<layer_spec> layers;
  std::vector<tensor> edges;
  for (int s = 0; s < stages; ++s) {
    layers.push_back(work_of("l" + std::to_string(s), random.between(0.5, 2), random.between(0.5, 2), random.between(0.5, 2)));
    layers.back().activation = 1_B;
    layers.back().activation_for_weights = 0.5_B;
    if (s > 0) edges.push_back({s - 1, s, random.between(0.2, 2), random.between(0.2, 2)});
  }
  auto all = workers(stages + 1);
  for (device& d : all) {
    d.launch = seconds(random.between(0, 4));
    d.memory = random.chance(0.5) ? bytes(size * random.integer(stages, 8)) : 1_GB;
  }
  noisy x{.model = model_of(std::move(layers), edges),
          .devices = cluster("noisy", all, mesh{bytes_per_second(random.between(0.3, 3)), seconds(random.between(0, 1))}),
          .what = {.workload = {.mode = mode::training}, .batch = size * microbatches},
          .first = {},
          .events = {seconds(50'000)}};
  x.what.workload.optimizer_factor = 0;
  std::vector<stage> cut;
  for (int s = 0; s < stages; ++s) cut.push_back(stage_of({s}, {{s, size}}));
  if (random.chance(0.3)) cut.back() = stage_of({stages - 1}, {{stages - 1, size / 2}, {stages, size / 2}});
  x.first = plan_of(mode::training, size, microbatches, cut);
  x.first.workload.optimizer_factor = 0;
  const planning_problem problem(x.model, x.devices, roofline{}, x.what);
  if (random.chance(0.8)) x.first = dispatch(x.first, problem, eager{}, {.split_backward = random.chance(0.5)});
  else x.first.schedule.kind = random.chance(0.5) ? schedule_kind::gpipe : schedule_kind::one_f_one_b;
  for (double now = 0; now < 10'000; now += random.between(50, 2'000)) {
    for (std::size_t r = 0; r < x.devices.network().resources().size(); ++r) {
      const double noise = random.chance(0.3) ? 1 : random.between(0.05, 0.6);
      x.events.events.push_back(
          {seconds(now), adapt::capacity_becomes{resource_id(r), x.devices.network().resources()[r].capacity * noise}});
    }
  }
  return x;
}

}  // namespace

TEST_CASE("under noise: nothing stops, moves or exceeds memory, and the same life is lived twice", "[random][unsanitized]") {
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 40; ++seed) {
    INFO("seed " << seed);
    random_source random(seed);
    const noisy x = random_noisy(random);
    const planning_problem problem(x.model, x.devices, roofline{}, x.what);
    microbatch_options o;
    o.judged = random.chance(0.5);
    o.fill = random.chance(0.7);
    o.drain = random.chance(0.7);
    if (random.chance(0.3)) o.thinking = seconds(random.between(0, 100));
    const adapt::run_options how{adapt::immediate{}, adapt::storage_options{}};
    const auto live = [&] {
      adapt::microbatch_adapter policy(problem, x.first, o);
      return adapt::run(problem, x.events, policy, how);
    };
    const adapt::history h = live();
    CHECK(h == live());
    CHECK(h.status.ok());
    CHECK(h.stall_s == 0);
    CHECK(h.moved_bytes == 0);
    CHECK(h.switches == 0);
    CHECK(h.cut_off <= 1);
    if (o.judged) {  // under the last conditions, the adapted plan is no slower than the first
      adapt::static_plan still(x.first);
      const adapt::history same = adapt::run(problem, x.events, still, how);
      const auto last = [](const adapt::history& of) {
        return std::find_if(of.stretches.rbegin(), of.stretches.rend(), [](const auto& s) { return s.iterations > 0; })->response_s;
      };
      CHECK(last(h) <= last(same) * (1 + 1e-9));
    }
    const evaluation planned = judge(x.first, x.model, x.devices, roofline{}).evaluation;
    for (const plan& p : h.plans) {
      CHECK(same_placement(p, x.first));
      const evaluation e = judge(p, x.model, x.devices, roofline{}).evaluation;
      for (const device& d : x.devices.devices()) {
        const double most = std::max(d.usable_memory().value(), planned.devices[d.id.index()].peak_memory.value());
        CHECK(e.devices[d.id.index()].peak_memory.value() <= most * (1 + 1e-9));
      }
    }
  }
}

}  // namespace test_microbatch_adapter
