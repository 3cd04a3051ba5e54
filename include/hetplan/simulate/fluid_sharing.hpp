// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The network sharing that a network policy makes: fluids in tiers, max-min fair inside a tier.

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
#include <hetplan/core/version.hpp>
#include <hetplan/simulate/network_policy.hpp>
#include <hetplan/simulate/prescribed.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan::detail {

// A user's network sharing in a run: what it says is checked against what the network has.

/// What a sharing has said so far. All members throw invalid_model where it cannot be so.
class sharing_ledger {
 public:
  explicit sharing_ledger(const network& net) : net_(&net), load_(net.resources()) {}

  void start(double now_s, std::uint32_t number, const tasks::transfer& t, std::span<const resource_use> route) {
    flows_.start(now_s, number, t, route);
  }
  void set_capacity(std::size_t r, double capacity) { load_.set_capacity(r, capacity); }
  /// Is it another rate?
  bool set_rate(double now_s, std::uint32_t number, double rate, const rate_changed& changed);
  /// All rates together are within all capacities.
  void check_load(double now_s);
  /// A transfer ends: nothing of it is left.
  void end(double time_s, std::uint32_t number);
  [[noreturn]] static void refuse_next_end(double next_s);
  [[noreturn]] static void refuse_idleness(double time_s, int rounds);
  static void check_next_end(double time_s, double next_s);
  /// Nothing else will happen: has the sharing still something to do? A resource without capacity is not its fault.
  void check_nothing_left(double now_s) const;
  [[nodiscard]] double left(std::uint32_t number, double now_s) const { return flows_.find(number)->left(now_s); }

 private:
  const network* net_;
  transfers_under_way flows_;
  resource_load load_;
};

/// A user's sharing with all that a run asks, optional or not; it is told of nothing while it is asked.
///
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
  /// Throws invalid_model where transfers are under way that the sharing never ends.
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
  int idle_rounds_ = 0;  ///< ends that came to nothing, one after the other
};

// Max-min fair rates of the flows of a tier: progressive filling.

/// A flow, and the rate that a filling gives it.
struct fluid_flow {
  std::span<const resource_use> via;
  double remaining = 0, rate = 0, since = 0;
  double next_rate = -1;  ///< while filling: max_min::unset, collected, or fixed
  int tier = 0;
  std::uint32_t tag = 0, slot = 0;
  std::vector<std::uint32_t> at;  ///< by resource of its route: where it stands among the resource's flows
};
/// A resource with the flows that cross it.
struct fluid_resource {
  double capacity = 0;
  double total = 0;             ///< weight of all flows; exact where weights are whole numbers
  double left = 0, weight = 0;  ///< while filling: capacity not given out, weight of flows not fixed
  std::size_t pending = 0;      ///< while filling: flows not fixed
  std::vector<std::uint32_t> flows;
  std::uint32_t place = 0;  ///< among the resources with flows
  bool dirty = false, visited = false;
};

/// A resource that limits flows, and the rate that it leaves to them.
struct limit {
  std::uint32_t resource;
  double rate;
};

/// Fills what is left of resources with the rates of flows, all of one tier. Keeps its scratch between calls.
class max_min {
 public:
  static constexpr double unset = -1;

  /// Progressive filling: the resource with the smallest fair share fixes its flows; repeat.
  void fill(std::span<const std::uint32_t> tier, std::vector<fluid_flow>& flows, std::vector<fluid_resource>& resources);

  /// The resources that limited the flows of the last filling.
  [[nodiscard]] std::span<const limit> limits() const { return limits_; }

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();
  static constexpr double saturated = 1e-12;  ///< of a capacity: rounding, not bandwidth, for the tiers below

  /// A flow that has its tier to itself takes what is left on its route.
  void fill_alone(fluid_flow& x, std::vector<fluid_resource>& resources);

  std::vector<std::uint32_t> open_;
  std::vector<limit> limits_;
};

// Max-min fair rates of one tier, brought up to date where they change.

/// The level of each resource: the rate of the flows that it limits [B/s], infinite where it limits none. The rate of a flow is
/// the smallest level on its route.
///
/// A level is settled where it follows from the others': flows that another resource limits more take their part, the rest share what
/// is left. Where all are settled, every flow crosses a full resource on which nobody is faster: the rates are max-min fair, and there
/// are no others. So only resources that are not settled are worked on, smallest level first: no level depends on larger ones.
///
/// Complexity   of update: O(d log d) for a resource of d flows, each time a smaller level beside it changes. Nothing else is
///              looked at. Memory O(resources).
/// Determinism  equal levels in order of resources. The rates are those of max_min::fill but for rounding.
/// Source       the condition: Bertsekas and Gallager, "Data Networks", 2nd ed. 1992, sec. 6.5.2 (a bottleneck for every session);
///              the order of work is ours.
class max_min_levels {
 public:
  static constexpr double none = std::numeric_limits<double>::infinity();

