// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/serving_options.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>

namespace hetplan::serve {

namespace detail {

/// Checks faults in order; returns what is wrong with one, or "".
class fault_check {
 public:
  explicit fault_check(const edge_cloud& cloud) : cloud_(cloud) {}

  [[nodiscard]] std::string next(const serving_fault& f) {
    if (!std::isfinite(f.at.value()) || f.at.value() < 0) return "at = " + to_text(f.at.value()) + " s; expected a finite time >= 0";
    if (f.at.value() < before_s_) return "at = " + to_text(f.at.value()) + " s, before the one before it; expected ascending times";
    before_s_ = f.at.value();
    if (!f.server.valid() || f.server.index() >= cloud_.size()) return "names no server of cloud \"" + cloud_.name + "\"";
    return std::visit([&](const auto& what) { return wrong(f, what); }, f.what);
  }

 private:
  [[nodiscard]] static std::string wrong(const serving_fault&, const server_fails&) { return {}; }
  [[nodiscard]] std::string wrong(const serving_fault& f, const gpu_fails& x) const {
    const auto has = cloud_[f.server].gpus.size();
    return x.gpu >= 0 && static_cast<std::size_t>(x.gpu) < has
               ? ""
               : "gpu = " + std::to_string(x.gpu) + "; server \"" + cloud_[f.server].name + "\" has " + std::to_string(has);
  }
  [[nodiscard]] std::string wrong(const serving_fault& f, const device_leaves& x) { return device(f, x.device, false); }
  [[nodiscard]] std::string wrong(const serving_fault& f, const device_registers& x) { return device(f, x.device, true); }
  [[nodiscard]] std::string device(const serving_fault& f, int d, bool registers) {
    const auto has = cloud_[f.server].devices.size();
    if (d < 0 || static_cast<std::size_t>(d) >= has)
      return "device = " + std::to_string(d) + "; server \"" + cloud_[f.server].name + "\" has " + std::to_string(has);
    const auto [it, first] = registered_.try_emplace({f.server.value, d}, registers);
    if (!first && it->second && registers)
      return "device \"" + cloud_[f.server].devices[static_cast<std::size_t>(d)].name + "\" of server \"" + cloud_[f.server].name +
             "\" registers twice in a row";
    it->second = registers;
    return {};
  }
  [[nodiscard]] static std::string ends(const serving_fault& f, seconds until) {
    return std::isfinite(until.value()) && until > f.at
               ? ""
               : "until = " + to_text(until.value()) + " s; expected a finite time after it begins";
  }
  [[nodiscard]] static std::string wrong(const serving_fault& f, const ring_cut& x) { return ends(f, x.until); }
  [[nodiscard]] static std::string wrong(const serving_fault& f, const wrong_state& x) { return ends(f, x.until); }
  [[nodiscard]] static std::string wrong(const serving_fault& f, const slow_link& x) {
    if (!std::isfinite(x.factor) || x.factor <= 0) return "factor = " + to_text(x.factor) + "; expected a finite number > 0";
    return ends(f, x.until);
  }
  [[nodiscard]] std::string wrong(const serving_fault& f, const server_joins&) { return turn(f.server, true); }
  [[nodiscard]] std::string wrong(const serving_fault& f, const server_leaves&) { return turn(f.server, false); }
  [[nodiscard]] std::string turn(server_id s, bool joins) {
    const auto [it, first] = joined_.try_emplace(s.value, joins);
    if (!first && it->second == joins) return "server \"" + cloud_[s].name + "\" " + (joins ? "joins" : "leaves") + " twice in a row";
    it->second = joins;
    return {};
  }

