// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/adapt/ladder.hpp>
#include <hetplan/adapt/replication.hpp>
#include <hetplan/cluster/topology.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/plan/validate.hpp>
#include <hetplan/simulate/dispatch.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/simulate/simulation.hpp>

#include "adapt/support.hpp"
#include "support/random_instance.hpp"
#include "support/search_instance.hpp"
#include "support/three_devices.hpp"

using namespace hetplan;
using namespace adapt_tests;

namespace {

/// Options for the criterion of the paper alone.
const adapt::replay_options by_flop{.measures = {adapt::work_measure::flop}, .transfer_weights = {0}};

/// Calls f with each division of `items` into `stages` consecutive pieces of at least `least` items.
void for_each_cut(std::size_t items, std::size_t stages, std::size_t least, const std::function<void(const std::vector<std::size_t>&)>& f) {
  std::vector<std::size_t> ends{0};
  const std::function<void()> next = [&] {
    if (ends.size() == stages + 1) {
      if (ends.back() == items) f(ends);
      return;
    }
    for (std::size_t end = ends.back() + least; end <= items; ++end) {
      ends.push_back(end);
      next();
      ends.pop_back();
    }
  };
  next();
}

/// Returns a group's capacity by the header's definition: 1 / seconds of the whole model on one microbatch.
double capacity_of(const plan& p, const planning_graph& model, const cluster& c, const std::vector<assignment>& devices) {
  double sum = 0;
  for (const assignment& a : devices) {
    double total = 0;
    for (const layer& l : model.layers()) {
      for (const phase what : {phase::forward, phase::backward_input, phase::backward_weight}) {
        if (what != phase::forward && p.workload.mode != mode::training) continue;
        total += roofline{}
                     .time({.layer = l,
                            .phase = what,
                            .batch = static_cast<double>(p.microbatch_size),
                            .tensor_parallel = a.tensor_parallel,
                            .context = p.workload.context},
                           c[a.device])
                     .value();
      }
    }
    sum += 1 / total;
  }
  return sum;
}

/// Returns the largest ratio of a stage's work to its capacity.
double largest_share(const plan& p, const std::vector<std::vector<layer_id>>& stages, const std::vector<double>& capacity,
                     const planning_graph& model) {
  double largest = 0;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    double work = 0;
    for (const layer_id l : stages[s]) {
      work += model[l].forward_flops.value();
      if (p.workload.mode == mode::training) work += model[l].backward_input_flops.value() + model[l].backward_weight_flops.value();
    }
    largest = std::max(largest, work / capacity[s]);
  }
  return largest;
}

/// Returns true if the devices can hold the stage while they share each microbatch and keep `kept` microbatches in flight.
bool holds(const plan& p, const planning_graph& model, const cluster& c, const std::vector<assignment>& devices, const stage& s, int kept) {
  int samples = 0;
  for (const assignment& a : devices) {
    int most = 0;
    for (int n = 1; n <= p.microbatch_size; ++n) {
      const assignment mine{a.device, n};
      const double needed = stage_static_bytes(plain_memory{}, model, s, mine, p.workload, p.microbatches) +
                            kept * stage_share_memory(plain_memory{}, model, s, mine, p.workload, 0).forward;
      if (needed <= c[a.device].usable_memory().value() * (1 + 1e-9)) most = n;
    }
    samples += most;
  }
  return samples >= p.microbatch_size;
}

void check_promises(const plan& next, const plan& running, const planning_graph& model, const cluster& c,
                    const std::vector<device_id>& lost) {
  const auto v = validate(next, model, c);
  INFO((v ? v->where + ": " + v->what : "valid"));
  REQUIRE_FALSE(v);
  std::set<layer_id> layers;
  std::size_t at = 0;  // stages keep their order and devices
  for (const stage& s : next.stages) {
    for (const layer_id l : s.layers) REQUIRE(layers.insert(l).second);
    for (const assignment& a : s.devices) REQUIRE(std::find(lost.begin(), lost.end(), a.device) == lost.end());
    const stage_graph g = make_stage_graph(running, model);
    while (at < g.topological.size() && running[g.topological[at]].name != s.name) ++at;
    REQUIRE(at < g.topological.size());
    for (const assignment& a : s.devices) {
      const auto& before = running[g.topological[at]].devices;
      REQUIRE(std::any_of(before.begin(), before.end(), [&](const assignment& b) { return b.device == a.device; }));
    }
  }
  REQUIRE(layers.size() == model.size());
}

}  // namespace

