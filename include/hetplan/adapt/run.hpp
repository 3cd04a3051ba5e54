// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A job over a timeline: iteration after iteration under the conditions of the moment, with a policy that may answer.

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

// Where the weights of a running job are, copies included, and what brings them to where the next plan needs them.

/// Backups of what only one device holds, after every so many iterations.
struct backup_routine {
  long long period = 10;
  backup_content content = backup_content::resume;
};

struct storage_options {
  std::optional<backup_routine> backups = {};  ///< none: what trains on a single device is gone with it
  std::optional<device_id> archive = {};       ///< has a copy of all immutable weights in storage
};

/// Keeps the holdings of a job: the running plan's, immutable weights that lie elsewhere and cost nobody memory, backups.
///
/// A backup is good once all of its bytes have come over; until then the one before it is. When weights come back from a
/// backup that training has changed since, the whole model goes back to its iteration: every device keeps a snapshot of its
/// own from then.
/// Source  Asteroid, section 3.4. What a restored model does with newer weights elsewhere is not said there; going back is ours.
class weight_keeper {
 public:
  /// Throws  invalid_input (a period below 1, an unknown archive).
  weight_keeper(const planning_problem& problem, const storage_options& options);
  weight_keeper(const planning_problem&& the_problem_must_outlive_it, const storage_options&) = delete;

  /// A plan runs from now on. A device that it leaves alone keeps what does not change. False: who runs which layers is as
  /// before, there is room for the same backups, and they stay good.
  bool use(const plan& p);
  /// Weights have come to where the running plan does not need them.
  void add(const migration& m);

  // --- backups ---

  /// Iterations until the next backup is due; nothing if there is none to make.
  [[nodiscard]] std::optional<long long> backup_due_in(long long done) const;
  /// What a backup after so many iterations sends; the first of a plan also sends what never changes.
  [[nodiscard]] migration begin_backup(long long done);
  void end_backup() { copied_at_ = begun_at_; }

  // --- moving ---

  /// What a migration may fetch from.
  [[nodiscard]] holdings sources(const conditions& now) const;

  struct way {
    hetplan::adapt::migration migration;
    std::optional<long long> back_to = {};  ///< the model goes back to this iteration
  };
  /// What has to move for a plan, by the way of a reaction; from backups where nobody else is left.
  [[nodiscard]] way to(const plan& next, switching how, const conditions& now) const;
  /// What of that may come while the running plan goes on (split_beside).
  [[nodiscard]] migration beside(const plan& running, const plan& next, const conditions& now) const;

 private:
  /// After a switch: what the plan gives its devices; the others keep what does not change.
  void hold_for(const plan& p);

  /// Has nobody who is there what training changes, as it is now?
  [[nodiscard]] bool lost_what_learns(const conditions& now) const;

  const planning_problem* problem_;
  storage_options options_;
  plan running_;  ///< or one in the same places; no stages: nothing has run yet
  holdings held_;
  replication copies_;
  long long begun_at_ = 0;
  bool sent_once_ = false;              ///< what never changes has been sent with the first backup
  std::optional<long long> copied_at_;  ///< of the last backup that is whole
};

// A run of the simulator from now on, in an environment that changes meanwhile.

/// Runs something until it ends, a device that it needs leaves, or the time is up, and says when.
///
/// What ends, but for rounding, when it would be cut off or held up, has ended: then it is run as far as that time and the tolerance.
/// @param run   from simulator_options to something that says whether it `ended`.
/// @param halt  not after a given time: when it is given up; infinite: it is not.
/// Complexity   the runs: their windows grow by four from twice a guess; one more for each speed and capacity that becomes 0 before it
///              ends, and where it does not.
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

// Options of a job over a timeline beside its policy, and what its observers are told.

/// Source  semantics, section 10.
template <failure_detector Detector = heartbeat>
struct run_options {
  Detector detector = {};
  storage_options storage = {};
  /// Runs, waits and questions to the policy, beside sixteen for each event of the timeline. Backups and policies that ask to be
  /// asked make work without events: years of it would have no end.
  long long steps = 1'000'000;
};
template <class Detector>
run_options(Detector, storage_options) -> run_options<Detector>;

/// The job has come this far; for progress and for stopping.
struct run_progress {
  seconds now;
  seconds duration;
  const history& so_far;
};

// The inside of `run`: a job from event to event, iteration to iteration.  Source: semantics, section 10.

// Keeps a history's ledger: stretches without gaps, every joule and every iteration entered once.

/// Writes a history. Whoever runs a job says what happened; sums are made here only.
/// Source  semantics, section 10, results.
class ledger {
 public:
  explicit ledger(std::size_t devices) { out_.device_energy_J.assign(devices, 0); }

  [[nodiscard]] const history& so_far() const { return out_; }
  [[nodiscard]] history& open() { return out_; }
  [[nodiscard]] history close() && { return std::move(out_); }

  /// The index of a plan, which is new only if it differs from those before.
  [[nodiscard]] std::size_t number_of(const plan& p, const std::optional<evaluation>& predicted);

  /// `count` iterations one after another, all alike.
  void ran(double start_s, std::size_t plan, long long count, const iteration& each, bool violates);
  /// Time in which no iteration ended.
  void passed(activity what, double start_s, double end_s, std::size_t plan, std::span<const double> device_J);
  /// Iterations whose weights are gone: done, and to be done again.
  void lose(long long count);
  /// Weights that moved while something else was going on.
  void moved(double volume_bytes, std::span<const double> device_J);

 private:
  void enter(stretch s, std::span<const double> device_J, double times, double each_s = 0);
  void charge(std::span<const double> device_J, double times, stretch* s);
  /// Do they say the same of one stretch? An iteration that was cut off stays by itself.
  [[nodiscard]] static bool alike(const stretch& a, const stretch& b);

