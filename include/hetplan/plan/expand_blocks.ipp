// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/plan/expand_blocks.hpp>

#include <string>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/escaped.hpp>

namespace hetplan {

HETPLAN_INLINE plan expand_blocks(plan on_fused, const coarsen::blocks& b) {
  for (stage& s : on_fused.stages) {
    std::vector<layer_id> members;
    for (const layer_id l : s.layers) {
      if (!l.valid() || l.index() >= b.size()) {
        throw invalid_input("expand_blocks: stage \"" + escaped(s.name) + "\" names layer " + std::to_string(l.value) +
                            "; expected one of the " + std::to_string(b.size()) + " blocks");
      }
      members.insert(members.end(), b.layers[l.index()].begin(), b.layers[l.index()].end());
    }
    s.layers = std::move(members);
  }
  on_fused.predicted.reset();
  return on_fused;
}

}  // namespace hetplan
