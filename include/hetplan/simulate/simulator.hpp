// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The simulator, judge of all plans: runs a task graph on a network, event by event.

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <queue>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <hetplan/cluster/network_sharing.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/core/keyed.hpp>
#include <hetplan/core/min_queue.hpp>
#include <hetplan/core/observer.hpp>
#include <hetplan/simulate/fluid_sharing.hpp>
#include <hetplan/simulate/prescribed.hpp>
#include <hetplan/simulate/simulation.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan::detail {

inline constexpr tasks::node_id no_task = ~tasks::node_id{0};

/// A pending event. The queue gives the earliest first, ends before starts.
struct event {
  enum kind_type : std::uint8_t { capacity, speed, compute_end, release, latency_end, transfer_end };
  double at;
  kind_type kind;
  std::uint32_t what;
  std::uint32_t version;
  friend bool operator>(const event& a, const event& b) { return std::tie(a.at, a.kind, a.what) > std::tie(b.at, b.kind, b.what); }
};
struct device_state {
  std::size_t next = 0;  ///< position in its order
  tasks::node_id running = no_task;
  std::uint32_t version = 0;  ///< of its pending end; a change of speed makes earlier ends void
  double speed = 1;
  double work_left_s = 0, since_s = 0;
  double held_bytes = 0;
};

/// Background transfers and their routes, in the form that policies see.
struct background_traffic {
  std::vector<tasks::transfer> transfers;
  std::vector<std::span<const resource_use>> routes;

  background_traffic(const simulator_options& options, const network& net) {
    for (const background_transfer& b : options.background) {
      transfers.push_back(
          {.from = b.from, .to = b.to, .priority = b.priority, .volume_bytes = b.volume.value(), .release_s = b.release.value()});
      routes.push_back(net.find(b.from, b.to)->via);
    }
  }
};

/// Turn of transfers that wait for the same ports or resources, smaller first. Reductions have no microbatch and come last. Of a
/// microbatch's gathers and scatters, earlier units come first, gathers before scatters.  Source: semantics, section 6 (`exclusive`).
class transfer_order {
 public:
  explicit transfer_order(const tasks::task_graph& g) : g_(&g) {}
  [[nodiscard]] auto key(std::uint32_t i) const {
    const tasks::transfer& t = g_->transfers[i];
    const bool reduction = t.kind == transfer_kind::sync;
    return std::tuple(t.priority, reduction, reduction ? 0 : t.microbatch, t.unit, t.kind == transfer_kind::scatter, t.from_stage, t.from,
                      t.pass, t.to_stage, t.to_position, i);
  }
  [[nodiscard]] bool before(std::uint32_t a, std::uint32_t b) const { return key(a) < key(b); }
  /// Comparison for priority_queue, which keeps the largest on top.
  [[nodiscard]] bool operator()(std::uint32_t a, std::uint32_t b) const { return before(b, a); }

 private:
  const tasks::task_graph* g_;
};

/// Grants waiting transfers their ports or resources in turn. A transfer may pass others if all that it needs is free. Transfers with the
/// same needs wait in one line: only the first of a line is examined, and only after something that it needs was freed.
/// Complexity  O(log) per transfer, and per grant O(lines that need something freed or added).
class grant_queue {
 public:
  grant_queue(const tasks::task_graph& g, route_access access, std::size_t resources);

  /// True if transfers wait under this access.
  [[nodiscard]] static bool is_used(route_access a) { return a == route_access::exclusive_ports || a == route_access::exclusive_links; }

