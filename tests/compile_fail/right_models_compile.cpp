// SPDX-License-Identifier: BSL-1.0
// expect-ok
// The twins of the wrong models in this folder, each with the one fault mended.
#include <vector>

#include <boost/graph/adjacency_list.hpp>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/coarsen/decomposition.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/cost/energy_model.hpp>
#include <hetplan/cost/memory_model.hpp>
#include <hetplan/estimate/step_law.hpp>
#include <hetplan/graph/bgl.hpp>
#include <hetplan/mix/mixing_controller.hpp>
#include <hetplan/mix/pareto_set.hpp>
#include <hetplan/partition/search_tables.hpp>
#include <hetplan/partition/two_substate_dp.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/schedule/order_plan.hpp>
#include <hetplan/schedule/transfer_priority.hpp>
#include <hetplan/schedule/transfer_scheduler.hpp>
#include <hetplan/serve/greedy_placement.hpp>
#include <hetplan/serve/request_handlers.hpp>
#include <hetplan/serve/service_time.hpp>
#include <hetplan/serve/serving_options.hpp>
#include <hetplan/simulate/dispatch.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/simulate/observed_run.hpp>
#include <hetplan/simulate/simulator.hpp>
#include <hetplan/solve/lp.hpp>

using namespace hetplan;

