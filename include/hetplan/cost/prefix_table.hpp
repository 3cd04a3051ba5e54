// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Prefix sums of time and memory: the cost of a stage of consecutive blocks in O(1), for every device and share of a microbatch.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/cost/memory_model.hpp>
#include <hetplan/cost/token_passes.hpp>
#include <hetplan/cost/workspace_table.hpp>
#include <hetplan/graph/layer_sequence.hpp>

namespace hetplan {

/// Cost model that caches another one, for one model on one cluster. `total_s` requests the time of each layer once per device and kind of
/// work: a search judges thousands of plans whose stages differ little. Of the boundaries before a layer, the last one requested is
/// cached: layers rarely change their predecessor. Copies share the cache. A user's model is never called from two threads at once.
///
/// Tables are per device, not per class of devices: a model may distinguish devices of one kind. Other graphs and clusters are not cached.
///
/// Complexity  O(layers of the call) additions per total. Memory: 8 bytes per layer, device and kind of work requested, at most `most`
///             numbers (three times as many if the model prices boundaries); then the cache is cleared.
class remembered_cost {
 public:
  static constexpr std::size_t most_numbers = std::size_t{1} << 24;

  /// Model and cluster must outlive the object.
  remembered_cost(any_cost_model asked, const planning_graph& model, const cluster& c, std::size_t most = most_numbers);
  // Temporaries would not outlive the object.
  remembered_cost(any_cost_model, const planning_graph&& the_model_must_outlive_it, const cluster&, std::size_t = most_numbers) = delete;
  remembered_cost(any_cost_model, const planning_graph&, const cluster&& the_cluster_must_outlive_it, std::size_t = most_numbers) = delete;

  [[nodiscard]] seconds time(const work& w, const device& d) const;
  [[nodiscard]] bool times_optimizer() const;
  [[nodiscard]] seconds optimizer_step(const layer& l, const device& d) const;
  [[nodiscard]] bool times_boundaries() const;
  [[nodiscard]] seconds boundary(const layer& before, const layer& after, const work_kind& k, const device& d) const;
  [[nodiscard]] double largest_batch(const work& w, const device& d) const;
  [[nodiscard]] bool tells_parts() const;
  [[nodiscard]] time_parts parts(const work& w, const device& d) const;
  void times_s(const planning_graph& model, const work_kind& k, const device& d, double* by_layer) const;
  [[nodiscard]] double total_s(const planning_graph& model, std::span<const layer_id> layers, const work_kind& k, const device& d,
                               double before) const;

 private:
  struct tables;
  std::shared_ptr<tables> tables_;
};

/// Seconds of a stage for one microbatch share, and the tensor-parallel degree that achieves them.
struct interval_time {
  double total_s = 0;     ///< F + B + W in training, F otherwise; in generation of the mean pass
  double backward_s = 0;  ///< B + W
  double first_s = 0;     ///< generation: F of a pass until the first token, in their mean; see run_part
  double later_s = 0;     ///< generation: of a pass behind it; 0 if there is none
  int degree = 1;
};

/// Sums over blocks [first, last) of a layer sequence. Bytes are per sample.
///
/// In generation times are of the mean pass, so a run takes token_passes::size() of them, and those of the mean pass of each part of the
/// run; activations are those of the largest pass. A device's overhead is in the times, once for each task, and so is its send_overhead:
/// each stage but the last sends forward, each but the first back (in training), and the last one tokens (in generation, of several
/// stages).
///
/// If the cost model prices boundaries, a stage pays those between its layers, in sequence order, but not the one before its first layer.
///
/// A stage has the degrees of tensor parallelism that all of its layers allow. If a layer of the model is profiled on a device's kind, all
/// stages there have degree 1; partition::for_each_plan and validate consider the layers of the stage alone.
///
/// A share of more than 64 samples is rounded up to six significant bits (by at most 3 %), so that tables grow with its logarithm.
///
/// Shapes      times: (blocks + 1) x (device, degree, distinct share), prefix sums; shares 1 ... max_share.
/// Complexity  O(layers x devices x degrees x distinct shares) model calls to build; O(degrees + repeats of weight groups) per query.
/// Throws      invalid_model if a model returns a value forbidden by its concept.
class prefix_table {
 public:
  /// @param recompute  true in training: a backward takes the time of its forward on top.
  prefix_table(const planning_graph& model, const layer_sequence& sequence, const cluster& c, const any_cost_model& cost,
               const any_memory_model& memory, const workload& w, int max_share, bool recompute = false);