  void add(std::uint32_t t);
  /// Frees what a granted transfer held.
  void release(std::uint32_t t);
  /// Calls start(transfer) for all transfers that can be granted now. Returns true if there were any.
  template <class Start>
  bool grant(Start&& start) {
    bool any = false;
    while (true) {
      std::erase_if(awake_, [&](std::size_t l) {
        const bool can = !lines_[l].waiting.empty() &&
                         std::all_of(lines_[l].needs.begin(), lines_[l].needs.end(), [&](std::uint32_t n) { return taken_[n] == 0; });
        if (!can) lines_[l].is_awake = false;
        return !can;
      });
      if (awake_.empty()) return any;
      line& next = lines_[*std::min_element(awake_.begin(), awake_.end(), [&](std::size_t a, std::size_t b) {
        return order_.before(lines_[a].waiting.top(), lines_[b].waiting.top());
      })];
      const std::uint32_t t = next.waiting.top();
      next.waiting.pop();
      for (const std::uint32_t n : next.needs) taken_[n] = 1;
      start(t);
      any = true;
    }
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  using waiting_line = std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, transfer_order>;
  struct line {
    std::vector<std::uint32_t> needs;
    waiting_line waiting;
    bool is_awake = false;
  };

  void wake(std::size_t l);

  /// Returns what a transfer holds exclusively: its ports (out by sender, then in by receiver) or the resources of its route.
  [[nodiscard]] std::vector<std::uint32_t> needs_of(const tasks::transfer& t) const;

  [[nodiscard]] std::size_t line_of(std::uint32_t t);

  const tasks::task_graph* g_;
  bool ports_;
  transfer_order order_;
  key_index lines_by_needs_;
  std::vector<std::uint32_t> line_of_transfer_;  ///< `none` until known
  std::vector<line> lines_;
  std::vector<std::vector<std::size_t>> needed_by_;  ///< lines by port or resource
  std::vector<char> taken_;                          ///< by port or resource
  std::vector<std::size_t> awake_;                   ///< lines whose first transfer may be granted
};

/// One run of a task graph.  Source: semantics, sections 6 and 10.
/// @tparam Sharing  a network_sharing with its optional members, and with left(): what a transfer under way has still to move.
template <network_sharing Sharing, class... Observers>
class event_loop {
 public:
  event_loop(const tasks::task_graph& g, const network& net, Sharing sharing, const simulator_options& options, Observers&... observers)
      : g_(g), options_(options), observers_(observers...), sharing_(std::move(sharing)), access_(sharing_.access()),
        waiting_(g.predecessors), devices_(g.device_order.size()), queue_(g, access_, net.resources().size()), background_(options, net) {
    for (std::size_t d = 0; d < devices_.size(); ++d) devices_[d].held_bytes = g.static_bytes[d];
    out_.access = access_;
    out_.computes.resize(g.computes.size());
    out_.transfers.resize(g.transfers.size());
    out_.busy_s.assign(devices_.size(), 0);
    out_.memory_bound_s.assign(devices_.size(), 0);
    out_.peak_bytes = g.static_bytes;
    out_.sent_bytes.assign(devices_.size(), 0);
    out_.received_bytes.assign(devices_.size(), 0);
    out_.resource_bytes.assign(net.resources().size(), 0);
    for (const tasks::transfer& b : background_.transfers) out_.background_left.push_back(b.volume_bytes);
    drains_.assign(g.transfers.size() + background_.transfers.size(), 0);
  }

  [[nodiscard]] trace run() {
    for (std::size_t i = 0; i < options_.capacities.size(); ++i) push(options_.capacities[i].at.value(), event::capacity, i);
    for (std::size_t i = 0; i < options_.speeds.size(); ++i) push(options_.speeds[i].at.value(), event::speed, i);
    for (std::size_t i = 0; i < background_.transfers.size(); ++i)
      push(background_.transfers[i].release_s, event::latency_end, g_.transfers.size() + i);
    const double until = options_.until ? options_.until->value() : never;
    for (tasks::node_id n = 0; n < g_.size(); ++n) {
      if (g_.predecessors[n] == 0) make_ready(n);
    }
    join();  // barriers without predecessors
    for (std::size_t d = 0; d < devices_.size(); ++d) wake_.push_back(d);
    settle();
    while (!stopped_ && done_ < g_.size()) {
      const double next = std::min(events_.empty() ? never : events_.first().at, sharing_.next_end());
      if (next > until) {
        cut_off(until);
        break;
      }
      if (next == never) {
        if constexpr (requires { sharing_.check_nothing_left(now_); }) sharing_.check_nothing_left(now_);
        report_stuck();
      }
      now_ = std::max(now_, next);
      settle();
    }
    if (out_.status.ok()) out_.latency = seconds(last_end_);
    if (stopped_) out_.status = {outcome::stopped, "stopped by an observer"};
    leave_background();
    return std::move(out_);
  }

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();

