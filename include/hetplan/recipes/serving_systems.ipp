// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/recipes/serving_systems.hpp>

#include <string>

#include <hetplan/recipes/alpaserve.hpp>
#include <hetplan/recipes/detransformer.hpp>
#include <hetplan/recipes/epara.hpp>
#include <hetplan/recipes/galaxy.hpp>
#include <hetplan/recipes/interedge.hpp>
#include <hetplan/recipes/serv_p.hpp>
#include <hetplan/recipes/usher.hpp>
#include <hetplan/serve/cache_placement.hpp>

namespace HETPLAN_NAMESPACE::recipes {

HETPLAN_INLINE std::optional<serve::serving_system> serving_system_named(std::string_view name, const std::vector<serve::service>& services,
                                                                         const serving_system_options& options) {
  const auto with = [&](serve::cache_eviction rule) {
    return serve::serving_system{std::string(name), serve::cache_placement(rule),
                                 serve::offload_by_idle_goodput{&services, options.seed, options.most_offloads}};
  };
  if (name == "epara") return epara(services, {.most_offloads = options.most_offloads, .seed = options.seed});
  if (name == "interedge") return interedge(options.most_offloads);
  if (name == "alpaserve") return alpaserve();
  if (name == "galaxy") return galaxy();
  if (name == "serv-p") return serv_p();
  if (name == "usher") return usher();
  if (name == "detransformer") return detransformer();
  if (name == "lru") return with(serve::cache_eviction::least_recently_used);
  if (name == "lfu") return with(serve::cache_eviction::least_frequently_used);
  if (name == "mfu") return with(serve::cache_eviction::most_frequently_used);
  return std::nullopt;
}

}  // namespace HETPLAN_NAMESPACE::recipes
