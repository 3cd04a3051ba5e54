// SPDX-License-Identifier: BSL-1.0
// executor_threads: measures layers and links, and runs training plans with a thread per device.
//
//   executor_threads profile mlp home.json --out-model mlp.json --out-cluster measured.json
//   executor_threads run mlp.json measured.json plan.json --nominal home.json
#include <cstdio>
#include <exception>
#include <iostream>

#include "run.hpp"

namespace {

using namespace executors;

void profile(const options& o) {
  const profile_inputs in = read_profile(o.network, o.cluster);
  const kind_times layers = profile_layers(o, in, own_cores());
  write_profile(o, in.net, layers, measure_links(in.nominal, o.link_runs()));
}

void run(const options& o, const fault_options& wrong) {
  const run_inputs in = read_run(o.model, o.cluster, o.plan, o.nominal);
  if (o.paced) require_known_kinds(in.cluster, o.cluster);
  const run_report report = run_plan(in, o, wrong);
  std::cout << (o.json ? report_json(report) : report_text(report));
}

int work(int argc, char** argv) {
  command_line line("executor_threads", "Trains plans for real with a thread per device, and says whether the prediction was true.");
  fault_options wrong;
  keep_memory();
  line.add_run_option("--kill", wrong.kills, "switch a device off: DEVICE@ITERATION[+SECONDS]", "FAULT");
  line.add_run_option("--cut", wrong.cuts, "let nothing through a resource: RESOURCE@ITERATION:SECONDS", "FAULT");
  line.add_run_flag("--backups", wrong.backups, "copies after every iteration, as with --kill");
  if (const auto status = line.parse(argc, argv)) return *status;
  if (line.profiles()) profile(line.given());
  else run(line.given(), wrong);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto say = [](const std::exception& e, int status) {
    std::fprintf(stderr, "executor_threads: %s\n", e.what());
    return status;
  };
  try {
    return work(argc, argv);
  } catch (const executors::timed_out& e) {  // a device did not answer
    return say(e, 1);
  } catch (const executors::cannot_go_on& e) {
    return say(e, 1);
  } catch (const std::exception& e) {
    return say(e, 2);
  }
}