  void push(double at, event::kind_type kind, std::size_t what, std::uint32_t version = 0) {
    events_.push({at, kind, static_cast<std::uint32_t>(what), version});
  }

  /// Handles everything at the current time, ends before starts, until nothing changes; then updates the rates.
  void settle() {
    const double until = std::min(now_ * (1 + same_time_), std::numeric_limits<double>::max());  // stays below `never`
    for (bool again = true; again && !stopped_;) {
      again = false;
      if (const double end = sharing_.next_end(); end <= until) {
        again = true;
        now_ = std::max(now_, end);
        sharing_.finish_until(until, [&](std::uint32_t t) { end_transfer(t); });
      }
      while (!events_.empty() && events_.first().at <= until) {
        const event e = events_.pop();
        now_ = std::max(now_, e.at);
        handle(e);
        again = true;
      }
      if (!wake_.empty()) {
        start_tasks();
        again = true;
      }
      if (!again) again = queue_.grant([&](std::uint32_t t) { send(t); });
    }
    sharing_.update(now_, [&](std::uint32_t t, double rate) {
      if (options_.record && !is_background(t)) out_.rates.push_back({now_, t, rate});
    });
  }

  void handle(const event& e) {
    switch (e.kind) {
      case event::capacity:
        sharing_.set_capacity(options_.capacities[e.what].resource.index(), options_.capacities[e.what].capacity.value());
        break;
      case event::speed: change_speed(options_.speeds[e.what].device.index(), options_.speeds[e.what].speed); break;
      case event::compute_end: end_task(e.what, e.version); break;
      case event::release: offer(e.what); break;
      case event::latency_end: drain(e.what); break;
      case event::transfer_end: end_transfer(e.what); break;
    }
  }

  void start_tasks() {
    for (const std::size_t d : wake_) {
      device_state& s = devices_[d];
      if (s.running != no_task) continue;
      const tasks::node_id n =
          options_.source != nullptr ? options_.source->next(d, now_, s.held_bytes).value_or(no_task) : next_in_order(d);
      if (n == no_task) continue;
      s.running = n;
      s.work_left_s = g_.computes[n].duration_s;
      out_.computes[n].start_s = now_;
      hold(d, g_.computes[n].takes_bytes);
      schedule_end(d);
    }
    wake_.clear();
  }

  [[nodiscard]] tasks::node_id next_in_order(std::size_t d) {
    device_state& s = devices_[d];
    if (s.next == g_.device_order[d].size()) return no_task;
    const tasks::node_id n = g_.device_order[d][s.next];
    if (waiting_[n] > 0) return no_task;
    ++s.next;
    return n;
  }

  void schedule_end(std::size_t d) {
    device_state& s = devices_[d];
    s.since_s = now_;
    ++s.version;
    if (s.speed > 0) push(now_ + s.work_left_s / s.speed, event::compute_end, d, s.version);
  }

  void change_speed(std::size_t d, double speed) {
    device_state& s = devices_[d];
    if (s.running != no_task) s.work_left_s = std::max(0.0, s.work_left_s - s.speed * (now_ - s.since_s));
    s.speed = speed;
    if (s.running != no_task) schedule_end(d);
  }

