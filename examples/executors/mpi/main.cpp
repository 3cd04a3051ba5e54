// SPDX-License-Identifier: BSL-1.0
// executor_mpi: runs a plan over MPI ranks, one per device, on one or several machines.
//
//   mpirun -n 4 executor_mpi profile mlp home.json --out-model mlp.json --out-cluster measured.json
//   mpirun -n 4 executor_mpi run mlp.json measured.json plan.json --nominal home.json
#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdio>
#include <exception>
#include <functional>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <mpi.h>
#include <sched.h>

#include <hetplan/problem/planning_problem.hpp>

#include "../common/alone.hpp"
#include "../common/command_line.hpp"
#include "../common/inputs.hpp"
#include "../common/report.hpp"
#include "../common/worker.hpp"
#include "links.hpp"

namespace {

using namespace executors;

struct ranks {
  int rank = 0, size = 1;
  bool on_one_machine = true;
  unsigned cores = 0;  ///< cores shared by the ranks; one per rank if they are on several machines
};

ranks find_ranks() {
  ranks r;
  MPI_Comm_rank(MPI_COMM_WORLD, &r.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &r.size);
  MPI_Comm here;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
  int size = 0;
  MPI_Comm_size(here, &size);
  MPI_Comm_free(&here);
  const int mine = size == r.size ? 1 : 0;
  int all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  r.on_one_machine = all == 1;
  cpu_set_t own, together;
  CPU_ZERO(&own);
  ::sched_getaffinity(0, sizeof own, &own);
  MPI_Allreduce(&own, &together, sizeof own, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
  r.cores = r.on_one_machine ? static_cast<unsigned>(CPU_COUNT(&together)) : static_cast<unsigned>(r.size);
  return r;
}

/// Waits for a collective operation without the busy loop of MPI_Wait.
void wait_quietly(MPI_Request request, double timeout_s) {
  const double end_s = steady_s() + timeout_s;
  for (int done = 0; done == 0;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done != 0) return;
    if (steady_s() > end_s) throw timed_out("a rank has waited " + hetplan::to_text(timeout_s) + " s for the others");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}
void wait_for_all(MPI_Comm who, double timeout_s) {
  MPI_Request request;
  MPI_Ibarrier(who, &request);
  wait_quietly(request, timeout_s);
}

/// Reads and checks on every rank. Returns false if any rank found bad input; the first such rank prints it on one line.
bool all_agree(int rank, double timeout_s, const std::function<void()>& read) {
  std::string what;
  try {
    read();
  } catch (const std::exception& e) {
    what = e.what();
  }
  const int mine = what.empty() ? INT_MAX : rank;
  int first = INT_MAX;
  MPI_Request request;
  MPI_Iallreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD, &request);
  wait_quietly(request, timeout_s);
  if (first == rank) std::fprintf(stderr, "executor_mpi: %s\n", what.c_str());
  return first == INT_MAX;
}

void require_ranks(const ranks& r, const std::vector<std::size_t>& expected, const std::string& what) {
  if (std::find(expected.begin(), expected.end(), static_cast<std::size_t>(r.size)) != expected.end()) return;
  throw hetplan::invalid_input("mpirun -n: got " + std::to_string(r.size) + (r.size == 1 ? " rank" : " ranks") + "; expected " + what);
}
void require_links(const ranks& r, bool shaped) {
  if (shaped && !r.on_one_machine) throw hetplan::invalid_input("--links: got shaped and ranks on several machines; expected real");
}

int run(const ranks& r, const options& o, bool shaped) {
  std::optional<run_inputs> in;
  prepared_run job;
  std::vector<std::size_t> used;
  slowing slow = slowing::wait;
  const auto read = [&] {
    in = read_run(o.model, o.cluster, o.plan, o.nominal);
    if (o.paced) require_known_kinds(in->cluster, o.cluster);
    slow = choose_slowing(o.slow, in->cluster, o.cluster, r.cores);
    if (o.paced) require_cores(in->cluster, in->plan, o.cluster, slow, r.cores);
    job = prepare(*in);
    for (std::size_t d = 0; d < in->cluster.size(); ++d) {
      if (job.work.uses(hetplan::device_id(d))) used.push_back(d);
    }
    const std::string all = std::to_string(in->cluster.size());
    require_ranks(r, {used.size(), in->cluster.size()},
                  std::to_string(used.size()) + ", one for each device of the plan, or " + all + ", one for each of the cluster");
    require_links(r, shaped);
    if (o.paced && !shaped && job.work.slots() > 0) {
      throw hetplan::invalid_input("--links: got real and a plan whose network is \"" + std::string(to_string(job.work.policy)) +
                                   "\"; expected shaped, which let transfers wait for each other");
    }
  };
  if (!all_agree(r.rank, o.timeout_s, read)) return 2;

  // With a rank per device of the cluster, those of unused devices have nothing to do.
  const bool works = static_cast<std::size_t>(r.size) == used.size() || job.work.uses(hetplan::device_id(r.rank));
  MPI_Comm workers;
  MPI_Comm_split(MPI_COMM_WORLD, works ? 0 : MPI_UNDEFINED, r.rank, &workers);
  if (!works) return 0;
  run_report report{.executor = "mpi",
                    .network = in->net.name,
                    .plan = o.plan,
                    .predicted_s = job.predicted_s,
                    .iterations = {},
                    .paced = o.paced,
                    .slow = std::string(to_string(slow))};
  training_settings settings{.seed = o.seed};
  if (o.paced) settings.paces = paces_of(in->cluster, slow);
  rank_links link(workers, job.work, in->cluster, shaped, o.timeout_s);
  worker w(in->net, job.work, link.device(), settings, link);
  train(w, link, 1 + o.iterations, report.iterations);
  report.overruns = static_cast<int>(link.meet(w.overruns()).sum);
  link.close();
  if (o.check) {
    const double mine = difference(report.iterations, w.parameters(), train_alone(in->net, job.work.batch, settings, 1 + o.iterations));
    wait_for_all(workers, o.timeout_s);
    double most = 0;
    MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, workers);
    report.difference = most;
  }
  int first = 0;
  MPI_Comm_rank(workers, &first);
  if (first == 0) std::cout << (o.json ? report_json(report) : report_text(report));
  MPI_Comm_free(&workers);
  return 0;
}

