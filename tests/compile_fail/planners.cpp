// SPDX-License-Identifier: BSL-1.0
#include <vector>

#include <boost/graph/adjacency_list.hpp>

#include <hetplan/coarsen/decomposition.hpp>
#include <hetplan/estimate/step_law.hpp>
#include <hetplan/graph/bgl.hpp>
#include <hetplan/mix/mixing.hpp>
#include <hetplan/mix/mixing_controller.hpp>
#include <hetplan/mix/pareto_set.hpp>
#include <hetplan/partition/partial_store.hpp>
#include <hetplan/partition/search_tables.hpp>
#include <hetplan/partition/two_substate_dp.hpp>
#include <hetplan/place/contiguous_partition.hpp>
#include <hetplan/recipes/pipeline.hpp>
#include <hetplan/schedule/local_search.hpp>
#include <hetplan/schedule/order_plan.hpp>
#include <hetplan/schedule/transfer_priority.hpp>
#include <hetplan/schedule/transfer_scheduler.hpp>
#include <hetplan/solve/lp.hpp>

using namespace hetplan;

// expect: lp_solver needs: hetplan::lp_solution solve(const hetplan::lp_problem&) const
struct lp_not_const {
  lp_solution solve(const lp_problem&);
};
static_assert(check_lp_solver<lp_not_const>());

// expect: an lp_solver's warm start is: hetplan::lp_solution solve(const hetplan::lp_problem&, const hetplan::lp_basis&) const
struct lp_start_not_const {
  lp_solution solve(const lp_problem&) const;
  lp_solution solve(const lp_problem&, lp_basis&) const;
};
static_assert(check_lp_solver<lp_start_not_const>());

// expect: milp_solver needs: hetplan::milp_solution solve(const hetplan::milp_problem&) const
struct milp_of_a_vector {
  std::vector<double> solve(const milp_problem&) const;
};
static_assert(check_milp_solver<milp_of_a_vector>());

// expect: a milp_solver's start is: hetplan::milp_solution solve(const hetplan::milp_problem&, const std::vector<double>&) const
struct milp_start_not_const {
  milp_solution solve(const milp_problem&) const;
  milp_solution solve(const milp_problem&, std::vector<double>&) const;
};
static_assert(check_milp_solver<milp_start_not_const>());

// expect-ok
struct right_solver {
  lp_solution solve(const lp_problem&) const;
  lp_solution solve(const lp_problem&, const lp_basis&) const;
};
struct right_milp_solver {
  milp_solution solve(const milp_problem&) const;
  milp_solution solve(const milp_problem&, const std::vector<double>&) const;
};
static_assert(check_lp_solver<right_solver>() && check_milp_solver<right_milp_solver>() && starts_milp<right_milp_solver>);
template <class Direction>
using graph_of = boost::adjacency_list<boost::vecS, boost::vecS, Direction>;
const auto named = [](auto v) { return layer_spec{.name = std::to_string(v)}; };

auto right_dag(const graph_of<boost::directedS>& g) {
  return planning_graph_from(g, named, [](auto) { return 1_MB; });
}

// expect: layer_dag needs: a directed graph of Boost.Graph's with vertices(g), edges(g), source(e, g) and target(e, g)
auto undirected(const graph_of<boost::undirectedS>& g) {
  return planning_graph_from(g, named, [](auto) { return 1_MB; });
}

// expect: layer_dag needs: hetplan::tensor_spec tensor_of(edge) const, or hetplan::bytes where gradients are as large
auto tensors_in_double(const graph_of<boost::directedS>& g) {
  return planning_graph_from(g, named, [](auto) { return 1e6; });
}

// expect: decomposition needs: hetplan::layer_sequence operator()(const hetplan::planning_graph&) const
struct row_of_blocks {
  std::vector<std::vector<layer_id>> operator()(const planning_graph&) const;
};
const decompose::any_decomposition row = row_of_blocks{};

// expect-ok
struct right_row {
  layer_sequence operator()(const planning_graph&) const;
};
const decompose::any_decomposition rightly_in_a_row = right_row{};
struct law_of_stages {
  pipeline_tail extend(const pipelining&, const stage_times&, const pipeline_tail&) const;
  double response_s(const pipelining&, const pipeline_tail&) const;
};
struct right_law : law_of_stages {
  using law_of_stages::extend;
  pipeline_tail extend(const pipelining&, const link_times&, const pipeline_tail&) const;
};
struct law_with_helpers : right_law {
  double bound() const;
  double bounds() const;
  double lower_bound() const;
};
static_assert(check_step_law<law_with_helpers>());
const any_step_law by_law = right_law{};

