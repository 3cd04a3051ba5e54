// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Faults of an edge cloud as files: hetplan/faults/1.

#include <array>
#include <string_view>
#include <vector>

#include <hetplan/io/json_document.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/serving_faults.hpp>

namespace hetplan::io {

inline constexpr std::string_view faults_format = "hetplan/faults/1";

namespace keys {
inline constexpr std::array<std::string_view, 2> faults{"format", "events"};
inline constexpr std::array<std::string_view, 7> fault{"at", "kind", "server", "until", "gpu", "device", "factor"};
}  // namespace keys

/// Throws invalid_input `FILE: /pointer: expected X, got Y`.
[[nodiscard]] std::vector<serve::serving_fault> read_faults(const json_document& d, const serve::edge_cloud& cloud);

}  // namespace hetplan::io

#ifndef HETPLAN_COMPILED
#include <hetplan/io/faults_json.ipp>
#endif
