// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Deployments as files: hetplan/deployment/1.

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/io/json_document.hpp>
#include <hetplan/serve/deployment.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/service_time.hpp>
#include <hetplan/serve/serving_faults.hpp>

namespace hetplan::io {

// Faults of an edge cloud as files: hetplan/faults/1.

inline constexpr std::string_view faults_format = "hetplan/faults/1";

namespace keys {
inline constexpr std::array<std::string_view, 2> faults{"format", "events"};
inline constexpr std::array<std::string_view, 7> fault{"at", "kind", "server", "until", "gpu", "device", "factor"};
}  // namespace keys

/// Throws invalid_input `FILE: /pointer: expected X, got Y`.
[[nodiscard]] std::vector<serve::serving_fault> read_faults(const json_document& d, const serve::edge_cloud& cloud);

inline constexpr std::string_view deployment_format = "hetplan/deployment/1";

namespace keys {
inline constexpr std::array<std::string_view, 3> deployment{"format", "instances", "changes"};
inline constexpr std::array<std::string_view, 7> instance{"service", "variant", "gpus", "device", "batch", "frames", "groups"};
inline constexpr std::array<std::string_view, 2> deployment_change{"at", "instances"};
}  // namespace keys

/// A deployment, and those that follow it.
struct deployment_file {
  serve::deployment first;
  std::vector<seconds> at = {};
  std::vector<serve::deployment> changes = {};
};

/// Throws invalid_input `FILE: /pointer: expected X, got Y`, also where serve::validate objects.
[[nodiscard]] deployment_file read_deployment(const json_document& d, const serve::edge_cloud& cloud,
                                              const std::vector<serve::service>& services, const serve::any_service_time& times);

/// Reading it gives the identical deployments.
[[nodiscard]] std::string write_deployment(const deployment_file& d, const serve::edge_cloud& cloud,
                                           const std::vector<serve::service>& services);

}  // namespace hetplan::io

#ifndef HETPLAN_COMPILED
#include <hetplan/io/deployment_json.ipp>
#endif
