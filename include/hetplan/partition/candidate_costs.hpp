// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Costs of one candidate stage on one group of devices: step times, reductions, memory, energy.

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <hetplan/cluster/network.hpp>
#include <hetplan/cost/energy_model.hpp>
#include <hetplan/cost/prefix_table.hpp>
#include <hetplan/estimate/step_law.hpp>
#include <hetplan/partition/apportion.hpp>
#include <hetplan/partition/search_tables.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/stage_graph.hpp>

namespace hetplan::partition {

/// Devices of one class with equal shares of each microbatch.
struct share_run {
  std::size_t of_class;
  int devices;
  int samples;
};

/// Step costs of a stage on a group, with the microbatch shared among its devices.
struct placed_stage {
  double total_s = std::numeric_limits<double>::infinity();  ///< e = max over devices of f + b; infinite if memory is too small
  double backward_s = 0;                                     ///< max over devices
  double first_s = 0, later_s = 0;                           ///< generation: e of passes until the first token, and behind it
  double collective_s = 0;                                   ///< A: reductions and optimizer step
  int most_in_flight = 0;                                    ///< largest number of microbatches in flight with which these shares fit
  bool exists = false;                                       ///< false if memory is too small or a device would get no sample

  [[nodiscard]] stage_times times() const { return {total_s, backward_s, collective_s, first_s, later_s}; }
};

/// Load of one device of a stage.
struct device_part {
  double busy_s = 0;
  double energy_J = 0;  ///< dynamic energy
  double idle_W = 0;    ///< idle power
};

/// Contribution of a stage's devices to energy and limits.
struct stage_budget {
  double energy_J = 0;                                       ///< dynamic energy of one iteration (one whole run in generation)
  double idle_W = 0;                                         ///< idle power: J per second of the run
  double limit_s = std::numeric_limits<double>::infinity();  ///< longest run that the energy budgets allow
  double stretch_s = 0;                                      ///< shortest run that the busy caps allow

  stage_budget& operator+=(const stage_budget& other) {
    energy_J += other.energy_J;
    idle_W += other.idle_W;
    limit_s = std::min(limit_s, other.limit_s);
    stretch_s = std::max(stretch_s, other.stretch_s);
    return *this;
  }
};

/// Costs of stages on the groups of a device space, from a prefix table, for one microbatch size; shares never exceed the table's.
///
/// Each sample goes to the device that finishes it first within memory, which minimises the slowest device's time (see apportion). Equal
/// devices share evenly, so costs are computed by class. A group with an idle member forms no stage: the group without it does. Stages use
/// the memory savers of the tables. Where memory is too small, a group of one class with tiers pays for the cheapest weights there.
/// Source  Dora, section 4.1, the stage terms of eqs. 3 and 4; shares: Asteroid, Algorithm 1; reductions: semantics, section 6.
class candidate_costs {
 public:
  candidate_costs(const search_tables& tables, const device_space& space, const plan& blank, bool keep_budgets);

  /// @param in_flight  microbatches whose activations are held; 0: memory is ignored.
  /// Complexity        O(1) for a group of one class, O(microbatch size * classes) for a mixed one.
  [[nodiscard]] placed_stage place(std::size_t first, std::size_t last, std::size_t group, int in_flight) const;
  /// Returns the shares of the microbatch, class by class; within a class the larger share comes first.
  [[nodiscard]] std::vector<share_run> shares(std::size_t first, std::size_t last, std::size_t group, int in_flight) const;

  /// Returns true if a group may have the layers that are pinned to devices. If false, it is false for every longer stage.
  [[nodiscard]] bool keeps_pins(std::size_t first, std::size_t last, std::size_t group) const {
    if (pins_.free(first, last)) return true;
    const device_space::device_group& g = space_.groups[group];
    return g.size() == 1 && g.front().devices == 1 && pins_.allow(first, last, space_.classes[g.front().of_class].front());
  }
  /// Returns true if the group keeps pins and its memory holds the whole microbatch. If false, it is false for every longer stage.
  [[nodiscard]] bool has_room(std::size_t first, std::size_t last, std::size_t group, int in_flight) const;

