// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Orders that are being made, task by task: what has been given out, when it ends, and what may come next.

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <hetplan/schedule/pipeline_times.hpp>

namespace hetplan::schedule {

// When the tasks of given orders run.

/// What became of orders.
struct order_timeline {
  struct task {
    order_entry what;
    double start = 0, end = 0;
  };
  std::vector<std::vector<task>> tasks;  ///< by device, those that ran
  std::vector<double> spans;             ///< by device: first start to last end
  std::vector<double> peaks;             ///< by device: activations held at once
  double makespan = 0;
  bool ends = true;  ///< false: a task waits for one that comes later on its own device, or the orders lack a task that one needs

  [[nodiscard]] double longest_span() const;
};

/// Runs each task as soon as its device has ended what stands before it and its inputs have arrived. Memory is counted, not limited.
///
/// @param orders  as in a plan: `backward_input` is the whole backward of a stage whose weights' gradient is in no order.
/// Complexity     O(tasks * edges of a stage).   Source  semantics, sections 5 and 6.
/// Throws         invalid_input (an entry of a stage of another device, of an unknown microbatch, or listed twice).
[[nodiscard]] order_timeline replay_orders(const pipeline_times& p, const orders_by_device& orders);

}  // namespace hetplan::schedule

namespace hetplan::schedule::detail {

// A pipeline in whole numbers, so that instants which are the same are equal whatever the unit of time.

using ticks = std::int64_t;
/// Later than any time; sums of a few do not overflow.
inline constexpr ticks never = std::int64_t{1} << 60;

/// The largest unit of which all given times are multiples, to one part in 10^11; where there is none, 2^-36 of the longest.
///
/// Source  ours: semantics, section 1 calls instants the same that differ by one part in 10^9.
[[nodiscard]] double common_unit(const std::vector<double>& times);

/// The three phases of a stage are numbered as in `phase`.
struct tick_table {
  explicit tick_table(const pipeline_times& p);

  struct edge {
    std::size_t stage;  ///< at the other end
    ticks delay;
  };
  struct stage {
    std::size_t device;
    std::array<ticks, 3> length;
    std::vector<edge> ahead, behind;  ///< whose outputs it takes, with the delay forward; who takes its own, with the delay backward
    double activation, kept;
    ticks window = 0;  ///< from the start of a microbatch's forward to that of its gradient, at least
  };
  struct device {
    std::vector<std::size_t> stages;  ///< ascending
    double memory = 0;                ///< less what a backward may recompute, plus one part in 10^9
    ticks work = 0;                   ///< of a microbatch
    ticks first_start = 0;            ///< no order lets it begin earlier
  };

  [[nodiscard]] std::size_t tasks() const { return 3 * stages.size() * m; }

  std::vector<stage> stages;
  std::vector<device> devices;
  /// By stage: those of its device whose forwards all run before its last gradient, and whether their gradients do.
  std::vector<std::vector<std::pair<std::size_t, bool>>> before_last_gradient;
  std::size_t m;
  double unit;
  bool chain = true;         ///< no stage has two inputs or two consumers
  bool starts_known = true;  ///< every order lets every device begin at its `first_start`
};

/// What a device that takes a forward must have room for besides it.
enum class room {
  for_each_other_stage,  ///< one microbatch of each stage of the device that has not had this one yet: the dispatch rules
  for_idle_stages,       ///< what those lack of one microbatch, in a chain: as safe, and lets more in
  for_itself             ///< no more; some of such orders cannot be brought to an end
};

/// Microbatches are alike, so each stage takes them in turn and how many it has had of each phase says which: exchanging two that a
/// stage takes in another order changes no time.
///
/// Source  ours.
class partial_orders {
 public:
  struct task {
    std::uint32_t stage = 0;
    std::uint32_t what = 0;

    friend bool operator==(const task&, const task&) = default;
  };

  explicit partial_orders(const tick_table& t);

