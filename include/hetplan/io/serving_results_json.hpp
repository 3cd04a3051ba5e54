// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What `serve` prints with --json.

#include <string>
#include <vector>

#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/service.hpp>
#include <hetplan/serve/service_history.hpp>
#include <hetplan/serve/size_for.hpp>

namespace hetplan::io {

/// A history without its records.
[[nodiscard]] std::string write_history(const serve::service_history& h, const serve::edge_cloud& cloud,
                                        const std::vector<serve::service>& services);

/// The answer of --size-for: target, status, and what was tried.
[[nodiscard]] std::string write_sizing(const serve::sizing& s, double target);

}  // namespace hetplan::io

#ifndef HETPLAN_COMPILED
#include <hetplan/io/serving_results_json.ipp>
#endif
