// SPDX-License-Identifier: BSL-1.0
// The threads executor: measures layers and links, and trains plans for real with a thread per device.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <iostream>

#include <CLI/CLI.hpp>

#include "commands.hpp"

namespace {

using namespace executors;

class command_line {
 public:
  command_line() {
    app_.require_subcommand(1);

    CLI::App* profile = app_.add_subcommand("profile", "measure a built-in network and the links of a cluster");
    profile->add_option("network", network_, "mlp, transformer or towers")->required()->type_name("NETWORK");
    profile->add_option("cluster", cluster_, "the nominal cluster: its topology shapes the links, its kinds slow the devices")
        ->required()
        ->type_name("CLUSTER");
    profile->add_option("--out-model", out_model_, "write the model with its profile")->required()->type_name("FILE");
    profile->add_option("--out-cluster", out_cluster_, "write the cluster as measured")->required()->type_name("FILE");
    profile->add_option("--batches", batches_, "batch sizes to measure, by comma")->delimiter(',')->check(CLI::PositiveNumber)->capture_default_str();
    profile->add_flag("--quick", quick_, "fewer runs");
    profile->callback([this] { work_ = [this] { return measure(); }; });

    CLI::App* run = app_.add_subcommand("run", "train a plan, and compare with what was predicted");
    run->add_option("model", model_, "model file, as profile writes it")->required()->type_name("MODEL");
    run->add_option("cluster", cluster_, "cluster file, as profile writes it")->required()->type_name("CLUSTER");
    run->add_option("plan", plan_, "plan file")->required()->type_name("PLAN");
    run->add_option("--nominal", nominal_, "the cluster that shapes the links (CLUSTER)")->type_name("CLUSTER");
    run->add_option("--iterations", run_.iterations, "after the warm-up")->check(CLI::Range(1, 1000000))->capture_default_str();
    run->add_option("--seed", run_.seed, "of data and first parameters")->capture_default_str();
    run->add_option("--timeout", run_.timeout_s, "seconds that any wait may take")->check(CLI::PositiveNumber)->capture_default_str();
    run->add_option("--pace", pace_, "none: full speed, links too")->check(CLI::IsMember({"measured", "none"}))->capture_default_str();
    run->add_option("--kill", run_.kills, "switch a device off: DEVICE@ITERATION[+SECONDS]")->type_name("FAULT");
    run->add_option("--cut", run_.cuts, "let nothing through a resource: RESOURCE@ITERATION:SECONDS")->type_name("FAULT");
    run->add_flag("--backups", run_.backups, "copies after every iteration, as with --kill");
    run->add_flag("--json", json_, "print one JSON document");
    run->add_flag("--check", run_.check, "train on one device too, and print the difference");
    run->callback([this] { work_ = [this] { return train(); }; });
  }

  int run(int argc, char** argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::Success& help) {
      return app_.exit(help);
    } catch (const CLI::ParseError& e) {
      std::fprintf(stderr, "executor_threads: %s (see executor_threads --help)\n", e.what());
      return 2;
    }
    return work_();
  }

 private:
  int measure() {
    std::sort(batches_.begin(), batches_.end());
    batches_.erase(std::unique(batches_.begin(), batches_.end()), batches_.end());
    const neural_network net = find_network(network_);
    const hetplan::cluster nominal = hetplan::io::read_cluster(hetplan::io::json_document::parse(hetplan::io::read_text(cluster_), cluster_));
    require_known_kinds(nominal, cluster_);
    const std::vector<layer_times> times = measure_layers(net, batches_, quick_ ? 5 : 21);
    hetplan::io::write_atomically(out_model_, hetplan::io::write_model(describe_measured(net, times, batches_, nominal)));
    hetplan::io::write_atomically(out_cluster_, hetplan::io::write_cluster(measure_links(nominal, quick_ ? 3 : 9)));
    return 0;
  }
  int train() {
    run_.paced = pace_ == "measured";
    const run_inputs in = read_run(model_, cluster_, plan_, nominal_);
    if (run_.paced) {
      require_known_kinds(in.cluster, cluster_);
      require_cores(in.cluster, in.plan, cluster_);
    }
    run_report report = run_plan(in, run_);
    report.plan = plan_;
    std::cout << (json_ ? report_json(report) : report_text(report));
    return 0;
  }

  CLI::App app_{"Trains plans for real with a thread per device, and says whether the prediction was true.", "executor_threads"};
  std::string network_, model_, cluster_, plan_, nominal_, out_model_, out_cluster_, pace_ = "measured";
  std::vector<int> batches_{1, 2, 4, 8};
  run_options run_;
  bool quick_ = false, json_ = false;
  std::function<int()> work_;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    return command_line().run(argc, argv);
  } catch (const executors::timed_out& e) {  // somebody did not answer
    std::fprintf(stderr, "executor_threads: %s\n", e.what());
    return 1;
  } catch (const executors::cannot_go_on& e) {
    std::fprintf(stderr, "executor_threads: %s\n", e.what());
    return 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "executor_threads: %s\n", e.what());
    return 2;
  }
}
