// SPDX-License-Identifier: BSL-1.0
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/cost/energy_model.hpp>
#include <hetplan/cost/memory_model.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/simulate/dispatch.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/simulate/observed_run.hpp>
#include <hetplan/simulate/simulator.hpp>

using namespace hetplan;

struct timed {
  seconds time(const work&, const device&) const;
};
struct timed_in_double {
  double time(const work&, const device&) const;
};
const planning_graph& model();
const cluster& devices();
const any_cost_model& costs();

// expect: cost_model needs: hetplan::seconds time(const hetplan::work&, const hetplan::device&) const
struct time_not_const {
  seconds time(const work&, const device&);
};
static_assert(check_cost_model<time_not_const>());

static_assert(check_cost_model<timed_in_double>());

struct unchecked_by_evaluate : timed_in_double {};
judgement judged(const plan& p) { return evaluate(p, model(), devices(), unchecked_by_evaluate{}); }

struct unchecked_by_problem : timed_in_double {};
const planning_problem timed_so(model(), devices(), unchecked_by_problem{}, job{.batch = 16});

// expect: a cost_model's optimizer step is: hetplan::seconds optimizer_step(const hetplan::layer&, const hetplan::device&) const
struct step_in_double : timed {
  double optimizer_step(const layer&, const device&) const;
};
static_assert(check_cost_model<step_in_double>());

struct erased_step_in_double : step_in_double {};
const any_cost_model chosen = erased_step_in_double{};

struct slowed_step_in_double : step_in_double {};
const auto half = slow_down(slowed_step_in_double{}, {0.5});

struct step_of_wrong_overloads : timed {
  double optimizer_step(const layer&, const device&) const;
  seconds optimizer_step(const layer&) const;
};
static_assert(check_cost_model<step_of_wrong_overloads>());

struct step_of_other_arguments : timed {
  seconds optimizer_step(bytes) const;
  seconds optimizer_step(double) const;
};
static_assert(check_cost_model<step_of_other_arguments>());

// expect: a cost_model's optional member is called optimizer_step; this model has one of nearly that name
struct british_step : timed {
  seconds optimiser_step(const layer&, const device&) const;
};
static_assert(check_cost_model<british_step>());

struct static_step : timed {
  static seconds optimize_step(const layer&, const device&);
};
static_assert(check_cost_model<static_step>());

// expect: a cost_model's boundary is: hetplan::seconds boundary(const hetplan::layer&, const hetplan::layer&,
// const hetplan::work_kind&, const hetplan::device&) const
struct boundary_of_wrong_overloads : timed {
  double boundary(const layer&, const layer&, const work_kind&, const device&) const;
  double boundary(const layer&, const layer&, const device&, const work_kind&) const;
};
static_assert(check_cost_model<boundary_of_wrong_overloads>());

struct boundary_of_no_kind : timed {
  seconds boundary(const layer&, const layer&, const device&) const;
};
static_assert(check_cost_model<boundary_of_no_kind>());

// expect: a cost_model's optional member is called boundary; this model has one of nearly that name
struct several_boundaries : timed {
  seconds boundaries(const layer&, const layer&, const work_kind&, const device&) const;
};
static_assert(check_cost_model<several_boundaries>());

// expect: a cost_model's largest batch is: double largest_batch(const hetplan::work&, const hetplan::device&) const
struct largest_batch_in_int : timed {
  int largest_batch(const work&, const device&) const;
};
static_assert(check_cost_model<largest_batch_in_int>());

// expect: a cost_model's parts of a time are: hetplan::time_parts parts(const hetplan::work&, const hetplan::device&) const
struct parts_in_seconds : timed {
  seconds parts(const work&, const device&) const;
};
static_assert(check_cost_model<parts_in_seconds>());

// expect: a cost_model's optional member is called parts; this model has one of nearly that name
struct bound_by_memory_alone : timed {
  seconds memory_bound(const work&, const device&) const;
};
static_assert(check_cost_model<bound_by_memory_alone>());

// expect: the optimizer step of a model in assume_si is: double optimizer_step(const hetplan::layer&, const hetplan::device&) const
struct step_in_float : timed_in_double {
  float optimizer_step(const layer&, const device&) const;
};
const any_cost_model of_floats = assume_si<step_in_float>{};

struct overloaded_step_in_float : timed_in_double {
  float optimizer_step(const layer&, const device&) const;
  double optimizer_step(const layer&) const;
};
const any_cost_model of_overloads = assume_si<overloaded_step_in_float>{};

// expect: the boundary of a model in assume_si is: double boundary(const hetplan::layer&, const hetplan::layer&,
// const hetplan::work_kind&, const hetplan::device&) const
struct boundary_in_seconds : timed_in_double {
  seconds boundary(const layer&, const layer&, const work_kind&, const device&) const;
};
const any_cost_model of_boundaries = assume_si<boundary_in_seconds>{};

