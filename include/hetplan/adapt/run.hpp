// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Runs of a job over a timeline: iterations under changing conditions, with a policy that may react.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <hetplan/adapt/adaptation_policy.hpp>
#include <hetplan/adapt/environment.hpp>
#include <hetplan/adapt/iteration.hpp>
#include <hetplan/adapt/migration.hpp>
#include <hetplan/adapt/replication.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/core/observer.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::adapt {

/// Backups, every `period` iterations, of what only one device holds.
struct backup_routine {
  long long period = 10;
  backup_content content = backup_content::resume;
};

struct storage_options {
  std::optional<backup_routine> backups = {};  ///< none: state that trains on a single device is lost with it
  std::optional<device_id> archive = {};       ///< device with a stored copy of all immutable weights
};

/// The holdings of a job over time: those of the running plan, immutable weights on devices that it does not use, and backups.
///
/// A backup is valid once all of its bytes have arrived; until then the previous one is. If weights are restored from a backup that
/// training has changed since, the whole model goes back to its iteration: every device keeps a snapshot of its own.
/// Source  Asteroid, section 3.4. The paper does not treat newer weights beside a restored model; going back is ours.
class weight_keeper {
 public:
  /// Throws  invalid_input for a period below 1 or an unknown archive.
  weight_keeper(const planning_problem& problem, const storage_options& options);
  weight_keeper(const planning_problem&& the_problem_must_outlive_it, const storage_options&) = delete;

  /// Sets the running plan. Devices that it does not use keep immutable weights. Returns false if placement and backups are as
  /// before, so that existing copies stay valid.
  bool use(const plan& p);
  /// Adds weights that have arrived where the running plan does not need them.
  void add(const migration& m);

  /// Returns the iterations until the next backup is due; empty if there is nothing to back up.
  [[nodiscard]] std::optional<long long> backup_due_in(long long done) const;
  /// Returns the transfers of a backup after `done` iterations; the first of a plan includes immutable weights.
  [[nodiscard]] migration begin_backup(long long done);
  void end_backup() { copied_at_ = begun_at_; }

  /// Returns the holdings from which a migration may fetch.
  [[nodiscard]] holdings sources(const conditions& now) const;

  struct way {
    hetplan::adapt::migration migration;
    std::optional<long long> back_to = {};  ///< iteration to which the model goes back
  };
  /// Returns the migration to a plan by a kind of switching; backups are used only if no other source is left.
  [[nodiscard]] way to(const plan& next, switching how, const conditions& now) const;
  /// Returns the part of that migration that may move beside the running plan (split_beside).
  [[nodiscard]] migration beside(const plan& running, const plan& next, const conditions& now) const;

 private:
  /// Sets the holdings after a switch: what the plan gives its devices, and immutable weights on the others.
  void hold_for(const plan& p);

  /// True if no present device holds the current state of some trained weights.
  [[nodiscard]] bool lost_what_learns(const conditions& now) const;

  const planning_problem* problem_;
  storage_options options_;
  plan running_;  ///< no stages: nothing has run yet
  holdings held_;
  replication copies_;
  long long begun_at_ = 0;
  bool sent_once_ = false;              ///< true if the first backup has sent the immutable weights
  std::optional<long long> copied_at_;  ///< iteration of the last complete backup
};

