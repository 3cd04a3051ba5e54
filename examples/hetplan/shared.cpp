// SPDX-License-Identifier: BSL-1.0
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <set>

#include <unistd.h>

#include <hetplan/io/cluster_json.hpp>
#include <hetplan/io/file.hpp>
#include <hetplan/io/job_json.hpp>
#include <hetplan/io/model_json.hpp>
#include <hetplan/io/results_json.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

#include "commands.hpp"

namespace cli {

using namespace hetplan;

namespace {

template <class Names>
bool contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

template <class Names>
std::string joined(const Names& names) {
  std::string text;
  for (const auto& n : names) text += (text.empty() ? "" : ", ") + std::string(n);
  return text;
}

/// A name without a file behind it: say which names there are.
template <class Names>
void require_file(const char* what, const std::string& name, const Names& names) {
  if (!std::filesystem::exists(name)) {
    throw invalid_input(name + ": expected a " + what + " file or one of " + joined(names) + "; there is neither");
  }
}

io::json_document parse(const std::string& path) { return io::json_document::parse(io::read_text(path), path); }

zoo::model_options model_options(const common_options& o) {
  zoo::model_options m;
  if (o.tokens) m.tokens = *o.tokens;
  if (o.input) m.input = zoo::image_shape{(*o.input)[0], (*o.input)[1], (*o.input)[2]};
  if (o.dtype == "bf16") m.dtype = zoo::precision::bf16;
  if (o.dtype == "fp32") m.dtype = zoo::precision::fp32;
  return m;
}

}  // namespace

void warn(const std::string& text) {
  static std::set<std::string> told;
  if (told.insert(text).second) std::fprintf(stderr, "hetplan: warning: %s\n", io::escaped(text).c_str());
}

planning_graph load_model(const common_options& options, const std::string& name) {
  if (contains(zoo::model_names(), name) && !std::filesystem::exists(name)) return zoo::model(name, model_options(options));
  require_file("model", name, zoo::model_names());
  return io::read_model(parse(name));
}

cluster load_cluster(const std::string& name) {
  if (contains(zoo::cluster_names(), name) && !std::filesystem::exists(name)) return zoo::cluster(name);
  require_file("cluster", name, zoo::cluster_names());
  return io::read_cluster(parse(name));
}

job load_job(const std::string& file) {
  if (file.empty()) return {};
  job j = io::read_job(parse(file));
  warn_of_unused(j);
  return j;
}

void warn_of_unused(const job& j) {
  if (j.memory_savers == memory_savers{}) return;
  warn("memory_savers: no planner makes use of them yet; plans keep activations and whole optimizer states");
}

progress::progress(const common_options& options, std::string label)
    : label_(std::move(label)), visible_(!options.quiet && isatty(STDERR_FILENO) != 0) {}

progress::~progress() {
  if (visible_) std::fprintf(stderr, "\r\033[K");
}

flow progress::operator()(const candidate_judged& c) {
  if (!visible_) return flow::go;
  constexpr int width = 30;
  const int filled = c.total > 0 ? static_cast<int>(std::min<long long>(width, width * c.judged / c.total)) : 0;
  std::fprintf(stderr, "\r\033[K%-14s [%.*s%.*s] %lld judged%s%s", label_.c_str(), filled, "##############################", width - filled,
               "..............................", c.judged, c.best ? ", best " : "", c.best ? readable(c.best->predicted->latency).c_str() : "");
  std::fflush(stderr);
  return flow::go;
}

int answer(const common_options& options, const plan_result& result, const planning_graph& model, const cluster& devices) {
  if (options.json) {
    std::cout << io::write_plan_result(result, model, devices);
  } else if (result.plans.empty()) {
    std::cout << to_string(result.status.result) << ": " << result.status.reason << "\n";
  } else {
    std::cout << describe(result.plans.front(), model, devices);
    if (!result.status.ok()) std::cout << "  " << to_string(result.status.result) << ": " << result.status.reason << "\n";
  }
  return result.plans.empty() ? 1 : 0;
}

}  // namespace cli
