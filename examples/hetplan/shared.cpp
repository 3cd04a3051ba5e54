// SPDX-License-Identifier: BSL-1.0
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include <unistd.h>

#include <hetplan/coarsen/fuse_operators.hpp>
#include <hetplan/io/cluster_json.hpp>
#include <hetplan/io/job_json.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/io/json_node.hpp>
#include <hetplan/io/model_json.hpp>
#include <hetplan/io/plan_json.hpp>
#include <hetplan/io/results_json.hpp>
#include <hetplan/io/unused_fields.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

#include "commands.hpp"
#include "named_models.hpp"

namespace cli {

using namespace hetplan;

namespace {

template <class Names>
bool contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Throws for a name without a file; the message lists the known names.
template <class Names>
void require_file(const char* what, const std::string& name, const Names& names) {
  if (!std::filesystem::exists(name)) {
    throw invalid_input(name + ": expected a " + what + " file or one of " + io::joined(names) + "; there is neither" +
                        io::suggestion(name, names));
  }
}

zoo::model_options model_options(const common_options& o) {
  zoo::model_options m;
  if (o.tokens) m.tokens = *o.tokens;
  if (o.input) m.input = zoo::image_shape{(*o.input)[0], (*o.input)[1], (*o.input)[2]};
  if (o.dtype == "bf16") m.dtype = zoo::precision::bf16;
  if (o.dtype == "fp32") m.dtype = zoo::precision::fp32;
  m.weights = o.weights;
  m.lora = o.lora.value_or(0);
  return m;
}

}  // namespace

void warn(const std::string& text) {
  static std::set<std::string> told;
  if (told.insert(text).second) std::fprintf(stderr, "hetplan: warning: %s\n", io::escaped(text).c_str());
}

common_options options_for(const common_options& options, const std::string& model) {
  common_options o = options;
  const bool built_in = contains(zoo::model_names(), model) && !std::filesystem::exists(model);
  if (!built_in || !zoo::takes_tokens(model)) {
    o.tokens.reset();
    o.weights.clear();
    o.lora.reset();
  }
  if (!built_in || zoo::takes_tokens(model)) o.input.reset();
  if (!built_in) o.dtype.clear();
  return o;
}

void require_no_model_options(const common_options& o, const std::string& who, bool dtype) {
  if (!o.fuse.empty()) throw invalid_input("--fuse: only a model takes it, not " + who);
  const char* given = o.tokens                     ? "--tokens"
                      : !o.weights.empty()         ? "--weights"
                      : o.lora                     ? "--lora"
                      : o.input                    ? "--input"
                      : !o.dtype.empty() && !dtype ? "--dtype"
                                                   : nullptr;
  if (given == nullptr) return;
  throw invalid_input(std::string(given) + ": only a built-in " +
                      (o.tokens || o.lora || !o.weights.empty() ? "language "
                       : o.input                                ? "vision "
                                                                : "") +
                      "model takes it, not " + who);
}

double read_amount(const char* option, const std::string& text, const io::dimension& d, io::range r, const char* example) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool bare = error == std::errc() && end == text.data() + text.size();
  const io::parsed_quantity amount = bare ? io::parsed_quantity{number} : io::parse_quantity(text, d);
  const double value = amount.value.value_or(-1);
  if (std::isfinite(value) && (value > 0 || (value == 0 && r == io::range::at_least_zero))) return value;
  throw invalid_input(std::string(option) + ": expected " + io::expectation(d, r) + ", such as " + io::in_quotes(example) + ", got " +
                      io::in_quotes(text) + (amount.meant.empty() ? "" : "; did you mean " + io::in_quotes(amount.meant) + "?"));
}

void refuse(std::span<const std::pair<const char*, bool>> options, const std::string& because) {
  for (const auto& [name, given] : options) {
    if (given) throw invalid_input(std::string(name) + ": " + because);
  }
}

