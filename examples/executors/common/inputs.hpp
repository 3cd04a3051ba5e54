// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Inputs of an executor: files that must agree with each other, with a built-in network and with this machine.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "worker.hpp"

namespace executors {

/// Returns how many times slower than a core of this machine a device of this kind is: "core" 1, "core/4" 4; none for other kinds.
[[nodiscard]] std::optional<double> slowness_of(std::string_view kind);

/// Throws invalid_input for a device whose kind does not state its speed.
void require_known_kinds(const hetplan::cluster& c, const std::string& file);

/// How a device of kind core/N becomes N times slower. `repeat`: it does the work of each task N times, which takes a core per device.
/// `wait`: it waits after the work until N times its processor time has passed.
enum class slowing { repeat, wait };
[[nodiscard]] std::string_view to_string(slowing s);

/// Returns the requested kind ("repeat", "wait"). Without a request, repeats if there is a core per device and all N are whole.
///
/// Throws  invalid_input: `repeat` with a fractional N.
[[nodiscard]] slowing choose_slowing(const std::string& asked, const hetplan::cluster& c, const std::string& file, unsigned cores);

[[nodiscard]] std::vector<pace> paces_of(const hetplan::cluster& c, slowing how);

/// Returns the number of cores that this process may use.
[[nodiscard]] unsigned own_cores();

/// Throws invalid_input if the working devices need more cores than there are.
void require_cores(const hetplan::cluster& c, const hetplan::plan& p, const std::string& file, slowing how, unsigned cores);

/// Throws invalid_input that names the first layer of the model that differs from the network's.
void require_layers(const hetplan::planning_graph& model, const neural_network& net, const std::string& file);

struct profile_inputs {
  neural_network net;
  hetplan::cluster nominal;
};

/// Throws  invalid_input: an unknown network, a file that is not a cluster, kinds that do not state their speed.
[[nodiscard]] profile_inputs read_profile(const std::string& network, const std::string& cluster_file);

struct run_inputs {
  neural_network net;
  hetplan::planning_graph model;
  hetplan::cluster cluster;  ///< measured: used for predictions
  hetplan::cluster nominal;  ///< nominal: shapes the links
  hetplan::plan plan;
};

/// Reads the files of `run` and checks that they agree.
///
/// @param nominal_file  empty: the cluster itself.
/// Throws  invalid_input: one line with the file, the place, the value found and the expected one.
[[nodiscard]] run_inputs read_run(const std::string& model_file, const std::string& cluster_file, const std::string& plan_file,
                                  const std::string& nominal_file = {});

/// A plan's program, and its simulated time.
struct prepared_run {
  program work;
  double predicted_s = 0;
};
[[nodiscard]] prepared_run prepare(const run_inputs& in);

}  // namespace executors