// expect: step_law needs: hetplan::pipeline_tail extend(const hetplan::pipelining&, const hetplan::link_times&,
// const hetplan::pipeline_tail& behind) const
const any_step_law without_links = law_of_stages{};

// expect: step_law needs: hetplan::pipeline_tail extend(const hetplan::pipelining&, const hetplan::stage_times&,
// const hetplan::pipeline_tail& behind) const
struct law_in_seconds {
  double extend(const pipelining&, const stage_times&, const pipeline_tail&) const;
  pipeline_tail extend(const pipelining&, const link_times&, const pipeline_tail&) const;
  double response_s(const pipelining&, const pipeline_tail&) const;
};
const any_step_law in_seconds = law_in_seconds{};

// expect: part_load needs: add(std::size_t node), remove(std::size_t node), double load(std::size_t kind) const
// expect: double work(std::size_t node, std::size_t kind) const
struct load_in_seconds {
  void add(std::size_t);
  void remove(std::size_t);
  seconds load(std::size_t) const;
  double work(std::size_t, std::size_t) const;
};
static_assert(place::check_part_load<load_in_seconds>());

// expect: device_ordering needs: std::vector<hetplan::partition::device_space> operator()(const hetplan::partition::search_tables&,
// int largest_group) const
struct one_space {
  partition::device_space operator()(const partition::search_tables&, int) const;
};
const partition::any_device_ordering ordering = one_space{};

// expect: cell_policy needs: std::size_t capacity() const
struct capacity_in_int {
  int capacity() const;
  bool covers(const partition::partial_plan&, const partition::partial_plan&) const;
};
static_assert(partition::check_cell_policy<capacity_in_int>());

// expect: cell_policy needs: bool covers(const partial_plan& kept, const partial_plan& other) const
struct covers_in_int {
  std::size_t capacity() const;
  int covers(const partition::partial_plan&, const partition::partial_plan&) const;
};
static_assert(partition::check_cell_policy<covers_in_int>());

// expect-ok
struct right_ordering {
  std::vector<partition::device_space> operator()(const partition::search_tables&, int) const;
};
const partition::any_device_ordering rightly_ordered = right_ordering{};
struct right_cells {
  std::size_t capacity() const;
  bool covers(const partition::partial_plan&, const partition::partial_plan&) const;
};
static_assert(partition::check_cell_policy<right_cells>());
struct with_score {
  double score(const evaluation&) const;
};
struct monotone_score {
  double score(seconds response, joules energy) const;
};
partition::search_result search(const partition::search_tables& t, const partition::device_space& s, const plan& blank) {
  return partition::two_substate_dp(t, s, blank, with_score{}, partition::exhaustive{});
}
partition::search_result prune(const partition::search_tables& t, const partition::device_space& s, const plan& blank) {
  return partition::two_substate_dp(t, s, blank, monotone_score{}, right_cells{});
}

// expect: dropping partial plans needs a monotone objective: double score(seconds response, joules energy) const
// expect: any other objective can be searched with the cell policy exhaustive
struct peak_memory {
  double score(const evaluation&) const;
};
partition::search_result run(const partition::search_tables& t, const partition::device_space& s, const plan& blank) {
  return partition::two_substate_dp(t, s, blank, peak_memory{}, partition::top_k{10});
}

// expect: objective needs: double score(seconds response, joules energy) const, non-decreasing in both
struct unchecked_objective {
  seconds score(const evaluation&) const;
};
plan_result scored(const planning_problem& p) { return recipes::pipeline(p, unchecked_objective{}); }

// expect: observer needs: hetplan::control operator()(const Event&) for an event of this call
plan_result watched(const planning_problem& p) {
  return recipes::pipeline(p, minimize_latency{}, 10, [](const candidate_judged& c) { return c.judged < 100; });
}