void require_no_planner_options(const common_options& o, const std::string& who) {
  const std::array<std::pair<const char*, bool>, 8> options{{{"--rows", !o.rows.empty()},
                                                             {"--law", !o.law.empty()},
                                                             {"--orders", !o.orders.empty()},
                                                             {"--transfers", !o.transfers.empty()},
                                                             {"--contention", !o.contention.empty()},
                                                             {"--copies", !o.copies.empty()},
                                                             {"--threads", o.threads.has_value()},
                                                             {"--budget", o.budget != standard_steps}}};
  refuse(options, "only planners take it, not " + who);
}

planning_graph fused_as_asked(const common_options& options, planning_graph model) {
  for (const auto& known : known_fusions()) {
    if (options.fuse != known.name) continue;
    const coarsen::fusion_rules rules = known.make(standard_seed);
    const coarsen::blocks blocks = coarsen::fuse_operators(model, rules);
    if (options.fuse != "none" && blocks.size() == model.size())
      warn("--fuse: no operators of model " + io::in_quotes(model.name()) + " fuse as " + options.fuse + " does it");
    return coarsen::fused_graph(model, blocks, rules);
  }
  return model;
}

std::optional<coarsen::blocks> blocks_as_asked(const common_options& options, const planning_graph& model) {
  for (const auto& known : known_fusions()) {
    if (options.fuse == known.name) return coarsen::fuse_operators(model, known.make(standard_seed));
  }
  return std::nullopt;
}

/// Detects ONNX by the first byte, protobuf's key of the format version, or by the name, unless the file holds JSON. Does not read pipes.
void require_no_onnx(const std::string& file) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return;
  std::ifstream in(file, std::ios::binary);
  if (in.peek() == 'G' || file.ends_with(".safetensors")) {
    const std::string format = in.peek() == 'G' ? "gguf" : "safetensors";
    throw invalid_input(file + ": expected a hetplan model; \"hetplan import " + format + " " + file +
                        " --out MODEL.json\" makes one of it");
  }
  if (in.peek() != 8 && (!file.ends_with(".onnx") || (in >> std::ws).peek() == '{')) return;
  throw invalid_input(file + ": expected a hetplan model, got an ONNX file; \"hetplan import onnx " + file +
                      " --out MODEL.json\" makes one of it");
}

planning_graph load_model(const common_options& options, const std::string& name) {
  common_options left = options;  // options that the model does not use
  left.fuse.clear();
  const common_options used = options_for(options, name);
  if (used.tokens) left.tokens.reset();
  if (used.input) left.input.reset();
  if (!used.dtype.empty()) left.dtype.clear();
  if (!used.weights.empty()) left.weights.clear();
  if (used.lora) left.lora.reset();
  require_no_model_options(left, name);
  if (contains(zoo::model_names(), name) && !std::filesystem::exists(name)) {
    return fused_as_asked(options, zoo::model(name, model_options(used)));
  }
  require_file("model", name, zoo::model_names());
  require_no_onnx(name);
  return fused_as_asked(options, io::read_model(io::json_document::load(name)));
}

cluster load_cluster(const std::string& name) {
  if (contains(zoo::clusters_and_devices(), name) && !std::filesystem::exists(name)) return zoo::cluster(name);
  require_file("cluster", name, zoo::clusters_and_devices());
  const io::json_document document = io::json_document::load(name);
  cluster c = io::read_cluster(document);
  for (const std::string& line : io::unused_cluster_fields(io::json_node(document), c)) warn(line);
  return c;
}

job load_job(const std::string& file, const io::job_use& use, const std::string& objective, const std::vector<std::string>& schedules) {
  job wanted;
  std::optional<io::json_document> document;
  if (!file.empty()) wanted = io::read_job(document.emplace(io::json_document::load(file)));
  for (const objective_kind kind : objective_kinds) {
    if (objective == to_string(kind)) wanted.objective = kind;
  }
  if (!schedules.empty()) {
    bool base = false;
    wanted.orders.clear();
    for (const std::string& name : schedules) {
      if (const std::string expected = io::name_schedule(wanted, name, base); !expected.empty())
        throw invalid_input("--schedule: expected " + expected + ", got " + io::in_quotes(name));
    }
    wanted.only_orders = !wanted.orders.empty() && !base;
  }
  check_job(wanted);
  if (document) {
    for (const std::string& line : io::unused_job_fields(io::json_node(*document), wanted, use)) warn(line);
  }
  return wanted;
}