/// Runs a simulation until it ends, a needed device leaves, or the time is up. Returns the result and that time.
///
/// A run that ends, up to rounding, when it would be cut off or halted counts as ended; it is run to that time plus the tolerance.
/// @param run   maps simulator_options to a result that has a member `ended`.
/// @param halt  maps a horizon to the time up to it at which a halted run is given up; infinite: never.
/// Complexity   the runs: windows grow by a factor of four from twice the guess; one more for each speed and capacity that becomes 0
///              before the end, and for a run that does not end.
/// Source       semantics, section 10 (a device that leaves at the end of an iteration).
template <class Run, class Halt>
[[nodiscard]] auto run_under_change(const environment& e, std::span<const device_id> needed, double now_s, double duration_s,
                                    double guess_s, Run&& run, Halt&& halt) {
  for (double window = std::max(2 * guess_s, 1e-3);; window *= 4) {
    double until = std::min(now_s + window, duration_s);
    const double loss = std::min(e.next_loss(needed, until), halt(until));
    until = std::min(until, loss);
    auto result = run(e.options(now_s, until));
    if (!result.ended && until != loss && until < duration_s) continue;
    std::vector<double> ends = e.halts(until);
    if (!result.ended) ends.push_back(until);
    for (const double end : ends) {
      simulator_options o = e.options(now_s, end);
      o.until = seconds(end * (1 + relative_tolerance) - now_s);
      auto in_time = run(o);
      if (in_time.ended) return std::pair(std::move(in_time), until);
    }
    return std::pair(std::move(result), until);
  }
}

/// Source  semantics, section 10.
template <failure_detector Detector = heartbeat>
struct run_options {
  Detector detector = {};
  storage_options storage = {};
  /// Budget of runs, waits and calls of the policy, in addition to sixteen for each event. Backups and policies that request calls
  /// make work without events, which could go on without end.
  long long steps = 1'000'000;
};
template <class Detector>
run_options(Detector, storage_options) -> run_options<Detector>;

/// The progress of a job, for observers that may stop it.
struct run_progress {
  seconds now;
  seconds duration;
  const history& so_far;
};

// Implementation of `run`.  Source: semantics, section 10.

/// Writes a history: stretches without gaps, with every joule and every iteration entered once. All sums are made here.
/// Source  semantics, section 10, results.
class ledger {
 public:
  explicit ledger(std::size_t devices) { out_.device_energy_J.assign(devices, 0); }

  [[nodiscard]] const history& so_far() const { return out_; }
  [[nodiscard]] history& open() { return out_; }
  [[nodiscard]] history close() && { return std::move(out_); }

  /// Returns the index of a plan, which is added if it is new.
  [[nodiscard]] std::size_t number_of(const plan& p, const std::optional<evaluation>& predicted);

  /// Enters `count` identical iterations.
  void ran(double start_s, std::size_t plan, long long count, const iteration& each, bool violates);
  /// Enters a period in which no iteration ended.
  void passed(activity what, double start_s, double end_s, std::size_t plan, std::span<const double> device_J);
  /// Enters completed iterations that are lost with their weights and have to be repeated.
  void lose(long long count);
  /// Enters weights that moved during other activities.
  void moved(double volume_bytes, std::span<const double> device_J);

 private:
  void enter(stretch s, std::span<const double> device_J, double times, double each_s = 0);
  void charge(std::span<const double> device_J, double times, stretch* s);
  /// True if two stretches can be merged. Iterations that were cut off stay separate.
  [[nodiscard]] static bool alike(const stretch& a, const stretch& b);

  history out_;
  double each_s_ = 0;  ///< duration of an iteration in the last stretch; in generation longer than its response
};

namespace detail {

template <class Policy, class Detector, class... Observers>
class run_loop {
 public:
  run_loop(const planning_problem& problem, const timeline& t, Policy& policy, const run_options<Detector>& options,
           Observers&... observers)
      : problem_(problem), policy_(policy), duration_(t.duration.value()), most_steps_(options.steps + 16 * std::ssize(t.events)),
        environment_(problem.cluster, t, options.detector, problem.job.qoe), ledger_(problem.cluster.size()),
        weights_(problem, options.storage), observers_(observers...) {}