  void end_task(std::size_t d, std::uint32_t version) {
    device_state& s = devices_[d];
    if (version != s.version) return;  // void since a change of speed
    const tasks::node_id n = std::exchange(s.running, no_task);
    out_.computes[n].end_s = now_;
    count_busy(d, n);
    hold(d, -g_.computes[n].releases_bytes);
    wake_.push_back(d);
    observe(task_ended{g_.computes[n], out_.computes[n]});
    finish(n);
  }

  /// Adds a task's time until now. Memory is the limit for the same share of it at any speed, wherever it is cut off.
  void count_busy(std::size_t d, tasks::node_id n) {
    const tasks::compute_task& t = g_.computes[n];
    const double busy_s = now_ - out_.computes[n].start_s;
    out_.busy_s[d] += busy_s;
    if (t.memory_bound_s > 0) out_.memory_bound_s[d] += busy_s * std::min(1.0, t.memory_bound_s / t.duration_s);
  }

  void hold(std::size_t d, double bytes) {
    if (bytes == 0) return;
    devices_[d].held_bytes += bytes;
    out_.peak_bytes[d] = std::max(out_.peak_bytes[d], devices_[d].held_bytes);
    if (options_.record) out_.memory.push_back({now_, static_cast<std::uint32_t>(d), devices_[d].held_bytes});
  }

  // --- dependencies ---

  void finish(tasks::node_id n) {
    last_end_ = std::max(last_end_, now_);
    joined_.push_back(n);
    join();
  }
  /// Notifies the successors of ended nodes; barriers end at once.
  void join() {
    while (!joined_.empty()) {
      const tasks::node_id ended = joined_.back();
      joined_.pop_back();
      ++done_;
      for (const tasks::node_id m : g_.successors_of(ended)) {
        if (--waiting_[m] == 0) make_ready(m);
      }
    }
  }

  void make_ready(tasks::node_id n) {
    if (g_.is_compute(n)) {
      if (options_.source != nullptr) options_.source->ready(n);
      wake_.push_back(g_.computes[n].device.index());
    } else if (g_.is_transfer(n)) {
      const auto t = static_cast<std::uint32_t>(n - g_.computes.size());
      if (g_.transfers[t].blocks()) end_with_its_task(t);
      else if (g_.transfers[t].release_s > now_) push(g_.transfers[t].release_s, event::release, t);
      else offer(t);
    } else {
      joined_.push_back(n);
    }
  }

  // --- transfers ---

  void offer(std::uint32_t t) {
    if (is_granted(t)) queue_.add(t);
    else send(t);
  }

  /// A read of a tier takes neither ports nor resources for itself.
  [[nodiscard]] bool is_granted(std::uint32_t t) const {
    return grant_queue::is_used(access_) && g_.transfers[t].kind != transfer_kind::read;
  }

  void send(std::uint32_t t) {
    out_.transfers[t].start_s = now_;
    if (const double latency = g_.transfers[t].latency_s; latency > 0) {
      push(now_ + latency, event::latency_end, t);
    } else {
      drain(t);
    }
  }

  [[nodiscard]] bool is_background(std::uint32_t t) const { return t >= g_.transfers.size(); }
  [[nodiscard]] const tasks::transfer& transfer_of(std::uint32_t t) const {
    return is_background(t) ? background_.transfers[t - g_.transfers.size()] : g_.transfers[t];
  }
  [[nodiscard]] std::span<const resource_use> via_of(std::uint32_t t) const {
    return is_background(t) ? background_.routes[t - g_.transfers.size()]
                            : std::span<const resource_use>(g_.routes[g_.transfers[t].route].via);
  }

  void drain(std::uint32_t t) {
    const tasks::transfer& x = transfer_of(t);
    const auto via = via_of(t);
    if (x.volume_bytes > 0 && !via.empty()) {
      sharing_.start(now_, t, x, via);
      drains_[t] = 1;
    } else {
      push(now_, event::transfer_end, t);
    }
  }

