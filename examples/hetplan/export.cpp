// SPDX-License-Identifier: BSL-1.0
#include <iostream>

#include <hetplan/coarsen/merge_small.hpp>
#include <hetplan/draw/dot.hpp>
#include <hetplan/exchange/export_llama_cpp.hpp>
#include <hetplan/exchange/export_prima_cpp.hpp>
#include <hetplan/exchange/export_torch.hpp>
#include <hetplan/exchange/export_vllm.hpp>
#include <hetplan/exchange/placement_json.hpp>
#include <hetplan/exchange/whole_blocks.hpp>
#include <hetplan/io/plan_json.hpp>
#include <hetplan/io/tasks_json.hpp>

#include "commands.hpp"
#include "outputs.hpp"

namespace cli {

using namespace hetplan;

namespace {

std::string text_for(const export_options& o, const hetplan::plan& p, const planning_graph& model, const cluster& devices) {
  if (o.to == "llama.cpp") return exchange::llama_cpp_command(p, model, devices);
  if (o.to == "prima.cpp") return exchange::prima_cpp_commands(p, model, devices);
  if (o.to == "vllm") return exchange::vllm_command(p, model, devices);
  if (o.to == "torch") return exchange::torch_split_spec(p, model, devices, o.blocks.empty() ? "layers" : o.blocks);
  if (o.to == "placement") return exchange::write_placement(p, model, devices);
  if (o.to == "dot") return draw::dot(p, model, devices);
  check_pair(model, devices, o.cluster, p.workload.mode);
  if (o.to == "tasks") io::require_tasks_file(p, model);
  const judgement judged = o.to == "tasks" ? judge(p, model, devices, profiled_or_roofline{})
                                           : evaluate(p, model, devices, profiled_or_roofline{}, judge_models{}, glpk_lp{});
  if (!o.whole_blocks) check_prediction(o.plan, p, judged.evaluation, model, devices);
  if (o.to == "tasks") return io::write_tasks(p, model, devices, judged);
  hetplan::plan predicted = p;
  predicted.predicted = judged.evaluation;
  return io::write_plan(predicted, model, devices);
}

}  // namespace

int export_plan(const common_options& options, const export_options& o) {
  if (!o.blocks.empty() && o.to != "torch") throw invalid_input("--blocks: only torch is told where the blocks are, not " + o.to);
  const planning_graph model = load_model(options, o.model);
  const cluster devices = load_cluster(o.cluster);
  hetplan::plan p = load_plan(o.plan, model, devices);
  outputs files({{"--out", o.out}}, {o.model, o.cluster, o.plan});
  if (o.whole_blocks) {
    check_pair(model, devices, o.cluster, p.workload.mode);
    p = exchange::with_whole_blocks(p, model, o.to);
    if (const auto limit = find_broken_limit(judge(p, model, devices, profiled_or_roofline{}).evaluation, devices)) {
      const std::string reason = "with whole blocks: " + to_string(*limit, devices);
      std::cout << (options.json ? io::json_text(io::json{{"status", "infeasible"}, {"reason", reason}})
                                 : "infeasible: " + escaped(reason) + "\n");
      return 1;
    }
  }
  const std::string text = text_for(o, p, model, devices);
  if (o.out.empty()) {
    std::cout << (options.json && o.to != "tasks" && o.to != "plan" && o.to != "placement" ? io::json_text(io::json{{"text", text}})
                                                                                           : text);
    return 0;
  }
  files.put(o.out, text);
  if (options.json) std::cout << io::json_text(io::json{{"written", io::json::array({o.out})}});
  files.commit();
  return 0;
}

}  // namespace cli
