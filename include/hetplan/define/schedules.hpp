// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Definitions of placements of operators and orders of pipelines, for one source of a program.
/// Needs plan, planners.

#ifndef HETPLAN_SEPARATE
#error "hetplan/define/schedules.hpp: compile every source of the program with -DHETPLAN_SEPARATE"
#endif

#include <hetplan/place/contiguous_partition.ipp>
#include <hetplan/place/device_domains.ipp>
#include <hetplan/place/improve_schedule.ipp>
#include <hetplan/place/list_schedule.ipp>
#include <hetplan/place/operator_schedule.ipp>
#include <hetplan/place/optimal_schedule.ipp>
#include <hetplan/place/partial_schedule.ipp>
#include <hetplan/place/place_operators.ipp>
#include <hetplan/place/placement_table.ipp>
#include <hetplan/place/relaxed_placement.ipp>
#include <hetplan/place/series_schedule.ipp>
#include <hetplan/place/solve_placement.ipp>
#include <hetplan/place/tight_rows.ipp>
#include <hetplan/schedule/automatic_orders.ipp>
#include <hetplan/schedule/cep_graph.ipp>
#include <hetplan/schedule/event_order.ipp>
#include <hetplan/schedule/exact_schedule.ipp>
#include <hetplan/schedule/local_search.ipp>
#include <hetplan/schedule/order_beam.ipp>
#include <hetplan/schedule/order_plan.ipp>
#include <hetplan/schedule/order_rules.ipp>
#include <hetplan/schedule/partial_orders.ipp>
#include <hetplan/schedule/pipeline_times.ipp>
#include <hetplan/schedule/transfer_priority.ipp>
#include <hetplan/schedule/transfer_scheduler.ipp>
