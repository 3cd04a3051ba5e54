// SPDX-License-Identifier: BSL-1.0
// Code that the pages under docs/ quote (docs.quotes_test compares them), compiled and tested.

#include <hetplan/adapt/run.hpp>
#include <hetplan/coarsen/device_groups.hpp>
#include <hetplan/estimate/estimate.hpp>
#include <hetplan/estimate/step_law.hpp>
#include <hetplan/hetplan.hpp>
#include <hetplan/mix/pareto_set.hpp>
#include <hetplan/plan/validate.hpp>
#include <hetplan/recipes/dora_adapter.hpp>
#include <hetplan/recipes/plan_on_view.hpp>
#include <hetplan/serve/greedy_placement.hpp>
#include <hetplan/serve/request_handlers.hpp>
#include <hetplan/serve/request_process.hpp>
#include <hetplan/serve/serve_requests.hpp>
#include <hetplan/serve/service_time.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/simulate/observed_run.hpp>
#include <hetplan/solve/lp.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <catch2/catch.hpp>

using namespace hetplan;

namespace {

// [placement_value]
/// Values each service once: the more different services are placed, the better.
struct variety {
  std::vector<char> placed;  // by service

  serve::placement_gain most(serve::server_id, const serve::allocation& a) const { return {placed[a.what.index()] ? 0.0 : a.capacity}; }
  serve::placement_gain gain(const serve::instance&, const serve::allocation& a) const { return most({}, a); }
  void add(const serve::instance& i, const serve::allocation&) { placed[i.what.index()] = 1; }
};
static_assert(serve::check_placement_value<variety>());
// [placement_value]

/// Seconds per sample by kind of layer, from an external table of measurements.
struct table_model {
  std::map<std::string, double> forward_s;

  seconds time(const work& w, const device& d) const {
    const auto it = forward_s.find(w.layer.kind);
    if (it == forward_s.end()) return roofline{}.time(w, d);
    const double passes = w.phase == phase::forward ? 1 : w.layer.trainable_weight() > 0_B ? 1 : 0.5;
    return seconds(passes * it->second * w.batch * w.share_of_sample()) + d.launch;
  }
};
static_assert(check_cost_model<table_model>());

/// Adam reads weights, gradients and two moments and writes all but the gradients: seven passes over the weights.
struct with_adam : roofline {
  seconds optimizer_step(const layer& l, const device& d) const { return 7 * l.weight / d.memory_bandwidth + d.launch; }
};
static_assert(check_cost_model<with_adam>() && times_optimizer_step<with_adam>);

// [memory_model]
/// Activation checkpointing: blocks keep no activations and repeat their forward before the backward.
struct recomputing_memory {
  bytes state(const layer& l, const workload& w) const { return plain_memory{}.state(l, w); }
  bytes activations(const layer& l, const workload&) const { return l.kind == "block" ? 0_B : l.activation; }
  bytes cache(const layer& l, const workload& w) const { return plain_memory{}.cache(l, w); }
};
static_assert(check_memory_model<recomputing_memory>());
struct recomputing_time {
  seconds time(const work& w, const device& d) const {
    const seconds t = roofline{}.time(w, d);
    if (w.layer.kind != "block" || w.phase != phase::backward_input) return t;
    work again = w;
    again.phase = phase::forward;
    return t + roofline{}.time(again, d);
  }
};
static_assert(check_cost_model<recomputing_time>());
// [memory_model]

// [network_model]
/// Two rooms, each with Wi-Fi of its own, joined by a powerline that both directions share.
struct two_rooms {
  std::size_t in_first_room;  ///< devices, in cluster order
  bytes_per_second wifi = 300_Mbit_per_s, powerline = 80_Mbit_per_s;

