// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The inside of `run`: a job from event to event, iteration to iteration.  Source: semantics, section 10.

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
#include <utility>
#include <vector>

#include <hetplan/adapt/check_reaction.hpp>
#include <hetplan/adapt/environment.hpp>
#include <hetplan/adapt/ledger.hpp>
#include <hetplan/adapt/moved_bytes.hpp>
#include <hetplan/adapt/run_migration.hpp>
#include <hetplan/adapt/run_options.hpp>
#include <hetplan/adapt/run_under_change.hpp>
#include <hetplan/adapt/weight_keeper.hpp>
#include <hetplan/core/at_most.hpp>
#include <hetplan/core/observer.hpp>
#include <hetplan/plan/same_placement.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace HETPLAN_NAMESPACE::adapt {

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
    if (runner_ == nullptr) return use(std::move(*r.next));  // the first plan finds everything where it is needed
    const double answers = r.answers ? r.answers->value() : caused;
    next_ = adopting{std::move(r), answers, now_, 0, false};
    next_->from_s = now_ + next_->what.thinking.value();
    next_->fetched = next_->what.how != switching::background;
  }

  void use(plan p) {
    running_ = ledger_.number_of(p);
    runner_ = std::make_unique<plan_runner>(problem_, std::move(p));
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
    use(p);
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

}  // namespace HETPLAN_NAMESPACE::adapt
