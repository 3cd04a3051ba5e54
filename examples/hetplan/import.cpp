// SPDX-License-Identifier: BSL-1.0
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>

#include <hetplan/exchange/dnn_partitioning_json.hpp>
#include <hetplan/exchange/galvatron_profile.hpp>
#include <hetplan/exchange/gguf.hpp>
#include <hetplan/exchange/hf_config.hpp>
#include <hetplan/exchange/metis_profile.hpp>
#include <hetplan/exchange/moirai_json.hpp>
#include <hetplan/exchange/ncnn_param.hpp>
#ifdef HETPLAN_HAS_ONNX
#include <hetplan/exchange/onnx_graph.hpp>
#endif
#include <hetplan/exchange/pipedream_graph.hpp>
#include <hetplan/exchange/pipeedge_yaml.hpp>
#include <hetplan/exchange/piper_json.hpp>
#include <hetplan/exchange/safetensors.hpp>
#include <hetplan/exchange/sailor_profile.hpp>
#include <hetplan/io/cluster_json.hpp>
#include <hetplan/io/model_json.hpp>
#include <hetplan/place/series_schedule.hpp>
#include <hetplan/plan/describe.hpp>
#include <hetplan/solve/glpk.hpp>

#include "commands.hpp"
#include "outputs.hpp"

namespace cli {

using namespace hetplan;

namespace {

struct imported {
  planning_graph model;
  std::optional<hetplan::cluster> devices = {};
  std::optional<place::placement_table> table = {};  ///< the file's own times
};

imported import_pipedream(const import_options& o) {
  const exchange::input_time inputs = o.input_time == "as-measured" ? exchange::input_time::as_measured : exchange::input_time::zero;
  return {exchange::read_pipedream_graph(o.file, {.device_kind = o.device, .inputs = inputs})};
}

imported import_piper(const import_options& o) {
  const exchange::piper_workload w = exchange::read_piper_workload(io::json_document::load(o.file));
  exchange::piper_choice choice{.tensor_parallel = o.degree, .configuration = o.configuration, .device_kind = o.device};
  if (o.time_unit == "ms") choice.time_unit = 1_ms;
  if (o.forward_share) choice.forward_share = *o.forward_share;
  imported result{exchange::piper_graph(w, choice)};
  if (!o.cluster.empty()) result.devices = exchange::piper_cluster(w, o.device);
  return result;
}

/// Parses "Board=4" into type and count.
exchange::pipeedge_count parse_count(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  exchange::pipeedge_count c{text.substr(0, equals), 0};
  const char* const last = text.data() + text.size();
  if (equals == std::string::npos || std::from_chars(text.data() + equals + 1, last, c.devices).ptr != last || c.devices < 1) {
    throw invalid_input("--devices: expected TYPE=NUMBER with a number >= 1, got " + io::in_quotes(text));
  }
  return c;
}

imported import_pipeedge(const common_options& options, const import_options& o) {
  const auto models = exchange::read_pipeedge_models(o.file);
  const auto types = exchange::read_pipeedge_device_types(o.types);
  const auto model = std::find_if(models.begin(), models.end(), [&](const exchange::pipeedge_model& m) { return m.name == o.model; });
  if (model == models.end()) {
    std::vector<std::string_view> names;
    for (const exchange::pipeedge_model& m : models) names.push_back(m.name);
    throw invalid_input("--model: expected one of " + io::shortened(io::escaped(io::joined(names)), 400) + ", got " +
                        io::in_quotes(o.model));
  }
  imported result{exchange::pipeedge_graph(*model, types, options.dtype == "bf16" ? "torch.bfloat16" : "torch.float32")};
  if (o.cluster.empty()) return result;
  std::vector<exchange::pipeedge_count> counts;
  for (const std::string& text : o.devices) counts.push_back(parse_count(text));
  if (counts.empty()) {
    for (const layer_profile& p : result.model[layer_id(0)].profiles) counts.push_back({p.device_kind});
  }
  result.devices = exchange::pipeedge_cluster("pipeedge", types, counts);
  return result;
}

imported import_sailor(const common_options& options, const import_options& o) {
  const std::vector<exchange::sailor_measurement> measured{
      {o.device, exchange::read_sailor_profile(io::json_document::load(o.file)), o.degree}};
  if (!o.sizes.empty())
    return {exchange::sailor_chain(exchange::read_layer_sizes(io::json_document::load(o.sizes)), o.microbatch, measured)};
  return {exchange::with_sailor_profiles(load_model(options, o.onto), measured)};
}

std::optional<bytes> boundary_of(const import_options& o) {
  if (o.boundary.empty()) return std::nullopt;
  return bytes(read_amount("--boundary", o.boundary, io::dimension_of<bytes>, io::range::above_zero, "32 MiB"));
}

imported import_metis(const import_options& o) {
  std::vector<exchange::metis_profile> all;
  std::vector<std::string> paths;
  const bool folder = std::filesystem::is_directory(o.file);
  if (folder) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(o.file)) {
      if (entry.is_regular_file() && exchange::metis_name_of(entry.path().string()) && entry.path().extension() == ".json")
        paths.push_back(entry.path().string());
    }
    std::sort(paths.begin(), paths.end());
    if (paths.empty()) throw invalid_input(o.file + ": expected files named DeviceType.KIND_tpN_bsM.json or KIND/mbsM_tmpN.json, got none");
  } else {
    paths.push_back(o.file);
  }
  for (const std::string& path : paths) {
    auto name = exchange::metis_name_of(path);
    if (!name && o.device.empty()) throw invalid_input(path + ": expected a name as DeviceType.KIND_tpN_bsM.json, or --device KIND");
    if (!name) name = exchange::metis_name{.device_kind = o.device};
    if (!folder && !o.device.empty()) name->device_kind = o.device;
    all.push_back(exchange::read_metis(io::json_document::load(path), *name));
  }
  exchange::metis_choice choice{.tensor_parallel = o.degree, .output = boundary_of(o)};
  if (o.forward_share) choice.forward_share = *o.forward_share;
  return {exchange::metis_chain(all, choice)};
}

