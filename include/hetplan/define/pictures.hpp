// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Definitions of pictures and reports, for one source of a program.
/// Needs plan, schedules, planners, serving, files; nlohmann-json.

#ifndef HETPLAN_SEPARATE
#error "hetplan/define/pictures.hpp: compile every source of the program with -DHETPLAN_SEPARATE"
#endif

#include <hetplan/draw/adaptation_chart.ipp>
#include <hetplan/draw/adaptation_report.ipp>
#include <hetplan/draw/dot.ipp>
#include <hetplan/draw/gantt.ipp>
#include <hetplan/draw/groups_chart.ipp>
#include <hetplan/draw/page.ipp>
#include <hetplan/draw/report.ipp>
#include <hetplan/draw/report_timeline.ipp>
#include <hetplan/draw/search_table_svg.ipp>
#include <hetplan/draw/serving_charts.ipp>
#include <hetplan/draw/serving_report.ipp>
#include <hetplan/draw/svg.ipp>
#include <hetplan/draw/time_axis.ipp>
#include <hetplan/draw/trace_view.ipp>
