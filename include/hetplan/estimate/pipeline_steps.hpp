// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a plan's pipeline is to an estimator: how long each stage and each link takes for one microbatch.

#include <cstddef>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cluster/network.hpp>
#include <hetplan/plan/stage_costs.hpp>

namespace hetplan {

/// Execution steps (stages) and communication steps (links) of one pipeline.
///
/// Seconds are of one microbatch unless stated; outside training every backward is 0. A route that is missing
/// makes its step infinite.
struct pipeline_steps {
  /// A device's part of a stage.
  struct device_step {
    device_id device;
    int samples = 1;
    double forward_s = 0;
    double backward_s = 0;   ///< both parts
    double optimizer_s = 0;  ///< once an iteration
  };
  struct stage_step {
    double forward_s = 0;     ///< the largest of its devices
    double backward_s = 0;    ///< the largest of its devices
    double total_s = 0;       ///< the largest forward + backward of one device: at most the sum of the two above
    double input_bytes = 0;   ///< per sample, from other stages
    double collective_s = 0;  ///< once an iteration: its ring, tensors shared with later stages, the optimizer's step
    int depth = 1;
    int in_flight = 1;  ///< K: microbatches whose activations it holds at once; 1 outside training
    std::vector<device_step> devices = {};
    std::vector<std::size_t> in = {};  ///< indices of links
    std::vector<std::size_t> out = {};
  };
  struct link_step {
    std::size_t from = 0;
    std::size_t to = 0;
    double forward_cut = 0;     ///< bytes per sample
    double backward_cut = 0;    ///< bytes per sample; 0 outside training
    double forward_s = 0;       ///< latency included
    double backward_s = 0;      ///< latency included; 0 where nothing goes back
    double forward_wire_s = 0;  ///< without the latency: what keeps the next microbatch off the wire
    double backward_wire_s = 0;
    double total_s = 0;  ///< forward + backward
    double own_s = 0;    ///< the iteration's whole traffic of this link, one microbatch behind the other
  };

  hetplan::mode mode = mode::training;
  int microbatches = 1;
  std::vector<stage_step> stages;  ///< in the plan's order, which is topological
  std::vector<link_step> links;    ///< by (from, to)

  /// Are all routes there that the plan needs? Otherwise every estimate is infinite.
  [[nodiscard]] bool connected() const;
};

namespace detail {

[[nodiscard]] std::vector<device_id> devices_of(const stage& s);

/// Bytes of the weight groups that stage s trains and some later stage holds too.
[[nodiscard]] double tied_bytes(const plan& p, const planning_graph& model, std::size_t s);

/// What ends a stage's iteration in training [s].
[[nodiscard]] double collective_s(const stage_costs& whole, std::size_t s);

}  // namespace detail

/// Times a link that every microbatch crosses, there with `forward_cut` and back with `backward_cut` bytes per sample.
///
/// own = forward + backward + (M - 1) wire, where wire is the sum of both directions if they take turns and the larger
/// one if the wire is full duplex.
[[nodiscard]] pipeline_steps::link_step time_link(const exchange_cost& x, int microbatch_size, int microbatches, double forward_cut,
                                                  double backward_cut);

/// Times the steps of a plan; every link has its peak bandwidth to itself.
///
/// Stage: the slowest of its devices. Link: the slowest pair of its two groups is charged for all of them. Collective of a
/// stage: its ring, then the tensors that a later stage holds too at the cluster's worst pair both ways, then the slowest
/// device's optimizer step.
///
/// @param s         of one pipeline, one microbatch size, 1F1B or GPipe, no parameter server; stages in topological order.
/// Units            SI.  Complexity  O(layers x devices of their stage + pairs of devices).
/// Throws           invalid_input (the plan is invalid or none of these); invalid_model (a cost is not finite or negative).
/// Source           Asteroid, section 3.2, eqs. 4 and 5. Deviations: latency; full-duplex wires; rings on shared resources;
///                  tied tensors, which the paper does not have, belong to the earlier stage. The plan's transfer rules and
///                  network policy are not read.
[[nodiscard]] pipeline_steps make_steps(const stage_costs& s);
[[nodiscard]] pipeline_steps make_steps(const plan& p, const planning_graph& model, const cluster& c, const any_cost_model& cost);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/estimate/pipeline_steps.ipp>
#endif