  [[nodiscard]] const tick_table& table() const { return *t_; }
  [[nodiscard]] std::size_t done(std::size_t stage, std::size_t what) const { return done_[3 * stage + what]; }
  [[nodiscard]] bool complete(std::size_t stage, std::size_t what) const { return done(stage, what) == t_->m; }
  [[nodiscard]] ticks free_at(std::size_t device) const { return free_[device]; }
  [[nodiscard]] std::size_t left() const { return left_; }
  [[nodiscard]] ticks end_of(std::size_t stage, std::size_t what, std::size_t k) const { return ends_[(2 * stage + what) * t_->m + k]; }
  [[nodiscard]] double held(std::size_t device) const;
  /// Of the first task of a device.
  [[nodiscard]] ticks began(std::size_t device) const { return began_[device]; }

  /// When the inputs of the next task of this stage and phase are there; `never` while what it needs is not given out yet.
  [[nodiscard]] ticks arrival(std::size_t stage, std::size_t what) const;
  /// When that task could start: `never` also where memory forbids it.
  [[nodiscard]] ticks earliest(task a, room r) const;
  [[nodiscard]] bool has_room(std::size_t stage, room r) const;
  [[nodiscard]] ticks length(task a) const { return t_->stages[a.stage].length[a.what]; }

  struct undo {
    ticks free, began;
  };
  undo give(task a, ticks start);
  void take_back(task a, const undo& u);

  /// Same counts, so the same tasks; used with `reached` to compare what two searches did in another order.
  [[nodiscard]] std::uint64_t counts_hash() const;
  [[nodiscard]] const std::vector<std::uint32_t>& counts() const { return done_; }
  /// When devices are free and inputs there, of what comes next: another state of the same counts that is nowhere later is as good.
  void reached(std::vector<ticks>& times) const;

 private:
  const tick_table* t_;
  std::vector<std::uint32_t> done_;  ///< by stage and phase
  std::vector<ticks> free_, began_;  ///< by device
  std::vector<ticks> ends_;          ///< by stage, phase but the last, and microbatch
  std::size_t left_;
};

/// Tasks given out one after the other, as orders of devices.
[[nodiscard]] orders_by_device orders_of(const tick_table& t, const std::vector<partial_orders::task>& sequence);

// Orders that grow by forwards and gradients of inputs, while gradients of weights fill what lies between.

/// Which gaps before a forward or a gradient of inputs take a gradient of weights.
enum class gap_rule {
  whole,    ///< those that are long enough
  largest,  ///< and shorter ones where the device would become the one with the most idle time so far
  any
};

/// Complexity  O(tasks * stages of a device) for all tasks.
/// Source      Qi et al., Zero Bubble Pipeline Parallelism, 2023, section 3.1: gaps; gradients of weights where memory is short.
class gap_filler {
 public:
  /// @param gaps  by device; lives as long as this.
  gap_filler(const tick_table& t, const std::vector<gap_rule>& gaps) : state_(t), gaps_(&gaps), idle_(t.devices.size(), 0) {}

  /// Gives out a forward or a gradient of inputs; false: its inputs are not known yet, or no gradient of weights makes room for it.
  bool place(partial_orders::task a);
  /// Gives out the next gradient of weights of a device; false: there is none.
  bool place_weight(std::size_t device);
  /// All gradients of weights that are left.
  void finish();

  [[nodiscard]] const partial_orders& state() const { return state_; }
  [[nodiscard]] const std::vector<partial_orders::task>& sequence() const { return sequence_; }

 private:
  [[nodiscard]] bool fills(std::size_t device, ticks gap) const;
  /// The stage whose gradient of weights is next; none: as many as there are.
  [[nodiscard]] std::size_t weight_stage(std::size_t device) const;

  partial_orders state_;
  const std::vector<gap_rule>* gaps_;
  std::vector<ticks> idle_;
  std::vector<partial_orders::task> sequence_;
};

/// Forwards and gradients of inputs in given orders of devices, the earliest first, gradients of weights between them.
///
/// Where memory does not let in a forward that is next, the first gradient behind it that can run goes before it.
/// @param pull  a forward that is ready goes into a gap before its turn, if it fits and leaves room for those before it.
/// Complexity  O(tasks * (devices + stages of a device)).   Source  as gap_filler.
[[nodiscard]] std::vector<partial_orders::task> filled_orders(const tick_table& t, std::vector<std::vector<partial_orders::task>> passes,
                                                              const std::vector<gap_rule>& gaps, bool pull = false);

}  // namespace hetplan::schedule::detail

#ifndef HETPLAN_SEPARATE
#include <hetplan/schedule/partial_orders.ipp>
#endif