  /// Adds bytes that a transfer of the graph has moved.
  void count(std::uint32_t t, double volume_bytes) {
    const tasks::transfer& x = g_.transfers[t];
    if (x.kind != transfer_kind::read) {
      out_.sent_bytes[x.from.index()] += volume_bytes;
      out_.received_bytes[x.to.index()] += volume_bytes;
    }
    for (const resource_use& u : g_.routes[x.route].via) out_.resource_bytes[u.resource.index()] += volume_bytes * u.weight;
  }

  void end_transfer(std::uint32_t t) {
    drains_[t] = 0;
    if (is_background(t)) {
      out_.background_left[t - g_.transfers.size()] = 0;
      return;
    }
    const tasks::transfer& x = g_.transfers[t];
    out_.transfers[t].end_s = now_;
    if (options_.record) out_.rates.push_back({now_, t, 0});
    count(t, x.volume_bytes);
    if (is_granted(t)) queue_.release(t);
    observe(transfer_ended{x, out_.transfers[t]});
    finish(g_.node_of_transfer(t));
  }

  /// Ends a blocking transfer, which was part of the task that has just ended.
  void end_with_its_task(std::uint32_t t) {
    const tasks::transfer& x = g_.transfers[t];
    out_.transfers[t] = {out_.computes[x.carrier].start_s, now_};
    count(t, x.volume_bytes);
    observe(transfer_ended{x, out_.transfers[t]});
    joined_.push_back(g_.node_of_transfer(t));
  }

  // --- ending early ---

  /// Ends the run at a time. Tasks and transfers under way count as far as they came.
  void cut_off(double at) {
    now_ = at;
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      if (devices_[d].running != no_task) count_busy(d, devices_[d].running);
    }
    for (std::uint32_t t = 0; t < g_.transfers.size(); ++t) {
      if (drains_[t]) count(t, g_.transfers[t].volume_bytes - sharing_.left(t, now_));
    }
    out_.latency = seconds(now_);
    out_.status = {outcome::stopped, "stopped at " + to_text(now_) + " s"};
  }

  void leave_background() {
    for (std::size_t i = 0; i < background_.transfers.size(); ++i) {
      const auto t = static_cast<std::uint32_t>(g_.transfers.size() + i);
      if (drains_[t]) out_.background_left[i] = sharing_.left(t, now_);
    }
  }

  template <class Event>
  void observe(const Event& e) {
    const control answer = std::apply([&](auto&... o) { return notify(e, o...); }, observers_);
    if (answer == control::stop) stopped_ = true;
  }

  [[noreturn]] void report_stuck() const {
    if (options_.source != nullptr) options_.source->stuck();
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      if (devices_[d].next == g_.device_order[d].size()) continue;
      throw invalid_input("simulate: device " + std::to_string(d) + " waits forever for task " + std::to_string(devices_[d].next) + " of " +
                          std::to_string(g_.device_order[d].size()) + " in its order; the order is cyclic, or a capacity or speed stays 0");
    }
    throw invalid_input(
        "simulate: a transfer waits forever; the dependencies are cyclic, a capacity stays 0, or its prescribed rates do not move all of "
        "it");
  }

  const tasks::task_graph& g_;
  const simulator_options& options_;
  std::tuple<Observers&...> observers_;
  Sharing sharing_;
  route_access access_;
  min_queue<event> events_;
  std::vector<std::uint32_t> waiting_;  ///< by node: predecessors that have not ended
  std::vector<device_state> devices_;
  std::vector<std::size_t> wake_;                                 ///< devices that may have a task to start
  std::vector<tasks::node_id> joined_;                            ///< ended nodes whose successors are not notified yet
  grant_queue queue_;                                             ///< transfers that wait for ports or resources
  background_traffic background_;                                 ///< numbered after the graph's own transfers
  std::vector<char> drains_;                                      ///< by transfer, background included: true while it drains
  double same_time_ = options_.source != nullptr ? 1e-9 : 1e-12;  ///< ends closer than this happen together (relative)
  double now_ = 0, last_end_ = 0;
  std::size_t done_ = 0;
  bool stopped_ = false;
  trace out_;
};

}  // namespace hetplan::detail

