// SPDX-License-Identifier: BSL-1.0
// Archetypes: types with the members of a concept and nothing else, accepted by every algorithm that asks for the concept. They have
// no default constructor, no comparison and no address; those that algorithms only refer to cannot be copied or moved.
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/adapt/ladder.hpp>
#include <hetplan/adapt/run.hpp>
#include <hetplan/estimate/bounds.hpp>
#include <hetplan/estimate/estimate.hpp>
#include <hetplan/graph/bgl.hpp>
#include <hetplan/hetplan.hpp>
#include <hetplan/mix/mixing_controller.hpp>
#include <hetplan/mix/pareto_set.hpp>
#include <hetplan/mix/progress.hpp>
#include <hetplan/partition/partial_store.hpp>
#include <hetplan/partition/search_context.hpp>
#include <hetplan/partition/two_substate_dp.hpp>
#include <hetplan/place/contiguous_partition.hpp>
#include <hetplan/place/list_schedule.hpp>
#include <hetplan/place/solve_placement.hpp>
#include <hetplan/schedule/exact_schedule.hpp>
#include <hetplan/schedule/local_search.hpp>
#include <hetplan/schedule/order_plan.hpp>
#include <hetplan/schedule/transfer_scheduler.hpp>
#include <hetplan/serve/greedy_placement.hpp>
#include <hetplan/serve/request_handlers.hpp>
#include <hetplan/serve/serve_requests.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/simulate/observed_run.hpp>
#include <hetplan/solve/lp.hpp>

using namespace hetplan;

