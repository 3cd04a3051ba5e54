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

#include <hetplan/adapt/environment.hpp>
#include <hetplan/adapt/ladder.hpp>
#include <hetplan/adapt/migration.hpp>
#include <hetplan/adapt/replication.hpp>
#include <hetplan/cost/cost_model.hpp>

#include "../common/inputs.hpp"
#include "../common/report.hpp"
#include "train.hpp"

namespace executors {

/// A device stops dead: no beat, no byte, no answer.
struct kill {
  hetplan::device_id device;
  int iteration = 1;   ///< 0 is the warm-up
  double after_s = 0;  ///< from the iteration's start
};
/// Nothing crosses a resource for a while.
struct cut {
  hetplan::resource_id resource;
  int iteration = 1;
  double seconds = 0;  ///< from the iteration's start
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
  explicit pulse(double period_s)
      : thread_([this, period_s](const std::stop_token& stop) {
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
        now_(hetplan::adapt::nominal(in_.cluster)) {
    hetplan::adapt::check_heartbeat(options_.beats);
  }

  /// Throws timed_out; cannot_go_on where a device was lost and no plan or no copy is left.
  void run(int iterations) {
    while (static_cast<int>(training_.iterations.size()) < iterations) {
      const std::vector<hetplan::device_id> lost = train_until_loss(iterations);
      if (!lost.empty()) recover(lost);
    }
  }
  [[nodiscard]] const thread_training& training() const { return training_; }
  [[nodiscard]] const std::vector<recovery>& recoveries() const { return recoveries_; }

 private:
  using pulses = std::vector<std::optional<pulse>>;  ///< by device of the plan

  /// Trains with the plan in force until all is done or devices are given up, which it returns.
  std::vector<hetplan::device_id> train_until_loss(int iterations) {
    copying_ = hetplan::adapt::replicate_by_topology(in_.plan, in_.model, in_.cluster);
    program work = prepare(in_).work;
    for (const hetplan::adapt::backup& b : copying_.backups) {
      work.backups.push_back({work.add_flow(in_.nominal, b.from, b.to, b.held().value()), tensors_of(b.layers)});
    }
    pulses all(in_.cluster.size());
    for (std::size_t d = 0; d < all.size(); ++d) {
      if (work.uses(hetplan::device_id(d))) all[d].emplace(options_.beats.period.value());
    }
    std::atomic<int> under_way = -1;
    std::atomic<double> began_s = 0;
    std::vector<hetplan::device_id> lost;
    const onlooker watch{.begins =
                             [&](int iteration, double begin_s) {
                               began_s = begin_s;
                               under_way = iteration;
                             },
                         .look =
                             [&](thread_links& links) {
                               strike(links, all, under_way, began_s);
                               if (lost.empty()) lost = silent(all);
                               if (!lost.empty()) links.call_off();
                             }};
    train_with_threads(in_.net, work, in_.cluster, settings_, iterations, training_, options_.threads, watch);
    if (static_cast<int>(training_.iterations.size()) >= iterations) return {};
    // Who is left has to beat once more: somebody else may have fallen silent meanwhile.
    const double ended_s = steady_s();
    const auto unknown = [&](const std::optional<pulse>& x) { return x && x->last_s() < ended_s; };
    do {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      lost = silent(all);
    } while (lost.empty() || std::count_if(all.begin(), all.end(), unknown) > static_cast<std::ptrdiff_t>(lost.size()));
    return lost;
  }

  /// The faults that are due.
  void strike(thread_links& links, pulses& all, int iteration, double began_s) {
    std::erase_if(faults_.kills, [&](const kill& k) {
      if (iteration < k.iteration || steady_s() < began_s + k.after_s || !all[k.device.index()]) return false;
      all[k.device.index()]->stop();
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
  std::vector<hetplan::device_id> silent(pulses& all) {
    std::vector<hetplan::device_id> found;
    for (std::size_t d = 0; d < all.size(); ++d) {
      if (!all[d]) continue;
      const double quiet_s = steady_s() - all[d]->last_s();
      if (quiet_s < options_.beats.timeout.value()) continue;
      if (all[d]->answered()) all[d]->probe();
      if (quiet_s < (options_.beats.timeout + options_.beats.probe).value() || all[d]->answered()) continue;
      found.emplace_back(d);
      noticed_s_ = quiet_s;
    }
    return found;
  }

  void recover(const std::vector<hetplan::device_id>& lost) {
    using namespace hetplan::adapt;
    recovery r;
    r.iteration = static_cast<int>(training_.iterations.size());
    r.noticed_s = noticed_s_;
    for (const hetplan::device_id d : lost) {
      r.lost += (r.lost.empty() ? "" : ", ") + in_.cluster[d].name;
      now_.present[d.index()] = 0;
    }
    const double begin_s = steady_s();
    const hetplan::planning_problem problem{in_.model, in_.cluster, hetplan::profiled_or_roofline{},
                                            hetplan::job{.workload = in_.plan.workload}};
    const hetplan::plan_result found = lightweight_replay(problem, in_.plan, lost);
    if (!found.status.ok()) throw cannot_go_on("lost " + r.lost + ": " + found.status.reason);
    const auto& [next, evaluation] = found.plans.front();
    const holdings held = with_backups(holdings_of(in_.plan, in_.model, in_.cluster.size()), copying_, in_.model, in_.plan.workload, now_);
    const migration moves = delta_migration(held, next, in_.model, in_.cluster, now_);
    if (!moves.status.ok()) throw cannot_go_on("lost " + r.lost + ": " + moves.status.reason);
    r.replanned_s = steady_s() - begin_s;
    for (std::size_t d = 0; d < in_.cluster.size(); ++d) {  // what it kept for others is its own now, where it has nothing newer
      tensors& own = training_.parameters[d];
      if (now_.present[d] == 0) own.clear();
      for (std::size_t t = 0; t < own.size(); ++t) {
        if (own[t].size() == 0) own[t] = training_.copies[d][t];
      }
    }
    for (const auto& round : moves.rounds) r.moved_bytes += move(round);
    r.moved_s = steady_s() - begin_s - r.replanned_s;
    r.predicted_s = evaluation.latency.value();
    in_.plan = next;
    recoveries_.push_back(std::move(r));
  }

  /// Sends tensors over the links, all at the same time. Returns their bytes.
  double move(const std::vector<hetplan::adapt::fetch>& fetches) {
    program work = idle_program(in_.nominal);
    for (const hetplan::adapt::fetch& f : fetches) {
      work.add_flow(in_.nominal, f.from, f.to, f.volume.value());
      for (const hetplan::device_id d : {f.from, f.to}) work.tasks[d.index()].resize(1);  // takes part
    }
    thread_links links(work, in_.cluster, options_.threads.shaped, options_.threads.timeout_s);
    double bytes = 0;
    for (std::size_t i = 0; i < fetches.size(); ++i) {
      std::vector<double> all = pack(training_.parameters[fetches[i].from.index()], tensors_of(fetches[i].layers));
      bytes += static_cast<double>(all.size() * sizeof(double));
      thread_links::link(links, fetches[i].from).send({{i, 0, std::move(all), steady_s()}});
    }
    for (std::size_t i = 0; i < fetches.size(); ++i) {
      const std::size_t to = fetches[i].to.index();
      unpack(thread_links::link(links, fetches[i].to).receive(i, 0).data, tensors_of(fetches[i].layers), in_.net, training_.parameters[to]);
    }
    return bytes;
  }
  [[nodiscard]] std::vector<std::size_t> tensors_of(const std::vector<hetplan::layer_id>& layers) const {
    std::vector<std::size_t> all;
    for (const hetplan::layer_id l : layers) all.push_back(in_.net.tensor_of(l.index()));
    return all;
  }

  run_inputs in_;
  training_settings settings_;
  resilient_options options_;
  faults faults_;
  hetplan::adapt::conditions now_;
  hetplan::adapt::replication copying_;
  thread_training training_;
  std::vector<recovery> recoveries_;
  double noticed_s_ = 0;
};

}  // namespace executors
