// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The shared state of a medium among the ranks of one machine: an MPI window with a lock in it.

#include <cstddef>
#include <memory>
#include <span>

#include <mpi.h>
#include <pthread.h>

#include "../common/medium.hpp"

namespace executors {

/// A mutex in memory shared by processes.
class process_lock {
 public:
  process_lock() {
    pthread_mutexattr_t how;
    pthread_mutexattr_init(&how);
    pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&mutex_, &how);
    pthread_mutexattr_destroy(&how);
  }
  process_lock(const process_lock&) = delete;
  process_lock& operator=(const process_lock&) = delete;
  void lock() { pthread_mutex_lock(&mutex_); }
  void unlock() { pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t mutex_;
};

/// The state of a medium in a window that rank 0 of a communicator allocates. The ranks must be on one machine.
class shared_board {
 public:
  /// Collective.
  shared_board(MPI_Comm ranks, std::size_t times, std::size_t flows) : times_(times), flows_(flows) {
    int rank = 0;
    MPI_Comm_rank(ranks, &rank);
    const std::size_t size = states_at() + flows * sizeof(flow_state);
    void* mine = nullptr;
    MPI_Win_allocate_shared(rank == 0 ? static_cast<MPI_Aint>(size) : 0, 1, MPI_INFO_NULL, ranks, static_cast<void*>(&mine), &window_);
    MPI_Aint bytes = 0;
    int unit = 0;
    void* begin = nullptr;
    MPI_Win_shared_query(window_, 0, &bytes, &unit, static_cast<void*>(&begin));
    begin_ = static_cast<std::byte*>(begin);
    if (rank == 0) {
      new (begin_) process_lock;
      std::uninitialized_value_construct_n(free_at_s().data(), times_);
      std::uninitialized_value_construct_n(states().data(), flows_);
    }
    MPI_Barrier(ranks);
  }
  shared_board(const shared_board&) = delete;
  shared_board& operator=(const shared_board&) = delete;

  [[nodiscard]] process_lock& lock() const { return *reinterpret_cast<process_lock*>(begin_); }
  [[nodiscard]] std::span<double> free_at_s() const { return {reinterpret_cast<double*>(begin_ + numbers_at), times_}; }
  [[nodiscard]] std::span<flow_state> states() const { return {reinterpret_cast<flow_state*>(begin_ + states_at()), flows_}; }

  /// Collective; not in a destructor, since after an error the other ranks may be gone.
  void free() { MPI_Win_free(&window_); }

 private:
  static constexpr std::size_t numbers_at = (sizeof(process_lock) + 63) / 64 * 64;
  [[nodiscard]] std::size_t states_at() const { return numbers_at + (times_ * sizeof(double) + 63) / 64 * 64; }

  std::size_t times_, flows_;
  MPI_Win window_ = MPI_WIN_NULL;
  std::byte* begin_ = nullptr;
};

}  // namespace executors