TEST_CASE("a cut in proportion is the best of all cuts") {
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 500; ++seed) {
    INFO("seed " << seed);
    test::random_source random(seed);
    const int stages = random.integer(1, 4), items = random.integer(stages, 9);
    std::vector<double> work, capacity, size, room;
    for (int i = 0; i < items; ++i) {
      work.push_back(random.chance(0.2) ? 0 : random.between(1, 10));
      size.push_back(random.between(1, 10));
    }
    for (int s = 0; s < stages; ++s) {
      capacity.push_back(random.between(1, 5));
      room.push_back(random.between(5, 40));
    }
    const bool tight = random.chance(0.6);
    const auto fits = [&](std::size_t k, std::size_t first, std::size_t last) {
      const auto from = size.begin() + static_cast<std::ptrdiff_t>(first), to = size.begin() + static_cast<std::ptrdiff_t>(last);
      return !tight || std::accumulate(from, to, 0.0) <= room[k];
    };
    const bool free = random.chance(0.4);
    std::vector<double> cost;
    for (int i = 0; i < stages * items; ++i) cost.push_back(free ? 0 : random.between(0, 10));
    const auto boundary = [&](std::size_t k, std::size_t item) { return cost.at(k * work.size() + item); };
    const auto share = [&](std::size_t k, std::size_t first, std::size_t last) {
      const auto from = work.begin() + static_cast<std::ptrdiff_t>(first), to = work.begin() + static_cast<std::ptrdiff_t>(last);
      return std::accumulate(from, to, 0.0) / capacity[k];
    };
    for (const std::size_t least : {0U, 1U}) {
      double best = std::numeric_limits<double>::infinity();
      for_each_cut(work.size(), capacity.size(), least, [&](const std::vector<std::size_t>& ends) {
        double largest = 0;
        for (std::size_t k = 0; k < capacity.size(); ++k) {
          largest = std::max(largest, share(k, ends[k], ends[k + 1]));
          if (ends[k + 1] < work.size()) largest = std::max(largest, boundary(k, ends[k + 1]));
          if (ends[k] < ends[k + 1] && !fits(k, ends[k], ends[k + 1])) return;
        }
        best = std::min(best, largest);
      });
      const adapt::proportional_cut cut = adapt::cut_in_proportion(work.size(), capacity.size(), least, share, boundary, fits);
      REQUIRE(cut.exists() == (best < std::numeric_limits<double>::infinity()));
      if (!cut.exists()) continue;
      CHECK(cut.largest == Approx(best));
      double largest = 0;
      for (std::size_t k = 0; k < capacity.size(); ++k) {
        const std::size_t first = cut.first[k], last = k + 1 < capacity.size() ? cut.first[k + 1] : work.size();
        REQUIRE(first + least <= last);
        REQUIRE((first == last || fits(k, first, last)));
        largest = std::max(largest, share(k, first, last));
        if (last < work.size()) largest = std::max(largest, boundary(k, last));
      }
      CHECK(largest == Approx(best));
    }
  }
}

TEST_CASE("where every boundary costs the same and more than any stage, the cut is even all the same") {
  const auto share = [](std::size_t, std::size_t first, std::size_t last) { return static_cast<double>(last - first); };
  const auto cut = adapt::cut_in_proportion(
      8, 2, 1, share, [](std::size_t, std::size_t) { return 100.0; }, [](std::size_t, std::size_t, std::size_t) { return true; });
  CHECK(cut.largest == 100);
  CHECK(cut.first == std::vector<std::size_t>{0, 4});
}

