// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What every planner is given: the nouns of the problem and the user's models.

#include <string>
#include <utility>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/core/step_budget.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/cost/energy_model.hpp>
#include <hetplan/cost/memory_model.hpp>
#include <hetplan/cost/prefix_table.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/problem/job.hpp>
#include <hetplan/problem/network_sharing.hpp>
#include <hetplan/solve/lp.hpp>

namespace hetplan {

/// The user's models of a judgement beside the cost model; each defaults to what files mean.
struct judge_models {
  any_memory_model memory = {};
  any_energy_model energy = {};
  any_network_policy network = {};   ///< none: the policy that the plan names
  any_network_sharing sharing = {};  ///< in place of a policy; with one it is invalid_input
};

/// Model and cluster must outlive it, and temporaries, which would not, do not compile; the models are copied.
///
///     const planning_problem problem{model, home, roofline{}, job{.batch = 16}};
///
/// Throws  invalid_input (the job's mode cannot run the model: see check_mode; fewer than 0 steps).
struct planning_problem {
  const planning_graph& model;
  const hetplan::cluster& cluster;
  any_cost_model cost;  ///< asked once: see remembered_cost
  hetplan::job job;
  judge_models models;
  any_lp_solver lp;
  long long steps;          ///< that a planner may take, >= 0; see step_budget
  bool with_bounds = true;  ///< are plans of an answer given bounds over all plans? They cost as much as dozens of judgements

  planning_problem(const planning_graph& m, const hetplan::cluster& c, any_cost_model times, hetplan::job wanted = {},
                   judge_models others = {}, any_lp_solver solver = {}, long long most_steps = standard_steps)
      : model(m), cluster(c), cost(remembered_cost(std::move(times), m, c)), job(std::move(wanted)), models(std::move(others)),
        lp(std::move(solver)), steps(most_steps) {
    check_mode(m, job.workload.mode);
    if (steps < 0) throw invalid_input("planning_problem: steps = " + std::to_string(steps) + "; expected an integer >= 0");
  }
  // A temporary is gone at the end of the line.
  planning_problem(const planning_graph&& the_model_must_outlive_the_problem, const hetplan::cluster&, any_cost_model, hetplan::job = {},
                   judge_models = {}, any_lp_solver = {}, long long = standard_steps) = delete;
  planning_problem(const planning_graph&, const hetplan::cluster&& the_cluster_must_outlive_the_problem, any_cost_model, hetplan::job = {},
                   judge_models = {}, any_lp_solver = {}, long long = standard_steps) = delete;
  planning_problem(const planning_graph&& the_model_must_outlive_the_problem, const hetplan::cluster&& the_cluster_must_outlive_the_problem,
                   any_cost_model, hetplan::job = {}, judge_models = {}, any_lp_solver = {}, long long = standard_steps) = delete;
};

}  // namespace hetplan
