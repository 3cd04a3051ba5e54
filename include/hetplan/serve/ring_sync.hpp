// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What servers publish along rings: the holders of services, and their states, which move by one server per period.

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/core/large_pages.hpp>
#include <hetplan/core/version.hpp>
#include <hetplan/serve/deployment.hpp>
#include <hetplan/serve/edge_cloud.hpp>

namespace hetplan::serve {

/// The total capacity of the instances of a service that a server leads, whatever happens to them.
struct holder_capacity {
  double per_s = 0;      ///< requests, or frames, a second at most
  double horizon_s = 0;  ///< averaging time of their throughput; 0: known at any time
};

/// What a server publishes of a service whose instances it leads.
struct holder_state {
  double done = 0;      ///< S: completed requests
  double rate = 0;      ///< frames per second of its streams
  double wait_s = 0;    ///< Q: expected wait of a new request; infinite: no instance is left
  double capacity = 0;  ///< p^: most requests, or frames, per second
};

/// What another server knows of a holder.
struct known_state {
  double whole = 0;  ///< c: by the deployment
  double capacity = 0;
  double idle = 0;  ///< p^ - p: capacity beside what it did; may be below 0
  double wait_s = 0;
  double age_s = 0;
};

/// The last publications of all holders of a deployment, stored once for all readers, by period and then by holder.
/// Complexity  O(holders x periods kept) memory; one read per query.
/// Source  EPARA, eq. 1 and section 3.4; semantics, section 11 (what servers know of each other).
class publications {
 public:
  /// Starts with `first`, the first published period of the deployment.
  publications(std::vector<holder_capacity> holders, std::int64_t first, std::int64_t periods_kept, double period_s)
      : holders_(std::move(holders)), first_(first), kept_(periods_kept > 1 ? periods_kept : 2), period_s_(period_s), last_(first),
        all_(holders_.size() * static_cast<std::size_t>(kept_)) {}

  /// Opens a later period in place of the oldest one. In skipped periods nothing was done.
  void open(std::int64_t period) {
    if (is_open_) left_out_ = period - last_ - 1;
    has_before_ = std::exchange(is_open_, true);
    last_slot_ = (last_slot_ + 1) % kept_;
    last_ = period;
  }

  /// Publishes a state or, as a silent error, an idle holder; the true state goes on beneath.
  void publish(std::size_t holder, const holder_state& s, bool wrongly) {
    double does = s.rate;
    if (const double horizon_s = holders_[holder].horizon_s; horizon_s > 0 && has_before_) {
      const auto& before = all_[index(last_ - 1, holder)];
      const double left = horizon_s / (horizon_s + period_s_);
      const double did = left_out_ > 0 ? before.does * std::pow(left, static_cast<double>(left_out_)) : before.does;
      does = did * left + (s.done - before.done) / (horizon_s + period_s_);
    }
    all_[index(last_, holder)] = {s.done, does, wrongly ? says_it_is_idle : s.wait_s, s.capacity};
  }

  /// Prefetches where a holder publishes next, and its previous publication.
  void fetch(std::size_t holder) const { prefetch(&all_[index(last_, holder)]); }
  /// Prefetches what `known` reads.
  void fetch(std::size_t holder, std::int64_t j) const {
    if (j >= first_) prefetch(&all_[index(j, holder)]);
  }
  /// Returns what the publication of period j tells in period k. Requires k - j below the periods kept.
  [[nodiscard]] known_state known(std::size_t holder, std::int64_t j, std::int64_t k) const {
    const double age_s = static_cast<double>(k - j) * period_s_;
    const double whole = holders_[holder].per_s;
    if (j < first_) return {whole, whole, whole, 0, age_s};
    const auto& then = all_[index(j, holder)];
    if (then.wait_s == says_it_is_idle) return {whole, whole, whole, 0, age_s};
    return {whole, then.capacity, then.capacity - then.does, then.wait_s, age_s};
  }

 private:
  static constexpr double says_it_is_idle = -1;
  struct publication {
    double done;
    double does;  ///< p: requests, or frames, per second
    double wait_s;
    double capacity;
  };

  [[nodiscard]] std::size_t index(std::int64_t period, std::size_t holder) const {
    const auto slot = last_slot_ - (last_ - period);
    return static_cast<std::size_t>(slot < 0 ? slot + kept_ : slot) * holders_.size() + holder;
  }

  std::vector<holder_capacity> holders_;
  std::int64_t first_;
  std::int64_t kept_;
  double period_s_;
  bool is_open_ = false, has_before_ = false;  ///< true if a period has been opened, and one before it
  std::int64_t last_;                          ///< the open period
  std::int64_t left_out_ = 0;                  ///< periods skipped before it
  std::int64_t last_slot_ = 0;                 ///< slot of the open period; earlier ones lie before it, cyclically
  std::vector<publication, large_pages<publication>> all_;
};

/// The distances along a cloud's rings over time, which tell the publication that one server knows of another, without copies.
/// Complexity  O(N) memory and O(1) per query; with faults O(changes of a ring) more.
/// Source  EPARA, section 3.4 (ring, groups, servers that do not answer); semantics, section 11.
class ring_sync {
 public:
  explicit ring_sync(const edge_cloud& cloud);

  /// The servers of a ring: [first, first + count).
  struct ring {
    std::int32_t first = 0;
    std::int32_t count = 0;
  };
  [[nodiscard]] std::size_t rings() const { return rings_.size(); }
  [[nodiscard]] const ring& operator[](std::size_t r) const { return rings_[r].where; }
  [[nodiscard]] std::size_t ring_of(server_id s) const { return static_cast<std::size_t>(s.value) / group_; }

