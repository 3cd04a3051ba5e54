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

/// Seconds of a layer's forward and whole backward, by batch size, and those of the backward that the gradients of weights took.
struct layer_times {
  std::vector<double> forward_s = {}, backward_s = {}, weights_s = {};
};
/// By kind of device, then by layer.
using kind_times = std::map<std::string, std::vector<layer_times>>;

struct profile_options {
  std::vector<int> batches;  ///< ascending
  int runs = 3;              ///< of seven microbatches, after one that is not counted
  slowing slow = slowing::wait;
  unsigned busy = 0;  ///< cores on which the network is trained at the same time
};

/// Trains the whole network on one device, by the worker that trains plans, so that layers do what they do in training: memory, caches,
/// what comes before and behind. A kind that repeats its work is measured so; one that waits takes N times what a core takes.
///
/// @return     means of processor time: a run adds up tasks, and what else the machine does is no part of a layer.
/// Source      Asteroid, section 3.3 (times over batch sizes).
[[nodiscard]] kind_times measure_layers(const neural_network& net, const hetplan::cluster& c, const profile_options& o);

/// The network's planning graph with its profiles. The FLOP of a layer's backward are shared out as its time was, over all kinds and batch
/// sizes: by them a profile's backward is shared out again.
[[nodiscard]] hetplan::planning_graph describe_measured(const neural_network& net, const kind_times& times,
                                                        const std::vector<int>& batches);

/// Bytes that were sent from one device to another, and how long it took until they were there.
struct link_sample {
  double bytes = 0;
  double seconds = 0;
};

/// The line of least squares through samples: seconds = latency + bytes * s_per_byte.
[[nodiscard]] hetplan::transfer_cost fit_link(const std::vector<link_sample>& samples);

/// A program without tasks: a flow for each pair of devices that has a route, and all devices take part.
struct pair_flows {
  program work;
  std::map<std::pair<hetplan::device_id, hetplan::device_id>, std::size_t> flow_of;
};
[[nodiscard]] pair_flows flows_between_all(const hetplan::cluster& c);

/// A cluster as measured: routes with their latency, resources with the capacity that their flows found.
///
/// @param send  seconds until so many bytes from one device are at another; called for every pair with a route, pair by pair.
/// @return      the nominal cluster with other numbers. A resource's capacity is the median over the pairs whose route it limits;
///              one that limits none keeps its nominal capacity.
/// Source       DeepCEE, section 3.2; Asteroid, section 3.3.
[[nodiscard]] hetplan::cluster measure_cluster(const hetplan::cluster& nominal, int runs,
                                               const std::function<double(hetplan::device_id, hetplan::device_id, double)>& send);

}  // namespace executors