namespace {

/// Base of archetypes that algorithms only refer to.
struct bare {
  explicit bare(int) {}
  bare() = delete;
  bare(const bare&) = delete;
  bare(bare&&) = delete;
  bare& operator=(const bare&) = delete;
  bare& operator=(bare&&) = delete;
  ~bare() = default;
  bare* operator&() = delete;
  const bare* operator&() const = delete;
  template <class T>
  void operator,(T&&) const = delete;
};

/// Base of archetypes that algorithms hold by value, and therefore copy once.
struct bare_value {
  explicit bare_value(int) {}
  bare_value() = delete;
  bare_value(const bare_value&) = default;
  bare_value& operator=(const bare_value&) = delete;
  ~bare_value() = default;
  bare_value* operator&() = delete;
  const bare_value* operator&() const = delete;
  template <class T>
  void operator,(T&&) const = delete;
};

struct cost_archetype : bare_value {
  using bare_value::bare_value;
  [[nodiscard]] seconds time(const work& w, const device&) const { return 1_ms * w.batch; }
};
struct boundary_archetype : cost_archetype {
  using cost_archetype::cost_archetype;
  [[nodiscard]] seconds boundary(const layer&, const layer&, const work_kind&, const device&) const { return 1_s; }
};
struct memory_archetype : bare_value {
  using bare_value::bare_value;
  [[nodiscard]] bytes state(const layer&, const workload&) const { return 100_B; }
  [[nodiscard]] bytes activations(const layer&, const workload&) const { return 10_B; }
  [[nodiscard]] bytes cache(const layer&, const workload&) const { return 1_B; }
};
struct energy_archetype : bare_value {
  using bare_value::bare_value;
  [[nodiscard]] joules energy(const device_usage& u, const device&) const { return u.busy * 3_W; }
};
struct network_archetype : bare {
  using bare::bare;
  [[nodiscard]] std::vector<resource> resources(std::span<const device>) const { return {{"air", 0.1_MB_per_s}}; }
  [[nodiscard]] std::optional<route> find_route(std::span<const device>, device_id, device_id) const {
    return route{0_s, {{resource_id(0), 1}}};
  }
};
struct policy_archetype : bare_value {
  using bare_value::bare_value;
  [[nodiscard]] int tier(const tasks::transfer&) const { return 0; }
  [[nodiscard]] route_access access() const { return route_access::shared; }
};
struct sharing_archetype : bare_value {  // one medium of 100 kB/s; `flows` is not part of the concept
  using bare_value::bare_value;
  transfers_under_way flows;
  void start(double now_s, std::uint32_t number, const tasks::transfer& t, std::span<const resource_use> route) {
    flows.start(now_s, number, t, route);
  }
  void update(double now_s, const rate_changed& changed) {
    for (const auto& f : flows) flows.set_rate(now_s, f.number, 1e5 / static_cast<double>(flows.size()), changed);
  }
  [[nodiscard]] double next_end() { return flows.next_end(); }
  void finish_until(double time_s, const transfer_finished& finished) { flows.finish_until(time_s, finished); }
};
struct objective_archetype : bare_value {
  using bare_value::bare_value;
  [[nodiscard]] double score(const evaluation& e) const { return -e.latency.value(); }  // prefers slow plans
};
struct monotone_objective_archetype : bare_value {
  using bare_value::bare_value;
  [[nodiscard]] double score(seconds response, joules) const { return response.value(); }
};
struct criterion_archetype : bare {
  using bare::bare;
  [[nodiscard]] double value(const evaluation& e) const { return -e.latency.value(); }  // prefers slow plans
};
struct solver_archetype : bare_value {
  using bare_value::bare_value;
  [[nodiscard]] lp_solution solve(const lp_problem&) const { return {}; }
};
struct warm_solver_archetype : solver_archetype {
  using solver_archetype::solve;
  using solver_archetype::solver_archetype;
  [[nodiscard]] lp_solution solve(const lp_problem&, const lp_basis&) const { return {}; }
};
struct milp_solver_archetype : bare {
  using bare::bare;
  [[nodiscard]] milp_solution solve(const milp_problem&) const { return {}; }
};
struct starting_milp_solver_archetype : milp_solver_archetype {
  using milp_solver_archetype::milp_solver_archetype;
  using milp_solver_archetype::solve;
  [[nodiscard]] milp_solution solve(const milp_problem&, const std::vector<double>&) const { return {}; }
};
struct priority_archetype : bare {
  using bare::bare;
  [[nodiscard]] double urgency(const tasks::transfer& t, const schedule::transfer_times&) const { return -t.microbatch; }
};
struct dispatch_archetype : bare {
  using bare::bare;
  [[nodiscard]] std::optional<std::size_t> next(const dispatch_view& v) const { return v.ready.size() - 1; }
};
struct pipeline_schedule_archetype : bare {
  using bare::bare;
  [[nodiscard]] schedule::orders_by_device orders(const schedule::pipeline_times& t) const {
    schedule::orders_by_device all(t.devices());
    for (const phase what : {phase::forward, phase::backward_input}) {
      for (int k = 0; k < t.microbatches; ++k) {
        for (std::size_t i = 0; i < t.stages.size(); ++i) {
          const std::size_t s = what == phase::forward ? i : t.stages.size() - 1 - i;
          all[t.stages[s].device].push_back({what, stage_id(s), k});
        }
      }
    }
    return all;
  }
};
struct kept_dispatch_archetype : bare_value {
  using bare_value::bare_value;
  [[nodiscard]] std::optional<std::size_t> next(const dispatch_view&) const { return 0; }
};
struct schedule_observer_archetype : bare {
  using bare::bare;
  int seen = 0;
  control operator()(const schedule::schedule_tried&) { return ++seen < 2 ? control::go : control::stop; }
};
struct task_observer_archetype : bare {
  using bare::bare;
  int seen = 0;
  control operator()(const task_ended&) {
    ++seen;
    return control::go;
  }
};
struct candidate_observer_archetype : bare {
  using bare::bare;
  int seen = 0;
  control operator()(const candidate_judged&) { return ++seen < 2 ? control::go : control::stop; }
};

/// The graph 3 -> 5 -> 7, whose edges are named by their source vertex.
struct graph_archetype : bare {
  using bare::bare;
  struct edge_list {};
  using vertex_descriptor = int;
  using edge_descriptor = int;
  using directed_category = boost::directed_tag;
  using edge_parallel_category = boost::disallow_parallel_edge_tag;
  using traversal_category = edge_list;
  std::array<int, 3> all{3, 5, 7};

