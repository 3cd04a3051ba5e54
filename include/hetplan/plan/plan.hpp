// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Plans, which planners make and judges take: who runs which layers on which samples, in which order.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/keyed.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan {

/// One device's part of an evaluation; `used` is false for devices without a part in the plan.
struct device_evaluation {
  bool used = false;
  joules energy = {};
  bytes peak_memory = {};
  seconds busy = {};
  seconds span = {};  ///< from the start of its first task to the end of its last

  friend bool operator==(const device_evaluation&, const device_evaluation&) = default;
};

/// Times of a run that objectives count. Outside generation, and where not known apart, all are T.
struct run_times {
  seconds makespan = {};        ///< T, the end of the run
  seconds ttft = {};            ///< the first token of the last group that has one
  seconds between_tokens = {};  ///< of the slowest group; T if there is one token only

  run_times() = default;
  run_times(seconds all) : makespan(all), ttft(all), between_tokens(all) {}
  run_times(seconds end, seconds first_token, seconds between) : makespan(end), ttft(first_token), between_tokens(between) {}

  /// Returns the time that a user waits for: T, or the time between tokens in generation.
  [[nodiscard]] seconds response() const { return between_tokens; }

  friend bool operator==(const run_times&, const run_times&) = default;
};

/// Results of one simulated run, and the bounds that certify it.
struct evaluation {
  seconds latency = {};                             ///< T, the end of the run
  std::optional<seconds> ttft = {};                 ///< generation: time to the first token of the last group that has one
  std::optional<seconds> time_between_tokens = {};  ///< generation of more than one token
  double tokens_per_second = 0;                     ///< generation: all that the sequences make, by the latency
  double prompt_tokens_per_second = 0;              ///< generation: tokens of all prompts, by the time to the last first token
  std::vector<device_evaluation> devices = {};      ///< by device id
  std::vector<bytes> resource_bytes = {};           ///< by resource id: payload * weight
  seconds bound = {};                               ///< no plan of this model, cluster, batch is faster; 0: unknown
  double gap = 0;                                   ///< latency / bound - 1
  seconds schedule_bound = {};                      ///< no schedule of this plan is faster
  double schedule_gap = 0;
  seconds contention_bound = {};  ///< tighter schedule_bound: transfers share resources; 0: unknown
  seconds placement_bound = {};   ///< no schedule of single operators is faster (place/operator_schedule); 0: unknown

  /// Returns the longest span of a device: the least time of an iteration if the next one follows without a flush.
  [[nodiscard]] seconds period() const {
    seconds longest;
    for (const device_evaluation& d : devices) longest = d.span > longest ? d.span : longest;
    return longest;
  }
  /// Returns the time that qoe.latency limits: T, or the time between tokens in generation.
  [[nodiscard]] seconds response() const { return time_between_tokens.value_or(latency); }
  [[nodiscard]] run_times times() const { return {latency, ttft.value_or(latency), response()}; }
  [[nodiscard]] joules energy() const {
    joules total;
    for (const device_evaluation& d : devices) total += d.energy;
    return total;
  }
  [[nodiscard]] bytes peak_memory() const {
    bytes most;
    for (const device_evaluation& d : devices) most = d.peak_memory > most ? d.peak_memory : most;
    return most;
  }

  friend bool operator==(const evaluation&, const evaluation&) = default;
};

/// Returns a gap for display: 0 if only rounding is left of it.
[[nodiscard]] inline double readable_gap(double gap) { return std::abs(gap) <= 1e-9 ? 0 : gap; }

/// A device's part of a stage: its samples of each microbatch, and how many of its accelerators run them.
struct assignment {
  device_id device;
  int samples = 1;
  int tensor_parallel = 1;

  friend bool operator==(const assignment&, const assignment&) = default;
};

/// State that the devices of a stage shard in training.
enum class sharding {
  none,
  state,  ///< the optimizer state (ZeRO-1)
  zero2,  ///< the gradients, too: scattered after each microbatch
  fsdp    ///< the weights, too: gathered before each use
};

