// SPDX-License-Identifier: BSL-1.0
// The largest batch and context, by hand and against a linear scan over all plans.

#include <hetplan/recipes/largest.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/partition/brute_force.hpp>
#include <hetplan/plan/validate.hpp>
#include <hetplan/recipes/dora.hpp>
#include <hetplan/simulate/evaluate.hpp>

#include "support/message_of.hpp"
#include "support/random_source.hpp"

namespace test_largest {

using namespace hetplan;
using namespace hetplan::test;
using recipes::growing;

namespace {

struct small_case {
  planning_graph model;
  hetplan::cluster cluster;
  hetplan::job job;
};

/// Returns layers of 10 B of weights with a cache of 1 B a token on devices of some memory.
small_case by_hand(int layers, const std::vector<double>& memories, double activation = 0) {
  planning_graph_builder b("by hand");
  for (int i = 0; i < layers; ++i) {
    b.add_layer({.name = "l" + std::to_string(i),
                 .forward_flops = flops(1e6),
                 .weight = 10_B,
                 .forward_activation = bytes(activation),
                 .kv_bytes_per_token = 1_B});
    if (i > 0) b.add_edge(layer_id(i - 1), layer_id(i), 4_B);
  }
  std::vector<device> all;
  for (std::size_t d = 0; d < memories.size(); ++d)
    all.push_back({.name = "d" + std::to_string(d), .memory = bytes(memories[d]), .compute = 1_TFLOP_per_s});
  job j{.batch = 1};
  j.workload = {.mode = mode::generation, .tokens = 4, .prompt = 6};
  return {std::move(b).build(), {"by hand", std::move(all), shared_medium{1_GB_per_s}}, j};
}

recipes::largest_found largest_by_dora(const small_case& c, growing what, const recipes::largest_options& o = {}) {
  const planning_problem p{c.model, c.cluster, roofline{}, c.job};
  const recipes::asked_planner dora = [](const planning_problem& q, const any_objective& objective, int keep,
                                         const candidate_observer& seen) { return recipes::dora(q, objective, keep, seen); };
  return recipes::find_largest(p, what, dora, o);
}

small_case random_case(random_source& random, bool tiers = false) {
  planning_graph_builder b("random");
  const int layers = random.integer(1, 4);
  for (int i = 0; i < layers; ++i) {
    layer_spec l{.name = "l" + std::to_string(i),
                 .forward_flops = flops(random.pick(std::vector{0.0, 1e8, 3e8})),
                 .weight = bytes(random.pick(std::vector{0.0, 1e3, 2e3})),
                 .forward_activation = bytes(random.pick(std::vector{0.0, 50.0, 300.0})),
                 .kv_bytes_per_token = bytes(random.pick(std::vector{0.0, 20.0, 40.0}))};
    if (random.chance(0.3)) l.forward_workspace = bytes(random.pick(std::vector{20.0, 100.0, 400.0}));
    if (random.chance(0.2)) l.sequence.window = random.integer(1, 12);
    if (*l.forward_flops >= flops(1e6) && random.chance(0.2)) l.sequence.attention_flops = flops(1e6);
    if (i > 0 && random.chance(0.2)) l.weight_group = "tied";
    if (i == 0) l.weight_group = "tied";
    if (l.weight_group == "tied") l.weight = 1_kB;
    b.add_layer(std::move(l));
    if (i > 0) b.add_edge(layer_id(i - 1), layer_id(i), bytes(random.pick(std::vector{0.0, 1e4, 1e6})));
  }
  std::vector<device> all;
  const int devices = random.integer(1, 3);
  for (int i = 0; i < devices; ++i) {
    device d{.name = "d" + std::to_string(i),
             .memory = bytes(random.pick(std::vector{1.5e3, 3e3, 6e3})),
             .compute = flops_per_second(random.pick(std::vector{1e11, 4e11, 1e12}))};
    d.half_rows = random.pick(std::vector{0.0, 2.0});
    d.launch = seconds(random.pick(std::vector{0.0, 1e-4}));
    d.memory_bandwidth = bytes_per_second(random.pick(std::vector{1e6, 1e12}));
    if (!tiers && random.chance(0.1)) d.max_busy = 0.7;  // a slow tier makes others less busy: offload that no memory needs
    if (tiers && random.chance(0.7))
      d.tiers = {{.name = "ram", .memory = bytes(random.pick(std::vector{1e3, 2.5e3, 1e4})), .bandwidth = bytes_per_second(5e5)}};
    all.push_back(std::move(d));
  }
  job j{.batch = random.integer(1, 3)};
  j.workload.mode = random.chance(0.85) ? mode::generation : mode::inference;
  if (random.chance(0.15)) j.microbatch_sizes = {random.integer(1, 3)};
  if (j.workload.mode == mode::generation) {
    j.workload.tokens = random.integer(1, 4);
    j.workload.prompt = random.integer(0, 5);
    if (random.chance(0.3)) j.qoe.ttft = seconds(random.pick(std::vector{2e-3, 1e-2, 5e-2}));
    if (j.workload.tokens > 1 && random.chance(0.3)) j.qoe.time_between_tokens = seconds(random.pick(std::vector{1e-3, 4e-3, 2e-2}));
  }
  if (random.chance(0.2)) j.qoe.makespan = seconds(random.pick(std::vector{5e-3, 2e-2, 1e-1}));
  if (random.chance(0.1)) j.qoe.latency = seconds(random.pick(std::vector{1e-3, 1e-2}));
  if (random.chance(0.2))
    j.pins = {{"l" + std::to_string(random.integer(0, layers - 1)), "d" + std::to_string(random.integer(0, devices - 1))}};
  return {std::move(b).build(), {"random", std::move(all), shared_medium{100_MB_per_s, 20_us}}, j};
}

/// Calls f() for every choice of what the stages of a plan have in tiers, from a layer on.
template <class F>
void for_each_offload(const planning_problem& p, plan& x, std::size_t l, F&& f) {
  if (l == p.model.size() || !p.cluster.has_tiers()) {
    if (!validate(x, p)) f();
    return;
  }
  for_each_offload(p, x, l + 1, f);
  for (stage& s : x.stages) {
    if (std::find(s.layers.begin(), s.layers.end(), layer_id(l)) == s.layers.end()) continue;
    for (const memory_tier& t : p.cluster[s.devices.front().device].tiers) {
      s.offload.push_back({layer_id(l), t.name});
      for_each_offload(p, x, l + 1, f);
      s.offload.pop_back();
    }
  }
}

/// Calls f(plan, evaluation) for every plan of one pipeline, any cut, devices and shares, that keeps the devices' limits.
template <class F>
void for_each_plan_within_limits(const planning_problem& p, F&& f) {
  std::vector<device> roomy(p.cluster.devices().begin(), p.cluster.devices().end());  // the judge checks memory
  for (device& d : roomy) d.memory = bytes(1e15);
  const hetplan::cluster large("roomy", roomy, shared_medium{100_MB_per_s, 20_us});
  layer_sequence row;
  for (const layer& l : p.model.layers()) row.blocks.push_back({l.id});
  row = sequence_of(p.model);
  for (const int size : p.job.candidate_microbatch_sizes()) {
    partition::for_each_plan(row, p.model, large, p.cost, p.models.memory, blank_plan(p, "any", size), {.all_shares = true},
                             [&](const plan& x) {
                               plan each = x;
                               for_each_offload(p, each, 0, [&] {
                                 const evaluation e = judge(each, p.model, p.cluster, p.cost, p.models).evaluation;
                                 if (!find_broken_limit(e, p.cluster)) f(each, e);
                               });
                               return control::go;
                             });
  }
}

/// The planner of the linear scan: the best of all plans.
plan_result best_of_all(const planning_problem& p, const any_objective& objective, int, const candidate_observer&) {
  plan_result r;
  double least = 0;
  for_each_plan_within_limits(p, [&](const plan& x, const evaluation& e) {
    const double score = objective.score(e);
    if (!r.plans.empty() && score >= least) return;
    least = score;
    r.plans = {{x, e}};
  });
  if (r.plans.empty()) r.status = {outcome::none_found, "no plan keeps the limits"};
  return r;
}

/// Does any plan keep the limits of devices and job? Written out again: the latency of qoe is that of a response.
bool any_fits(const small_case& c, growing what, int value) {
  job j = c.job;
  if (what == growing::batch) j.batch = value;
  else j.workload.context = value;
  j.objective = objective_kind::latency;
  for (const int size : j.microbatch_sizes) {
    if (j.batch % size != 0) return false;
  }
  const planning_problem p{c.model, c.cluster, roofline{}, j};
  bool any = false;
  for_each_plan_within_limits(p, [&](const plan&, const evaluation& e) {
    const auto keeps = [](const std::optional<seconds>& wanted, seconds taken) { return !wanted || at_most(taken, *wanted); };
    any = any || (keeps(j.qoe.latency, e.response()) && keeps(j.qoe.makespan, e.latency) && keeps(j.qoe.ttft, e.ttft.value_or(e.latency)) &&
                  keeps(j.qoe.time_between_tokens, e.response()));
  });
  return any;
}

}  // namespace

TEST_CASE("the largest batch and context by hand") {
  // 4 layers of 10 B and 10 tokens of cache: a sequence takes 10 B a layer. 90 B hold 40 B of weights and one sequence (40 B).
  const small_case one = by_hand(4, {90});
  recipes::largest_found found = largest_by_dora(one, growing::batch);
  CHECK(found.value == 1);
  CHECK(found.bound == 1);
  CHECK(found.all_tried);
  REQUIRE_FALSE(found.planned.plans.empty());
  CHECK(found.planned.plans.front().plan.batch() == 1);
  CHECK(found.limit().starts_with("memory: bytes of all layers"));
  // 50 B are left for caches of 4 B a token: 12 tokens, of which 10 are prompt and answer.
  found = largest_by_dora(one, growing::context);
  CHECK(found.value == 2);
  CHECK(found.planned.plans.front().plan.workload.context == 2);

  // Two devices of 64 B: together they might hold 128 B, 40 B of weights and 2 sequences of 40 B, two layers and 40 B each: 60 B.
  found = largest_by_dora(by_hand(4, {64, 64}), growing::batch);
  CHECK(found.value == 2);
  CHECK(found.planned.plans.front().plan.stages.size() == 2);
  // 3 layers do not divide evenly: 2 layers with 1 sequence take 40 B, with 2 sequences 60 B.
  found = largest_by_dora(by_hand(3, {64, 64}), growing::batch);
  CHECK(found.value == 2);
  CHECK(found.bound == 3);  // 128 B might hold 30 + 3 * 30 B
  CHECK(found.all_tried);
}

TEST_CASE("limits on times are kept, and the objective chooses among the plans that keep them") {
  small_case c = by_hand(2, {1e6, 1e6});
  c.job.qoe.time_between_tokens = 50_us;  // a step of b sequences takes b 2 us on one device, and more over the network
  recipes::largest_found found = largest_by_dora(c, growing::batch);
  REQUIRE(found.value);
  CHECK(*found.value >= 25);
  for (const ranked_plan& r : found.planned.plans) CHECK(*r.evaluation.time_between_tokens <= 50.0001_us);
  CHECK(found.limit().starts_with("qoe.time_between_tokens: the best plan takes "));
  c.job.qoe = {.latency = 50_us};  // the same for the objective qoe
  CHECK(largest_by_dora(c, growing::batch).value == found.value);
}

TEST_CASE("nothing fits, nothing limits, and what is no context") {
  recipes::largest_found found = largest_by_dora(by_hand(4, {30}), growing::batch);
  CHECK_FALSE(found.value);
  CHECK(found.planned.plans.empty());
  CHECK(found.limit().starts_with("memory: "));

  small_case c = by_hand(2, {1e6});
  found = largest_by_dora(c, growing::context, {.most = 100});
  CHECK(found.value == 100);
  CHECK(found.bound == 100);
  CHECK(found.limit().empty());

  c.job.workload = {.mode = mode::inference};
  CHECK(message_of([&] { return largest_by_dora(c, growing::context); }) ==
        "find_largest: a context in mode inference; expected mode generation, which has a cache");
  CHECK(message_of([&] {
          return recipes::find_largest({c.model, c.cluster, roofline{}, c.job}, growing::batch, {});
        }).starts_with("find_largest: planner"));
}

TEST_CASE("a batch that microbatches of a given size do not divide does not fit, larger ones may") {
  small_case c = by_hand(4, {1000});
  c.job.microbatch_sizes = {1};
  c.job.batch = 3;
  CHECK(largest_by_dora(c, growing::batch).value == 24);  // (1000 - 40) / 40
  c.job.microbatch_sizes = {5};
  c.job.batch = 5;
  CHECK(largest_by_dora(c, growing::batch).value == 20);
  c.job.microbatch_sizes = {4, 6};
  c.job.batch = 4;
  CHECK(largest_by_dora(c, growing::batch).value == 24);
  c.job.microbatch_sizes = {10, 14};  // 22 and 24 are multiples of 2 alone
  c.job.batch = 10;
  CHECK(largest_by_dora(c, growing::batch).value == 20);
}

TEST_CASE("layers are packed wherever stages of single devices have room, and nowhere else") {
  const std::uint64_t seed = first_seed();
  int packed_some = 0, refused = 0;
  for (std::uint64_t s = 0; s < 200; ++s) {
    random_source random(seed * 1000 + s);
    small_case c = random_case(random);
    c.job.microbatch_sizes.clear();
    c.job.pins.clear();
    std::vector<device> never_too_busy(c.cluster.devices().begin(), c.cluster.devices().end());
    for (device& d : never_too_busy) d.max_busy = 1;
    c.cluster = {"random", never_too_busy, shared_medium{100_MB_per_s, 20_us}};
    const planning_problem p{c.model, c.cluster, roofline{}, c.job};
    const int least = p.job.candidate_microbatch_sizes().front();
    bool any = false;
    for_each_plan_within_limits(p, [&](const plan& x, const evaluation&) {
      any =
          any || (x.microbatch_size == least && std::ranges::all_of(x.stages, [](const stage& each) { return each.devices.size() == 1; }));
    });
    INFO("seed " << seed * 1000 + s);
    const auto packed = recipes::detail::packed_plan(p);
    CHECK(packed.has_value() == any);
    if (packed) CHECK_FALSE(find_broken_limit(judge(*packed, p.model, p.cluster, p.cost, p.models).evaluation, p.cluster));
    ++(packed ? packed_some : refused);
  }
  CHECK(packed_some > 50);
  CHECK(refused > 20);
}

TEST_CASE("the largest batch and context are those of a linear scan over all plans", "[unsanitized]") {
  const std::uint64_t seed = first_seed();
  int found_some = 0, limited_by_time = 0, offloaded = 0;
  for (std::uint64_t s = 0; s < 360; ++s) {
    random_source random(seed * 1000 + s);
    const small_case c = random_case(random, s >= 260);
    const bool context = c.job.workload.mode == mode::generation && random.chance(0.5);
    const growing what = context ? growing::context : growing::batch;
    small_case given = c;
    if (!given.job.microbatch_sizes.empty() && given.job.batch % given.job.microbatch_sizes[0] != 0) given.job.microbatch_sizes = {1};
    const int most = context ? 14 : 7;
    INFO("seed " << seed * 1000 + s << (context ? ", context" : ", batch"));
    std::optional<int> scanned;
    const int least = context ? 0 : given.job.microbatch_sizes.empty() ? 1 : given.job.microbatch_sizes[0];
    if (any_fits(given, what, least)) {
      for (int v = least; v <= most; ++v) {
        if (any_fits(given, what, v)) scanned = v;
      }
    }
    const planning_problem p{given.model, given.cluster, roofline{}, given.job};
    const recipes::largest_found found = recipes::find_largest(p, what, best_of_all, {.most = most});
    CHECK(found.value == scanned);
    if (s % 2 == 0) {
      const int by_dora = largest_by_dora(given, what, {.most = most}).value.value_or(-1);
      CHECK(by_dora >= scanned.value_or(-1));  // devices that run two stages are not scanned
    }
    if (!found.value) continue;
    ++found_some;
    CHECK(found.all_tried);
    REQUIRE_FALSE(found.planned.plans.empty());
    const auto& [best, e] = found.planned.plans.front();
    CHECK((context ? best.workload.context : static_cast<int>(best.batch())) == *found.value);
    CHECK(judge(best, given.model, given.cluster, roofline{}).evaluation.latency == e.latency);
    limited_by_time += found.limit().starts_with("qoe") ? 1 : 0;
    offloaded += std::ranges::any_of(best.stages, [](const stage& st) { return !st.offload.empty(); }) ? 1 : 0;
  }
  CHECK(found_some > 100);
  CHECK(limited_by_time > 10);
  CHECK(offloaded > 10);
}

}  // namespace test_largest