  using range = std::pair<const int*, const int*>;
  friend range vertices(const graph_archetype& g) { return {g.all.data(), g.all.data() + 3}; }
  friend range edges(const graph_archetype& g) { return {g.all.data(), g.all.data() + 2}; }
  friend int source(int e, const graph_archetype&) { return e; }
  friend int target(int e, const graph_archetype&) { return e + 2; }
};
struct layers_archetype : bare {
  using bare::bare;
  layer_spec operator()(int v) const { return {.name = std::to_string(v), .forward_flops = 1_GFLOP}; }
};
struct tensors_archetype : bare {
  using bare::bare;
  bytes operator()(int e) const { return bytes(e); }
};
struct decomposition_archetype : bare_value {
  using bare_value::bare_value;
  layer_sequence operator()(const planning_graph& model) const { return sequence_of(model); }
};
/// A law without overlap: stages and links run in turn.
struct law_archetype : bare_value {
  using bare_value::bare_value;
  [[nodiscard]] pipeline_tail extend(const pipelining& p, const stage_times& s, const pipeline_tail& behind) const {
    return {p.microbatches * s.total_s + behind.reach_s, 0};
  }
  [[nodiscard]] pipeline_tail extend(const pipelining&, const link_times& c, const pipeline_tail& behind) const {
    return {c.own_s + behind.reach_s, 0};
  }
  [[nodiscard]] double response_s(const pipelining&, const pipeline_tail& whole) const { return whole.reach_s; }
};
struct ordering_archetype : bare_value {
  using bare_value::bare_value;
  std::vector<partition::device_space> operator()(const partition::search_tables& t, int largest_group) const {
    return {partition::by_memory(t, largest_group)};
  }
};
struct scheduler_archetype : bare_value {
  using bare_value::bare_value;
  schedule::network_schedule operator()(const schedule::cep_graph& cep, const schedule::scheduling_limits&) const {
    return schedule::list_schedule(cep);
  }
};
struct search_start_archetype : bare_value {
  using bare_value::bare_value;
  schedule::message_rules operator()(const schedule::cep_graph& cep, const trace&) const { return {cep.messages(), {{.priority = 1}}}; }
};
struct search_move_archetype : bare_value {
  using bare_value::bare_value;
  schedule::message_rules operator()(const schedule::cep_graph&, schedule::message_rules rules, const schedule::contention&) const {
    return rules;
  }
};
/// Always mixes the first plan alone.
struct mixing_controller_archetype : bare_value {
  using bare_value::bare_value;
  mix::mixture operator()(const mix::plan_rates& rates, const mix::mixing_goal& goal) const {
    return {.parts = {{0, 0, goal.horizon_s}}, .progress = rates.plans[0].rate * goal.horizon_s};
  }
};
struct cell_policy_archetype : bare {
  using bare::bare;
  [[nodiscard]] std::size_t capacity() const { return 2; }
  [[nodiscard]] bool covers(const partition::partial_plan&, const partition::partial_plan&) const { return false; }
};
struct part_load_archetype {
  int nodes = 0;
  void add(std::size_t) { ++nodes; }
  void remove(std::size_t) { --nodes; }
  [[nodiscard]] double load(std::size_t) const { return nodes; }
  [[nodiscard]] double work(std::size_t, std::size_t) const { return 0; }
};
struct estimator_archetype : bare {
  using bare::bare;
  [[nodiscard]] seconds latency(const pipeline_steps& s) const { return 1_s * static_cast<double>(s.stages.size()); }
};
struct cell_observer_archetype : bare {
  using bare::bare;
  int seen = 0;
  control operator()(const partition::cell_filled&) {
    ++seen;
    return control::go;
  }
};

/// Puts all layers on one device, and moves them once that device is gone.
struct adaptation_policy_archetype : bare {
  using bare::bare;
  int asked = 0;
  [[nodiscard]] adapt::reaction react(const adapt::situation& s) {
    ++asked;
    if (s.can_run) return {};
    const device_id there(s.noticed.works(device_id(0)) ? 0 : 1);
    return {
        .next = plan{.microbatches = 4, .stages = {{.name = "s", .layers = {layer_id(0), layer_id(1), layer_id(2)}, .devices = {{there}}}}},
        .how = adapt::switching::at_no_cost};
  }
};
struct failure_detector_archetype {
  explicit failure_detector_archetype(int) {}
  [[nodiscard]] seconds noticed(seconds at) const { return at + 1_s; }
  [[nodiscard]] seconds seen(seconds at) const { return at; }
};
struct run_observer_archetype : bare {
  using bare::bare;
  int seen = 0;
  control operator()(const adapt::run_progress&) {
    ++seen;
    return control::go;
  }
};
/// A planner with copy construction only, which policies need to own it.
struct planner_archetype {
  explicit planner_archetype(int) {}
  planner_archetype(const planner_archetype&) = default;
  planner_archetype& operator=(const planner_archetype&) = delete;
  template <class Problem>
  [[nodiscard]] plan_result operator()(const Problem& problem) const {
    plan p = blank_plan(problem, "bare", 1);
    p.stages = {{.name = "s", .layers = all_layers(problem.model), .devices = {{device_id(0)}}}};
    return {.plans = {{p, judge(p, problem.model, problem.cluster, problem.cost, problem.models).evaluation}}};
  }
};

/// Takes the server's first instance, even if it is late.
struct request_handler_archetype : bare {
  using bare::bare;
  int asked = 0;
  [[nodiscard]] serve::decision handle(const serve::pending_request&, const serve::server_view& here) {
    ++asked;
    const auto own = here.own(serve::standing::local);
    return own.empty() ? serve::decision::turn_down(serve::request_outcome::no_resources) : serve::decision::serve(own[0]);
  }
};
struct service_time_archetype : bare_value {
  using bare_value::bare_value;
  [[nodiscard]] seconds pass(const serve::service_run&, const serve::batch_load& b) const { return 10_ms * b.requests; }
  [[nodiscard]] seconds step(const serve::service_run&, int) const { return 1_ms; }
  [[nodiscard]] int largest_batch(const serve::service_run&) const { return 4; }
};
/// Places one instance on the first GPU.
struct placement_policy_archetype : bare_value {
  using bare_value::bare_value;
  [[nodiscard]] serve::deployment place(const serve::placement_question&) {
    return {{{.what = serve::service_id(0), .gpus = {{serve::server_id(0), 0}}, .batch = 4}}};
  }
};
/// Credits the first two instances with their capacity and all others with nothing.
struct placement_value_archetype : bare {
  using bare::bare;
  int placed = 0;
  [[nodiscard]] serve::placement_gain most(serve::server_id, const serve::allocation& a) const { return {a.capacity, 0}; }
  [[nodiscard]] serve::placement_gain gain(const serve::instance&, const serve::allocation& a) const {
    return {placed < 2 ? a.capacity : 0, 0};
  }
  void add(const serve::instance&, const serve::allocation&) { ++placed; }
};
struct serving_observer_archetype : bare {
  using bare::bare;
  control operator()(const serve::serving_progress&) { return control::go; }
};

static_assert(serve::check_request_handler<request_handler_archetype>() && serve::check_service_time<service_time_archetype>());
static_assert(serve::check_placement_policy<placement_policy_archetype>() && serve::check_placement_value<placement_value_archetype>());
static_assert(check_observer<serving_observer_archetype, serve::serving_progress>());
static_assert(adapt::check_adaptation_policy<adaptation_policy_archetype>() && adapt::check_failure_detector<failure_detector_archetype>());
static_assert(check_observer<run_observer_archetype, adapt::run_progress>());
static_assert(check_cost_model<cost_archetype>() && check_memory_model<memory_archetype>() && check_energy_model<energy_archetype>());
static_assert(check_cost_model<boundary_archetype>() && times_boundary<boundary_archetype> && !times_boundary<cost_archetype>);
static_assert(check_network_model<network_archetype>() && check_network_policy<policy_archetype>() &&
              check_network_sharing<sharing_archetype>());
static_assert(check_objective<objective_archetype>() && !monotone_objective<objective_archetype>);
static_assert(check_objective<monotone_objective_archetype>() && monotone_objective<monotone_objective_archetype>);
static_assert(check_layer_dag<graph_archetype, layers_archetype, tensors_archetype>());
static_assert(decompose::check_decomposition<decomposition_archetype>() && check_step_law<law_archetype>());
static_assert(partition::check_device_ordering<ordering_archetype>() && schedule::check_transfer_scheduler<scheduler_archetype>());
static_assert(schedule::check_search_start<search_start_archetype>() && schedule::check_search_move<search_move_archetype>());
static_assert(mix::check_criterion<criterion_archetype>() && mix::check_mixing_controller<mixing_controller_archetype>());
static_assert(check_lp_solver<solver_archetype>() && !warm_starts_lp<solver_archetype>);
static_assert(check_lp_solver<warm_solver_archetype>() && warm_starts_lp<warm_solver_archetype>);
static_assert(check_milp_solver<milp_solver_archetype>() && !starts_milp<milp_solver_archetype>);
static_assert(check_milp_solver<starting_milp_solver_archetype>() && starts_milp<starting_milp_solver_archetype>);
static_assert(schedule::check_transfer_priority<priority_archetype>() && check_dispatch_policy<dispatch_archetype>() &&
              schedule::check_pipeline_schedule<pipeline_schedule_archetype>());
static_assert(adapt::check_planner<planner_archetype>());
static_assert(place::check_part_load<part_load_archetype>() && partition::check_cell_policy<cell_policy_archetype>() &&
              check_latency_estimator<estimator_archetype>());
static_assert(check_observer<task_observer_archetype, task_ended>() && check_observer<candidate_observer_archetype, candidate_judged>());

planning_graph three_layers() {
  planning_graph_builder b("m");
  for (const char* name : {"a", "b", "c"}) b.add_layer({.name = name, .forward_flops = 1_GFLOP, .weight = 1_kB});
  b.add_edge("a", "b", 1_kB);
  b.add_edge("b", "c", 1_kB);
  return std::move(b).build();
}
cluster pair() {
  return {"pair",
          {{.name = "x", .memory = 1_GB, .compute = 1_TFLOP_per_s}, {.name = "y", .memory = 1_GB, .compute = 1_TFLOP_per_s}},
          network_archetype(0)};
}
serve::edge_cloud two_servers() {
  const serve::edge_server one{.name = "a", .gpus = {{"g", 1_GB}, {"g", 1_GB}}, .uplink = 1_MB_per_s, .downlink = 1_MB_per_s};
  serve::edge_cloud c{"street", {one, one}, {1_s}};
  c.servers[1].name = "b";
  return c;
}
const std::vector<serve::service> one_service{{.name = "s", .latency = 1_s, .variants = {{.name = "v", .gpu_kind = "g", .memory = 1_GB}}}};
plan two_stages(mode m = mode::training) {
  return {.workload = {.mode = m},
          .microbatches = 4,
          .stages = {{.name = "s", .layers = {layer_id(0)}, .devices = {{device_id(0)}}},
                     {.name = "t", .layers = {layer_id(1), layer_id(2)}, .devices = {{device_id(1)}}}}};
}

}  // namespace

