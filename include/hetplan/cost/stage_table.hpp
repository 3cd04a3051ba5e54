// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Stages of consecutive blocks in O(1): prefix sums of time and memory, device by device, for every share of a microbatch.

#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/cost/memory_model.hpp>
#include <hetplan/graph/layer_sequence.hpp>

namespace HETPLAN_NAMESPACE {

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
    const std::size_t columns = first_column_.back() + degrees_.back() * max_share_;
    total_ = sums(rows(), columns);
    if (training_) backward_ = sums(rows(), columns);
    if (training_ && times_optimizer_step<Cost>) optimizer_ = sums(rows(), c.size());
    for (const device& d : c.devices()) add_times(model, sequence, cost, d, w);
    if constexpr (times_optimizer_step<Cost>) {
      if (training_) add_optimizer_steps(model, sequence, cost, c);
    }
  }

  [[nodiscard]] std::size_t size() const { return blocks_; }
  [[nodiscard]] int max_share() const { return static_cast<int>(max_share_); }
  [[nodiscard]] int degrees(device_id d) const { return static_cast<int>(degrees_[d.index()]); }

  /// The degree with the least total; ties: the smaller degree.
  [[nodiscard]] stage_time time(std::size_t first, std::size_t last, device_id d, int share) const;
  /// Prefix sums of one column; size() + 1 numbers.
  [[nodiscard]] const double* totals(device_id d, int share, int degree = 1) const { return total_.column(column(d, share, degree)); }
  [[nodiscard]] const double* backwards(device_id d, int share, int degree = 1) const;
  /// The optimizer's step for the distinct tensors of the stage; 0 where the cost model has none.
  [[nodiscard]] double optimizer_s(std::size_t first, std::size_t last, device_id d) const;

  /// Weights, gradients, optimizer; a weight group inside the stage counts once.
  [[nodiscard]] double state_bytes(std::size_t first, std::size_t last) const;
  /// What the devices of a stage reduce among themselves.
  [[nodiscard]] double trainable_bytes(std::size_t first, std::size_t last) const;
  /// Trainable tensors that the stage shares with stages behind it.
  [[nodiscard]] double tied_bytes(std::size_t first, std::size_t last) const;
  /// Kept by one sample in flight.
  [[nodiscard]] double activation_bytes(std::size_t first, std::size_t last) const;
  /// Generation: the cache of one sequence.
  [[nodiscard]] double cache_bytes(std::size_t first, std::size_t last) const { return cache_[last] - cache_[first]; }

 private:
  /// A block with a tensor that an earlier layer of its weight group holds too, in block `before`.
  struct repeat {
    std::size_t before, block;
    double state_bytes, trainable_bytes;
    std::vector<double> optimizer_s;  ///< by device
    layer_id layer;
    [[nodiscard]] bool inside(std::size_t first, std::size_t last) const { return before >= first && block < last; }
  };
  /// Prefix sums over the blocks, one column after the other.
  class sums {
   public:
    sums() = default;
    sums(std::size_t rows, std::size_t columns) : rows_(rows), numbers_(rows * columns) {}
    [[nodiscard]] bool empty() const { return numbers_.empty(); }
    [[nodiscard]] double& operator()(std::size_t row, std::size_t column) { return numbers_[column * rows_ + row]; }
    [[nodiscard]] const double* column(std::size_t c) const { return numbers_.data() + c * rows_; }

   private:
    std::size_t rows_ = 0;
    std::vector<double> numbers_;
  };
  [[nodiscard]] std::size_t rows() const { return blocks_ + 1; }
  [[nodiscard]] std::size_t column(device_id d, int share, int degree) const;
  /// A profile knows one accelerator only.
  static std::size_t usable_degrees(const planning_graph& model, const device& d);

  template <memory_model Memory>
  void add_memory(const planning_graph& model, const layer_sequence& sequence, const Memory& memory, const workload& w) {
    state_ = trainable_ = activations_ = cache_ = std::vector<double>(rows());
    std::vector<std::ptrdiff_t> last_of_group(model.weight_groups().size(), -1);
    for (std::size_t b = 0; b < blocks_; ++b) {
      for (std::vector<double>* sum : {&state_, &trainable_, &activations_, &cache_}) (*sum)[b + 1] = (*sum)[b];
      for (const layer_id id : sequence.blocks[b]) {
        const layer& l = model[id];
        const double state = checked_bytes(memory.state(l, w), "state", l);
        state_[b + 1] += state;
        trainable_[b + 1] += l.trainable_weight().value();
        activations_[b + 1] += checked_bytes(memory.activations(l, w), "activations", l);
        if (w.mode == mode::generation) cache_[b + 1] += checked_bytes(memory.cache(l, w), "cache", l);
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
        const std::size_t at = column(d.id, share, degree);
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
          total_(b + 1, at) = total_(b, at) + forward + backward;
          if (training_) backward_(b + 1, at) = backward_(b, at) + backward;
        }
      }
    }
  }

  template <times_optimizer_step Cost>
  void add_optimizer_steps(const planning_graph& model, const layer_sequence& sequence, const Cost& cost, const cluster& c) {
    for (repeat& r : repeats_) r.optimizer_s.assign(c.size(), 0);
    for (const device& d : c.devices()) {
      const std::size_t column = d.id.index();
      for (std::size_t b = 0; b < blocks_; ++b) {
        double step = 0;
        for (const layer_id id : sequence.blocks[b]) {
          if (model[id].trainable_weight().value() > 0) step += checked_optimizer_step_s(cost, model[id], d);
        }
        optimizer_(b + 1, column) = optimizer_(b, column) + step;
      }
      for (repeat& r : repeats_) {
        if (r.trainable_bytes > 0) r.optimizer_s[d.id.index()] = checked_optimizer_step_s(cost, model[r.layer], d);
      }
    }
  }

  std::size_t blocks_, max_share_;
  bool training_;
  std::vector<std::size_t> first_column_, degrees_;  ///< by device
  sums total_, backward_, optimizer_;
  std::vector<double> state_, trainable_, activations_, cache_;
  std::vector<repeat> repeats_;
};

}  // namespace HETPLAN_NAMESPACE

#ifndef HETPLAN_COMPILED
#include <hetplan/cost/stage_table.ipp>
#endif
