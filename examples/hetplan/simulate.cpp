// SPDX-License-Identifier: BSL-1.0
#include <iostream>

#include <hetplan/io/check_together.hpp>
#include <hetplan/io/chrome_trace.hpp>
#include <hetplan/io/file.hpp>
#include <hetplan/io/gantt.hpp>
#include <hetplan/io/plan_json.hpp>
#include <hetplan/io/results_json.hpp>

#include "commands.hpp"

namespace cli {

using namespace hetplan;

int simulate(const common_options& options, const simulate_options& o) {
  const planning_graph model = load_model(options, o.model);
  const cluster devices = load_cluster(o.cluster);
  io::check_together(model, devices, o.cluster);
  hetplan::plan p = io::read_plan(io::json_document::parse(io::read_text(o.plan), o.plan), model, devices);
  for (const sharing s : all_sharings) {
    if (o.network == to_string(s)) p.network = s;
  }

  const bool draw = !o.trace.empty() || !o.svg.empty();
  const judgement j = evaluate(p, model, devices, profiled_or_roofline{}, judge_models<>{}, glpk_lp{}, {.record = draw});
  p.predicted = j.evaluation;
  if (!o.trace.empty()) io::write_atomically(o.trace, io::chrome_trace(p, devices, j));
  if (!o.svg.empty()) io::write_atomically(o.svg, io::gantt_svg(p, devices, j));
  if (options.json) {
    std::cout << io::write_evaluation(j.evaluation, devices);
  } else {
    std::cout << describe(p, model, devices);
    if (const auto limit = find_broken_limit(j.evaluation, devices)) std::cout << "  breaks a limit: " << to_string(*limit, devices) << "\n";
  }
  return 0;
}

}  // namespace cli
