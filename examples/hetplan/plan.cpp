// SPDX-License-Identifier: BSL-1.0
#include <cstdio>

#include <hetplan/draw/gantt.hpp>
#include <hetplan/draw/report.hpp>
#include <hetplan/draw/trace_view.hpp>
#include <hetplan/io/plan_json.hpp>

#include "commands.hpp"
#include "outputs.hpp"

namespace cli {

using namespace hetplan;

namespace {

void print_best(const std::vector<ranked_plan>& plans) {
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const auto& [p, e] = plans[i];
    const auto devices = std::ranges::count_if(e.devices, &device_evaluation::used);
    std::printf("  %3zu.  %10s  %10s   %2zu stages on %td devices, %s\n", i + 1, readable(e.latency).c_str(), readable(e.energy()).c_str(),
                p.stages.size(), devices, describe_microbatches(p).c_str());
  }
}

}  // namespace

int plan(const common_options& options, const plan_options& o) {
  const planning_graph model = load_model(options, o.model);
  const cluster devices = load_cluster(o.cluster);
  require_planner("--planner", o.planner);
  job wanted = load_job(o.job, {}, o.objective, o.schedules);
  wanted.split_tensors = wanted.split_tensors || o.split_tensors;
  if (o.job.empty() && places_operators(o.planner)) {
    wanted.workload.mode = mode::inference;
    wanted.batch = 1;
  }
  if (!wanted.orders.empty() && wanted.workload.mode != mode::training)
    throw invalid_input("--schedule: expected \"1f1b\" or \"gpipe\" outside training, got " +
                        io::in_quotes(to_string(wanted.orders.front())));
  check_pair(model, devices, o.cluster, wanted.workload);
  check_pins(o.job, wanted, model, devices);
  if (o.largest == "context" && wanted.workload.mode != mode::generation)
    throw invalid_input("--largest context: expected a job in mode \"generation\", which has a cache, got " +
                        io::in_quotes(to_string(wanted.workload.mode)));
  if (o.phase != 0 && o.planner != "dora") throw invalid_input("--phase: planner \"" + o.planner + "\" has no phases");
  if (o.phase != 0 && !wanted.orders.empty())
    throw invalid_input("--phase: a phase of dora gives plans no orders; expected schedule \"1f1b\" or \"gpipe\" in the job, got " +
                        io::in_quotes(to_string(wanted.orders.front())));
  const auto phase = static_cast<dora_phase>(o.phase);
  for (const std::string& line : unused_options(options, {&o.planner, 1}, wanted.workload.mode == mode::inference, phase)) warn(line);
  for (const std::string& line : unused_wishes(wanted, {&o.planner, 1}, o.top.value_or(1) > 1)) warn(line);

  outputs files({{"--out", o.out}, {"--svg", o.svg}, {"--html", o.html}, {"--trace", o.trace}}, {o.model, o.cluster, o.job});
  const problem p{model, devices, any_cost_model(profiled_or_roofline{}), wanted, {}, glpk_lp{}, options.budget};
  plan_result result;
  std::optional<recipes::largest_found> largest;
  {
    progress bar(options, o.planner);
    const auto planned = [&](const problem& asked, const any_objective& objective, int keep, const candidate_observer& seen) {
      return run_planner(options, o.planner, asked, objective, keep, seen, phase);
    };
    if (o.largest.empty()) {
      result = run_planner(options, o.planner, p, o.top.value_or(10), bar, phase);
    } else {
      largest = recipes::find_largest(p, o.largest == "batch" ? recipes::growing::batch : recipes::growing::context, planned,
                                      {.most = o.most, .keep = o.top.value_or(1)}, bar);
      result = std::move(largest->planned);
      wanted = recipes::with_hard_limits(wanted);
    }
  }
  judgement judged;
  std::optional<run_explanation> explained;
  if (!result.plans.empty()) {
    const auto& [best, predicted] = result.plans.front();
    const run_times times = predicted.times();
    const auto tell = [&](const char* limit, const std::optional<seconds>& wanted_s, seconds predicted_s) {
      if (wanted_s && !at_most(predicted_s, *wanted_s))
        warn(std::string(limit) + " = " + readable(*wanted_s) + " is kept by no plan that was found; the best takes " +
             readable(predicted_s));
    };
    tell("qoe.makespan", wanted.qoe.makespan, times.makespan);
    tell("qoe.ttft", wanted.qoe.ttft, times.ttft);
    tell("qoe.time_between_tokens", wanted.qoe.time_between_tokens, times.between_tokens);
    if (!o.out.empty()) files.put(o.out, io::write_plan(result.plans.front(), model, devices));
    const bool drawn = !o.svg.empty() || !o.trace.empty() || !o.html.empty();
    if (drawn || options.json || best.workload.mode == mode::generation) {
      judged = judge(best, model, devices, p.cost, p.models, {.record = drawn});
      explained = explain(best, model, devices, p.cost, judged, p.models.memory);
      judged.evaluation = predicted;
      if (!o.svg.empty()) files.put(o.svg, draw::gantt_svg(best, devices, judged));
      if (!o.trace.empty()) files.put(o.trace, draw::chrome_trace(best, devices, judged));
    }
  }
  if (!o.html.empty())  // also explains the lack of a plan
    files.put(o.html, draw::report_html(result, model, devices, judged, {.explained = explained}));
  const int status = answer(options, result, model, devices, explained ? &*explained : nullptr, largest ? &*largest : nullptr);
  if (status == 0 && !options.json) {
    std::printf("  best of %lld candidates\n", result.candidates);
    if (o.top) print_best(result.plans);
  }
  files.commit();
  return status;
}

}  // namespace cli
