// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Pipelines in the form that a search varies, where a device may hold several stages, and a fast estimate of their latency.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/partition/search_tables.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::partition {

/// Which of its ready tasks a device takes first; f and b are the passes of its stages, in a pipeline of first, ..., last stage on it.
enum class ready_rule : std::uint8_t {
  forwards,   ///< forwards, of the least microbatch; then backwards
  backwards,  ///< backwards, of the least microbatch; then forwards
  path,       ///< the pass with the longest way to the end: f first, ..., f last, b last, ..., b first
  inside      ///< the pass of the latest stage: b last, f last, ..., b first, f first
};
inline constexpr ready_rule ready_rules[] = {ready_rule::forwards, ready_rule::backwards, ready_rule::path, ready_rule::inside};

/// Pipeline of single devices in the form that a search varies. Neighbouring stages are on different devices.
struct pipeline_draft {
  struct part {
    std::size_t first = 0;  ///< first block in the sequence; the stage ends where the next one begins
    device_id device;
    bool recompute = false;

    friend bool operator==(const part&, const part&) = default;
  };
  std::vector<part> stages;       ///< the first begins at block 0
  std::vector<int> sizes;         ///< samples of the microbatches, in the order in which they enter
  std::vector<ready_rule> rules;  ///< by device of the cluster
  sharing policy = sharing::fair_share;

  friend bool operator==(const pipeline_draft&, const pipeline_draft&) = default;
};

/// Estimate of a draft.
struct draft_estimate {
  double too_much = 0;   ///< sum of the relative overflows of memory, energy and busy share over the devices; 0 if the draft fits
  run_times times = {};  ///< infinite if memory overflows or a route is missing
  double energy_J = 0;

  [[nodiscard]] double response_s() const { return times.response().value(); }
};

/// Tensor that layers of several blocks share.
struct shared_tensor {
  std::vector<std::size_t> blocks;
  double state = 0, trainable = 0;  ///< bytes; state with gradients and optimizer

  /// True if a stage of blocks [first, last) holds it.
  [[nodiscard]] bool in(std::size_t first, std::size_t last) const {
    const auto at = std::lower_bound(blocks.begin(), blocks.end(), first);
    return at != blocks.end() && *at < last;
  }
};
[[nodiscard]] std::vector<shared_tensor> shared_tensors(const planning_problem& problem, const layer_sequence& sequence);

/// Runs drafts of one problem, without layers or plans: each stage is a block with times from the tables, each boundary a transfer.
///
/// Devices take ready passes by their rules; passes of a stage keep the order of the microbatches; a forward waits until its activations
/// fit. Transfers share the network as under the draft's policy. In generation the order of the first pass is repeated, passes until the
/// first token and behind it are alike, each in its mean, and at most most_chunks and most_steps of them run. So the estimate differs from
/// the simulator's judgement of the same plan by ties, by reductions of shared tensors, which come last and alone, and by generation.
///
/// Where a device's memory is too small, its stages take as long as with weights in its tiers (offload_table), stage by stage.
///
/// Complexity   O(tasks x (devices + transfers at a time)), about 0.1 us per task.
/// Determinism  yes.   Source  ours; semantics, sections 6 and 7.
class draft_replay {
 public:
  /// @param tables  of a sequence whose blocks may be cut anywhere; must outlive this object, as must the problem.
  draft_replay(const planning_problem& problem, const search_tables& tables);

  /// Sizes are in 1 ... max_share of the tables. A draft never ends whose devices hold two stages that wait for each other's chunks.
  ///
  /// @param most_s  a run that must take longer may be left early, with an infinite latency.
  [[nodiscard]] draft_estimate operator()(const pipeline_draft& d, double most_s = std::numeric_limits<double>::infinity());
  /// Returns the plan of a draft that fits, with the orders of its run.
  [[nodiscard]] plan to_plan(const pipeline_draft& d, std::string planner);
  /// True if a draft's energy is estimated; else it is 0.
  void estimate_energy(bool wanted) { with_energy_ = with_energy_ || wanted; }
  /// Returns the number of tasks and transfers of the last run.
  [[nodiscard]] long long tasks() const { return tasks_; }

 private:
  /// Does a device hold two stages that work in every chunk? All chunks of the first come before those of the second.
  [[nodiscard]] bool waits_for_itself(const pipeline_draft& d) const;

