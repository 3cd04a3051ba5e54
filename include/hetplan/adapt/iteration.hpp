// SPDX-License-Identifier: BSL-1.0
#pragma once
/// One iteration of a plan under the conditions of the moment.
///
/// Source  semantics, section 10: an iteration keeps the conditions that hold while it runs.

#include <algorithm>
#include <concepts>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <hetplan/adapt/adaptation_policy.hpp>
#include <hetplan/adapt/conditions.hpp>
#include <hetplan/simulate/evaluate.hpp>

namespace HETPLAN_NAMESPACE::adapt {

/// Does a plan compute on a device?  O(stages x devices per stage).
[[nodiscard]] inline bool uses(const plan& p, device_id d) {
  return std::any_of(p.stages.begin(), p.stages.end(), [&](const stage& s) {
    return std::any_of(s.devices.begin(), s.devices.end(), [&](const assignment& a) { return a.device == d; });
  });
}

/// How an iteration went.
struct iteration {
  bool ended = false;  ///< false: `until` came first
  double took_s = 0;
  double response_s = 0;                     ///< T, or the time between tokens; T so far where it did not end
  std::vector<double> device_J = {};         ///< by device, 0 for those that the plan leaves alone
  std::vector<double> background_left = {};  ///< bytes, by background transfer

  [[nodiscard]] double energy_J() const {
    double total = 0;
    for (const double e : device_J) total += e;
    return total;
  }
};

/// By device: what moving bytes takes.
template <energy_model Energy>
[[nodiscard]] std::vector<double> energy_of_bytes(const Energy& energy, const cluster& c, const std::vector<double>& sent,
                                                  const std::vector<double>& received) {
  std::vector<double> spent;
  for (const device& d : c.devices()) {
    spent.push_back(energy.energy({.sent = bytes(sent[d.id.index()]), .received = bytes(received[d.id.index()])}, d).value());
  }
  return spent;
}
/// What devices draw that are there and do nothing for a time; those that have been charged already are left alone.
template <energy_model Energy>
void add_idle_energy(std::vector<double>& spent, const Energy& energy, const cluster& c, std::span<const device_id> devices,
                     const conditions& now, double for_s) {
  for (const device_id d : devices) {
    if (spent[d.index()] == 0 && now.present[d.index()] != 0) spent[d.index()] = energy.energy({.total = seconds(for_s)}, c[d]).value();
  }
}

/// A plan that is expanded once and then run as often as its circumstances change.
///
/// The simulator judges: what an iteration takes here is what `judge` says of the plan under the same options.
template <class Problem>
class plan_runner {
 public:
  /// Throws  as tasks::expand.
  plan_runner(const Problem& problem, plan p) : problem_(&problem), plan_(std::move(p)) {
    judged_.graph = tasks::expand(plan_, problem.model, problem.cluster, problem.cost, problem.models.memory);
    for (std::size_t d = 0; d < judged_.graph.used.size(); ++d) {
      if (judged_.graph.used[d] != 0) devices_.push_back(device_id(d));
    }
    std::vector<char> carries(problem.cluster.network().resources().size(), 0);
    for (const tasks::transfer& t : judged_.graph.transfers) {
      for (const resource_use& u : judged_.graph.routes[t.route].via) carries[u.resource.index()] |= t.volume_bytes > 0 ? 1 : 0;
    }
    for (std::size_t r = 0; r < carries.size(); ++r) {
      if (carries[r] != 0) resources_.push_back(resource_id(r));
    }
  }

  [[nodiscard]] const plan& what() const { return plan_; }
  /// The devices that it uses, ascending.
  [[nodiscard]] std::span<const device_id> devices() const { return devices_; }
  [[nodiscard]] bool uses(device_id d) const { return std::binary_search(devices_.begin(), devices_.end(), d); }
  /// The resources that its transfers need, ascending.
  [[nodiscard]] std::span<const resource_id> resources() const { return resources_; }
  [[nodiscard]] bool can_run(const conditions& now) const {
    return std::all_of(devices_.begin(), devices_.end(), [&](device_id d) { return now.works(d); }) &&
           std::all_of(resources_.begin(), resources_.end(), [&](resource_id r) { return now.capacity[r.index()].value() > 0; });
  }

  /// Complexity  one simulation.   Throws  invalid_input where it would wait forever and `options` set no end.
  [[nodiscard]] iteration run(const simulator_options& options) {
    const auto& models = problem_->models;
    if constexpr (std::same_as<std::remove_cvref_t<decltype(models.network)>, as_planned>) {
      judged_.trace = simulate(judged_.graph, problem_->cluster.network(), policy_of_plan{plan_.network}, options);
    } else {
      judged_.trace = simulate(judged_.graph, problem_->cluster.network(), models.network, options);
    }
    const evaluation e = measure(judged_.graph, judged_.trace, problem_->cluster, models.energy);
    iteration i{.ended = judged_.trace.status.ok(), .took_s = e.latency.value(), .response_s = e.latency.value()};
    if (i.ended && plan_.workload.mode == mode::generation) i.response_s = time_between_tokens(plan_, problem_->model, judged_).value();
    for (const device_evaluation& d : e.devices) i.device_J.push_back(d.energy.value());
    i.background_left = judged_.trace.background_left;
    return i;
  }

  /// An iteration while nothing changes; one that cannot end there has an infinite response.  Complexity: one simulation.
  [[nodiscard]] iteration rehearse(const conditions& now, std::span<const foreign_traffic> traffic = {}) {
    constexpr seconds long_enough(1e9);
    simulator_options o = from_the_start(now, problem_->cluster);
    for (const foreign_traffic& f : traffic) o.background.push_back({f.from, f.to, f.left, {}, f.priority});
    o.until = long_enough;
    iteration i;
    if (can_run(now)) i = run(o);
    if (!i.ended) i.took_s = i.response_s = std::numeric_limits<double>::infinity();
    return i;
  }

 private:
  const Problem* problem_;
  plan plan_;
  std::vector<device_id> devices_;
  std::vector<resource_id> resources_;
  judgement judged_;
};

}  // namespace HETPLAN_NAMESPACE::adapt
