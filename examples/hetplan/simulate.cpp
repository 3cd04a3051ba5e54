// SPDX-License-Identifier: BSL-1.0
#include <iostream>

#include <hetplan/draw/gantt.hpp>
#include <hetplan/draw/trace_view.hpp>
#include <hetplan/io/plan_json.hpp>
#include <hetplan/io/results_json.hpp>
#include <hetplan/simulate/explain.hpp>

#include "commands.hpp"
#include "outputs.hpp"

namespace cli {

using namespace hetplan;

int simulate(const common_options& options, const simulate_options& o) {
  const planning_graph model = load_model(options, o.model);
  const cluster devices = load_cluster(o.cluster);
  check_pair(model, devices, o.cluster);
  const io::plan_file read = load_plan(o.plan, model, devices, o.network);
  const hetplan::plan& p = read.plan;

  outputs files({{"--trace", o.trace}, {"--svg", o.svg}}, {o.model, o.cluster, o.plan});
  const bool draw = !o.trace.empty() || !o.svg.empty();
  const judgement j = evaluate(p, model, devices, profiled_or_roofline{}, judge_models{}, glpk_lp{}, {.record = draw});
  if (o.network.empty()) check_prediction(o.plan, read, j.evaluation, model, devices);
  if (!o.trace.empty()) files.put(o.trace, draw::chrome_trace(p, devices, j));
  if (!o.svg.empty()) files.put(o.svg, draw::gantt_svg(p, devices, j));
  const run_explanation explained = explain(p, model, devices, profiled_or_roofline{}, j);
  if (options.json) {
    std::cout << io::write_evaluation(j.evaluation, devices, &explained);
  } else {
    std::cout << describe(ranked_plan{p, j.evaluation}, model, devices);
    if (p.workload.mode == mode::generation) std::cout << describe(explained, devices);
    for (const broken_limit& b : broken_limits(j.evaluation, devices))
      std::cout << "  breaks a limit: " << escaped(to_string(b, devices)) << "\n";
  }
  files.commit();
  return 0;
}

}  // namespace cli