/// What the backward of a stage in training runs again, so that it need not be kept from the forward.
enum class recomputation {
  none,
  blocks,  ///< each block of layers: its inputs are kept, and the activations of one block at a time are there
  stage    ///< the whole stage: its inputs are kept
};

[[nodiscard]] constexpr recomputation whole_stage_if(bool saved) { return saved ? recomputation::stage : recomputation::none; }

/// Boundaries of a stage's passes, in samples of its pipeline: 0, ..., all of them. Empty: the passes are the microbatches.
struct pass_cuts {
  std::vector<long long> forward = {};
  std::vector<long long> backward = {};

  [[nodiscard]] bool empty() const { return forward.empty() && backward.empty(); }
  [[nodiscard]] const std::vector<long long>& of(phase what) const { return what == phase::forward ? forward : backward; }
  friend bool operator==(const pass_cuts&, const pass_cuts&) = default;
};

/// A layer of a stage whose weights lie in a tier below the device's memory.
struct offloaded_layer {
  layer_id layer;
  std::string tier;  ///< a name that a tier of each device of the stage has

  friend bool operator==(const offloaded_layer&, const offloaded_layer&) = default;
};

/// Layers that run together. Rows of devices own contiguous sample ranges of each microbatch, in list order. A row is one device, or in a
/// grid one device per column, which share each tensor.
struct stage {
  std::string name = {};
  std::vector<layer_id> layers = {};     ///< in order of execution; the order matters only to cost models that price boundaries
  std::vector<assignment> devices = {};  ///< row by row; all devices of a row have its samples
  int microbatch_size = 0;               ///< 0: the plan's
  int pipeline = 0;                      ///< index into plan::pipelines
  recomputation recompute = recomputation::none;
  sharding shard = sharding::none;
  std::vector<int> columns = {};                  ///< grid: relative part of each tensor by column; empty: one device per row
  std::vector<std::vector<layer_id>> units = {};  ///< zero2, fsdp: layers gathered and scattered together; empty: each layer alone
  pass_cuts cuts = {};
  std::vector<offloaded_layer> offload = {};  ///< by layer id; other layers have their weights in the device's memory

  [[nodiscard]] bool recomputes() const { return recompute != recomputation::none; }
  [[nodiscard]] std::size_t column_count() const { return columns.empty() ? 1 : columns.size(); }
  [[nodiscard]] std::size_t rows() const { return devices.size() / column_count(); }
  /// Returns the first device of a row, which represents the row.
  [[nodiscard]] const assignment& row(std::size_t r) const { return devices[r * column_count()]; }
  [[nodiscard]] std::size_t row_of(std::size_t position) const { return position / column_count(); }
  [[nodiscard]] std::size_t column_of(std::size_t position) const { return position % column_count(); }
  /// Returns the part of a split layer's tensors that a column holds; the parts sum to 1.
  [[nodiscard]] double fraction(std::size_t column) const {
    if (columns.empty()) return 1;
    long long all = 0;
    for (const int weight : columns) all += weight;
    return columns[column] / static_cast<double>(all);
  }
  [[nodiscard]] int state_shards() const { return shard == sharding::none ? 1 : static_cast<int>(rows()); }
  /// Returns the name of the tier that a layer's weights lie in, or null.
  [[nodiscard]] const std::string* tier_of(layer_id l) const {
    for (const offloaded_layer& o : offload) {
      if (o.layer == l) return &o.tier;
    }
    return nullptr;
  }
  /// True if the devices only share microbatches by samples; code limited to such stages refuses others.
  [[nodiscard]] bool is_plain() const { return columns.empty() && cuts.empty() && shard != sharding::zero2 && shard != sharding::fsdp; }
  friend bool operator==(const stage&, const stage&) = default;
};

/// Entry of a device's explicit order. `backward_input` is the whole backward of a stage without `backward_weight` in the same order.
struct order_entry {
  phase what;
  stage_id stage;
  int microbatch;

  friend auto operator<=>(const order_entry&, const order_entry&) = default;
};

