// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Explanation of a simulated run: what limits each device, and how its memory divides.

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/cost/memory_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/simulate/evaluate.hpp>

namespace hetplan {

/// What a device's time is spent on. The first five are those of time_parts.
enum class time_use {
  compute,      ///< arithmetic; optimizer steps, and all time of a cost model that tells no parts
  weights,      ///< memory bandwidth, for weights
  activations,  ///< memory bandwidth, for what layers read and write besides
  cache,        ///< memory bandwidth, for the key/value cache
  tiers,        ///< bandwidth of tiers below the device's memory, for weights there; waiting for those that share a resource
  overhead,     ///< launches, boundaries between layers, and a fixed cost of each task
  network,      ///< sending inside a task, exchange among accelerators and in grids, and idle until a transfer has arrived
  waiting       ///< idle: for other devices' work, or with nothing left to do
};
inline constexpr std::array time_uses{time_use::compute, time_use::weights,  time_use::activations, time_use::cache,
                                      time_use::tiers,   time_use::overhead, time_use::network,     time_use::waiting};

[[nodiscard]] constexpr std::string_view to_string(time_use l) {
  switch (l) {
    case time_use::compute: return "compute";
    case time_use::weights: return "weights";
    case time_use::activations: return "activations";
    case time_use::cache: return "cache";
    case time_use::tiers: return "tiers";
    case time_use::overhead: return "overhead";
    case time_use::network: return "network";
    case time_use::waiting: break;
  }
  return "waiting";
}

/// Seconds by use; those of tiers also by tier of the device.
class use_seconds {
 public:
  [[nodiscard]] double& operator[](time_use l) { return s_[static_cast<std::size_t>(l)]; }
  [[nodiscard]] double operator[](time_use l) const { return s_[static_cast<std::size_t>(l)]; }
  /// Adds seconds of a tier, to all those of tiers too.
  void add_tier(std::size_t tier, double s);
  [[nodiscard]] double of_tier(std::size_t tier) const { return tier < of_tier_.size() ? of_tier_[tier] : 0; }
  [[nodiscard]] double all() const;
  /// Adds `factor` times the seconds of another.
  void add(const use_seconds& other, double factor);
  /// Returns the use with the most seconds; the first of equal ones.
  [[nodiscard]] time_use largest() const;
  friend bool operator==(const use_seconds&, const use_seconds&) = default;

 private:
  std::array<double, time_uses.size()> s_{};
  std::vector<double> of_tier_;
};

/// A stretch of the run: in generation the prompt, until every sequence has its first token, and the tokens behind it; else the run.
struct run_stretch {
  std::string_view name;  ///< "prompt", "tokens" or "run"
  double start_s = 0;
  double end_s = 0;
  std::vector<use_seconds> devices;  ///< by device id; of a used device they add up to the length of the stretch

  [[nodiscard]] double length_s() const { return end_s - start_s; }
  /// Returns a device's share of the stretch for a use; 0 of a stretch without length.
  [[nodiscard]] double share(device_id d, time_use u) const { return end_s > start_s ? devices[d.index()][u] / length_s() : 0; }
};

/// A use as reports name it: tiers one by one, "tier" before their names.
struct named_share {
  time_use use = time_use::waiting;
  std::string name;
  double share = 0;  ///< of the stretch
};
/// Returns a device's shares of a stretch, in the order of time_uses; of tiers those that it reads.
[[nodiscard]] std::vector<named_share> shares_of(const run_stretch& r, const device& d);

/// Bytes of a device when it held most: what it holds all the time, and activations.
struct device_memory {
  held_bytes held;
  double activations = 0;

  [[nodiscard]] double all() const { return held.all() + activations; }
};

/// What a device's memory is for, as reports name it.
struct memory_part {
  std::string_view name;
  double bytes = 0;
};
/// Returns the parts in one order: weights (in training with gradients and the optimizer's state), cache, activations, workspace, overhead.
[[nodiscard]] std::array<memory_part, 5> parts_of(const device_memory& m);

struct run_explanation {
  std::vector<device_memory> memory;  ///< by device id; unused devices hold nothing
  std::vector<run_stretch> stretches;
};

/// Explains a judged plan in the judge's own numbers: the parts of its cost model's times, the tasks and transfers of its trace.
///
/// A task's seconds divide as the parts of its calls do; what it takes beyond them is sending. A device that is idle before a task waits
/// for a tier while it reads one that shares a resource; for the network from the end of the task whose transfer came last; before that,
/// and behind its last task, it waits.
///
/// @param j       of this plan, by `judge` or `evaluate` with these models; may have been stopped.
/// Complexity     layers of all stages x devices x distinct passes questions of the cost model, and O(tasks log) besides.
/// Throws         invalid_model (parts do not add up to a time).
[[nodiscard]] run_explanation explain(const plan& p, const planning_graph& model, const cluster& c, const any_cost_model& cost,
                                      const judgement& j, const any_memory_model& memory = {});

/// Returns some lines for each used device: how its memory divides, and what limits it in each stretch. Shares below 0.1 % are left out.
[[nodiscard]] std::string describe(const run_explanation& e, const cluster& c);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/simulate/explain.ipp>
#endif