  std::vector<resource> resources(std::span<const device>) const { return {{"wifi 0", wifi}, {"wifi 1", wifi}, {"powerline", powerline}}; }
  std::optional<route> find_route(std::span<const device>, device_id from, device_id to) const {
    const resource_id a(from.index() < in_first_room ? 0 : 1), b(to.index() < in_first_room ? 0 : 1);
    if (a == b) return route{2_ms, {{a, 2}}};  // the access point repeats every frame
    return route{6_ms, {{a, 1}, {resource_id(2), 1}, {b, 1}}};
  }
};
static_assert(check_network_model<two_rooms>());
// [network_model]

// [network_policy]
/// Gradient reductions use only the bandwidth that activations and their gradients leave.
struct reductions_last {
  int tier(const tasks::transfer& t) const { return t.kind == transfer_kind::sync ? 1 : 0; }
  route_access access() const { return route_access::shared; }
};
static_assert(check_network_policy<reductions_last>());
// [network_policy]

/// The energy-delay product: a compromise without a target.
struct energy_delay {
  double score(seconds response, joules energy) const { return energy.value() * response.value(); }
};
static_assert(check_objective<energy_delay>());

// [objective]
/// Minimises the energy of the battery that a plan drains most.
struct even_drain {
  double score(const evaluation& e) const {
    joules most;
    for (const device_evaluation& d : e.devices) most = std::max(most, d.energy);
    return most.value();
  }
};
static_assert(check_objective<even_drain>());
// [objective]

// [latency_estimator]
/// Runs one microbatch after another: stages never overlap.
struct one_by_one {
  seconds latency(const pipeline_steps& s) const {
    double microbatch_s = 0, end_s = 0;
    for (const auto& stage : s.stages) microbatch_s += stage.total_s, end_s += stage.collective_s;
    for (const auto& link : s.links) microbatch_s += link.total_s;
    return seconds(s.microbatches * microbatch_s + end_s);
  }
};
static_assert(check_latency_estimator<one_by_one>());
// [latency_estimator]

// [criterion]
/// The busiest device's share of the time, which its owner cannot use.
struct least_room {
  double value(const evaluation& e) const {
    seconds most;
    for (const device_evaluation& d : e.devices) most = std::max(most, d.busy);
    return most / e.latency;
  }
};
static_assert(mix::check_criterion<least_room>());
// [criterion]

// [failure_detector]
/// A silent device that others wait for is given up after four seconds; all other events are seen once a minute.
struct by_waiting {
  seconds noticed(seconds at) const { return at + 4_s; }
  seconds seen(seconds at) const { return std::max(at, std::ceil(at / 60_s) * 60_s); }
};
static_assert(adapt::check_failure_detector<by_waiting>());
// [failure_detector]

// [lp_solver]
/// Leaves large programs to the closed bound: a simplex with thousands of columns takes seconds.
template <lp_solver Inner>
struct small_only {
  Inner inner = {};
  std::size_t max_columns = 2000;

  lp_solution solve(const lp_problem& p) const { return p.objective.size() > max_columns ? lp_solution{} : inner.solve(p); }
};
static_assert(check_lp_solver<small_only<no_lp>>());
// [lp_solver]

// [milp_solver]
/// Asks a second solver if the first finds nothing within its limits.
template <milp_solver First, milp_solver Second>
struct one_then_another {
  First first = {};
  Second second = {};

