// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The simulator of requests, without the handler: it says who is to be handled next, and does what was decided.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/core/at_most.hpp>
#include <hetplan/serve/any_service_time.hpp>
#include <hetplan/serve/deployment.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/flight_queue.hpp>
#include <hetplan/serve/history_recorder.hpp>
#include <hetplan/serve/instance_state.hpp>
#include <hetplan/serve/pending_request.hpp>
#include <hetplan/serve/request_stream.hpp>
#include <hetplan/serve/request_tracks.hpp>
#include <hetplan/serve/ring_knowledge.hpp>
#include <hetplan/serve/ring_sync.hpp>
#include <hetplan/serve/running_deployment.hpp>
#include <hetplan/serve/server_links.hpp>
#include <hetplan/serve/service_history.hpp>
#include <hetplan/serve/service_holders.hpp>
#include <hetplan/serve/serving_options.hpp>

namespace HETPLAN_NAMESPACE::serve {

/// Plays requests through a deployment. Only what is in flight between servers, and what the clock brings (publications, faults,
/// changes), are events; instances are advanced when somebody looks at them, since nothing else can change them.
///
///   while (const auto* r = run.next()) run.carry_out(*r, <what somebody decides>);
///
/// Complexity  O(log in flight) a hand-over, O(log B) a request at its instance, O(holders) a publication; nothing grows with the number of
///             servers for a request.
/// Source      semantics, section 11.
class serving_run {
 public:
  /// Throws invalid_input: see validate of cloud, services, requests, deployment and faults. What it is given must outlive it.
  serving_run(const edge_cloud& cloud, const std::vector<service>& services, any_service_time times, const request_stream& requests,
              deployment first, const serving_options& options);
  // A temporary is gone at the end of the line.
  serving_run(const edge_cloud&& the_cloud_must_outlive_it, const std::vector<service>&, any_service_time, const request_stream&,
              deployment, const serving_options&) = delete;
  serving_run(const edge_cloud&, const std::vector<service>&& the_services_must_outlive_it, any_service_time, const request_stream&,
              deployment, const serving_options&) = delete;
  serving_run(const edge_cloud&, const std::vector<service>&, any_service_time, const request_stream&& the_requests_must_outlive_it,
              deployment, const serving_options&) = delete;

  /// The next request that is to be handled, after all that comes before it; good until the next call. None at the end.
  [[nodiscard]] const pending_request* next();
  /// Throws invalid_model where the decision is none: see request_handler.
  void carry_out(const pending_request& r, const decision& d);
  /// Ends the run: the history so far, complete if next() has said that nothing is left.
  [[nodiscard]] service_history finish();
  void stop(std::string reason) { recorder_.history().result = {outcome::stopped, std::move(reason)}; }

  [[nodiscard]] serving_progress progress() const { return {next_arrival_, all_->size(), seconds(now_s_), recorder_.credit()}; }

  // What a server_view shows.
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
  /// Fetches what the next arrivals will touch: with many servers it is not in a cache.
  void look_ahead() const;
  /// Where a flight has come to; the request, if it is to be handled now.
  [[nodiscard]] const pending_request* land(const flight& f);
  [[nodiscard]] const pending_request* handle(request_number number, bool enters = false);
  void end(request_number r, request_outcome o, double at_s, double credit = 0, double latency_s = -1);
  void serve(const pending_request& r, instance_id i);

  // The clock: what comes without a request.
  void set_clock();
  void play_clock();
  void skip_idle_periods(double until_s);
  [[nodiscard]] bool nothing_left();
  void publish();
  void apply(const serving_fault& f, bool ends);
  void change_deployment();
  [[nodiscard]] double next_change_s() const;
  [[nodiscard]] double next_fault_s() const;

  // Instances.
  void take_over(deployment next);
  void retire(instance_id i);
  void take_out(const std::vector<instance_id>& some);
  void send_back(instance_id i);
  /// Plays what happens to an instance until then.
  instance_state& touch(instance_id i, double until_s);
  void fetch(request_number r) const {
    all_->fetch(r);
    tracks_.fetch(r);
  }
  /// Fetches those whom an instance looks at when it is touched.
  void fetch_due(instance_id i, double until_s) const {
    instances_[i].show_due(until_s, [this](request_number r) { fetch(r); });
  }
  void settle(const ended_request& e, const instance_state& i);
  [[nodiscard]] double size_b(const request& r) const;
  [[nodiscard]] const service& service_of(const request& r) const { return (*services_)[r.service.index()]; }
  [[nodiscard]] double deadline_s(request_number r) const { return all_->arrival_s(r) + service_of((*all_)[r]).latency.value(); }
  [[nodiscard]] bool is_there(server_id s) const { return !knowledge_.has_failed(s) && !damage_.is_absent(s); }

  /// Has a time come at an instant?
  [[nodiscard]] bool has_come(double at_s, double now_s) const { return at_most(at_s, now_s, span_s_); }

  const edge_cloud* cloud_;
  const std::vector<service>* services_;
  any_service_time times_;  ///< for policies to ask
  const request_stream* all_;
  serving_options options_;

  // Times from here on are the run's own: 0 is the first arrival.
  double span_s_;   ///< the shortest SLO: the tolerance of an instant is a part of it
  double begin_s_;  ///< of the period in which the first of all things happens; not above 0
  double now_s_;
  std::size_t next_arrival_ = 0;
  flight_queue flights_;
  double clock_s_ = 0;  ///< of whatever comes next without a request
  std::int64_t changes_ = 0;
  double looked_back_s_ = 0;  ///< the last change

  running_deployment instances_;
  ring_knowledge knowledge_;
  server_links links_;
  request_tracks tracks_;
  history_recorder recorder_;
  std::vector<fault_turn> turns_;
  std::size_t next_turn_ = 0;

  cloud_damage damage_;
  std::vector<std::pair<server_id, bool>> comers_and_goers_;  ///< who is to join (true) or leave with the next change
  ended_requests ended_;
  pending_request pending_;  ///< the one that is to be handled now
};

}  // namespace HETPLAN_NAMESPACE::serve

#ifndef HETPLAN_COMPILED
#include <hetplan/serve/serving_run.ipp>
#endif
