// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Network sharing of a network policy: transfers as fluids in tiers, with max-min fair rates within a tier.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/cluster/network.hpp>
#include <hetplan/cluster/network_sharing.hpp>
#include <hetplan/core/min_queue.hpp>
#include <hetplan/core/version.hpp>
#include <hetplan/simulate/prescribed.hpp>
#include <hetplan/simulate/simulation.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan::detail {

/// Record of what a sharing has answered. All members throw invalid_model for an answer that contradicts the network.
class sharing_ledger {
 public:
  explicit sharing_ledger(const network& net) : net_(&net), load_(net.resources()) {}

  void start(double now_s, std::uint32_t number, const tasks::transfer& t, std::span<const resource_use> route) {
    flows_.start(now_s, number, t, route);
  }
  void set_capacity(std::size_t r, double capacity) { load_.set_capacity(r, capacity); }
  /// Records a rate. Returns true if it is a new one.
  bool set_rate(double now_s, std::uint32_t number, double rate, const rate_changed& changed);
  /// Checks that all rates together are within all capacities.
  void check_load(double now_s);
  /// Ends a transfer, of which nothing may be left.
  void end(double time_s, std::uint32_t number);
  [[noreturn]] static void refuse_next_end(double next_s);
  [[noreturn]] static void refuse_idleness(double time_s, int rounds);
  static void check_next_end(double time_s, double next_s);
  /// Checks, when no event is left, that no transfer is either. Transfers on resources without capacity are exempt.
  void check_nothing_left(double now_s) const;
  [[nodiscard]] double left(std::uint32_t number, double now_s) const { return flows_.find(number)->left(now_s); }

 private:
  const network* net_;
  transfers_under_way flows_;
  resource_load load_;
};

/// A user's sharing with its answers checked and its optional members filled in. Ends are passed on after its call returns, so that a
/// sharing is never called from within a call.
/// Complexity  on top of the sharing's, the transfers under way and their resources per update.
template <network_sharing Sharing>
class guarded_sharing {
 public:
  guarded_sharing(const Sharing& sharing, const network& net) : sharing_(sharing), ledger_(net) {}

  [[nodiscard]] route_access access() const { return access_of(sharing_); }
  void start(double now_s, std::uint32_t number, const tasks::transfer& t, const std::span<const resource_use>& route) {
    ledger_.start(now_s, number, t, route);
    sharing_.start(now_s, number, t, route);
  }
  void set_capacity(std::size_t r, double capacity) {
    ledger_.set_capacity(r, capacity);
    if constexpr (follows_capacities<Sharing>) sharing_.set_capacity(r, capacity);
  }
  void update(double now_s, const rate_changed& changed) {
    const rate_changed noted = [&](std::uint32_t number, double rate) {
      if (ledger_.set_rate(now_s, number, rate, changed)) idle_rounds_ = 0;
    };
    sharing_.update(now_s, noted);
    ledger_.check_load(now_s);
  }
  [[nodiscard]] double next_end() {
    const double next = sharing_.next_end();
    if (next >= 0) return next;
    sharing_ledger::refuse_next_end(next);
  }
  /// Throws invalid_model if transfers are under way that the sharing never ends.
  void check_nothing_left(double now_s) const { ledger_.check_nothing_left(now_s); }
  void finish_until(double time_s, const transfer_finished& finished) {
    std::vector<std::uint32_t> ended;
    const transfer_finished noted = [&](std::uint32_t number) {
      ledger_.end(time_s, number);
      ended.push_back(number);
    };
    sharing_.finish_until(time_s, noted);
    ledger_.check_next_end(time_s, sharing_.next_end());
    idle_rounds_ = ended.empty() ? idle_rounds_ + 1 : 0;
    if (idle_rounds_ > most_idle_rounds) sharing_ledger::refuse_idleness(time_s, most_idle_rounds);
    std::sort(ended.begin(), ended.end());
    for (const std::uint32_t number : ended) finished(number);
  }
  [[nodiscard]] double left(std::uint32_t number, double now_s) const { return ledger_.left(number, now_s); }

 private:
  static constexpr int most_idle_rounds = 100'000;

  Sharing sharing_;
  sharing_ledger ledger_;
  int idle_rounds_ = 0;  ///< consecutive ends without an effect
};

