// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Pipelines of a layer chain over regions joined by a slow network: DeepCEE's cost of a split, and its beam search for splits.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/version.hpp>

namespace hetplan::partition {

/// Costs of a run of layers that forms one pipeline stage in a region: seconds per microbatch.
struct region_stage {
  double forward_s = 0;
  double backward_s = 0;  ///< backward for the input gradient (B)
  double weights_s = 0;   ///< backward for the weight gradient (W)
  double collective_s = 0;
  bool fits = true;  ///< true if the region's memory holds the stage, with the caller's number of microbatches in flight
};

/// A chain of layers to split over regions, the paper's first-level groups. The callable `stage` decides how a region runs its layers.
struct region_chain {
  std::size_t regions = 0;
  std::vector<std::size_t> positions = {};  ///< first layers that a stage may have, ascending, the first 0
  std::size_t layers = 0;
  int microbatches = 1;

  /// (region, first, last) -> costs of layers [first, last) in the region. Pure; seconds >= 0. Infinite seconds mean that it does not fit.
  std::function<region_stage(std::size_t, std::size_t, std::size_t)> stage;
  /// (sending region, receiving region, first layer behind the boundary) -> seconds for one microbatch's activations: latency + bytes /
  /// bandwidth. Pure, >= 0; infinite if no link joins the regions.
  std::function<double(std::size_t, std::size_t, std::size_t)> transfer_s;
};

/// The cost that ranks splits, for stages s = 0 ... S-1, m microbatches and transfer c_i behind stage i.
enum class region_cost {
  printed,      ///< max_s [ sum_{i<s} (F_i + c_i + max(0, c_i - F_i)) + m (F+B+W)_s + AL_s ]
  serial_links  ///< also max_{s<S-1} [ sum_{i<s} (F_i + c_i) + F_s + m c_s ]: a link carries one microbatch at a time
};

/// Whether every region runs a stage (all) or regions may stay idle (any).
enum class region_use { all, any };

/// A split into stages: stage s runs layers [first[s], first[s+1]) in region[s]; the last stage runs to the end of the chain.
struct region_split {
  double seconds = std::numeric_limits<double>::infinity();  ///< cost by region_split_seconds
  std::vector<std::size_t> first = {};
  std::vector<std::size_t> region = {};

  [[nodiscard]] bool exists() const { return !first.empty(); }
  friend bool operator==(const region_split&, const region_split&) = default;
};

/// Returns the seconds of an iteration by eq. 1, infinite if a stage does not fit or a link is missing.
///
/// The cost ranks splits and is no bound: it ignores the pipeline's drain, contention and the order of tasks on a device. `printed` charges
/// the part of a transfer that computation cannot hide once, not once per microbatch, so it is far too low on slow links. Both costs count
/// transfers of activations only, not of gradients.
///
/// Complexity  O(stages) calls of stage and transfer_s.
/// Throws      invalid_input (invalid chain or split); invalid_model (a callable returns NaN or negative seconds).
/// Source      DeepCEE, section 3.3.2, eq. 1. Deviations: B is the number of microbatches (the paper says size); t^f is split into F and c;
///             a transfer hides behind its sender's F (t_lap = F_i). serial_links is ours.
[[nodiscard]] double region_split_seconds(const region_chain& chain, const region_split& split, region_cost cost = region_cost::printed);

namespace detail {

/// Terms of a stage in the cost: F, and m (F+B+W) + AL.
struct region_times {
  double forward_s, work_s;
  bool fits;  ///< true if the stage fits and its seconds are finite

  [[nodiscard]] double limited_work_s() const { return fits ? work_s : std::numeric_limits<double>::infinity(); }
};
/// Returns the terms of the stage of positions [i, j) in a region; j = positions.size() is the end of the chain.
[[nodiscard]] region_times region_times_of(const region_chain& chain, std::size_t region, std::size_t i, std::size_t j);
[[nodiscard]] double checked_transfer_s(const region_chain& chain, std::size_t from, std::size_t to, std::size_t j);

/// Running cost of a split, its largest term so far. Stages are added from first to last, with their transfers in between.
class region_cost_sum {
 public:
  region_cost_sum(region_cost cost, int microbatches) : cost_(cost), microbatches_(microbatches) {}
  void add_stage(double forward_s, double work_s);
  void add_transfer(double transfer_s);
  [[nodiscard]] double seconds() const { return seconds_; }

 private:
  region_cost cost_;
  int microbatches_;
  double fill_s_ = 0, sent_s_ = 0;  ///< start time of the next stage, with and without the transfer time that computation does not hide
  double forward_s_ = 0;            ///< of the last added stage
  double seconds_ = 0;
};

/// Throws invalid_input, prefixed by `who`, if the chain is invalid.
void require_region_chain(const region_chain& chain, const std::string& who);

}  // namespace detail

/// Result of a search: a split, empty unless feasible or stopped with one, and the search effort.
struct region_result {
  hetplan::status status = {};
  region_split split = {};
  long long weighed = 0;  ///< splits (beam search) or extensions (exact search) evaluated
};

struct region_beam_options {
  region_cost cost = region_cost::printed;
  region_use use = region_use::all;
  std::size_t width = 16;         ///< splits kept per iteration, the paper's l
  int iterations = 200;           ///< maximum; the search ends earlier when the beam no longer changes
  std::size_t reorderings = 100;  ///< pairs of stages drawn per split if there are more than twice as many; else all pairs
  std::uint64_t seed = 1;
  long long most_weighed = std::numeric_limits<long long>::max();  ///< limit; the best split so far is then returned with status stopped
};

/// Returns the best split found by beam search under region_split_seconds.
///
/// The search starts from `width` random orders of the regions with layers in proportion to their speeds. Moves swap two stages or reinsert
/// one, each stage keeping its number of layers, and shift a boundary by 1, 4 or 16 positions. With region_use::any, moves also drop a
/// stage, share one with an idle region, or replace a used region by an idle one. The `width` best splits survive. Every split is evaluated
/// once, every stage queried once.
///
/// @return      feasible; none_found if no evaluated split fits, which proves nothing; or stopped.
/// Complexity   O(iterations x width x (reorderings + stages) x stages) look-ups.
/// Throws       invalid_input (invalid chain; width, iterations or most_weighed < 1); invalid_model (NaN or negative seconds).
/// Determinism  by the seed, on every machine; ties: fewer stages, then earlier boundaries and smaller regions, stage by stage.
/// Source       DeepCEE, section 3.3.3, Algorithm 1; the caller loops over batch and microbatch sizes. Deviations: steps of 4 and 16
///              positions beside 1, to save iterations on chains of hundreds of layers; splits that do not fit stay in the beam, behind
///              those with fewer stages that do not fit; parents survive, too; idle regions.
[[nodiscard]] region_result split_by_beam(const region_chain& chain, const region_beam_options& options = {});

}  // namespace hetplan::partition

#ifndef HETPLAN_SEPARATE
#include <hetplan/partition/region_chain.ipp>
#endif
