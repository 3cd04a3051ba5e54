// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/edge_cloud.hpp>

#include <cmath>
#include <string_view>
#include <unordered_set>

#include <hetplan/core/error.hpp>

namespace hetplan::serve {

namespace detail {

/// Who has no amount that may be used: the sentence names the place and the value.
class cloud_check {
 public:
  explicit cloud_check(const edge_cloud& cloud) : where_("edge cloud \"" + escaped(cloud.name) + "\"") {}

  [[noreturn]] void refuse(const std::string& what) const { throw invalid_input(where_ + ": " + what); }
  void positive(const std::string& who, const char* what, double v) const {
    if (!std::isfinite(v) || v <= 0) refuse(who + ": " + what + " = " + to_text(v) + "; expected a finite number > 0");
  }
  void not_negative(const std::string& who, const char* what, double v) const {
    if (!std::isfinite(v) || v < 0) refuse(who + ": " + what + " = " + to_text(v) + "; expected a finite number >= 0");
  }
  void unit(const std::string& who, const gpu& g) const {
    if (g.kind.empty()) refuse(who + ": a GPU without a kind");
    positive(who, "memory of a GPU [B]", g.memory.value());
  }

 private:
  std::string where_;
};

HETPLAN_INLINE void validate_server(const cloud_check& check, const edge_server& s) {
  const std::string who = "server \"" + escaped(s.name) + "\"";
  for (const auto& g : s.gpus) check.unit(who, g);
  check.positive(who, "uplink [B/s]", s.uplink.value());
  check.positive(who, "downlink [B/s]", s.downlink.value());
  check.not_negative(who, "latency [s]", s.latency.value());
  if (s.load_bandwidth) check.positive(who, "load_bandwidth [B/s]", s.load_bandwidth->value());
  std::unordered_set<std::string_view> names;
  for (const auto& d : s.devices) {
    const std::string device = who + ", device \"" + escaped(d.name) + "\"";
    if (d.name.empty() || !names.insert(d.name).second) check.refuse(device + ": the name is empty or taken");
    check.unit(device, d.unit);
    check.positive(device, "bandwidth [B/s]", d.bandwidth.value());
    check.not_negative(device, "latency [s]", d.latency.value());
  }
}

}  // namespace detail

HETPLAN_INLINE void validate(const edge_cloud& cloud) {
  const detail::cloud_check check(cloud);
  if (cloud.servers.empty()) check.refuse("expected at least one server");
  check.positive("ring", "period [s]", cloud.ring.period.value());
  if (cloud.ring.group < 1) check.refuse("ring: group = " + std::to_string(cloud.ring.group) + "; expected >= 1");
  if (cloud.ring.max_age < 0) check.refuse("ring: max_age = " + std::to_string(cloud.ring.max_age) + "; expected >= 0");
  std::unordered_set<std::string_view> names;
  for (const auto& s : cloud.servers) {
    if (s.name.empty() || !names.insert(s.name).second) check.refuse("server \"" + escaped(s.name) + "\": the name is empty or taken");
    detail::validate_server(check, s);
  }
}

}  // namespace hetplan::serve
