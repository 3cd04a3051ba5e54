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

/// EPARA and its baselines; then EPARA with the placement of caches, of which it compares its own with.
inline constexpr std::array<std::string_view, 10> serving_system_names = {"epara", "interedge",     "alpaserve", "galaxy", "serv-p",
                                                                          "usher", "detransformer", "lru",       "lfu",    "mfu"};

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