/// Kind of a transfer. Gathers (of weights) and scatters (of gradients) belong to stages that shard them; an all-reduce joins the columns
/// of a grid and is part of the devices' work. A read goes from a tier of a device to the device.
enum class transfer_kind { forward, backward, sync, token, gather, scatter, all_reduce, read };

/// Timing of the transfers of a microbatch between two stages on two devices; default: at once, in one piece, with priority 0.
struct transfer_rule {
  device_id from;
  device_id to;
  stage_id from_stage;
  stage_id to_stage;
  int microbatch = 0;  ///< the producer's
  transfer_kind kind = transfer_kind::forward;
  int chunk = 0;
  int chunks = 1;
  seconds release = {};  ///< from the start of the iteration
  int priority = 0;      ///< smaller first

  friend bool operator==(const transfer_rule&, const transfer_rule&) = default;
};

/// Bytes of a token that the last stage of a pipeline sends to the first one in generation.
inline constexpr double token_bytes = 4;

/// Limit on the chunks of one transfer.
inline constexpr int most_chunks = 100'000;

/// Returns the key of a transfer, or of those that a rule applies to. The microbatch of a reduction is not part of it.
template <class T>
[[nodiscard]] key_parts name_of_transfer(const T& t) {
  return {t.kind, t.from, t.to, t.from_stage, t.to_stage, t.kind == transfer_kind::sync ? 0 : t.microbatch};
}

/// Whether transfers between stages overlap with the work of the devices at their ends, or block both devices.
enum class transfer_mode { overlap, block };
/// How often a stage's output goes to a device on which several stages read it: once per reading stage, or once.
enum class transfer_copies { per_edge, per_device };
enum class sharing { fair_share, priority, exclusive, per_link, unlimited };

/// Order of the devices' work, and timing of transfers.
struct plan_schedule {
  schedule_kind kind = schedule_kind::one_f_one_b;
  std::vector<int> warmup = {};                       ///< 1F1B: K per stage; empty: the default, 2 depth - 1
  std::vector<std::vector<order_entry>> orders = {};  ///< explicit: by device id
  std::vector<transfer_rule> transfers = {};

  friend bool operator==(const plan_schedule&, const plan_schedule&) = default;
};

/// Plan. Stage ids run over all pipelines in order: `stages` is flat, `stage::pipeline` ascending.
struct plan {
  std::string model = {};
  std::string cluster = {};
  std::string planner = "given";
  hetplan::workload workload = {};
  int microbatch_size = 1;
  int microbatches = 1;
  std::vector<stage> stages = {};
  std::vector<long long> pipelines = {};  ///< samples of an iteration per pipeline; empty: one takes all
  plan_schedule schedule = {};
  sharing sharing_policy = sharing::fair_share;
  transfer_mode transfers = transfer_mode::overlap;
  transfer_copies copies = transfer_copies::per_edge;
  std::optional<device_id> parameter_server = {};  ///< reduces tensors that stages share; empty: ring

  /// Returns the samples of one iteration, or the sequences in flight.
  [[nodiscard]] long long batch() const { return static_cast<long long>(microbatch_size) * microbatches; }
  [[nodiscard]] std::size_t pipeline_count() const { return pipelines.empty() ? 1 : pipelines.size(); }
  [[nodiscard]] long long pipeline_samples(int pipeline) const {
    return pipelines.empty() ? batch() : pipelines[static_cast<std::size_t>(pipeline)];
  }
  [[nodiscard]] int size_of(const stage& s) const { return s.microbatch_size > 0 ? s.microbatch_size : microbatch_size; }
  /// Returns the microbatches of a stage in an iteration; the stage's size divides its pipeline's samples.
  [[nodiscard]] int microbatches_of(const stage& s) const { return static_cast<int>(pipeline_samples(s.pipeline) / size_of(s)); }
  [[nodiscard]] const stage& operator[](stage_id s) const { return stages[s.index()]; }

  friend bool operator==(const plan&, const plan&) = default;
};

inline constexpr std::array all_sharings{sharing::fair_share, sharing::priority, sharing::exclusive, sharing::per_link, sharing::unlimited};

