// SPDX-License-Identifier: BSL-1.0
#pragma once
/// DeepCEE's beam search over orders of regions and splits of layers.

#include <cstddef>
#include <cstdint>
#include <limits>

#include <hetplan/core/status.hpp>
#include <hetplan/partition/region_chain.hpp>

namespace hetplan::partition {

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

#ifndef HETPLAN_COMPILED
#include <hetplan/partition/region_beam.ipp>
#endif
