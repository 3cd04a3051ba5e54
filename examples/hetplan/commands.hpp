// SPDX-License-Identifier: BSL-1.0
#pragma once
// The command line program: options as parsed, one function per command.

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
#include <hetplan/solve/glpk.hpp>

namespace cli {

inline constexpr int standard_seed = 1;

/// What every command understands, and what all commands that search do.
struct common_options {
  bool json = false;
  bool quiet = false;
  std::optional<int> seed;                     ///< of the searches that draw
  std::optional<int> threads;                  ///< of the searches that run side by side; never changes an answer
  long long budget = hetplan::standard_steps;  ///< steps that a planner may take
  std::vector<std::string> rows;               ///< of dora, by the names of named_models.hpp, as the next three; "": as it does unasked
  std::string law, orders, transfers;
  std::string contention, copies;  ///< of planners that place operators; "": as they do unasked
  std::optional<int> tokens;
  std::optional<std::vector<int>> input;
  std::string dtype;
  std::string fuse;  ///< by the names of known_fusions; "": none
};

struct simulate_options {
  std::string model, cluster, plan, network, trace, svg;
};
struct plan_options {
  std::string model, cluster, job, planner = "dora", objective, out, svg, html, trace;
  int phase = 0;
  bool split_tensors = false;  ///< beside the job's
  std::vector<std::string> schedules = {};
  std::optional<int> top;  ///< 10 plans are kept, and listed where this is given
};
struct compare_options {
  std::string model, cluster, job;
  std::vector<std::string> planners, schedules;
};
struct export_options {
  std::string model, cluster, plan, to, out;
  std::string blocks;                   ///< torch: where the module has its blocks
  bool whole_blocks = false;            ///< moves cuts
  std::string source;                   ///< onnx: the file that the model was imported from
  std::vector<std::string> dimensions;  ///< onnx: as it was imported
  std::vector<std::string> conditions;  ///< onnx: as it was imported
};
struct replay_options {
  std::string model, cluster, plan, out;
  std::vector<std::string> lost;
};
struct adapt_options {
  std::string model, cluster, job, timeline, html, svg;
  std::vector<std::string> policies;
  std::optional<long long> backups;  ///< after so many iterations; 0: none
};
struct serve_options {
  std::string cloud, services, requests, deployment, faults, records, html;
  std::string trace_service;         ///< of a trace: "" where it need not be said
  std::optional<double> time_scale;  ///< of a trace: 1
  std::string system = "epara", expected, out, out_cloud;
  std::optional<std::string> cycle, size_for;
  std::optional<int> most_gpus;  ///< of a server, with size_for: 64
  bool explain = false;
  std::optional<long long> seed;
  std::optional<int> offloads;  ///< 5
};
struct sweep_options {
  std::string sweep, out, csv;
};
struct groups_options {
  std::string cluster, model, html, message = "1 MB";
};
struct show_options {
  std::string what, dot;
};
struct import_options {
  std::string format, file, out, cluster;  ///< format: pipedream, piper, pipeedge, sailor, moirai, dnn-partitioning, onnx
  std::string device;                      ///< the kind that was measured
  std::string input_time = "zero";         ///< pipedream
  std::string configuration = "vanilla";   ///< piper
  std::string time_unit = "s";             ///< piper
  std::optional<double> forward_share;     ///< piper
  std::string types, model;                ///< pipeedge
  std::vector<std::string> devices;        ///< pipeedge: TYPE=NUMBER
  std::string sizes, onto;                 ///< sailor: one of them
  int microbatch = 1;                      ///< sailor
  int degree = 1;                          ///< piper, sailor: of tensor parallelism
  std::vector<std::string> dimensions;     ///< onnx: NAME=SIZE
  std::vector<std::string> conditions;     ///< onnx: BRANCH or NAME=BRANCH
  std::optional<int> tokens_per_sample;    ///< onnx
  std::string place;                       ///< moirai, dnn-partitioning: a rule of contention; "": operators are not placed
};

/// Exit status: 0 done, 1 no feasible plan; bad input leaves as an exception and becomes 2.
int simulate(const common_options&, const simulate_options&);
int plan(const common_options&, const plan_options&);
int compare(const common_options&, const compare_options&);
int export_plan(const common_options&, const export_options&);
int replay(const common_options&, const replay_options&);
int adapt(const common_options&, const adapt_options&);
int serve_requests(const common_options&, const serve_options&);
int sweep(const common_options&, const sweep_options&);
int groups(const common_options&, const groups_options&);
int show(const common_options&, const show_options&);
int import_model(const common_options&, const import_options&);
int init(const common_options&, const std::string& folder);
/// What `list` knows, in its order.
inline constexpr const char* listed_kinds[] = {"models", "clusters", "devices",   "planners", "policies", "rows",
                                               "laws",   "orders",   "transfers", "fusions",  "systems"};
int list(const common_options&, const std::string& what);

// --- shared by the commands ---

/// Prints `hetplan: warning: TEXT` on standard error, one line whatever the text holds, each text once; with --quiet too, which
/// silences progress alone: nothing that a file or an option asks is ignored in silence.
void warn(const std::string& text);

/// A file, or a built-in name, fused as the options say. Throws invalid_input for an option of built-in models that this one has no use
/// for.
hetplan::planning_graph load_model(const common_options&, const std::string& name);
/// Throws invalid_input for a file of ONNX's, which is to be imported first.
void require_no_onnx(const std::string& file);
/// The model with operators fused as the options say.
hetplan::planning_graph fused_as_asked(const common_options&, hetplan::planning_graph model);
/// The layers of such a model as blocks of the whole one; none where --fuse is not given.
std::optional<hetplan::coarsen::blocks> blocks_as_asked(const common_options&, const hetplan::planning_graph& model);
/// The options without those of built-in models that this one has no use for.
common_options options_for(const common_options&, const std::string& model);
/// Throws invalid_input for an option of built-in models where there is none; `dtype`: it has a use all the same.
void require_no_model_options(const common_options&, const std::string& who, bool dtype = false);
/// What an option is given: a number in SI units, or one with its unit, such as the example.
double read_amount(const char* option, const std::string& text, const hetplan::io::dimension& d, hetplan::io::range r, const char* example);
/// Throws invalid_input for the first of these options that is given.
void refuse(std::span<const std::pair<const char*, bool>> options, const std::string& because);
/// Throws invalid_input for an option of planners other than the seed, where none searches.
void require_no_planner_options(const common_options&, const std::string& who);
/// A file, or a built-in name. Warns of fields that no plan can make use of.
hetplan::cluster load_cluster(const std::string& name);
/// Without a file: training, batch 32. Warns of what is not used.
///
/// @param objective  takes the place of the job's; "": its own.   @param schedules  likewise; none: its own.
hetplan::job load_job(const std::string& file, const hetplan::io::job_use& use = {}, const std::string& objective = "",
                      const std::vector<std::string>& schedules = {});
/// Throws where a model and a cluster do not go together (io::check_together), and warns of profiles that are not used.
void check_pair(const hetplan::planning_graph& model, const hetplan::cluster& devices, const std::string& cluster,
                std::optional<hetplan::mode> mode = {});
/// Warns where the plan was made for another model or cluster, and of fields that change nothing.
///
/// @param network  takes the place of the plan's; "": its own.
hetplan::io::plan_file load_plan(const std::string& file, const hetplan::planning_graph& model, const hetplan::cluster& devices,
                                 const std::string& network = "");
/// Warns where a plan's file predicts other numbers than the simulator gives.
void check_prediction(const std::string& file, const hetplan::io::plan_file& read, const hetplan::evaluation& simulated,
                      const hetplan::planning_graph& model, const hetplan::cluster& devices);
/// The same where nobody has simulated the plan; warns where that cannot be done.
void check_prediction(const std::string& file, const hetplan::io::plan_file& read, const hetplan::planning_graph& model,
                      const hetplan::cluster& devices);
/// Throws invalid_input where a name of an option's list stands twice.
void require_each_once(const char* option, const std::vector<std::string>& names);

using problem = hetplan::planning_problem;

/// Prints a planner's answer: the best plan or why there is none, with --json the document. Returns the exit status.
int answer(const common_options&, const hetplan::plan_result&, const hetplan::planning_graph& model, const hetplan::cluster& devices);

/// Is there somebody who sees a progress line?
bool shows_progress(const common_options&);

/// Called with every judged candidate: draws a progress line on a terminal, never elsewhere.
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

/// The planners of this version, in the order of their introduction.
const std::vector<std::string>& planner_names();
/// What `adapt` can compare.
const std::vector<std::string>& policy_names();
/// Does the planner place the operators of one inference? Without a job it plans one of batch 1.
bool places_operators(const std::string& planner);
/// Dora's two phases, and each alone.
enum class dora_phase { both = 0, partitioner = 1, scheduler = 2 };
/// Throws invalid_input for a name that is no planner, given by this option.
void require_planner(const char* option, const std::string& name);
/// "seq=128" as name and size, for ONNX's dynamic axes.
std::map<std::string, long long> parse_dimensions(const std::vector<std::string>& given);
/// "then", or "NAME=else": does an operator If of an ONNX model take its first branch? "" are all that are not named.
std::map<std::string, bool> parse_conditions(const std::vector<std::string>& given);
/// What is given and none of these planners takes, a line each. Throws invalid_input where it is a model of dora's, by name, or a row
/// stands twice.
///
/// @param inference  is there a job that is one? No other has its operators placed.
std::vector<std::string> unused_options(const common_options& options, std::span<const std::string> planners, bool inference,
                                        dora_phase phase = dora_phase::both);
/// What a job wants and none of these planners chooses by, a line each: baselines have a schedule of their own and look for the least
/// latency.
///
/// @param top  is a number of plans asked for?
std::vector<std::string> unused_wishes(const hetplan::job& wanted, std::span<const std::string> planners, bool top = false);
/// What the options name of this planner's models; "" where they name none.
std::string chosen_models(const common_options& options, const std::string& planner);
/// Dora as the options want it, with `keep` plans at least.
hetplan::recipes::dora_options dora_options(const common_options& options, int keep = 0);
hetplan::plan_result run_planner(const common_options& options, const std::string& name, const problem& p, int keep, progress& observer,
                                 dora_phase phase = dora_phase::both);

}  // namespace cli