TEST_CASE("on random chains a replay keeps order and devices, and no cut shares the work better within memory", "[long]") {
  int found = 0, none = 0, tight = 0, better = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 1000; ++seed) {
    INFO("seed " << seed);
    const test::search_instance i = test::random_search_instance(seed, {.most_layers = 8, .most_devices = 5});
    test::random_source random(seed * 3 + 1);
    plan running = random_chain_plan(random, i.model, i.cluster, all_devices(i.cluster), i.blank.workload, i.blank.microbatch_size,
                                     i.blank.microbatches);
    running.schedule.kind = i.blank.schedule.kind;
    for (stage& st : running.stages) random.shuffle(st.layers);
    if (validate(running, i.model, i.cluster)) continue;
    std::vector<device_id> lost;
    for (const device& d : i.cluster.devices()) {
      if (random.chance(0.25)) lost.push_back(d.id);
    }
    const planning_problem problem{i.model, i.cluster, roofline{},
                                   job{.workload = running.workload, .batch = static_cast<int>(running.batch())}};
    const plan_result r = adapt::lightweight_replay(problem, running, lost, by_flop);
    const plan_result of_several = adapt::lightweight_replay(problem, running, lost);
    std::vector<std::vector<assignment>> groups;
    for (const stage& s : running.stages) {
      groups.emplace_back();
      for (const assignment& a : s.devices) {
        if (std::find(lost.begin(), lost.end(), a.device) == lost.end()) groups.back().push_back(a);
      }
      if (groups.back().empty()) groups.pop_back();
    }
    // The best of all cuts with the default warm-up or the schedule's own, and whether a cut with a warm-up of 1 exists.
    std::vector<double> capacity;
    for (const auto& g : groups) capacity.push_back(capacity_of(running, i.model, i.cluster, g));
    double best = std::numeric_limits<double>::infinity();
    bool least = false;
    if (!groups.empty()) {
      for_each_cut(i.model.size(), groups.size(), 1, [&](const std::vector<std::size_t>& ends) {
        bool by_default = true, at_all = true;
        std::vector<std::vector<layer_id>> stages;
        for (std::size_t k = 0; k < groups.size(); ++k) {
          stage s;
          for (std::size_t l = ends[k]; l < ends[k + 1]; ++l) s.layers.emplace_back(l);
          const int stages_left = static_cast<int>(groups.size() - k);
          by_default = by_default && holds(running, i.model, i.cluster, groups[k], s, microbatches_in_flight(running, 2 * stages_left - 1));
          at_all = at_all && holds(running, i.model, i.cluster, groups[k], s, microbatches_in_flight(running, 1));
          stages.push_back(s.layers);
        }
        if (by_default) best = std::min(best, largest_share(running, stages, capacity, i.model));
        least = least || at_all;
      });
    }
    if (!r.status.ok()) {
      ++none;
      CHECK(r.plans.empty());
      CHECK_FALSE(r.status.reason.empty());
      if (groups.empty()) CHECK(r.status.reason == "no device of the running plan is left");
      // Energy or busy limits may bind. Memory may not, if a cut exists.
      if (!r.binding) CHECK_FALSE(least);
      else CHECK(r.binding->kind != limit_kind::memory);
      continue;
    }
    REQUIRE(r.plans.size() == 1);
    const auto& [next, e] = r.plans.front();
    check_promises(next, running, i.model, i.cluster, lost);
    CHECK(find_broken_limit(e, i.cluster) == std::nullopt);
    CHECK(judge(next, i.model, i.cluster, roofline{}).evaluation.latency == e.latency);
    REQUIRE(of_several.status.ok());
    check_promises(of_several.plans.front().plan, running, i.model, i.cluster, lost);
    CHECK(of_several.plans.front().evaluation.response() <= e.response());
    better += of_several.plans.front().evaluation.response() < e.response();
    if (!next.schedule.warmup.empty() || next.stages.size() < groups.size()) {
      ++tight;
      continue;
    }
    ++found;
    std::vector<std::vector<layer_id>> stages;
    for (const stage& s : next.stages) stages.push_back(s.layers);
    CHECK(largest_share(running, stages, capacity, i.model) == Approx(best));
  }
  INFO(found << " by default, " << tight << " tight, " << none << " infeasible");
  CHECK(found > 250);
  CHECK(better > 50);
  CHECK(none > 50);
}

TEST_CASE("plans of every kind are replayed or refused with a reason") {
  int replayed = 0, refused = 0;
  test::for_random_instances(25, [&](const test::instance& i) {
    const planning_graph model = i.model();
    const cluster c = i.cluster();
    const planning_problem problem{model, c, roofline{}, job{.workload = i.plan.workload, .batch = static_cast<int>(i.plan.batch())}};
    for (const device& d : c.devices()) {
      const std::vector<device_id> lost{d.id};
      const plan_result r = adapt::lightweight_replay(problem, i.plan, lost);
      if (!r.status.ok()) {
        ++refused;
        REQUIRE_FALSE(r.status.reason.empty());
        const bool of_tokens = i.plan.workload.mode == mode::generation && i.plan.schedule.kind == schedule_kind::explicit_orders;
        const bool no_chain = i.plan.pipelines.size() > 1 || of_tokens;
        const bool alone = std::all_of(i.plan.stages.begin(), i.plan.stages.end(),
                                       [&](const stage& s) { return s.devices.size() == 1 && s.devices[0].device == d.id; });
        REQUIRE((no_chain || alone));  // memory is plenty here
        continue;
      }
      ++replayed;
      check_promises(r.plans.front().plan, i.plan, model, c, lost);
    }
  });
  CHECK(replayed > 300);
  CHECK(refused > 100);
}

namespace {

bool is_split(const plan& p) {
  return std::any_of(p.schedule.orders.begin(), p.schedule.orders.end(), [](const auto& order) {
    return std::any_of(order.begin(), order.end(), [](const order_entry& e) { return e.what == phase::backward_weight; });
  });
}

/// Returns a chain plan with listed orders whose stages form a V, are interleaved, or stand on groups of devices.
plan random_ordered_plan(test::random_source& random, const planning_problem& problem, int size, int microbatches) {
  const cluster& c = problem.cluster;
  const int devices = static_cast<int>(c.size()), layers = static_cast<int>(problem.model.size());
  plan p;
  if (random.chance(0.3)) {
    p = random_chain_plan(random, problem.model, c, all_devices(c), {.optimizer_factor = 0}, size, microbatches);
  } else {
    p = {.workload = {.optimizer_factor = 0}, .microbatch_size = size, .microbatches = microbatches};
    const int stages = random.integer(1, std::min(layers, 2 * devices));
    const bool v = random.chance(0.5);
    const std::vector<int> lengths = random.split(layers, stages);
    int layer = 0;
    for (int s = 0; s < stages; ++s) {
      const int turn = s % (2 * devices);
      const int d = v && turn >= devices ? 2 * devices - 1 - turn : s % devices;
      p.stages.push_back({.name = "s" + std::to_string(s), .layers = {}, .devices = {{device_id(d), size}}});
      for (int l = 0; l < lengths[static_cast<std::size_t>(s)]; ++l) p.stages.back().layers.emplace_back(layer++);
    }
  }
  return dispatch(p, problem, compact{}, {.split_backward = random.chance(0.7), .memory = std::vector(c.size(), bytes(1e15))});
}

}  // namespace

