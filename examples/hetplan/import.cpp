// SPDX-License-Identifier: BSL-1.0
#include <charconv>
#include <cstdio>
#include <iostream>

#include <hetplan/io/cluster_json.hpp>
#include <hetplan/io/model_json.hpp>
#include <hetplan/io/pipedream_graph.hpp>
#include <hetplan/io/pipeedge_yaml.hpp>
#include <hetplan/io/piper_json.hpp>
#include <hetplan/io/sailor_profile.hpp>

#include "commands.hpp"
#include "outputs.hpp"

namespace cli {

using namespace hetplan;

namespace {

struct imported {
  planning_graph model;
  std::optional<hetplan::cluster> devices = {};
};

imported import_pipedream(const import_options& o) {
  const io::input_time inputs = o.input_time == "as-measured" ? io::input_time::as_measured : io::input_time::zero;
  return {io::read_pipedream_graph(o.file, {.device_kind = o.device, .inputs = inputs})};
}

imported import_piper(const import_options& o) {
  const io::piper_workload w = io::read_piper_workload(io::json_document::load(o.file));
  io::piper_choice choice{.tensor_parallel = o.degree, .configuration = o.configuration, .device_kind = o.device};
  if (o.time_unit == "ms") choice.time_unit = 1_ms;
  if (o.forward_share) choice.forward_share = *o.forward_share;
  imported result{io::piper_graph(w, choice)};
  if (!o.cluster.empty()) result.devices = io::piper_cluster(w, o.device);
  return result;
}

/// "Board=4" as type and count.
io::pipeedge_count parse_count(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  io::pipeedge_count c{text.substr(0, equals), 0};
  const char* const last = text.data() + text.size();
  if (equals == std::string::npos || std::from_chars(text.data() + equals + 1, last, c.devices).ptr != last || c.devices < 1) {
    throw invalid_input("--devices: expected TYPE=NUMBER with a number >= 1, got " + io::in_quotes(text));
  }
  return c;
}

imported import_pipeedge(const common_options& options, const import_options& o) {
  const auto models = io::read_pipeedge_models(o.file);
  const auto types = io::read_pipeedge_device_types(o.types);
  const auto model = std::find_if(models.begin(), models.end(), [&](const io::pipeedge_model& m) { return m.name == o.model; });
  if (model == models.end()) {
    std::vector<std::string_view> names;
    for (const io::pipeedge_model& m : models) names.push_back(m.name);
    throw invalid_input("--model: expected one of " + io::shortened(io::escaped(io::joined(names)), 400) + ", got " +
                        io::in_quotes(o.model));
  }
  imported result{io::pipeedge_graph(*model, types, options.dtype == "bf16" ? "torch.bfloat16" : "torch.float32")};
  if (o.cluster.empty()) return result;
  std::vector<io::pipeedge_count> counts;
  for (const std::string& text : o.devices) counts.push_back(parse_count(text));
  if (counts.empty()) {
    for (const layer_profile& p : result.model[layer_id(0)].profiles) counts.push_back({p.device_kind});
  }
  result.devices = io::pipeedge_cluster("pipeedge", types, counts);
  return result;
}

imported import_sailor(const common_options& options, const import_options& o) {
  const std::vector<io::sailor_measurement> measured{{o.device, io::read_sailor_profile(io::json_document::load(o.file)), o.degree}};
  if (!o.sizes.empty()) return {io::sailor_chain(io::read_layer_sizes(io::json_document::load(o.sizes)), o.microbatch, measured)};
  return {io::with_sailor_profiles(load_model(options, o.onto), measured)};
}

imported read(const common_options& options, const import_options& o) {
  if (o.format == "pipedream") return import_pipedream(o);
  if (o.format == "piper") return import_piper(o);
  if (o.format == "pipeedge") return import_pipeedge(options, o);
  return import_sailor(options, o);
}

}  // namespace

int import_model(const common_options& options, const import_options& o) {
  if (o.onto.empty()) require_no_model_options(options, "hetplan import " + o.format, o.format == "pipeedge");
  outputs files({{"--out", o.out}, {"--cluster", o.cluster}}, {o.file, o.types, o.sizes, o.onto});
  const imported result = read(options, o);
  const std::string model = io::write_model(result.model);
  if (result.devices) files.put(o.cluster, io::write_cluster(*result.devices));
  if (o.out.empty()) {
    std::cout << model;
    files.commit();
    return 0;
  }
  files.put(o.out, model);
  io::json written = io::json::array({o.out});
  if (result.devices) written.push_back(o.cluster);
  if (options.json) {
    std::cout << io::json_text(io::json{{"written", written}});
    files.commit();
    return 0;
  }
  std::printf("%s: %zu layers, %zu edges, measured on", escaped(result.model.name()).c_str(), result.model.size(),
              result.model.edges().size());
  const char* separator = " ";
  for (const layer_profile& p : result.model[layer_id(0)].profiles) {
    std::printf("%s%s", separator, escaped(p.device_kind).c_str());
    separator = ", ";
  }
  std::printf("\n");
  files.commit();
  return 0;
}

}  // namespace cli
