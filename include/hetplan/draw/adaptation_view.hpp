// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What pictures of an adaptation show: what changed when, what was wanted when, and names that all policies' plans share.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <hetplan/adapt/timeline.hpp>
#include <hetplan/draw/clock_scale.hpp>
#include <hetplan/io/timeline_json.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::draw::detail {

/// A resource's capacity [B/s] or a device's speed [factor] over time, and when the device was away.
struct changing {
  std::size_t index = 0;  ///< of the resource or device
  double nominal = 1;
  std::vector<level> levels = {};
  std::vector<level> away = {};

  /// How far and how long it was off its nominal value: which rows are worth their room.
  [[nodiscard]] double deviation() const;
};

/// A plan's name among all that ran under any policy: a letter for who computes what, a number for how: microbatches,
/// shares, the schedule of the network.
struct plan_name {
  std::size_t layout = 0;   ///< 0: A
  std::size_t variant = 0;  ///< 0: the first with this layout
  [[nodiscard]] std::string text() const;
};

/// The timeline and the histories as pictures need them.
class adaptation_view {
 public:
  static constexpr std::size_t most_resources = 6, most_devices = 8;

  adaptation_view(std::span<const io::policy_history> rows, const adapt::timeline& t, const cluster& c, const qoe_target& first_target);

  std::span<const io::policy_history> policies;
  double duration_s;
  std::vector<changing> resources = {}, devices = {};  ///< those that change; the most changing ones, by index
  std::size_t hidden = 0;                              ///< others that change
  std::vector<adapt::event> transfers = {};
  std::vector<level> wanted = {};                      ///< response; infinite while nothing is wanted
  std::vector<double> deadlines = {};                  ///< that were in force when their time came, or at the end
  std::vector<double> marks = {};                      ///< when something happened that is no step of a trace; ascending
  std::vector<std::vector<plan_name>> names = {};      ///< by policy and index into history::plans
  std::vector<std::vector<const plan*>> layouts = {};  ///< the plans of each letter, by variant

  [[nodiscard]] std::string name(std::size_t policy, std::size_t index) const;
  [[nodiscard]] std::size_t layout(std::size_t policy, std::size_t index) const;
  /// The response that was wanted at a time.
  [[nodiscard]] double wanted_at(double t) const;

 private:
  void read_conditions(const adapt::timeline& t, const cluster& c);

  void keep_most(std::vector<changing>& all, std::size_t most);

  void read_targets(const adapt::timeline& t, const qoe_target& first);

  [[nodiscard]] plan_name name_of(const plan& p);
};

}  // namespace hetplan::draw::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/adaptation_view.ipp>
#endif