TEST_CASE("a bare network makes a cluster") {
  const cluster c = pair();
  REQUIRE(c.network().find(device_id(0), device_id(1)) != nullptr);
  CHECK(c.network().peak_bandwidth(device_id(0), device_id(1)) == 0.1_MB_per_s);
}

TEST_CASE("a bare graph makes a planning graph") {
  const auto [model, vertex_of] = planning_graph_from(graph_archetype(0), layers_archetype(0), tensors_archetype(0));
  CHECK(model.edges()[1] == layer_edge{layer_id(1), layer_id(2), 5_B, 5_B});
  CHECK(vertex_of == std::vector{3, 5, 7});
}

TEST_CASE("bare models, a bare solver and a bare observer evaluate a plan in every mode") {
  const planning_graph g = three_layers();
  const cluster c = pair();
  for (const mode m : {mode::training, mode::inference, mode::generation}) {
    const cost_archetype cost(0);
    const judge_models judges{.memory = memory_archetype(0), .energy = energy_archetype(0)};
    const solver_archetype solver(0);
    task_observer_archetype watch(0);
    const judgement j = evaluate(two_stages(m), g, c, cost, judges, solver, {}, watch);
    CHECK(j.evaluation.latency.value() > 0);
    CHECK(j.evaluation.bound.value() > 0);
    CHECK(j.evaluation.peak_memory() >= 200_B);
    CHECK(j.evaluation.devices[0].energy == j.evaluation.devices[0].busy * 3_W);
    CHECK(watch.seen == static_cast<int>(j.graph.computes.size()));
  }
}

