// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Partial device orders, built task by task: tasks scheduled, their ends, and candidates for the next task.

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <hetplan/schedule/pipeline_times.hpp>

namespace hetplan::schedule {

/// Timeline of replayed orders.
struct order_timeline {
  struct task {
    order_entry what;
    double start = 0, end = 0;
  };
  std::vector<std::vector<task>> tasks;  ///< by device: the tasks that ran
  std::vector<double> spans;             ///< by device: first start to last end
  std::vector<double> peaks;             ///< by device: most activations held at once
  double makespan = 0;
  bool ends = true;  ///< false if a task waits for a later one on its own device, or if the orders lack a task that another one needs

  [[nodiscard]] double longest_span() const;
};

/// Returns when the tasks of given orders run: each as soon as its device is free and its inputs have arrived. Memory is counted, not
/// limited.
///
/// @param orders  as in a plan: `backward_input` is the whole backward of a stage without entries of weight gradients.
/// Complexity     O(tasks * edges of a stage).   Source  semantics, sections 5 and 6.
/// Throws         invalid_input (an entry of another device's stage or an unknown microbatch, or a duplicate).
[[nodiscard]] order_timeline replay_orders(const pipeline_times& p, const orders_by_device& orders);

}  // namespace hetplan::schedule

namespace hetplan::schedule::detail {

// Pipeline times in whole numbers, so that equal instants compare equal in any unit of time.

using ticks = std::int64_t;
/// A time later than all others; sums of a few do not overflow.
inline constexpr ticks never = std::int64_t{1} << 60;

/// Returns the largest unit of which all given times are multiples, to one part in 10^11; if there is none, 2^-36 of the longest time.
/// Source  ours: in semantics, section 1, instants are the same if they differ by one part in 10^9.
[[nodiscard]] double common_unit(const std::vector<double>& times);

/// A pipeline_times table in ticks. The three phases of a stage are numbered as in `phase`.
struct tick_table {
  explicit tick_table(const pipeline_times& p);

  struct edge {
    std::size_t stage;  ///< stage at the other end
    ticks delay;
  };
  struct stage {
    std::size_t device;
    std::array<ticks, 3> length;
    std::vector<edge> ahead, behind;  ///< producers of its inputs with forward delays; consumers of its outputs with backward delays
    double activation, kept;
    ticks window = 0;  ///< least time from the start of a microbatch's forward to the start of its gradient
  };
  struct device {
    std::vector<std::size_t> stages;  ///< ascending
    double memory = 0;                ///< limit less the largest recomputation, plus one part in 10^9
    ticks work = 0;                   ///< of one microbatch
    ticks first_start = 0;            ///< the earliest start under any order
  };

  [[nodiscard]] std::size_t tasks() const { return 3 * stages.size() * m; }

  std::vector<stage> stages;
  std::vector<device> devices;
  /// By stage: stages of its device whose forwards all run before its last gradient, and whether their gradients do, too.
  std::vector<std::vector<std::pair<std::size_t, bool>>> before_last_gradient;
  std::size_t m;
  double unit;
  bool chain = true;         ///< true if no stage has two inputs or two consumers
  bool starts_known = true;  ///< true if under every order each device can begin at its `first_start`
};

/// Memory that a device must have left besides that of a new forward.
enum class room {
  for_each_other_stage,  ///< one microbatch of each of the device's stages that has not had this one: the dispatch rules
  for_idle_stages,       ///< if the pipeline is a chain, only what those stages lack of one microbatch: as safe, admits more
  for_itself             ///< nothing; some orders then deadlock
};

/// Partial device orders. Microbatches are alike, so each stage takes them in turn, and counts by stage and phase determine which tasks
/// have been scheduled. Exchanging two microbatches changes no time.
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
  /// Returns the start of a device's first task.
  [[nodiscard]] ticks began(std::size_t device) const { return began_[device]; }

  /// Returns when the inputs of the stage's next task of a phase arrive; `never` if a predecessor is not scheduled yet.
  [[nodiscard]] ticks arrival(std::size_t stage, std::size_t what) const;
  /// Returns the earliest start of a task; `never` also if memory forbids it.
  [[nodiscard]] ticks earliest(task a, room r) const;
  [[nodiscard]] bool has_room(std::size_t stage, room r) const;
  [[nodiscard]] ticks length(task a) const { return t_->stages[a.stage].length[a.what]; }

  struct undo {
    ticks free, began;
  };
  undo give(task a, ticks start);
  void take_back(task a, const undo& u);

  /// Returns a hash of the counts. States with equal counts have the same tasks, and `reached` compares their times.
  [[nodiscard]] std::uint64_t counts_hash() const;
  [[nodiscard]] const std::vector<std::uint32_t>& counts() const { return done_; }
  /// Returns when devices are free and pending inputs arrive. With equal counts, a state that is nowhere later is at least as good.
  void reached(std::vector<ticks>& times) const;

 private:
  const tick_table* t_;
  std::vector<std::uint32_t> done_;  ///< tasks scheduled, by stage and phase
  std::vector<ticks> free_, began_;  ///< by device
  std::vector<ticks> ends_;          ///< by stage, phase but the last, and microbatch
  std::size_t left_;
};

[[nodiscard]] orders_by_device orders_of(const tick_table& t, const std::vector<partial_orders::task>& sequence);

/// Gaps before a forward or input gradient that take a weight gradient.
enum class gap_rule {
  whole,    ///< gaps that are long enough
  largest,  ///< also shorter gaps if the device would get the most idle time of all
  any
};

/// Places forwards and input gradients one by one, and weight gradients before them in gaps or where memory is short.
/// Complexity  O(tasks * stages of a device) for all tasks.   Source  Qi et al., Zero Bubble Pipeline Parallelism, 2023, section 3.1.
class gap_filler {
 public:
  /// @param gaps  by device; must outlive the filler.
  gap_filler(const tick_table& t, const std::vector<gap_rule>& gaps) : state_(t), gaps_(&gaps), idle_(t.devices.size(), 0) {}

  /// Schedules a forward or input gradient. Returns false if its inputs are unknown or no weight gradient can make room for it.
  bool place(partial_orders::task a);
  /// Schedules the next weight gradient of a device. Returns false if there is none.
  bool place_weight(std::size_t device);
  void finish();

  [[nodiscard]] const partial_orders& state() const { return state_; }
  [[nodiscard]] const std::vector<partial_orders::task>& sequence() const { return sequence_; }

 private:
  [[nodiscard]] bool fills(std::size_t device, ticks gap) const;
  /// Returns the stage whose weight gradient is next; the number of stages if there is none.
  [[nodiscard]] std::size_t weight_stage(std::size_t device) const;

  partial_orders state_;
  const std::vector<gap_rule>* gaps_;
  std::vector<ticks> idle_;
  std::vector<partial_orders::task> sequence_;
};

/// Returns a sequence of given device orders of forwards and input gradients, the earliest first, with weight gradients between them. If
/// memory does not admit the next forward, the first gradient behind it that can run goes before it.
///
/// @param pull  true: a ready forward goes into a gap before its turn, if it fits and leaves room for those before it.
/// Complexity  O(tasks * (devices + stages of a device)).   Source  as gap_filler.
[[nodiscard]] std::vector<partial_orders::task> filled_orders(const tick_table& t, std::vector<std::vector<partial_orders::task>> passes,
                                                              const std::vector<gap_rule>& gaps, bool pull = false);

}  // namespace hetplan::schedule::detail

#ifndef HETPLAN_SEPARATE
#include <hetplan/schedule/partial_orders.ipp>
#endif
