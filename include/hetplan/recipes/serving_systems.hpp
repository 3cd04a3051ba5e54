// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Serving systems by name: EPARA and its baselines.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <hetplan/recipes/epara.hpp>
#include <hetplan/serve/greedy_placement.hpp>
#include <hetplan/serve/request_handlers.hpp>
#include <hetplan/serve/serve_requests.hpp>

namespace hetplan::recipes {

/// USHER: batches, slices and model parallelism within a server, as many replicas as requested, packed so that compute-heavy models share a
/// GPU with memory-heavy ones. No offloading.
/// Source  USHER (Shubha et al., 2024), as EPARA compares itself with it (section 5.2). Deviations: see serve/greedy_placement.hpp.
[[nodiscard]] inline serve::serving_system usher() {
  constexpr serve::parallelism_operators operators{.multi_frame = false, .data_parallel = false};
  return {"usher", serve::complementary_placement(operators), serve::serve_locally{}, operators};
}

/// InterEdge: no request-level operators (MF, DP); batches, slices and model parallelism as EPARA's, with the same placement policy.
/// Requests that a server cannot serve go to the others round robin.
/// Source  InterEdge (Brown et al., 2024), as EPARA compares itself with it (section 5.1). Choice: EPARA's placement, as none is described.
[[nodiscard]] inline serve::serving_system interedge(int most_offloads = 5) {
  constexpr serve::parallelism_operators operators{.multi_frame = false, .data_parallel = false};
  return {"interedge", serve::submodular_placement({.operators = operators}), serve::pass_on_in_turn(most_offloads), operators};
}

/// SERV-P: InterEdge's operators and placement; every request waits for the decision of one central scheduler.
/// Source  SERV-P (Farhadi et al., 2021), as EPARA compares itself with it (sections 5.1 and 5.2, figure 3e; groups of 10 servers). Choice:
///         operators and placement, which are not described, as InterEdge's, so that only the handling differs.
[[nodiscard]] inline serve::serving_system serv_p() {
  auto system = interedge();
  system.name = "serv-p";
  system.handler = serve::central_handler();
  return system;
}

/// Galaxy: models are split as widely as possible, also across servers; one model per GPU, one request at a time, no offloading.
/// Source  Galaxy (Ye et al., 2024), as EPARA compares itself with it (section 5.1: each GPU a device, across servers; section 2.1: no
///         multi-task). Choice: no batches, as Galaxy itself serves single requests.
[[nodiscard]] inline serve::serving_system galaxy() {
  constexpr serve::parallelism_operators operators{
      .batching = false, .multi_task = false, .cut = serve::model_parallelism::widest, .multi_frame = false, .data_parallel = false};
  return {"galaxy", serve::submodular_placement({.operators = operators, .reach = serve::handling_reach::own_server}),
          serve::serve_locally{}, operators};
}

/// DeTransformer: models are split as widely as possible, also across servers, with batches; one model per GPU, no offloading.
/// Source  DeTransformer (Wei et al., 2024), as EPARA compares itself with it (sections 2.1 and 5.2). Choice: batches, the only difference
///         from Galaxy here. The communication that its blocks save belongs to the service times.
[[nodiscard]] inline serve::serving_system detransformer() {
  constexpr serve::parallelism_operators operators{
      .multi_task = false, .cut = serve::model_parallelism::widest, .multi_frame = false, .data_parallel = false};
  return {"detransformer", serve::submodular_placement({.operators = operators, .reach = serve::handling_reach::own_server}),
          serve::serve_locally{}, operators};
}

/// AlpaServe: batches, slices and model parallelism within a server, placed greedily by what each server serves itself. No offloading.
/// Source  AlpaServe (Li et al., 2023), its greedy placement by attainment, as EPARA compares itself with it (section 5.1: rejects requests
///         that need offloading or several servers).
[[nodiscard]] inline serve::serving_system alpaserve() {
  constexpr serve::parallelism_operators operators{.multi_frame = false, .data_parallel = false};
  return {"alpaserve",
          serve::submodular_placement({.operators = operators, .reach = serve::handling_reach::own_server, .across_servers = false}),
          serve::serve_locally{}, operators};
}

struct serving_system_options {
  int most_offloads = 5;
  std::uint64_t seed = 1;
};

struct known_serving_system {
  using services = std::vector<serve::service>;
  using options = serving_system_options;

  std::string_view name;
  std::string_view about;
  serve::serving_system (*make)(const services& s, const options& o);  ///< the services must outlive the system
  bool passes_on = false;                                              ///< true if the system offloads requests
  bool draws = false;                                                  ///< true if the system uses a seed
};

/// EPARA with cache placement, a baseline of its paper.
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

/// Returns the system of a name; nothing if the name is unknown. The services must outlive the system.
[[nodiscard]] inline std::optional<serve::serving_system> serving_system_named(std::string_view name,
                                                                               const std::vector<serve::service>& services,
                                                                               const serving_system_options& options = {}) {
  const auto* found = std::ranges::find(serving_systems, name, &known_serving_system::name);
  if (found == serving_systems.end()) return std::nullopt;
  return found->make(services, options);
}

}  // namespace hetplan::recipes