  [[nodiscard]] history run() {
    while (goes_on()) {
      environment_.advance(now_);
      if (const auto news = environment_.take_news()) {
        since_ = std::min(since_.value_or(*news), *news);
        last_drop_.clear();
      }
      if (since_ || (!next_ && now_ > asked_s_ && at_most(ask_at_, now_))) consult();
      else if (next_ && at_most(next_->from_s, now_) && !fetching()) adopt();
      else if (runner_ == nullptr || resting_ || !runner_->can_run(environment_.actual())) wait();
      else iterate();
    }
    history& h = ledger_.open();
    const auto deadline = environment_.wanted.iterations ? environment_.wanted.deadline : std::nullopt;  // unbounded work has none
    h.missed_deadline = deadline && (h.finished_s ? !at_most(*h.finished_s, deadline->value()) : at_most(deadline->value(), now_));
    if (!stopped_ && !h.finished_s && (runner_ == nullptr || !runner_->can_run(environment_.actual()))) {
      const char* usual = runner_ == nullptr ? "the policy gave no plan, and no reason for it"
                                             : "a device of the running plan is away or stands still, or its network is down";
      h.status = {outcome::none_found, why_not_.empty() ? usual : why_not_};
    }
    return std::move(ledger_).close();
  }

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();
  static constexpr std::size_t most_seen = 4096;  ///< the conditions of a long timeline may never recur

  /// A plan that waits for its adoption.
  struct adopting {
    reaction what;
    double caused_s, decided_s, from_s;
    bool fetched = false;  ///< true if its immutable weights have arrived or do not move in the background
    double moved_bytes = 0;
    double moved_J = 0;
  };

  [[nodiscard]] long long done() const { return ledger_.so_far().iterations; }
  [[nodiscard]] bool goes_on() {
    history& h = ledger_.open();
    if (problem_.job.qoe.iterations && done() >= *problem_.job.qoe.iterations) h.finished_s = now_;
    std::string by = steps_++ < most_steps_ || h.finished_s ? "" : "its budget of " + std::to_string(most_steps_) + " steps";
    const run_progress so_far{seconds(now_), seconds(duration_), h};
    if (std::apply([&](auto&... o) { return notify(so_far, o...); }, observers_) == control::stop) by = "an observer";
    if (!by.empty()) {
      stopped_ = true;
      h.status = {outcome::stopped, "stopped by " + by + " at " + to_text(now_) + " s"};
    }
    return !stopped_ && !h.finished_s && !at_most(duration_, now_);
  }

  void consult() {
    const double caused = since_.value_or(now_);
    since_.reset();
    asked_s_ = now_;
    const std::vector<foreign_traffic> traffic = environment_.foreign();
    const holdings held = weights_.sources(environment_.noticed());
    situation s{.now = seconds(at_most(ask_at_, now_) ? std::max(ask_at_, now_) : now_),  // not before the requested time
                .since = seconds(caused),
                .noticed = environment_.noticed(),
                .held = held,
                .traffic = traffic,
                .wanted = environment_.wanted,
                .done = done()};
    if (runner_ != nullptr) {
      s.running = &runner_->what();
      s.can_run = runner_->can_run(environment_.noticed());
      s.response = response_;
    }
    if (next_) s.coming = &*next_->what.next;
    s.dropped = dropped_;
    reaction r = policy_.react(s);
    check_reaction(r, problem_, s.now);
    resting_ = r.rest;
    ask_at_ = r.ask_again ? std::max(r.ask_again->value(), std::nextafter(now_, never)) : never;  // later, or it never ends
    why_not_ = r.next || s.can_run ? "" : r.reason;
    dropped_.clear();
    if (next_ && (r.cancel || (r.next && *r.next != *next_->what.next))) {
      environment_.drop(purpose::weights);
      coming_.reset();
      next_.reset();
    }
    if (!r.next || next_) return;
    if (runner_ == nullptr) return use(*r.next, r.predicted);  // the first plan finds its weights in place
    const double answers = r.answers ? r.answers->value() : caused;
    next_ = adopting{std::move(r), answers, now_, 0, false};
    next_->from_s = now_ + next_->what.thinking.value();
    next_->fetched = next_->what.how != switching::background;
  }

  void use(const plan& p, const std::optional<evaluation>& predicted) {
    running_ = ledger_.number_of(p, predicted);
    runner_ = std::make_unique<plan_runner>(problem_, p);
    if (!weights_.use(runner_->what())) return;  // existing copies stay valid
    environment_.drop(purpose::backup);
    if (weights_.backup_due_in(done())) environment_.begin(weights_.begin_backup(done()), purpose::backup, now_);
  }

