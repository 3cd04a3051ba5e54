// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Report of requests in an edge cloud: a page with goodput, places and latencies of service, and the fates of other requests.

#include <string>
#include <vector>

#include <hetplan/serve/deployment.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/service_history.hpp>
#include <hetplan/serve/serving_options.hpp>

namespace hetplan::draw {

/// Returns a self-contained HTML page: key numbers, goodput over time, service levels, credit and GPUs by server, the deployment, queues,
/// offloads. Charts over time zoom together; parts have hover texts.
///
/// @param h      the history of requests in this cloud.
/// @param first  the initial deployment.
/// @param run    the options of the run, with faults and changes shown on the time axes.
/// Complexity    linear in the history. Large numbers of servers, bins or flows are grouped: the page takes a megabyte or two at most.
/// Determinism   same input, same bytes.
[[nodiscard]] std::string serving_report_html(const serve::service_history& h, const serve::edge_cloud& cloud,
                                              const std::vector<serve::service>& services, const serve::deployment& first,
                                              const serve::serving_options& run = {});

}  // namespace hetplan::draw

#ifndef HETPLAN_SEPARATE
#include <hetplan/draw/serving_report.ipp>
#endif
