// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Writes the history of a run.

#include <cstdint>
#include <vector>

#include <hetplan/core/at_most.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/ended_request.hpp>
#include <hetplan/serve/request_stream.hpp>
#include <hetplan/serve/service_history.hpp>
#include <hetplan/serve/serving_options.hpp>

namespace HETPLAN_NAMESPACE::serve {

/// Complexity  O(1) a request.
/// Source  semantics, section 11 (what counts).
class history_recorder {
 public:
  history_recorder(const edge_cloud& cloud, const std::vector<service>& services, const request_stream& all, const serving_options& o);

  /// A request has ended; how.end_s is on the run's clock. Requires that it has not before.
  void end(request_number r, const request& what, const request_record& how, double latency_s);
  /// In order of arrival.
  void entered(const request& what) {
    ++history_.servers[what.server.index()].entered;
    const double arrival_s = all_->since_first_s(what.arrival_s);
    if (at_most(offered_until_s_, arrival_s)) open_offered(arrival_s);
    history_.offered.back()[what.service.index()] += asked(what);
  }
  void passed_on(server_id from, server_id to) {
    ++history_.servers[from.index()].passed_on;
    flows_.push_back({from, to, 1});
    if (flows_.size() > 2 * flows_added_up_ + 65'536) add_up_flows();
  }
  /// Is this the first publication of a bin? Then `waiting` of every server is to be told.
  [[nodiscard]] bool wants_waiting(double now_s) const {
    return detailed_ && at_most(next_waiting_s_, now_s) && at_most(now_s, span_s_ + bin_s_);
  }
  void waiting(std::vector<std::uint32_t> by_server, double now_s);

  [[nodiscard]] std::uint64_t ended() const { return ended_; }
  [[nodiscard]] double credit() const { return credit_; }
  [[nodiscard]] service_history& history() { return history_; }
  [[nodiscard]] service_history take(std::uint64_t requests);

 private:
  /// The bin that a time is in, which is also its beginning but for rounding.
  [[nodiscard]] std::size_t bin_of(double time_s) const;
  void open_offered(double arrival_s);
  void add_up_flows();
  /// Its credit, were it served.
  [[nodiscard]] double asked(const request& what) const { return (*services_)[what.service.index()].credit(what.length); }

  service_history history_;
  const std::vector<service>* services_;
  const request_stream* all_;
  double bin_s_ = 1;
  double span_s_ = 0;  ///< until the last arrival
  double next_waiting_s_ = 0;
  double offered_until_s_ = 0;  ///< the end of the last bin of `offered`
  double last_end_s_ = 0;
  double credit_ = 0;
  std::uint64_t ended_ = 0;
  std::vector<bool> has_ended_;  ///< by number: the promise that each ends once
  bool detailed_;
  std::vector<double> by_server_;    ///< servers x services, where detailed
  std::vector<offload_flow> flows_;  ///< those of one pair added up, then one for each request since
  std::size_t flows_added_up_ = 0;
};

}  // namespace HETPLAN_NAMESPACE::serve

#ifndef HETPLAN_COMPILED
#include <hetplan/serve/history_recorder.ipp>
#endif
