// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Training that goes on when a device falls silent: heartbeats, a probe, copies, lightweight replay, migration.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <hetplan/adapt/failure_detector.hpp>
#include <hetplan/adapt/replay.hpp>
#include <hetplan/adapt/replication.hpp>

#include "../common/inputs.hpp"
#include "../common/report.hpp"
#include "train.hpp"

namespace executors {

/// A device stops dead: no beat, no byte, no answer.
struct kill {
  hetplan::device_id device;
  int iteration = 1;     ///< 0 is the warm-up
  double after_s = 0;    ///< from the iteration's start
};
/// Nothing crosses a resource for a while.
struct cut {
  hetplan::resource_id resource;
  int iteration = 1;
  double seconds = 0;    ///< from the iteration's start
};
struct faults {
  std::vector<kill> kills;
  std::vector<cut> cuts;
};

/// Somebody was lost, and those who are left cannot go on.
class cannot_go_on : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct resilient_options {
  thread_options threads;
  hetplan::adapt::heartbeat beats{.period = hetplan::seconds(0.2), .timeout = hetplan::seconds(1), .probe = hetplan::seconds(0.5)};
};

/// The beats of one device: a thread that says "here" in every period, and answers probes, until it is switched off.
class pulse {
 public:
  explicit pulse(double period_s) : thread_([this, period_s](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      last_s_ = steady_s();
      probed_ = false;
      std::this_thread::sleep_for(std::chrono::duration<double>(period_s));
    }
  }) {}
  [[nodiscard]] double last_s() const { return last_s_; }
  void probe() { probed_ = true; }
  [[nodiscard]] bool answered() const { return !probed_; }
  void stop() { thread_.request_stop(); }

 private:
  std::atomic<double> last_s_ = steady_s();
  std::atomic<bool> probed_ = false;
  std::jthread thread_;
};

/// The coordinator of a training that survives its devices.
///
/// An iteration is committed when all devices have ended it and the copies of what only one device holds are where they
/// belong; until then the parameters before it stay in force. When a device is silent for the timeout and does not answer a
/// probe, the iteration is called off, the devices that are left get a plan by lightweight replay, tensors move to where they
/// are missing, and the iteration is done again.
///
/// Source      Asteroid, section 3.4. Deviations: copies are sent after every iteration, before it is committed, so that
///             nothing is ever trained twice but the iteration under way; plain descent has no optimizer state to copy.
class resilient_training {
 public:
  resilient_training(run_inputs in, training_settings settings, resilient_options options, faults planned)
      : in_(std::move(in)), settings_(std::move(settings)), options_(std::move(options)), faults_(std::move(planned)),
        now_(hetplan::adapt::nominal(in_.cluster)), held_(in_.cluster.size()), copies_(in_.cluster.size()) {
    hetplan::adapt::check_heartbeat(options_.beats);
  }

  /// Throws timed_out; cannot_go_on where a device was lost and no plan or no copy is left.
  void run(int iterations) {
    while (static_cast<int>(records_.size()) < iterations) {
      const std::vector<hetplan::device_id> lost = train_until_loss(iterations);
      if (!lost.empty()) recover(lost);
    }
  }
  [[nodiscard]] const std::vector<iteration_record>& iterations() const { return records_; }
  [[nodiscard]] const std::vector<recovery>& recoveries() const { return recoveries_; }
  [[nodiscard]] const std::vector<tensors>& parameters() const { return held_; }
  [[nodiscard]] int overruns() const { return overruns_; }

