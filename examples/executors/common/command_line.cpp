// SPDX-License-Identifier: BSL-1.0
#include "command_line.hpp"

#include <algorithm>
#include <cstdio>

#include <malloc.h>

#include <CLI/CLI.hpp>

#include <range/v3/action/sort.hpp>
#include <range/v3/action/unique.hpp>

#include <hetplan/io/cluster_json.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/io/model_json.hpp>
#include <hetplan/plan/describe.hpp>

namespace executors {

void keep_memory() {
  ::mallopt(M_MMAP_THRESHOLD, 1 << 25);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  ::mallopt(M_ARENA_MAX, 1);  // those of threads give back whole heaps, whatever the threshold
}

struct command_line::parser {
  CLI::App app;
  CLI::App *profile = nullptr, *run = nullptr;
};

command_line::command_line(const std::string& name, const std::string& what) : parser_(new parser{CLI::App(what, name)}) {
  CLI::App& app = parser_->app;
  app.require_subcommand(1);
  app.fallthrough();
  add_choice("--slow", given_.slow,
             "how core/N gets N times slower: repeat the work of each task N times, or wait until N times its processor time has passed "
             "(repeat where there is a core for every device)",
             {"repeat", "wait"});
  app.add_option("--timeout", given_.timeout_s, "seconds that any wait may take")->check(CLI::PositiveNumber)->capture_default_str();

  CLI::App* profile = parser_->profile = app.add_subcommand("profile", "measure a built-in network and the links of a cluster");
  profile->add_option("network", given_.network, "mlp, transformer or towers")->required()->type_name("NETWORK");
  profile->add_option("cluster", given_.cluster, "the nominal cluster: its topology shapes the links, its kinds slow the devices")
      ->required()
      ->type_name("CLUSTER");
  profile->add_option("--out-model", given_.out_model, "write the model with its profile")->required()->type_name("FILE");
  profile->add_option("--out-cluster", given_.out_cluster, "write the cluster as measured")->required()->type_name("FILE");
  profile->add_option("--batches", given_.batches, "batch sizes to measure, by comma")
      ->delimiter(',')
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  profile->add_flag("--quick", given_.quick, "fewer runs");
  profile->add_flag("--busy", given_.busy, "with the other devices' cores busy: they train the same network at the same time");

  CLI::App* run = parser_->run = app.add_subcommand("run", "train a plan, and compare with what was predicted");
  run->add_option("model", given_.model, "model file, as profile writes it")->required()->type_name("MODEL");
  run->add_option("cluster", given_.cluster, "cluster file, as profile writes it")->required()->type_name("CLUSTER");
  run->add_option("plan", given_.plan, "plan file")->required()->type_name("PLAN");
  run->add_option("--nominal", given_.nominal, "the cluster that shapes the links (CLUSTER)")->type_name("CLUSTER");
  run->add_option("--iterations", given_.iterations, "after the warm-up")->check(CLI::Range(1, 1000000))->capture_default_str();
  run->add_option("--seed", given_.seed, "of data and first parameters")->capture_default_str();
  run->add_option("--pace", pace_, "none: devices and links at full speed")
      ->check(CLI::IsMember({"measured", "none"}))
      ->capture_default_str();
  run->add_flag("--check", given_.check, "train on one device too, and print the difference");
  run->add_flag("--json", given_.json, "print one JSON document");
}
command_line::~command_line() = default;

void command_line::add_run_option(const std::string& name, std::vector<std::string>& values, const std::string& what,
                                  const std::string& type) {
  parser_->run->add_option(name, values, what)->type_name(type);
}
void command_line::add_run_flag(const std::string& name, bool& is_given, const std::string& what) {
  parser_->run->add_flag(name, is_given, what);
}
void command_line::add_choice(const std::string& name, std::string& chosen, const std::string& what,
                              const std::vector<std::string>& choices) {
  parser_->app.add_option(name, chosen, what)->check(CLI::IsMember(choices));
}

std::optional<int> command_line::parse(int argc, char** argv, bool quiet) {
  CLI::App& app = parser_->app;
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return quiet ? 0 : app.exit(help);
  } catch (const CLI::ParseError& e) {
    if (!quiet) std::fprintf(stderr, "%s: %s (see %s --help)\n", app.get_name().c_str(), e.what(), app.get_name().c_str());
    return 2;
  }
  given_.batches |= ranges::actions::sort | ranges::actions::unique;
  given_.paced = pace_ == "measured";
  return std::nullopt;
}

bool command_line::profiles() const { return parser_->profile->parsed(); }

kind_times profile_layers(const options& o, const profile_inputs& in, unsigned cores) {
  const slowing slow = choose_slowing(o.slow, in.nominal, o.cluster, cores);
  const auto others = static_cast<unsigned>(in.nominal.size()) - 1;
  const unsigned busy = o.busy ? std::min(others, cores - 1) : 0;
  std::printf("slower devices %s; %u other cores busy\n", std::string(to_string(slow)).c_str(), busy);
  return measure_layers(in.net, in.nominal, {o.batches, o.quick ? 1 : 3, slow, busy});
}

void write_profile(const options& o, const neural_network& net, const kind_times& times, const hetplan::cluster& measured) {
  hetplan::io::write_atomically(o.out_model, hetplan::io::write_model(describe_measured(net, times, o.batches)));
  hetplan::io::write_atomically(o.out_cluster, hetplan::io::write_cluster(measured));
  for (const hetplan::resource& x : measured.network().resources()) {
    std::printf("%-24s %s/s\n", x.name.c_str(), readable(hetplan::bytes(x.capacity.value())).c_str());
  }
}

}  // namespace executors
