// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The number of GPUs that a load needs.

#include <concepts>
#include <cstddef>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/observer.hpp>
#include <hetplan/serve/greedy_placement.hpp>
#include <hetplan/serve/serve_requests.hpp>

namespace hetplan::serve {

/// phi as the paper defines it: requests are simulated, by a new copy of the handler each time.
/// Complexity  a run of the requests for every gain: for small clouds, and to test estimates.
/// Source  EPARA, section 3.3, algorithm 2 (line 7).
template <request_handler H>
class simulated_goodput {
 public:
  /// References must outlive the object.
  simulated_goodput(const edge_cloud& cloud, const std::vector<service>& services, any_service_time times, const request_stream& requests,
                    H handler)
      : cloud_(&cloud), services_(&services), times_(std::move(times)), requests_(&requests), handler_(std::move(handler)) {}
  simulated_goodput(const edge_cloud&& the_cloud_must_outlive_it, const std::vector<service>&, any_service_time, const request_stream&,
                    H) = delete;
  simulated_goodput(const edge_cloud&, const std::vector<service>&& the_services_must_outlive_it, any_service_time, const request_stream&,
                    H) = delete;
  simulated_goodput(const edge_cloud&, const std::vector<service>&, any_service_time, const request_stream&& the_requests_must_outlive_it,
                    H) = delete;

  [[nodiscard]] placement_gain most(server_id /*leader*/, const allocation& /*a*/) const {
    constexpr double unknown = std::numeric_limits<double>::infinity();
    return {unknown, unknown};
  }
  [[nodiscard]] placement_gain gain(const instance& i, const allocation& /*a*/) const {
    auto more = present_;
    more.instances.push_back(i);
    const double gain = of(more) - value_;
    return {gain > 1e-9 * value_ ? gain : 0, 0};  // sums in another order differ by rounding
  }
  void add(const instance& i, const allocation& /*a*/) {
    present_.instances.push_back(i);
    value_ = of(present_);
  }
  [[nodiscard]] double value() const { return value_; }

  /// Returns the credit per second that a deployment serves.
  [[nodiscard]] double of(const deployment& d) const {
    auto handler = handler_;
    const auto h = serve_requests(*cloud_, *services_, times_, *requests_, d, handler);
    return h.credit() / requests_->window().value();
  }

 private:
  const edge_cloud* cloud_;
  const std::vector<service>* services_;
  any_service_time times_;
  const request_stream* requests_;
  H handler_;
  deployment present_;
  double value_ = 0;
};

struct sizing_step {
  int gpus_per_server = 0;
  std::size_t gpus = 0;   ///< with an instance
  double attainment = 0;  ///< served share of what was asked
  friend bool operator==(const sizing_step&, const sizing_step&) = default;
};

/// The smallest size found that serves the wanted share.
struct sizing {
  status result;  ///< none found: the most GPUs are not enough, the best is given; stopped: by an observer, or a run did not end
  sizing_step best;
  deployment placed;
  std::vector<sizing_step> tried = {};
};

/// Returns a cloud with `count` GPUs per server, like the first of each; servers without GPUs stay without.
[[nodiscard]] inline edge_cloud with_gpus(edge_cloud cloud, int count) {
  for (auto& s : cloud.servers) {
    if (!s.gpus.empty()) s.gpus.assign(static_cast<std::size_t>(count), gpu(s.gpus.front()));
  }
  return cloud;
}
/// Returns the number of GPUs of servers with an instance.
[[nodiscard]] inline std::size_t used_gpus(const deployment& d) {
  std::set<gpu_slot> used;
  for (const auto& i : d.instances) used.insert(i.gpus.begin(), i.gpus.end());
  return used.size();
}

/// Finds the GPUs per server that a system needs to serve a share of the requests: doubling until they are enough, then bisection. GPUs
/// without an instance are not counted.
///
/// @param system  called for every size: a system is good for one run.
/// @param target  0 < target <= 1.
/// Complexity     O(log most) runs. More GPUs are assumed to serve more; otherwise the result is enough, but a smaller size might be, too.
/// Throws         invalid_input: a target outside of (0, 1], most below 1, a cloud without GPUs; see serve_with.
/// Source         EPARA, section 5.2 and figure 15 (GPUs to serve all requests).
template <std::invocable System, observer<sizing_step>... Observers>
[[nodiscard]] sizing size_for(double target, const System& system, const edge_cloud& cloud, const std::vector<service>& services,
                              const any_service_time& times, const request_stream& requests, int most = 64, Observers&&... observers) {
  if (!(target > 0) || target > 1) throw invalid_input("size_for: target = " + to_text(target) + "; expected 0 < target <= 1");
  if (most < 1) throw invalid_input("size_for: most = " + std::to_string(most) + " GPUs a server; expected >= 1");
  validate(cloud);
  if (with_gpus(cloud, 1) == with_gpus(cloud, 0))
    throw invalid_input("size_for: no server of cloud \"" + cloud.name + "\" has a GPU of which there could be more");
  sizing answer;
  answer.result = {outcome::none_found, "with " + std::to_string(most) + " GPUs a server less is served than was asked for"};
  status cut_short;
  const auto is_enough = [&](int count) {
    auto run = serve_with(system(), with_gpus(cloud, count), services, times, requests, requests, requests.window());
    if (!run.history.result.ok()) {  // the served share is unknown
      cut_short = run.history.result;
      return false;
    }
    const sizing_step step{count, used_gpus(run.first), run.history.attainment()};
    answer.tried.push_back(step);
    if (notify(step, observers...) == control::stop) cut_short = {outcome::stopped, "an observer said so"};
    const bool enough = step.attainment >= target;
    if (enough || answer.tried.size() == 1 || (!answer.result.ok() && step.attainment > answer.best.attainment)) {
      answer.best = step;
      answer.placed = std::move(run.first);
    }
    if (enough) answer.result = {};
    return enough;
  };
  int enough = 1;
  int too_few = 0;
  while (!is_enough(enough)) {
    if (!cut_short.ok() || enough == most) break;
    too_few = enough;
    enough = enough > most / 2 ? most : 2 * enough;
  }
  while (answer.result.ok() && cut_short.ok() && enough - too_few > 1) {
    const int middle = too_few + (enough - too_few) / 2;
    (is_enough(middle) ? enough : too_few) = middle;
  }
  if (!cut_short.ok()) answer.result = std::move(cut_short);
  return answer;
}

}  // namespace hetplan::serve
