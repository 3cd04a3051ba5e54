// SPDX-License-Identifier: BSL-1.0
#pragma once
/// All serving systems by name.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <hetplan/serve/serve_with.hpp>

namespace HETPLAN_NAMESPACE::recipes {

struct known_serving_system {
  std::string_view name;
  std::string_view about;
};

/// EPARA and its baselines; then EPARA with the placement of caches, with which it compares its own.
inline constexpr std::array<known_serving_system, 10> serving_systems{{
    {"epara", "places by category what serves most, passes on by idle goodput"},
    {"interedge", "no operators of streams, passes on in turn"},
    {"alpaserve", "every server for itself"},
    {"galaxy", "every model over as many GPUs as it can be cut for, one request at a time"},
    {"serv-p", "one scheduler decides, in rounds"},
    {"usher", "every server for itself, heavy in compute beside heavy in memory"},
    {"detransformer", "every model over as many GPUs as it can be cut for, in batches"},
    {"lru", "epara, but servers keep what was asked for last"},
    {"lfu", "epara, but servers keep what was asked for most"},
    {"mfu", "epara, but servers keep what was asked for least"},
}};

struct serving_system_options {
  int most_offloads = 5;
  std::uint64_t seed = 1;
};

/// A system by its name; none where there is no such name. The services must outlive it.
/// Source  EPARA, sections 5.1 to 5.3; see each recipe.
[[nodiscard]] std::optional<serve::serving_system> serving_system_named(std::string_view name, const std::vector<serve::service>& services,
                                                                        const serving_system_options& options = {});

}  // namespace HETPLAN_NAMESPACE::recipes

#ifndef HETPLAN_COMPILED
#include <hetplan/recipes/serving_systems.ipp>
#endif
