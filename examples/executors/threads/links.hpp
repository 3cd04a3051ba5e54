// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A transport for threads: a mailbox and a sender per device, and a common meeting place.

#include <algorithm>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../common/transport.hpp"

namespace executors {

/// Thrown in waits when the work is called off because another device is lost.
struct called_off {};
/// Thrown in waits of a device that has been switched off.
struct switched_off {};

class thread_links {
 public:
  /// @param shaped  false: links are as fast as memory.
  thread_links(const program& p, const hetplan::cluster& c, bool shaped, double timeout_s)
      : program_(p), cluster_(c), timeout_s_(timeout_s), free_at_s_(p.resources.size() + p.slots(), 0), states_(p.flows.size()),
        medium_(p.resources, p.rules, free_at_s_, states_, medium_lock_) {
    for (std::size_t d = 0; d < c.size(); ++d) devices_.push_back(std::make_unique<device_side>());
    for (std::size_t d = 0; d < c.size(); ++d) {
      if (!p.uses(hetplan::device_id(d))) continue;
      ++expected_;
      if (shaped) devices_[d]->out.emplace(p, medium_, [this](parcel x) { deliver(std::move(x)); });
    }
  }
  ~thread_links() {
    for (auto& d : devices_) d->out.reset();
  }
  thread_links(const thread_links&) = delete;
  thread_links& operator=(const thread_links&) = delete;

  /// Ends all waits with called_off.
  void call_off() {
    const std::lock_guard hold(mutex_);
    off_ = true;
    wake_all();
  }
  /// Stops a device's sender and ends its waits with switched_off.
  void switch_off(hetplan::device_id d) {
    if (devices_[d.index()]->out) devices_[d.index()]->out->stop();
    const std::lock_guard hold(mutex_);
    devices_[d.index()]->off = true;
    devices_[d.index()]->changed.notify_all();
  }
  void cut(hetplan::resource_id r, double until_s) { medium_.block(r, until_s); }

  class link {
   public:
    link(thread_links& all, hetplan::device_id me) : all_(all), me_(me) {}
    void send(std::vector<parcel> parcels) { all_.send(me_, std::move(parcels)); }
    parcel receive(std::size_t flow, int part) { return all_.receive(me_, flow, part); }
    [[nodiscard]] double now_s() const { return steady_s(); }
    void wait_until(double s) { all_.wait_until(me_, s); }
    meeting meet(double value) { return all_.meet(me_, value); }

   private:
    thread_links& all_;
    hetplan::device_id me_;
  };

 private:
  using address = std::pair<std::size_t, int>;
  struct device_side {
    std::map<address, parcel> mailbox;
    std::optional<sender<std::mutex>> out;
    std::condition_variable changed;
    bool off = false;
  };

  void wake_all() {
    for (auto& d : devices_) d->changed.notify_all();
  }
  void send(hetplan::device_id from, std::vector<parcel> parcels) {
    if (devices_[from.index()]->out) return devices_[from.index()]->out->send(std::move(parcels));
    for (parcel& x : parcels) deliver(std::move(x));
  }
  void deliver(parcel x) {
    const std::lock_guard hold(mutex_);
    const address at{x.flow, x.part};
    device_side& to = *devices_[program_.flows[x.flow].to.index()];
    to.mailbox[at] = std::move(x);
    to.changed.notify_all();
  }
  parcel receive(hetplan::device_id me, std::size_t flow, int part) {
    std::unique_lock hold(mutex_);
    auto& box = devices_[me.index()]->mailbox;
    if (!wait(hold, me, timeout_s_, [&] { return box.contains({flow, part}); })) {
      throw timed_out("\"" + cluster_[me].name + "\" has waited " + hetplan::to_text(timeout_s_) + " s for flow " + std::to_string(flow) +
                      " from \"" + cluster_[program_.flows[flow].from].name + "\"");
    }
    return std::move(box.extract({flow, part}).mapped());
  }
  void wait_until(hetplan::device_id me, double s) {
    std::unique_lock hold(mutex_);
    wait(hold, me, s - steady_s(), [] { return false; });
  }
  meeting meet(hetplan::device_id me, double value) {
    std::unique_lock hold(mutex_);
    values_[me.index()] = value;
    const int round = round_;
    if (++here_ == expected_) {
      met_ = {steady_s(), 0};
      for (const auto& [device, v] : values_) met_.sum += v;  // in device order, so the sum does not depend on arrivals
      here_ = 0;
      ++round_;
      wake_all();
    } else if (!wait(hold, me, timeout_s_, [&] { return round_ != round; })) {
      throw timed_out("\"" + cluster_[me].name + "\" has waited " + hetplan::to_text(timeout_s_) + " s for the others");
    }
    return met_;
  }
  /// Waits for a condition for at most `s` seconds; a met condition counts even after work has been called off.
  template <class Condition>
  bool wait(std::unique_lock<std::mutex>& hold, hetplan::device_id me, double s, Condition&& come) {
    device_side& mine = *devices_[me.index()];
    const bool& gone = mine.off;
    mine.changed.wait_until(hold, steady_time(steady_s() + std::max(0.0, s)), [&] { return come() || gone || off_; });
    if (gone) throw switched_off{};
    if (come()) return true;
    if (off_) throw called_off{};
    return false;
  }

  const program& program_;
  const hetplan::cluster& cluster_;
  double timeout_s_;
  std::vector<double> free_at_s_;
  std::vector<flow_state> states_;
  std::mutex medium_lock_;
  medium<std::mutex> medium_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<device_side>> devices_;
  int expected_ = 0, here_ = 0, round_ = 0;
  std::map<std::size_t, double> values_;
  meeting met_;
  bool off_ = false;
};

static_assert(transport<thread_links::link>);

}  // namespace executors
