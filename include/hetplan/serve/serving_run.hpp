// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The simulation of requests without their handler: it returns the next request to handle and carries out the decision.

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/large_pages.hpp>
#include <hetplan/core/min_queue.hpp>
#include <hetplan/serve/deployment.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/instance_state.hpp>
#include <hetplan/serve/request_process.hpp>
#include <hetplan/serve/ring_sync.hpp>
#include <hetplan/serve/service_history.hpp>
#include <hetplan/serve/service_time.hpp>
#include <hetplan/serve/serving_options.hpp>

namespace hetplan::serve {

/// The instances of a run: those of the current deployment, and earlier ones with work left. An instance keeps its id.
/// Complexity  O(instances log instances + servers x services) per change.
/// Source  EPARA, sections 3.3 and 4.2; semantics, section 11 (deployments that change).
class running_deployment {
 public:
  running_deployment(const edge_cloud& cloud, const std::vector<service>& services, any_service_time times);

  [[nodiscard]] instance_state& operator[](instance_id i) { return states_[i.index()]; }
  [[nodiscard]] const instance_state& operator[](instance_id i) const { return states_[i.index()]; }
  /// Prefetches an instance.
  void fetch(instance_id i) const {
    const auto* first = reinterpret_cast<const char*>(&states_[i.index()]);
    for (std::size_t at = 0; at < sizeof(instance_state); at += 64) prefetch(first + at);
  }
  [[nodiscard]] bool has(instance_id i) const { return i.valid() && i.index() < states_.size(); }
  [[nodiscard]] const service_holders& holders() const { return *holders_; }
  [[nodiscard]] const deployment& present() const { return present_; }
  [[nodiscard]] std::span<const instance_id> ids() const { return ids_; }

  /// Returns the instances of earlier deployments that may still have work in progress.
  [[nodiscard]] std::span<const instance_id> retired() const { return retired_ids_; }

  /// Makes a deployment current. Throws invalid_input if it breaks a rule. Returns the instances to retire.
  [[nodiscard]] std::vector<instance_id> change(deployment next, double now_s, const cloud_damage& damage, const ring_sync& rings);

  /// Returns the instances, retired ones included, for which is(instance) holds.
  template <class Is>
  [[nodiscard]] std::vector<instance_id> those(const Is& is) const;

  /// Returns the total capacity per second of each holder's instances.
  [[nodiscard]] std::vector<holder_capacity> capacities() const;
  /// Returns the state that a holder publishes, whose instances have been advanced to now.
  [[nodiscard]] holder_state state_of(const holder& h, double now_s) const;

 private:
  void forget_idle();
  [[nodiscard]] instance_state make_state(const instance& i, double ready_s);

  const edge_cloud* cloud_;
  const std::vector<service>* services_;
  any_service_time times_;
  deployment present_;
  std::vector<instance_id> ids_;  ///< of present_
  std::vector<instance> retired_;
  std::vector<instance_id> retired_ids_;
  std::vector<instance_state, large_pages<instance_state>> states_;
  std::map<std::array<int, 5>, std::unique_ptr<instance_times>> tables_;  ///< by the properties of an instance except its place
  std::optional<service_holders> holders_;
};

/// The links of servers: one transfer at a time on each, in order.
/// Complexity  O(1) per transfer, and O(periods in which the link was slow).
/// Source  semantics, section 11 (the way).
class server_links {
 public:
  /// @param clock   its first arrival is time 0.
  /// @param span_s  scale of the tolerance at the start and end of a fault.
  server_links(const edge_cloud& cloud, const std::vector<serving_fault>& faults, const request_stream& clock, double span_s);

  /// Returns when the last byte of a request sent now reaches the downlink of `to`.
  [[nodiscard]] double send_s(server_id from, server_id to, double now_s, double size_b);
  /// Returns when a request that is at the downlink now has reached the server.
  [[nodiscard]] double receive_s(server_id to, double now_s, double size_b);
  /// Returns the time that an answer takes from `at_s` to the server where its request entered; answers do not queue.
  [[nodiscard]] double answer_s(server_id from, server_id to, double size_b, double at_s) const;
  /// Returns the time to or from a registered device of a server, without queueing; 0 for device -1, which is none.
  [[nodiscard]] double device_s(server_id owner, std::int32_t device, double size_b) const {
    if (device < 0) return 0;
    const auto& d = (*cloud_)[owner].devices[static_cast<std::size_t>(device)];
    return d.latency.value() + size_b / d.bandwidth.value();
  }

 private:
  struct link {
    double up, down, latency_s;
    double up_free_s = 0, down_free_s = 0;
    std::int32_t slow = -1;  ///< row of slow_
  };
  struct slow_time {
    double from_s, until_s, factor;
  };
  [[nodiscard]] double factor(const link& l, double at_s) const;