imported import_galvatron(const import_options& o) {
  const exchange::galvatron_computation times = exchange::read_galvatron_computation(io::json_document::load(o.file));
  const exchange::galvatron_memory memory = exchange::read_galvatron_memory(io::json_document::load(o.memory));
  return {exchange::galvatron_chain(times, memory,
                                    {.device_kind = o.device, .layers = o.layers, .sequence = o.sequence, .boundary = boundary_of(o)},
                                    exchange::model_name_of(o.file))};
}

/// Parses "in0=1024x128" into a name and sizes.
std::pair<std::string, std::vector<long long>> parse_shape(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  std::vector<long long> sizes;
  bool good = equals != std::string::npos && equals > 0;
  for (std::size_t at = equals + 1; good && at <= text.size();) {
    const std::size_t end = std::min(text.find('x', at), text.size());
    long long size = 0;
    good = std::from_chars(text.data() + at, text.data() + end, size).ptr == text.data() + end && end > at && size >= 1 &&
           size <= 1'000'000'000;
    sizes.push_back(size);
    at = end + 1;
  }
  if (!good)
    throw invalid_input("--shape: expected NAME=WIDTH, NAME=WIDTHxHEIGHT or NAME=WIDTHxHEIGHTxCHANNELS, got " + io::in_quotes(text));
  return {text.substr(0, equals), std::move(sizes)};
}