  /// Takes a server out from a period on, or in again; periods ascend.
  void set_out(server_id s, bool out, std::int64_t period);
  /// Cuts the gap behind a server from a period on, or closes it again.
  void set_cut(server_id s, bool cut, std::int64_t period);

  /// Returns the period of the publication of `other` that `observer` knows in period k; empty if it never heard one, or if that is
  /// older than max_age. Negative: before the first one.
  [[nodiscard]] std::optional<std::int64_t> known_period(server_id observer, server_id other, std::int64_t k) const {
    const auto& r = rings_[ring_of(observer)];
    if (!r.then.empty()) {
      const auto j = known_with_faults(r, observer, other, k);
      return j != never_heard ? std::optional(j) : std::nullopt;
    }
    const auto apart = observer.value < other.value ? other.value - observer.value : observer.value - other.value;
    const auto d = apart < r.where.count - apart ? apart : r.where.count - apart;
    if (d > max_age(r)) return std::nullopt;
    return k - d;
  }
  /// True if a server is in its ring in a period.
  [[nodiscard]] bool is_in(server_id s, std::int64_t k) const { return rings_[ring_of(s)].then.empty() || distance(s, s, k).has_value(); }
  /// Returns the hops between two servers in a period; empty without a way.
  [[nodiscard]] std::optional<std::int64_t> distance(server_id a, server_id b, std::int64_t k) const;

  /// Returns the periods to remember: the oldest valid one, and all since.
  [[nodiscard]] std::int64_t history() const { return history_; }
  /// Returns the same for whole rings, in which no way is longer than half.
  [[nodiscard]] std::int64_t history_when_whole() const { return history_when_whole_; }

 private:
  /// The topology of a ring from a period on.
  struct topology {
    std::int64_t from = 0;
    std::vector<int> out, cut;             ///< by position: 1 if out; number of current cuts
    std::vector<std::int32_t> rank, cuts;  ///< servers in the ring, and cut gaps, before a position
  };
  struct ring_state {
    ring where;
    std::vector<topology> then;  ///< ascending; empty without changes
  };

  [[nodiscard]] std::int64_t max_age(const ring_state& r) const { return max_age_ > 0 ? max_age_ : r.where.count; }
  [[nodiscard]] topology& at(ring_state& r, std::int64_t period);
  static void count(topology& t);
  [[nodiscard]] static std::optional<std::int64_t> distance(const topology& t, std::int32_t a, std::int32_t b);
  static constexpr std::int64_t never_heard = std::numeric_limits<std::int64_t>::min();
  [[nodiscard]] std::int64_t known_with_faults(const ring_state& r, server_id observer, server_id other, std::int64_t k) const;

  std::size_t group_;
  std::int64_t max_age_;
  std::int64_t history_ = 0;
  std::int64_t history_when_whole_ = 0;
  std::vector<ring_state> rings_;
};

/// The place of an instance relative to a server, in order of preference.
enum class standing : std::uint8_t { local, spanning, device };
inline constexpr std::array<standing, 3> standings = {standing::local, standing::spanning, standing::device};

/// A server that leads instances of a service.
struct holder {
  server_id server;
  service_id what;
  std::uint32_t first = 0;  ///< range of its instances: see service_holders::led
  std::uint32_t last = 0;
};

/// An index of a deployment: instances by server and service, and holders of each service by ring. No query scans servers.
/// Complexity  O(servers x services + instances) memory, O(1) per query.
/// Source  EPARA, section 3.2 (in which order a server serves itself); the index is ours.
class service_holders {
 public:
  /// `ids[i]` is the id of instance i of the deployment.
  service_holders(const deployment& d, std::span<const instance_id> ids, std::size_t servers, std::size_t services, const ring_sync& rings);

  /// Returns the instances of a service that a server can use itself, in the order of the deployment.
  [[nodiscard]] std::span<const instance_id> own(server_id s, service_id l, standing where) const {
    const auto key = (s.index() * services_ + l.index()) * 3 + static_cast<std::size_t>(where);
    return {own_.data() + own_first_[key], own_.data() + own_first_[key + 1]};
  }
  /// Prefetches what `own` reads, in two steps, some time before.
  void fetch_places(server_id s, service_id l) const { prefetch(&own_first_[(s.index() * services_ + l.index()) * 3]); }
  void fetch_ids(server_id s, service_id l) const { prefetch(own_.data() + own_first_[(s.index() * services_ + l.index()) * 3]); }
  /// Returns the servers of a ring that lead instances of a service, by position.
  [[nodiscard]] std::span<const holder> holders(std::size_t ring, service_id l) const {
    const auto key = ring * services_ + l.index();
    return {holders_.data() + holders_first_[key], holders_.data() + holders_first_[key + 1]};
  }
  [[nodiscard]] std::span<const holder> holders() const { return holders_; }
  /// Returns the numbers of all holders in the order of their first instances, the fastest order to visit them.
  [[nodiscard]] std::span<const std::uint32_t> in_order_of_instances() const { return order_; }
  [[nodiscard]] std::size_t number(const holder& h) const { return static_cast<std::size_t>(&h - holders_.data()); }
  [[nodiscard]] std::span<const instance_id> led(const holder& h) const { return {led_.data() + h.first, led_.data() + h.last}; }

 private:
  std::size_t services_;
  std::vector<std::uint32_t> own_first_, holders_first_;
  std::vector<instance_id> own_, led_;
  std::vector<holder> holders_;
  std::vector<std::uint32_t> order_;
};

}  // namespace hetplan::serve

#ifndef HETPLAN_SEPARATE
#include <hetplan/serve/ring_sync.ipp>
#endif