struct fluid_flow {
  std::span<const resource_use> via;
  double remaining = 0, rate = 0, since = 0;
  double next_rate = -1;  ///< during filling: max_min::unset, collected, or the fixed rate
  int tier = 0;
  std::uint32_t tag = 0, slot = 0;
  std::vector<std::uint32_t> at;  ///< by resource of its route: index among the resource's flows
};
struct fluid_resource {
  double capacity = 0;
  double total = 0;             ///< weight of all flows; exact for integral weights
  double left = 0, weight = 0;  ///< during filling: free capacity, and weight of flows not fixed
  std::size_t pending = 0;      ///< during filling: number of flows not fixed
  std::vector<std::uint32_t> flows;
  std::uint32_t place = 0;  ///< index among the resources with flows
  bool dirty = false, visited = false;
};

/// A resource that limits flows, and the rate of these flows.
struct limit {
  std::uint32_t resource;
  double rate;
};

/// Max-min fair rates of the flows of one tier in the capacity that smaller tiers leave. Buffers are kept between calls.
class max_min {
 public:
  static constexpr double unset = -1;

  /// Repeats progressive filling: the resource with the smallest fair share fixes its flows.
  void fill(std::span<const std::uint32_t> tier, std::vector<fluid_flow>& flows, std::vector<fluid_resource>& resources);

  /// Returns the resources that limited flows in the last filling.
  [[nodiscard]] std::span<const limit> limits() const { return limits_; }

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();
  static constexpr double saturated = 1e-12;  ///< relative to a capacity: less is rounding, not bandwidth for the tiers below

  /// Gives the only flow of a tier what is left on its route.
  void fill_alone(fluid_flow& x, std::vector<fluid_resource>& resources);

  std::vector<std::uint32_t> open_;
  std::vector<limit> limits_;
};

/// Max-min fair rates of one tier by the level of each resource: the rate of the flows that it limits [B/s], infinite if it limits none. A
/// flow's rate is the smallest level on its route.
///
/// A level is settled if it follows from the others': flows that another resource limits more take their part, and the rest share what is
/// left. If all levels are settled, every flow crosses a full resource on which no flow is faster: the rates are max-min fair, and unique.
/// So only resources that are not settled are processed, smallest level first, since no level depends on larger ones.
///
/// Complexity   of update: O(d log d) for a resource of d flows, each time a smaller level beside it changes. Memory O(resources).
/// Determinism  equal levels in order of resources. Rates equal those of max_min::fill up to rounding.
/// Source       the condition: Bertsekas and Gallager, "Data Networks", 2nd ed. 1992, sec. 6.5.2 (a bottleneck for every session); the
///              order of processing is ours.
class max_min_levels {
 public:
  static constexpr double none = std::numeric_limits<double>::infinity();

  explicit max_min_levels(std::size_t resources) : level_(resources, none), next_(resources, none), seen_(resources, 0) {}

  /// Sets a level that max_min has found.
  void set(std::size_t r, double level) { level_[r] = next_[r] = level; }

  [[nodiscard]] double rate(const fluid_flow& x) const {
    double rate = none;
    for (const resource_use& u : x.via) rate = std::min(rate, level_[u.resource.index()]);
    return rate;
  }

  /// Settles all levels after changes at some resources. Returns false if that takes more than `most` visits of flows; the levels of all
  /// resources connected with the changed ones are then unknown.
  [[nodiscard]] bool update(std::span<const std::uint32_t> changed, const std::vector<fluid_flow>& flows,
                            const std::vector<fluid_resource>& resources, std::size_t most);

  /// Returns the resources whose flows the last update may have changed; some more than once.
  [[nodiscard]] std::span<const std::uint32_t> reached() const { return reached_; }

 private:
  using entry = std::pair<double, std::uint32_t>;  ///< the smaller of an unsettled resource's two levels, and the resource
  struct part {
    double rate, weight;
  };

  void look_at(std::uint32_t r, const std::vector<fluid_flow>& flows, const fluid_resource& s);
  [[nodiscard]] double level_beside_others(std::uint32_t r, const std::vector<fluid_flow>& flows, const fluid_resource& s);

  std::vector<double> level_, next_;  ///< by resource: level that the others use, and level that follows from theirs
  min_queue<entry> queue_;            ///< outdated entries are skipped
  std::vector<part> limited_;         ///< rates and weights of flows that other resources limit
  std::vector<std::uint32_t> reached_, beside_;
  std::vector<char> seen_;
  std::size_t looks_ = 0;
};