imported import_ncnn(const common_options& options, const import_options& o) {
  exchange::ncnn_options how;
  if (options.dtype == "bf16") how.element_bytes = 2;
  how.tokens_per_sample = o.tokens_per_sample.value_or(1);
  for (const std::string& text : o.shapes) {
    if (auto shape = parse_shape(text); !how.shapes.insert(shape).second)
      throw invalid_input("--shape: " + io::in_quotes(shape.first) + " twice");
  }
  exchange::ncnn_model m = exchange::read_ncnn(io::read_text(o.file), o.file, how);
  std::string unknown, assumed;
  for (const auto& [type, count] : m.unknown)
    unknown += (unknown.empty() ? "" : ", ") + type + (count > 1 ? " (" + std::to_string(count) + ")" : "");
  if (!unknown.empty()) warn(o.file + ": operators that are not known count as 0 FLOP: " + unknown);
  for (const auto& [name, sizes] : m.assumed) {
    std::string text;
    for (const long long d : sizes) text += (text.empty() ? "" : "x") + std::to_string(d);
    assumed += (assumed.empty() ? "" : ", ") + name + "=" + text;
  }
  if (!assumed.empty()) warn(o.file + ": inputs without sizes have those that their readers need (--shape): " + assumed);
  return {std::move(m.graph)};
}

/// Is it a training workload?
bool has_backward(const exchange::dnn_partitioning_workload& w) {
  return std::any_of(w.workload.operators.begin(), w.workload.operators.end(), [](const auto& op) { return op.backward; });
}

/// Returns a training workload of dnn-partitioning; none for an inference.
std::optional<imported> import_training(const import_options& o) {
  if (o.format != "dnn-partitioning") return std::nullopt;
  const exchange::dnn_partitioning_workload w = exchange::read_dnn_partitioning(io::json_document::load(o.file));
  if (!has_backward(w)) return std::nullopt;
  if (!o.place.empty()) throw invalid_input(o.file + ": expected one inference for --place, got a training workload");
  exchange::dnn_partitioning_model m = exchange::dnn_partitioning_training(w, exchange::model_name_of(o.file));
  imported result{std::move(m.model)};
  if (!o.cluster.empty()) result.devices = std::move(m.cluster);
  return result;
}

/// Returns operators with times per device; warns of transfer times that bytes and bandwidths cannot express.
imported import_table(const import_options& o) {
  if (auto training = import_training(o)) return std::move(*training);
  const io::json_document file = io::json_document::load(o.file);
  place::placement_table table = o.format == "moirai" ? exchange::read_moirai(file) : exchange::read_dnn_partitioning_latency(file);
  exchange::table_model m = exchange::model_of(table, exchange::model_name_of(o.file));
  if (m.largest_error > 1e-6 && (o.place.empty() || !o.out.empty())) {
    char percent[32];
    std::snprintf(percent, sizeof percent, "%.2g", 100 * m.largest_error);
    warn(
        o.file + ": transfers have times that no bytes over bandwidths give; those of the model are off by up to " + percent +
        " % of the edge's longest: plans of the model, and what is proven of them, are not of the file's times (--place plans with those)");
  }
  imported result{std::move(m.model)};
  if (!o.cluster.empty()) result.devices = std::move(m.cluster);
  result.table = std::move(table);
  return result;
}

/// Returns the best schedule by the file's own times.
place::operator_schedule placed(const place::placement_table& t, const std::string& rule) {
  place::placement_rules rules;
  for (const place::contention c : place::all_contentions) {
    if (rule == to_string(c)) rules.contention = c;
  }
  place::find_options how;
  how.lp = glpk_lp{};
  return place::find_schedule(t, rules, how);
}

void print_placement(const place::placement_table& t, const place::operator_schedule& s) {
  if (!s.found()) {
    std::printf("infeasible: %s\n", escaped(s.status.reason).c_str());
    return;
  }
  std::printf("%s by the file's own times", readable(seconds(s.makespan_s)).c_str());
  if (s.gap() > 0) std::printf(", at most %.2g %% above the best\n", 100 * s.gap());
  else std::printf(", proven: no schedule is shorter\n");
  for (std::size_t k = 0; k < t.devices(); ++k) {
    std::string line = t.data().devices[k] + ":";
    for (const std::size_t i : place::sequence_of(t, s)) {
      if (s.device[i] == k) line += " " + t.data().operators[i];
    }
    std::printf("%s\n", escaped(line).c_str());
  }
}

