// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/problem/planning_problem.hpp>

#include <algorithm>

#include <hetplan/core/sorting.hpp>

namespace hetplan {

HETPLAN_INLINE objective_kind job::effective_objective() const {
  return objective.value_or(qoe.has_times() ? objective_kind::qoe : objective_kind::latency);
}

HETPLAN_INLINE std::vector<int> job::candidate_microbatch_sizes() const {
  std::vector<int> sizes = microbatch_sizes;
  if (sizes.empty()) {
    constexpr int all_up_to = 16;
    for (int b = 1; b <= all_up_to; ++b) sizes.push_back(b);
    for (int b = 2 * all_up_to; b <= batch / 2; b *= 2) sizes.push_back(b);
    for (int b = batch; b > all_up_to; b /= 2) {
      sizes.push_back(b);
      if (b % 2 != 0) break;
    }
  }
  std::erase_if(sizes, [&](int b) { return b < 1 || batch % b != 0; });
  sort_distinct(sizes);
  if (sizes.empty()) throw invalid_input("job: no microbatch size divides the batch " + std::to_string(batch));
  const auto least_tasks = [&](int b) { return tasks_per_microbatch(workload) * (batch / b); };
  const int largest = sizes.back();
  std::erase_if(sizes, [&](int b) { return least_tasks(b) > max_expansion; });
  if (sizes.empty()) {
    throw invalid_input("job: batch = " + std::to_string(batch) + " in microbatches of at most " + std::to_string(largest) + " makes " +
                        to_text(least_tasks(largest)) + " tasks or more; expected at most " + to_text(max_expansion) +
                        ": a smaller batch, or larger microbatch_sizes");
  }
  return sizes;
}

HETPLAN_INLINE std::vector<device_id> pinned_devices(const job& j, const planning_graph& model, const cluster& c, const std::string& who) {
  std::vector<device_id> pinned;
  for (const pin& p : j.pins) {
    const auto fail = [&](const std::string& expected, const std::string& got) {
      throw invalid_input(who + ": /pins/" + escaped(p.layer) + ": expected " + expected + ", got \"" + escaped(got) + "\"");
    };
    if (!model.contains(p.layer)) fail("a layer of model \"" + model.name() + "\" as key", p.layer);
    const auto devices = c.devices();
    const auto named = std::find_if(devices.begin(), devices.end(), [&](const device& d) { return d.name == p.device; });
    if (named == devices.end()) fail("a device of cluster \"" + c.name() + "\"", p.device);
    pinned.resize(model.size());
    device_id& at = pinned[model.find(p.layer).index()];
    if (at.valid()) fail("one device, \"" + c[at].name + "\"", p.device);
    at = named->id;
  }
  return pinned;
}

HETPLAN_INLINE void check_job(const job& j) {
  const auto require = [](bool ok, const char* field, double given, const char* expected) {
    if (!ok) throw invalid_input(std::string("job: ") + field + " = " + to_text(given) + "; expected " + expected);
  };
  require(j.batch >= 1, "batch", j.batch, "an integer >= 1");
  for (const int b : j.microbatch_sizes) require(b >= 1, "microbatch_sizes", b, "integers >= 1");
  require(std::isfinite(j.workload.optimizer_factor) && j.workload.optimizer_factor >= 0, "optimizer_factor", j.workload.optimizer_factor,
          "a finite number >= 0");
  require(j.workload.context >= 0, "context", j.workload.context, "an integer >= 0");
  require(j.workload.tokens >= 1, "tokens", j.workload.tokens, "an integer >= 1");
  if (j.workload.prompt) require(*j.workload.prompt >= 0, "prompt", *j.workload.prompt, "an integer >= 0");
  require(j.workload.prompt_chunk >= 0, "prompt_chunk", j.workload.prompt_chunk, "an integer >= 1, or 0 for whole prompts");
  require(j.workload.chunks_in_flight >= 0, "chunks_in_flight", j.workload.chunks_in_flight, "an integer >= 1, or 0 for any number");
  const double length = static_cast<double>(j.workload.context) + j.workload.prompt.value_or(0) + j.workload.tokens;
  require(length <= most_tokens, "tokens", length, "at most 1e9 with context and prompt");
  require(j.qoe.lambda_J_per_s >= 0 && std::isfinite(j.qoe.lambda_J_per_s), "qoe.lambda", j.qoe.lambda_J_per_s, "a finite number >= 0");
  for (std::size_t i = 0; i < j.pins.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (j.pins[k].layer == j.pins[i].layer) throw invalid_input("job: pins: layer \"" + j.pins[i].layer + "\" is pinned twice");
    }
  }
  const auto require_time = [&](const std::optional<seconds>& t, const char* field) {
    if (t) require(is_finite(*t) && t->value() > 0, field, t->value(), "seconds > 0");
  };
  require_time(j.qoe.latency, "qoe.latency");
  require_time(j.qoe.makespan, "qoe.makespan");
  require_time(j.qoe.ttft, "qoe.ttft");
  require_time(j.qoe.time_between_tokens, "qoe.time_between_tokens");
  require_time(j.qoe.deadline, "qoe.deadline");
  if (j.qoe.iterations) require(*j.qoe.iterations >= 1, "qoe.iterations", static_cast<double>(*j.qoe.iterations), "an integer >= 1");
  if (j.workload.mode != mode::training && !j.orders.empty()) {
    throw invalid_input("job: schedule: expected \"1f1b\" or \"gpipe\" outside training, got \"" +
                        std::string(to_string(j.orders.front())) + "\" and mode " + std::string(to_string(j.workload.mode)));
  }
  if (j.workload.mode != mode::training && j.memory_savers != memory_savers{}) {
    throw invalid_input("job: memory_savers: expected none outside training, got mode " + std::string(to_string(j.workload.mode)));
  }
  if (j.objective == objective_kind::qoe && !j.qoe.has_times())
    throw invalid_input("job: objective qoe needs one of qoe.latency, qoe.makespan, qoe.ttft, qoe.time_between_tokens");
  const bool generation = j.workload.mode == mode::generation;
  const auto require_tokens = [&](const std::string& what, bool first) {
    const std::string given = !generation ? "mode " + std::string(to_string(j.workload.mode)) : "tokens = 1";
    if (!generation || (!first && j.workload.tokens == 1))
      throw invalid_input("job: " + what + ": expected mode generation" + (first ? "" : " and tokens > 1") + ", got " + given);
  };
  if (j.objective == objective_kind::ttft) require_tokens("objective ttft", true);
  if (j.objective == objective_kind::time_between_tokens) require_tokens("objective time_between_tokens", false);
  if (j.qoe.ttft) require_tokens("qoe.ttft", true);
  if (j.qoe.time_between_tokens) require_tokens("qoe.time_between_tokens", false);
  static_cast<void>(j.candidate_microbatch_sizes());
}

}  // namespace hetplan