/// End times of numbered flows [s] and their minimum. Few flows are scanned; many are in a tournament tree, whose nodes hold the earlier
/// time of two children. Changes are applied when the minimum is needed; if many are pending, the tree is rebuilt.
///
/// Complexity   O(1) for a change; for the earliest after k changes the smaller of O(k log flows) and O(flows); O(log flows) for each flow
///              that is due. Memory O(flows).
/// Determinism  flows that are due come in order of their numbers.
/// Source       textbook (tournament tree).
class end_times {
 public:
  static constexpr double never = std::numeric_limits<double>::infinity();

  /// Adds a flow without an end.
  void add() {
    if (++flows_ > leaves_) grow();
  }
  /// Removes a flow; the last one takes its number.
  void remove(std::uint32_t flow) {
    set(flow, node_[leaves_ + flows_ - 1]);
    set(static_cast<std::uint32_t>(flows_ - 1), never);
    --flows_;
  }
  void set(std::uint32_t flow, double time) {
    node_[leaves_ + flow] = time;
    known_ = false;
    if (played_) changed_.push_back(flow);
  }
  [[nodiscard]] double earliest() {
    if (!known_) play();
    return node_[1];
  }
  /// Appends to `due` the flows that end by `time`, which is finite.
  void find_due(double time, std::vector<std::uint32_t>& due);

 private:
  static constexpr std::size_t few = 32;

  void play();
  void grow();
  void find_due_below(std::size_t node, double time, std::vector<std::uint32_t>& due) const;

  std::size_t flows_ = 0, leaves_ = 1;      ///< leaves: a power of two; unused ones are `never`
  std::vector<double> node_{never, never};  ///< node n has children 2 n and 2 n + 1, leaves last; node 0 is unused
  std::vector<std::uint32_t> changed_;      ///< if played: flows whose ancestors are outdated
  bool known_ = true;                       ///< true if the minimum is up to date
  bool played_ = false;                     ///< true if the tree's inner nodes are in use
};

/// A class of flows that always have the same rate. Since the class began, all have moved equally many bytes, so a flow ends when that
/// number reaches a mark of its own, and a change of the rate touches no flow.
/// Complexity  O(log) per flow, O(1) per change of rate.
class flow_class {
 public:
  using flow_id = std::uint32_t;

  [[nodiscard]] double rate() const { return rate_; }
  void begin(double now);
  void add(double now, flow_id f, double volume);
  void remove(flow_id f);
  void set_rate(double now, double rate);
  [[nodiscard]] double left(flow_id f, double now) const { return std::max(0.0, mark_of_[f] - moved_by(now)); }
  [[nodiscard]] double next_end() const { return marks_.empty() ? never : end_of(marks_.front().first); }
  /// Moves the flows that end by `time` to `ended`.
  void take_until(double time, std::vector<flow_id>& ended);

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();
  using mark = std::pair<double, flow_id>;

  [[nodiscard]] double moved_by(double now) const { return moved_ + rate_ * (now - since_); }
  [[nodiscard]] double end_of(double at) const { return rate_ > 0 ? since_ + std::max(0.0, at - moved_) / rate_ : never; }
  static bool later(const mark& a, const mark& b) { return a > b; }

  std::vector<mark> marks_;      ///< heap, the next end on top
  std::vector<double> mark_of_;  ///< by flow
  double moved_ = 0, since_ = 0, rate_ = 0;
};

}  // namespace hetplan::detail

namespace hetplan {

/// Active flows and their rates. A flow at rate x uses weight * x of each resource on its route. Rates are max-min fair (equal rates,
/// progressive filling) within a tier, and a tier gets what smaller ones leave. Without sharing every flow has its route's peak rate.
///
/// A flow keeps its rate until a change reaches it over shared resources; rates of other flows keep every bit.
///
/// Units        seconds, bytes, B/s.
/// Complexity   of a change: if at least 32 resources are in use, all flows are of one tier and few resources change, the part that the
///              change reaches (detail::max_min_levels). Otherwise, and if that is most of the network, the size of the connected
///              component times its distinct rates (detail::max_min). If at least a thousand flows all cross the resource that limits
///              them, they have one rate, and a change costs a logarithm (detail::flow_class). Ends: O(log flows) for each rate that
///              changes (detail::end_times).
/// Determinism  depends on nothing but the order of calls. The choice among these methods shows in a rate's last bits only.
/// Source       max-min fairness by progressive filling (textbook); settled locally: see detail::max_min_levels.
class fluid_network {
 public:
  using flow_id = std::uint32_t;

