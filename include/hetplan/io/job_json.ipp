// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/job_json.hpp>

#include <algorithm>
#include <optional>

#include <hetplan/io/file.hpp>
#include <hetplan/io/json_text.hpp>

namespace hetplan::io {

namespace detail {

inline constexpr std::array<std::pair<std::string_view, schedule_kind>, 2> job_schedules{
    {{"1f1b", schedule_kind::one_f_one_b}, {"gpipe", schedule_kind::gpipe}}};

/// The memory savers that a list names.
[[nodiscard]] HETPLAN_INLINE memory_savers savers_in(const json_node& list, mode how) {
  memory_savers s;
  for (const json_node n : list.elements("an array of \"recompute\", \"shard_state\"")) {
    const std::string_view name = n.text("\"recompute\" or \"shard_state\"");
    bool* known = name == "recompute" ? &s.recompute : name == "shard_state" ? &s.shard_state : nullptr;
    if (known == nullptr) n.fail("\"recompute\" or \"shard_state\"");
    if (*known) n.fail("each memory saver once");
    if (how != mode::training) n.fail("no memory saver outside training");
    *known = true;
  }
  return s;
}

/// One name or a list: 1f1b or gpipe, the order of plans, and rules that make others.
HETPLAN_INLINE void read_schedule(const json_node& n, job& j) {
  j.orders.clear();
  bool base = false;
  const auto add = [&](const json_node& name) {
    const std::string_view given = name.text("the name of a schedule");
    if (const std::string expected = name_schedule(j, given, base); !expected.empty())
      name.fail(expected, suggestion(given, schedule_names()));
  };
  if (n.is_text()) {
    add(n);
  } else {
    for (const json_node each : n.elements("a schedule or an array of them", 1)) add(each);
  }
  j.only_orders = !j.orders.empty() && !base;
}

HETPLAN_INLINE job job_of(const json_object& o) {
  const workload standard;
  job j;
  j.workload.mode = o.one_of("mode", detail::modes);
  j.batch = o.required_integer("batch", 1);
  if (const auto sizes = o.find("microbatch_sizes")) {
    for (const json_node n : sizes->elements("at least one microbatch size", 1)) j.microbatch_sizes.push_back(n.integer(1));
    at_node(
        *sizes, [&] { return j.candidate_microbatch_sizes(); }, "job: ");
  }
  j.workload.optimizer_factor = o.number("optimizer_factor", range::at_least_zero).value_or(standard.optimizer_factor);
  if (const auto savers = o.find("memory_savers")) j.memory_savers = savers_in(*savers, j.workload.mode);
  if (const auto split = o.find("split_tensors")) j.split_tensors = split->boolean();
  j.workload.context = o.integer_or("context", 0, standard.context);
  j.workload.tokens = o.integer_or("tokens", 2, standard.tokens);
  if (const auto schedule = o.find("schedule")) read_schedule(*schedule, j);
  if (o.has("objective")) j.objective = o.one_of("objective", detail::objectives);
  if (const auto qoe = o.find("qoe")) {
    const json_object q(*qoe, keys::qoe, "an object with latency, lambda, deadline, iterations");
    j.qoe.latency = q.amount<seconds>("latency", range::above_zero);
    if (const auto lambda = q.amount<watts>("lambda", range::at_least_zero)) j.qoe.lambda_J_per_s = lambda->value();
    j.qoe.deadline = q.amount<seconds>("deadline", range::above_zero);
    if (const auto n = q.find("iterations")) j.qoe.iterations = n->integer<long long>(1);
  }
  if (j.objective == objective_kind::qoe && !j.qoe.latency) {
    o.find("objective")->fail_with("expected qoe.latency with objective \"qoe\", got nothing");
  }
  at_node(
      o.node(), [&] { check_job(j); }, "job: ");
  return j;
}

}  // namespace detail

HETPLAN_INLINE std::vector<std::string_view> schedule_names() {
  std::vector<std::string_view> names{"1f1b", "gpipe"};
  for (const order_rule r : order_rules) names.push_back(to_string(r));
  return names;
}

HETPLAN_INLINE std::string name_schedule(job& j, std::string_view name, bool& base) {
  for (const auto& [known, kind] : detail::job_schedules) {
    if (name != known) continue;
    if (base) return j.schedule == kind ? "each schedule once" : "one of \"1f1b\" and \"gpipe\" at most";
    base = true;
    j.schedule = kind;
    return {};
  }
  const auto* const rule = std::ranges::find(order_rules, name, [](order_rule r) { return to_string(r); });
  if (rule == order_rules.end()) return "one of " + joined(schedule_names());
  if (j.workload.mode != mode::training) return "\"1f1b\" or \"gpipe\" outside training";
  if (std::ranges::find(j.orders, *rule) != j.orders.end()) return "each schedule once";
  j.orders.push_back(*rule);
  return {};
}

HETPLAN_INLINE std::string write_job(const job& j) {
  const workload standard;
  json o;
  o["format"] = job_format;
  o["mode"] = to_string(j.workload.mode);
  o["batch"] = j.batch;
  if (!j.microbatch_sizes.empty()) o["microbatch_sizes"] = j.microbatch_sizes;
  put_unless(o, "optimizer_factor", j.workload.optimizer_factor, standard.optimizer_factor);
  if (j.memory_savers.recompute) o["memory_savers"].push_back("recompute");
  if (j.memory_savers.shard_state) o["memory_savers"].push_back("shard_state");
  if (j.split_tensors) o["split_tensors"] = true;
  if (j.workload.context != standard.context) o["context"] = j.workload.context;
  if (j.workload.tokens != standard.tokens) o["tokens"] = j.workload.tokens;
  if (j.schedule != schedule_kind::one_f_one_b && !j.only_orders) o["schedule"] = to_string(j.schedule);
  if (!j.orders.empty()) {
    json names = json::array();
    if (!j.only_orders) names.push_back(to_string(j.schedule));
    for (const order_rule r : j.orders) names.push_back(to_string(r));
    o["schedule"] = names.size() == 1 ? names[0] : names;
  }
  if (j.objective) o["objective"] = to_string(*j.objective);
  json q;
  if (j.qoe.latency) put(q, "latency", *j.qoe.latency);
  put_unless(q, "lambda", j.qoe.lambda_J_per_s, qoe_target{}.lambda_J_per_s);
  if (j.qoe.deadline) put(q, "deadline", *j.qoe.deadline);
  if (j.qoe.iterations) q["iterations"] = *j.qoe.iterations;
  if (!q.empty()) o["qoe"] = std::move(q);
  return json_text(o);
}

}  // namespace hetplan::io