  [[nodiscard]] std::size_t size() const { return blocks_; }
  [[nodiscard]] int max_share() const { return max_share_; }
  /// Shares with different times are numbered from 0: their count, the number of a share, and the samples of a number.
  [[nodiscard]] std::size_t distinct_shares() const { return distinct_; }
  [[nodiscard]] static constexpr std::size_t which_share(int share) {
    const auto before = static_cast<unsigned>(share - 1);  // counted from 0
    if (before < 64) return before;
    const auto dropped = static_cast<unsigned>(std::bit_width(before)) - 6;  // bits behind the first six
    return 64 + 32 * std::size_t{dropped - 1} + (before >> dropped) - 32;
  }
  [[nodiscard]] int samples_of(std::size_t distinct_share) const;
  /// Returns the number of degrees of tensor parallelism of a device that some stage may have; columns are asked for by number, from 1.
  [[nodiscard]] int degrees(device_id d) const { return static_cast<int>(degrees_[d.index()].size()); }
  [[nodiscard]] bool same_degrees(device_id a, device_id b) const { return degrees_[a.index()] == degrees_[b.index()]; }

  /// True if passes until the first token are told apart from those behind it: in generation.
  [[nodiscard]] bool has_parts() const { return !of_part_[0].total.empty(); }

  /// Returns the time at the degree with the least total; ties: the smaller degree.
  [[nodiscard]] interval_time time(std::size_t first, std::size_t last, device_id d, int share) const;
  /// Returns the total of time(), for searches that ask for it often.
  [[nodiscard]] double total_s(std::size_t first, std::size_t last, device_id d, int share) const {
    if (first == last) return 0;
    const sums& entries = has_entries() ? entry_ : total_;
    std::size_t c = column(d, share, 1);
    double least = total_.column(c)[last] - entries.column(c)[first];
    for (std::size_t g = 1; g < degrees_[d.index()].size(); ++g) {
      c += distinct_;
      if (!allows(first, last, d, g)) continue;
      least = std::min(least, total_.column(c)[last] - entries.column(c)[first]);
    }
    return adjusted_ ? std::max(0.0, least + adjustment(first, last, d).total_s) : std::max(0.0, least);
  }
  /// Prefix sums of one column, size() + 1 numbers each. Nonempty blocks [first, last) take totals[last] - entries[first]. An entry is the
  /// total plus the boundary to the next block, which a stage pays if it continues across it, less the overhead of the stage's tasks. Times
  /// for sending are not in them.
  [[nodiscard]] const double* totals(device_id d, int share, int degree = 1) const { return total_.column(column(d, share, degree)); }
  [[nodiscard]] const double* entries(device_id d, int share, int degree = 1) const;
  /// The same of a part of a run of generation.
  [[nodiscard]] const double* totals(device_id d, int share, int degree, run_part part) const;
  [[nodiscard]] const double* entries(device_id d, int share, int degree, run_part part) const;
  /// Returns the seconds by which the overhead of a stage's tasks lowers each entry.
  [[nodiscard]] double overheads_s(device_id d) const { return overheads_s_[d.index()]; }
  /// True if a device takes time to send.
  [[nodiscard]] bool times_sending() const { return sends_; }
  [[nodiscard]] const double* backwards(device_id d, int share, int degree = 1) const;
  [[nodiscard]] const double* backward_entries(device_id d, int share, int degree = 1) const;
  [[nodiscard]] bool times_boundaries() const { return boundaries_; }
  /// Returns the seconds of the optimizer step for the distinct tensors of a stage; 0 if the cost model has none.
  [[nodiscard]] double optimizer_s(std::size_t first, std::size_t last, device_id d) const;