TEST_CASE("what bare models plan, a bare policy simulates") {
  const planning_graph g = three_layers();
  const cluster c = pair();
  const planning_problem problem{
      g, c, cost_archetype(0), job{.batch = 4}, {.memory = memory_archetype(0), .energy = energy_archetype(0)}, solver_archetype(0)};
  const plan_result r = recipes::pipeline(problem, monotone_objective_archetype(0), 10);
  REQUIRE(r.status.ok());
  const trace t = simulate(tasks::expand(r.plans.front().plan, g, c, cost_archetype(0), memory_archetype(0)), c.network(),
                           policy_archetype(0), {}, task_observer_archetype(0));
  CHECK(t.latency.value() > 0);
}

TEST_CASE("a bare policy simulates a task graph") {
  const planning_graph g = three_layers();
  const cluster c = pair();
  const tasks::task_graph work = tasks::expand(two_stages(), g, c, cost_archetype(0), memory_archetype(0));
  const policy_archetype policy(0);
  const trace bare_run = simulate(work, c.network(), policy, {}, task_observer_archetype(0));
  CHECK(bare_run == simulate(work, c.network(), fair_share{}));
}

TEST_CASE("a bare sharing simulates a task graph") {
  const planning_graph g = three_layers();
  const cluster c = pair();
  const tasks::task_graph work = tasks::expand(two_stages(), g, c, cost_archetype(0), memory_archetype(0));
  const trace bare_run = simulate(work, c.network(), sharing_archetype(0), {}, task_observer_archetype(0));
  CHECK(bare_run.latency.value() == Approx(simulate(work, c.network()).latency.value()));
}

TEST_CASE("a bare policy of the user's judges a plan instead of the one that the plan names") {
  const planning_graph g = three_layers();
  const cluster c = pair();
  plan p = two_stages();
  p.sharing_policy = sharing::exclusive;
  const judge_models judges{.memory = memory_archetype(0), .energy = energy_archetype(0), .network = policy_archetype(0)};
  const auto mine = judge(p, g, c, cost_archetype(0), judges).trace.transfers;
  CHECK(mine != judge(p, g, c, cost_archetype(0)).trace.transfers);
  p.sharing_policy = sharing::fair_share;
  CHECK(mine == judge(p, g, c, cost_archetype(0)).trace.transfers);
  const judge_models shared{.memory = memory_archetype(0), .energy = energy_archetype(0), .sharing = sharing_archetype(0)};
  CHECK(judge(p, g, c, cost_archetype(0), shared).evaluation.latency.value() ==
        Approx(judge(p, g, c, cost_archetype(0)).evaluation.latency.value()));
}

