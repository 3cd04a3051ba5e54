// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The command line that the executors in C++ share: `profile` and `run`, with their files and options.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <hetplan/plan/describe.hpp>

#include "profile.hpp"

namespace executors {

struct options {
  std::string network = {}, model = {}, cluster = {}, plan = {}, nominal = {}, out_model = {}, out_cluster = {};
  std::vector<int> batches{1, 2, 4, 8};  ///< ascending
  bool quick = false;
  int iterations = 5;  ///< after the warm-up
  std::uint64_t seed = 1;
  double timeout_s = 30;  ///< of every wait
  bool paced = true;
  bool check = false, json = false;

  [[nodiscard]] int layer_runs() const { return quick ? 5 : 21; }
  [[nodiscard]] int link_runs() const { return quick ? 3 : 9; }
};

class command_line {
 public:
  command_line(const std::string& name, const std::string& what) : app_(what, name) {
    app_.require_subcommand(1);
    app_.fallthrough();
    app_.add_option("--timeout", given_.timeout_s, "seconds that any wait may take")->check(CLI::PositiveNumber)->capture_default_str();

    profile_ = app_.add_subcommand("profile", "measure a built-in network and the links of a cluster");
    profile_->add_option("network", given_.network, "mlp, transformer or towers")->required()->type_name("NETWORK");
    profile_->add_option("cluster", given_.cluster, "the nominal cluster: its topology shapes the links, its kinds slow the devices")
        ->required()
        ->type_name("CLUSTER");
    profile_->add_option("--out-model", given_.out_model, "write the model with its profile")->required()->type_name("FILE");
    profile_->add_option("--out-cluster", given_.out_cluster, "write the cluster as measured")->required()->type_name("FILE");
    profile_->add_option("--batches", given_.batches, "batch sizes to measure, by comma")
        ->delimiter(',')
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    profile_->add_flag("--quick", given_.quick, "fewer runs");

    run_ = app_.add_subcommand("run", "train a plan, and compare with what was predicted");
    run_->add_option("model", given_.model, "model file, as profile writes it")->required()->type_name("MODEL");
    run_->add_option("cluster", given_.cluster, "cluster file, as profile writes it")->required()->type_name("CLUSTER");
    run_->add_option("plan", given_.plan, "plan file")->required()->type_name("PLAN");
    run_->add_option("--nominal", given_.nominal, "the cluster that shapes the links (CLUSTER)")->type_name("CLUSTER");
    run_->add_option("--iterations", given_.iterations, "after the warm-up")->check(CLI::Range(1, 1000000))->capture_default_str();
    run_->add_option("--seed", given_.seed, "of data and first parameters")->capture_default_str();
    run_->add_option("--pace", pace_, "none: devices and links at full speed")
        ->check(CLI::IsMember({"measured", "none"}))
        ->capture_default_str();
    run_->add_flag("--check", given_.check, "train on one device too, and print the difference");
    run_->add_flag("--json", given_.json, "print one JSON document");
  }

  /// For options that one executor has alone.
  [[nodiscard]] CLI::App& app() { return app_; }
  [[nodiscard]] CLI::App& run() { return *run_; }

  /// An exit status where nothing is left to do: after help (0), or bad input (2), which it prints unless it is to be quiet.
  [[nodiscard]] std::optional<int> parse(int argc, char** argv, bool quiet = false) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::Success& help) {
      return quiet ? 0 : app_.exit(help);
    } catch (const CLI::ParseError& e) {
      if (!quiet) std::fprintf(stderr, "%s: %s (see %s --help)\n", app_.get_name().c_str(), e.what(), app_.get_name().c_str());
      return 2;
    }
    std::sort(given_.batches.begin(), given_.batches.end());
    given_.batches.erase(std::unique(given_.batches.begin(), given_.batches.end()), given_.batches.end());
    given_.paced = pace_ == "measured";
    return std::nullopt;
  }
  [[nodiscard]] bool profiles() const { return profile_->parsed(); }
  [[nodiscard]] const options& given() const { return given_; }

 private:
  CLI::App app_;
  CLI::App *profile_ = nullptr, *run_ = nullptr;
  options given_;
  std::string pace_ = "measured";
};

/// Writes what `profile` has measured.
inline void write_profile(const options& o, const neural_network& net, const std::vector<layer_times>& times,
                          const hetplan::cluster& measured) {
  hetplan::io::write_atomically(o.out_model, hetplan::io::write_model(describe_measured(net, times, o.batches, measured)));
  hetplan::io::write_atomically(o.out_cluster, hetplan::io::write_cluster(measured));
  for (const hetplan::resource& x : measured.network().resources()) {
    std::printf("%-24s %s/s\n", x.name.c_str(), readable(hetplan::bytes(x.capacity.value())).c_str());
  }
}

}  // namespace executors