  /// True if every device of the plan is present.
  [[nodiscard]] bool is_there(const plan& p) const {
    const auto all = problem_.cluster.devices();
    return std::none_of(all.begin(), all.end(),
                        [&](const device& d) { return environment_.actual().present[d.id.index()] == 0 && uses(p, d.id); });
  }
  /// Starts moving weights in the background. Returns true while they move.
  [[nodiscard]] bool fetching() {
    if (next_->fetched) return false;
    // Waiting is pointless if nothing can run meanwhile or a sender or receiver has left.
    if (runner_ == nullptr || resting_ || !runner_->can_run(environment_.actual()) || !is_there(*next_->what.next) ||
        environment_.waits(purpose::weights)) {
      environment_.drop(purpose::weights);
      coming_.reset();
      next_->fetched = true;
      return false;
    }
    if (!coming_) {
      coming_ = weights_.beside(runner_->what(), *next_->what.next, environment_.actual());
      environment_.begin(*coming_, purpose::weights, now_);
    }
    if (environment_.under_way(purpose::weights)) return true;
    weights_.add(*std::exchange(coming_, std::nullopt));
    next_->fetched = true;
    return false;
  }

  /// Advances to a time, moves the transfers, and charges those of the job.
  void go_on_to(double now, const std::vector<double>& left) {
    const auto both = environment_.settle(left, now);
    now_ = now;
    if (weights_.backup_due_in(done()) && !environment_.under_way(purpose::backup)) weights_.end_backup();
    for (const environment::carried& c : both) {
      if (c.volume_bytes <= 0) continue;
      const std::vector<double> spent = energy_of_bytes(problem_.models.energy, problem_.cluster, c.sent_bytes, c.received_bytes);
      ledger_.moved(c.volume_bytes, spent);
      if (!next_ || &c != both.data()) continue;
      next_->moved_bytes += c.volume_bytes;
      next_->moved_J = std::accumulate(spent.begin(), spent.end(), next_->moved_J);
    }
  }
  /// Advances without running to the next time at which that may change.
  void wait() {
    double until = std::min({environment_.next_event(), environment_.next_notice(), duration_});
    if (next_) until = std::min(until, next_->from_s);                                 // no call before
    else if (ask_at_ > std::nextafter(now_, never)) until = std::min(until, ask_at_);  // an immediate call waits for an event
    const std::vector<double> left = environment_.transfers_alone(now_, until);
    std::vector<double> spent(problem_.cluster.size(), 0);
    if (runner_ != nullptr)
      add_idle_energy(spent, problem_.models.energy, problem_.cluster, runner_->devices(), environment_.actual(), until - now_);
    ledger_.passed(resting_ ? activity::idle : activity::stalled, now_, until, running_, spent);
    go_on_to(until, left);
  }

  void iterate() {
    const auto known = key();
    iteration i;
    double until = never;
    const auto it = seen_.find(known);
    const bool quiet = environment_.transfers().empty();
    if (quiet && it != seen_.end() && at_most(now_ + it->second.took_s, std::min(environment_.next_event(), duration_))) {
      i = it->second;
    } else {
      const auto halt = [&](double horizon) {
        return environment_.next_halt(runner_->devices(), runner_->resources(), halt_asked_s_, horizon);
      };
      std::tie(i, until) = run_under_change(
          environment_, runner_->devices(), now_, duration_, last_s_, [&](const simulator_options& o) { return runner_->run(o); }, halt);
      if (seen_.size() >= most_seen) seen_.clear();
      if (quiet && i.ended && at_most(now_ + i.took_s, environment_.next_event()))
        seen_.emplace(known, i).first->second.background_left.clear();
    }
    if (!i.ended) {
      if (until < environment_.next_loss(runner_->devices(), until) && until < duration_ && waits_it_out(i, until)) return;
      ledger_.passed(activity::cut_off, now_, until, running_, i.device_J);
      return go_on_to(until, i.background_left);
    }
    if (!(now_ + i.took_s > now_))
      throw invalid_input("run: an iteration of the running plan takes " + to_text(i.took_s) +
                          " s, so that time would stand still; expected more");
    last_s_ = i.took_s;
    response_ = seconds(i.response_s);
    const long long count = repetitions(i);
    const bool violates = environment_.wanted.latency && !at_most(i.response_s, environment_.wanted.latency->value());
    ledger_.ran(now_, running_, count, i, violates);
    go_on_to(now_ + static_cast<double>(count) * i.took_s, environment_.left_after(count, i.background_left));
    begin_backup();
  }