namespace hetplan {

namespace detail {

template <network_policy Policy>
[[nodiscard]] fluid_sharing<Policy> sharing_of(const Policy& policy, const tasks::task_graph&, const network& net,
                                               const simulator_options& options) {
  return {net, policy, options.record};
}
[[nodiscard]] inline prescribed_sharing sharing_of(const prescribed& given, const tasks::task_graph& g, const network& net,
                                                   const simulator_options& options) {
  check_rates(given, g.transfers.size(), options);
  return {net, given};
}
[[nodiscard]] guarded_sharing<any_network_sharing> sharing_of(const any_network_sharing& sharing, const tasks::task_graph&,
                                                              const network& net, const simulator_options& options);
template <network_sharing Sharing>
[[nodiscard]] guarded_sharing<Sharing> sharing_of(const Sharing& sharing, const tasks::task_graph&, const network& net,
                                                  const simulator_options& options) {
  check_follows(follows_capacities<Sharing>, options);
  return {sharing, net};
}

}  // namespace detail

/// Rates of a run's transfers: a network policy (as a fluid_sharing), prescribed rates, or a user's sharing.
template <class S>
concept shares_network = network_policy<S> || std::same_as<S, prescribed> || network_sharing<S>;

/// Runs a task graph: every device follows its order, and transfers share the network as the policy or sharing says.
///
/// @param sharing    a policy or prescribed rates, which are only read; a network sharing is copied.
/// @param g          from tasks::expand or a task_graph_builder; every compute task is in one device's order.
/// @param net        the network whose resources the graph's routes name.
/// @param observers  called at task_ended and transfer_ended, in time order; may stop the run.
/// @return           the trace; status `stopped` if an observer or `until` ended the run. Tasks and transfers under way then count as busy
///                   time and bytes as far as they came, but have no end.
/// Complexity        O(log) per event; a start or end of a transfer costs the size of the set of transfers that its resources connect
///                   (times the number of distinct fair shares in it).
/// Throws            invalid_input if capacities change and transfers block (their time is part of tasks) or a sharing has no
///                   set_capacity, if the run can never end (cyclic orders, a capacity or speed that stays 0), or if a prescribed rate is
///                   invalid, exceeds a capacity or leaves volume behind; invalid_model if a user's sharing gives more of a resource than
///                   it has, or ends a transfer that has not moved all of its volume.
/// Determinism       same input, same bytes. Ends within 1e-12 (relative) of each other happen together; then ends before starts, memory
///                   is released before it is taken, ties by index.
/// Source            semantics, sections 6 and 10.
template <shares_network Sharing = fair_share, observer<task_ended, transfer_ended>... Observers>
[[nodiscard]] trace simulate(const tasks::task_graph& g, const network& net, const Sharing& sharing = {},
                             const simulator_options& options = {}, Observers&&... observers) {
  detail::check_options(options, net, g.device_order.size());
  detail::check_blocking(g, options);
  auto shared = detail::sharing_of(sharing, g, net, options);
  return detail::event_loop<decltype(shared), std::remove_reference_t<Observers>...>(g, net, std::move(shared), options, observers...)
      .run();
}

#ifdef HETPLAN_SEPARATE
extern template trace simulate(const tasks::task_graph&, const network&, const fair_share&, const simulator_options&);
extern template trace simulate(const tasks::task_graph&, const network&, const by_priority&, const simulator_options&);
extern template trace simulate(const tasks::task_graph&, const network&, const policy_of_plan&, const simulator_options&);
extern template trace simulate(const tasks::task_graph&, const network&, const prescribed&, const simulator_options&);
extern template trace simulate(const tasks::task_graph&, const network&, const any_network_policy&, const simulator_options&);
extern template trace simulate(const tasks::task_graph&, const network&, const any_network_sharing&, const simulator_options&);
#endif

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/simulate/simulator.ipp>
#endif