  const edge_cloud* cloud_;
  double span_s_;
  std::vector<link> links_;
  std::vector<std::vector<slow_time>> slow_;
};

/// What servers know of each other: the rings with their faults, and the publications on them.
/// Complexity  O(holders of the service in the ring) for all of them, O(log holders) for a drawn one.
/// Source      EPARA, sections 3.2, 3.4 and 5.3.3; semantics, section 11 (what servers know of each other, faults).
class ring_knowledge {
 public:
  /// Without faults, publications are kept for half as long.
  /// @param first_s  time of the first publication, before all events.
  ring_knowledge(const edge_cloud& cloud, const std::vector<serving_fault>& faults, double first_s);

  [[nodiscard]] const ring_sync& rings() const { return rings_; }
  [[nodiscard]] double next_publication_s() const { return first_s_ + static_cast<double>(next_) * period_s_; }

  /// Makes a deployment current from the next publication on.
  void begin_deployment(const running_deployment& d);
  /// Opens the next period; `publish` is then called for each present holder.
  void open_period();
  void fetch(std::size_t holder) const { published_->fetch(holder); }
  void publish(std::size_t holder, server_id server, const holder_state& state) {
    published_->publish(holder, state, wrong_[server.index()] > 0);
  }
  /// Skips periods before a time, in which nothing changes, except for the last remembered ones.
  void skip_until(double next_s);

  void fail(server_id s);
  [[nodiscard]] bool has_failed(server_id s) const { return any_failed_ && failed_from_[s.index()] >= 0; }
  void set_absent(server_id s, bool absent) { rings_.set_out(s, absent || has_failed(s), next_); }
  void set_cut(server_id s, bool cut) { rings_.set_cut(s, cut, next_); }
  void set_wrong(server_id s, bool wrong) { wrong_[s.index()] += wrong ? 1 : -1; }

  /// See server_view::others. Valid until the next call.
  [[nodiscard]] std::span<const known_server> known(const pending_request& r, const service_holders& holders);
  /// See server_view::other_at.
  [[nodiscard]] std::optional<server_at_share> at_share(const pending_request& r, const service_holders& holders, double share) const;

 private:
  /// Returns the period of a holder's latest publication that the request's server knows; empty if the holder is excluded.
  [[nodiscard]] std::optional<std::int64_t> period_heard_of(const pending_request& r, const holder& h) const;
  [[nodiscard]] known_server what_is_known(server_id s, std::size_t holder, std::int64_t period) const;
  struct seen_holder {
    server_id server;
    std::size_t number;
    std::int64_t period;
  };

  ring_sync rings_;
  double period_s_;
  double first_s_;     ///< of period 0
  std::int64_t kept_;  ///< kept publications of a holder
  std::int64_t next_ = 0;
  std::optional<publications> published_;
  std::vector<double> capacity_up_to_;     ///< by holder: total capacity of the holders of its ring and service up to this one
  std::vector<std::int64_t> failed_from_;  ///< by server: first period that sees the failure; -1: none
  bool any_failed_ = false;
  std::vector<int> wrong_;  ///< by server: number of current silent errors
  std::vector<seen_holder> seen_;
  std::vector<known_server> known_;
};

/// The servers that handled each request. A request that stays where it entered takes only four bytes.
/// Source  EPARA, section 3.2 (offloading paths).
class request_tracks {
 public:
  explicit request_tracks(std::size_t requests) : track_of_(requests) {}

  [[nodiscard]] int offloads(request_number r) const { return track_of_[r] == 0 ? 0 : static_cast<int>(tracks_[track_of_[r]].size()) - 1; }
  /// Returns the server that handles the request or handled it last.
  [[nodiscard]] server_id here(request_number r, server_id entered) const {
    return track_of_[r] == 0 ? entered : tracks_[track_of_[r]].back();
  }
  /// Returns all servers so far, beginning with the entry; valid until the next call.
  [[nodiscard]] std::span<const server_id> path(request_number r, server_id entered) {
    if (track_of_[r] != 0) return tracks_[track_of_[r]];
    tracks_[0].assign(1, entered);
    return tracks_[0];
  }

  /// Prefetches the track of a request.
  void fetch(request_number r) const { prefetch(&track_of_[r]); }

  void go(request_number r, server_id entered, server_id to) {
    auto& t = track_of_[r];
    if (t == 0) {
      if (free_.empty()) {
        free_.push_back(static_cast<std::uint32_t>(tracks_.size()));
        tracks_.emplace_back();
      }
      t = free_.back();
      free_.pop_back();
      tracks_[t].assign(1, entered);
    }
    tracks_[t].push_back(to);
  }
  void end(request_number r) {
    if (track_of_[r] == 0) return;
    free_.push_back(track_of_[r]);
    track_of_[r] = 0;
  }

