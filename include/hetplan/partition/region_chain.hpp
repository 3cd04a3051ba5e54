// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A chain of layers over regions that a slow network joins: what a run of layers takes in a region, how long a boundary travels
/// between two, and DeepCEE's cost of a split.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/version.hpp>

namespace hetplan::partition {

/// A run of layers as one stage of the pipeline, in a region: seconds per microbatch, and its collectives per iteration (AL).
struct region_stage {
  double forward_s = 0;
  double backward_s = 0;  ///< gradient of the input (B)
  double weights_s = 0;   ///< gradient of the weights (W)
  double collective_s = 0;
  bool fits = true;  ///< into the region's memory, with as many microbatches as the caller lets it hold
};

/// The problem. Regions are the paper's first-level groups; how a region runs a stage on its devices is the callable's business.
struct region_chain {
  std::size_t regions = 0;
  std::vector<std::size_t> positions = {};  ///< layers before which a stage may begin, ascending, the first 0
  std::size_t layers = 0;                   ///< behind the last position
  int microbatches = 1;                     ///< of an iteration

  /// (region, first, last) -> layers [first, last) there. Pure, finite, >= 0; infinite seconds do not fit either.
  std::function<region_stage(std::size_t, std::size_t, std::size_t)> stage;
  /// (region before, region behind, layer behind the boundary) -> seconds of one microbatch's activations: latency + bytes / bandwidth.
  /// Pure, >= 0; infinite where no link joins them.
  std::function<double(std::size_t, std::size_t, std::size_t)> transfer_s;
};

/// Which cost ranks splits; S stages, m microbatches, c_i the transfer behind stage i.
enum class region_cost {
  printed,      ///< max_s [ sum_{i<s} (F_i + c_i + max(0, c_i - F_i)) + m (F+B+W)_s + AL_s ]
  serial_links  ///< and max_{s<S-1} [ sum_{i<s} (F_i + c_i) + F_s + m c_s ]: a link passes one microbatch at a time
};

/// May regions stay idle?
enum class region_use { all, any };

/// Stage s runs the layers [first[s], first[s+1]), the last one those to the end, in region[s].
struct region_split {
  double seconds = std::numeric_limits<double>::infinity();  ///< region_split_seconds
  std::vector<std::size_t> first = {};
  std::vector<std::size_t> region = {};

  [[nodiscard]] bool exists() const { return !first.empty(); }
  friend bool operator==(const region_split&, const region_split&) = default;
};

/// Seconds of an iteration by eq. 1; infinite where a stage does not fit or a link is missing.
///
/// It ranks splits and bounds nothing: no drain of the pipeline, no contention, no order of tasks within a device; `printed` charges what
/// computation cannot hide of a transfer once, not once per microbatch, so where links are slow it says far too little. Both forms
/// count transfers of activations alone, not those of gradients.
///
/// Complexity  O(stages) calls of stage and transfer_s.
/// Throws      invalid_input (a chain or a split that is none); invalid_model (a callable's seconds are NaN or negative).
/// Source      DeepCEE, section 3.3.2, eq. 1. Deviations: B is the number of microbatches (the paper says size); t^f apart into F and c;
///             the transfer hides behind F of its sender (t_lap = F_i). serial_links is ours.
[[nodiscard]] double region_split_seconds(const region_chain& chain, const region_split& split, region_cost cost = region_cost::printed);

namespace detail {

/// What the cost reads of a stage: F, and m (F+B+W) + AL.
struct region_times {
  double forward_s, work_s;
  bool fits;  ///< and the seconds are finite

  [[nodiscard]] double limited_work_s() const { return fits ? work_s : std::numeric_limits<double>::infinity(); }
};
/// Stage of the positions [i, j); j = positions.size() is the end of the chain.
[[nodiscard]] region_times region_times_of(const region_chain& chain, std::size_t region, std::size_t i, std::size_t j);
[[nodiscard]] double checked_transfer_s(const region_chain& chain, std::size_t from, std::size_t to, std::size_t j);

/// Adds stages from the first to the last; the cost so far is the largest term.
class region_cost_sum {
 public:
  region_cost_sum(region_cost cost, int microbatches) : cost_(cost), microbatches_(microbatches) {}
  void add_stage(double forward_s, double work_s);
  /// Behind the stage that was added last, to one more.
  void add_transfer(double transfer_s);
  [[nodiscard]] double seconds() const { return seconds_; }

 private:
  region_cost cost_;
  int microbatches_;
  double fill_s_ = 0, sent_s_ = 0;  ///< with what computation does not hide, and without
  double forward_s_ = 0;            ///< of the last stage
  double seconds_ = 0;
};

/// Throws invalid_input, in the name of `who`.
void require_region_chain(const region_chain& chain, const std::string& who);

}  // namespace detail

// DeepCEE's beam search over orders of regions and splits of layers.

/// A split and how it was found. Not feasible: no split.
struct region_result {
  hetplan::status status = {};
  region_split split = {};
  long long weighed = 0;  ///< splits by the beam, extensions by the exact search
};

struct region_beam_options {
  region_cost cost = region_cost::printed;
  region_use use = region_use::all;
  std::size_t width = 16;         ///< splits that are kept, the paper's l
  int iterations = 200;           ///< at most; it ends when one brings nothing new into the beam
  std::size_t reorderings = 100;  ///< pairs of stages by split: about so many are drawn where there are many more
  std::uint64_t seed = 1;
  long long most_weighed = std::numeric_limits<long long>::max();  ///< then the best so far is the answer, status stopped
};

/// Beam search under region_split_seconds. It starts from `width` drawn orders of the regions, layers in proportion to their speeds. A
/// split is expanded by exchanging two of its stages or putting one elsewhere, all with their numbers of layers, and by moving one
/// boundary by 1, 4 or 16 positions; with region_use::any also by dropping a stage, by sharing one with an idle region and by an idle
/// region in place of a used one. The `width` best are kept. No split is weighed twice, no stage asked for twice.
///
/// @return      feasible, or none_found, which says that no split met fits; or stopped.
/// Complexity   O(iterations x width x (reorderings + stages) x stages) look-ups.
/// Throws       invalid_input (a chain that is none, width, iterations or most_weighed < 1); invalid_model (seconds NaN or negative).
/// Determinism  by the seed, the same on every machine; ties: fewer stages, then the smaller regions, then earlier boundaries.
/// Source       DeepCEE, section 3.3.3, Algorithm 1; batch and microbatch sizes are the caller's loops. Deviations: steps of 4 and 16
///              positions beside 1, so that hundreds of layers need no hundreds of iterations; splits that do not fit stay in the beam,
///              behind those with fewer stages that do not; parents stay, too; idle regions.
[[nodiscard]] region_result split_by_beam(const region_chain& chain, const region_beam_options& options = {});

}  // namespace hetplan::partition

#ifndef HETPLAN_SEPARATE
#include <hetplan/partition/region_chain.ipp>
#endif