  explicit fluid_network(std::span<const resource> resources);

  /// Turns off contention. Call before the first flow starts.
  void stop_sharing() { shares_ = false; }

  /// Makes update report changed rates of flows in a flow_class, too.
  void report_crowds() { reports_ = true; }

  /// Starts a flow now. Its route has at least one resource, each once. The handle is valid until the flow ends.
  flow_id start(double now, double volume_bytes, std::span<const resource_use> via, int tier, std::uint32_t tag);

  /// Ends a flow, finished or not.
  void stop(flow_id f);

  void set_capacity(std::size_t r, double capacity);

  /// Updates the rates after all changes at one time. Calls changed(tag, rate) for every flow whose rate changed.
  template <class Changed>
  void update(double now, Changed&& changed) {
    if (!shares_) {
      for (const flow_id f : dirty_.empty() ? fresh_ : active_) set_rate(f, peak_rate(flows_[f]), now, changed);
      fresh_.clear();
      forget_changes();
      return;
    }
    if (active_.size() >= least_crowd && go_together(now, changed)) return forget_changes();
    if (crowded_) scatter(now);
    if (settle(now, changed)) return forget_changes();
    for (const std::uint32_t r : dirty_) {
      if (resources_[r].dirty) collect(r);
      if (!component_.empty()) fill(now, changed);
    }
    dirty_.clear();
  }

  /// Returns the next end at current rates, infinite if there is none.
  [[nodiscard]] double next_end() { return crowded_ ? classes_.next_end() : ends_.earliest(); }

  /// Ends the flows that are due by then and calls done(tag), in order of tags.
  template <class Done>
  void finish_until(double time, Done&& done) {
    finished_.clear();
    if (crowded_) classes_.take_until(time, finished_);
    else find_due(time);
    if (finished_.size() > 1) {
      std::sort(finished_.begin(), finished_.end(), [&](flow_id a, flow_id b) { return flows_[a].tag < flows_[b].tag; });
    }
    for (const flow_id f : finished_) {
      const std::uint32_t tag = flows_[f].tag;
      forget(f);
      done(tag);
    }
  }

  [[nodiscard]] std::size_t active() const { return active_.size(); }
  [[nodiscard]] double rate(flow_id f) const { return crowded_ ? classes_.rate() : flows_[f].rate; }
  /// Returns the bytes that an active flow has still to move at a time no later than its end.
  [[nodiscard]] double left(flow_id f, double now) const;

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();
  static constexpr double unset = detail::max_min::unset, collected = -2;

  using flow = detail::fluid_flow;
  using state = detail::fluid_resource;

  void find_due(double time);
  void forget(flow_id f);

  // --- all flows in one flow_class ---

  /// Returns the rate of all flows if one resource limits them all, else `unset`.
  [[nodiscard]] double common_rate() const;

  /// Sets one rate for all flows. Returns false if they have several.
  template <class Changed>
  bool go_together(double now, Changed&& changed) {
    const double rate = common_rate();
    if (rate == unset || (!crowded_ && active_.size() < 2 * least_crowd)) return false;
    if (!crowded_) {
      classes_.begin(now);
      for (const flow_id f : active_) classes_.add(now, f, left(f, now));
      crowded_ = true;
    }
    classes_.set_rate(now, rate);
    for (std::size_t i = 0; i < active_.size() && reports_ && !dirty_.empty(); ++i) {
      flow& x = flows_[active_[i]];
      if (x.rate == rate) continue;
      x.rate = rate;
      changed(x.tag, rate);
    }
    return true;
  }
  void scatter(double now);

  void touch(std::size_t r);

  /// Updates rates locally after few changes in a large network of one tier. Returns false if nothing was set and all must be filled.
  template <class Changed>
  bool settle(double now, Changed&& changed) {
    if (!one_tier_ || used_.size() < least_large || dirty_.size() * least_quiet > used_.size()) return false;
    if (pause_ > 0) {
      --pause_;
      return false;
    }
    if (!levels_.update(dirty_, flows_, resources_, most_looks * active_.size())) {
      pause_ = next_pause_ = std::min(2 * next_pause_, longest_pause);
      return false;
    }
    next_pause_ = 1;
    for (const std::uint32_t r : levels_.reached()) {
      for (const flow_id f : resources_[r].flows) set_rate(f, levels_.rate(flows_[f]), now, changed);
    }
    return true;
  }

