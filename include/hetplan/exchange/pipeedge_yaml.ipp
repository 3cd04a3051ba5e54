// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/pipeedge_yaml.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <sstream>

#include <range/v3/view/map.hpp>

#include <hetplan/core/error.hpp>
#include <hetplan/exchange/foreign_model.hpp>
#include <hetplan/io/json_document.hpp>

namespace hetplan::exchange {

namespace detail {

/// Refuses aliases and deep nesting, with which a small file could stand for a huge one, before anything is stored.
class yaml_guard final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { throw YAML::ParserException(mark, "expected values, got an alias"); }
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override { open(mark); }
  void OnSequenceEnd() override { --depth_; }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override { open(mark); }
  void OnMapEnd() override { --depth_; }

 private:
  void open(const YAML::Mark& mark) {
    if (++depth_ > 64) throw YAML::ParserException(mark, "expected nesting of at most 64, got deeper");
  }
  int depth_ = 0;
};

}  // namespace detail

HETPLAN_INLINE yaml_node yaml_node::parse(const std::string& text, const std::string& file) {
  const auto fail = [&](const std::string& what) { throw invalid_input(escaped(file) + ": " + what); };
  if (text.size() > max_yaml_bytes) fail("expected at most 4 MB of YAML, got more");
  if (text.find('\0') != std::string::npos) fail("expected text, got a zero byte");
  if (!detail::is_utf8(text)) fail("expected UTF-8, got bytes that are none");
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    detail::yaml_guard guard;
    while (parser.HandleNextDocument(guard)) {
    }
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.empty() || documents.front().IsNull()) fail("expected YAML, got an empty file");
    if (documents.size() > 1) fail("expected one YAML document, got " + std::to_string(documents.size()));
    return {std::make_shared<const std::string>(file), "", documents.front()};
  } catch (const YAML::Exception& e) {
    fail((e.mark.is_null() ? "" : place(e.mark) + ", column " + std::to_string(e.mark.column + 1) + ": ") +
         escaped(io::shortened(e.msg, 200)));
    throw;
  }
}

HETPLAN_INLINE std::string yaml_node::shown() const {
  if (node_.IsNull()) return "nothing";
  if (node_.IsScalar()) return io::in_quotes(node_.Scalar());
  return std::string(node_.size() == 0 ? "an empty " : "a ") + (node_.IsMap() ? "map" : "list");
}

HETPLAN_INLINE void yaml_node::fail_with(std::string_view text) const {
  throw invalid_input(escaped(*file_) + ": " + (node_.Mark().is_null() ? "" : place(node_.Mark()) + ": ") + escaped(path_) + escaped(text));
}

HETPLAN_INLINE std::vector<std::pair<std::string, yaml_node>> yaml_node::members(std::string_view expected) const {
  if (!node_.IsMap()) fail(expected);
  std::vector<std::pair<std::string, yaml_node>> all;
  std::set<std::string> seen;
  for (const auto& member : node_) {
    if (!member.first.IsScalar()) fail_with("expected a text as key, got " + yaml_node(file_, "", member.first).shown());
    const std::string& key = member.first.Scalar();
    all.emplace_back(key, yaml_node(file_, path_ + io::shortened(key, 80) + ": ", member.second));
    if (!seen.insert(key).second) all.back().second.fail_with("expected every key once, got " + io::in_quotes(key) + " again");
  }
  return all;
}

HETPLAN_INLINE yaml_node yaml_node::at(std::string_view key, std::string_view expected) const {
  for (auto& [name, value] : members("a map with " + std::string(key))) {
    if (name == key) return value;
  }
  fail_with(std::string(key) + ": expected " + std::string(expected) + ", got nothing");
}

HETPLAN_INLINE std::vector<yaml_node> yaml_node::elements(std::string_view expected) const {
  if (!node_.IsSequence()) fail(expected);
  std::vector<yaml_node> all;
  for (const YAML::Node& element : node_) all.push_back(yaml_node(file_, path_, element));
  return all;
}

HETPLAN_INLINE std::string yaml_node::name(std::string_view expected) const {
  if (!node_.IsScalar() || node_.Scalar().empty()) fail(expected);
  return node_.Scalar();
}

HETPLAN_INLINE double yaml_node::number(double least, std::string_view expected) const {
  if (!node_.IsScalar() || node_.Tag() == "!") fail(expected);
  const auto v = detail::number_in(node_.Scalar());
  if (!v || *v < least) fail(expected);
  return *v;
}

HETPLAN_INLINE double yaml_node::whole(double least, std::string_view expected) const {
  const double v = number(least, expected);
  if (v != std::floor(v)) fail(expected);
  return v;
}