 private:
  /// Trains with the plan in force until all is done or devices are given up, which it returns.
  std::vector<hetplan::device_id> train_until_loss(int iterations) {
    copying_ = hetplan::adapt::replicate_by_topology(in_.plan, in_.model, in_.cluster);
    program work = prepare(in_).work;
    add_backups(work);
    thread_links links(work, in_.cluster, options_.threads.shaped, options_.threads.timeout_s);
    const double period_s = options_.beats.period.value();
    std::vector<std::optional<pulse>> pulses(in_.cluster.size());
    for (std::size_t d = 0; d < pulses.size(); ++d) {
      if (work.uses(hetplan::device_id(d))) pulses[d].emplace(period_s);
      else held_[d].clear();  // it grows old
    }
    std::vector<hetplan::device_id> lost;
    std::vector<std::vector<iteration_record>> fresh(in_.cluster.size());
    std::atomic<int> overruns = 0, under_way = -1;
    std::atomic<double> began_s = 0;
    const int first = static_cast<int>(records_.size());
    const auto by_size = [](const auto& a, const auto& b) { return a.size() < b.size(); };
    run_on_threads(work, links, [&](hetplan::device_id d) {
      thread_links::link link(links, d);
      worker w(in_.net, work, d, settings_, link);
      w.resume(held_[d.index()]);
      const auto leave = [&] {
        held_[d.index()] = w.parameters();
        copies_[d.index()] = w.copies();
        overruns += w.overruns();
      };
      try {
        w.back_up();
        link.meet(0);
        w.commit();
        for (int i = first; i < iterations; ++i) {
          const double begin_s = link.meet(0).at_s;
          began_s = begin_s;
          under_way = i;
          w.run_iteration(begin_s);
          const meeting end = link.meet(w.loss());
          w.step();
          w.back_up();
          link.meet(0);
          w.commit();
          fresh[d.index()].push_back({end.at_s - begin_s, end.sum});
        }
      } catch (const called_off&) {
        leave();
        throw;
      }
      leave();
    }, [&] {
      strike(links, pulses, under_way, began_s);
      if (lost.empty()) lost = silent(pulses);
      if (!lost.empty()) links.call_off();
    });
    overruns_ += overruns;
    const auto ended = [&] { return first + static_cast<int>(std::max_element(fresh.begin(), fresh.end(), by_size)->size()) >= iterations; };
    for (; lost.empty() && !ended(); std::this_thread::sleep_for(std::chrono::milliseconds(2))) lost = silent(pulses);  // nobody is left to wait
    for (std::size_t d = 0; d < fresh.size(); ++d) {
      if (!work.uses(hetplan::device_id(d)) || std::find(lost.begin(), lost.end(), hetplan::device_id(d)) != lost.end()) continue;
      records_.insert(records_.end(), fresh[d].begin(), fresh[d].end());  // the same on all who are left
      break;
    }
    if (static_cast<int>(records_.size()) >= iterations) lost.clear();
    return lost;
  }

  void add_backups(program& work) const {
    for (const hetplan::adapt::backup& b : copying_.backups) {
      backup_copy copy{work.add_flow(in_.nominal, b.from, b.to, b.held().value()), {}};
      for (const hetplan::layer_id l : b.layers) copy.tensors.push_back(in_.net.tensor_of(l.index()));
      work.backups.push_back(std::move(copy));
    }
  }

  /// The faults that are due.
  void strike(thread_links& links, std::vector<std::optional<pulse>>& pulses, int iteration, double began_s) {
    std::erase_if(faults_.kills, [&](const kill& k) {
      if (iteration < k.iteration || steady_s() < began_s + k.after_s || !pulses[k.device.index()]) return false;
      pulses[k.device.index()]->stop();
      links.switch_off(k.device);
      return true;
    });
    std::erase_if(faults_.cuts, [&](const cut& c) {
      if (iteration < c.iteration) return false;
      links.cut(c.resource, began_s + c.seconds);
      return true;
    });
  }

  /// The devices that are given up: silent for the timeout, then probed in vain.
  std::vector<hetplan::device_id> silent(std::vector<std::optional<pulse>>& pulses) {
    std::vector<hetplan::device_id> all;
    for (std::size_t d = 0; d < pulses.size(); ++d) {
      if (!pulses[d]) continue;
      const double quiet_s = steady_s() - pulses[d]->last_s();
      if (quiet_s < options_.beats.timeout.value()) continue;
      if (pulses[d]->answered()) pulses[d]->probe();
      if (quiet_s < (options_.beats.timeout + options_.beats.probe).value() || pulses[d]->answered()) continue;
      all.emplace_back(d);
      noticed_s_ = quiet_s;
    }
    return all;
  }

