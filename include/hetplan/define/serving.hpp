// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Definitions of mixing, adaptation, serving, their planners and built-in services, for one source of a program.
/// Needs plan, schedules, planners.

#ifndef HETPLAN_SEPARATE
#error "hetplan/define/serving.hpp: compile every source of the program with -DHETPLAN_SEPARATE"
#endif

#include <hetplan/adapt/adaptation_policy.ipp>
#include <hetplan/adapt/environment.ipp>
#include <hetplan/adapt/fixed_policies.ipp>
#include <hetplan/adapt/iteration.ipp>
#include <hetplan/adapt/known_plans.ipp>
#include <hetplan/adapt/ladder.ipp>
#include <hetplan/adapt/microbatch_adapter.ipp>
#include <hetplan/adapt/migration.ipp>
#include <hetplan/adapt/replication.ipp>
#include <hetplan/adapt/run.ipp>
#include <hetplan/adapt/timeline.ipp>
#include <hetplan/mix/mixing.ipp>
#include <hetplan/mix/mixing_controller.ipp>
#include <hetplan/mix/pareto_set.ipp>
#include <hetplan/mix/progress.ipp>
#include <hetplan/recipes/dora_adapter.ipp>
#include <hetplan/serve/deployment.ipp>
#include <hetplan/serve/edge_cloud.ipp>
#include <hetplan/serve/fluid_goodput.ipp>
#include <hetplan/serve/greedy_placement.ipp>
#include <hetplan/serve/instance_state.ipp>
#include <hetplan/serve/judged_tokens.ipp>
#include <hetplan/serve/parallelism_allocator.ipp>
#include <hetplan/serve/request_handlers.ipp>
#include <hetplan/serve/request_process.ipp>
#include <hetplan/serve/ring_sync.ipp>
#include <hetplan/serve/service_time.ipp>
#include <hetplan/serve/serving_options.ipp>
#include <hetplan/serve/serving_run.ipp>
#include <hetplan/zoo/edge_services.ipp>
