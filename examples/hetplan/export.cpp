// SPDX-License-Identifier: BSL-1.0
#include <cstdio>
#include <filesystem>
#include <iostream>

#include <hetplan/coarsen/merge_small.hpp>
#include <hetplan/draw/dot.hpp>
#include <hetplan/exchange/export_llama_cpp.hpp>
#include <hetplan/exchange/export_runtimes.hpp>
#ifdef HETPLAN_HAS_ONNX
#include <hetplan/exchange/onnx_graph.hpp>
#endif
#include <hetplan/exchange/dnn_partitioning_json.hpp>
#include <hetplan/io/plan_json.hpp>
#include <hetplan/io/tasks_json.hpp>
#include <hetplan/io/unused_fields.hpp>
#include <hetplan/plan/expansion_size.hpp>
#include <hetplan/search/ranking.hpp>

#include "commands.hpp"
#include "outputs.hpp"

namespace cli {

using namespace hetplan;

namespace {

void warn_of_limits(const std::string& file, const evaluation& e, const cluster& devices) {
  for (const broken_limit& b : broken_limits(e, devices)) warn(file + ": breaks a limit: " + to_string(b, devices));
}

/// Simulates the plan and warns of its broken limits; silent if the model has no times for these devices.
void warn_of_limits(const std::string& file, const hetplan::plan& p, const planning_graph& model, const cluster& devices) {
  try {
    io::check_together(model, devices, devices.name(), p.workload);
    warn_of_limits(file, judge(p, model, devices, profiled_or_roofline{}).evaluation, devices);
  } catch (const invalid_input&) {
  } catch (const invalid_model&) {
  }
}

std::string text_for(const export_options& o, const io::plan_file& read, const planning_graph& model, const cluster& devices) {
  const hetplan::plan& p = read.plan;
  if (o.to == "distributed-llama") return exchange::distributed_llama_commands(p, model, devices);
  if (o.to == "exo") return exchange::exo_program(p, model, devices);
  if (o.to == "llama.cpp") return exchange::llama_cpp_command(p, model, devices);
  if (o.to == "prima.cpp") return exchange::prima_cpp_commands(p, model, devices);
  if (o.to == "vllm") return exchange::vllm_command(p, model, devices);
  if (o.to == "torch") return exchange::torch_split_spec(p, model, devices, o.blocks.empty() ? "layers" : o.blocks);
  if (o.to == "placement") return exchange::write_placement(p, model, devices);
  if (o.to == "dot") return draw::dot(p, model, devices);
  check_pair(model, devices, o.cluster, p.workload);
  if (o.to == "tasks") io::require_tasks_file(p, model);
  const bool bounded = o.to == "plan" || (read.predicted && read.predicted->bound.value() > 0);  // written or compared
  const judgement judged = bounded ? evaluate(p, model, devices, profiled_or_roofline{}, judge_models{}, glpk_lp{})
                                   : judge(p, model, devices, profiled_or_roofline{});
  check_prediction(o.plan, read, judged.evaluation, model, devices);  // plans with whole blocks have no prediction
  warn_of_limits(o.plan, judged.evaluation, devices);
  if (o.to == "tasks") return io::write_tasks(p, model, devices, judged);
  return io::write_plan(ranked_plan{p, judged.evaluation}, model, devices);
}

#ifdef HETPLAN_HAS_ONNX
/// Returns a device's name as part of a file name: all but letters, digits, - and _ become _.
std::string file_part(std::string name) {
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    if (!plain) c = '_';
  }
  return name;
}

/// Writes one file per part, all or none.
int export_onnx(const common_options& options, const export_options& o, hetplan::plan p, const planning_graph& model,
                const cluster& devices) {
  const std::string text = io::read_text(o.source, exchange::max_onnx_bytes);
  const exchange::onnx_options how{.dimensions = parse_dimensions(o.dimensions),
                                   .name = model.name(),
                                   .conditions = parse_conditions(o.conditions),
                                   .tokens_per_sample = model.tokens_per_sample()};
  const exchange::onnx_model read = exchange::read_onnx(text, o.source, how);
  if (fused_as_asked(options, read.graph) != model)
    throw invalid_input("--source: " + io::escaped(o.source) + " is not what model " + io::in_quotes(model.name()) + " was imported from");
  if (const auto fused = blocks_as_asked(options, read.graph)) p = expand_blocks(std::move(p), *fused);
  const auto parts = exchange::cut_onnx(text, o.source, how, read, p);
  std::vector<outputs::file> names;
  for (const exchange::onnx_part& part : parts)
    names.push_back({"--out", o.out + "." + std::to_string(part.step) + "." + file_part(devices[part.device].name) + ".onnx"});
  outputs files(names, {o.model, o.cluster, o.plan, o.source});
  for (std::size_t i = 0; i < parts.size(); ++i) files.put(names[i].path, parts[i].text);
  io::json written = io::json::array();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    written.push_back(names[i].path);
    if (!options.json) std::printf("%s\n", escaped(names[i].path).c_str());
    for (const std::string& beside : parts[i].beside) {
      const auto place = std::filesystem::path(names[i].path).parent_path() / beside;
      if (!std::filesystem::exists(place)) warn("the parts hold weights in " + io::in_quotes(beside) + ", which is not beside them");
    }
  }
  if (options.json) std::cout << io::json_text(io::json{{"written", written}});
  files.commit();
  return 0;
}
#endif

}  // namespace