  /// Returns the bytes of weights, gradients and optimizer; a weight group inside the stage counts once.
  [[nodiscard]] double state_bytes(std::size_t first, std::size_t last) const;
  /// Returns the part of them that the optimizer holds; 0 if the memory model cannot tell.
  [[nodiscard]] double optimizer_bytes(std::size_t first, std::size_t last) const;
  /// Returns the trainable bytes, which the devices of a stage reduce among themselves.
  [[nodiscard]] double trainable_bytes(std::size_t first, std::size_t last) const;
  /// Returns the bytes of trainable tensors that a stage shares with later stages.
  [[nodiscard]] double tied_bytes(std::size_t first, std::size_t last) const;
  /// Returns the activations that one sample in flight keeps.
  [[nodiscard]] double activation_bytes(std::size_t first, std::size_t last) const;
  /// Temporary memory of training, which a device has at its largest layer.
  [[nodiscard]] const workspace_table& workspace() const { return workspace_; }
  /// Returns the cache of one sequence in generation.
  [[nodiscard]] double cache_bytes(std::size_t first, std::size_t last) const { return cache_[last] - cache_[first]; }

 private:
  /// Block with a tensor that an earlier layer of its weight group also holds, in block `before`.
  struct repeat {
    std::size_t before, block;
    double state_bytes, optimizer_bytes, trainable_bytes;
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
  /// Returns a sum over the blocks in which a tensor of several layers counts once.
  ///
  /// @param before  prefix sums by block.   @param of  (repeat) -> what it adds to them.
  template <class Of>
  [[nodiscard]] double without_repeats(const double* before, std::size_t first, std::size_t last, const Of& of) const {
    double total = before[last] - before[first];
    for (const repeat& r : repeats_) {
      if (r.inside(first, last)) total -= of(r);
    }
    return total;
  }
  [[nodiscard]] bool has_entries() const { return !entry_.empty(); }
  [[nodiscard]] std::size_t column(device_id d, int share, int degree) const {
    return first_column_[d.index()] + static_cast<std::size_t>(degree - 1) * distinct_ + which_share(share);
  }
  /// Returns whether all layers of the blocks allow the degree with index g of a device.
  [[nodiscard]] bool allows(std::size_t first, std::size_t last, device_id d, std::size_t g) const {
    return barred_.empty() || barred_[d.index()][g][last] == barred_[d.index()][g][first];
  }
  void add_memory(const planning_graph& model, const layer_sequence& sequence, const any_memory_model& memory, const workload& w);

  void add_times(const planning_graph& model, const layer_sequence& sequence, const any_cost_model& cost, const device& d);

  void add_optimizer_steps(const planning_graph& model, const layer_sequence& sequence, const any_cost_model& cost, const cluster& c);

  struct part_sums {
    sums total, entry;  ///< entry: empty where entry_ is
  };
  [[nodiscard]] const part_sums& sums_of(run_part part) const { return of_part_[part == run_part::first_token ? 0 : 1]; }
  /// Returns what the columns leave out: the time that a stage's tasks take to send, less the overhead in passes of generation in which it
  /// does not run.
  [[nodiscard]] interval_time adjustment(std::size_t first, std::size_t last, device_id d) const;
  /// Returns the share of the passes of a part of the run in which some layer of the blocks runs.
  [[nodiscard]] double running(std::size_t first, std::size_t last, run_part part) const;

  workload workload_;
  std::size_t blocks_;
  int max_share_;
  std::size_t distinct_ = which_share(max_share_) + 1;
  bool training_, recompute_;
  bool boundaries_;
  token_passes passes_;
  std::vector<std::size_t> first_column_;                        ///< by device
  std::vector<std::vector<int>> degrees_;                        ///< by device
  std::vector<std::vector<std::vector<std::uint32_t>>> barred_;  ///< by device, degree and block: layers before it that bar the degree
  sums total_, backward_, optimizer_;
  sums entry_, backward_entry_;               ///< empty: neither boundaries nor tasks cost anything
  std::array<part_sums, 2> of_part_;          ///< generation: until the first token, and behind it
  std::vector<double> overheads_s_, send_s_;  ///< by device
  std::vector<std::uint32_t> in_all_, in_first_,
      in_last_;  ///< prefix counts of layers that run in all passes, in the first chunk, from the last on
  bool sends_ = false, adjusted_ = false;
  std::vector<double> state_, optimizer_state_, trainable_, cache_;
  std::vector<std::vector<double>> activations_;  ///< by shape of pass
  std::vector<repeat> repeats_;
  workspace_table workspace_;
};

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/cost/prefix_table.ipp>
#endif