HETPLAN_INLINE yaml_node::yaml_node(std::shared_ptr<const std::string> file, std::string path, YAML::Node node)
    : file_(std::move(file)), path_(std::move(path)), node_(std::move(node)) {}

namespace detail {

HETPLAN_INLINE std::vector<double> amounts(const yaml_node& list, std::string_view expected) {
  std::vector<double> all;
  for (const yaml_node& n : list.elements("a list of numbers >= 0")) all.push_back(n.number(0, expected));
  return all;
}

[[nodiscard]] HETPLAN_INLINE pipeedge_model read_pipeedge_model(const std::string& name, const yaml_node& n) {
  pipeedge_model m{.name = name, .memory = {}, .elements_out = {}};
  const double layers = n.at("layers", "a number of layers").whole(0, "a whole number >= 0");
  const auto sized = [&](const char* key, const char* expected) {
    const yaml_node list = n.at(key, "a list of numbers");
    std::vector<double> all = amounts(list, expected);
    if (static_cast<double>(all.size()) != layers) {
      list.fail_with("expected one entry per layer (" + to_text(layers) + "), got " + std::to_string(all.size()));
    }
    return all;
  };
  for (const double mb : sized("mem_MB", "MB >= 0")) {
    if (!std::isfinite(mb * 1e6)) n.at("mem_MB", "").fail_with("expected MB >= 0, got " + to_text(mb));
    m.memory.emplace_back(mb * 1e6);
  }
  m.elements_out = sized("parameters_out", "elements >= 0");
  m.elements_in = n.at("parameters_in", "elements >= 0").number(0, "elements >= 0");
  return m;
}

[[nodiscard]] HETPLAN_INLINE pipeedge_device_type read_pipeedge_device_type(const std::string& name, const yaml_node& n) {
  const auto scaled = [&](const char* key, double factor, const char* expected) {
    const yaml_node found = n.at(key, expected);
    const double v = found.number(0, expected) * factor;
    if (!std::isfinite(v)) found.fail(expected);
    return v;
  };
  pipeedge_device_type t{.name = name,
                         .bandwidth = bytes_per_second(scaled("bw_Mbps", 125'000, "Mbit/s >= 0")),
                         .memory = bytes(scaled("mem_MB", 1e6, "MB >= 0")),
                         .profiles = {}};
  const yaml_node profiles = n.at("model_profiles", "a map from model to profiles");
  if (profiles.is_null()) return t;  // a type without measurements
  for (const auto& [model, list] : profiles.members("a map from model to profiles")) {
    for (const yaml_node& p : list.elements("a list of profiles")) {
      pipeedge_profile read{.model = model,
                            .dtype = p.at("dtype", "a dtype").name("a dtype"),
                            .batch = p.at("batch_size", "a batch size >= 1").whole(1, "a batch size >= 1"),
                            .time_s = amounts(p.at("time_s", "a list of seconds"), "seconds >= 0")};
      for (const pipeedge_profile& other : t.profiles) {
        if (other.model == read.model && other.dtype == read.dtype && other.batch == read.batch) {
          p.fail_with("expected one profile per dtype and batch size, got another of " + io::in_quotes(read.dtype) + " at " +
                      to_text(read.batch));
        }
      }
      t.profiles.push_back(std::move(read));
    }
  }
  return t;
}

HETPLAN_INLINE std::vector<resource> own_links::resources(std::span<const device> devices) const {
  std::vector<resource> all;
  for (const device& d : devices) {
    all.push_back({d.name + ".up", bandwidth[d.id.index()]});
    all.push_back({d.name + ".down", bandwidth[d.id.index()]});
  }
  return all;
}

HETPLAN_INLINE std::optional<route> own_links::find_route(std::span<const device>, device_id from, device_id to) const {
  return route{{}, {{resource_id(2 * from.index()), 1}, {resource_id(2 * to.index() + 1), 1}}};
}

}  // namespace detail

HETPLAN_INLINE std::vector<pipeedge_model> parse_pipeedge_models(const std::string& text, const std::string& file) {
  std::vector<pipeedge_model> all;
  for (const auto& [name, n] : yaml_node::parse(text, file).members("a map from model to its layers")) {
    all.push_back(detail::read_pipeedge_model(name, n));
  }
  return all;
}

HETPLAN_INLINE std::vector<pipeedge_model> read_pipeedge_models(const std::string& path) {
  return parse_pipeedge_models(io::read_text(path), path);
}

HETPLAN_INLINE std::vector<pipeedge_device_type> parse_pipeedge_device_types(const std::string& text, const std::string& file) {
  std::vector<pipeedge_device_type> all;
  for (const auto& [name, n] : yaml_node::parse(text, file).members("a map of device types")) {
    all.push_back(detail::read_pipeedge_device_type(name, n));
  }
  return all;
}

HETPLAN_INLINE std::vector<pipeedge_device_type> read_pipeedge_device_types(const std::string& path) {
  return parse_pipeedge_device_types(io::read_text(path), path);
}

HETPLAN_INLINE double bytes_of_dtype(std::string_view dtype) {
  static constexpr std::array<std::pair<std::string_view, double>, 9> known{{{"torch.float64", 8},
                                                                             {"torch.float32", 4},
                                                                             {"torch.float16", 2},
                                                                             {"torch.bfloat16", 2},
                                                                             {"torch.int64", 8},
                                                                             {"torch.int32", 4},
                                                                             {"torch.int16", 2},
                                                                             {"torch.int8", 1},
                                                                             {"torch.uint8", 1}}};
  for (const auto& [name, size] : known) {
    if (name == dtype) return size;
  }
  throw invalid_input("pipeedge: expected a dtype among " + io::joined(known | ranges::views::keys) + ", got " + io::in_quotes(dtype));
}

HETPLAN_INLINE planning_graph pipeedge_graph(const pipeedge_model& m, std::span<const pipeedge_device_type> types, std::string_view dtype) {
  const double element = bytes_of_dtype(dtype);
  const auto fail = [&](const std::string& what) { throw invalid_input("pipeedge: model " + io::in_quotes(m.name) + ": " + what); };
  if (m.elements_out.empty()) fail("expected at least one layer, got none");
  std::vector<std::pair<const pipeedge_device_type*, std::vector<const pipeedge_profile*>>> measured;
  for (const pipeedge_device_type& t : types) {
    std::vector<const pipeedge_profile*> of_type;
    for (const pipeedge_profile& p : t.profiles) {
      if (p.model != m.name || p.dtype != dtype) continue;
      if (p.time_s.size() != m.elements_out.size()) {
        fail("expected times of its " + std::to_string(m.elements_out.size()) + " layers on device type " + io::in_quotes(t.name) +
             ", got " + std::to_string(p.time_s.size()));
      }
      of_type.push_back(&p);
    }
    std::sort(of_type.begin(), of_type.end(), [](const auto* a, const auto* b) { return a->batch < b->batch; });
    if (!of_type.empty()) measured.emplace_back(&t, std::move(of_type));
  }
  if (measured.empty()) fail("expected a device type with times in " + io::in_quotes(dtype) + ", got none");

  planning_graph_builder b(m.name, element);
  for (std::size_t l = 0; l < m.elements_out.size(); ++l) {
    layer_spec s{.name = "layer" + std::to_string(l + 1),
                 .weight = m.memory[l],
                 .trainable = false,
                 .activation = bytes(m.elements_out[l] * element)};
    for (const auto& [type, profiles] : measured) {
      layer_profile p{type->name, {}, {}, {}};
      for (const pipeedge_profile* each : profiles) {
        p.batch.push_back(each->batch);
        p.forward_s.push_back(each->time_s[l]);
      }
      s.profiles.push_back(proportional_beyond(std::move(p)));
    }
    b.add_layer(std::move(s));
    if (l > 0) b.add_edge(layer_id(l - 1), layer_id(l), bytes(m.elements_out[l - 1] * element));
  }
  return std::move(b).build();
}

HETPLAN_INLINE cluster pipeedge_cluster(const std::string& name, std::span<const pipeedge_device_type> types,
                                        std::span<const pipeedge_count> counts) {
  std::vector<device> devices;
  detail::own_links links;
  for (const pipeedge_count& c : counts) {
    const auto type = std::find_if(types.begin(), types.end(), [&](const pipeedge_device_type& t) { return t.name == c.type; });
    if (type == types.end()) throw invalid_input("pipeedge_cluster: expected a device type of the file, got " + io::in_quotes(c.type));
    if (c.devices < 1)
      throw invalid_input("pipeedge_cluster: " + io::in_quotes(c.type) + ": expected a count >= 1, got " + std::to_string(c.devices));
    if (type->bandwidth.value() <= 0)
      throw invalid_input("pipeedge_cluster: " + io::in_quotes(c.type) + ": expected a bandwidth > 0, got 0");
    for (int i = 0; i < c.devices; ++i) {
      if (devices.size() == io::max_devices) {
        throw invalid_input("pipeedge_cluster: expected at most " + std::to_string(io::max_devices) + " devices, got more");
      }
      devices.push_back({.name = c.type + "-" + std::to_string(i), .kind = c.type, .memory = type->memory});
      links.bandwidth.push_back(type->bandwidth);
    }
  }
  if (devices.size() == 1) return cluster(name, std::move(devices.front()));
  return cluster(name, std::move(devices), links);
}

}  // namespace hetplan::exchange