io::json placement_json(const place::placement_table& t, const place::operator_schedule& s) {
  io::json devices = io::json::object();
  for (std::size_t i = 0; i < s.device.size(); ++i) devices[t.data().operators[i]] = t.data().devices[s.device[i]];
  return {{"makespan", s.makespan_s}, {"bound", s.bound_s}, {"devices", devices}};
}

#ifdef HETPLAN_HAS_ONNX
/// Returns the first names and the number of others: "a", "b" and 12 more.
std::string first_names(const std::vector<std::string>& names) {
  constexpr std::size_t most = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, names.size()); ++i) text += (i == 0 ? "" : ", ") + io::in_quotes(names[i]);
  return names.size() > most ? text + " and " + std::to_string(names.size() - most) + " more" : text;
}
#endif

imported import_onnx(const common_options& options, const import_options& o) {
#ifdef HETPLAN_HAS_ONNX
  exchange::onnx_model m = exchange::read_onnx(io::read_text(o.file, exchange::max_onnx_bytes), o.file,
                                               {.dimensions = parse_dimensions(o.dimensions),
                                                .name = {},
                                                .conditions = parse_conditions(o.conditions),
                                                .tokens_per_sample = o.tokens_per_sample});
  for (const std::string& line : m.assumed) warn(o.file + ": " + line);
  if (!m.not_inferred.empty()) warn(o.file + ": shapes are not known, and count as one element, of tensors " + first_names(m.not_inferred));
  if (!o.out.empty() && !options.json) std::printf("%zu operators compute constants or shapes and are no layers\n", m.folded);
  return {std::move(m.graph)};
#else
  static_cast<void>(options);
  throw invalid_input(o.file + ": this program was built without ONNX (Debian: libonnx-dev)");
#endif
}

/// A transformer that a file describes, built as the built-in models are.
bool is_transformer(const std::string& format) { return format == "hf" || format == "gguf" || format == "safetensors"; }

imported import_transformer(const common_options& options, const import_options& o) {
  exchange::model_description d;
  if (o.format == "gguf") d = exchange::read_gguf(o.file);
  else if (o.format == "safetensors") d = exchange::read_safetensors(o.file);
  else d = exchange::read_hf_config(io::json_document::load(exchange::hf_config_path(o.file)), exchange::hf_model_name(o.file));
  exchange::import_choice choice{.tokens = options.tokens,
                                 .weights = options.weights,
                                 .level = o.fine ? zoo::level::operators : zoo::level::parts,
                                 .lora = options.lora.value_or(0)};
  if (options.dtype == "bf16") choice.dtype = precision::bf16;
  if (options.dtype == "fp32") choice.dtype = precision::fp32;
  imported result{exchange::graph_of(d, choice)};
  const auto left = exchange::left_out(d);
  bytes size;
  for (const auto& [name, of] : left) size += of;
  if (!left.empty())
    warn(o.file + ": " + std::to_string(left.size()) + " tensors (" + readable(size) +
         ") are left out, for the architecture has no place for them, such as " + io::in_quotes(left.front().first));
  return result;
}

imported read(const common_options& options, const import_options& o) {
  if (is_transformer(o.format)) return import_transformer(options, o);
  if (o.format == "pipedream") return import_pipedream(o);
  if (o.format == "piper") return import_piper(o);
  if (o.format == "pipeedge") return import_pipeedge(options, o);
  if (o.format == "onnx") return import_onnx(options, o);
  if (o.format == "metis") return import_metis(o);
  if (o.format == "galvatron") return import_galvatron(o);
  if (o.format == "ncnn") return import_ncnn(options, o);
  if (o.format == "moirai" || o.format == "dnn-partitioning") return import_table(o);
  return import_sailor(options, o);
}

}  // namespace