  explicit max_min_levels(std::size_t resources) : level_(resources, none), next_(resources, none), seen_(resources, 0) {}

  /// A level that is known from elsewhere.
  void set(std::size_t r, double level) { level_[r] = next_[r] = level; }

  [[nodiscard]] double rate(const fluid_flow& x) const {
    double rate = none;
    for (const resource_use& u : x.via) rate = std::min(rate, level_[u.resource.index()]);
    return rate;
  }

  /// Settles all levels after changes at some resources, or gives up when that has taken more than `most` looks at a flow.
  /// Gives up: false, and the levels of all resources that flows connect with these are unknown.
  [[nodiscard]] bool update(std::span<const std::uint32_t> changed, const std::vector<fluid_flow>& flows,
                            const std::vector<fluid_resource>& resources, std::size_t most);

  /// The resources of which the last update may have changed flows; some more than once.
  [[nodiscard]] std::span<const std::uint32_t> reached() const { return reached_; }

 private:
  using entry = std::pair<double, std::uint32_t>;  ///< the smaller of the two levels of a resource that is not settled
  struct part {
    double rate, weight;
  };

  void look_at(std::uint32_t r, const std::vector<fluid_flow>& flows, const fluid_resource& s);
  [[nodiscard]] double level_beside_others(std::uint32_t r, const std::vector<fluid_flow>& flows, const fluid_resource& s);

  std::vector<double> level_, next_;  ///< by resource: as the others know it, and as it follows from theirs
  std::vector<entry> queue_;          ///< a heap, smallest first; what no longer holds is skipped
  std::vector<part> limited_;         ///< what flows take that others limit
  std::vector<std::uint32_t> reached_, beside_;
  std::vector<char> seen_;
  std::size_t looks_ = 0;
};

// Transfers as fluids: weighted max-min rates on shared resources, in tiers, brought up to date locally.

// The earliest of many times that change.

/// The ends of numbered flows [s]: as they are while these are few, else in a tournament, where a node has the earlier time of its two
/// children. Changes wait until somebody asks, and where many wait all is played again.
///
/// Complexity   O(1) for a change; for the earliest after k changes the smaller of O(k log flows) and O(flows); O(log flows) for each
///              that is due. Memory O(flows).
/// Determinism  flows that are due come in order of their numbers.
/// Source       textbook (tournament tree).
class end_times {
 public:
  static constexpr double never = std::numeric_limits<double>::infinity();

  /// One flow more, which never ends yet.
  void add() {
    if (++flows_ > leaves_) grow();
  }
  /// One flow less: the last takes the number of this one.
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
  /// Appends the flows that end by then, a finite time.
  void find_due(double time, std::vector<std::uint32_t>& due);

 private:
  static constexpr std::size_t few = 32;

  void play();
  void grow();
  void find_due_below(std::size_t node, double time, std::vector<std::uint32_t>& due) const;

  std::size_t flows_ = 0, leaves_ = 1;      ///< leaves: a power of two; those of no flow say never
  std::vector<double> node_{never, never};  ///< below node n are 2 n and 2 n + 1, the leaves last; node 0 is not used
  std::vector<std::uint32_t> changed_;      ///< where played: flows; the nodes above them are out of date
  bool known_ = true;                       ///< the earliest of all
  bool played_ = false;                     ///< the nodes between it and the leaves
};

// Very many flows of one rate, which wait for their ends in one heap.

/// A group of equal flows: they always have one rate. What each has moved since the group was made is the same for all, so a
/// flow ends when that reaches a mark of its own, and a change of the rate touches none of them.
///
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
  /// Takes the flows that end by then.
  void take_until(double time, std::vector<flow_id>& ended);

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();
  using mark = std::pair<double, flow_id>;

  [[nodiscard]] double moved_by(double now) const { return moved_ + rate_ * (now - since_); }
  [[nodiscard]] double end_of(double at) const { return rate_ > 0 ? since_ + std::max(0.0, at - moved_) / rate_ : never; }
  static bool later(const mark& a, const mark& b) { return a > b; }

  std::vector<mark> marks_;      ///< a heap, the next end on top
  std::vector<double> mark_of_;  ///< by flow
  double moved_ = 0, since_ = 0, rate_ = 0;
};

}  // namespace hetplan::detail

