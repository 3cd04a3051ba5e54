// SPDX-License-Identifier: BSL-1.0
#pragma once
/// All serving systems by name.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <hetplan/recipes/alpaserve.hpp>
#include <hetplan/recipes/detransformer.hpp>
#include <hetplan/recipes/epara.hpp>
#include <hetplan/recipes/galaxy.hpp>
#include <hetplan/recipes/interedge.hpp>
#include <hetplan/recipes/serv_p.hpp>
#include <hetplan/recipes/usher.hpp>
#include <hetplan/serve/cache_placement.hpp>

namespace HETPLAN_NAMESPACE::recipes {

struct serving_system_options {
  int most_offloads = 5;
  std::uint64_t seed = 1;
};

struct known_serving_system {
  using services = std::vector<serve::service>;
  using options = serving_system_options;

  std::string_view name;
  std::string_view about;
  serve::serving_system (*make)(const services& s, const options& o);  ///< the services must outlive it
  bool passes_on = false;                                              ///< counts offloads
  bool draws = false;                                                  ///< has a use for a seed
};

/// EPARA with the placement of caches, with which the paper compares its own.
[[nodiscard]] inline serve::serving_system epara_with_cache(std::string_view name, serve::cache_eviction rule,
                                                            const std::vector<serve::service>& services, const serving_system_options& o) {
  auto system = epara(services, {.most_offloads = o.most_offloads, .seed = o.seed});
  system.name = name;
  system.placement = serve::cache_placement(rule);
  return system;
}

/// EPARA and its baselines.
/// Source  EPARA, sections 5.1 to 5.3; see each recipe.
inline constexpr std::array<known_serving_system, 10> serving_systems{{
    {"epara", "places by category what serves most, passes on by idle goodput",
     [](const auto& s, const auto& o) { return epara(s, {.most_offloads = o.most_offloads, .seed = o.seed}); }, true, true},
    {"interedge", "no operators of streams, passes on in turn", [](const auto&, const auto& o) { return interedge(o.most_offloads); },
     true},
    {"alpaserve", "every server for itself", [](const auto&, const auto&) { return alpaserve(); }},
    {"galaxy", "every model over as many GPUs as it can be cut for, one request at a time",
     [](const auto&, const auto&) { return galaxy(); }},
    {"serv-p", "one scheduler decides, in rounds", [](const auto&, const auto&) { return serv_p(); }},
    {"usher", "every server for itself, heavy in compute beside heavy in memory", [](const auto&, const auto&) { return usher(); }},
    {"detransformer", "every model over as many GPUs as it can be cut for, in batches",
     [](const auto&, const auto&) { return detransformer(); }},
    {"lru", "epara, but servers keep what was asked for last",
     [](const auto& s, const auto& o) { return epara_with_cache("lru", serve::cache_eviction::least_recently_used, s, o); }, true, true},
    {"lfu", "epara, but servers keep what was asked for most",
     [](const auto& s, const auto& o) { return epara_with_cache("lfu", serve::cache_eviction::least_frequently_used, s, o); }, true, true},
    {"mfu", "epara, but servers keep what was asked for least",
     [](const auto& s, const auto& o) { return epara_with_cache("mfu", serve::cache_eviction::most_frequently_used, s, o); }, true, true},
}};

/// A system by its name; none where there is no such name. The services must outlive it.
[[nodiscard]] inline std::optional<serve::serving_system> serving_system_named(std::string_view name,
                                                                               const std::vector<serve::service>& services,
                                                                               const serving_system_options& options = {}) {
  const auto* found = std::ranges::find(serving_systems, name, &known_serving_system::name);
  if (found == serving_systems.end()) return std::nullopt;
  return found->make(services, options);
}

}  // namespace HETPLAN_NAMESPACE::recipes