[[nodiscard]] constexpr std::string_view to_string(transfer_mode m) { return m == transfer_mode::overlap ? "overlap" : "block"; }
[[nodiscard]] constexpr std::string_view to_string(transfer_copies c) { return c == transfer_copies::per_edge ? "per_edge" : "per_device"; }
[[nodiscard]] constexpr std::string_view to_string(sharing s) {
  switch (s) {
    case sharing::fair_share: return "fair_share";
    case sharing::priority: return "priority";
    case sharing::exclusive: return "exclusive";
    case sharing::per_link: return "per_link";
    case sharing::unlimited: break;
  }
  return "unlimited";
}
[[nodiscard]] constexpr std::string_view to_string(transfer_kind k) {
  switch (k) {
    case transfer_kind::forward: return "forward";
    case transfer_kind::backward: return "backward";
    case transfer_kind::sync: return "sync";
    case transfer_kind::token: return "token";
    case transfer_kind::gather: return "gather";
    case transfer_kind::scatter: return "scatter";
    case transfer_kind::all_reduce: return "all_reduce";
    case transfer_kind::read: break;
  }
  return "read";
}

/// Returns a plan of the problem's job with nothing decided yet, where every planner starts.
[[nodiscard]] inline plan blank_plan(const planning_problem& problem, std::string planner, int microbatch_size) {
  plan p{.model = problem.model.name(),
         .cluster = problem.cluster.name(),
         .planner = std::move(planner),
         .workload = problem.job.workload,
         .microbatch_size = microbatch_size,
         .microbatches = problem.job.batch / microbatch_size};
  if (p.workload.mode == mode::training) p.schedule.kind = problem.job.schedule;  // other modes have one schedule, the default
  return p;
}

/// Returns the plan with other device ids.
///
/// @param to       By device id in the plan: the new id; valid for every device that the plan names.
/// @param devices  Number of devices of the new cluster.   Complexity  O(plan).
[[nodiscard]] plan rename_devices(plan p, std::span<const device_id> to, std::size_t devices);
/// Returns the costs of a plan with other device ids: devices outside the plan do nothing, resources carry the same bytes.
[[nodiscard]] evaluation rename_devices(evaluation e, std::span<const device_id> to, std::size_t devices);

namespace detail {

/// Returns where weights are held: one entry per distinct (layer, device, degree, part of the optimizer state, number of parts), sorted.
[[nodiscard]] std::vector<std::tuple<layer_id, device_id, int, int, int>> placement_of(const plan& p);

}  // namespace detail

/// Returns whether the same devices run the same layers, cut up in the same way, so that no weights move between the two plans.
///
/// Microbatch sizes, the sizes of shares, names and the grouping of layers into stages do not matter. The order of devices matters only
/// where they shard the optimizer state, as it assigns the parts. In generation, caches may still move, as shares decide which device
/// holds them.
///
/// Complexity  O(n log n) for n layers of all stages x devices of their stage.
[[nodiscard]] bool same_placement(const plan& a, const plan& b);

/// Returns what makes a stage more than plain; "" if nothing. A grid of one column, or one device that shards its state, is plain.
[[nodiscard]] inline std::string beyond_plain(const stage& s, bool cuts_are_plain = false) {
  if (s.column_count() > 1) return "a grid, whose columns share tensors";
  if (s.devices.size() > 1 && s.shard == sharding::zero2) return "under zero2, which scatters gradients after each microbatch";
  if (s.devices.size() > 1 && s.shard == sharding::fsdp) return "under fsdp, which gathers weights before each use";
  return s.cuts.empty() || cuts_are_plain ? "" : "cut into passes that are no microbatches";
}

/// Throws invalid_input for the first stage that is not plain; `who` cannot take it.
inline void require_plain_stages(const plan& p, const std::string& who, bool cuts_are_plain = false) {
  for (const stage& s : p.stages) {
    if (const std::string more = beyond_plain(s, cuts_are_plain); !more.empty()) {
      throw invalid_input(who + ": stage \"" + s.name + "\" is " + more +
                          "; expected stages whose devices share microbatches by samples alone");
    }
  }
}

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/plan/plan.ipp>
#endif