struct my_cost {
  seconds time(const work& w, const device&) const { return 1_ms * w.batch; }
};
struct my_cost_with_overloads : my_cost {
  seconds optimizer_step(const layer&, const device&) const { return 1_ms; }
  seconds optimizer_step(const layer&) const { return 1_s; }
};
/// Data of nearly an optional member's name, and such functions beside the member, are nobody's slip.
struct my_cost_with_names_alike : my_cost_with_overloads {
  double max_batch = 8, boundary_cost = 0;
  double largest_batch(const work&, const device&) const { return max_batch; }
  double largest_batch_size() const { return max_batch; }
  seconds optimizer_steps(const layer& l, const device& d) const { return 2 * optimizer_step(l, d); }
};
static_assert(check_cost_model<my_cost_with_names_alike>());
/// Helpers of names that are no slips.
struct my_cost_with_helpers : my_cost {
  double max_batch() const { return 8; }
  double maximum_batch() const { return 8; }
  double biggest_batch() const { return 8; }
  double layer_boundary(int) const { return 0; }
};
static_assert(check_cost_model<my_cost_with_helpers>());
struct my_final_cost final {
  seconds time(const work&, const device&) const { return 1_ms; }
};
struct my_plain_cost {
  double time(const work&, const device&) const { return 1e-3; }
  double optimizer_step(const layer&, const device&) const { return 1e-3; }
};
struct my_cost_with_boundaries : my_cost {
  seconds boundary(const layer&, const layer&, const work_kind&, const device&) const { return 1_us; }
};
struct my_plain_cost_with_boundaries : my_plain_cost {
  double boundary(const layer&, const layer&, const work_kind&, const device&) const { return 1e-6; }
};
struct my_energy {
  joules energy(const device_usage& u, const device& d) const { return d.power.active * u.busy; }
};
struct my_memory {
  bytes state(const layer& l, const workload&) const { return l.weight; }
  bytes activations(const layer& l, const workload&) const { return l.activation; }
  bytes activations_for_weights(const layer& l, const workload&) const { return l.activation_for_weights; }
  bytes cache(const layer&, const workload&) const { return {}; }
};
struct my_network {
  std::vector<resource> resources(std::span<const device>) const { return {{"air", 1_MB_per_s}}; }
  std::optional<route> find_route(std::span<const device>, device_id, device_id) const { return route{1_ms, {{resource_id(0), 1}}}; }
};
struct my_network_with_helpers : my_network {
  void find_routes() const {}
  void prepare_routes() const {}
};
static_assert(check_network_model<my_network_with_helpers>());
struct my_policy {
  int tier(const tasks::transfer& t) const { return t.microbatch; }
  route_access access() const { return route_access::shared; }
};
struct my_sharing {
  void start(double, std::uint32_t, const tasks::transfer&, std::span<const resource_use>) {}
  void update(double, const rate_changed&) {}
  double next_end() { return 0; }
  void finish_until(double, const transfer_finished&) {}
};
struct my_sharing_with_capacities : my_sharing {
  void set_capacity(std::size_t, double) {}
  route_access access() const { return route_access::exclusive_ports; }
};
struct my_sharing_with_helpers : my_sharing {
  int accesses() const { return 0; }
  void change_capacity(int) {}
};
static_assert(check_network_sharing<my_sharing_with_helpers>());
struct my_objective {
  double score(const evaluation& e) const { return e.latency.value(); }
};
struct my_monotone_objective {
  double score(seconds response, joules energy) const { return response.value() + energy.value(); }
};
struct my_criterion {
  double value(const evaluation& e) const { return e.latency.value(); }
};
struct my_cells {
  std::size_t capacity() const { return 5; }
  bool covers(const partition::partial_plan& kept, const partition::partial_plan& other) const { return kept.no_worse_than(other); }
};
struct my_solver {
  lp_solution solve(const lp_problem&) const { return {}; }
  lp_solution solve(const lp_problem&, const lp_basis&) const { return {}; }
};
struct my_milp_solver {
  milp_solution solve(const milp_problem&) const { return {}; }
  milp_solution solve(const milp_problem&, const std::vector<double>&) const { return {}; }
};
struct my_priority {
  double urgency(const tasks::transfer& t, const schedule::transfer_times& when) const { return when.tail_s - t.release_s; }
};
struct my_dispatch_policy {
  std::optional<std::size_t> next(const dispatch_view&) const { return 0; }
};
struct my_schedule {
  schedule::orders_by_device orders(const schedule::pipeline_times& t) const { return schedule::orders_by_device(t.devices()); }
};
struct my_observer {
  control operator()(const task_ended&) { return control::go; }
};
struct my_row {
  layer_sequence operator()(const planning_graph& model) const { return sequence_of(model); }
};
struct my_controller {
  mix::mixture operator()(const mix::plan_rates&, const mix::mixing_goal& goal) const { return {.parts = {{0, 0, goal.horizon_s}}}; }
};
using my_graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;
static_assert(check_cost_model<my_cost>() && check_energy_model<my_energy>() && check_memory_model<my_memory>());
static_assert(times_optimizer_step<my_cost_with_overloads> && check_cost_model<my_cost_with_overloads>());
static_assert(!names_optimizer_step<my_cost> && check_cost_model<my_final_cost>());
static_assert(times_optimizer_step<assume_si<my_plain_cost>>);
static_assert(times_boundary<my_cost_with_boundaries> && check_cost_model<my_cost_with_boundaries>() && !names_boundary<my_cost>);
static_assert(times_boundary<assume_si<my_plain_cost_with_boundaries>> && !times_boundary<assume_si<my_plain_cost>>);
static_assert(check_network_model<my_network>() && check_network_policy<my_policy>() && check_objective<my_objective>());
static_assert(check_network_sharing<my_sharing>() && !follows_capacities<my_sharing>);
static_assert(check_network_sharing<my_sharing_with_capacities>() && follows_capacities<my_sharing_with_capacities>);
static_assert(check_objective<my_monotone_objective>() && monotone_objective<my_monotone_objective> && !monotone_objective<my_objective>);
static_assert(partition::check_cell_policy<my_cells>());
static_assert(mix::check_criterion<my_criterion>());
static_assert(check_milp_solver<my_milp_solver>() && starts_milp<my_milp_solver>);
static_assert(schedule::check_transfer_priority<my_priority>() && schedule::check_pipeline_schedule<my_schedule>());
static_assert(check_dispatch_policy<my_dispatch_policy>());
static_assert(check_lp_solver<my_solver>() && check_observer<my_observer, task_ended, transfer_ended>());

const device_id d = device_id(0);
const any_cost_model models[] = {my_cost{},
                                 my_cost_with_overloads{},
                                 my_final_cost{},
                                 assume_si<my_plain_cost>{},
                                 slow_down(my_cost_with_overloads{}, {0.5}),
                                 slow_down(my_cost_with_boundaries{}, {0.5}),
                                 assume_si<my_plain_cost_with_boundaries>{}};
