// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/timeline.hpp>

#include <cmath>
#include <utility>

#include <hetplan/core/error.hpp>

namespace hetplan::adapt {

namespace detail {

/// Goes through the events in order and knows who is there.
class timeline_validator {
 public:
  explicit timeline_validator(const cluster& c) : cluster_(c), here_(c.size(), 1), left_(c.size()) {}

  /// What is wrong with the next event; "" if nothing is.
  [[nodiscard]] std::string fault(const event& e) {
    if (!is_amount(e.at.value())) return "expected a finite time >= 0";
    if (e.at.value() < before_s_) return "expected a time >= " + to_text(before_s_) + " s, that of the event before it";
    before_s_ = e.at.value();
    return std::visit([this](const auto& what) { return fault_of(what); }, e.what);
  }

 private:
  [[nodiscard]] static bool is_amount(double v) { return std::isfinite(v) && v >= 0; }
  [[nodiscard]] bool known(device_id d) const { return d.valid() && d.index() < cluster_.size(); }
  [[nodiscard]] std::string no_device() const { return "names no device of cluster \"" + cluster_.name() + "\""; }
  [[nodiscard]] std::string named(device_id d) const { return "device \"" + cluster_[d].name + "\""; }

  [[nodiscard]] std::string fault_of(const capacity_becomes& x) const {
    if (!x.resource.valid() || x.resource.index() >= cluster_.network().resources().size())
      return "names no resource of cluster \"" + cluster_.name() + "\"";
    return is_amount(x.capacity.value()) ? "" : "capacity = " + to_text(x.capacity.value()) + "; expected a finite rate >= 0";
  }
  [[nodiscard]] std::string fault_of(const speed_becomes& x) const {
    if (!known(x.device)) return no_device();
    return is_amount(x.speed) ? "" : "speed = " + to_text(x.speed) + "; expected a finite factor >= 0";
  }
  [[nodiscard]] std::string fault_of(const device_leaves& x) {
    if (!known(x.device)) return no_device();
    if (here_[x.device.index()] == 0) return named(x.device) + " leaves, but is not there";
    if (left_ == 1) return named(x.device) + " leaves, and no device is left; expected at least one";
    here_[x.device.index()] = 0;
    --left_;
    return {};
  }
  [[nodiscard]] std::string fault_of(const device_joins& x) {
    if (!known(x.device)) return no_device();
    if (here_[x.device.index()] != 0) return named(x.device) + " joins, but is there already";
    here_[x.device.index()] = 1;
    ++left_;
    return {};
  }
  [[nodiscard]] std::string fault_of(const transfer_begins& x) const {
    if (!known(x.from) || !known(x.to)) return no_device();
    if (cluster_.network().find(x.from, x.to) == nullptr) {
      return "transfer from \"" + cluster_[x.from].name + "\" to \"" + cluster_[x.to].name +
             "\", but the cluster has no route for that pair";
    }
    return is_amount(x.volume.value()) ? "" : "transfer of " + to_text(x.volume.value()) + " B; expected finite bytes >= 0";
  }
  [[nodiscard]] std::string fault_of(const qoe_becomes& x) const {
    if (!x.latency && !x.deadline) return "qoe without latency or deadline";
    const auto positive = [](const std::optional<seconds>& w) { return !w || (std::isfinite(w->value()) && w->value() > 0); };
    if (!positive(x.latency)) return "qoe.latency = " + to_text(x.latency->value()) + "; expected seconds > 0";
    return positive(x.deadline) ? "" : "qoe.deadline = " + to_text(x.deadline->value()) + "; expected seconds > 0";
  }

  const cluster& cluster_;
  std::vector<char> here_;
  std::size_t left_;
  double before_s_ = 0;
};

}  // namespace detail

HETPLAN_INLINE std::optional<timeline_violation> find_violation(const timeline& t, const cluster& c) {
  if (!(t.duration.value() > 0 && t.duration <= longest_timeline)) {
    return timeline_violation{{},
                              "duration = " + to_text(t.duration.value()) + " s; expected seconds > 0, at most " +
                                  to_text(longest_timeline.value()) + " (30 years)"};
  }
  detail::timeline_validator validator(c);
  for (std::size_t i = 0; i < t.events.size(); ++i) {
    if (std::string fault = validator.fault(t.events[i]); !fault.empty()) return timeline_violation{i, std::move(fault)};
  }
  return {};
}

HETPLAN_INLINE void check_timeline(const timeline& t, const cluster& c) {
  const auto v = find_violation(t, c);
  if (!v) return;
  if (!v->event) throw invalid_input("timeline: " + v->what);
  throw invalid_input("timeline: event " + std::to_string(*v->event) + " at " + to_text(t.events[*v->event].at.value()) + " s: " + v->what);
}

}  // namespace hetplan::adapt
