// SPDX-License-Identifier: BSL-1.0
// executor_mpi: runs a plan over MPI ranks, one per device, on one machine or on many.
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

#include <CLI/CLI.hpp>

#include <hetplan/plan/describe.hpp>

#include "../common/alone.hpp"
#include "../common/report.hpp"
#include "links.hpp"

namespace {

using namespace executors;

struct options {
  std::string network, model, cluster, plan, nominal, out_model, out_cluster;
  std::vector<int> batches{1, 2, 4, 8};
  bool quick = false, json = false, check = false;
  int iterations = 5;
  std::uint64_t seed = 1;
  std::string pace = "measured", links;
  double timeout_s = 30;
};

struct ranks {
  int rank = 0, size = 1;
  bool on_one_machine = true;
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
  return r;
}

/// Waits for what all ranks do together, without the busy loop of MPI_Wait.
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

/// Reads and checks on every rank. False where any found bad input: the first of those has said what, on one line.
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

int run(const ranks& r, const options& o) {
  const bool paced = o.pace == "measured";
  const bool shaped = o.links.empty() ? paced : o.links == "shaped";
  std::optional<run_inputs> in;
  prepared_run job;
  std::vector<std::size_t> used;
  const auto read = [&] {
    in = read_run(o.model, o.cluster, o.plan, o.nominal);
    if (paced) require_known_kinds(in->cluster, o.cluster);
    if (paced && r.on_one_machine) require_cores(in->cluster, in->plan, o.cluster);
    job = prepare(*in);
    for (std::size_t d = 0; d < in->cluster.size(); ++d) {
      if (job.work.uses(hetplan::device_id(d))) used.push_back(d);
    }
    const std::string all = std::to_string(in->cluster.size());
    require_ranks(r, {used.size(), in->cluster.size()},
                  std::to_string(used.size()) + ", one for each device of the plan, or " + all + ", one for each of the cluster");
    require_links(r, shaped);
  };
  if (!all_agree(r.rank, o.timeout_s, read)) return 2;

  // A rank per device of the cluster: those of devices that the plan leaves alone have nothing to do.
  const bool works = static_cast<std::size_t>(r.size) == used.size() || job.work.uses(hetplan::device_id(r.rank));
  MPI_Comm workers;
  MPI_Comm_split(MPI_COMM_WORLD, works ? 0 : MPI_UNDEFINED, r.rank, &workers);
  if (!works) return 0;
  run_report report{
      .executor = "mpi", .network = in->net.name, .plan = o.plan, .predicted_s = job.predicted_s, .iterations = {}, .paced = paced};
  training_settings settings{.seed = o.seed};
  settings.paced = paced ? paced_devices(in->cluster) : std::vector<char>(in->cluster.size(), 0);
  rank_links link(workers, job.work, in->cluster, shaped, o.timeout_s);
  worker w(in->net, job.work, link.device(), settings, link);
  report.iterations = train(w, link, 1 + o.iterations);
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

int profile(const ranks& r, const options& o) {
  const bool shaped = o.links != "real";
  std::optional<hetplan::cluster> nominal;
  neural_network net;
  const auto read = [&] {
    net = find_network(o.network);
    nominal = hetplan::io::read_cluster(hetplan::io::json_document::load(o.cluster));
    require_known_kinds(*nominal, o.cluster);
    require_ranks(r, {nominal->size()}, std::to_string(nominal->size()) + ", one for each device of the cluster");
    require_links(r, shaped);
  };
  if (!all_agree(r.rank, o.timeout_s, read)) return 2;
  std::vector<layer_times> times;
  if (r.rank == 0) times = measure_layers(net, o.batches, o.quick ? 5 : 21);
  wait_for_all(MPI_COMM_WORLD, std::max(o.timeout_s, 600.0));

  const pair_flows pairs = flows_between_all(*nominal);
  rank_links link(MPI_COMM_WORLD, pairs.work, *nominal, shaped, o.timeout_s);
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
  const hetplan::cluster measured = measure_cluster(*nominal, o.quick ? 3 : 9, send);
  link.close();
  if (r.rank == 0) {
    hetplan::io::write_atomically(o.out_model, hetplan::io::write_model(describe_measured(net, times, o.batches, *nominal)));
    hetplan::io::write_atomically(o.out_cluster, hetplan::io::write_cluster(measured));
    for (const hetplan::resource& x : measured.network().resources()) {
      std::printf("%-24s %s/s\n", x.name.c_str(), readable(hetplan::bytes(x.capacity.value())).c_str());
    }
  }
  return 0;
}

int work(int argc, char** argv) {
  options o;
  CLI::App app("Runs a plan over MPI ranks, one per device.", "executor_mpi");
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("--timeout", o.timeout_s, "seconds of every wait")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--links", o.links, "shaped: as the cluster says, on one machine (so where devices are paced); real: as fast as they are")
      ->check(CLI::IsMember({"shaped", "real"}));
  CLI::App* p = app.add_subcommand("profile", "measure a network's layers and the links");
  p->add_option("network", o.network, "mlp, transformer or towers")->required()->type_name("NETWORK");
  p->add_option("cluster", o.cluster, "cluster file, devices of kind core or core/NUMBER")->required()->type_name("CLUSTER");
  p->add_option("--out-model", o.out_model, "write the model with profiles")->required();
  p->add_option("--out-cluster", o.out_cluster, "write the cluster as measured")->required();
  p->add_option("--batches", o.batches, "batch sizes to measure, by comma")
      ->delimiter(',')
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  p->add_flag("--quick", o.quick, "fewer runs");
  CLI::App* run_it = app.add_subcommand("run", "train as planned, measured against predicted");
  run_it->add_option("model", o.model, "model file")->required()->type_name("MODEL");
  run_it->add_option("cluster", o.cluster, "cluster file")->required()->type_name("CLUSTER");
  run_it->add_option("plan", o.plan, "plan file")->required()->type_name("PLAN");
  run_it->add_option("--nominal", o.nominal, "cluster file that shapes the links (CLUSTER)");
  run_it->add_option("--iterations", o.iterations, "after one that is not counted")->check(CLI::Range(1, 1000000))->capture_default_str();
  run_it->add_option("--seed", o.seed, "of parameters and data")->capture_default_str();
  run_it->add_flag("--json", o.json, "print one JSON document");
  run_it->add_flag("--check", o.check, "compare with training on one device");
  run_it->add_option("--pace", o.pace, "none: devices and links at full speed")
      ->check(CLI::IsMember({"measured", "none"}))
      ->capture_default_str();
  const ranks r = find_ranks();
  try {
    app.parse(argc, argv);
    std::sort(o.batches.begin(), o.batches.end());
    o.batches.erase(std::unique(o.batches.begin(), o.batches.end()), o.batches.end());
  } catch (const CLI::Success& help) {
    return r.rank == 0 ? app.exit(help) : 0;
  } catch (const CLI::ParseError& e) {
    if (r.rank == 0) std::fprintf(stderr, "executor_mpi: %s (see executor_mpi --help)\n", e.what());
    return 2;
  }
  return p->parsed() ? profile(r, o) : run(r, o);
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
    // Where one is lost, all that wait for it notice at the same time: the first to speak ends the others.
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    std::this_thread::sleep_for(std::chrono::milliseconds(100) * rank);
    std::fprintf(stderr, "executor_mpi: %s\n", e.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return status;
}
