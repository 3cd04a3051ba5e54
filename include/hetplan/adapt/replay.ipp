// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/replay.hpp>

namespace HETPLAN_NAMESPACE::adapt::detail {

HETPLAN_INLINE std::string reason_not_to_replay(const plan& p) {
  if (p.pipelines.size() > 1) return "replay moves the cuts of one pipeline; the running plan has " + std::to_string(p.pipelines.size());
  if (p.schedule.kind == schedule_kind::explicit_orders) return "replay knows pipeline schedules; the running plan lists explicit orders";
  for (const stage& s : p.stages) {
    if (s.recompute) return "replay counts on stages that keep their activations; stage \"" + s.name + "\" recomputes them";
    if (s.state_shards() > 1) {
      return "replay counts on devices that hold the whole optimizer's state; those of stage \"" + s.name + "\" share it out";
    }
  }
  return "";
}

}  // namespace HETPLAN_NAMESPACE::adapt::detail