TEST_CASE("plans that list their orders are replayed with orders that end and keep the memory", "[long]") {
  int found = 0, tight = 0, none = 0, split = 0, several = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 600; ++seed) {
    INFO("seed " << seed);
    test::random_source random(seed);
    const int layers = random.integer(3, 9), count = random.integer(2, 4), size = random.integer(1, 4), microbatches = random.integer(1, 6);
    planning_graph_builder b("chain");
    for (int l = 0; l < layers; ++l) {
      b.add_layer({.name = "l" + std::to_string(l),
                   .forward_flops = flops(1e9 * random.integer(1, 4)),
                   .weight = 1_MB,
                   .activation = bytes(1e6 * random.integer(1, 3)),
                   .activation_for_weights = 0.5_MB});
      if (l > 0) b.add_edge(layer_id(l - 1), layer_id(l), bytes(1e5 * random.integer(1, 5)));
    }
    const planning_graph model = std::move(b).build();
    // Per layer: 2 MB, at most 3 MB a sample for activations, and twice the 0.5 MB a sample for the weight gradient.
    const bool plenty = random.chance(0.4);
    std::vector<device> devices;
    for (int d = 0; d < count; ++d) {
      const double all = layers * (2e6 + 4e6 * size);
      devices.push_back({.name = "d" + std::to_string(d),
                         .memory = bytes(plenty ? 3 * all : all * random.between(0.2, 1.2)),
                         .compute = flops_per_second(1e12 * random.integer(1, 3))});
    }
    const cluster c("c", devices, shared_medium{100_MB_per_s, 1_ms});
    const planning_problem problem{model, c, roofline{}, job{.workload = {.optimizer_factor = 0}, .batch = size * microbatches}};
    const plan running = random_ordered_plan(random, problem, size, microbatches);
    std::vector<device_id> lost;
    for (int d = 0; d < count; ++d) {
      if (random.chance(0.3)) lost.emplace_back(d);
    }
    const plan_result r = adapt::lightweight_replay(problem, running, lost);
    if (!r.status.ok()) {
      ++none;
      CHECK_FALSE(r.status.reason.empty());
      if (plenty) CHECK(r.status.reason == "no device of the running plan is left");
      continue;
    }
    const auto& [next, e] = r.plans.front();
    check_promises(next, running, model, c, lost);
    REQUIRE(next.schedule.kind == schedule_kind::explicit_orders);
    CHECK(is_split(next) == is_split(running));
    CHECK(find_broken_limit(e, c) == std::nullopt);
    CHECK(judge(next, model, c, roofline{}).evaluation.latency == e.latency);
    ++found;
    tight += plenty ? 0 : 1;
    split += is_split(next) ? 1 : 0;
    for (const device_id d : all_devices(c)) {
      int stages = 0;
      for (const stage& s : next.stages)
        stages += static_cast<int>(std::count_if(s.devices.begin(), s.devices.end(), [&](const assignment& a) { return a.device == d; }));
      several += stages > 1 ? 1 : 0;
    }
  }
  INFO(found << " found, " << tight << " of them with little memory, " << split << " with W apart, " << several
             << " devices with several stages");
  CHECK(found > 300);
  CHECK(tight > 100);
  CHECK(none > 20);
  CHECK(split > 150);
  CHECK(several > 100);
}

