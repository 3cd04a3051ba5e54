// SPDX-License-Identifier: BSL-1.0
#pragma once
// The command line program: parsed options, and one function per command.

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/coarsen/merge_small.hpp>
#include <hetplan/hetplan.hpp>
#include <hetplan/io/json_node.hpp>
#include <hetplan/io/plan_json.hpp>
#include <hetplan/io/unused_fields.hpp>
#include <hetplan/recipes/dora.hpp>
#include <hetplan/recipes/largest.hpp>
#include <hetplan/simulate/explain.hpp>
#include <hetplan/solve/glpk.hpp>

namespace cli {

inline constexpr int standard_seed = 1;

/// Options of all commands, and of all commands that search.
struct common_options {
  bool json = false;
  bool quiet = false;
  std::optional<int> seed;                     ///< of randomised searches
  std::optional<int> threads;                  ///< of parallel searches; never changes an answer
  long long budget = hetplan::standard_steps;  ///< limit of a planner's steps
  std::vector<std::string> rows;               ///< of Dora: names of named_models.hpp, like the next three; "": its default
  std::string law, orders, transfers;
  std::string contention, copies;  ///< of planners that place operators; "": their default
  std::optional<int> tokens;
  std::optional<std::vector<int>> input;
  std::string dtype;
  std::string weights;      ///< a name of zoo::weight_formats; "": as the dtype
  std::optional<int> lora;  ///< columns of a language model's adapters, which alone learn
  std::string fuse;         ///< a name of known_fusions; "": none
};

struct simulate_options {
  std::string model, cluster, plan, network, trace, svg;
};
struct plan_options {
  std::string model, cluster, job, planner = "dora", objective, out, svg, html, trace;
  int phase = 0;
  bool split_tensors = false;  ///< in addition to the job's
  std::vector<std::string> schedules = {};
  std::optional<int> top;        ///< number of plans to keep and list; none: keeps 10, lists none
  std::string largest;           ///< "batch" or "context": which of them to maximise; "": neither
  std::optional<int> most = {};  ///< with largest: none above it
};
struct compare_options {
  std::string model, cluster, job;
  std::vector<std::string> planners, schedules;
};
struct export_options {
  std::string model, cluster, plan, to, out;
  std::string blocks;                   ///< torch: place of the blocks in the module
  bool whole_blocks = false;            ///< moves cuts to block boundaries
  std::string source;                   ///< onnx: the file that the model was imported from
  std::vector<std::string> dimensions;  ///< onnx: as in the import
  std::vector<std::string> conditions;  ///< onnx: as in the import
};
struct replay_options {
  std::string model, cluster, plan, out;
  std::vector<std::string> lost;
};
struct adapt_options {
  std::string model, cluster, job, timeline, html, svg;
  std::vector<std::string> policies;
  std::optional<long long> backups;  ///< iterations between backups; 0: none
};
struct serve_options {
  std::string cloud, services, requests, deployment, faults, records, html;
  std::string trace_service;         ///< service of a trace; "" if it is clear
  std::optional<double> time_scale;  ///< of a trace; default 1
  std::string system = "epara", expected, out, out_cloud;
  std::optional<std::string> cycle, size_for;
  std::optional<int> most_gpus;  ///< of a server, with size_for; default 64
  bool explain = false;
  std::optional<long long> seed;
  std::optional<int> offloads;  ///< default 5
};
struct sweep_options {
  std::string sweep, out, csv;
};
struct groups_options {
  std::string cluster, model, html, message = "1 MB";
};
struct fit_command_options {
  std::string cluster, measured, out, check;
  std::vector<std::string> parameters;  ///< empty: the usual
};
struct profile_command_options {
  std::string model, device, kind, out_model, out_cluster, onto;
  std::string listen, connect, key;  ///< a link to another machine; "": none
  std::vector<int> batches;          ///< empty: 1, 2, 4, 8
  int cores = 0;                     ///< 0: all
  double limit_s = 300, timeout_s = 60;
};
struct show_options {
  std::string what, dot;
};
struct import_options {
  std::string format, file, out, cluster;  ///< format: the name of import's subcommand
  std::string device;                      ///< kind of the measured device
  std::string input_time = "zero";         ///< pipedream
  std::string configuration = "vanilla";   ///< piper
  std::string time_unit = "s";             ///< piper
  std::optional<double> forward_share;     ///< piper, metis
  std::string types, model;                ///< pipeedge
  std::vector<std::string> devices;        ///< pipeedge: TYPE=NUMBER
  std::string sizes, onto;                 ///< sailor: exactly one of them
  int microbatch = 1;                      ///< sailor
  int degree = 1;                          ///< piper, sailor, metis: tensor parallel degree
  std::vector<std::string> dimensions;     ///< onnx: NAME=SIZE
  std::vector<std::string> conditions;     ///< onnx: BRANCH or NAME=BRANCH
  std::optional<int> tokens_per_sample;    ///< onnx, ncnn
  std::vector<std::string> shapes;         ///< ncnn: NAME=WIDTHxHEIGHTxCHANNELS
  std::string memory, sequence;            ///< galvatron
  std::vector<int> layers;                 ///< galvatron: of each type
  std::string boundary;                    ///< metis, galvatron: bytes of a layer's output for a sample
  bool fine = false;                       ///< hf, gguf, safetensors: an operator a layer
  std::string place;                       ///< moirai, dnn-partitioning: contention rule; "": operators are not placed
};

/// Commands. They return the exit status: 0 done, 1 no feasible plan. Bad input is thrown and becomes 2.
int simulate(const common_options&, const simulate_options&);
int plan(const common_options&, const plan_options&);
int compare(const common_options&, const compare_options&);
int export_plan(const common_options&, const export_options&);
int replay(const common_options&, const replay_options&);
int adapt(const common_options&, const adapt_options&);
int serve_requests(const common_options&, const serve_options&);
int sweep(const common_options&, const sweep_options&);
int groups(const common_options&, const groups_options&);
int fit_devices(const common_options&, const fit_command_options&);
int profile_machine(const common_options&, const profile_command_options&);
int show(const common_options&, const show_options&);
int import_model(const common_options&, const import_options&);
int init(const common_options&, const std::string& folder);
/// The kinds that `list` knows, in its order.
inline constexpr const char* listed_kinds[] = {"models", "clusters", "devices",   "planners", "policies", "rows",
                                               "laws",   "orders",   "transfers", "fusions",  "systems"};
int list(const common_options&, const std::string& what);

// Functions shared by the commands.

/// Prints `hetplan: warning: TEXT` on standard error, on one line, each text once, even with --quiet: nothing is ignored silently.
void warn(const std::string& text);

/// Returns a model by file or built-in name, fused by the options. Throws invalid_input for unused options of built-in models.
hetplan::planning_graph load_model(const common_options&, const std::string& name);
/// Throws invalid_input for an ONNX file, which must be imported first.
void require_no_onnx(const std::string& file);
/// Returns the model with operators fused by the options.
hetplan::planning_graph fused_as_asked(const common_options&, hetplan::planning_graph model);
/// Returns the layers of the fused model as blocks of the whole model; none without --fuse.
std::optional<hetplan::coarsen::blocks> blocks_as_asked(const common_options&, const hetplan::planning_graph& model);
/// Returns the options without those of built-in models that this model does not use.
common_options options_for(const common_options&, const std::string& model);
/// Throws invalid_input for an option of built-in models if there is none; `dtype`: --dtype is allowed.
void require_no_model_options(const common_options&, const std::string& who, bool dtype = false);
/// Returns the value of an option: a number in SI units, or with a unit as in the example.
double read_amount(const char* option, const std::string& text, const hetplan::io::dimension& d, hetplan::io::range r, const char* example);
/// Throws invalid_input for the first given one of these options.
void refuse(std::span<const std::pair<const char*, bool>> options, const std::string& because);
/// Throws invalid_input for an option of planners other than the seed, if none searches.
void require_no_planner_options(const common_options&, const std::string& who);
/// Returns a cluster from a file or by a built-in name. Warns of fields that no plan can use.
hetplan::cluster load_cluster(const std::string& name);
/// Returns the job of a file; without a file, training with batch 32. Warns of unused fields.
///
/// @param objective  replaces the job's; "": its own.   @param schedules  likewise; empty: its own.
hetplan::job load_job(const std::string& file, const hetplan::io::job_use& use = {}, const std::string& objective = "",
                      const std::vector<std::string>& schedules = {});
/// Throws invalid_input that names the job's file if its pins name layers or devices that are not there.
void check_pins(const std::string& job_file, const hetplan::job& wanted, const hetplan::planning_graph& model,
                const hetplan::cluster& devices);
/// Throws if a model and a cluster do not fit together (io::check_together). Warns of unused profiles.
void check_pair(const hetplan::planning_graph& model, const hetplan::cluster& devices, const std::string& cluster,
                std::optional<hetplan::workload> w = {});
/// Returns the plan of a file. Warns if it was made for another model or cluster, and of fields without effect.
///
/// @param network  replaces the plan's; "": its own.
hetplan::io::plan_file load_plan(const std::string& file, const hetplan::planning_graph& model, const hetplan::cluster& devices,
                                 const std::string& network = "");
/// Warns if a plan's file predicts other numbers than the simulator.
void check_prediction(const std::string& file, const hetplan::io::plan_file& read, const hetplan::evaluation& simulated,
                      const hetplan::planning_graph& model, const hetplan::cluster& devices);
/// Simulates the plan and does the same; warns if that is impossible.
void check_prediction(const std::string& file, const hetplan::io::plan_file& read, const hetplan::planning_graph& model,
                      const hetplan::cluster& devices);
/// Throws invalid_input if a name occurs twice in an option's list.
void require_each_once(const char* option, const std::vector<std::string>& names);

using problem = hetplan::planning_problem;

/// Prints a planner's answer: the best plan, in generation with what limits it, or why there is none; with --json, the document. Returns
/// the exit status.
///
/// @param explained  of the best plan; may be null.
/// @param largest    what was found with the plan; may be null.
int answer(const common_options&, const hetplan::plan_result&, const hetplan::planning_graph& model, const hetplan::cluster& devices,
           const hetplan::run_explanation* explained, const hetplan::recipes::largest_found* largest = nullptr);

/// Returns true if a progress line is visible.
bool shows_progress(const common_options&);

/// Draws a progress line for judged candidates, on a terminal only.
class progress {
 public:
  progress(const common_options& options, std::string label);
  ~progress();
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;
  hetplan::control operator()(const hetplan::candidate_judged& c);

