// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/timeline.hpp>

#include <algorithm>
#include <utility>

#include <range/v3/range/conversion.hpp>
#include <range/v3/view/enumerate.hpp>
#include <range/v3/view/indices.hpp>
#include <range/v3/view/transform.hpp>
#include <range/v3/view/zip.hpp>

#include <hetplan/core/error.hpp>

namespace hetplan::adapt {

namespace detail {

/// Checks events in order and tracks the present devices.
class timeline_validator {
 public:
  explicit timeline_validator(const cluster& c) : cluster_(c), here_(c.size(), 1), left_(c.size()) {}

  /// Returns the fault of the next event, or "".
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

HETPLAN_INLINE std::vector<char> conditions::working() const {
  std::vector<char> all;
  for (std::size_t d = 0; d < present.size(); ++d) all.push_back(works(device_id(d)) ? 1 : 0);
  return all;
}

HETPLAN_INLINE conditions nominal(const cluster& c) {
  return {std::vector<char>(c.size(), 1), std::vector<double>(c.size(), 1),
          c.network().resources() | ranges::views::transform(&resource::capacity) | ranges::to<std::vector>()};
}

HETPLAN_INLINE void apply(conditions& now, const event& e) {
  if (const auto* r = std::get_if<capacity_becomes>(&e.what)) now.capacity[r->resource.index()] = r->capacity;
  if (const auto* s = std::get_if<speed_becomes>(&e.what)) now.speed[s->device.index()] = s->speed;
  if (const auto* l = std::get_if<device_leaves>(&e.what)) now.present[l->device.index()] = 0;
  if (const auto* j = std::get_if<device_joins>(&e.what)) now.present[j->device.index()] = 1;
}

HETPLAN_INLINE double change(const conditions& before, const conditions& now) {
  double most = 0;
  const auto compare = [&](double old_value, double new_value) {
    if (old_value != new_value) most = std::max(most, std::abs(new_value / old_value - 1));
  };
  if (before.present != now.present) most = 1;
  for (const auto& [a, b] : ranges::views::zip(before.speed, now.speed)) compare(a, b);
  for (const auto& [a, b] : ranges::views::zip(before.capacity, now.capacity)) compare(a.value(), b.value());
  return most;
}

HETPLAN_INLINE double rounded_value(double usual, long k) {
  double factor = 1;  // not std::pow, whose last digit differs between libraries
  for (long i = 0; i < std::abs(k); ++i) factor *= rounding_step;
  return k < 0 ? usual / factor : usual * factor;
}

HETPLAN_INLINE conditions rounded(conditions now, const cluster& c) {
  const auto round = [](double value, double usual) {
    return value > 0 && usual > 0 ? rounded_value(usual, std::lround(rounding_steps(value / usual))) : value;
  };
  for (double& s : now.speed) s = round(s, 1);
  for (auto&& [capacity, usual] : ranges::views::zip(now.capacity, c.network().resources())) {
    capacity = bytes_per_second(round(capacity.value(), usual.capacity.value()));
  }
  return now;
}

HETPLAN_INLINE simulator_options from_the_start(const conditions& now, const cluster& c) {
  simulator_options o;
  for (const auto& [r, usual, capacity] : ranges::views::zip(ranges::views::indices, c.network().resources(), now.capacity)) {
    if (capacity != usual.capacity) o.capacities.push_back({{}, resource_id(r), capacity});
  }
  for (const auto& [d, speed] : ranges::views::enumerate(now.speed)) {
    if (speed != 1) o.speeds.push_back({{}, device_id(d), speed});
  }
  return o;
}

HETPLAN_INLINE void check_trace(const bandwidth_trace& t) {
  if (t.steps.empty()) throw invalid_input("bandwidth trace: expected at least one step");
  for (std::size_t i = 0; i < t.steps.size(); ++i) {
    const double at = t.steps[i].at.value(), rate = t.steps[i].rate.value();
    const std::string where = "bandwidth trace: step " + std::to_string(i) + ": ";
    if (!std::isfinite(at) || at < 0) throw invalid_input(where + "at = " + to_text(at) + "; expected finite seconds >= 0");
    if (i > 0 && at <= t.steps[i - 1].at.value())
      throw invalid_input(where + "at = " + to_text(at) + "; expected a time after " + to_text(t.steps[i - 1].at.value()) + " s");
    if (!std::isfinite(rate) || rate < 0) throw invalid_input(where + "rate = " + to_text(rate) + "; expected finite bytes/s >= 0");
  }
}

HETPLAN_INLINE seconds length(const bandwidth_trace& t, std::size_t step) {
  if (t.steps.size() < 2) return {};
  const std::size_t i = std::min(step, t.steps.size() - 2);
  return t.steps[i + 1].at - t.steps[i].at;
}

HETPLAN_INLINE seconds length(const bandwidth_trace& t) {
  if (t.steps.empty()) return {};
  return t.steps.back().at - t.steps.front().at + length(t, t.steps.size() - 1);
}

HETPLAN_INLINE bytes_per_second mean(const bandwidth_trace& t) {
  const seconds whole = length(t);
  if (t.steps.size() == 1) return t.steps.front().rate;
  double sum = 0;
  for (std::size_t i = 0; i < t.steps.size(); ++i) sum += t.steps[i].rate.value() * (length(t, i) / whole);
  return bytes_per_second(sum);
}

HETPLAN_INLINE bandwidth_trace scaled(bandwidth_trace t, bytes_per_second target) {
  check_trace(t);
  if (!is_finite(target) || target.value() < 0)
    throw invalid_input("bandwidth trace: mean = " + to_text(target.value()) + "; expected finite bytes/s >= 0");
  const double now = mean(t).value();
  if (now == 0 && target.value() > 0)
    throw invalid_input("bandwidth trace: its mean is 0 and cannot become " + to_text(target.value()) + " bytes/s");
  if (now == 0) return t;
  for (bandwidth_trace::step& s : t.steps) {
    s.rate = bytes_per_second(s.rate.value() / now * target.value());
    if (!is_finite(s.rate))
      throw invalid_input("bandwidth trace: its mean cannot become " + to_text(target.value()) + " bytes/s, a rate would not be finite");
  }
  return t;
}

HETPLAN_INLINE std::vector<event> events_of(const bandwidth_trace& t, resource_id resource, seconds duration, past_the_end then) {
  check_trace(t);
  std::vector<event> events;
  const double whole = length(t).value();
  const bool again = then == past_the_end::repeats && whole > 0 && std::isfinite(whole);
  for (std::size_t round = 0;; ++round) {
    for (const bandwidth_trace::step& s : t.steps) {
      double at = round == 0 ? s.at.value() : s.at.value() + static_cast<double>(round) * whole;
      if (!events.empty()) at = std::max(at, events.back().at.value());  // rounding must not turn time back
      if (!(at < duration.value())) return events;
      if (events.size() == max_trace_events) {
        throw invalid_input("bandwidth trace: expected at most " + std::to_string(max_trace_events) + " steps in " +
                            to_text(duration.value()) + " s, got more");
      }
      events.push_back({seconds(at), capacity_becomes{resource, s.rate}});
    }
    if (!again) return events;
  }
}

}  // namespace hetplan::adapt
