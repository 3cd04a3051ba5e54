// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/job_json.hpp>

#include <algorithm>
#include <optional>

#include <hetplan/io/json_document.hpp>
#include <hetplan/io/json_text.hpp>

namespace hetplan::io {

namespace detail {

inline constexpr std::array<std::pair<std::string_view, schedule_kind>, 2> job_schedules{
    {{"1f1b", schedule_kind::one_f_one_b}, {"gpipe", schedule_kind::gpipe}}};

HETPLAN_INLINE std::vector<int> microbatch_sizes_in(const json_node& list) {
  std::vector<int> sizes;
  for (const json_node n : list.elements("at least one microbatch size", 1)) sizes.push_back(n.integer(1));
  return sizes;
}

HETPLAN_INLINE memory_savers savers_in(const json_node& list, mode how) {
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

HETPLAN_INLINE void put_savers(json& o, const memory_savers& s) {
  if (s.recompute) o["memory_savers"].push_back("recompute");
  if (s.shard_state) o["memory_savers"].push_back("shard_state");
}

/// Reads one schedule or a list: at most one of 1f1b and gpipe, and order rules.
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

HETPLAN_INLINE void put_schedule(json& o, const job& j) {
  if (j.schedule != schedule_kind::one_f_one_b && !j.only_orders) o["schedule"] = to_string(j.schedule);
  if (j.orders.empty()) return;
  json names = json::array();
  if (!j.only_orders) names.push_back(to_string(j.schedule));
  for (const order_rule r : j.orders) names.push_back(to_string(r));
  o["schedule"] = names.size() == 1 ? names[0] : names;
}

HETPLAN_INLINE std::vector<pin> pins_in(const json_node& n) {
  std::vector<pin> pins;
  for (const auto& [layer, device] : n.members("an object from layer to device"))
    pins.push_back({std::string(layer), std::string(device.name("the name of a device"))});
  return pins;
}

HETPLAN_INLINE void put_pins(json& o, const job& j) {
  for (const pin& p : j.pins) o["pins"][p.layer] = p.device;
}

HETPLAN_INLINE job job_of(const json_object& o) {
  job j;
  read_fields(o, j);
  if (o.has("optimizer") && o.has("optimizer_factor")) o.find("optimizer")->fail_with("expected optimizer or optimizer_factor, got both");
  if (j.objective == objective_kind::qoe && !j.qoe.has_times()) {
    o.find("objective")
        ->fail_with("expected a time in qoe (latency, makespan, ttft, time_between_tokens) with objective \"qoe\", got none");
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

HETPLAN_INLINE std::string write_job(const job& j) { return json_text(detail::write_fields<json>(j)); }

}  // namespace hetplan::io