 private:
  std::vector<std::uint32_t> track_of_;  ///< 0: none
  std::vector<std::vector<server_id>> tracks_ = std::vector<std::vector<server_id>>(1);
  std::vector<std::uint32_t> free_;
};

/// Writes the history of a run. Complexity  O(1) per request.
/// Source  semantics, section 11 (what counts).
class history_recorder {
 public:
  history_recorder(const edge_cloud& cloud, const std::vector<service>& services, const request_stream& all, const serving_options& o);

  /// Enters the end of a request, once for each; how.end_s is on the run's clock.
  void end(request_number r, const request& what, const request_record& how, double latency_s);
  /// Enters an arrival, in order of time.
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
  /// True at the first publication of a bin, when `waiting` of every server is due.
  [[nodiscard]] bool wants_waiting(double now_s) const {
    return detailed_ && at_most(next_waiting_s_, now_s) && at_most(now_s, span_s_ + bin_s_);
  }
  void waiting(std::vector<std::uint32_t> by_server, double now_s);

  [[nodiscard]] std::uint64_t ended() const { return ended_; }
  [[nodiscard]] double credit() const { return credit_; }
  [[nodiscard]] service_history& history() { return history_; }
  [[nodiscard]] service_history take(std::uint64_t requests);

 private:
  /// Returns the bin of a time; up to rounding, the beginning of a bin belongs to it.
  [[nodiscard]] std::size_t bin_of(double time_s) const;
  void open_offered(double arrival_s);
  void add_up_flows();
  /// Returns the credit of a request if it is served.
  [[nodiscard]] double asked(const request& what) const { return (*services_)[what.service.index()].credit(what.length); }

  service_history history_;
  const std::vector<service>* services_;
  const request_stream* all_;
  double bin_s_ = 1;
  double span_s_ = 0;  ///< until the last arrival
  double next_waiting_s_ = 0;
  double offered_until_s_ = 0;  ///< end of the last bin of `offered`
  double last_end_s_ = 0;
  double credit_ = 0;
  std::uint64_t ended_ = 0;
  std::vector<bool> has_ended_;  ///< by number; checks that each request ends once
  bool detailed_;
  std::vector<double> by_server_;    ///< servers x services, if detailed
  std::vector<offload_flow> flows_;  ///< the sum of each pair, then one per request since
  std::size_t flows_added_up_ = 0;
};

/// A request that reaches a handler, a downlink or a registered device at some time.
struct flight {
  enum class to : std::uint8_t { handler, downlink, device };
  double at_s;
  request_number number;
  to what;
  std::int32_t where;  ///< server, or instance on the device
  friend bool operator>(const flight& a, const flight& b) { return a.at_s != b.at_s ? a.at_s > b.at_s : a.number > b.number; }
};

/// Simulates requests on a deployment. Only transfers between servers and the clock (publications, faults, changes) are events; instances
/// are advanced when they are read, since nothing else can change them.
///
///   while (const auto* r = run.next()) run.carry_out(*r, decide(*r));
///
/// Complexity  O(log in flight) per hand-over, O(log B) per request at its instance, O(holders) per publication; the cost of a request does
///             not grow with the number of servers. A flight costs O(log in flight) also for each other one of its instant.
/// Source      semantics, section 11.
class serving_run {
 public:
  /// Throws invalid_input (validate of cloud, services, requests, deployment and faults). References must outlive the run.
  serving_run(const edge_cloud& cloud, const std::vector<service>& services, any_service_time times, const request_stream& requests,
              deployment first, const serving_options& options);
  serving_run(const edge_cloud&& the_cloud_must_outlive_it, const std::vector<service>&, any_service_time, const request_stream&,
              deployment, const serving_options&) = delete;
  serving_run(const edge_cloud&, const std::vector<service>&& the_services_must_outlive_it, any_service_time, const request_stream&,
              deployment, const serving_options&) = delete;
  serving_run(const edge_cloud&, const std::vector<service>&, any_service_time, const request_stream&& the_requests_must_outlive_it,
              deployment, const serving_options&) = delete;

  /// Returns the next request to handle, after all earlier events; valid until the next call. Null at the end.
  [[nodiscard]] const pending_request* next();
  /// Throws invalid_model for an invalid decision: see request_handler.
  void carry_out(const pending_request& r, const decision& d);
  /// Ends the run. The history is complete if next() has returned null.
  [[nodiscard]] service_history finish();
  void stop(std::string reason) { recorder_.history().result = {outcome::stopped, std::move(reason)}; }

