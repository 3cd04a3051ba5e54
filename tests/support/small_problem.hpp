// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Small random problems for planners that search a view: only memory is limited, networks are slow or fast.

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/search/ranking.hpp>

#include "support/search_instance.hpp"

namespace hetplan::test {

/// Memory model of plain weights and twentyfold activations, so that the number of microbatches in flight matters.
struct heavy_activations {
  [[nodiscard]] bytes state(const layer& l, const workload& w) const { return plain_memory{}.state(l, w); }
  [[nodiscard]] bytes activations(const layer& l, const workload& w) const { return 20 * plain_memory{}.activations(l, w); }
  [[nodiscard]] bytes cache(const layer& l, const workload& w) const { return plain_memory{}.cache(l, w); }
};

/// A network's routes over resources of `factor` times the speed.
struct faster {
  const network& given;
  double factor;

  [[nodiscard]] std::vector<resource> resources(std::span<const device>) const {
    std::vector<resource> all(given.resources().begin(), given.resources().end());
    for (resource& r : all) r.capacity = r.capacity * factor;
    return all;
  }
  [[nodiscard]] std::optional<route> find_route(std::span<const device>, device_id from, device_id to) const {
    return *given.find(from, to);
  }
};

/// A random problem; its parts may be changed between calls of problem().
struct small_problem {
  search_instance drawn;
  hetplan::cluster cluster;
  hetplan::job job;

  /// @param twins  true: devices may be equal.
  small_problem(std::uint64_t seed, bool twins)
      : drawn(random_search_instance(seed, {.most_layers = 5, .most_devices = 4})), cluster(drawn.cluster) {
    random_source random(seed);
    job.workload = drawn.blank.workload;
    job.batch = random.pick(std::vector{1, 4, 6, 8});
    if (random.chance(0.5)) job.microbatch_sizes = {random.pick(std::vector{1, 2, job.batch}), job.batch};
    std::vector<device> all(cluster.devices().begin(), cluster.devices().end());
    double grown = 1;
    for (device& d : all) {
      d.energy_budget.reset();
      d.max_busy = 1;
      d.launch = d.launch * 0.1;
      if (!twins) d.memory = d.memory * (grown += 0.01);
    }
    cluster = {"random", std::move(all), faster{drawn.cluster.network(), random.pick(std::vector{1.0, 10.0, 100.0})}};
  }
  [[nodiscard]] auto problem() const { return planning_problem{drawn.model, cluster, roofline{}, job, judge_models{heavy_activations{}}}; }
};

}  // namespace hetplan::test