// expect: the parts of a time are, in assume_si too: hetplan::time_parts parts(const hetplan::work&, const hetplan::device&) const
struct parts_in_double : timed_in_double {
  double parts(const work&, const device&) const;
};
const any_cost_model of_parts = assume_si<parts_in_double>{};

// expect-ok
struct stepping : timed {
  seconds optimizer_step(const layer&, const device&) const;
  seconds optimizer_step(const layer&) const;
};
/// Data of nearly an optional member's name, and such functions beside the member, are nobody's slip.
struct names_alike : stepping {
  double max_batch = 8, boundary_cost = 0;
  double largest_batch(const work&, const device&) const;
  double largest_batch_size() const;
  seconds optimizer_steps(const layer&, const device&) const;
};
/// Helpers of names that are no slips.
struct helpers : timed {
  double max_batch() const;
  double maximum_batch() const;
  double biggest_batch() const;
  double layer_boundary(int) const;
};
struct told : timed {
  time_parts parts(const work&, const device&) const;
};
struct plain_and_told : timed_in_double {
  time_parts parts(const work&, const device&) const;
};
struct final_cost final {
  seconds time(const work&, const device&) const;
};
struct bounded : timed {
  seconds boundary(const layer&, const layer&, const work_kind&, const device&) const;
};
struct plain_cost : timed_in_double {
  double optimizer_step(const layer&, const device&) const;
};
struct plain_and_bounded : plain_cost {
  double boundary(const layer&, const layer&, const work_kind&, const device&) const;
};
static_assert(check_cost_model<timed>() && check_cost_model<names_alike>() && check_cost_model<helpers>() &&
              check_cost_model<final_cost>());
static_assert(times_optimizer_step<stepping> && check_cost_model<stepping>() && !names_optimizer_step<timed>);
static_assert(times_boundary<bounded> && check_cost_model<bounded>() && !names_boundary<timed>);
static_assert(times_parts<told> && check_cost_model<told>() && !names_parts<timed>);
static_assert(times_parts<assume_si<plain_and_told>> && !times_parts<assume_si<plain_cost>>);
static_assert(times_optimizer_step<assume_si<plain_cost>>);
static_assert(times_boundary<assume_si<plain_and_bounded>> && !times_boundary<assume_si<plain_cost>>);
const any_cost_model right_costs[] = {timed{},
                                      stepping{},
                                      final_cost{},
                                      told{},
                                      slow_down(told{}, {0.5}),
                                      assume_si<plain_and_told>{},
                                      assume_si<plain_cost>{},
                                      slow_down(stepping{}, {0.5}),
                                      slow_down(bounded{}, {0.5}),
                                      assume_si<plain_and_bounded>{}};
struct right_energy {
  joules energy(const device_usage&, const device&) const;
};
static_assert(check_energy_model<right_energy>());

// expect: energy_model needs: hetplan::joules energy(const hetplan::device_usage&, const hetplan::device&) const
struct energy_in_watts {
  watts energy(const device_usage&, const device&) const;
};
static_assert(check_energy_model<energy_in_watts>());

struct energy_of_swapped_arguments {
  joules energy(const device&, const device_usage&) const;
};
static_assert(check_energy_model<energy_of_swapped_arguments>());

struct unchecked_energy : energy_in_watts {};
const judge_models by_energy{.energy = unchecked_energy{}};

// expect-ok
struct with_state {
  bytes state(const layer&, const workload&) const;
};
struct with_cache {
  bytes cache(const layer&, const workload&) const;
};
struct with_activations {
  bytes activations(const layer&, const workload&) const;
};
struct remembered : with_state, with_cache, with_activations {};
struct split_for_weights : remembered {
  bytes activations_for_weights(const layer&, const workload&) const;
};
static_assert(check_memory_model<split_for_weights>());

// expect: memory_model needs: hetplan::bytes state(const hetplan::layer&, const hetplan::workload&) const
struct state_in_double : with_cache, with_activations {
  double state(const layer&, const workload&) const;
};
static_assert(check_memory_model<state_in_double>());

struct unchecked_memory : state_in_double {};
const judge_models by_memory{.memory = unchecked_memory{}};

// expect: memory_model needs: hetplan::bytes activations(const hetplan::layer&, const hetplan::workload&) const
struct activations_of_a_batch : with_state, with_cache {
  bytes activations(const layer&, const workload&, int batch) const;
};
static_assert(check_memory_model<activations_of_a_batch>());

// expect: memory_model needs: hetplan::bytes cache(const hetplan::layer&, const hetplan::workload&) const
struct lacks_cache : with_state, with_activations {};
static_assert(check_memory_model<lacks_cache>());

