// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What one stage on one group of devices adds to a plan: step times, reductions, memory, energy.

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <hetplan/cluster/network.hpp>
#include <hetplan/cost/energy_model.hpp>
#include <hetplan/cost/prefix_table.hpp>
#include <hetplan/partition/apportion.hpp>
#include <hetplan/partition/search_tables.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/stage_graph.hpp>

namespace hetplan::partition {

/// Devices of one class that take equally many samples of each microbatch.
struct share_run {
  std::size_t of_class;
  int devices;
  int samples;
};

/// A stage on a group, its microbatch shared out.
struct placed_stage {
  double total_s = std::numeric_limits<double>::infinity();  ///< e = max over devices of f + b; infinite: no memory
  double backward_s = 0;                                     ///< max over devices
  double collective_s = 0;                                   ///< A: reductions and the optimizer's step
  int most_in_flight = 0;                                    ///< microbatches in flight up to which these shares fit
  bool exists = false;                                       ///< false: no memory, or a device would get no sample
};

/// One device of a stage.
struct device_part {
  double busy_s = 0;
  double energy_J = 0;  ///< dynamic
  double idle_W = 0;    ///< J per second of response
};

/// What the devices of a stage add to energy and limits.
struct stage_budget {
  double energy_J = 0;                                       ///< dynamic, one iteration (one whole run in generation)
  double idle_W = 0;                                         ///< J per second of response
  double limit_s = std::numeric_limits<double>::infinity();  ///< the largest response that they allow
  double stretch_s = 0;                                      ///< the least

  /// What both stages add.
  stage_budget& operator+=(const stage_budget& other) {
    energy_J += other.energy_J;
    idle_W += other.idle_W;
    limit_s = std::min(limit_s, other.limit_s);
    stretch_s = std::max(stretch_s, other.stretch_s);
    return *this;
  }
};

/// Asks a table about stages on groups of a device space, for one microbatch size; no share is larger than the table's.
///
/// Shares: each sample to the device that finishes it first within memory, which minimises the slowest device (see
/// apportion); equal devices share evenly, so classes are asked, not devices. A group with an idle member is no stage:
/// the same group without it is.
///
/// Source  Dora, section 4.1, the stage terms of eqs. 3 and 4; shares: Asteroid, Algorithm 1; reductions: semantics, section 6.
class candidate_costs {
 public:
  candidate_costs(const prefix_table& table, const device_space& space, const cluster& c, const std::vector<energy_slopes>& slopes,
                  const plan& blank, bool keep_budgets);

  /// @param in_flight  microbatches whose activations stay; 0: without regard to memory.
  /// Complexity        O(1) for a group of one class, O(microbatch size * classes) for a mixed one.
  [[nodiscard]] placed_stage place(std::size_t first, std::size_t last, std::size_t group, int in_flight) const;
  /// How the microbatch is shared out; equal shares of a class together, the larger first.
  [[nodiscard]] std::vector<share_run> shares(std::size_t first, std::size_t last, std::size_t group, int in_flight) const;

  /// Is there memory for a microbatch at all? False once, false for every longer stage.
  [[nodiscard]] bool has_room(std::size_t first, std::size_t last, std::size_t group, int in_flight) const;

  /// What a stage exchanges that reads `in` and sends `out`: bytes per sample, each with the gradients of the way back.
  [[nodiscard]] stage_traffic traffic(std::pair<double, double> in, std::pair<double, double> out) const;
  /// One device of a stage over an iteration (a whole run in generation).
  [[nodiscard]] device_part part(std::size_t first, std::size_t last, std::size_t group, const share_run& r, const stage_traffic& t) const;
  /// Bytes that a device of a stage holds at most.
  [[nodiscard]] double held_bytes(std::size_t first, std::size_t last, int samples, int in_flight) const;
  /// What all devices of a stage add to energy and limits.
  [[nodiscard]] stage_budget budget(std::size_t first, std::size_t last, std::size_t group, int in_flight, const stage_traffic& t) const;
  [[nodiscard]] int repeats() const { return repeats_; }

 private:
  struct demand {
    double fixed, kept, cache;  ///< bytes; the latter two per sample, of one microbatch in flight and of all sequences
  };
  [[nodiscard]] demand demand_of(std::size_t first, std::size_t last) const;
  /// The largest share within memory.
  [[nodiscard]] int cap(const demand& need, std::size_t of_class, int in_flight) const;
  /// The largest number of microbatches in flight with which a share fits.
  [[nodiscard]] int fits(const demand& need, std::size_t of_class, int samples) const;
  [[nodiscard]] static int members(const device_space::device_group& g);
  [[nodiscard]] double reduction_s(std::size_t first, std::size_t last, std::size_t group) const;

  /// One class of a group while samples are handed out.
  struct filling : sample_taker {
    std::size_t of_class;
    device_id example;
  };

  /// Fills filled_; false if the memory of the group holds fewer samples.
  bool share_out(std::size_t first, std::size_t last, std::size_t group, const demand& need, int in_flight) const;

  const prefix_table& table_;
  const device_space& space_;
  const cluster& cluster_;
  const std::vector<energy_slopes>& slopes_;  ///< by device
  int size_, largest_, microbatches_;         ///< samples of a microbatch, of a share at most; microbatches
  bool training_, keep_budgets_;
  int repeats_;
  exchange_cost tied_;
  std::vector<transfer_cost> rings_;     ///< by group
  std::vector<double> limit_;            ///< bytes, by class
  mutable std::vector<filling> filled_;  ///< reused: a search asks millions of times
};

}  // namespace hetplan::partition

#ifndef HETPLAN_SEPARATE
#include <hetplan/partition/candidate_costs.ipp>
#endif
