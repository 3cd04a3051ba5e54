// SPDX-License-Identifier: BSL-1.0
#pragma once
// Warnings of unused inputs of `hetplan serve`.

#include <string>
#include <vector>

#include <hetplan/serve/deployment.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/request_process.hpp>
#include <hetplan/serve/serving_options.hpp>

namespace cli {

/// Warns of variants for a kind of GPU that no server has and that resembles one that some server has.
void warn_of_kinds(const hetplan::serve::edge_cloud& cloud, const std::vector<hetplan::serve::service>& services);
/// Warns of requests with more tokens than any variant's cache holds: nobody serves them.
void warn_of_long_requests(const std::vector<hetplan::serve::service>& services, const hetplan::serve::request_stream& requests);
/// Warns of requested services without an initial instance.
void warn_of_unplaced(const hetplan::serve::deployment& first, const std::vector<hetplan::serve::service>& services,
                      const hetplan::serve::request_stream& requests);
/// Warns of changes and faults after the end, and of those that waited for a change which never came.
///
/// @param deployment, faults  files, for messages.
/// @param begin, duration     of the run.
void warn_of_the_end(const std::string& deployment, const std::string& faults, const hetplan::serve::serving_options& run,
                     hetplan::seconds begin, hetplan::seconds duration);

}  // namespace cli