TEST_CASE("bare models fill a stage table and the bounds") {
  const planning_graph g = three_layers();
  const cluster c = pair();
  const prefix_table t(g, sequence_of(g), c, cost_archetype(0), memory_archetype(0), {}, 2);
  CHECK(t.time(0, 3, device_id(0), 2).total_s == Approx(3 * 3 * 0.002));
  CHECK(t.time(0, 3, device_id(0), 2).backward_s == Approx(3 * 2 * 0.002));
  CHECK(t.optimizer_s(0, 3, device_id(0)) == 0);
  CHECK(t.state_bytes(0, 3) == Approx(300));
  CHECK(plan_bound(two_stages(), g, c, cost_archetype(0), memory_archetype(0), solver_archetype(0), true).value() ==
        Approx(3 * 3 * 4e-3 / 2));
}

TEST_CASE("bare models, a bare objective and a bare observer plan") {
  const planning_graph g = three_layers();
  const cluster c = pair();
  const planning_problem problem{
      g, c, cost_archetype(0), job{.batch = 4}, {.memory = memory_archetype(0), .energy = energy_archetype(0)}, solver_archetype(0)};
  const objective_archetype slowest(0);
  for (const auto& result :
       {recipes::pipeline(problem, slowest), recipes::on_device(problem, slowest), recipes::data_parallel(problem, slowest)}) {
    REQUIRE(result.status.ok());
    REQUIRE_FALSE(result.plans.empty());
    for (const ranked_plan& p : result.plans) CHECK(p.evaluation.latency <= result.plans.front().evaluation.latency);
  }
  const monotone_objective_archetype fastest(0);
  for (const auto& result :
       {recipes::pipeline(problem, fastest), recipes::on_device(problem, fastest), recipes::data_parallel(problem, fastest)}) {
    REQUIRE(result.status.ok());
    REQUIRE_FALSE(result.plans.empty());
    for (const ranked_plan& p : result.plans) CHECK(p.evaluation.latency >= result.plans.front().evaluation.latency);
  }
  candidate_observer_archetype impatient(0);
  const plan_result stopped = recipes::pipeline(problem, slowest, 10, impatient);
  CHECK(impatient.seen == 2);
  CHECK(stopped.status.result == outcome::stopped);
}

TEST_CASE("Dora takes a bare decomposition, law, ordering and scheduler, and uniform progress a bare controller") {
  const planning_graph g = three_layers();
  const cluster c = pair();
  const planning_problem problem{g, c, cost_archetype(0), job{.batch = 4}};
  recipes::partitioner_options options;
  options.rows = {decomposition_archetype(0)};
  options.law = law_archetype(0);
  options.orders = ordering_archetype(0);
  CHECK(recipes::dora_partitioner(problem, minimize_latency{}, 3, options).status.ok());
  recipes::dora_options both{.partitioner = options, .network = {.scheduler = scheduler_archetype(0)}};
  CHECK(recipes::dora(problem, minimize_latency{}, 3, both).status.ok());
  both.network.scheduler =
      schedule::searched_transfers{.search = {.starts = {search_start_archetype(0)}, .moves = {search_move_archetype(0)}}};
  CHECK(recipes::dora(problem, minimize_latency{}, 3, both).status.ok());

  mix::uniform_progress controller{.rates = {.plans = {{2, 9}, {1, 1}}}, .mixing = mixing_controller_archetype(0)};
  CHECK(controller.decide({.work_left = 10, .time_left_s = 100}).plan == 0);
  controller.mixing = mix::exact_mixing{};
  CHECK(controller.decide({.work_left = 10, .time_left_s = 100}).plan == 1);
}

TEST_CASE("a bare price of boundaries reaches Dora's search and the judge: where it is dear, no layer follows another") {
  const planning_graph g = three_layers();
  const cluster c = pair();
  const auto best = [&](const any_cost_model& cost, int slots = 2) {
    return recipes::dora(planning_problem{g, c, cost, job{.batch = 4}}, minimize_latency{}, 1, {.drafts = {.slots = slots}}).plans.at(0);
  };
  CHECK(best(boundary_archetype(0), 0).plan.stages.size() == 2);  // as many stages as devices: one boundary
  CHECK(best(boundary_archetype(0), 0).evaluation.latency > 3_s);
  CHECK(best(boundary_archetype(0)).plan.stages.size() == 3);  // the devices take turns: none
  CHECK(best(boundary_archetype(0)).evaluation.latency < 1_s);
  CHECK(best(cost_archetype(0)).evaluation.latency < 1_s);
}