int profile(const ranks& r, const options& o, bool shaped) {
  std::optional<profile_inputs> in;
  const auto read = [&] {
    in = read_profile(o.network, o.cluster);
    const std::string all = std::to_string(in->nominal.size());
    require_ranks(r, {in->nominal.size()}, all + ", one for each device of the cluster");
    require_links(r, shaped);
  };
  if (!all_agree(r.rank, o.timeout_s, read)) return 2;
  kind_times times;
  if (r.rank == 0) times = profile_layers(o, *in, r.cores);
  wait_for_all(MPI_COMM_WORLD, std::max(o.timeout_s, 600.0));

  const pair_flows pairs = flows_between_all(in->nominal);
  rank_links link(MPI_COMM_WORLD, pairs.work, in->nominal, shaped, o.timeout_s);
  const auto send = [&](hetplan::device_id from, hetplan::device_id to, double bytes) {
    const double begin_s = link.meet(0).at_s;
    const std::size_t flow = pairs.flow_of.at({from, to});
    if (link.device() == from) link.send({{flow, 0, std::vector<double>(static_cast<std::size_t>(bytes / sizeof(double)), 1.0), begin_s}});
    double taken_s = 0;
    if (link.device() == to) {
      static_cast<void>(link.receive(flow, 0));
      taken_s = link.now_s() - begin_s;
    }
    return link.meet(taken_s).sum;
  };
  const hetplan::cluster measured = measure_cluster(in->nominal, o.link_runs(), send);
  link.close();
  if (r.rank == 0) write_profile(o, in->net, times, measured);
  return 0;
}

int work(int argc, char** argv) {
  command_line line("executor_mpi", "Trains plans for real over MPI ranks, one per device, and says whether the prediction was true.");
  std::string links;
  keep_memory();
  line.add_choice("--links", links, "shaped: as the cluster says, on one machine (so where devices are paced); real: as fast as they are",
                  {"shaped", "real"});
  const ranks r = find_ranks();
  if (const auto status = line.parse(argc, argv, r.rank != 0)) return *status;
  const options& o = line.given();
  const bool shaped = links.empty() ? o.paced : links == "shaped";
  return line.profiles() ? profile(r, o, shaped) : run(r, o, shaped);
}

}  // namespace

int main(int argc, char** argv) {
  int threads = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &threads);
  int status = 1;
  try {
    if (threads < MPI_THREAD_SERIALIZED)
      throw std::runtime_error("MPI: got thread level " + std::to_string(threads) + "; expected MPI_THREAD_SERIALIZED");
    status = work(argc, argv);
  } catch (const std::exception& e) {
    // After a loss, all waiting ranks notice at the same time: the first to speak ends the others.
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    std::this_thread::sleep_for(std::chrono::milliseconds(100) * rank);
    std::fprintf(stderr, "executor_mpi: %s\n", e.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return status;
}
