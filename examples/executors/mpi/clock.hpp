// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A common clock for ranks on several machines.

#include <limits>

#include <mpi.h>

#include "../common/transport.hpp"

namespace executors {

/// Returns the seconds by which rank 0's steady clock is ahead of this rank's, from the middle of the fastest of 20 exchanges; the error is
/// at most half the time of that exchange. Collective.
///
/// Source  Cristian, "Probabilistic clock synchronization", Distributed Computing 3, 1989.
[[nodiscard]] inline double seconds_ahead(MPI_Comm ranks) {
  constexpr int exchanges = 20, tag = 1;
  int rank = 0, size = 0;
  MPI_Comm_rank(ranks, &rank);
  MPI_Comm_size(ranks, &size);
  double ahead_s = 0, fastest_s = std::numeric_limits<double>::infinity();
  for (int r = 1; r < size; ++r) {
    for (int i = 0; i < exchanges; ++i) {
      double there_s = 0;
      if (rank == 0) {
        MPI_Recv(&there_s, 1, MPI_DOUBLE, r, tag, ranks, MPI_STATUS_IGNORE);
        there_s = steady_s();
        MPI_Send(&there_s, 1, MPI_DOUBLE, r, tag, ranks);
      } else if (rank == r) {
        const double begin_s = steady_s();
        MPI_Send(&begin_s, 1, MPI_DOUBLE, 0, tag, ranks);
        MPI_Recv(&there_s, 1, MPI_DOUBLE, 0, tag, ranks, MPI_STATUS_IGNORE);
        const double end_s = steady_s();
        if (end_s - begin_s < fastest_s) {
          fastest_s = end_s - begin_s;
          ahead_s = there_s - (begin_s + end_s) / 2;
        }
      }
    }
  }
  return ahead_s;
}

}  // namespace executors
