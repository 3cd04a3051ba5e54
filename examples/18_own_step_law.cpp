// SPDX-License-Identifier: BSL-1.0
// How the steps of a pipeline add up is a law: here one of a pipeline that is never flushed, as PipeDream-2BW runs it.
#include <algorithm>
#include <cstdio>

#include <hetplan/estimate/step_law.hpp>
#include <hetplan/hetplan.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

using namespace hetplan;

// [step_law]
// Always full: an iteration takes as long as its busiest stage or link.
struct no_flush {
  pipeline_tail extend(const pipelining& p, const stage_times& s, const pipeline_tail& behind) const {
    return {std::max(p.microbatches * s.total_s + s.collective_s, behind.reach_s), 0};
  }
  pipeline_tail extend(const pipelining&, const link_times& c, const pipeline_tail& behind) const {
    return {std::max(c.own_s, behind.reach_s), 0};
  }
  double response_s(const pipelining&, const pipeline_tail& whole) const { return whole.reach_s; }
};
static_assert(check_step_law<no_flush>());
// [step_law]

int main() {
  const planning_graph model = zoo::model("bert-small", {});
  const cluster home = zoo::cluster("traffic-monitor");
  // The judge has a flush. What an iteration takes without one is what eight take longer than seven, back to back.
  const auto print = [&](const char* name, plan p) {
    const auto judged_s = [&](int iterations) {
      plan several = p;
      several.microbatches *= iterations;
      return judge(several, model, home, roofline{}).evaluation.latency.value();
    };
    std::printf("%-20s %zu stages   flushed %.3f s   never flushed %.3f s\n", name, p.stages.size(), judged_s(1),
                judged_s(8) - judged_s(7));
  };
  const planning_problem problem{model, home, roofline{}, job{.batch = 32}};
  recipes::partitioner_options how;
  print("by dominant step", recipes::dora_partitioner(problem, minimize_latency{}, 1, how).plans.at(0).plan);
  how.law = no_flush{};
  print("by a law of our own", recipes::dora_partitioner(problem, minimize_latency{}, 1, how).plans.at(0).plan);
}
