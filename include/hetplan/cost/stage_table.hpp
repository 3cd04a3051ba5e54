// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Stages of consecutive layers in O(1): prefix sums of time and memory, layer by layer and device by device.

#include <algorithm>
#include <utility>
#include <vector>

#include <Eigen/Core>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/cost/memory_model.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan {

/// Sums over layers [first, last) of the graph's topological numbering, for one batch size.
///
/// Shapes      time_s: (layers + 1) x devices, prefix sums of F + B + W in training, F otherwise.
/// Complexity  O(layers x devices) to build, O(1) to ask (plus the members of weight groups).
class stage_table {
 public:
  template <cost_model Cost, memory_model Memory>
  stage_table(const planning_graph& model, const cluster& c, const Cost& cost, const Memory& memory, const workload& w, int batch)
      : time_s_(Eigen::ArrayXXd::Zero(rows(model), static_cast<Eigen::Index>(c.size()))), state_(Eigen::ArrayXd::Zero(rows(model))),
        activations_(state_), cache_(state_), cut_(Eigen::ArrayXd::Zero(rows(model))) {
    std::vector<std::ptrdiff_t> last_of_group(model.weight_groups().size(), -1);
    for (const layer& l : model.layers()) {
      const auto i = static_cast<Eigen::Index>(l.id.index());
      for (const device& d : c.devices()) {
        work q{.layer = l, .phase = phase::forward, .batch = static_cast<double>(batch), .context = w.context};
        double t = checked_time_s(cost, q, d);
        if (w.mode == mode::training) {
          for (const phase back : {phase::backward_input, phase::backward_weight}) {
            q.phase = back;
            t += checked_time_s(cost, q, d);
          }
        }
        const auto column = static_cast<Eigen::Index>(d.id.index());
        time_s_(i + 1, column) = time_s_(i, column) + t;
      }
      const double state = checked_bytes(memory.state(l, w), "state", l);
      state_(i + 1) = state_(i) + state;
      activations_(i + 1) = activations_(i) + checked_bytes(memory.activations(l, w), "activations", l) * batch;
      if (w.mode == mode::generation) cache_(i + 1) = cache_(i) + checked_bytes(memory.cache(l, w), "cache", l) * batch;
      if (l.weight_group >= 0) {
        std::ptrdiff_t& before = last_of_group[static_cast<std::size_t>(l.weight_group)];
        if (before >= 0) shared_.push_back({before, i, state});
        before = i;
      }
    }
    add_cuts(model, w.mode == mode::training, batch);
  }

  [[nodiscard]] std::size_t layers() const { return static_cast<std::size_t>(state_.size() - 1); }
  [[nodiscard]] double time_s(std::size_t first, std::size_t last, std::size_t device) const {
    return time_s_(index(last), index(device)) - time_s_(index(first), index(device));
  }
  /// Weights, gradients, optimizer; a weight group inside the stage counts once.
  [[nodiscard]] double state_bytes(std::size_t first, std::size_t last) const {
    double total = state_(index(last)) - state_(index(first));
    for (const repeat& r : shared_) {
      if (r.before >= index(first) && r.layer < index(last)) total -= r.bytes;
    }
    return total;
  }
  /// Kept by one microbatch in flight.
  [[nodiscard]] double activation_bytes(std::size_t first, std::size_t last) const { return activations_(index(last)) - activations_(index(first)); }
  /// Generation: the caches of one group of sequences.
  [[nodiscard]] double cache_bytes(std::size_t first, std::size_t last) const { return cache_(index(last)) - cache_(index(first)); }
  /// Bytes of one microbatch that cross the boundary before a layer, there and back; each tensor once.
  [[nodiscard]] double cut_bytes(std::size_t before_layer) const { return cut_(index(before_layer)); }

 private:
  /// A layer whose tensor an earlier layer of its weight group holds too.
  struct repeat {
    Eigen::Index before, layer;
    double bytes;
  };
  static Eigen::Index rows(const planning_graph& model) { return static_cast<Eigen::Index>(model.size() + 1); }
  static Eigen::Index index(std::size_t i) { return static_cast<Eigen::Index>(i); }

  /// A tensor crosses every boundary from behind its layer to its last reader, with the most bytes that a
  /// reader behind the boundary takes.
  void add_cuts(const planning_graph& model, bool training, int batch) {
    for (const layer& l : model.layers()) {
      const auto edges = model.out_edges(l.id);  // by target
      double forward = 0, gradient = 0;
      for (std::size_t e = edges.size(); e-- > 0;) {
        forward = std::max(forward, edges[e].forward.value());
        gradient = std::max(gradient, edges[e].gradient.value());
        const std::size_t begin = e == 0 ? l.id.index() : edges[e - 1].to.index();
        for (std::size_t b = begin + 1; b <= edges[e].to.index(); ++b) {
          cut_(index(b)) += (forward + (training ? gradient : 0)) * batch;
        }
      }
    }
  }

  Eigen::ArrayXXd time_s_;
  Eigen::ArrayXd state_, activations_, cache_, cut_;
  std::vector<repeat> shared_;
};

}  // namespace hetplan