namespace hetplan {

/// Active flows and their rates. A flow at rate x uses weight * x of each resource on its route; rates are
/// max-min fair (equal rates, progressive filling) inside a tier, and a tier gets what smaller ones leave.
///
/// Where sharing has stopped, every flow has the peak rate of its route, whatever others do.
///
/// Flows keep their rate until something that can reach it over shared resources changes, and rates of other flows keep every bit.
///
/// Units        seconds, bytes, B/s.
/// Complexity   of a change: where 32 resources and more are in use, all of one tier, and few of them change, what its rates reach
///              (detail::max_min_levels). Else, and where that is most of the network, the size of the connected component times its
///              distinct rates (detail::max_min). Where a thousand flows and more all cross the resource that limits them, they have
///              one rate, and a change costs a logarithm (detail::flow_class). Ends: O(log flows) for each rate that changes
///              (detail::end_times).
/// Determinism  independent of anything but the order of calls. Which of these ways a rate was found tells in its last bits alone.
/// Source       max-min fairness by progressive filling (textbook); settled locally: see detail::max_min_levels.
class fluid_network {
 public:
  using flow_id = std::uint32_t;

  explicit fluid_network(std::span<const resource> resources);

  /// From now on nobody is in anybody's way. Call before the first flow starts.
  void stop_sharing() { shares_ = false; }

  /// Calls for changed rates are wanted for flows in a group of equal flows, too.
  void report_crowds() { reports_ = true; }

  /// Starts a flow now; its route has at least one resource, each once. The handle returns with its end.
  flow_id start(double now, double volume_bytes, std::span<const resource_use> via, int tier, std::uint32_t tag);

  /// Ends a flow, finished or not.
  void stop(flow_id f);

  void set_capacity(std::size_t r, double capacity);

  /// Brings the rates up to date; call once after all changes at one time. Calls changed(tag, rate) for
  /// every flow whose rate changed.
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

  /// The time of the next end at the present rates; infinite if none.
  [[nodiscard]] double next_end() { return crowded_ ? classes_.next_end() : ends_.earliest(); }

  /// Takes the flows that end by then and calls done(tag), in order of tags.
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
  /// Bytes that an active flow has not moved by now, which is no later than its end.
  [[nodiscard]] double left(flow_id f, double now) const;

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();
  static constexpr double unset = detail::max_min::unset, collected = -2;

  using flow = detail::fluid_flow;
  using state = detail::fluid_resource;

  void find_due(double time);
  void forget(flow_id f);

  // --- groups of equal flows (detail::flow_class) ---

  /// The rate of all flows where they cross one resource and none limits them more; else unset.
  [[nodiscard]] double common_rate() const;

  /// Sets the one rate of all flows; false: they have several.
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

  /// Few changes in a large network of one tier: sets the rates that they reach. False: nothing is set, all have to be filled.
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

  /// The flows and resources that a change of resource r can reach.
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

  static constexpr std::size_t least_crowd = 512;     ///< it comes together at twice as many
  static constexpr std::size_t least_large = 32;      ///< resources in use, where rates are settled locally
  static constexpr std::size_t least_quiet = 8;       ///< and in use for each that changed
  static constexpr std::size_t most_looks = 4;        ///< at each flow, then filling is faster
  static constexpr std::uint32_t longest_pause = 64;  ///< updates without trying again after looks in vain

  std::vector<state> resources_;
  std::vector<flow> flows_;
  bool shares_ = true, reports_ = false, crowded_ = false, one_tier_ = true, whole_weights_ = true;
  detail::flow_class classes_;
  detail::max_min_levels levels_;  ///< settled where all flows are of one tier, but in a crowd
  std::uint32_t pause_ = 0, next_pause_ = 1;
  std::vector<std::uint32_t> used_;  ///< resources with flows
  std::vector<flow_id> active_, free_, members_, finished_;
  std::vector<flow_id> fresh_;  ///< where nobody shares: started and without a rate yet
  detail::end_times ends_;      ///< beside active_
  std::vector<std::uint32_t> dirty_, component_;
  detail::max_min filler_;
};

/// A fluid_network whose tiers are the policy's. Refers to the policy.
template <network_policy Policy>
class fluid_sharing {
 public:
  /// @param tells_all  update tells every changed rate, those of very many equal transfers too, which costs their number.
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
  /// Bytes that a transfer under way has not moved by now.
  [[nodiscard]] double left(std::uint32_t number, double now_s) const { return fluid_.left(flow_of_[number], now_s); }

 private:
  const Policy& policy_;
  route_access access_;
  fluid_network fluid_;
  std::vector<fluid_network::flow_id> flow_of_;  ///< by number, of those under way
};

static_assert(check_network_sharing<fluid_sharing<fair_share>>());

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/simulate/fluid_sharing.ipp>
#endif