  /// True if the policy waits for a halted iteration to continue; false if it gives the iteration up.
  [[nodiscard]] bool waits_it_out(const iteration& so_far, double now) {
    environment then = environment_;  // state for the policy; a waiting iteration is simulated again from its start
    static_cast<void>(then.settle(so_far.background_left, now));
    std::swap(environment_, then);
    const double began = std::exchange(now_, now);
    since_ = environment_.take_news();
    consult();
    std::swap(environment_, then);
    now_ = began;
    halt_asked_s_ = now;
    if (!coming_) environment_.drop(purpose::weights);  // withdrawn
    return !next_ && !resting_;
  }

  /// Returns how often the iteration repeats before anything can change it.
  [[nodiscard]] long long repetitions(const iteration& i) const {
    const auto before = [&](double at) { return whole_until(at, now_, i.took_s); };
    const auto reaching = [&](double at) { return whole_reaching(at, now_, i.took_s); };
    double most = std::min({before(environment_.next_event()), before(duration_), reaching(environment_.next_notice()), reaching(ask_at_)});
    if (next_) most = std::min(most, reaching(next_->from_s));
    if (problem_.job.qoe.iterations) most = std::min(most, static_cast<double>(*problem_.job.qoe.iterations - done()));
    if (const auto due = weights_.backup_due_in(done()); due && *due > 0) most = std::min(most, static_cast<double>(*due));
    most = std::min(most, environment_.repeats(i.background_left, now_));
    return most >= 2 ? static_cast<long long>(std::min(most, 1e15)) : 1;
  }
  /// Returns the current conditions of an iteration, as a key of `seen_`.
  [[nodiscard]] std::pair<std::size_t, std::vector<double>> key() const {
    std::vector<double> k = environment_.actual().speed;
    for (const bytes_per_second c : environment_.actual().capacity) k.push_back(c.value());
    return {running_, std::move(k)};
  }
  void begin_backup() {
    const auto due = weights_.backup_due_in(done());
    if (due && *due <= 0 && !environment_.under_way(purpose::backup))
      environment_.begin(weights_.begin_backup(done()), purpose::backup, now_);
  }

  void adopt() {
    const adopting a = *std::exchange(next_, std::nullopt);
    const plan& p = *a.what.next;
    if (!is_there(p)) return drop(a, "a device of the next plan has left");
    const auto [m, back_to] = weights_.to(p, a.what.how, environment_.actual());
    if (!m.status.ok()) return drop(a, m.status.reason);
    adoption record{a.caused_s, a.decided_s, 0, running_, 0, a.what.reached, a.what.reason, 0, a.moved_bytes + m.volume().value(),
                    a.moved_J};
    const bool moves_work = !same_placement(p, runner_->what());
    if (!m.empty() && !move(m, p, record)) {
      return drop(a, now_ < duration_ ? "a device left while weights were moving" : "weights were still moving");
    }
    if (back_to) ledger_.lose(done() - *back_to);
    use(p, a.what.predicted);
    history& h = ledger_.open();
    record.to = running_;
    record.done_s = now_;
    if (a.what.reached != rung::none) h.reaction_s = std::max(h.reaction_s, record.done_s - record.caused_s);
    if (moves_work) ++h.switches;
    h.moved_bytes += m.volume().value();
    h.adoptions.push_back(std::move(record));
  }

