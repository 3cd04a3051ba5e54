// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/sweep_json.hpp>

#include <algorithm>
#include <utility>

namespace hetplan::io {

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
  const json_object o(n, keys::sweep_job, expected);
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