  static constexpr std::size_t most_chunks = 3, most_steps = 7;
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  struct edge {
    std::uint32_t from, to;  ///< stages
    std::uint32_t later;     ///< passes by which the consumer is later: a step's microbatches for tokens, else 0
    double forward_bytes, gradient_bytes;
    double later_bytes;         ///< generation: forward_bytes of a pass behind the first token
    const route *there, *back;  ///< null on one device
  };
  struct stage_state {
    std::size_t first, last;
    std::uint32_t device;  ///< index into devices_
    bool recompute, is_sink;
    std::uint32_t tokens;                ///< tokens that a pass of a later step waits for
    double activation, input;            ///< bytes per sample
    std::uint32_t next[2];               ///< by phase: next microbatch to begin
    std::vector<std::uint32_t> in, out;  ///< edges
    double rank[2];                      ///< by phase: smaller first, for rules that rank stages
  };
  struct device_state {
    device_id id;
    ready_rule rule;
    double limit, held, reserve;       ///< bytes; reserve: largest recomputation
    double end_s;                      ///< of the running task; infinite if idle
    std::uint32_t stage, what, pass;   ///< running task
    double last_s;                     ///< end of its last task
    double left_s;                     ///< work of its tasks that have not begun
    double busy_s;                     ///< all its work, of the whole run
    double sent, received;             ///< bytes
    std::size_t taken;                 ///< tasks begun
    std::vector<std::uint32_t> order;  ///< generation: stages of the first step's tasks
    double before_s;                   ///< least time from the start of the run to its first task
    double after_s;                    ///< least time from the end of its last task to the end of the run
    std::vector<std::uint32_t> stages;
  };
  struct flow {
    std::uint64_t turn;  ///< among waiting transfers: microbatch, stages, step
    std::uint32_t edge, pass;
    std::uint32_t from, to;  ///< devices
    bool back, drains;
    double at_s;  ///< end of the latency, or of the transfer
    double left, rate;
    const route* way;
  };
  struct load {  ///< of a resource by draining transfers, while every route has at most one resource
    double weight = 0;
    std::uint32_t flows = 0;
    bool changed = false;
  };

  bool prepare(const pipeline_draft& d);
  [[nodiscard]] double least_transfer_s(std::uint32_t stage, bool back, int size) const;
  [[nodiscard]] double memory_overflow(const pipeline_draft& d);
  bool offload(device_state& x, double need, int most);
  draft_estimate run(double most_s, bool keep_orders);
  void end_task(std::uint32_t device);
  void add_flow(std::uint32_t e, std::uint32_t pass, bool back);
  void arrive(const flow& f);
  void begin(std::uint32_t device, std::uint32_t stage, std::uint32_t what, double most_s, bool keep_orders);
  [[nodiscard]] draft_estimate measured(double end_s);
  bool begin_task(std::uint32_t device, double most_s, bool keep_orders);
  [[nodiscard]] bool has_room(const device_state& d, std::uint32_t s, std::uint32_t pass) const;
  void grant();
  void drain(flow& f);
  void end_transfer(const flow& f);
  void set_rates();
  void fill_rates();
  [[nodiscard]] double reduced_s(double all_tasks_s);
  /// Returns how many passes of the run one that is replayed stands for.
  [[nodiscard]] double stands_for(std::uint32_t pass) const { return pass < leading_ * microbatches_ ? each_first_ : each_later_; }
  [[nodiscard]] int size_of(std::uint32_t pass) const { return draft_->sizes[pass % microbatches_]; }
  [[nodiscard]] std::size_t at(std::uint32_t stage, std::uint32_t what, std::uint32_t pass) const {
    return (std::size_t{stage} * 2 + what) * passes_ + pass;
  }

  const planning_problem& problem_;
  const search_tables& t_;
  bool training_;
  bool generation_;
  bool limits_chunks_ = false;                  ///< generation: a chunk waits for an earlier one to leave the last stage
  std::vector<std::size_t> in_every_chunk_;     ///< of limited chunks: number of such blocks before each one
  std::size_t steps_ = 1, leading_ = 1;         ///< passes that are replayed, and those of them until the first token
  double first_passes_ = 1, later_passes_ = 0;  ///< of the run
  double each_first_ = 1, each_later_ = 1;      ///< passes of the run for each that is replayed
  bool with_energy_ = false, limited_ = false;  ///< limited: a device has an energy budget or a limit of its busy share
  std::vector<shared_tensor> shared_;

  // Of the draft that runs.
  const pipeline_draft* draft_ = nullptr;
  std::size_t microbatches_ = 0, passes_ = 0;
  double now_s_ = 0;
  std::vector<stage_state> stages_;
  std::vector<double> ends_s_;  ///< generation: by pass
  std::size_t stage_count_ = 0;
  std::vector<edge> edges_;
  std::vector<device_state> devices_;
  std::size_t device_count_ = 0;
  std::vector<std::uint32_t> device_of_;          ///< by device id: index into devices_
  std::vector<double> time_s_;                    ///< by stage, phase, pass
  std::vector<std::uint8_t> missing_;             ///< by stage, phase, pass: inputs that have not arrived
  std::vector<flow> flows_, waiting_;             ///< waiting_: by turn
  std::vector<std::uint8_t> out_busy_, in_busy_;  ///< by device
  std::vector<std::uint8_t> resource_busy_;
  std::vector<load> loads_;            ///< by resource
  std::vector<double> free_, weight_;  ///< by resource, while rates are set
  std::vector<std::uint32_t> touched_;
  bool rates_changed_ = false, grants_changed_ = false, too_slow_ = false;
  bool one_resource_ = true;  ///< true if no route has several
  bool is_chain_ = false;     ///< true if every stage hands on to the next, and gets gradients back
  long long tasks_ = 0;
  std::vector<std::vector<order_entry>> orders_;
};

}  // namespace hetplan::partition

#ifndef HETPLAN_SEPARATE
#include <hetplan/partition/pipeline_draft.ipp>
#endif
