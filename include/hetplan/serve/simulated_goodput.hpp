// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a deployment serves a second, by playing requests.

#include <limits>
#include <utility>
#include <vector>

#include <hetplan/serve/greedy_placement.hpp>
#include <hetplan/serve/serve_requests.hpp>

namespace hetplan::serve {

/// phi as the paper defines it: requests are played, by a handler that begins anew each time.
///
/// Complexity  a run of the requests for every gain: for small clouds, and to test estimates.
/// Source  EPARA, section 3.3, algorithm 2 (line 7).
template <request_handler H>
class simulated_goodput {
 public:
  /// What it is given must outlive it.
  simulated_goodput(const edge_cloud& cloud, const std::vector<service>& services, any_service_time times, const request_stream& requests,
                    H handler)
      : cloud_(&cloud), services_(&services), times_(std::move(times)), requests_(&requests), handler_(std::move(handler)) {}
  // A temporary is gone at the end of the line.
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
    return {gain > 1e-9 * value_ ? gain : 0, 0};  // sums of other orders may differ by rounding
  }
  void add(const instance& i, const allocation& /*a*/) {
    present_.instances.push_back(i);
    value_ = of(present_);
  }
  [[nodiscard]] double value() const { return value_; }

  /// Served a second under a deployment.
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

}  // namespace hetplan::serve