TEST_CASE("a move-only cost model is held by value and adapted from plain seconds") {
  struct plain_seconds {
    std::unique_ptr<double> per_sample;
    [[nodiscard]] double time(const work& w, const device&) const { return *per_sample * w.batch; }
  };
  const any_cost_model held = assume_si<plain_seconds>{{std::make_unique<double>(0.001)}};
  const planning_graph g = three_layers();
  CHECK(evaluate(two_stages(), g, pair(), held).evaluation.latency ==
        evaluate(two_stages(), g, pair(), cost_archetype(0)).evaluation.latency);
}

TEST_CASE("the search takes a bare objective, cell policy and observer, and an estimate a bare estimator") {
  const planning_graph g = three_layers();
  const cluster c = pair();
  const layer_sequence row = sequence_of(g);
  const plan blank{.microbatch_size = 2, .microbatches = 4};
  const partition::search_tables tables(g, row, c, cost_archetype(0), memory_archetype(0), energy_archetype(0), blank.workload, 2);
  cell_observer_archetype watch(0);
  const auto found = partition::two_substate_dp(tables, partition::every_order(tables.classes, 2), blank, monotone_objective_archetype(0),
                                                cell_policy_archetype(0), {.plans = 2}, watch);
  CHECK(found.plans.size() == 2);
  CHECK(watch.seen > 0);
  CHECK(estimate(two_stages(), g, c, cost_archetype(0), memory_archetype(0), energy_archetype(0), estimator_archetype(0)).latency == 2_s);
  CHECK(place::contiguous_partition(g, std::array{2}, part_load_archetype{}).value == 2);
}

TEST_CASE("a bare dispatch policy and a bare schedule give orders, and dora tries them") {
  const planning_graph g = three_layers();
  const cluster c = pair();
  const planning_problem problem(g, c, cost_archetype(0), {.batch = 2});
  const plan dispatched = dispatch(two_stages(), problem, dispatch_archetype(0)),
             ordered = schedule::order_plan(two_stages(), problem, pipeline_schedule_archetype(0));
  CHECK(dispatched.schedule.kind == schedule_kind::explicit_orders);
  CHECK(ordered.schedule.kind == schedule_kind::explicit_orders);
  recipes::dora_options options;
  options.schedules.emplace_back("mine", kept_dispatch_archetype(0));
  CHECK(recipes::dora(problem, minimize_latency{}, 2, options).status.ok());
}

TEST_CASE("a bare criterion keeps plans, and a bare solver mixes them") {
  std::vector<ranked_plan> plans;
  for (const double s : {0.0, 1.0, 2.0}) plans.push_back({two_stages(), {.latency = seconds(s)}});
  const mix::pareto_set<std::size_t> kept = mix::pareto_plans(plans, criterion_archetype(0));
  REQUIRE(kept.size() == 1);
  CHECK(kept.entries()[0].item == 2);
  const mix::mixture m =
      mix::mix_relaxed({.plans = {{1, 2}}, .switches = {}, .idle_W = 1}, {.horizon_s = 1, .progress = 1}, solver_archetype(0));
  CHECK(m.status.result == outcome::stopped);
}

TEST_CASE("a bare priority, a bare observer and bare solvers schedule transfers") {
  const planning_graph g = three_layers();
  const cluster c = pair();
  const schedule::cep_graph cep(tasks::expand(two_stages(), g, c, cost_archetype(0), memory_archetype(0)), c.network());
  REQUIRE(cep.messages() > 2);
  const schedule::network_schedule listed = schedule::list_schedule(cep, priority_archetype(0));
  CHECK(listed.rules.size() == cep.messages());
  CHECK(schedule::urgency_sequence(cep, priority_archetype(0), {.chunks = 2}).size() == 2 * cep.messages());
  schedule_observer_archetype impatient(0);
  const schedule::network_schedule searched = schedule::local_search(cep, {}, impatient);
  CHECK(impatient.seen == static_cast<int>(searched.steps));
  for (const auto& r :
       {schedule::order_search(cep, listed, solver_archetype(0)), schedule::order_search(cep, listed, warm_solver_archetype(0))}) {
    CHECK(r.schedule.status.result == outcome::stopped);
    CHECK(r.schedule.latency == listed.latency);
  }
  const schedule::network_schedule exact = schedule::exact_schedule(cep, listed, milp_solver_archetype(0), {.most_transfers = 100});
  CHECK(exact.status.result == outcome::stopped);
  CHECK(exact.latency == listed.latency);
  CHECK(schedule::searched_transfers{}(cep, {.lp = solver_archetype(0)}).latency <= listed.latency);
}