// expect-ok
struct right_criterion {
  double value(const evaluation&) const;
};
static_assert(mix::check_criterion<right_criterion>());
mix::pareto_set<std::size_t> keep(std::span<const ranked_plan> plans) {
  return mix::pareto_plans(plans, right_criterion{}, mix::total_energy{});
}
struct right_controller {
  mix::mixture operator()(const mix::plan_rates&, const mix::mixing_goal&) const;
};
const mix::any_mixing_controller controlled = right_controller{};

// expect: criterion needs: double value(const hetplan::evaluation&) const, smaller is better
struct criterion_in_seconds {
  seconds value(const evaluation&) const;
};
static_assert(mix::check_criterion<criterion_in_seconds>());

// expect: mixing_controller needs: hetplan::mix::mixture operator()(const hetplan::mix::plan_rates&, const hetplan::mix::mixing_goal&)
// const
struct controller_of_one_part {
  mix::mixture_part operator()(const mix::plan_rates&, const mix::mixing_goal&) const;
};
const mix::any_mixing_controller controller = controller_of_one_part{};

// expect: pipeline_schedule needs: hetplan::schedule::orders_by_device orders(const hetplan::schedule::pipeline_times&) const
struct orders_of_one_device {
  std::vector<order_entry> orders(const schedule::pipeline_times&) const;
};
static_assert(schedule::check_pipeline_schedule<orders_of_one_device>());

struct unchecked_schedule {
  int orders(const schedule::pipeline_times&) const;
};
const schedule::named_schedule by_schedule("mine", unchecked_schedule{});

// expect: dispatch_policy needs: std::optional<std::size_t> next(const hetplan::dispatch_view&) const
struct unchecked_policy {
  int next(const dispatch_view&) const;
};
const schedule::named_schedule by_policy("mine", unchecked_policy{});

// expect: transfer_priority needs: double urgency(const hetplan::tasks::transfer&, const hetplan::schedule::transfer_times&) const
struct urgency_not_const {
  double urgency(const tasks::transfer&, const schedule::transfer_times&);
};
static_assert(schedule::check_transfer_priority<urgency_not_const>());

struct urgency_in_seconds {
  seconds urgency(const tasks::transfer&, const schedule::transfer_times&) const;
};
static_assert(schedule::check_transfer_priority<urgency_in_seconds>());

// expect-ok
struct right_schedule {
  schedule::orders_by_device orders(const schedule::pipeline_times&) const;
};
struct right_priority {
  double urgency(const tasks::transfer&, const schedule::transfer_times&) const;
};
static_assert(schedule::check_pipeline_schedule<right_schedule>() && schedule::check_transfer_priority<right_priority>());
struct right_scheduler {
  schedule::network_schedule operator()(const schedule::cep_graph&, const schedule::scheduling_limits&) const;
};
const schedule::any_transfer_scheduler rightly_scheduled = right_scheduler{};
struct right_start {
  schedule::message_rules operator()(const schedule::cep_graph&, const trace&) const;
};
struct right_move {
  schedule::message_rules operator()(const schedule::cep_graph&, schedule::message_rules, const schedule::contention&) const;
};
const schedule::searched_transfers searched{.search = {.starts = {right_start{}, right_priority{}}, .moves = {right_move{}}}};

// expect: transfer_scheduler needs: hetplan::schedule::network_schedule operator()(const hetplan::schedule::cep_graph&,
// const hetplan::schedule::scheduling_limits&) const
struct scheduler_without_limits {
  schedule::network_schedule operator()(const schedule::cep_graph&) const;
};
const schedule::any_transfer_scheduler scheduler = scheduler_without_limits{};

// expect: search_move needs: hetplan::schedule::message_rules operator()(const hetplan::schedule::cep_graph&,
// hetplan::schedule::message_rules, const hetplan::schedule::contention&) const
struct move_in_place {
  void operator()(const schedule::cep_graph&, schedule::message_rules&, const schedule::contention&) const;
};
const schedule::local_search_options moves{.moves = {move_in_place{}}};

// expect: search_start needs: hetplan::schedule::message_rules operator()(const hetplan::schedule::cep_graph&,
// const hetplan::trace& alone) const, or to be a transfer_priority
struct start_without_trace {
  schedule::message_rules operator()(const schedule::cep_graph&) const;
};
const schedule::local_search_options starts{.starts = {start_without_trace{}}};