  /// Collects the flows and resources that a change of resource r can reach.
  void collect(std::size_t r);

  template <class Changed>
  void fill(double now, Changed&& changed) {
    for (const std::uint32_t c : component_) {
      resources_[c].left = resources_[c].capacity;
      levels_.set(c, never);
    }
    for (std::size_t begin = 0; begin < members_.size();) {
      std::size_t end = begin;
      while (end < members_.size() && flows_[members_[end]].tier == flows_[members_[begin]].tier) ++end;
      filler_.fill(std::span(members_).subspan(begin, end - begin), flows_, resources_);
      for (const detail::limit& l : filler_.limits()) levels_.set(l.resource, l.rate);
      begin = end;
    }
    for (const flow_id f : members_) {
      const double rate = flows_[f].next_rate;
      flows_[f].next_rate = unset;
      set_rate(f, rate, now, changed);
    }
    component_.clear();
  }

  template <class Changed>
  void set_rate(flow_id f, double rate, double now, Changed&& changed) {
    flow& x = flows_[f];
    if (rate == x.rate) return;
    x.remaining = std::max(0.0, x.remaining - x.rate * (now - x.since));
    x.since = now;
    x.rate = rate;
    ends_.set(x.slot, rate > 0 ? now + x.remaining / rate : never);
    changed(x.tag, rate);
  }

  [[nodiscard]] double peak_rate(const flow& x) const;

  void forget_changes();

  static constexpr std::size_t least_crowd = 512;     ///< flows in a flow_class; twice as many to begin one
  static constexpr std::size_t least_large = 32;      ///< resources in use, for local updates
  static constexpr std::size_t least_quiet = 8;       ///< resources in use for each that changed, for local updates
  static constexpr std::size_t most_looks = 4;        ///< visits of each flow; beyond that, filling is faster
  static constexpr std::uint32_t longest_pause = 64;  ///< updates without a new attempt after failures

  std::vector<state> resources_;
  std::vector<flow> flows_;
  bool shares_ = true, reports_ = false, crowded_ = false, one_tier_ = true, whole_weights_ = true;
  detail::flow_class classes_;
  detail::max_min_levels levels_;  ///< settled if all flows are of one tier and not in classes_
  std::uint32_t pause_ = 0, next_pause_ = 1;
  std::vector<std::uint32_t> used_;  ///< resources with flows
  std::vector<flow_id> active_, free_, members_, finished_;
  std::vector<flow_id> fresh_;  ///< without sharing: flows that have no rate yet
  detail::end_times ends_;      ///< parallel to active_
  std::vector<std::uint32_t> dirty_, component_;
  detail::max_min filler_;
};

/// Network sharing of a policy: a fluid_network with the policy's tiers. The policy must outlive it.
template <network_policy Policy>
class fluid_sharing {
 public:
  /// @param tells_all  true: update reports every changed rate, also those of very many equal transfers, at a cost of their number.
  fluid_sharing(const network& net, const Policy& policy, bool tells_all = true)
      : policy_(policy), access_(checked_access(policy.access(), "network policy")), fluid_(net.resources()) {
    if (access_ == route_access::unlimited) fluid_.stop_sharing();
    if (tells_all) fluid_.report_crowds();
  }

  [[nodiscard]] route_access access() const { return access_; }
  void start(double now_s, std::uint32_t number, const tasks::transfer& t, std::span<const resource_use> route) {
    if (flow_of_.size() <= number) flow_of_.resize(number + 1);
    flow_of_[number] = fluid_.start(now_s, t.volume_bytes, route, policy_.tier(t), number);
  }
  void set_capacity(std::size_t r, double capacity) { fluid_.set_capacity(r, capacity); }
  template <class Changed>
  void update(double now_s, Changed&& changed) {
    fluid_.update(now_s, changed);
  }
  [[nodiscard]] double next_end() { return fluid_.next_end(); }
  template <class Finished>
  void finish_until(double time_s, Finished&& finished) {
    fluid_.finish_until(time_s, finished);
  }
  [[nodiscard]] double left(std::uint32_t number, double now_s) const { return fluid_.left(flow_of_[number], now_s); }

 private:
  const Policy& policy_;
  route_access access_;
  fluid_network fluid_;
  std::vector<fluid_network::flow_id> flow_of_;  ///< by number; valid for transfers under way
};

static_assert(check_network_sharing<fluid_sharing<fair_share>>());

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/simulate/fluid_sharing.ipp>
#endif
