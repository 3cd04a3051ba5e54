// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Measured times: of a network's layers by batch size, and of links by volume.

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/cluster/network.hpp>

#include "inputs.hpp"

namespace executors {

[[nodiscard]] double median(std::vector<double> all);

/// Seconds of a layer's forward, whole backward, and weight gradients within the backward: [batch size].
struct layer_times {
  std::vector<double> forward_s = {}, backward_s = {}, weights_s = {};
};
/// [kind of device][layer]
using kind_times = std::map<std::string, std::vector<layer_times>>;

struct profile_options {
  std::vector<int> batches;  ///< ascending
  int runs = 3;              ///< runs of seven microbatches, after an uncounted one
  slowing slow = slowing::wait;
  unsigned busy = 0;  ///< cores that train the network at the same time
};

/// Returns the times of layers in training of the whole network on one device, by the same worker as plans: with the same memory, caches
/// and neighbouring layers. A kind that repeats its work is measured as it is; one that waits takes N times as long as a core.
///
/// @return     means of processor time: runs add up tasks, and other load of the machine does not count.
/// Source      Asteroid, section 3.3 (times over batch sizes).
[[nodiscard]] kind_times measure_layers(const neural_network& net, const hetplan::cluster& c, const profile_options& o);

/// Returns the network's planning graph with profiles. The FLOP of a layer's backward are split as its time was, over all kinds and batch
/// sizes; a profile's backward is split in the same ratio.
[[nodiscard]] hetplan::planning_graph describe_measured(const neural_network& net, const kind_times& times,
                                                        const std::vector<int>& batches);

struct link_sample {
  double bytes = 0;
  double seconds = 0;
};

/// Fits samples by least squares: seconds = latency + bytes * s_per_byte.
[[nodiscard]] hetplan::transfer_cost fit_link(const std::vector<link_sample>& samples);

/// A program without tasks in which all devices take part: a flow for each ordered pair with a route.
struct pair_flows {
  program work;
  std::map<std::pair<hetplan::device_id, hetplan::device_id>, std::size_t> flow_of;
};
[[nodiscard]] pair_flows flows_between_all(const hetplan::cluster& c);

/// Returns the measured cluster: routes with their latencies, resources with the capacities that flows found.
///
/// @param send  returns the seconds until so many bytes have arrived; called for each pair with a route, one pair at a time.
/// @return      the nominal cluster with measured numbers. A resource's capacity is the median over the pairs whose route it limits; one
///              that limits none keeps its nominal capacity.
/// Source       DeepCEE, section 3.2; Asteroid, section 3.3.
[[nodiscard]] hetplan::cluster measure_cluster(const hetplan::cluster& nominal, int runs,
                                               const std::function<double(hetplan::device_id, hetplan::device_id, double)>& send);

}  // namespace executors
