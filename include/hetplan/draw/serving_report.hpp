// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The report of requests in an edge cloud: one page that shows what was served, where, how fast, and what became of the rest.

#include <string>
#include <vector>

#include <hetplan/serve/deployment.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/service_history.hpp>
#include <hetplan/serve/serving_options.hpp>

namespace hetplan::draw {

/// One self-contained HTML page: numbers, goodput over time, service levels, who served what where, the deployment, queues, offloads. Its
/// charts over time zoom together, and parts explain themselves under the pointer.
///
/// @param h      the history of requests in this cloud.
/// @param first  the deployment to begin with.
/// @param run    the options of the run: its faults and changes stand on the axes of time.
/// Complexity    linear in the history. Many servers, bins or flows are put together: the page stays within a megabyte or two.
/// Determinism   same input, same bytes.
[[nodiscard]] std::string serving_report_html(const serve::service_history& h, const serve::edge_cloud& cloud,
                                              const std::vector<serve::service>& services, const serve::deployment& first,
                                              const serve::serving_options& run = {});

}  // namespace hetplan::draw

#ifndef HETPLAN_SEPARATE
#include <hetplan/draw/serving_report.ipp>
#endif
