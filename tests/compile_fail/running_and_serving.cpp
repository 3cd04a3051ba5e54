// SPDX-License-Identifier: BSL-1.0
#include <vector>

#include <hetplan/adapt/adaptation_policy.hpp>
#include <hetplan/adapt/environment.hpp>
#include <hetplan/adapt/known_plans.hpp>
#include <hetplan/serve/greedy_placement.hpp>
#include <hetplan/serve/request_handlers.hpp>
#include <hetplan/serve/service_time.hpp>
#include <hetplan/serve/serving_options.hpp>

using namespace hetplan;

// expect: adaptation_policy needs: hetplan::adapt::reaction react(const hetplan::adapt::situation&)
struct changes_the_situation {
  adapt::reaction react(adapt::situation&);
};
static_assert(adapt::check_adaptation_policy<changes_the_situation>());

struct reacts_by_a_plan {
  plan react(const adapt::situation&);
};
static_assert(adapt::check_adaptation_policy<reacts_by_a_plan>());

// expect: failure_detector needs: hetplan::seconds seen(hetplan::seconds at) const
struct lacks_seen {
  seconds noticed(seconds at) const;
};
static_assert(adapt::check_failure_detector<lacks_seen>());

// expect: failure_detector needs: hetplan::seconds noticed(hetplan::seconds at) const
struct noticed_in_double {
  double noticed(seconds at) const;
  seconds seen(seconds at) const;
};
static_assert(adapt::check_failure_detector<noticed_in_double>());

// expect: a planner needs: hetplan::plan_result operator()(const hetplan::planning_problem&) const
struct planner_of_one_plan {
  plan operator()(const planning_problem&) const;
};
auto ask(const planning_problem& problem) { return adapt::replanning(problem, planner_of_one_plan{}); }

// expect: placement_policy needs: hetplan::serve::deployment place(const hetplan::serve::placement_question&)
struct places_instances {
  std::vector<serve::instance> place(const serve::placement_question&);
};
serve::any_placement_policy policy = places_instances{};

// expect: placement_value needs: hetplan::serve::placement_gain gain(const hetplan::serve::instance&,
// const hetplan::serve::allocation&) const
struct gain_in_double {
  serve::placement_gain most(serve::server_id, const serve::allocation&) const;
  double gain(const serve::instance&, const serve::allocation&) const;
  void add(const serve::instance&, const serve::allocation&);
};
static_assert(serve::check_placement_value<gain_in_double>());

// expect: request_handler needs: hetplan::serve::decision handle(const hetplan::serve::pending_request&,
// const hetplan::serve::server_view& here)
struct handler_of_a_server {
  serve::server_id handle(const serve::pending_request&, const serve::server_view&);
};
static_assert(serve::check_request_handler<handler_of_a_server>());

// expect: service_time needs: hetplan::seconds step(const hetplan::serve::service_run&, int requests) const
struct forgets_steps {
  seconds pass(const serve::service_run&, const serve::batch_load&) const;
  int largest_batch(const serve::service_run&) const;
};
const serve::any_service_time times = forgets_steps{};

// expect-ok
struct right_times {
  seconds pass(const serve::service_run&, const serve::batch_load&) const;
  seconds step(const serve::service_run&, int requests) const;
  int largest_batch(const serve::service_run&) const;
};
const serve::any_service_time right_time = right_times{};
struct right_handler {
  serve::decision handle(const serve::pending_request&, const serve::server_view&);
};
const serve::any_request_handler handler = right_handler{};
struct right_placement {
  serve::deployment place(const serve::placement_question&);
};
const serve::any_placement_policy placement = right_placement{};
struct right_value {
  serve::placement_gain most(serve::server_id, const serve::allocation&) const;
  serve::placement_gain gain(const serve::instance&, const serve::allocation&) const;
  void add(const serve::instance&, const serve::allocation&);
};
static_assert(serve::check_placement_value<right_value>());