  milp_solution solve(const milp_problem& p) const {
    const milp_solution s = first.solve(p);
    return s.status == milp_status::unsolved ? second.solve(p) : s;
  }
};
static_assert(check_milp_solver<one_then_another<no_milp, no_milp>>());
// [milp_solver]

/// Splits layers in proportion to the devices' memories, largest memory first, as exo does.
[[nodiscard]] plan_result by_memory(const planning_problem& problem, const any_objective& objective, int /*keep*/ = 1,
                                    const candidate_observer& observer = {}) {
  std::vector<device> roomiest(problem.cluster.devices().begin(), problem.cluster.devices().end());
  std::stable_sort(roomiest.begin(), roomiest.end(),
                   [](const device& a, const device& b) { return a.usable_memory() > b.usable_memory(); });
  bytes total, taken;
  for (const device& d : roomiest) total += d.usable_memory();

  const auto layers = all_layers(problem.model);
  const int size = problem.job.candidate_microbatch_sizes().front();
  plan p = blank_plan(problem, "by-memory", size);
  std::size_t first = 0;
  for (const device& d : roomiest) {
    taken += d.usable_memory();
    const auto last = static_cast<std::size_t>(std::lround(taken / total * static_cast<double>(layers.size())));
    if (last == first) continue;
    p.stages.push_back({.name = d.name,
                        .layers = {layers.begin() + static_cast<std::ptrdiff_t>(first), layers.begin() + static_cast<std::ptrdiff_t>(last)},
                        .devices = {{d.id, size}}});
    first = last;
  }
  return recipes::judge_choice(problem, objective, std::move(p), observer);
}

/// Serves one request at a time on single devices: the smallest sum of all steps, with transfers alone on their wires.
[[nodiscard]] plan_result shortest_way(const planning_problem& problem, const any_objective& objective, int /*keep*/ = 1,
                                       const candidate_observer& observer = {}) {
  const planning_graph chain = chain_view(problem.model);
  const cluster view = uncontended(problem.cluster);
  plan chosen = recipes::choose_on_view(problem, "shortest-way", chain, view, {.law = sum_and_largest{}, .largest_group = 1});
  return recipes::judge_choice(problem, objective, std::move(chosen), observer);
}

/// Cuts the model in two for the two fastest devices, where the slower step by FLOP is shortest.
[[nodiscard]] plan_result two_halves(const planning_problem& problem, const any_objective& objective, int keep = 10,
                                     const candidate_observer& observer = {}) {
  ranking best(problem, objective, keep);
  std::vector<device> fastest(problem.cluster.devices().begin(), problem.cluster.devices().end());
  std::stable_sort(fastest.begin(), fastest.end(), [](const device& a, const device& b) { return a.compute > b.compute; });
  if (fastest.size() < 2 || problem.model.size() < 2) return std::move(best).result();

  std::size_t cut = 1;
  double least = std::numeric_limits<double>::infinity();
  flops before;
  for (std::size_t l = 1; l < problem.model.size(); ++l) {
    before += problem.model.layers()[l - 1].forward_flops;
    const flops after = problem.model.forward_flops() - before;
    const double step = std::max(before / fastest[0].compute, after / fastest[1].compute).value();
    if (step < least) least = step, cut = l;
  }

  const auto layers = all_layers(problem.model);
  const auto middle = layers.begin() + static_cast<std::ptrdiff_t>(cut);
  const auto sizes = problem.job.candidate_microbatch_sizes();
  for (const int size : sizes) {
    plan p = blank_plan(problem, "two-halves", size);
    p.stages = {{.name = "front", .layers = {layers.begin(), middle}, .devices = {{fastest[0].id, size}}},
                {.name = "back", .layers = {middle, layers.end()}, .devices = {{fastest[1].id, size}}}};
    if (best.consider(std::move(p), static_cast<long long>(sizes.size()), observer) == control::stop) break;
  }
  return std::move(best).result();
}

planning_graph blocks(int n) {
  planning_graph_builder b("blocks");
  for (int i = 0; i < n; ++i) {
    b.add_layer({.name = "block" + std::to_string(i), .kind = "block", .forward_flops = 30_GFLOP, .weight = 40_MB, .activation = 8_MB});
    if (i > 0) b.add_edge(layer_id(i - 1), layer_id(i), 1_MB);
  }
  return std::move(b).build();
}

std::vector<device> laptop_and_phone() {
  return {{.name = "laptop", .memory = 4_GB, .compute = 5_TFLOP_per_s, .power = {8_W, 50_W}},
          {.name = "phone", .memory = 2_GB, .compute = 1.6_TFLOP_per_s, .power = {1_W, 8_W}}};
}

}  // namespace