void check_pins(const std::string& job_file, const job& wanted, const planning_graph& model, const cluster& devices) {
  static_cast<void>(pinned_devices(wanted, model, devices, job_file.empty() ? "job" : job_file));
}

void check_pair(const planning_graph& model, const cluster& devices, const std::string& cluster, std::optional<workload> w) {
  io::check_together(model, devices, cluster, w);
  if (const auto line = io::unused_profiles(model, devices)) warn(*line);
  const std::string& format = model.facts().weight_format;
  const auto layers = model.layers();
  if (w && w->mode == mode::training && format.starts_with('q') &&
      std::any_of(layers.begin(), layers.end(), [](const layer& l) { return l.trainable_weight() > bytes{}; }))
    warn("model " + io::in_quotes(model.name()) + ": weights in " + io::in_quotes(format) +
         " are trained: gradients and optimizer have as few bits, which no optimizer does; expected f16, or layers that are not trainable");
}

namespace {

/// Returns true for our planners, and for plans that they adopted, as "dora, from asteroid".
bool is_planner_of_ours(const std::string& planner) {
  const std::string name = planner.substr(0, planner.find(','));
  return name == "replay" || contains(planner_names(), name);
}

}  // namespace

io::plan_file load_plan(const std::string& file, const planning_graph& model, const cluster& devices, const std::string& network) {
  const io::json_document document = io::json_document::load(file);
  io::plan_file read = io::read_plan(document, model, devices);
  hetplan::plan& p = read.plan;
  for (const sharing s : all_sharings) {
    if (network == to_string(s)) p.sharing_policy = s;
  }
  const auto differs = [&](const char* what, const std::string& of, const std::string& here) {
    if (of != here) warn(file + ": /" + what + ": the plan was made for " + io::in_quotes(of) + " and is used for " + io::in_quotes(here));
  };
  differs("model", p.model, model.name());
  differs("cluster", p.cluster, devices.name());
  for (const std::string& line : io::unused_plan_fields(io::json_node(document), read, model, devices, is_planner_of_ours(p.planner)))
    warn(line);
  return read;
}

namespace {

/// Returns true if the file has a prediction for this model and cluster; load_plan warns of others.
bool predicts(const io::plan_file& read, const planning_graph& model, const cluster& devices) {
  return read.predicted && read.plan.model == model.name() && read.plan.cluster == devices.name();
}

}  // namespace

void check_prediction(const std::string& file, const io::plan_file& read, const evaluation& simulated, const planning_graph& model,
                      const cluster& devices) {
  if (!predicts(read, model, devices)) return;
  constexpr double tolerance = 1e-9;
  bool told = false;
  const auto differs = [&](const std::string& what, double given, double found, double size = 0) {
    if (told || std::abs(given - found) <= tolerance * std::max({std::abs(given), std::abs(found), size})) return;
    told = true;
    warn(file + ": /predicted/" + what + ": " + to_text(given) + " is predicted and " + to_text(found) +
         " simulated; the simulated numbers count");
  };
  const evaluation& all = *read.predicted;
  differs("latency", all.latency.value(), simulated.latency.value());
  if (all.time_between_tokens && simulated.time_between_tokens)
    differs("time_between_tokens", all.time_between_tokens->value(), simulated.time_between_tokens->value());
  const bool energy = all.energy().value() > 0, memory = all.peak_memory().value() > 0;  // otherwise omitted from the file
  for (const device& d : devices.devices()) {
    const device_evaluation& given = all.devices[d.id.index()];
    const device_evaluation& found = simulated.devices[d.id.index()];
    if (!given.used) continue;  // a file may omit devices
    if (energy) differs("energy/" + d.name, given.energy.value(), found.energy.value());
    if (memory) differs("peak_memory/" + d.name, given.peak_memory.value(), found.peak_memory.value());
  }
  const auto bound = [&](const std::string& name, seconds given, seconds found) {
    if (given.value() <= 0) return;  // not in the file
    if (found.value() > 0) return differs(name, given.value(), found.value());
    // A bound that is not computed here may be valid, but not above the latency.
    if (told || at_most(given, simulated.latency)) return;
    told = true;
    warn(file + ": /predicted/" + name + ": " + to_text(given.value()) + " is no bound of the simulated latency, " +
         to_text(simulated.latency.value()) + "; the simulated numbers count");
  };
  const auto gap = [&](const std::string& name, double given, seconds to) {
    if (to.value() > 0) differs(name, given, gap_to(simulated.latency, to), 1);
  };
  bound("bound", all.bound, simulated.bound);
  gap("gap", all.gap, all.bound);
  bound("schedule_bound", all.schedule_bound, simulated.schedule_bound);
  gap("schedule_gap", all.schedule_gap, all.schedule_bound);
  bound("contention_bound", all.contention_bound, simulated.contention_bound);
  if (read.plan.workload.mode == mode::inference) bound("placement_bound", all.placement_bound, {});
}