std::map<std::string, long long> parse_dimensions(const std::vector<std::string>& given) {
  std::map<std::string, long long> sizes;
  for (const std::string& text : given) {
    const std::size_t equals = text.rfind('=');
    long long size = 0;
    const char* const last = text.data() + text.size();
    const bool number = equals != std::string::npos && std::from_chars(text.data() + equals + 1, last, size).ptr == last;
    if (!number || size < 1 || size > 1'000'000'000)
      throw invalid_input("--dim: expected NAME=SIZE with a size >= 1, got " + io::in_quotes(text));
    if (!sizes.emplace(text.substr(0, equals), size).second)
      throw invalid_input("--dim: " + io::in_quotes(text.substr(0, equals)) + " twice");
  }
  return sizes;
}

std::map<std::string, bool> parse_conditions(const std::vector<std::string>& given) {
  std::map<std::string, bool> first;
  for (const std::string& text : given) {
    const std::size_t equals = text.rfind('=');
    const std::string branch = text.substr(equals == std::string::npos ? 0 : equals + 1);
    const std::string name = equals == std::string::npos ? "" : text.substr(0, equals);
    if ((branch != "then" && branch != "else") || equals == 0)
      throw invalid_input("--if: expected then, else, NAME=then or NAME=else, got " + io::in_quotes(text));
    if (!first.emplace(name, branch == "then").second)
      throw invalid_input("--if: " + (name.empty() ? "a branch for all that are not named" : io::in_quotes(name)) + " twice");
  }
  return first;
}

int import_model(const common_options& options, const import_options& o) {
  common_options left = options;
  if (is_transformer(o.format)) {
    left.tokens.reset();
    left.weights.clear();
    left.lora.reset();
  }
  if (o.onto.empty())
    require_no_model_options(left, "hetplan import " + o.format, o.format == "pipeedge" || o.format == "ncnn" || is_transformer(o.format));
  outputs files({{"--out", o.out}, {"--cluster", o.cluster}}, {o.file, o.types, o.sizes, o.onto, o.memory});
  const imported result = read(options, o);
  const std::string model = io::write_model(result.model);
  place::operator_schedule schedule;
  if (!o.place.empty()) schedule = placed(*result.table, o.place);
  const int status = o.place.empty() || schedule.found() ? 0 : 1;
  if (result.devices) files.put(o.cluster, io::write_cluster(*result.devices));
  if (!o.out.empty()) files.put(o.out, model);
  if (options.json && (!o.out.empty() || !o.place.empty())) {
    io::json document = io::json::object();
    if (!o.out.empty()) document["written"].push_back(o.out);
    if (result.devices) document["written"].push_back(o.cluster);
    if (schedule.found()) document["placement"] = placement_json(*result.table, schedule);
    std::cout << io::json_text(document);
    files.commit();
    return status;
  }
  if (!o.place.empty()) print_placement(*result.table, schedule);
  else if (o.out.empty()) std::cout << model;
  if (o.out.empty()) {
    files.commit();
    return status;
  }
  std::printf("%s: %zu layers, %zu edges, ", escaped(result.model.name()).c_str(), result.model.size(), result.model.edges().size());
  const bool measured = !result.model[layer_id(0)].profiles.empty();
  if (!measured) std::printf("%.4g M parameters, %.4g GFLOP", result.model.parameters() / 1e6, result.model.forward_flops().value() / 1e9);
  const char* separator = measured ? "measured on " : "";
  for (const layer_profile& p : result.model[layer_id(0)].profiles) {
    std::printf("%s%s", separator, escaped(p.device_kind).c_str());
    separator = ", ";
  }
  std::printf("\n");
  files.commit();
  return status;
}

}  // namespace cli
