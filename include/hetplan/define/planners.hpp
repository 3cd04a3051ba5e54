// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Definitions of partitioning, search and the planners of one plan, for one source of a program.
/// Needs plan, schedules.

#ifndef HETPLAN_SEPARATE
#error "hetplan/define/planners.hpp: compile every source of the program with -DHETPLAN_SEPARATE"
#endif

#include <hetplan/partition/best_grid.ipp>
#include <hetplan/partition/candidate_costs.ipp>
#include <hetplan/partition/folded_dp.ipp>
#include <hetplan/partition/offload_table.ipp>
#include <hetplan/partition/partial_store.ipp>
#include <hetplan/partition/pipeline_draft.ipp>
#include <hetplan/partition/region_chain.ipp>
#include <hetplan/partition/region_dp.ipp>
#include <hetplan/partition/search_context.ipp>
#include <hetplan/partition/search_tables.ipp>
#include <hetplan/partition/two_substate_dp.ipp>
#include <hetplan/recipes/baselines.ipp>
#include <hetplan/recipes/compare.ipp>
#include <hetplan/recipes/deepcee.ipp>
#include <hetplan/recipes/dora.ipp>
#include <hetplan/recipes/dora_partitioner.ipp>
#include <hetplan/recipes/few_blocks.ipp>
#include <hetplan/recipes/largest.ipp>
#include <hetplan/recipes/pipeline.ipp>
#include <hetplan/recipes/placers.ipp>
#include <hetplan/recipes/plan_on_view.ipp>
#include <hetplan/recipes/recomputed_blocks.ipp>
#include <hetplan/search/choose_savers.ipp>
#include <hetplan/search/draft_search.ipp>
#include <hetplan/search/fit_offload.ipp>
#include <hetplan/search/mend_limits.ipp>
#include <hetplan/search/ranking.ipp>