const auto sum = 5_ms + 3_s;
const decompose::any_decomposition row = my_row{};
const mix::any_mixing_controller controller = my_controller{};
struct my_law {
  pipeline_tail extend(const pipelining& p, const stage_times& s, const pipeline_tail& behind) const {
    return {p.microbatches * s.total_s + behind.reach_s, 0};
  }
  pipeline_tail extend(const pipelining&, const link_times& c, const pipeline_tail& behind) const {
    return {c.total_s + behind.reach_s, 0};
  }
  double response_s(const pipelining&, const pipeline_tail& whole) const { return whole.reach_s; }
};
const any_step_law own_law = my_law{};
struct my_law_with_helpers : my_law {
  double bound() const { return 0; }
  double bounds() const { return 0; }
  double lower_bound() const { return 0; }
};
static_assert(check_step_law<my_law_with_helpers>());
struct my_scheduler {
  schedule::network_schedule operator()(const schedule::cep_graph& cep, const schedule::scheduling_limits&) const {
    return schedule::uncontrolled(cep);
  }
};
const schedule::any_transfer_scheduler scheduler = my_scheduler{};
struct my_start {
  schedule::message_rules operator()(const schedule::cep_graph& cep, const trace&) const {
    return {cep.messages(), {schedule::chunk_rule{}}};
  }
};
struct my_move {
  schedule::message_rules operator()(const schedule::cep_graph&, schedule::message_rules rules, const schedule::contention& at) const {
    rules[at.rival.message][at.rival.chunk].release = 1_s;
    return rules;
  }
};
const schedule::searched_transfers searched{.search = {.starts = {my_start{}, my_priority{}}, .moves = {my_move{}}}};
struct my_ordering {
  std::vector<partition::device_space> operator()(const partition::search_tables& t, int largest_group) const {
    return {partition::by_memory(t, largest_group)};
  }
};
const partition::any_device_ordering ordering = my_ordering{};
auto make(const my_graph& mine) {
  return planning_graph_from(
      mine, [](auto v) { return layer_spec{.name = std::to_string(v), .forward_flops = 1_GFLOP}; }, [](auto) { return 1_MB; });
}
struct my_times {
  seconds pass(const serve::service_run&, const serve::batch_load& b) const { return 1_ms * b.requests; }
  seconds step(const serve::service_run&, int requests) const { return 1_us * requests; }
  int largest_batch(const serve::service_run&) const { return 8; }
};
struct my_handler {
  serve::decision handle(const serve::pending_request&, const serve::server_view&) {
    return serve::decision::turn_down(serve::request_outcome::no_resources);
  }
};
struct my_placement {
  serve::deployment place(const serve::placement_question& q) { return q.present; }
};
struct my_value {
  serve::placement_gain most(serve::server_id, const serve::allocation& a) const { return {a.capacity, 0}; }
  serve::placement_gain gain(const serve::instance&, const serve::allocation& a) const { return {a.capacity, 0}; }
  void add(const serve::instance&, const serve::allocation&) {}
};
static_assert(serve::check_placement_value<my_value>());
const serve::any_service_time times = my_times{};
const serve::any_request_handler handler = my_handler{};
const serve::any_placement_policy placement = my_placement{};
const device phone{.name = "phone", .memory = 8_GB};
const judge_models shared{.sharing = my_sharing{}};
const device& right(const cluster& c) { return c[d]; }
trace run() { return simulate({}, {}, fair_share{}, {}, my_observer{}); }
partition::search_result search(const partition::search_tables& t, const partition::device_space& s, const plan& blank) {
  return partition::two_substate_dp(t, s, blank, my_objective{}, partition::exhaustive{});
}
mix::pareto_set<std::size_t> keep(std::span<const ranked_plan> plans) {
  return mix::pareto_plans(plans, my_criterion{}, mix::total_energy{});
}
partition::search_result prune(const partition::search_tables& t, const partition::device_space& s, const plan& blank) {
  return partition::two_substate_dp(t, s, blank, my_monotone_objective{}, my_cells{});
}
judgement watched(const plan& p, const planning_graph& model, const cluster& c) {
  return judge(p, model, c, my_cost{}, {}, {}, my_observer{});
}