  [[nodiscard]] serving_progress progress() const { return {next_arrival_, all_->size(), seconds(now_s_), recorder_.credit()}; }

  // Queries of server_view.
  [[nodiscard]] std::span<const instance_id> own(server_id s, service_id l, standing where) const {
    return instances_.holders().own(s, l, where);
  }
  [[nodiscard]] bool works(instance_id i) const { return instances_[i].life == instance_life::works; }
  [[nodiscard]] double expected_end_s(instance_id i, const pending_request& r, server_id at);
  [[nodiscard]] double free_rate(instance_id i) { return touch(i, now_s_).free_rate(now_s_); }
  [[nodiscard]] bool has_whole_rate(instance_id i) { return touch(i, now_s_).has_whole_rate(now_s_); }
  [[nodiscard]] std::span<const known_server> known(const pending_request& r) { return knowledge_.known(r, instances_.holders()); }
  [[nodiscard]] std::optional<server_at_share> known_at(const pending_request& r, double share) const {
    return knowledge_.at_share(r, instances_.holders(), share);
  }
  [[nodiscard]] const ring_sync& rings() const { return knowledge_.rings(); }

 private:
  /// Prefetches the data of the next arrivals, which with many servers are not in a cache.
  void look_ahead() const;
  /// Removes and returns the next flight: within one instant, up to rounding, the one of the smallest number.
  [[nodiscard]] flight next_flight();
  /// Processes the arrival of a flight. Returns the request if it is to be handled now.
  [[nodiscard]] const pending_request* land(const flight& f);
  [[nodiscard]] const pending_request* handle(request_number number, bool enters = false);
  void end(request_number r, request_outcome o, double at_s, double credit = 0);
  void finish(request_number r, request_record how, double latency_s = -1);
  void serve(const pending_request& r, instance_id i);

  void set_clock();
  void play_clock();
  void skip_idle_periods(double until_s);
  [[nodiscard]] bool nothing_left();
  void publish();
  void apply(const serving_fault& f, bool ends);
  void change_deployment();
  [[nodiscard]] double next_change_s() const;
  [[nodiscard]] double next_fault_s() const;

  void take_over(deployment next);
  void retire(instance_id i);
  void take_out(const std::vector<instance_id>& some);
  void send_back(instance_id i);
  /// Advances an instance to a time.
  instance_state& touch(instance_id i, double until_s);
  void fetch(request_number r) const {
    all_->fetch(r);
    tracks_.fetch(r);
  }
  /// Prefetches the requests that an instance reads when it is touched.
  void fetch_due(instance_id i, double until_s) const {
    instances_[i].show_due(until_s, [this](request_number r) { fetch(r); });
  }
  void settle(const ended_request& e, const instance_state& i);
  [[nodiscard]] double size_b(const request& r) const;
  [[nodiscard]] const service& service_of(const request& r) const { return (*services_)[r.service.index()]; }
  [[nodiscard]] double deadline_s(request_number r) const { return all_->arrival_s(r) + service_of((*all_)[r]).latency.value(); }
  [[nodiscard]] bool is_there(server_id s) const { return !knowledge_.has_failed(s) && !damage_.is_absent(s); }

  /// True if a time has come, within the tolerance.
  [[nodiscard]] bool has_come(double at_s, double now_s) const { return at_most(at_s, now_s, span_s_); }

  const edge_cloud* cloud_;
  const std::vector<service>* services_;
  any_service_time times_;  ///< for placement policies
  const request_stream* all_;
  serving_options options_;

  // Times below are on the run's own clock: 0 is the first arrival.
  double span_s_;   ///< shortest SLO, the scale of the tolerance
  double begin_s_;  ///< start of the period of the first event; not above 0
  double now_s_;
  std::size_t next_arrival_ = 0;
  min_queue<flight> flights_;
  double clock_s_ = 0;  ///< next event of the clock
  std::int64_t changes_ = 0;
  double looked_back_s_ = 0;  ///< time of the last change

  running_deployment instances_;
  ring_knowledge knowledge_;
  server_links links_;
  request_tracks tracks_;
  history_recorder recorder_;
  std::vector<fault_turn> turns_;
  std::size_t next_turn_ = 0;

  cloud_damage damage_;
  std::vector<std::pair<server_id, bool>> comers_and_goers_;  ///< servers that join (true) or leave with the next change
  ended_requests ended_;
  pending_request pending_;  ///< the request to handle now
};

}  // namespace hetplan::serve

#ifndef HETPLAN_SEPARATE
#include <hetplan/serve/serving_run.ipp>
#endif
