// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The commands of the threads executor, apart from their command line: what tests call too.

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "../common/alone.hpp"
#include "../common/inputs.hpp"
#include "../common/profile.hpp"
#include "../common/report.hpp"
#include "recover.hpp"

namespace executors {

struct run_options {
  int iterations = 5;
  std::uint64_t seed = 1;
  bool paced = true;
  bool check = false;
  double timeout_s = 30;
  std::vector<std::string> kills, cuts;  ///< DEVICE@ITERATION[+SECONDS], RESOURCE@ITERATION:SECONDS
  bool backups = false;                  ///< copies after every iteration; with a kill they are made anyway
};

namespace detail {

/// "NAME@REST"; a name may have an @ itself.
inline std::pair<std::string, std::string> split_fault(const std::string& text, const char* form) {
  const std::size_t at = text.rfind('@');
  if (at == std::string::npos || at == 0 || at + 1 == text.size()) {
    throw hetplan::invalid_input(std::string(form) + ": got \"" + text + "\"");
  }
  return {text.substr(0, at), text.substr(at + 1)};
}
template <class Number>
Number number_in(const std::string& text, const std::string& whole, const char* form) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0)) {
    throw hetplan::invalid_input(std::string(form) + ": got \"" + whole + "\"");
  }
  return value;
}

}  // namespace detail

/// The faults that a command line asks for. A kill without seconds comes in the middle of the iteration.
///
/// Throws  invalid_input: a form that is not one, a device that has no part in the plan, an unknown resource.
[[nodiscard]] inline faults read_faults(const run_options& o, const run_inputs& in, double predicted_s) {
  faults all;
  for (const std::string& text : o.kills) {
    constexpr const char* form = "--kill: expected DEVICE@ITERATION or DEVICE@ITERATION+SECONDS";
    const auto [name, when] = detail::split_fault(text, form);
    kill k{in.cluster.find(name), 1, predicted_s / 2};
    const std::size_t plus = when.find('+');
    k.iteration = detail::number_in<int>(when.substr(0, plus), text, form);
    if (plus != std::string::npos) k.after_s = detail::number_in<double>(when.substr(plus + 1), text, form);
    const auto works = [&](const hetplan::stage& s) {
      return std::any_of(s.devices.begin(), s.devices.end(), [&](const hetplan::assignment& a) { return a.device == k.device; });
    };
    if (std::none_of(in.plan.stages.begin(), in.plan.stages.end(), works)) {
      throw hetplan::invalid_input("--kill: got \"" + name + "\"; expected a device that the plan uses");
    }
    all.kills.push_back(k);
  }
  for (const std::string& text : o.cuts) {
    constexpr const char* form = "--cut: expected RESOURCE@ITERATION:SECONDS";
    const auto [name, when] = detail::split_fault(text, form);
    const auto resources = in.cluster.network().resources();
    const auto it = std::find_if(resources.begin(), resources.end(), [&](const hetplan::resource& r) { return r.name == name; });
    const std::size_t colon = when.find(':');
    if (colon == std::string::npos) throw hetplan::invalid_input(std::string(form) + ": got \"" + text + "\"");
    if (it == resources.end()) {
      throw hetplan::invalid_input("--cut: got \"" + name + "\"; expected a resource of cluster \"" + in.cluster.name() + "\"");
    }
    all.cuts.push_back({hetplan::resource_id(it - resources.begin()), detail::number_in<int>(when.substr(0, colon), text, form),
                        detail::number_in<double>(when.substr(colon + 1), text, form)});
  }
  return all;
}

/// Trains a plan for 1 + o.iterations iterations with a thread per device.
///
/// Throws  invalid_input before anything runs; timed_out, cannot_go_on.
[[nodiscard]] inline run_report run_plan(const run_inputs& in, const run_options& o) {
  const prepared_run ready = prepare(in);
  run_report report{.executor = "threads", .network = in.net.name, .plan = in.plan.planner, .predicted_s = ready.predicted_s,
                    .iterations = {}, .paced = o.paced};
  const training_settings settings{.seed = o.seed, .paced = o.paced ? paced_devices(in.cluster) : std::vector<char>(in.cluster.size(), 0)};
  const thread_options threads{.shaped = o.paced, .timeout_s = o.timeout_s};
  const faults planned = read_faults(o, in, ready.predicted_s);
  const int iterations = 1 + o.iterations;
  std::vector<tensors> trained;
  if (planned.kills.empty() && planned.cuts.empty() && !o.backups) {
    thread_training t = train_with_threads(in.net, ready.work, in.cluster, settings, iterations, threads);
    report.iterations = std::move(t.iterations);
    report.overruns = t.overruns;
    trained = std::move(t.parameters);
  } else {
    resilient_options resilient;
    resilient.threads = threads;
    resilient_training t(in, settings, resilient, planned);
    t.run(iterations);
    report.iterations = t.iterations();
    report.overruns = t.overruns();
    report.recoveries = t.recoveries();
    trained = t.parameters();
  }
  if (o.check) {
    const training_alone expected = train_alone(in.net, ready.work.batch, settings, iterations);
    report.difference = 0;
    for (const tensors& held : trained) report.difference = std::max(*report.difference, difference(report.iterations, held, expected));
  }
  return report;
}

/// Measures a cluster's links with the senders that training uses.
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