void check_prediction(const std::string& file, const io::plan_file& read, const planning_graph& model, const cluster& devices) {
  if (!predicts(read, model, devices)) return;
  const hetplan::plan& p = read.plan;
  try {
    io::check_together(model, devices, devices.name(), p.workload);
    const judgement j = read.predicted->bound.value() > 0 ? evaluate(p, model, devices, profiled_or_roofline{}, judge_models{}, glpk_lp{})
                                                          : judge(p, model, devices, profiled_or_roofline{});
    check_prediction(file, read, j.evaluation, model, devices);
  } catch (const std::exception& e) {
    warn(file + ": /predicted: cannot be compared with a simulation: " + e.what());
  }
}

void require_each_once(const char* option, const std::vector<std::string>& names) {
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    if (!seen.insert(name).second)
      throw invalid_input(std::string(option) + ": expected every name once, got " + io::in_quotes(name) + " again");
  }
}

bool shows_progress(const common_options& options) { return !options.quiet && isatty(STDERR_FILENO) != 0; }

progress::progress(const common_options& options, std::string label) : label_(std::move(label)), visible_(shows_progress(options)) {}

progress::~progress() {
  if (visible_) std::fprintf(stderr, "\r\033[K");
}

control progress::operator()(const candidate_judged& c) {
  if (!visible_) return control::go;
  constexpr int width = 30;
  const int filled = static_cast<int>(width * c.judged / c.total);
  const std::string best = c.best ? (c.estimated ? ", best about " : ", best ") + readable(c.best->evaluation.latency) : "";
  std::fprintf(stderr, "\r\033[K%-14s [%.*s%.*s] %lld judged%s", label_.c_str(), filled, "##############################", width - filled,
               "..............................", c.judged, best.c_str());
  std::fflush(stderr);
  return control::go;
}

int answer(const common_options& options, const plan_result& result, const planning_graph& model, const cluster& devices,
           const run_explanation* explained, const recipes::largest_found* largest) {
  if (!options.json && largest != nullptr) std::cout << largest->describe();
  if (options.json) {
    std::cout << io::write_plan_result(result, model, devices, explained, largest);
  } else if (result.plans.empty()) {
    if (largest != nullptr) return 1;
    std::cout << to_string(result.status.result) << ": " << escaped(result.status.reason) << "\n";
    if (result.status.proof) std::cout << describe(*result.status.proof);
  } else {
    const ranked_plan& best = result.plans.front();
    std::cout << describe(best, model, devices);
    if (explained != nullptr && best.plan.workload.mode == mode::generation) std::cout << describe(*explained, devices);
    if (!result.status.ok()) std::cout << "  " << to_string(result.status.result) << ": " << escaped(result.status.reason) << "\n";
  }
  return result.plans.empty() ? 1 : 0;
}

}  // namespace cli
