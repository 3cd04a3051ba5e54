// SPDX-License-Identifier: BSL-1.0
// hetplan_sweep_mpi: the command `hetplan sweep` over MPI ranks. Rank 0 hands out one case at a time and writes the table, byte for byte
// that of one process; the other ranks plan. Rank 0 sleeps most of the time: start one rank more than there are cores.
//
//   mpirun -n 5 hetplan_sweep_mpi sweep.json --out table.jsonl
#include <chrono>
#include <cstdio>
#include <deque>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include <mpi.h>

#include <CLI/CLI.hpp>

#include <hetplan/core/error.hpp>

#include "../../hetplan/search_options.hpp"
#include "../../hetplan/sweep.hpp"

namespace {

/// Kinds of messages. A case is its number and its key; a row or an error is text: of a case, or of a rank that can run none.
enum tag : int { run_case = 1, stop, row, case_failed, rank_failed };

struct message {
  int rank, tag;
  std::string text;
};

/// Receives without the busy loop of MPI_Recv, which would take the core from another rank's planner.
message receive(int from) {
  MPI_Status status;
  for (int arrived = 0; arrived == 0;) {
    MPI_Iprobe(from, MPI_ANY_TAG, MPI_COMM_WORLD, &arrived, &status);
    if (arrived == 0) std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  int length = 0;
  MPI_Get_count(&status, MPI_CHAR, &length);
  message m{status.MPI_SOURCE, status.MPI_TAG, std::string(static_cast<std::size_t>(length), '\0')};
  MPI_Recv(m.text.data(), length, MPI_CHAR, m.rank, m.tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return m;
}

void send(int to, tag what, const std::string& text) {
  MPI_Send(text.data(), static_cast<int>(text.size()), MPI_CHAR, to, what, MPI_COMM_WORLD);
}

/// Runs cases until told to stop. The sweep is loaded with the first case; rank 0 has ruled out bad input.
void work(const cli::common_options& options, const std::string& file) {
  std::unique_ptr<cli::sweep_cases> cases;
  for (message m = receive(0); m.tag == run_case; m = receive(0)) {
    try {
      if (!cases) cases = cli::load_sweep(options, file);
      std::size_t end = 0;
      const std::size_t i = std::stoull(m.text, &end);
      if (i >= cases->size() || cases->key(i) != m.text.substr(end + 1))
        throw std::runtime_error(file + ": this rank finds other files than rank 0");
      const cli::case_outcome outcome = cases->run(i);
      send(0, outcome.failed ? case_failed : row, outcome.text);
    } catch (const std::exception& e) {
      send(0, rank_failed, e.what());
    }
  }
}

/// Hands the next case to every free rank; runs on rank 0.
void apportion(int ranks, const cli::sweep_cases& cases, std::span<const std::size_t> missing,
               const std::function<void(std::size_t, const cli::case_outcome&)>& done) {
  std::vector<std::size_t> running(static_cast<std::size_t>(ranks));
  std::size_t next = 0, finished = 0;
  const auto give = [&](int rank) {
    if (next == missing.size()) return;
    const std::size_t i = running[static_cast<std::size_t>(rank)] = missing[next++];
    send(rank, run_case, std::to_string(i) + " " + cases.key(i));
  };
  for (int rank = 1; rank < ranks; ++rank) give(rank);
  for (; finished < missing.size(); ++finished) {
    const message m = receive(MPI_ANY_SOURCE);
    const std::size_t i = running[static_cast<std::size_t>(m.rank)];
    if (m.tag == rank_failed) throw std::runtime_error("rank " + std::to_string(m.rank) + ": " + m.text);
    give(m.rank);  // before the row is written, so the rank does not wait for the disk
    done(i, {m.text, m.tag == case_failed});
  }
}

int lead(int ranks, const cli::common_options& options, const cli::sweep_options& o) {
  bool handing_out = false;
  int status = 2;
  try {
    status = cli::sweep(options, o, [&](const cli::sweep_cases& cases, std::span<const std::size_t> missing, const auto& done) {
      if (ranks == 1) {
        for (const std::size_t i : missing) done(i, cases.run(i));
      } else {
        handing_out = true;
        apportion(ranks, cases, missing, done);
        handing_out = false;
      }
    });
  } catch (const std::exception& e) {
    std::fprintf(stderr, "hetplan_sweep_mpi: %s\n", hetplan::escaped(e.what()).c_str());
    if (handing_out) MPI_Abort(MPI_COMM_WORLD, 2);  // the others may plan for long; the table keeps its rows
  }
  for (int rank = 1; rank < ranks; ++rank) send(rank, stop, "");
  return status;
}

int run(int argc, char** argv) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  cli::common_options options;
  cli::sweep_options o;
  CLI::App app("The command `hetplan sweep` over MPI ranks: rank 0 writes the table, the others plan.", "hetplan_sweep_mpi");
  app.add_option("sweep", o.sweep, "sweep file")->required()->type_name("SWEEP");
  app.add_option("--out", o.out, "the table, one JSON object a line; an interrupted one is gone on with")->required()->type_name("TABLE");
  app.add_option("--csv", o.csv, "write the table for spreadsheets too");
  app.add_flag("--json", options.json, "print one JSON document on standard output");
  app.add_flag("--quiet", options.quiet, "no progress");
  cli::add_search_options(app, options);
  try {
    cli::require_items(app, argc, argv);
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return rank == 0 ? app.exit(help) : 0;
  } catch (const CLI::ParseError& e) {
    if (rank == 0) std::fprintf(stderr, "hetplan_sweep_mpi: %s (see hetplan_sweep_mpi --help)\n", hetplan::escaped(e.what()).c_str());
    return 2;
  }
  if (rank == 0) return lead(ranks, options, o);
  work(options, o.sweep);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int status = run(argc, argv);
  MPI_Finalize();
  return status;
}
