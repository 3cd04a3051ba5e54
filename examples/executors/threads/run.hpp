// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Commands of the threads executor: a run with faults, a profile.

#include <algorithm>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "../common/alone.hpp"
#include "../common/command_line.hpp"
#include "../common/inputs.hpp"
#include "../common/report.hpp"
#include "recover.hpp"

namespace executors {

/// Faults to inject, as given on the command line.
struct fault_options {
  std::vector<std::string> kills = {}, cuts = {};  ///< DEVICE@ITERATION[+SECONDS], RESOURCE@ITERATION:SECONDS
  bool backups = false;                            ///< copies after every iteration; implied by a kill
};

namespace detail {

inline std::smatch parts_of(const std::string& text, const std::string& pattern, const char* form) {
  std::smatch parts;
  if (std::regex_match(text, parts, std::regex(pattern))) return parts;
  throw hetplan::invalid_input(std::string(form) + ": got \"" + text + "\"");
}

}  // namespace detail

/// Returns the faults of a command line. A kill without seconds happens in the middle of the iteration.
///
/// Throws  invalid_input: a malformed fault, a device that is not in the plan, an unknown resource.
[[nodiscard]] inline faults read_faults(const fault_options& o, const run_inputs& in, double predicted_s) {
  const std::string number = "([0-9]{1,6}(?:\\.[0-9]{1,6})?)";
  faults all;
  for (const std::string& text : o.kills) {
    const auto parts =
        detail::parts_of(text, "(.+)@([0-9]{1,6})(?:\\+" + number + ")?", "--kill: expected DEVICE@ITERATION or DEVICE@ITERATION+SECONDS");
    const kill k{in.cluster.find(parts.str(1)), std::stoi(parts.str(2)), parts[3].matched ? std::stod(parts.str(3)) : predicted_s / 2};
    const auto works = [&](const hetplan::stage& s) {
      return std::any_of(s.devices.begin(), s.devices.end(), [&](const hetplan::assignment& a) { return a.device == k.device; });
    };
    if (std::none_of(in.plan.stages.begin(), in.plan.stages.end(), works)) {
      throw hetplan::invalid_input("--kill: got \"" + parts.str(1) + "\"; expected a device that the plan uses");
    }
    all.kills.push_back(k);
  }
  for (const std::string& text : o.cuts) {
    const auto parts = detail::parts_of(text, "(.+)@([0-9]{1,6}):" + number, "--cut: expected RESOURCE@ITERATION:SECONDS");
    const auto resources = in.cluster.network().resources();
    const auto it = std::find_if(resources.begin(), resources.end(), [&](const hetplan::resource& r) { return r.name == parts.str(1); });
    if (it == resources.end()) {
      throw hetplan::invalid_input("--cut: got \"" + parts.str(1) + "\"; expected a resource of cluster \"" + in.cluster.name() + "\"");
    }
    all.cuts.push_back({hetplan::resource_id(it - resources.begin()), std::stoi(parts.str(2)), std::stod(parts.str(3))});
  }
  return all;
}

/// Trains a plan for 1 + o.iterations iterations with a thread per device.
///
/// Throws  invalid_input before the run; timed_out, cannot_go_on.
[[nodiscard]] inline run_report run_plan(const run_inputs& in, const options& o, const fault_options& wrong = {}) {
  const slowing slow = choose_slowing(o.slow, in.cluster, o.cluster, own_cores());
  if (o.paced) require_cores(in.cluster, in.plan, o.cluster, slow, own_cores());
  const prepared_run ready = prepare(in);
  const training_settings settings{.seed = o.seed, .paces = o.paced ? paces_of(in.cluster, slow) : std::vector<pace>{}};
  const thread_options threads{.shaped = o.paced, .timeout_s = o.timeout_s};
  const faults planned = read_faults(wrong, in, ready.predicted_s);
  const int iterations = 1 + o.iterations;
  run_report report{.executor = "threads",
                    .network = in.net.name,
                    .plan = o.plan,
                    .predicted_s = ready.predicted_s,
                    .iterations = {},
                    .paced = o.paced,
                    .slow = std::string(to_string(slow))};
  thread_training done;
  if (planned.kills.empty() && planned.cuts.empty() && !wrong.backups) {
    train_with_threads(in.net, ready.work, in.cluster, settings, iterations, done, threads);
  } else {
    resilient_training t(in, settings, {.threads = threads}, planned);
    t.run(iterations);
    report.recoveries = t.recoveries();
    done = t.training();
  }
  report.iterations = done.iterations;
  report.overruns = done.overruns;
  if (o.check) {
    const training_alone expected = train_alone(in.net, ready.work.batch, settings, iterations);
    report.difference = 0;
    for (const tensors& held : done.parameters)
      report.difference = std::max(*report.difference, difference(report.iterations, held, expected));
  }
  return report;
}

[[nodiscard]] inline hetplan::cluster measure_links(const hetplan::cluster& nominal, int runs) {
  const pair_flows pairs = flows_between_all(nominal);
  thread_links links(pairs.work, nominal, true, 30);
  return measure_cluster(nominal, runs, [&](hetplan::device_id from, hetplan::device_id to, double bytes) {
    const std::size_t f = pairs.flow_of.at({from, to});
    std::vector<double> data(static_cast<std::size_t>(bytes / sizeof(double)) + 1);
    const double begin_s = steady_s();
    thread_links::link(links, from).send({{f, 0, std::move(data), begin_s}});
    static_cast<void>(thread_links::link(links, to).receive(f, 0));
    return steady_s() - begin_s;
  });
}

}  // namespace executors
