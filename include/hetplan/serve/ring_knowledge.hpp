// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What servers know of each other during a run.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/pending_request.hpp>
#include <hetplan/serve/publications.hpp>
#include <hetplan/serve/ring_sync.hpp>
#include <hetplan/serve/running_deployment.hpp>
#include <hetplan/serve/serving_faults.hpp>

namespace HETPLAN_NAMESPACE::serve {

/// The rings with their faults, and what has been published on them.
///
/// Complexity  O(holders of the service in the ring) for all of them, O(log holders) for one that is drawn.
/// Source      EPARA, sections 3.2, 3.4 and 5.3.3; semantics, section 11 (what servers know of each other, faults).
class ring_knowledge {
 public:
  /// Without faults, what is remembered of publications is half as old.
  /// @param first_s  of the first publication, before all that happens.
  ring_knowledge(const edge_cloud& cloud, const std::vector<serving_fault>& faults, double first_s);

  [[nodiscard]] const ring_sync& rings() const { return rings_; }
  /// Of the next publication.
  [[nodiscard]] std::int64_t next_period() const { return next_; }
  [[nodiscard]] double next_publication_s() const { return first_s_ + static_cast<double>(next_) * period_s_; }

  /// Another deployment holds from the next publication on.
  void begin_deployment(const running_deployment& d);
  /// Goes on to the next period and publishes; `publish` is then called for each holder that is there.
  void open_period();
  void fetch(std::size_t holder) const { published_->fetch(holder); }
  void publish(std::size_t holder, server_id server, const holder_state& state);
  /// Leaves out periods before that time in which nothing changes, but for the last ones that are remembered.
  void skip_until(double next_s);

  void fail(server_id s);
  [[nodiscard]] bool has_failed(server_id s) const { return any_failed_ && failed_from_[s.index()] >= 0; }
  void set_absent(server_id s, bool absent) { rings_.set_out(s, absent || has_failed(s), next_); }
  void set_cut(server_id s, bool cut) { rings_.set_cut(s, cut, next_); }
  void set_wrong(server_id s, bool wrong) { wrong_[s.index()] += wrong ? 1 : -1; }

  /// See server_view::others. Good until the next call.
  [[nodiscard]] std::span<const known_server> known(const pending_request& r, const service_holders& holders);
  /// See server_view::other_at.
  [[nodiscard]] std::optional<server_at_share> at_share(const pending_request& r, const service_holders& holders, double share) const;

 private:
  /// The period whose publication of this holder the request's server knows, if the holder may be asked.
  [[nodiscard]] std::optional<std::int64_t> period_heard_of(const pending_request& r, const holder& h) const;
  [[nodiscard]] known_server what_is_known(server_id s, std::size_t holder, std::int64_t period) const;
  struct seen_holder {
    server_id server;
    std::size_t number;
    std::int64_t period;
  };
  [[nodiscard]] bool knows_that_out(server_id observer, server_id other) const;

  ring_sync rings_;
  double period_s_;
  double first_s_;     ///< of period 0
  std::int64_t kept_;  ///< publications of a holder
  std::int64_t next_ = 0;
  std::optional<publications> published_;
  std::vector<double> capacity_up_to_;     ///< by holder: of the holders of its ring and service up to this one, together
  std::vector<std::int64_t> failed_from_;  ///< by server: the first period that sees it; -1: it has not failed
  bool any_failed_ = false;
  std::vector<int> wrong_;  ///< by server: silent errors at a time
  std::vector<seen_holder> seen_;
  std::vector<known_server> known_;
};

}  // namespace HETPLAN_NAMESPACE::serve

#ifndef HETPLAN_COMPILED
#include <hetplan/serve/ring_knowledge.ipp>
#endif