TEST_CASE("a pipeline that goes down and up again loses a device and keeps the shape, each stage half as long as alone") {
  const planning_graph model = test::chain(12);  // work 1, 2, 3, 1, 2, 3, ...
  std::vector<device> devices;
  for (const char* name : {"a", "b", "c"}) devices.push_back({.name = name, .memory = 8_GB, .compute = 1_TFLOP_per_s});
  const cluster c("c", devices, shared_medium{1_GB_per_s});
  plan running{.microbatch_size = 1, .microbatches = 4};
  const int on[] = {0, 1, 2, 2, 1, 0};
  for (int s = 0; s < 6; ++s) {
    running.stages.push_back(
        {.name = "s" + std::to_string(s), .layers = {layer_id(2 * s), layer_id(2 * s + 1)}, .devices = {{device_id(on[s]), 1}}});
  }
  const planning_problem problem{model, c, roofline{}, job{.batch = 4}};
  running = dispatch(running, problem, compact{});
  const plan_result r = adapt::lightweight_replay(problem, running, std::vector{device_id(1)}, by_flop);
  REQUIRE(r.status.ok());
  const plan& next = r.plans.front().plan;
  REQUIRE(next.stages.size() == 4);  // a, c, c, a: no transfer between the two stages on c
  for (const stage& s : next.stages) CHECK(s.layers.size() == 3);
  CHECK(is_split(next));
  CHECK(next.schedule.orders[0].size() == 2 * 3 * 4);  // two stages; F, B and W of four microbatches
  CHECK(next.schedule.orders[1].empty());
}

TEST_CASE("equal devices share equal layers equally, and unequal ones in proportion") {
  const planning_graph model = test::chain(12);
  const cluster c("c",
                  {{.name = "a", .memory = 8_GB, .compute = 1_TFLOP_per_s},
                   {.name = "b", .memory = 8_GB, .compute = 1_TFLOP_per_s},
                   {.name = "d", .memory = 8_GB, .compute = 3_TFLOP_per_s}},
                  shared_medium{1_GB_per_s});
  plan running{.microbatch_size = 2, .microbatches = 4};
  for (int s = 0; s < 3; ++s) {
    running.stages.push_back({.name = "s" + std::to_string(s), .layers = {}, .devices = {{device_id(s), 2}}});
    for (int l = 4 * s; l < 4 * s + 4; ++l) running.stages.back().layers.emplace_back(l);
  }
  const planning_problem problem{model, c, roofline{}, job{.batch = 8}};
  const auto sizes = [&](std::vector<device_id> lost) {
    std::vector<std::size_t> all;
    const plan_result found = adapt::lightweight_replay(problem, running, lost, by_flop);
    for (const stage& s : found.plans.at(0).plan.stages) all.push_back(s.layers.size());
    return all;
  };
  CHECK(sizes({device_id(2)}) == std::vector<std::size_t>{6, 6});
  CHECK(sizes({device_id(0)}) == std::vector<std::size_t>{3, 9});
  CHECK(sizes({device_id(0), device_id(1)}) == std::vector<std::size_t>{12});
  CHECK(sizes({}) == std::vector<std::size_t>{2, 2, 8});  // work 3, 4 and 17: the largest of 3/1, 4/1, 17/3
}

TEST_CASE("where memory asks for it the cut moves, the warm-up falls, and at last a stage is left out") {
  // Six layers of 10 FLOP with 1 MB of weights, 4 MB of state (Adam) and 1 MB per microbatch in flight.
  planning_graph_builder b("even");
  for (int i = 0; i < 6; ++i) {
    b.add_layer({.name = "l" + std::to_string(i), .forward_flops = 10_FLOP, .weight = 1_MB, .activation = 1_MB});
    if (i > 0) b.add_edge(layer_id(i - 1), layer_id(i), 1_kB);
  }
  const planning_graph model = std::move(b).build();
  plan running{.microbatch_size = 1, .microbatches = 8};
  for (int s = 0; s < 3; ++s) {
    running.stages.push_back(
        {.name = "s" + std::to_string(s), .layers = {layer_id(2 * s), layer_id(2 * s + 1)}, .devices = {{device_id(s), 1}}});
  }
  const auto replayed = [&](bytes first, bytes second) {
    const cluster c("c",
                    {{.name = "a", .memory = first, .compute = 1_TFLOP_per_s},
                     {.name = "b", .memory = second, .compute = 1_TFLOP_per_s},
                     {.name = "lost", .memory = 1_GB, .compute = 1_TFLOP_per_s}},
                    shared_medium{1_GB_per_s});
    const planning_problem problem{model, c, roofline{}, job{.batch = 8}};
    return adapt::lightweight_replay(problem, running, std::vector{device_id(2)}, by_flop);
  };
  const auto sizes = [](const plan_result& r) {
    std::vector<std::size_t> all;
    for (const stage& s : r.plans.at(0).plan.stages) all.push_back(s.layers.size());
    return all;
  };
  // With warm-ups of 3 and 1, a layer takes 7 MB on a and 5 MB on b.
  CHECK(sizes(replayed(21_MB, 15_MB)) == std::vector<std::size_t>{3, 3});
  CHECK(sizes(replayed(14_MB, 20_MB)) == std::vector<std::size_t>{2, 4});
  CHECK(replayed(14_MB, 20_MB).plans[0].plan.schedule.warmup.empty());
  // Three layers fit on a with a warm-up of 2, but a cut with the default warm-up is preferred.
  CHECK(sizes(replayed(18_MB, 20_MB)) == std::vector<std::size_t>{2, 4});
  CHECK(replayed(18_MB, 20_MB).plans[0].plan.schedule.warmup.empty());
  // a holds one layer at 7 MB or, with a warm-up of 2, two at 6 MB: only a warm-up of 2 gives a cut, of 2 and 4 layers.
  const plan_result lower = replayed(13_MB, 20_MB);
  CHECK(sizes(lower) == std::vector<std::size_t>{2, 4});
  CHECK(lower.plans[0].plan.schedule.warmup == std::vector<int>{2, 1});
  // b holds no layer, a holds all six with a warm-up of 1.
  CHECK(sizes(replayed(30_MB, 4_MB)) == std::vector<std::size_t>{6});
  const plan_result none = replayed(13_MB, 14_MB);
  CHECK(none.status.result == outcome::none_found);
  CHECK(none.status.reason.find("memory") == 0);
}