  /// Drops a plan and reports the reason to the policy, but not twice in a row while nothing else is known.
  void drop(const adopting& a, const std::string& why) {
    why_not_ = dropped_ = why;
    if (std::exchange(last_drop_, why) != why) since_ = a.caused_s;
  }

  /// Stops and moves weights. Returns false if the migration was cut off; none of it counts then.
  [[nodiscard]] bool move(const migration& m, const plan& next, adoption& record) {
    std::vector<device_id> needed, idle(runner_->devices().begin(), runner_->devices().end());
    for (const auto& round : m.rounds) {
      for (const fetch& f : round) needed.insert(needed.end(), {f.from, f.to});
    }
    for (const device& d : problem_.cluster.devices()) {
      if (uses(next, d.id)) idle.push_back(d.id);
    }
    const auto [run, until] = run_under_change(
        environment_, needed, now_, duration_, 1,
        [&](const simulator_options& o) { return run_migration(m, problem_.cluster, o, problem_.models.energy); },
        [](double) { return never; });
    std::vector<double> spent;
    for (const joules e : run.energy) spent.push_back(e.value());
    record.moved_J = std::accumulate(spent.begin(), spent.end(), record.moved_J);
    record.stall_s = run.time.value();
    add_idle_energy(spent, problem_.models.energy, problem_.cluster, idle, environment_.actual(), record.stall_s);
    const double end = run.ended ? now_ + record.stall_s : until;
    ledger_.passed(activity::migrating, now_, end, running_, spent);
    go_on_to(end, run.background_left);
    return run.ended;
  }

  const planning_problem& problem_;
  Policy& policy_;
  double duration_;
  long long most_steps_, steps_ = 0;
  environment environment_;
  ledger ledger_;
  weight_keeper weights_;
  std::unique_ptr<plan_runner> runner_;  ///< null: nothing has run yet
  std::size_t running_ = 0;
  std::optional<adopting> next_;
  std::optional<migration> coming_;  ///< migration in the background
  std::optional<double> since_ = 0;  ///< time of the first unanswered event
  double now_ = 0, ask_at_ = never, last_s_ = 1;
  double asked_s_ = -1, halt_asked_s_ = -1;  ///< times of the last call of the policy, and of the last one about a halted iteration
  bool resting_ = false, stopped_ = false;
  std::optional<seconds> response_;
  std::string why_not_, dropped_, last_drop_;
  std::map<std::pair<std::size_t, std::vector<double>>, iteration> seen_;  ///< iterations under constant conditions
  std::tuple<Observers&...> observers_;
};

}  // namespace detail

/// Runs a job over a timeline under a policy.
///
/// Iterations follow each other. Each is simulated with the timeline's capacities and speeds during it, beside the other traffic.
/// Plans change between iterations. A departure cuts the iteration off; the policy is called when the detector notices it. Moving
/// weights share the network with all other traffic.
///
/// @param policy   called at the start, when an event has become known, and at times that it requested.
/// @return         the history; none found: it ended without a plan that can run, with the reason.
/// Complexity      one simulation per iteration while conditions change or transfers beside the plan come and go; identical
///                 iterations share one.
/// Throws          invalid_input (timeline, options, a policy's plan, a plan whose iteration takes no time), invalid_model.
/// Determinism     the policy's.
/// Source          semantics, section 10; Dora, section 4.3; Asteroid, section 3.4.
template <adaptation_policy Policy, failure_detector Detector = heartbeat, observer<run_progress>... Observers>
[[nodiscard]] history run(const planning_problem& problem, const timeline& t, Policy& policy, const run_options<Detector>& options = {},
                          Observers&&... observers) {
  if constexpr (std::is_same_v<Detector, heartbeat>) check_heartbeat(options.detector);
  return detail::run_loop<Policy, Detector, std::remove_reference_t<Observers>...>(problem, t, policy, options, observers...).run();
}

}  // namespace hetplan::adapt

#ifndef HETPLAN_SEPARATE
#include <hetplan/adapt/run.ipp>
#endif