 private:
  std::string label_;
  bool visible_;
};

/// Returns the planners of this version in the order of their introduction.
const std::vector<std::string>& planner_names();
/// Returns the policies that `adapt` can compare.
const std::vector<std::string>& policy_names();
/// Returns true if the planner places the operators of one inference; its default job has batch 1.
bool places_operators(const std::string& planner);
/// Dora's two phases together or alone.
enum class dora_phase { both = 0, partitioner = 1, scheduler = 2 };
/// Throws invalid_input if the option's name is no planner.
void require_planner(const char* option, const std::string& name);
/// Parses "seq=128" into name and size, for ONNX's dynamic axes.
std::map<std::string, long long> parse_dimensions(const std::vector<std::string>& given);
/// Parses "then" or "NAME=else": true if an operator If of an ONNX model takes its first branch; "" stands for all others.
std::map<std::string, bool> parse_conditions(const std::vector<std::string>& given);
/// Returns the given options that none of these planners uses. Throws invalid_input for a model of Dora's search, or a repeated row.
///
/// @param inference  true: the job is one inference, the only kind whose operators are placed.
std::vector<std::string> unused_options(const common_options& options, std::span<const std::string> planners, bool inference,
                                        dora_phase phase = dora_phase::both);
/// Returns the wishes of a job that none of these planners follows, one line each: baselines have their own schedule and minimise latency.
///
/// @param top  true: a number of plans is requested.
std::vector<std::string> unused_wishes(const hetplan::job& wanted, std::span<const std::string> planners, bool top = false);
/// Returns the options' models for this planner as text; "" if there are none.
std::string chosen_models(const common_options& options, const std::string& planner);
/// Returns Dora's options with at least `keep` plans.
hetplan::recipes::dora_options dora_options(const common_options& options, int keep = 0);
hetplan::plan_result run_planner(const common_options& options, const std::string& name, const problem& p, int keep,
                                 const hetplan::candidate_observer& observer, dora_phase phase = dora_phase::both);
/// The same for another objective than the job's.
hetplan::plan_result run_planner(const common_options& options, const std::string& name, const problem& p,
                                 const hetplan::any_objective& objective, int keep, const hetplan::candidate_observer& observer,
                                 dora_phase phase = dora_phase::both);

}  // namespace cli
