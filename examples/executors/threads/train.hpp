// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Training with a thread per device.

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "../common/worker.hpp"
#include "links.hpp"

namespace executors {

struct thread_options {
  bool shaped = true;      ///< links have their latency and bandwidth; otherwise they are as fast as memory
  double timeout_s = 30;   ///< of every wait
};

struct thread_training {
  std::vector<iteration_record> iterations;
  std::vector<tensors> parameters;  ///< by device, empty where it has no part
  int overruns = 0;
};

/// Calls work(device) in a thread for each device of a program; the first exception of any of them calls the others off.
///
/// @param watch  called again and again in the caller's thread while they run.
inline void run_on_threads(const program& p, thread_links& links, const std::function<void(hetplan::device_id)>& work,
                           const std::function<void()>& watch = {}) {
  std::mutex lock;
  std::exception_ptr failure;
  std::atomic<int> running = 0;
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < p.tasks.size(); ++i) {
      const hetplan::device_id d(i);
      if (!p.uses(d)) continue;
      ++running;
      threads.emplace_back([&, d] {
        try {
          work(d);
        } catch (const called_off&) {
        } catch (const switched_off&) {
        } catch (...) {
          const std::lock_guard hold(lock);
          if (!failure) failure = std::current_exception();
          links.call_off();
        }
        --running;
      });
    }
    for (; watch && running > 0; std::this_thread::sleep_for(std::chrono::milliseconds(2))) watch();
  }
  if (failure) std::rethrow_exception(failure);
}

/// Trains a program's network for so many iterations.
///
/// Throws  timed_out.
[[nodiscard]] inline thread_training train_with_threads(const neural_network& net, const program& p, const hetplan::cluster& c,
                                                        const training_settings& settings, int iterations, const thread_options& options = {}) {
  thread_training out;
  out.parameters.resize(c.size());
  std::vector<std::vector<iteration_record>> records(c.size());
  std::vector<int> overruns(c.size(), 0);
  thread_links links(p, c, options.shaped, options.timeout_s);
  run_on_threads(p, links, [&](hetplan::device_id d) {
    thread_links::link link(links, d);
    worker w(net, p, d, settings, link);
    records[d.index()] = train(w, link, iterations);
    out.parameters[d.index()] = w.parameters();
    overruns[d.index()] = w.overruns();
  });
  for (std::size_t d = 0; d < c.size(); ++d) {
    if (!records[d].empty()) out.iterations = records[d];
    out.overruns += overruns[d];
  }
  return out;
}

}  // namespace executors