  void recover(const std::vector<hetplan::device_id>& lost) {
    recovery r;
    r.iteration = static_cast<int>(records_.size());
    r.noticed_s = noticed_s_;
    for (const hetplan::device_id d : lost) {
      r.lost += (r.lost.empty() ? "" : ", ") + in_.cluster[d].name;
      now_.present[d.index()] = 0;
    }
    const double begin_s = steady_s();
    const hetplan::planning_problem problem{in_.model, in_.cluster, hetplan::profiled_or_roofline{}, hetplan::job{.workload = in_.plan.workload}};
    const hetplan::plan_result found = hetplan::adapt::lightweight_replay(problem, in_.plan, lost);
    if (!found.status.ok()) throw cannot_go_on("lost " + r.lost + ": " + found.status.reason);
    const hetplan::plan& next = found.plans.front();
    using namespace hetplan::adapt;
    const holdings held = with_backups(holdings_of(in_.plan, in_.model, in_.cluster.size()), copying_, in_.model, in_.plan.workload, now_);
    const migration moves = delta_migration(held, next, in_.model, in_.cluster, now_);
    if (!moves.status.ok()) throw cannot_go_on("lost " + r.lost + ": " + moves.status.reason);
    r.replanned_s = steady_s() - begin_s;
    for (const hetplan::device_id d : lost) held_[d.index()] = {};
    const double planned_s = steady_s();
    for (const auto& round : moves.rounds) r.moved_bytes += move(round);
    for (std::size_t d = 0; d < held_.size(); ++d) {  // what it kept for others becomes its own where it needs it
      for (std::size_t t = 0; t < copies_[d].size(); ++t) {
        if (now_.present[d] != 0 && !held_[d].empty() && held_[d][t].size() == 0) held_[d][t] = copies_[d][t];
      }
      copies_[d].clear();
    }
    r.moved_s = steady_s() - planned_s;
    r.predicted_s = next.predicted->latency.value();
    in_.plan = next;
    recoveries_.push_back(std::move(r));
  }

  /// Sends tensors over the links, all at the same time. Returns their bytes.
  double move(const std::vector<hetplan::adapt::fetch>& fetches) {
    program work;
    work.resources.assign(in_.nominal.network().resources().begin(), in_.nominal.network().resources().end());
    work.tasks.resize(in_.cluster.size());
    for (const hetplan::adapt::fetch& f : fetches) {
      work.add_flow(in_.nominal, f.from, f.to, f.volume.value());
      for (const hetplan::device_id d : {f.from, f.to}) work.tasks[d.index()].resize(1);  // takes part
    }
    thread_links links(work, in_.cluster, options_.threads.shaped, options_.threads.timeout_s);
    const auto tensor_of = [&](hetplan::layer_id l) { return in_.net.tensor_of(l.index()); };
    double bytes = 0;
    for (std::size_t i = 0; i < fetches.size(); ++i) {
      const std::size_t from = fetches[i].from.index();
      std::vector<double> all;
      for (const hetplan::layer_id l : fetches[i].layers) {
        const bool own = held_[from].size() > tensor_of(l) && held_[from][tensor_of(l)].size() > 0;
        const Eigen::VectorXd& x = own ? held_[from][tensor_of(l)] : copies_[from][tensor_of(l)];
        all.insert(all.end(), x.begin(), x.end());
      }
      bytes += static_cast<double>(all.size() * sizeof(double));
      thread_links::link(links, fetches[i].from).send({{i, 0, std::move(all), steady_s()}});
    }
    for (std::size_t i = 0; i < fetches.size(); ++i) {
      const parcel x = thread_links::link(links, fetches[i].to).receive(i, 0);
      tensors& to = held_[fetches[i].to.index()];
      to.resize(in_.net.layers.size());
      const double* next = x.data.data();
      for (const hetplan::layer_id l : fetches[i].layers) {
        to[tensor_of(l)] = Eigen::Map<const Eigen::VectorXd>(next, in_.net.layers[tensor_of(l)].parameters());
        next += to[tensor_of(l)].size();
      }
    }
    return bytes;
  }

  run_inputs in_;
  training_settings settings_;
  resilient_options options_;
  faults faults_;
  hetplan::adapt::conditions now_;
  hetplan::adapt::replication copying_;
  std::vector<tensors> held_, copies_;   ///< by device, as of the last commit
  std::vector<iteration_record> records_;
  std::vector<recovery> recoveries_;
  double noticed_s_ = 0;
  int overruns_ = 0;
};

}  // namespace executors
