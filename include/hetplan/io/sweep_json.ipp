// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/sweep_json.hpp>

#include <algorithm>
#include <utility>

#include <hetplan/io/file.hpp>
#include <hetplan/io/json_node.hpp>

namespace hetplan::io {

HETPLAN_INLINE serving_sweep read_serving_sweep(const json_document& d, std::span<const std::string> systems) {
  const json_object o = open_document(d, serving_sweep_format, keys::serving_sweep);
  serving_sweep s;
  s.clouds = detail::read_names(o.at("clouds", "an array of clouds"), "a cloud file");
  s.services = detail::read_names(o.at("services", "an array of lists of services"), "a services file");
  s.requests = detail::read_names(o.at("requests", "an array of lists of requests"), "a requests file");
  if (const auto faults = o.find("faults")) s.faults = faults->name("a faults file");
  if (const auto list = o.find("cycles")) {
    for (const json_node n : list->elements("an array with at least one time", 1)) {
      const auto cycle = n.amount<seconds>(range::at_least_zero);
      if (std::ranges::find(s.cycles, cycle) != s.cycles.end()) n.fail("every cycle once");
      s.cycles.push_back(cycle);
    }
  }
  if (const auto list = o.find("systems")) {
    s.systems = detail::read_names(*list, "the name of a serving system");
    for (const json_node n : list->elements("")) {
      if (std::ranges::find(systems, n.text()) == systems.end()) n.fail("the name of a serving system", suggestion(n.text(), systems));
    }
  }
  if (const auto name = o.find("trace_service")) s.trace_service = name->name("the name of a service");
  if (const auto scale = o.find("time_scale")) s.time_scale = scale->number(range::above_zero);
  return s;
}

namespace detail {

/// Texts, each once.
HETPLAN_INLINE std::vector<std::string> read_names(const json_node& list, std::string_view expected) {
  std::vector<std::string> all;
  for (const json_node n : list.elements("an array with " + std::string(expected), 1)) {
    std::string name(n.name(expected));
    if (std::find(all.begin(), all.end(), name) != all.end()) n.fail_with("expected every name once, got " + in_quotes(name) + " again");
    all.push_back(std::move(name));
  }
  return all;
}

HETPLAN_INLINE sweep_job read_sweep_job(const json_node& n) {
  constexpr std::string_view expected = "the name of a job file, or a job with a name";
  if (n.is_text()) return {std::string(n.name(expected))};
  // A name where a job file has its format.
  const key_list keys = keys_of<job>();
  std::vector<std::string_view> named(keys.begin(), keys.end());
  named.front() = "name";
  const json_object o(n, named, expected);
  return {std::string(o.at("name", "a name").name()), job_of(o)};
}

}  // namespace detail

HETPLAN_INLINE sweep read_sweep(const json_document& d, std::span<const std::string> planners) {
  const json_object o = open_document(d, sweep_format, keys::sweep);
  sweep s;
  s.models = detail::read_names(o.at("models", "an array of models"), "a model file or a built-in name");
  s.clusters = detail::read_names(o.at("clusters", "an array of clusters"), "a cluster file or a built-in name");
  for (const json_node n : o.at("jobs", "an array of jobs").elements("an array with at least one job", 1)) {
    sweep_job j = detail::read_sweep_job(n);
    const auto same = [&](const sweep_job& other) { return other.name == j.name; };
    if (std::any_of(s.jobs.begin(), s.jobs.end(), same)) n.fail_with("expected every name once, got " + in_quotes(j.name) + " again");
    s.jobs.push_back(std::move(j));
  }
  if (const auto list = o.find("latencies")) {
    for (const json_node n : list->elements("an array with at least one latency", 1)) {
      const auto latency = n.amount<seconds>(range::above_zero);
      if (std::find(s.latencies.begin(), s.latencies.end(), latency) != s.latencies.end()) n.fail("every latency once");
      s.latencies.push_back(latency);
    }
  }
  if (const auto list = o.find("planners")) {
    s.planners = detail::read_names(*list, "the name of a planner");
    for (const json_node n : list->elements("")) {
      if (std::find(planners.begin(), planners.end(), n.text()) == planners.end())
        n.fail("the name of a planner", suggestion(n.text(), planners));
    }
  }
  if (const auto tokens = o.find("tokens")) s.tokens = tokens->integer(1);
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> dtypes{{{"fp32", "fp32"}, {"bf16", "bf16"}}};
  if (o.has("dtype")) s.dtype = o.one_of("dtype", dtypes);
  return s;
}

}  // namespace hetplan::io
