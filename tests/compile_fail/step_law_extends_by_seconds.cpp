// SPDX-License-Identifier: BSL-1.0
// expect: step_law needs: hetplan::pipeline_tail extend(const hetplan::pipelining&, const hetplan::stage_times&, const
// hetplan::pipeline_tail& behind) const
#include <hetplan/estimate/step_law.hpp>

using namespace hetplan;

struct my_law {
  double extend(const pipelining& p, const stage_times& s, const pipeline_tail& behind) const {
    return p.microbatches * s.total_s + behind.reach_s;
  }
  pipeline_tail extend(const pipelining&, const link_times& c, const pipeline_tail& behind) const {
    return {c.total_s + behind.reach_s, 0};
  }
  double response_s(const pipelining&, const pipeline_tail& whole) const { return whole.reach_s; }
};
const any_step_law own_law = my_law{};