  history out_;
  double each_s_ = 0;  ///< how long an iteration of the last stretch takes: in generation more than its response
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
    const auto deadline = environment_.wanted.iterations ? environment_.wanted.deadline : std::nullopt;  // work without an end has none
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
  static constexpr std::size_t most_seen = 4096;  ///< conditions of a long timeline may never come again

  /// A plan on its way to be adopted.
  struct adopting {
    reaction what;
    double caused_s, decided_s, from_s;
    bool fetched = false;  ///< its immutable weights are there, or were never to come in the background
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

  // --- deciding ---

  void consult() {
    const double caused = since_.value_or(now_);
    since_.reset();
    asked_s_ = now_;
    const std::vector<foreign_traffic> traffic = environment_.foreign();
    const holdings held = weights_.sources(environment_.noticed());
    situation s{.now = seconds(at_most(ask_at_, now_) ? std::max(ask_at_, now_) : now_),  // no sooner than it asked for
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
    ask_at_ = r.ask_again ? std::max(r.ask_again->value(), std::nextafter(now_, never)) : never;  // not now: it would never end
    why_not_ = r.next || s.can_run ? "" : r.reason;
    dropped_.clear();
    if (next_ && (r.cancel || (r.next && *r.next != *next_->what.next))) {
      environment_.drop(purpose::weights);
      coming_.reset();
      next_.reset();
    }
    if (!r.next || next_) return;
    if (runner_ == nullptr) return use(*r.next, r.predicted);  // the first plan finds everything where it is needed
    const double answers = r.answers ? r.answers->value() : caused;
    next_ = adopting{std::move(r), answers, now_, 0, false};
    next_->from_s = now_ + next_->what.thinking.value();
    next_->fetched = next_->what.how != switching::background;
  }

  void use(const plan& p, const std::optional<evaluation>& predicted) {
    running_ = ledger_.number_of(p, predicted);
    runner_ = std::make_unique<plan_runner>(problem_, p);
    if (!weights_.use(runner_->what())) return;  // copies stay good
    environment_.drop(purpose::backup);
    if (weights_.backup_due_in(done())) environment_.begin(weights_.begin_backup(done()), purpose::backup, now_);
  }

  /// Every device that a plan computes on.
  [[nodiscard]] bool is_there(const plan& p) const {
    const auto all = problem_.cluster.devices();
    return std::none_of(all.begin(), all.end(),
                        [&](const device& d) { return environment_.actual().present[d.id.index()] == 0 && uses(p, d.id); });
  }
  /// Weights come in the background: begins it, and says whether it is still going on.
  [[nodiscard]] bool fetching() {
    if (next_->fetched) return false;
    // Nothing runs that could go on meanwhile, or who should send or receive has left: no reason to wait.
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

  /// Goes on to a time: transfers have moved, and what moved of ours is charged.
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
  /// Nothing runs until something may change that.
  void wait() {
    double until = std::min({environment_.next_event(), environment_.next_notice(), duration_});
    if (next_) until = std::min(until, next_->from_s);                                 // nobody is asked before
    else if (ask_at_ > std::nextafter(now_, never)) until = std::min(until, ask_at_);  // at once, and nothing runs: at the next event
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

  /// The iteration stands still, and that is known: does it wait until it can go on? Else the policy gives it up.
  [[nodiscard]] bool waits_it_out(const iteration& so_far, double now) {
    environment then = environment_;  // what the policy sees; if it waits, the iteration goes on from where it began
    static_cast<void>(then.settle(so_far.background_left, now));
    std::swap(environment_, then);
    const double began = std::exchange(now_, now);
    since_ = environment_.take_news();
    consult();
    std::swap(environment_, then);
    now_ = began;
    halt_asked_s_ = now;
    if (!coming_) environment_.drop(purpose::weights);  // called back
    return !next_ && !resting_;
  }

  /// How often the same iteration comes again before anything can make it another one.
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
  /// The conditions of the moment that a running plan depends on.
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

  // --- changing over ---

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

  /// A plan comes to nothing: the policy is told, but not the same twice while nothing else is known.
  void drop(const adopting& a, const std::string& why) {
    why_not_ = dropped_ = why;
    if (std::exchange(last_drop_, why) != why) since_ = a.caused_s;
  }

  /// Stops and moves. False: it was cut off, and nothing of it counts.
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
  std::optional<migration> coming_;  ///< in the background
  std::optional<double> since_ = 0;  ///< the first event that nobody has answered
  double now_ = 0, ask_at_ = never, last_s_ = 1;
  double asked_s_ = -1, halt_asked_s_ = -1;  ///< when the policy was asked last, and when about an iteration that stands still
  bool resting_ = false, stopped_ = false;
  std::optional<seconds> response_;
  std::string why_not_, dropped_, last_drop_;
  std::map<std::pair<std::size_t, std::vector<double>>, iteration> seen_;  ///< iterations while nothing changes
  std::tuple<Observers&...> observers_;
};

}  // namespace detail

/// Runs a job over a timeline under a policy.
///
/// Iterations follow one another; each is simulated with the capacities and speeds that the timeline has while it runs, and
/// beside the traffic that is under way. Plans change between iterations. A device that leaves cuts the iteration short;
/// the policy is asked when the detector has noticed. Weights that move share the network with everything else.
///
/// @param policy   asked at the start, when something has become known, and when it asked for it.
/// @return         the history; none found: it ended with no plan that can run, and why.
/// Complexity      one simulation per iteration while conditions change or transfers beside the plan come and go; iterations that
///                 are alike cost one together.
/// Throws          invalid_input (timeline, options, a policy's plan, one whose iteration takes no time), invalid_model.
/// Determinism     as the policy's.
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