TEST_CASE("Dora takes device orderings and schedulers as options") {
  const planning_graph model = blocks(4);
  const cluster home("home", laptop_and_phone(), shared_medium{600_Mbit_per_s, 2_ms});
  const planning_problem problem{model, home, roofline{}, job{.batch = 4}};
  // [device_ordering]
  // The cluster's classes in reverse order of the tables.
  const auto least_memory_first = [](const partition::search_tables& t, int largest_group) {
    std::vector<std::size_t> order(t.classes.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = order.size() - 1 - i;
    return std::vector{partition::in_class_order(t.classes, order, largest_group)};
  };
  recipes::partitioner_options how;
  how.orders = least_memory_first;
  // [device_ordering]
  CHECK(recipes::dora_partitioner(problem, minimize_latency{}, 1, how).status.ok());
  // [transfer_scheduler]
  // Oldest first: the transfer that may start earliest on an idle network.
  recipes::dora_options oldest_first;
  oldest_first.network.scheduler = schedule::listed_transfers{schedule::earliest_first{}};
  // [transfer_scheduler]
  const plan_result by_age = recipes::dora(problem, minimize_latency{}, 1, oldest_first);
  CHECK(by_age.status.ok());
  // [search_start]
  // Two starts: messages in order of their numbers (a larger priority is later), and in order of their ends without contention.
  const auto by_number = [](const schedule::cep_graph& cep, const trace&) {
    schedule::message_rules rules(cep.messages(), {schedule::chunk_rule{}});
    for (std::size_t m = 0; m < rules.size(); ++m) rules[m][0].priority = static_cast<int>(m);
    return rules;
  };
  const std::vector<schedule::any_search_start> starts{by_number, schedule::order_of_ends{}};
  // [search_start]
  // [search_move]
  // The two chunks swap priorities.
  const auto swap_places = [](const schedule::cep_graph&, schedule::message_rules rules, const schedule::contention& at) {
    std::swap(rules[at.urgent.message][at.urgent.chunk].priority, rules[at.rival.message][at.rival.chunk].priority);
    return rules;
  };
  recipes::dora_options swapped;
  swapped.network.scheduler = schedule::searched_transfers{.search = {.starts = starts, .moves = {swap_places}}};
  // [search_move]
  const plan_result by_swaps = recipes::dora(problem, minimize_latency{}, 1, swapped);
  CHECK(by_swaps.status.ok());
}

TEST_CASE("a graph, a cluster and a plan are values that are made in one expression each") {
  planning_graph_builder b("toy");
  const layer_id stem = b.add_layer({.name = "stem", .forward_flops = 4_GFLOP, .weight = 8_MB, .activation = 2_MB});
  const layer_id left = b.add_layer({.name = "left", .forward_flops = 20_GFLOP, .weight = 60_MB, .activation = 4_MB});
  const layer_id right = b.add_layer({.name = "right", .forward_flops = 12_GFLOP, .trainable = false});
  const layer_id join = b.add_layer({.name = "join", .forward_flops = 2_GFLOP, .weight = 1_MB});
  b.add_edge(stem, left, 600_kB);
  b.add_edge(stem, right, 600_kB, 0_B);  // no gradient: right is frozen
  b.add_edge(left, join, 300_kB);
  b.add_edge(right, join, 300_kB, 0_B);
  const planning_graph model = std::move(b).build();

  const device laptop{.name = "laptop",
                      .kind = "rtx4050",
                      .memory = 6_GB,
                      .compute = 9_TFLOP_per_s,
                      .memory_bandwidth = 192_GB_per_s,
                      .half_batch = 3,
                      .launch = 10_us,
                      .power = {8_W, 50_W}};
  device phone{.name = "phone", .memory = 12_GB, .memory_budget = 8_GB, .compute = 1.6_TFLOP_per_s};
  phone.max_busy = 0.5;  // shared with the owner
  const cluster home("home", {laptop, phone}, shared_medium{600_Mbit_per_s, 2_ms});

  plan p{.model = model.name(), .cluster = home.name(), .microbatch_size = 2, .microbatches = 4};
  p.stages = {{.name = "front", .layers = {stem, left}, .devices = {{home.find("laptop"), 2}}},
              {.name = "back", .layers = {right, join}, .devices = {{home.find("phone"), 2}}}};
  if (const auto v = validate(p, model, home)) throw invalid_input(v->where + ": " + v->what);

  const judgement j = evaluate(p, model, home, roofline{});
  const evaluation& e = j.evaluation;
  const auto limit = find_broken_limit(e, home);  // the phone's memory, energy budget or busy share
  CHECK_FALSE(validate(p, model, home));
  CHECK(e.latency > 0_s);
  CHECK(e.bound <= e.latency);
  CHECK(e.schedule_bound <= e.latency);
  CHECK((limit.has_value() == (e.devices[1].busy / e.latency > 0.5)));

  const stage_graph g = make_stage_graph(p, model);
  CHECK(g.edges.size() == 1);
  CHECK(g.edges[0].forward_cut == 900_kB);  // stem -> right and left -> join
  CHECK(g.edges[0].backward_cut == 300_kB);
  CHECK(g[stage_id(0)].depth == 2);

  const stage_costs s(p, model, home, roofline{});
  CHECK(estimate(s).latency > 0_s);
  CHECK(estimate(s, {}, one_by_one{}).latency >= estimate(s).latency);
  CHECK(judge(s).evaluation.latency == e.latency);

  p.stages[0].devices[0].samples = 3;
  CHECK(validate(p, model, home)->where == "/stages/0/devices");

  const std::vector<double> scores = coarsen::compute_scores(home.devices(), roofline{}, model);  // samples/s
  const coarsen::device_groups groups = coarsen::group_devices(home, 1_MB, scores);
  CHECK(groups.regions.size() == 1);
  CHECK(groups.regions[0].classes.size() == 2);
}

TEST_CASE("work that no plan describes is a task graph too") {
  const cluster home("home", laptop_and_phone(), shared_medium{600_Mbit_per_s, 2_ms});
  const device_id laptop(0), phone(1);

  tasks::task_graph_builder b(home.size());
  const auto produce = b.add(tasks::compute_task{.device = laptop, .duration_s = 0.5, .takes_bytes = 1e8, .releases_bytes = 1e8});
  const auto consume = b.add(tasks::compute_task{.device = phone, .duration_s = 0.2});
  const std::uint32_t way = b.add_route(*home.network().find(laptop, phone));
  const auto send = b.add(tasks::transfer{.from = laptop, .to = phone, .route = way, .volume_bytes = 15e6, .latency_s = 0.002});
  b.depend(produce, send);
  b.depend(send, consume);
  b.append_to_order(produce);
  b.append_to_order(consume);
  b.add(tasks::transfer{.from = phone, .to = laptop, .route = way, .volume_bytes = 75e6, .release_s = 0.1});  // a background download
  const trace t = simulate(std::move(b).build(), home.network());

  // 15 MB at 75 MB/s take 0.2 s alone and 0.4 s beside the download.
  CHECK(t.transfers[0].end_s == Approx(0.5 + 0.002 + 0.4));
  CHECK(t.computes[1].end_s == Approx(1.102));
  CHECK(t.peak_bytes[0] == 1e8);
}

TEST_CASE("a table of times is a cost model, and any model can be chosen at run time") {
  const planning_graph model = blocks(4);
  const cluster home("home", laptop_and_phone(), shared_medium{600_Mbit_per_s, 2_ms});
  const bool measured = true;
  const any_cost_model chosen = measured ? any_cost_model(table_model{{{"block", 0.004}}}) : any_cost_model(roofline{});
  const planning_problem problem{model, home, chosen, job{.batch = 8}};
  const plan_result r = recipes::on_device(problem, minimize_latency{});
  REQUIRE(r.status.ok());
  CHECK(r.plans.front().evaluation.latency.value() == Approx(4 * 3 * 8 * 0.004));
}

TEST_CASE("a cost model that times the optimizer's step makes an iteration longer by it") {
  const planning_graph model = blocks(4);
  device d = laptop_and_phone().front();
  d.memory_bandwidth = 28_GB_per_s;
  const cluster alone("alone", d);
  const auto latency = [&](auto cost) {
    return recipes::on_device(planning_problem{model, alone, cost, job{.batch = 8}}, minimize_latency{}).plans.front().evaluation.latency;
  };
  CHECK((latency(with_adam{}) - latency(roofline{})).value() == Approx(4 * 7 * 40e6 / 28e9));
}

TEST_CASE("recomputing activations saves memory and costs time") {
  const planning_graph model = blocks(4);
  const cluster home("home", laptop_and_phone(), shared_medium{600_Mbit_per_s, 2_ms});
  const job training{.batch = 8};
  const planning_problem keeping{model, home, roofline{}, training};
  const planning_problem recomputing{model, home, recomputing_time{}, training, judge_models{recomputing_memory{}}};
  const plan_result a = recipes::on_device(keeping, minimize_latency{}), b = recipes::on_device(recomputing, minimize_latency{});
  CHECK(b.plans.front().evaluation.peak_memory() < a.plans.front().evaluation.peak_memory());
  CHECK(b.plans.front().evaluation.latency > a.plans.front().evaluation.latency);
}

TEST_CASE("a network of one's own joins a cluster") {
  std::vector<device> devices = laptop_and_phone();
  devices.push_back({.name = "tv", .memory = 2_GB, .compute = 1_TFLOP_per_s});
  const cluster flat("flat", devices, two_rooms{.in_first_room = 2});
  CHECK(flat.network().peak_bandwidth(device_id(0), device_id(1)) == 150_Mbit_per_s);
  CHECK(flat.network().peak_bandwidth(device_id(0), device_id(2)) == 80_Mbit_per_s);
  const planning_graph model = blocks(6);
  CHECK(recipes::pipeline(planning_problem{model, flat, roofline{}, job{.batch = 8}}, minimize_latency{}).status.ok());
}

TEST_CASE("a policy of one's own decides who waits") {
  const planning_graph model = blocks(6);
  const cluster home("home", laptop_and_phone(), shared_medium{600_Mbit_per_s, 2_ms});
  const plan_result r = recipes::data_parallel(planning_problem{model, home, roofline{}, job{.batch = 8}}, minimize_latency{});
  REQUIRE(r.status.ok());
  const plan& p = r.plans.front().plan;
  const tasks::task_graph work = tasks::expand(p, model, home, roofline{});
  const trace polite = simulate(work, home.network(), reductions_last{});
  CHECK(polite.latency.value() > 0);
}

TEST_CASE("an objective and a solver of one's own are arguments like any other") {
  const planning_graph model = blocks(6);
  const cluster home("home", laptop_and_phone(), shared_medium{600_Mbit_per_s, 2_ms});
  const planning_problem problem{model, home, roofline{}, job{.batch = 8}, judge_models{}, small_only<no_lp>{}};
  const plan_result r = recipes::pipeline(problem, energy_delay{});
  REQUIRE(r.status.ok());
  for (const ranked_plan& p : r.plans) CHECK(score(energy_delay{}, r.plans.front().evaluation) <= score(energy_delay{}, p.evaluation));
  const plan_result even = recipes::pipeline(problem, even_drain{});
  REQUIRE(even.status.ok());
  CHECK(score(even_drain{}, even.plans.front().evaluation) <= score(even_drain{}, r.plans.front().evaluation));
}

TEST_CASE("planners with one answer of their own are judged as they are") {
  const planning_graph model = blocks(6);
  const cluster home("home", laptop_and_phone(), shared_medium{600_Mbit_per_s, 2_ms});
  const planning_problem problem{model, home, roofline{}, job{.batch = 8}};
  const plan_result weighted = by_memory(problem, minimize_latency{});
  REQUIRE(weighted.candidates == 1);
  REQUIRE(weighted.status.ok());
  const auto& stages = weighted.plans.front().plan.stages;
  REQUIRE(stages.size() == 2);
  CHECK(home.find(stages.front().name).index() == stages.front().devices.front().device.index());
  CHECK(home[stages.front().devices.front().device].usable_memory() >= home[stages.back().devices.front().device].usable_memory());
  CHECK(stages.front().layers.size() + stages.back().layers.size() == model.size());
  CHECK(stages.front().layers.size() >= stages.back().layers.size());
  const plan_result shortest = shortest_way(problem, minimize_latency{});
  REQUIRE(shortest.status.ok());
  CHECK(shortest.plans.front().plan.planner == "shortest-way");
  CHECK(two_halves(problem, minimize_latency{}).plans.front().evaluation.latency.value() > 0);
}

TEST_CASE("a planner of one's own is a function and is ranked by the same judge") {
  const planning_graph model = blocks(6);
  const cluster home("home", laptop_and_phone(), shared_medium{600_Mbit_per_s, 2_ms});
  const planning_problem problem{model, home, roofline{}, job{.batch = 8}};
  const plan_result r = two_halves(problem, minimize_latency{});
  REQUIRE(r.status.ok());
  CHECK(r.plans.front().plan.stages.size() == 2);
  CHECK(r.plans.front().plan.stages[0].layers.size() == 5);
  CHECK(r.candidates == 4);
  CHECK(r.plans.front().evaluation.bound <= r.plans.front().evaluation.latency);
}

TEST_CASE("plans are kept by criteria of one's own, and what a set of them is worth is a number") {
  const planning_graph model = blocks(6);
  const cluster home("home", laptop_and_phone(), shared_medium{600_Mbit_per_s, 2_ms});
  const planning_problem problem{model, home, roofline{}, job{.batch = 8}};

  const plan_result r = recipes::pipeline(problem, minimize_latency{}, 50);
  const mix::pareto_set<std::size_t> front = mix::pareto_plans(r.plans, mix::response_time{}, least_room{});
  for (const auto& e : front.entries()) CHECK(e.point[0] == r.plans[e.item].evaluation.response().value());  // fastest first
  const double worth = mix::hypervolume(front, std::vector{100.0, 2.0});  // reference: 100 s and twice as busy as possible

  CHECK(front.size() > 1);
  CHECK(worth > 0);
  CHECK(worth < 200);
}

TEST_CASE("a timeline changes conditions, and a job lives through it") {
  const planning_graph model = blocks(6);
  const cluster home("home", laptop_and_phone(), shared_medium{600_Mbit_per_s, 2_ms});
  const planning_problem problem{model, home, roofline{}, job{.batch = 8}};
  const device_id laptop = home.find("laptop"), phone = home.find("phone");

  const adapt::timeline evening{600_s,
                                {{60_s, adapt::capacity_becomes{resource_id(0), 150_Mbit_per_s}},
                                 {90_s, adapt::speed_becomes{laptop, 0.5}},
                                 {200_s, adapt::device_leaves{phone}},
                                 {400_s, adapt::device_joins{phone}},
                                 {450_s, adapt::transfer_begins{laptop, phone, 500_MB}},
                                 {500_s, adapt::qoe_becomes{.latency = 3_s}}}};
  adapt::check_timeline(evening, home);
  adapt::conditions now = adapt::nominal(home);
  for (const adapt::event& e : evening.events) {
    if (e.at <= 300_s) apply(now, e);
  }
  CHECK(now.speed[laptop.index()] == 0.5);
  CHECK(!now.works(phone));

  adapt::static_plan policy(recipes::on_device(problem, minimize_latency{}).plans.front().plan);
  const adapt::history h = run(problem, evening, policy, adapt::run_options<by_waiting>{});
  CHECK(h.status.ok());
  double end_s = 0;
  for (const adapt::stretch& s : h.stretches) {
    CHECK(s.start_s == end_s);
    end_s = s.end_s;
  }
  CHECK(end_s == 600);

  CHECK(h.iterations > 0);
  const std::vector<seconds> known = adapt::times_known(evening, by_waiting{});
  CHECK(known[1] == 120_s);
  CHECK(known[2] == 204_s);
  CHECK(known[5] == 500_s);
}

TEST_CASE("what a switch moves is a value, and the simulator says what it takes") {
  const planning_graph model = blocks(6);
  const cluster home("home", laptop_and_phone(), shared_medium{600_Mbit_per_s, 2_ms});
  const device_id laptop(0), phone(1);
  plan p{.model = model.name(), .cluster = home.name(), .microbatch_size = 2, .microbatches = 4};
  p.stages = {{.name = "front", .layers = {layer_id(0), layer_id(1), layer_id(2), layer_id(3)}, .devices = {{laptop, 2}}},
              {.name = "back", .layers = {layer_id(4), layer_id(5)}, .devices = {{phone, 2}}}};

  const adapt::conditions now = adapt::nominal(home);
  plan next = p;
  next.stages[0].layers.pop_back();
  next.stages[1].layers.insert(next.stages[1].layers.begin(), layer_id(3));  // block3 moves from the laptop to the phone
  const adapt::holdings held = adapt::holdings_of(p, model, home.size());
  const adapt::migration m = delta_migration(held, next, model, home, now);
  CHECK(m.volume() == 120_MB);  // its weights and, for Adam, twice as many bytes of state
  const adapt::migration_run run = run_migration(m, home, now);
  CHECK(run.time.value() == Approx(0.002 + 120e6 / 75e6));
}

TEST_CASE("any recipe behind a callable can be asked again") {
  const planning_graph model = blocks(6);
  const cluster home("home", laptop_and_phone(), shared_medium{600_Mbit_per_s, 2_ms});
  const planning_problem problem{model, home, roofline{}, job{.batch = 8}};

  // [planner]
  const auto two_stages = [](const auto& q) { return two_halves(q, objective_of_job(q.job)); };
  adapt::replan_always policy(problem, two_stages);
  // [planner]

  const adapt::timeline slow{60_s, {{20_s, adapt::speed_becomes{device_id(0), 0.25}}}};
  const adapt::history h = run(problem, slow, policy);
  CHECK(h.status.ok());
  REQUIRE(h.plans.size() == 1);  // replanning finds nothing better
  CHECK(h.plans[0].planner == "two-halves");
}

TEST_CASE("requests are served by a deployment that is written by hand, or placed by a value of one's own") {
  const serve::edge_server pole{
      .name = "pole", .gpus = {{"P100", 16_GB}, {"P100", 16_GB}}, .uplink = 1_Gbit_per_s, .downlink = 1_Gbit_per_s, .latency = 1_ms};
  const serve::edge_cloud street{"street", {pole}, {.period = 100_ms}};
  const std::vector<serve::service> services{{.name = "image",
                                              .latency = 200_ms,
                                              .request_size = 100_kB,
                                              .variants = {{.name = "half", .gpu_kind = "P100", .compute_share = 0.5, .memory = 4_GB}}}};

  const serve::request_process bursts{.rates = {{.service = serve::service_id(0), .server = serve::server_id(0), .per_s = 50, .cv = 2}},
                                      .duration = 60_s};
  const serve::request_stream requests = draw_requests(bursts, street, services, 7);

  const serve::gpu_slot first{serve::server_id(0), 0};
  const serve::deployment placed{{{.what = serve::service_id(0), .gpus = {first}, .batch = 16},  // two halves of one GPU
                                  {.what = serve::service_id(0), .gpus = {first}, .batch = 16}}};

  const serve::any_service_time times(serve::service_time_table({{{.pass = {{1, 16}, {0.02, 0.12}}}}}));
  serve::serve_locally handler;
  const serve::service_history h = serve_requests(street, services, times, requests, placed, handler);
  CHECK(h.requests() == requests.size());
  CHECK(h.attainment() == h.credit() / static_cast<double>(requests.size()));
  CHECK(h.attainment() > 0.9);

  const serve::placement_candidates candidates(street, services, times, {});
  const serve::gpu_choice free_gpus(street, services, {}, {});
  variety value{std::vector<char>(services.size(), 0)};
  serve::greedy_placement placing(candidates, free_gpus, value, serve::greedy_search::lazy, serve::greedy_order::gain_per_gpu);
  placing.place_within_servers();
  CHECK(placing.placed().instances.size() == 1);  // the only service, once
}