  const edge_cloud& cloud_;
  double before_s_ = 0;
  std::map<std::int32_t, bool> joined_;
  std::map<std::pair<std::int32_t, int>, bool> registered_;
};

}  // namespace detail

HETPLAN_INLINE std::vector<fault_turn> turns(const std::vector<serving_fault>& faults) {
  std::vector<fault_turn> all;
  for (std::size_t f = 0; f < faults.size(); ++f) {
    all.push_back({faults[f].at.value(), f, false});
    std::visit(
        [&](const auto& what) {
          if constexpr (requires { what.until; }) all.push_back({what.until.value(), f, true});
        },
        faults[f].what);
  }
  std::ranges::stable_sort(all, {}, &fault_turn::at_s);
  return all;
}

HETPLAN_INLINE cloud_damage damage_at_first(const std::vector<serving_fault>& faults, const edge_cloud& cloud) {
  cloud_damage damage{std::vector<char>(cloud.size())};
  std::vector<char> heard_of_server(cloud.size());
  std::set<gpu_slot> heard_of_device;
  for (const auto& f : faults) {
    const bool joins = std::holds_alternative<server_joins>(f.what);
    if (joins || std::holds_alternative<server_leaves>(f.what)) {
      auto& heard = heard_of_server[f.server.index()];
      if (joins && heard == 0) damage.absent[f.server.index()] = 1;
      heard = 1;
    }
    const auto* registers = std::get_if<device_registers>(&f.what);
    const auto* leaves = std::get_if<device_leaves>(&f.what);
    if (registers == nullptr && leaves == nullptr) continue;
    const gpu_slot d{f.server, registers != nullptr ? registers->device : leaves->device};
    if (heard_of_device.insert(d).second && registers != nullptr) damage.gone_devices.push_back(d);
  }
  return damage;
}

HETPLAN_INLINE void validate(const std::vector<serving_fault>& faults, const edge_cloud& cloud) {
  detail::fault_check check(cloud);
  for (std::size_t i = 0; i < faults.size(); ++i) {
    if (const auto wrong = check.next(faults[i]); !wrong.empty())
      throw invalid_input("serving_faults: fault " + std::to_string(i) + ": " + wrong);
  }
}

HETPLAN_INLINE void validate(const serving_options& options, const request_stream& requests) {
  const auto refuse = [](const std::string& what) { throw invalid_input("serving_options: " + what); };
  const auto amount = [&](const char* what, double v) {
    if (!std::isfinite(v) || v < 0) refuse(std::string(what) + " = " + to_text(v) + " s; expected a finite time >= 0");
  };
  const auto& c = options.changes;
  seconds before;
  for (const auto at : c.at) {
    if (!std::isfinite(at.value()) || at <= before)
      refuse("a change at " + to_text(at.value()) + " s; expected a finite time above " + to_text(before.value()) + " s");
    before = at;
  }
  amount("changes.cycle", c.cycle.value());
  const bool in_cycles = c.cycle.value() > 0;
  if (!c.at.empty() && in_cycles) refuse("changes at given times and every " + to_text(c.cycle.value()) + " s; expected one of the two");
  if ((!c.at.empty() || in_cycles) && !c.policy) refuse("changes without a policy that says which");
  amount("bin", options.bin.value());
  const auto few = [&](const char* what, seconds width, int most) {
    if (width.value() > 0 && width.value() * most < requests.span().value())
      refuse(std::string(what) + " = " + to_text(width.value()) + " s; expected at least " + to_text(requests.span().value() / most) +
             " s, so that " + std::to_string(most) + " reach from the first arrival to the last");
  };
  few("changes.cycle", c.cycle, 100'000);
  few("bin", options.bin, 10'000);
}

HETPLAN_INLINE double first_period_s(const serving_options& options, const request_stream& requests, seconds period) {
  double first_s = std::numeric_limits<double>::infinity();
  if (!requests.empty()) first_s = requests.first_arrival().value();
  if (!options.faults.empty()) first_s = std::min(first_s, options.faults.front().at.value());
  if (!options.changes.at.empty()) first_s = std::min(first_s, options.changes.at.front().value());
  if (!std::isfinite(first_s)) return 0;
  const double whole = std::floor(first_s / period.value());
  const bool is_next = at_most((whole + 1) * period.value(), first_s, period.value());  // corrects a rounded quotient
  return std::min(0.0, requests.since_first_s((is_next ? whole + 1 : whole) * period.value()));
}

}  // namespace hetplan::serve
