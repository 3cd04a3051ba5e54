// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Chains of layers over regions, of any size.

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include <hetplan/partition/region_chain.hpp>

#include "support/random_source.hpp"

namespace hetplan::test {

/// Returns layers of unequal work in regions whose speeds and links differ by up to 16 times.
///
/// @param slow  time of a transfer on the slowest link, relative to a forward pass spread evenly over all regions.
inline partition::region_chain random_region_chain(std::uint64_t seed, std::size_t regions, std::size_t layers, int microbatches,
                                                   double slow) {
  random_source random(seed);
  std::vector<double> work{0}, boundary, speed;
  for (std::size_t l = 0; l < layers; ++l) work.push_back(work.back() + random.between(0.3, 1.3));
  for (std::size_t l = 0; l < layers; ++l) boundary.push_back(random.between(0.5, 2));
  for (std::size_t g = 0; g < regions; ++g) speed.push_back(random.spread(1, 4));
  std::vector<double> link(regions * regions);
  for (double& x : link) x = random.spread(1, 4);
  const double each = work.back() / std::accumulate(speed.begin(), speed.end(), 0.0);
  partition::region_chain c{.regions = regions, .layers = layers, .microbatches = microbatches, .stage = {}, .transfer_s = {}};
  for (std::size_t l = 0; l < layers; ++l) c.positions.push_back(l);
  c.stage = [work, speed](std::size_t g, std::size_t first, std::size_t last) {
    const double f = (work[last] - work[first]) / speed[g];
    return partition::region_stage{f, 1.2 * f, 0.8 * f, 0, true};
  };
  c.transfer_s = [boundary, link, each, slow, regions](std::size_t g, std::size_t h, std::size_t l) {
    return slow * each * boundary[l] / link[g * regions + h];
  };
  return c;
}

}  // namespace hetplan::test
