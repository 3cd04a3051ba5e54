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
  bool shaped = true;     ///< true: links have latency and bandwidth; false: as fast as memory
  double timeout_s = 30;  ///< limit of each wait
};

/// The state of a training as of the last committed iteration.
struct thread_training {
  std::vector<iteration_record> iterations = {};
  std::vector<tensors> parameters = {};  ///< [device]; empty for unused devices
  std::vector<tensors> copies = {};      ///< [device]: copies kept for others
  int overruns = 0;
};

/// Callbacks: `begins` from every device at the beginning of an iteration, `look` repeatedly in the caller's thread.
struct onlooker {
  std::function<void(int, double)> begins = {};
  std::function<void(thread_links&)> look = {};
};

/// Trains with a thread per device until `iterations` iterations are committed or the onlooker calls it off; continues a training that has
/// begun. Parameters of switched-off devices are lost and left empty.
///
/// Throws  the first exception of a device: timed_out.
inline void train_with_threads(const neural_network& net, const program& p, const hetplan::cluster& c, const training_settings& settings,
                               int iterations, thread_training& training, const thread_options& options = {}, const onlooker& watch = {}) {
  thread_links links(p, c, options.shaped, options.timeout_s);
  const std::vector<tensors> begun = std::exchange(training.parameters, std::vector<tensors>(c.size()));
  const std::vector<iteration_record> before = training.iterations;
  training.copies.assign(c.size(), {});
  std::mutex lock;
  std::exception_ptr failure;
  std::atomic<int> running = 0;
  const auto work = [&](hetplan::device_id d) {
    thread_links::link link(links, d);
    worker w(net, p, d, settings, link);
    if (!begun.empty()) w.resume(begun[d.index()]);
    std::vector<iteration_record> records = before;
    try {
      train(w, link, iterations, records, watch.begins);
    } catch (const called_off&) {
    } catch (const switched_off&) {
      return;
    }
    const std::lock_guard hold(lock);
    training.iterations = records;  // the same on all remaining devices
    training.parameters[d.index()] = w.parameters();
    training.copies[d.index()] = w.copies();
    training.overruns += w.overruns();
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < c.size(); ++i) {
      if (!p.uses(hetplan::device_id(i))) continue;
      ++running;
      threads.emplace_back([&, i] {
        try {
          work(hetplan::device_id(i));
        } catch (...) {
          const std::lock_guard hold(lock);
          if (!failure) failure = std::current_exception();
          links.call_off();
        }
        --running;
      });
    }
    for (; watch.look && running > 0; std::this_thread::sleep_for(std::chrono::milliseconds(2))) watch.look(links);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace executors
