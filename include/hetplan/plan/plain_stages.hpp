// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Who knows stages whose devices share microbatches by samples, and nothing else, says so here.

#include <string>

#include <hetplan/core/error.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan {

/// What a stage is beyond that; "" for a plain one. A grid of one column, or one device that shares out its state, is plain.
[[nodiscard]] inline std::string beyond_plain(const stage& s, bool cuts_are_plain = false) {
  if (s.column_count() > 1) return "a grid, whose columns share tensors";
  if (s.devices.size() > 1 && s.shard == sharding::zero2) return "under zero2, which scatters gradients after each microbatch";
  if (s.devices.size() > 1 && s.shard == sharding::fsdp) return "under fsdp, which gathers weights before each use";
  return s.cuts.empty() || cuts_are_plain ? "" : "cut into passes that are no microbatches";
}

/// Throws invalid_input for the first stage that is more: `who` cannot take it.
inline void require_plain_stages(const plan& p, const std::string& who, bool cuts_are_plain = false) {
  for (const stage& s : p.stages) {
    if (const std::string more = beyond_plain(s, cuts_are_plain); !more.empty()) {
      throw invalid_input(who + ": stage \"" + s.name + "\" is " + more +
                          "; expected stages whose devices share microbatches by samples alone");
    }
  }
}

}  // namespace hetplan