  /// Returns the bytes per sample that a stage with cut bytes `in` and `out` exchanges, gradients of the backward pass included.
  [[nodiscard]] stage_traffic traffic(std::pair<double, double> in, std::pair<double, double> out) const;
  /// Returns the load of one device of a stage over an iteration (a whole run in generation).
  [[nodiscard]] device_part part(std::size_t first, std::size_t last, std::size_t group, const share_run& r, const stage_traffic& t) const;
  /// Returns the peak memory in bytes of a device of a stage.
  [[nodiscard]] double held_bytes(std::size_t first, std::size_t last, std::size_t group, int samples, int in_flight) const;
  /// Returns an empty stage of a group, with the memory savers that it uses.
  [[nodiscard]] stage blank_stage(std::string name, std::size_t group) const;
  [[nodiscard]] stage_budget budget(std::size_t first, std::size_t last, std::size_t group, int in_flight, const stage_traffic& t) const;
  /// Returns a lower bound on placed_stage::collective_s, which grows with the stage: it is without tensors shared with later stages.
  [[nodiscard]] double least_collective_s(std::size_t first, std::size_t last, std::size_t group) const;
  /// Returns true if no stage without memory limits is faster than a part of it on the same group: shares are then optimal (see apportion).
  [[nodiscard]] bool longer_is_slower() const { return longer_is_slower_; }

 private:
  struct demand {
    std::size_t first, last;  ///< blocks, for their workspace
    double fixed;             ///< bytes
    double kept;              ///< bytes per sample of each microbatch in flight
    double once;              ///< bytes per sample, caches of all sequences included
  };
  [[nodiscard]] demand demand_of(std::size_t first, std::size_t last, std::size_t group) const;
  /// Returns the largest share that fits into a device's memory.
  [[nodiscard]] int cap(const demand& need, std::size_t of_class, int in_flight) const;
  /// Returns the largest number of microbatches in flight with which a share fits.
  [[nodiscard]] int fits(const demand& need, std::size_t of_class, int samples) const;
  [[nodiscard]] int members(std::size_t group) const;
  /// Returns the class of a group whose devices may have weights in tiers: a single one; nothing for others.
  [[nodiscard]] std::optional<std::size_t> class_with_tiers(std::size_t group) const;
  /// Returns the number of parts into which a group shards optimizer states.
  [[nodiscard]] int shards(std::size_t group) const { return training_ && savers_.shard_state ? members(group) : 1; }
  [[nodiscard]] double optimizer_s(std::size_t first, std::size_t last, std::size_t group, device_id d) const {
    return training_ ? table_.optimizer_s(first, last, d) / shards(group) : 0;
  }
  /// Returns the time to reduce the gradients among the devices of a group.
  [[nodiscard]] double ring_s(std::size_t first, std::size_t last, std::size_t group) const;
  [[nodiscard]] double reduction_s(std::size_t first, std::size_t last, std::size_t group) const;

  struct filling : sample_taker {
    std::size_t of_class;
    device_id example;
  };

  /// Returns true if no block takes a device of a class less time for a larger share, up to rounding.
  [[nodiscard]] bool grows_with_share(device_id d) const;
  /// Fills filled_; returns false if the group's memory holds fewer samples.
  bool share_out(std::size_t first, std::size_t last, std::size_t group, const demand& need, int in_flight) const;

  const prefix_table& table_;
  const sequence_cuts& cuts_;
  memory_savers savers_;
  const block_pins& pins_;
  const offload_table& offload_;
  const device_space& space_;
  const cluster& cluster_;
  const std::vector<energy_slopes>& slopes_;  ///< by device
  int size_, largest_, microbatches_;         ///< samples per microbatch, largest share, number of microbatches
  bool training_, keep_budgets_, longer_is_slower_;
  int repeats_;
  exchange_cost tied_;
  std::vector<transfer_cost> rings_;     ///< by group
  std::vector<double> limit_;            ///< bytes, by class
  mutable std::vector<filling> filled_;  ///< a member to avoid allocations: a search shares out millions of microbatches
};

/// Returns the plan whose fullest device is least full, as a fraction of its memory, over a device space. Times are ignored. Warm-up is 1
/// under 1F1B, which needs the least memory. Fullnesses beyond the range of double count as equal. Shares: one sample to each device, then
/// apportion with fullness as time. Stages use the memory savers of the tables.
///
/// Complexity  O(boundaries^2 x moves x microbatch size).
/// Throws      invalid_input: an invalid device space.
/// Determinism ties: the stage that ends later, then the smaller state behind it, then the earlier move.
/// Source      own: a bottleneck recurrence over the space of Dora, section 4.1, eqs. 3-5, with fullness as time.
/// @return     nothing if the space has no plan: every group has more devices than a microbatch has samples, state 0 has no moves, or none
///             keeps the pins.
[[nodiscard]] std::optional<plan> least_overflow(const search_tables& t, const device_space& space, const plan& blank);

}  // namespace hetplan::partition

#ifndef HETPLAN_SEPARATE
#include <hetplan/partition/candidate_costs.ipp>
#endif
