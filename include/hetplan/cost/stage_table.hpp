// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Stages of consecutive blocks in O(1): prefix sums of time and memory, device by device, for every share of a microbatch.

#include <algorithm>
#include <vector>

#include <Eigen/Core>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/cost/memory_model.hpp>
#include <hetplan/graph/layer_sequence.hpp>

namespace hetplan {

/// Seconds of a stage for one microbatch share, and the tensor-parallel degree that achieves them.
struct stage_time {
  double total_s = 0;     ///< F + B + W in training, F otherwise
  double backward_s = 0;  ///< B + W
  int degree = 1;
};

/// Sums over blocks [first, last) of a sequence. Bytes are per sample.
///
/// Tensor parallelism is left out on a device for whose kind any layer of the model is profiled, so that the degrees do not
/// depend on the stage; partition::for_each_plan and validate look at the layers of the stage alone.
///
/// Shapes      times: (blocks + 1) x (device, degree, share), prefix sums; share 1 ... max_share.
/// Complexity  O(layers x devices x degrees x max_share) questions to the cost model to build; O(degrees) to ask
///             (plus the repeats of weight groups).
/// Throws      invalid_model where a model answers what its concept forbids.
class stage_table {
 public:
  template <cost_model Cost, memory_model Memory>
  stage_table(const planning_graph& model, const layer_sequence& sequence, const cluster& c, const Cost& cost, const Memory& memory,
              const workload& w, int max_share)
      : blocks_(sequence.size()), max_share_(static_cast<std::size_t>(max_share)), training_(w.mode == mode::training) {
    static_assert(check_cost_model<Cost>());
    add_memory(model, sequence, memory, w);
    for (const device& d : c.devices()) {
      first_column_.push_back(first_column_.empty() ? 0 : first_column_.back() + degrees_.back() * max_share_);
      degrees_.push_back(usable_degrees(model, d));
    }
    const auto columns = static_cast<Eigen::Index>(first_column_.back() + degrees_.back() * max_share_);
    total_ = Eigen::ArrayXXd::Zero(rows(), columns);
    backward_ = Eigen::ArrayXXd::Zero(training_ ? rows() : 0, training_ ? columns : 0);
    optimizer_ = Eigen::ArrayXXd::Zero(training_ && times_optimizer_step<Cost> ? rows() : 0, static_cast<Eigen::Index>(c.size()));
    for (const device& d : c.devices()) add_times(model, sequence, cost, d, w);
    if constexpr (times_optimizer_step<Cost>) {
      if (training_) add_optimizer_steps(model, sequence, cost, c);
    }
  }

  [[nodiscard]] std::size_t size() const { return blocks_; }
  [[nodiscard]] int max_share() const { return static_cast<int>(max_share_); }
  [[nodiscard]] int degrees(device_id d) const { return static_cast<int>(degrees_[d.index()]); }

  /// The degree with the least total; ties: the smaller degree.
  [[nodiscard]] stage_time time(std::size_t first, std::size_t last, device_id d, int share) const {
    stage_time best;
    for (int g = 1; g <= degrees(d); ++g) {
      const double* t = totals(d, share, g);
      if (const double total = t[last] - t[first]; g == 1 || total < best.total_s) best = {total, 0, g};
    }
    if (training_) best.backward_s = backwards(d, share, best.degree)[last] - backwards(d, share, best.degree)[first];
    return best;
  }
  /// Prefix sums of one column; size() + 1 numbers.
  [[nodiscard]] const double* totals(device_id d, int share, int degree = 1) const { return total_.col(column(d, share, degree)).data(); }
  [[nodiscard]] const double* backwards(device_id d, int share, int degree = 1) const {
    return backward_.col(column(d, share, degree)).data();
  }
  /// The optimizer's step for the distinct tensors of the stage; 0 where the cost model has none.
  [[nodiscard]] double optimizer_s(std::size_t first, std::size_t last, device_id d) const {
    if (optimizer_.size() == 0) return 0;
    const auto column = static_cast<Eigen::Index>(d.index());
    double total = optimizer_(index(last), column) - optimizer_(index(first), column);
    for (const repeat& r : repeats_) {
      if (r.inside(first, last)) total -= r.optimizer_s[d.index()];
    }
    return total;
  }

  /// Weights, gradients, optimizer; a weight group inside the stage counts once.
  [[nodiscard]] double state_bytes(std::size_t first, std::size_t last) const {
    double total = state_(index(last)) - state_(index(first));
    for (const repeat& r : repeats_) {
      if (r.inside(first, last)) total -= r.state_bytes;
    }
    return total;
  }
  /// What the devices of a stage reduce among themselves.
  [[nodiscard]] double trainable_bytes(std::size_t first, std::size_t last) const {
    double total = trainable_(index(last)) - trainable_(index(first));
    for (const repeat& r : repeats_) {
      if (r.inside(first, last)) total -= r.trainable_bytes;
    }
    return total;
  }
  /// Trainable tensors that the stage shares with stages behind it.
  [[nodiscard]] double tied_bytes(std::size_t first, std::size_t last) const {
    double total = 0;
    for (const repeat& r : repeats_) {
      if (r.before >= first && r.before < last && r.block >= last) total += r.trainable_bytes;
    }
    return total;
  }
  /// Kept by one sample in flight.
  [[nodiscard]] double activation_bytes(std::size_t first, std::size_t last) const {
    return activations_(index(last)) - activations_(index(first));
  }
  /// Generation: the cache of one sequence.
  [[nodiscard]] double cache_bytes(std::size_t first, std::size_t last) const { return cache_(index(last)) - cache_(index(first)); }

