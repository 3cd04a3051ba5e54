// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What an executor reads before it runs: files that must agree with each other, with a built-in network and with this machine.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "worker.hpp"

namespace executors {

/// How many times slower than a core of this machine a device of a kind is: "core" 1, "core/4" 4; nothing for other kinds.
[[nodiscard]] std::optional<double> slowness_of(std::string_view kind);

/// Throws invalid_input for a device whose kind says nothing about its speed.
void require_known_kinds(const hetplan::cluster& c, const std::string& file);

/// How a device of kind core/N gets N times slower: it does the work of each task N times, which takes a core for every device, or it
/// waits after the work until N times its processor time has passed.
enum class slowing { repeat, wait };
[[nodiscard]] std::string_view to_string(slowing s);

/// What was asked for ("repeat", "wait"); if nothing was, to repeat where there is a core for every device and every N is whole.
///
/// Throws  invalid_input: to repeat N times, N not whole.
[[nodiscard]] slowing choose_slowing(const std::string& asked, const hetplan::cluster& c, const std::string& file, unsigned cores);

/// By device.
[[nodiscard]] std::vector<pace> paces_of(const hetplan::cluster& c, slowing how);

/// The cores that this process may use.
[[nodiscard]] unsigned own_cores();

/// Throws invalid_input where the devices that work keep more cores busy than there are.
void require_cores(const hetplan::cluster& c, const hetplan::plan& p, const std::string& file, slowing how, unsigned cores);

/// Throws invalid_input that names the first layer of a model that is not the network's.
void require_layers(const hetplan::planning_graph& model, const neural_network& net, const std::string& file);

/// All that `profile` needs.
struct profile_inputs {
  neural_network net;
  hetplan::cluster nominal;
};

/// Throws  invalid_input: an unknown network, a file that is not a cluster, kinds that say nothing of speed.
[[nodiscard]] profile_inputs read_profile(const std::string& network, const std::string& cluster_file);

/// All that `run` needs.
struct run_inputs {
  neural_network net;
  hetplan::planning_graph model;
  hetplan::cluster cluster;  ///< as measured: predictions
  hetplan::cluster nominal;  ///< as it should be: shapes the links
  hetplan::plan plan;
};

/// Reads the files of `run` and checks that they belong together.
///
/// @param nominal_file  empty: the cluster itself.
/// Throws  invalid_input: a line that names the file, the place, what was found and what was expected.
[[nodiscard]] run_inputs read_run(const std::string& model_file, const std::string& cluster_file, const std::string& plan_file,
                                  const std::string& nominal_file = {});

/// The plan's program, and what the simulator says of it.
struct prepared_run {
  program work;
  double predicted_s = 0;
};
[[nodiscard]] prepared_run prepare(const run_inputs& in);

}  // namespace executors
