// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Definitions of problems, their costs, plans, the judge and the built-in models, for one source of a program.

#ifndef HETPLAN_SEPARATE
#error "hetplan/define/plan.hpp: compile every source of the program with -DHETPLAN_SEPARATE"
#endif

#include <hetplan/cluster/cluster.ipp>
#include <hetplan/cluster/device.ipp>
#include <hetplan/cluster/network.ipp>
#include <hetplan/cluster/topology.ipp>
#include <hetplan/cluster/widest_routes.ipp>
#include <hetplan/coarsen/decomposition.ipp>
#include <hetplan/coarsen/device_groups.ipp>
#include <hetplan/coarsen/fuse_operators.ipp>
#include <hetplan/coarsen/merge_small.ipp>
#include <hetplan/core/error.ipp>
#include <hetplan/core/keyed.ipp>
#include <hetplan/core/sorting.ipp>
#include <hetplan/core/version.ipp>
#include <hetplan/cost/cost_model.ipp>
#include <hetplan/cost/energy_model.ipp>
#include <hetplan/cost/memory_model.ipp>
#include <hetplan/cost/prefix_table.ipp>
#include <hetplan/cost/token_passes.ipp>
#include <hetplan/cost/workspace_table.ipp>
#include <hetplan/estimate/bounds.ipp>
#include <hetplan/estimate/estimate.ipp>
#include <hetplan/estimate/pipeline_steps.ipp>
#include <hetplan/estimate/step_law.ipp>
#include <hetplan/fit/measurement.ipp>
#include <hetplan/graph/ideals.ipp>
#include <hetplan/graph/layer_sequence.ipp>
#include <hetplan/graph/planning_graph.ipp>
#include <hetplan/plan/describe.ipp>
#include <hetplan/plan/expansion_size.ipp>
#include <hetplan/plan/orders.ipp>
#include <hetplan/plan/plan.ipp>
#include <hetplan/plan/plan_result.ipp>
#include <hetplan/plan/stage_costs.ipp>
#include <hetplan/plan/stage_graph.ipp>
#include <hetplan/plan/validate.ipp>
#include <hetplan/problem/planning_problem.ipp>
#include <hetplan/simulate/dispatch.ipp>
#include <hetplan/simulate/evaluate.ipp>
#include <hetplan/simulate/explain.ipp>
#include <hetplan/simulate/fluid_sharing.ipp>
#include <hetplan/simulate/prescribed.ipp>
#include <hetplan/simulate/simulation.ipp>
#include <hetplan/simulate/simulator.ipp>
#include <hetplan/simulate/wait_states.ipp>
#include <hetplan/solve/cheapest_tiers.ipp>
#include <hetplan/solve/lp.ipp>
#include <hetplan/solve/preemptive_machine.ipp>
#include <hetplan/tasks/expand.ipp>
#include <hetplan/tasks/expand_placement.ipp>
#include <hetplan/tasks/task_graph.ipp>
#include <hetplan/tasks/transfer_sender.ipp>
#include <hetplan/zoo/devices.ipp>
#include <hetplan/zoo/models.ipp>
#include <hetplan/zoo/settings.ipp>