TEST_CASE("a bare solver of mixed-integer programs, with or without a start, is asked for a placement") {
  const place::placement_table t(
      {.operators = {"a"}, .devices = {"x"}, .time_s = {1}, .held_bytes = {0}, .capacity_bytes = {1}, .pairs = {place::device_pair{}}});
  const place::operator_schedule known = place::heft(t, {});
  for (const auto& s : {place::solve_placement(t, {}, known, milp_solver_archetype(0)),
                        place::solve_placement(t, {}, known, starting_milp_solver_archetype(0), place::formulation::printed)}) {
    CHECK(s.status.result == outcome::stopped);
    CHECK(s.makespan_s == known.makespan_s);
  }
}

TEST_CASE("bare models, a bare objective, a bare solver and a bare observer refine plans") {
  const planning_graph g = three_layers();
  const cluster c = pair();
  const planning_problem problem{
      g, c, cost_archetype(0), job{.batch = 4}, {.memory = memory_archetype(0), .energy = energy_archetype(0)}, solver_archetype(0)};
  plan swapped = two_stages();
  std::swap(swapped.stages[0].devices, swapped.stages[1].devices);
  const std::vector<plan> given{two_stages(), swapped, two_stages()};
  candidate_observer_archetype impatient(0);
  const plan_result r = schedule::refine(problem, objective_archetype(0), given, 3, {.threads = 2}, impatient);
  CHECK(impatient.seen == 2);
  CHECK(r.plans.size() == 2);
}

TEST_CASE("bare models, a bare policy, a bare detector and a bare observer run over a timeline") {
  const planning_graph g = three_layers();
  const cluster c = pair();
  const planning_problem problem{
      g, c, cost_archetype(0), job{.batch = 4}, {.memory = memory_archetype(0), .energy = energy_archetype(0)}, solver_archetype(0)};
  // 3 layers x 4 microbatches x 3 ms = 36 ms an iteration.
  const adapt::timeline t{10_s, {{4_s, adapt::device_leaves{device_id(0)}}}};
  adaptation_policy_archetype policy(0);
  run_observer_archetype watch(0);
  const adapt::history h =
      adapt::run(problem, t, policy, adapt::run_options<failure_detector_archetype>{failure_detector_archetype(0)}, watch);
  CHECK(h.iterations == 111 + 138);
  CHECK(h.stall_s == Approx(1));
  CHECK(policy.asked == 2);
  CHECK(watch.seen > 2);
}

TEST_CASE("a bare planner serves the policies that plan anew") {
  const planning_graph g = three_layers();
  const cluster c = pair();
  const planning_problem problem{g, c, any_cost_model(roofline{}), job{.workload = {.mode = mode::inference}, .batch = 4}};
  const adapt::timeline t{10_s, {{4_s, adapt::device_leaves{device_id(0)}}}};
  const auto history_under = [&](auto policy) {
    return adapt::run(problem, t, policy, adapt::run_options<>{.storage = {.archive = device_id(1)}});
  };
  for (const adapt::history& h :
       {history_under(adapt::ladder(problem, planner_archetype(0))), history_under(adapt::oracle(problem, planner_archetype(0))),
        history_under(adapt::replan_always(problem, planner_archetype(0)))}) {
    CHECK(h.plans.size() == 2);
    CHECK(h.stretches.back().end_s == Approx(10));
    CHECK(h.status.ok());
  }
}

TEST_CASE("a bare handler and bare service times serve what a bare policy has placed") {
  const serve::edge_cloud cloud = two_servers();
  const auto asked_at = [](double t) {
    return serve::request{.arrival_s = t, .service = serve::service_id(0), .server = serve::server_id(0)};
  };
  const serve::request_stream requests({asked_at(1), asked_at(11), asked_at(11), asked_at(12)});
  const serve::serving_options options{.changes = {.cycle = 10_s, .policy = placement_policy_archetype(0)}};
  request_handler_archetype handler(0);
  const serve::service_history h =
      serve::serve_requests(cloud, one_service, service_time_archetype(0), requests, {}, handler, options, serving_observer_archetype(0));
  CHECK(handler.asked == 4);
  CHECK(h.count(serve::request_outcome::no_resources) == 1);  // no instance exists in the first ten seconds
  CHECK(h.count(serve::request_outcome::served) == 3);
  CHECK(h.services[0].latency.largest().value() == Approx(0.02));
  CHECK(serve::serve_requests(cloud, one_service, service_time_archetype(0), requests, {}, handler).credit() == 0);
}

TEST_CASE("a bare value places instances step by step") {
  const serve::edge_cloud cloud = two_servers();
  const serve::any_service_time times(service_time_archetype(0));
  const serve::placement_candidates candidates(cloud, one_service, times, {});
  placement_value_archetype value(0);
  serve::greedy_placement placing(candidates, {cloud, one_service, {}, {}}, value, serve::greedy_search::lazy, serve::greedy_order::gain);
  placing.place_within_servers();
  CHECK(placing.placed().instances.size() == 2);
  CHECK(value.placed == 2);
}