TEST_CASE("a cut through a narrow tensor beats the even cut through a wide one") {
  planning_graph_builder b("waist");
  for (int i = 0; i < 8; ++i) {
    b.add_layer({.name = "l" + std::to_string(i), .forward_flops = 10_GFLOP, .weight = 1_MB});
    if (i > 0) b.add_edge(layer_id(i - 1), layer_id(i), i == 5 ? 10_kB : 10_MB);
  }
  const planning_graph model = std::move(b).build();
  const cluster c = test::three(4_GB, 400_Mbit_per_s);
  plan running{.microbatch_size = 1, .microbatches = 8};
  for (int s = 0; s < 3; ++s) running.stages.push_back({.name = "s" + std::to_string(s), .layers = {}, .devices = {{device_id(2 - s), 1}}});
  for (int l = 0; l < 8; ++l) running.stages[static_cast<std::size_t>(l / 3)].layers.emplace_back(l);
  const planning_problem problem{model, c, roofline{}, job{.batch = 8}};
  const std::vector<device_id> lost{device_id(0)};  // slow and middle are left: cuts at 2 and at 5 layers are equally good
  const plan_result even = adapt::lightweight_replay(problem, running, lost, by_flop);
  const plan_result light = adapt::lightweight_replay(problem, running, lost);
  CHECK(even.plans.at(0).plan.stages[0].layers.size() == 2);
  CHECK(light.plans.at(0).plan.stages[0].layers.size() == 5);
  CHECK(light.plans[0].evaluation.latency < even.plans[0].evaluation.latency);
  CHECK(even.candidates == 1);
  CHECK(light.candidates >= 2);
}

TEST_CASE("by seconds, layers that wait for memory count for what they take") {
  // Every layer computes for 1 ms; the first three also move bytes for 3 ms. Forward and backward are alike.
  planning_graph_builder b("bound");
  for (int i = 0; i < 6; ++i) {
    b.add_layer({.name = "l" + std::to_string(i), .forward_flops = 1_GFLOP, .traffic = i < 3 ? 3_MB : 0_MB});
    if (i > 0) b.add_edge(layer_id(i - 1), layer_id(i), 1_B);
  }
  const planning_graph model = std::move(b).build();
  std::vector<device> devices;
  for (const char* name : {"a", "b", "c"}) {
    devices.push_back({.name = name, .memory = 1_GB, .compute = 1_TFLOP_per_s, .memory_bandwidth = 1_GB_per_s});
  }
  const cluster c("c", devices, shared_medium{1_GB_per_s});
  plan running{.microbatch_size = 1, .microbatches = 8};
  for (int s = 0; s < 3; ++s) {
    running.stages.push_back(
        {.name = "s" + std::to_string(s), .layers = {layer_id(2 * s), layer_id(2 * s + 1)}, .devices = {{device_id(s), 1}}});
  }
  const planning_problem problem{model, c, roofline{}, job{.batch = 8}};
  const auto first_stage = [&](adapt::work_measure measure) {
    const adapt::replay_options options{.measures = {measure}, .transfer_weights = {0}};
    return adapt::lightweight_replay(problem, running, std::vector{device_id(2)}, options).plans.at(0).plan.stages[0].layers.size();
  };
  CHECK(first_stage(adapt::work_measure::flop) == 3);
  CHECK(first_stage(adapt::work_measure::seconds) == 2);  // 3 + 3 and 3 + 1 + 1 + 1
  CHECK(adapt::lightweight_replay(problem, running, std::vector{device_id(2)}).plans.at(0).plan.stages[0].layers.size() == 2);
}

