// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/plan/estimate.hpp>

namespace HETPLAN_NAMESPACE::detail {

HETPLAN_INLINE stage_traffic traffic_per_sample(const pipeline_steps& steps, std::size_t s) {
  stage_traffic t;
  for (const std::size_t l : steps.stages[s].out) {
    t.sent += steps.links[l].forward_cut;
    t.received += steps.links[l].backward_cut;
  }
  for (const std::size_t l : steps.stages[s].in) {
    t.received += steps.links[l].forward_cut;
    t.sent += steps.links[l].backward_cut;
  }
  return t;
}

}  // namespace HETPLAN_NAMESPACE::detail