int export_plan(const common_options& options, const export_options& o) {
  if (o.to == "onnx" && (o.source.empty() || o.out.empty())) throw invalid_input("--to onnx: expected --source FILE.onnx and --out PREFIX");
  if (o.to != "onnx" && (!o.source.empty() || !o.dimensions.empty() || !o.conditions.empty()))
    throw invalid_input("--source, --dim, --if: only onnx takes them, not " + o.to);
  if (o.to == "onnx" && o.whole_blocks) throw invalid_input("--whole-blocks: onnx is cut at operators and has no blocks");
  if (o.to == "distributed-llama" && o.whole_blocks)
    throw invalid_input("--whole-blocks: distributed-llama shares every layer and has no cuts");
  if (!o.blocks.empty() && o.to != "torch") throw invalid_input("--blocks: only torch is told where the blocks are, not " + o.to);
  const planning_graph model = load_model(options, o.model);
  const cluster devices = load_cluster(o.cluster);
  io::plan_file read = load_plan(o.plan, model, devices);
  const hetplan::plan& p = read.plan;
  const bool judged_later = o.to == "tasks" || o.to == "plan";
  if (o.whole_blocks || !judged_later) check_prediction(o.plan, read, model, devices);
  if (!o.whole_blocks && !judged_later) warn_of_limits(o.plan, p, model, devices);
  if (o.whole_blocks && !p.schedule.transfers.empty())
    warn(o.plan + ": flows: --whole-blocks moves cuts, which makes other transfers; not used");
  if (o.to == "onnx") {
#ifdef HETPLAN_HAS_ONNX
    return export_onnx(options, o, p, model, devices);
#else
    throw invalid_input("--to onnx: this program was built without ONNX (Debian: libonnx-dev)");
#endif
  }
  outputs files({{"--out", o.out}}, {o.model, o.cluster, o.plan});
  if (o.whole_blocks) {
    check_pair(model, devices, o.cluster, p.workload);
    read = {exchange::with_whole_blocks(p, model, o.to)};
    if (devices.has_tiers()) {  // layers have moved, so others need room
      job same;
      same.workload = read.plan.workload;
      same.batch = static_cast<int>(read.plan.batch());
      static_cast<void>(judge_offloaded(planning_problem{model, devices, profiled_or_roofline{}, same}, read.plan));
    }
    if (const auto limit = find_broken_limit(judge(p, model, devices, profiled_or_roofline{}).evaluation, devices)) {
      const std::string reason = "with whole blocks: " + to_string(*limit, devices);
      std::cout << (options.json ? io::json_text(io::json{{"status", to_string(outcome::none_found)}, {"reason", reason}})
                                 : std::string(to_string(outcome::none_found)) + ": " + escaped(reason) + "\n");
      return 1;
    }
  }
  const auto text_of = [&] {
    if (o.to != "placement" || options.fuse.empty()) return text_for(o, read, model, devices);
    common_options apart = options;  // operators are placed in the unfused model
    apart.fuse.clear();
    const planning_graph operators = load_model(apart, o.model);
    return text_for(o, {expand_blocks(p, *blocks_as_asked(options, operators))}, operators, devices);
  };
  const std::string text = text_of();
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
