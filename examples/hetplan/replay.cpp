// SPDX-License-Identifier: BSL-1.0

#include <hetplan/adapt/ladder.hpp>
#include <hetplan/io/plan_json.hpp>

#include "commands.hpp"
#include "outputs.hpp"

namespace cli {

using namespace hetplan;

namespace {

std::vector<device_id> devices_of(const std::vector<std::string>& names, const cluster& c) {
  std::vector<std::string_view> known;
  for (const device& d : c.devices()) known.push_back(d.name);
  std::vector<device_id> found;
  for (const std::string& name : names) {
    const auto it = std::find(known.begin(), known.end(), name);
    if (it == known.end()) {
      throw invalid_input("--lost: expected a device of cluster " + io::in_quotes(c.name()) + ", got " + io::in_quotes(name) +
                          io::suggestion(name, known));
    }
    found.emplace_back(it - known.begin());
  }
  return found;
}

}  // namespace

int replay(const common_options& options, const replay_options& o) {
  const planning_graph model = load_model(options, o.model);
  const cluster devices = load_cluster(o.cluster);
  const io::plan_file read = load_plan(o.plan, model, devices);
  const hetplan::plan& running = read.plan;
  check_pair(model, devices, o.cluster, running.workload);
  require_each_once("--lost", o.lost);
  const std::vector<device_id> lost = devices_of(o.lost, devices);
  check_prediction(o.plan, read, model, devices);

  outputs files({{"--out", o.out}}, {o.model, o.cluster, o.plan});
  const problem p{model, devices, any_cost_model(profiled_or_roofline{}), job{.workload = running.workload}, {}, glpk_lp{}};
  const plan_result result = adapt::lightweight_replay(p, running, lost);
  if (!result.plans.empty() && !o.out.empty()) files.put(o.out, io::write_plan(result.plans.front(), model, devices));
  const int status = answer(options, result, model, devices, nullptr);
  files.commit();
  return status;
}

}  // namespace cli
