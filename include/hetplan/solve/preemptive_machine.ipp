// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/solve/preemptive_machine.hpp>

#include <algorithm>
#include <cstddef>

namespace hetplan {

HETPLAN_INLINE double preemptive_machine_bound(std::span<machine_job> jobs) {
  std::sort(jobs.begin(), jobs.end(), [](const machine_job& a, const machine_job& b) { return a.head_s < b.head_s; });
  const auto less_urgent = [](const machine_job& a, const machine_job& b) { return a.tail_s < b.tail_s; };
  // [0, ready) is a heap of released jobs; [next, end) holds the jobs not yet released.
  const auto at = [&](std::size_t i) { return jobs.begin() + static_cast<std::ptrdiff_t>(i); };
  std::size_t ready = 0;
  const auto push = [&](const machine_job& job) {
    jobs[ready++] = job;
    std::push_heap(jobs.begin(), at(ready), less_urgent);
  };
  double now = 0, bound = 0;
  for (std::size_t next = 0; next < jobs.size() || ready > 0;) {
    if (ready == 0) now = std::max(now, jobs[next].head_s);
    while (next < jobs.size() && jobs[next].head_s <= now) push(machine_job(jobs[next++]));
    std::pop_heap(jobs.begin(), at(ready), less_urgent);
    machine_job job = jobs[--ready];
    const double end = now + job.work_s;
    if (next < jobs.size() && jobs[next].head_s < end) {  // the next job may be more urgent
      job.work_s = end - jobs[next].head_s;
      now = jobs[next].head_s;
      push(job);
    } else {
      now = end;
      bound = std::max(bound, now + job.tail_s);
    }
  }
  return bound;
}

}  // namespace hetplan