// expect: a memory_model's split of activations is: hetplan::bytes activations_for_weights(const hetplan::layer&,
// const hetplan::workload&) const
struct split_in_double : remembered {
  double activations_for_weights(const layer&, const workload&) const;
};
static_assert(check_memory_model<split_in_double>());

// expect: a memory_model's optional member is called activations_for_weights; this model has one of nearly that name
struct one_activation : remembered {
  bytes activation_for_weights(const layer&, const workload&) const;
};
static_assert(check_memory_model<one_activation>());

struct misspelt_weights : remembered {
  bytes activations_for_weigths(const layer&, const workload&) const;
};
static_assert(check_memory_model<misspelt_weights>());

// expect: a memory_model's optimizer state is: hetplan::bytes optimizer_state(const hetplan::layer&, const hetplan::workload&) const
struct optimizer_state_of_wrong_overloads : remembered {
  double optimizer_state(const layer&, const workload&) const;
  double optimizer_state(const layer&) const;
};
static_assert(check_memory_model<optimizer_state_of_wrong_overloads>());

struct optimizer_state_of_no_workload : remembered {
  bytes optimizer_state(const layer&) const;
};
static_assert(check_memory_model<optimizer_state_of_no_workload>());

// expect: network_policy needs: int tier(const hetplan::tasks::transfer&) const
struct unchecked_policy {
  double tier(const tasks::transfer&) const;
  route_access access() const;
};
const judge_models by_policy{.network = unchecked_policy{}};

// expect: network_sharing needs: double next_end()
struct unchecked_sharing {
  void start(double, std::uint32_t, const tasks::transfer&, std::span<const resource_use>);
  void update(double, const rate_changed&);
  seconds next_end();
  void finish_until(double, const transfer_finished&);
};
const judge_models by_sharing{.sharing = unchecked_sharing{}};

// expect: lp_solver needs: hetplan::lp_solution solve(const hetplan::lp_problem&) const
struct unchecked_solver {
  lp_solution solve(const lp_problem&);
};
const planning_problem solved_so(model(), devices(), costs(), {}, {}, unchecked_solver{});

// expect: deleted
// expect: the_cluster_must_outlive_the_problem
const cluster make_cluster();
const planning_problem of_a_temporary_cluster(model(), make_cluster(), roofline{}, {.batch = 16});

// expect: deleted
// expect: the_model_must_outlive_the_problem
planning_graph make_model();
const planning_problem of_a_temporary_model(make_model(), devices(), roofline{}, {.batch = 16});

// expect-ok
struct with_score {
  double score(const evaluation&) const;
};
struct monotone_score {
  double score(seconds response, joules energy) const;
};
static_assert(check_objective<with_score>() && !monotone_objective<with_score>);
static_assert(check_objective<monotone_score>() && monotone_objective<monotone_score>);
struct right_sharing {
  void start(double, std::uint32_t, const tasks::transfer&, std::span<const resource_use>);
  void update(double, const rate_changed&);
  double next_end();
  void finish_until(double, const transfer_finished&);
};
const judge_models shared{.sharing = right_sharing{}};
struct right_dispatch {
  std::optional<std::size_t> next(const dispatch_view&) const;
};
static_assert(check_dispatch_policy<right_dispatch>());
struct right_observer {
  control operator()(const task_ended&);
};
static_assert(check_observer<right_observer, task_ended, transfer_ended>());
trace ran() { return simulate({}, {}, fair_share{}, {}, right_observer{}); }
judgement rightly_watched(const plan& p) { return judge(p, model(), devices(), timed{}, {}, {}, right_observer{}); }

// expect: objective needs: double score(seconds response, joules energy) const, non-decreasing in both
// expect: or: double score(const hetplan::evaluation&) const
struct score_in_seconds {
  seconds score(const evaluation&) const;
};
static_assert(check_objective<score_in_seconds>());

// expect: dispatch_policy needs: std::optional<std::size_t> next(const hetplan::dispatch_view&) const
struct next_task {
  ready_task next(const dispatch_view&) const;
};
static_assert(check_dispatch_policy<next_task>());

struct unchecked_dispatch {
  std::size_t next(const dispatch_view&) const;
};
plan dispatched(const plan& p, const planning_problem& problem) { return dispatch(p, problem, unchecked_dispatch{}); }

// expect: observer needs: hetplan::control operator()(const Event&) for an event of this call
judgement watched(const plan& p) {
  return judge(p, model(), devices(), costs(), {}, {}, [](const task_ended&) { return true; });
}

// expect: no matching function
// expect: constraints not satisfied
const trace of_no_event_of_the_call = simulate({}, {}, fair_share{}, {}, [](const int&) { return control::go; });