TEST_CASE("a group that loses a device shares its microbatch out again, and rules of old transfers are given up") {
  const planning_graph model = test::chain(6);
  const cluster c = test::three();
  plan running{.microbatch_size = 6, .microbatches = 2};
  running.stages = {{.name = "all", .layers = {}, .devices = {{device_id(0), 3}, {device_id(1), 2}, {device_id(2), 1}}}};
  for (const layer& l : model.layers()) running.stages[0].layers.push_back(l.id);
  running.sharing_policy = sharing::priority;
  running.schedule.transfers = {
      {.from = device_id(0), .to = device_id(1), .from_stage = stage_id(0), .to_stage = stage_id(0), .kind = transfer_kind::sync}};
  running.parameter_server = device_id(0);
  const planning_problem problem{model, c, roofline{}, job{.batch = 12}};
  const plan_result r = adapt::lightweight_replay(problem, running, std::vector{device_id(0)});
  REQUIRE(r.status.ok());
  const plan& p = r.plans.front().plan;
  CHECK(p.stages[0].devices == std::vector<assignment>{{device_id(1), 4}, {device_id(2), 2}});
  CHECK(p.schedule.transfers.empty());
  CHECK(p.sharing_policy == sharing::fair_share);
  CHECK_FALSE(p.parameter_server);
  CHECK(p.planner == "replay");
}

TEST_CASE("where the relay between two devices is lost, one of them goes on alone, or the missing route is the reason") {
  const planning_graph model = test::chain(6);  // 10 MB a layer, 20 MB with gradients
  const auto line = [](bytes memory) {
    const auto hop = [](const char* from, const char* to) { return route_table::rule{from, to, {1_ms, {{resource_id(0)}}}}; };
    std::vector<device> devices;
    for (const char* name : {"a", "b", "c"})
      devices.push_back({.name = name, .memory = memory, .compute = name[0] == 'c' ? 2_TFLOP_per_s : 1_TFLOP_per_s});
    return cluster("line", devices, route_table{{{"air", 400_Mbit_per_s}}, {hop("a", "b"), hop("b", "a"), hop("b", "c"), hop("c", "b")}});
  };
  plan running{.microbatch_size = 1, .microbatches = 4};
  for (int s = 0; s < 3; ++s) {
    running.stages.push_back(
        {.name = "s" + std::to_string(s), .layers = {layer_id(2 * s), layer_id(2 * s + 1)}, .devices = {{device_id(s), 1}}});
  }
  const std::vector<device_id> lost{device_id(1)};
  const auto replayed = [&](const cluster& c, const adapt::replay_options& options = {}) {
    return adapt::lightweight_replay(planning_problem{model, c, roofline{}, job{.batch = 4}}, running, lost, options);
  };
  const plan_result alone = replayed(line(1_GB));
  REQUIRE(alone.status.ok());
  REQUIRE(alone.plans.at(0).plan.stages.size() == 1);
  CHECK(alone.plans[0].plan.stages[0].layers.size() == 6);
  CHECK(alone.plans[0].plan.stages[0].devices == std::vector<assignment>{{device_id(2), 1}});  // the faster of the two
  CHECK(replayed(line(1_GB), by_flop).plans == alone.plans);
  const plan_result none = replayed(line(80_MB));  // each device holds half of the model at most
  CHECK(none.plans.empty());
  CHECK(none.status.result == outcome::none_found);
  CHECK_THAT(none.status.reason, Catch::Contains("memory") && Catch::Contains("without a route from \"a\" to \"c\""));
}

TEST_CASE("a pipeline with unequal passes, two stages of a device, goes on with equal ones without a lost device") {
  const planning_graph model = test::chain(6);
  const cluster c = test::three();
  const planning_problem problem{model, c, roofline{}, job{.batch = 8}};
  plan running = blank_plan(problem, "test", 1);
  const pass_cuts ramp{.forward = {0, 1, 3, 6, 8}, .backward = {0, 1, 3, 6, 8}};
  const int first[] = {0, 1, 3, 5, 6};
  for (int s = 0; s < 4; ++s) {
    stage part{.name = "s" + std::to_string(s), .devices = {{device_id(s == 3 ? 0 : s), 1}}, .cuts = ramp};
    for (int l = first[s]; l < first[s + 1]; ++l) part.layers.emplace_back(l);
    running.stages.push_back(std::move(part));
  }
  running = dispatch(std::move(running), problem, eager{});
  for (const std::size_t lost : {std::size_t{0}, std::size_t{1}, std::size_t{2}}) {
    const plan_result r = adapt::lightweight_replay(problem, running, std::vector{device_id(lost)});
    REQUIRE(r.status.ok());
    const plan& next = r.plans.front().plan;
    CHECK_NOTHROW(require_valid(next, model, c));
    CHECK(next.batch() == 8);
    CHECK(next.microbatch_size == 2);  // the mean of the passes
    for (const stage& s : next.stages) {
      CHECK(s.cuts.empty());
      CHECK(s.devices.front().device != device_id(lost));
    }
  }
}