 private:
  /// A block with a tensor that an earlier layer of its weight group holds too, in block `before`.
  struct repeat {
    std::size_t before, block;
    double state_bytes, trainable_bytes;
    std::vector<double> optimizer_s;  ///< by device
    layer_id layer;
    [[nodiscard]] bool inside(std::size_t first, std::size_t last) const { return before >= first && block < last; }
  };
  [[nodiscard]] Eigen::Index rows() const { return index(blocks_ + 1); }
  static Eigen::Index index(std::size_t i) { return static_cast<Eigen::Index>(i); }
  [[nodiscard]] Eigen::Index column(device_id d, int share, int degree) const {
    return index(first_column_[d.index()] + static_cast<std::size_t>(degree - 1) * max_share_ + static_cast<std::size_t>(share - 1));
  }
  /// A profile knows one accelerator only.
  static std::size_t usable_degrees(const planning_graph& model, const device& d) {
    if (!d.interconnect) return 1;
    const auto profiled = [&](const layer& l) { return l.profile_for(d.kind) != nullptr; };
    return std::any_of(model.layers().begin(), model.layers().end(), profiled) ? 1 : static_cast<std::size_t>(d.accelerators);
  }

  template <memory_model Memory>
  void add_memory(const planning_graph& model, const layer_sequence& sequence, const Memory& memory, const workload& w) {
    state_ = trainable_ = activations_ = cache_ = Eigen::ArrayXd::Zero(rows());
    std::vector<std::ptrdiff_t> last_of_group(model.weight_groups().size(), -1);
    for (std::size_t b = 0; b < blocks_; ++b) {
      const Eigen::Index i = index(b);
      for (Eigen::ArrayXd* sum : {&state_, &trainable_, &activations_, &cache_}) (*sum)(i + 1) = (*sum)(i);
      for (const layer_id id : sequence.blocks[b]) {
        const layer& l = model[id];
        const double state = checked_bytes(memory.state(l, w), "state", l);
        state_(i + 1) += state;
        trainable_(i + 1) += l.trainable_weight().value();
        activations_(i + 1) += checked_bytes(memory.activations(l, w), "activations", l);
        if (w.mode == mode::generation) cache_(i + 1) += checked_bytes(memory.cache(l, w), "cache", l);
        if (l.weight_group < 0) continue;
        std::ptrdiff_t& before = last_of_group[static_cast<std::size_t>(l.weight_group)];
        if (before >= 0) repeats_.push_back({static_cast<std::size_t>(before), b, state, l.trainable_weight().value(), {}, id});
        before = static_cast<std::ptrdiff_t>(b);
      }
    }
  }

  template <cost_model Cost>
  void add_times(const planning_graph& model, const layer_sequence& sequence, const Cost& cost, const device& d, const workload& w) {
    for (int degree = 1; degree <= degrees(d.id); ++degree) {
      for (int share = 1; share <= max_share(); ++share) {
        const Eigen::Index at = column(d.id, share, degree);
        for (std::size_t b = 0; b < blocks_; ++b) {
          double forward = 0, backward = 0;
          for (const layer_id id : sequence.blocks[b]) {
            work q{.layer = model[id],
                   .phase = phase::forward,
                   .batch = static_cast<double>(share),
                   .tensor_parallel = degree,
                   .context = w.context};
            forward += checked_time_s(cost, q, d);
            if (!training_) continue;
            for (const phase back : {phase::backward_input, phase::backward_weight}) {
              q.phase = back;
              backward += checked_time_s(cost, q, d);
            }
          }
          total_(index(b) + 1, at) = total_(index(b), at) + forward + backward;
          if (training_) backward_(index(b) + 1, at) = backward_(index(b), at) + backward;
        }
      }
    }
  }

  template <times_optimizer_step Cost>
  void add_optimizer_steps(const planning_graph& model, const layer_sequence& sequence, const Cost& cost, const cluster& c) {
    for (repeat& r : repeats_) r.optimizer_s.assign(c.size(), 0);
    for (const device& d : c.devices()) {
      const auto column = static_cast<Eigen::Index>(d.id.index());
      for (std::size_t b = 0; b < blocks_; ++b) {
        double step = 0;
        for (const layer_id id : sequence.blocks[b]) {
          if (model[id].trainable_weight().value() > 0) step += checked_optimizer_step_s(cost, model[id], d);
        }
        optimizer_(index(b) + 1, column) = optimizer_(index(b), column) + step;
      }
      for (repeat& r : repeats_) {
        if (r.trainable_bytes > 0) r.optimizer_s[d.id.index()] = checked_optimizer_step_s(cost, model[r.layer], d);
      }
    }
  }

  std::size_t blocks_, max_share_;
  bool training_;
  std::vector<std::size_t> first_column_, degrees_;  ///< by device
  Eigen::ArrayXXd total_, backward_, optimizer_;
  Eigen::ArrayXd state_, trainable_, activations_, cache_;
  std::vector<repeat> repeats_;
};

}  // namespace hetplan
