// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Costs of a plan's stages: the one place where the layers of a whole plan add up.

#include <array>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/core/keyed.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/cost/memory_model.hpp>
#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan {

/// Valid plan, cut into stages, with the results of the cost and memory model for each stage on each of its devices. Estimates
/// (make_steps, estimate) and the judge (tasks::expand, judge) read these numbers and call no model again.
///
///     const stage_costs s(problem, plan);
///     estimate(s).latency;  judge(s).evaluation.latency;
///
/// The plan, model and cluster must outlive it.
/// Complexity  O(layers x devices of their stage); one call of the cost model per layer, device of its stage and phase, and up to two more
///             on devices with a power.memory of their own.
/// Throws      invalid_input (the plan breaks a rule of `validate`), invalid_model (a model returns what its concept forbids; the cost
/// model
///             does not look at the tiers that the plan has weights in, see check_tiers).
struct stage_costs {
  /// Seconds in each phase.
  struct phase_times {
    double forward_s = 0;
    double backward_input_s = 0;
    double backward_weight_s = 0;
    double again_s = 0;  ///< part of backward_input_s in which the forward runs again
  };
  /// Seconds of one unit in each phase, and those of them in which memory is the limit.
  struct unit_times : phase_times {
    phase_times memory_bound = {};
  };
  /// A stage on one of its devices: seconds and memory of one microbatch share. Outside training only the forward takes time.
  struct part {
    double overhead_s = 0;  ///< of the device, in each task besides the phase's time
    double forward_s = 0;
    double backward_input_s = 0;
    double again_s = 0;  ///< part of it in which the forward runs again
    double backward_weight_s = 0;
    double optimizer_s = 0;         ///< once per iteration
    phase_times memory_bound = {};  ///< of the phases' times; told for devices with a power.memory of their own (stage_memory_bound_s)
    share_memory kept = {};
    double forward_sent = 0;  ///< grid: bytes of all-reduces to the next device of the row; their time is included in that of the phase
    double backward_sent = 0;
    std::vector<unit_times> units = {};              ///< zero2, fsdp: each unit's part of the phases
    std::array<std::vector<double>, 3> reads = {};   ///< by phase, then tier: bytes that a task waits for (stage_reads)
    double forward_wait_s = 0, backward_wait_s = 0;  ///< for these, while nobody else takes their resources; not in the phases' times

    /// Return the seconds of a task: a forward, and a backward that is not split.
    [[nodiscard]] double forward_task_s() const { return forward_s + overhead_s; }
    [[nodiscard]] double backward_task_s() const { return backward_input_s + backward_weight_s + overhead_s; }
    /// Return the same with what the task waits for.
    [[nodiscard]] double forward_step_s() const { return forward_task_s() + forward_wait_s; }
    [[nodiscard]] double backward_step_s() const { return backward_task_s() + backward_wait_s; }
  };
  struct stage_parts {
    std::vector<part> devices;             ///< in the order of stage::devices; in generation the mean over the passes, and the most memory
    keyed<std::vector<part>> passes = {};  ///< stages with cuts: the same for passes of other sizes, by samples
    double trainable_bytes = 0;            ///< reduced among its devices; a single device reduces nothing
  };
  /// One pass of generation, of those that are told apart.
  struct pass_costs {
    std::vector<std::vector<part>> stages;  ///< by stage id and device; a stage without parts does not run
    std::size_t shape = 0;                  ///< index into `shapes`
  };

  stage_costs(const planning_problem& problem, const hetplan::plan& p);
  stage_costs(const hetplan::plan& p, const planning_graph& model, const hetplan::cluster& c, const any_cost_model& cost,
              const any_memory_model& memory = {});
  // Temporaries would not outlive the object.
  stage_costs(const planning_problem&& the_problem_must_outlive_it, const hetplan::plan&) = delete;
  stage_costs(const planning_problem&, const hetplan::plan&& the_plan_must_outlive_it) = delete;
  stage_costs(const hetplan::plan&& the_plan_must_outlive_it, const planning_graph&, const hetplan::cluster&, const any_cost_model&,
              const any_memory_model& = {}) = delete;
  stage_costs(const hetplan::plan&, const planning_graph&& the_model_must_outlive_it, const hetplan::cluster&, const any_cost_model&,
              const any_memory_model& = {}) = delete;
  stage_costs(const hetplan::plan&, const planning_graph&, const hetplan::cluster&& the_cluster_must_outlive_it, const any_cost_model&,
              const any_memory_model& = {}) = delete;

  const hetplan::plan& plan;
  const planning_graph& model;
  const hetplan::cluster& cluster;
  stage_graph graph;
  token_passes passes;
  std::vector<stage_parts> stages;   ///< by stage id
  std::vector<pass_costs> by_pass;   ///< generation: by distinct pass; else empty
  std::vector<stage_graph> shapes;   ///< generation: edges of the passes
  std::vector<double> static_bytes;  ///< by device id: held during the whole run

  [[nodiscard]] const stage_parts& operator[](stage_id s) const { return stages[s.index()]; }
  /// Returns the costs of a stage's device for a pass of `samples` samples, which must be the size of one of the stage's passes.
  [[nodiscard]] const part& of_pass(stage_id s, std::size_t position, long long samples) const {
    const stage_parts& all = stages[s.index()];
    return (all.passes.empty() ? all.devices : *all.passes.find({samples}))[position];
  }
  /// Returns the costs of a stage's device in a pass of the run, which the stage must run in.
  [[nodiscard]] const part& of_run(stage_id s, std::size_t position, int pass) const {
    return by_pass.empty() ? stages[s.index()].devices[position] : by_pass[passes.which(pass)].stages[s.index()][position];
  }
  [[nodiscard]] bool runs(stage_id s, int pass) const { return by_pass.empty() || !by_pass[passes.which(pass)].stages[s.index()].empty(); }
  /// Returns the stages' edges in a pass of the run: the stages that run, and what these send each other for each sample.
  [[nodiscard]] const stage_graph& shape_of(int pass) const { return by_pass.empty() ? graph : shapes[by_pass[passes.which(pass)].shape]; }
  /// Returns the bytes per sample that an edge carries forward in the mean over the passes of a part of the run.
  [[nodiscard]] double mean_cut(const stage_edge& e, run_part of = run_part::whole) const;
  /// Returns the share of the passes of a part of the run in which a stage runs.
  [[nodiscard]] double running(stage_id s, run_part of) const;
  /// Generation: returns the seconds of a stage's task on a device, with what it waits for from tiers, in the mean over the passes of a
  /// part of the run.
  [[nodiscard]] double mean_task_s(stage_id s, std::size_t position, run_part of) const;
  [[nodiscard]] bool training() const { return plan.workload.mode == mode::training; }

 private:
  [[nodiscard]] std::vector<part> parts_of(const stage& s, long long samples, double inputs, const any_cost_model& cost,
                                           const any_memory_model& memory, const token_pass& pass = {}) const;
  void add_passes(const any_cost_model& cost, const any_memory_model& memory);
  void add_all_reduces(const stage& s, std::size_t position, int samples, const token_pass& pass, part& mine) const;
  /// Adds what a stage's device reads from tiers that share resources.
  void add_reads(const stage& s, const assignment& a, const device& d, const token_pass& pass, std::size_t column, part& mine) const;
  void add_units(const stage& s, const assignment& a, const any_cost_model& cost, part& mine) const;
};

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/plan/stage_costs.ipp>
#endif