TEST_CASE("what is not a pipeline is refused by name, and unknown devices throw") {
  const planning_graph model = test::chain(3);
  const cluster c = test::three();
  plan running{.microbatch_size = 1, .microbatches = 2};
  running.stages = {{.name = "all", .layers = {layer_id(0), layer_id(1), layer_id(2)}, .devices = {{device_id(0), 1}}}};
  const planning_problem problem{model, c, roofline{}, job{.batch = 2}};
  CHECK(adapt::lightweight_replay(problem, running, std::vector{device_id(0)}).status.reason == "no device of the running plan is left");
  CHECK(adapt::lightweight_replay(problem, running, std::vector{device_id(2)}).status.ok());
  CHECK_THROWS_AS(adapt::lightweight_replay(problem, running, std::vector{device_id(5)}), invalid_input);
  CHECK_THROWS_WITH(adapt::lightweight_replay(problem, running, {}, {.transfer_weights = {-0.1}}), Catch::Contains("transfer weight -0.1"));
  CHECK_THROWS_AS(adapt::lightweight_replay(problem, running, {}, {.transfer_weights = {}}), invalid_input);
  CHECK_THROWS_AS(adapt::lightweight_replay(problem, running, {}, {.measures = {}}), invalid_input);
  plan twice = running;
  twice.pipelines = {1, 1};
  twice.stages.push_back(twice.stages[0]);
  twice.stages[1].pipeline = 1;
  twice.stages[1].devices[0].device = device_id(1);
  CHECK(adapt::lightweight_replay(problem, twice, {}).status.reason == "replay moves the cuts of one pipeline; the running plan has 2");
  plan again = running;
  again.stages[0].recompute = recomputation::stage;
  CHECK(adapt::lightweight_replay(problem, again, {}).status.reason ==
        "replay counts on stages that keep their activations; stage \"" + running.stages[0].name + "\" recomputes them");
  const auto reason = [&](const plan& p) { return adapt::lightweight_replay(problem, p, {}).status.reason; };
  plan cut = running;
  cut.schedule.kind = schedule_kind::gpipe;
  cut.stages[0].cuts = {.forward = {0, 2}, .backward = {0, 1, 2}};
  const plan_result equal = adapt::lightweight_replay(problem, cut, {});
  REQUIRE(equal.status.ok());
  CHECK(equal.plans.front().plan.stages[0].cuts.empty());
  cut.stages[0].devices = {{device_id(0), 1}, {device_id(1), 1}};
  cut.stages[0].cuts.backward = {0, 2};
  cut.microbatch_size = 2;
  cut.microbatches = 1;
  CHECK_THAT(reason(cut), Catch::Contains("stage \"all\" is cut into passes that are no microbatches"));
  plan grid = running;
  grid.stages[0].columns = {1, 1};
  grid.stages[0].devices.push_back({device_id(1), 1});
  CHECK_THAT(reason(grid), Catch::Contains("stage \"all\" is a grid"));
  plan tokens = running;
  tokens.workload = {.mode = mode::generation, .context = 4, .tokens = 2};
  tokens.schedule = {.kind = schedule_kind::explicit_orders,
                     .orders = {{{phase::forward, stage_id(0), 0}, {phase::forward, stage_id(0), 1}}, {}, {}}};
  CHECK_THAT(reason(tokens), Catch::Contains("those of generation"));
  plan broken = running;
  broken.stages[0].layers.pop_back();
  CHECK_THROWS_AS(adapt::lightweight_replay(problem, broken, {}), invalid_input);
}

TEST_CASE("a model that is only measured is shared out by its seconds") {
  planning_graph_builder b("measured");
  for (int i = 0; i < 4; ++i) {
    b.add_layer({.name = "l" + std::to_string(i), .weight = 1_MB, .profiles = {{"k", {1}, {i == 0 ? 3.0 : 1.0}, {i == 0 ? 6.0 : 2.0}}}});
    if (i > 0) b.add_edge(layer_id(i - 1), layer_id(i), 1_kB);
  }
  const planning_graph model = std::move(b).build();
  std::vector<device> devices;
  for (const char* name : {"a", "b", "c"}) devices.push_back({.name = name, .kind = "k", .memory = 1_GB});
  const cluster c("c", devices, shared_medium{1_MB_per_s});
  plan running{.microbatch_size = 1, .microbatches = 2};
  running.stages = {{.name = "s0", .layers = {layer_id(0)}, .devices = {{device_id(0), 1}}},
                    {.name = "s1", .layers = {layer_id(1), layer_id(2)}, .devices = {{device_id(1), 1}}},
                    {.name = "s2", .layers = {layer_id(3)}, .devices = {{device_id(2), 1}}}};
  const planning_problem problem{model, c, profiled{}, job{.batch = 2}};
  const plan_result r = adapt::lightweight_replay(problem, running, std::vector{device_id(2)});
  REQUIRE(r.status.ok());
  CHECK(r.plans[0].plan.stages[0].layers == std::vector<layer_id>{layer_id(0)});
  CHECK(r.plans[0].plan.stages[1].layers.size() == 3);
}
