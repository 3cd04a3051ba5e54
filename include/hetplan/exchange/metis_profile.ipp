// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/metis_profile.hpp>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

#include <hetplan/core/error.hpp>

namespace hetplan::exchange {

namespace detail {

/// Takes a word and an integer >= 1 from the beginning of a text.
[[nodiscard]] HETPLAN_INLINE std::optional<int> take_count(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return std::nullopt;
  text.remove_prefix(word.size());
  int v = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (code != std::errc() || v < 1) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return v;
}

[[nodiscard]] HETPLAN_INLINE std::vector<double> numbers_at(const foreign_object& o, std::string_view key, double unit, std::size_t layers,
                                                            bool needed) {
  std::vector<double> all;
  if (!needed && !o.find(key)) return all;
  const io::json_node list = o.at(key, "an array of numbers");
  for (const io::json_node n : list.elements("at least one layer", 1)) all.push_back(n.number(io::range::at_least_zero) * unit);
  if (layers != 0 && all.size() != layers)
    list.fail_with("expected one entry per layer (" + std::to_string(layers) + "), got " + std::to_string(all.size()));
  return all;
}

}  // namespace detail

HETPLAN_INLINE std::optional<metis_name> metis_name_of(const std::string& path) {
  const std::filesystem::path p(path);
  const std::string stem = p.stem().string();
  metis_name n;
  constexpr std::string_view prefix = "DeviceType.";
  if (std::string_view text(stem); text.starts_with(prefix)) {
    const std::size_t end = text.rfind("_tp");
    if (end == std::string_view::npos || end <= prefix.size()) return std::nullopt;
    n.device_kind = std::string(text.substr(prefix.size(), end - prefix.size()));
    text.remove_prefix(end);
    const auto degree = detail::take_count(text, "_tp"), batch = detail::take_count(text, "_bs");
    if (!degree || !batch || !text.empty() || !detail::is_utf8(n.device_kind)) return std::nullopt;
    n.tensor_parallel = *degree;
    n.batch = *batch;
    return n;
  }
  std::string_view text(stem);
  const auto batch = detail::take_count(text, "mbs"), degree = detail::take_count(text, "_tmp");
  n.device_kind = p.parent_path().filename().string();
  if (!batch || !degree || !text.empty() || n.device_kind.empty() || !detail::is_utf8(n.device_kind)) return std::nullopt;
  n.tensor_parallel = *degree;
  n.batch = *batch;
  return n;
}

HETPLAN_INLINE metis_profile read_metis(const io::json_document& d, const metis_name& name) {
  const foreign_object root(io::json_node(d), "a JSON object");
  const foreign_object model(root.at("model", "an object"), "an object");
  const foreign_object parameters(model.at("parameters", "an object"), "an object");
  metis_profile p{.file = d.file(), .device_kind = name.device_kind, .tensor_parallel = name.tensor_parallel, .batch = name.batch};
  p.model = model.at("model_name", "a name").name();
  p.weights = detail::numbers_at(parameters, "parameters_per_layer_bytes", 1, 0, true);
  p.outputs = detail::numbers_at(parameters, "activation_parameters_bytes", 1, p.weights.size(), false);
  const foreign_object times(root.at("execution_time", "an object"), "an object");
  p.forward_backward_s = detail::numbers_at(times, "layer_compute_total_ms", 1e-3, p.weights.size(), true);
  if (const auto memory = root.find("execution_memory"))
    p.memory = detail::numbers_at(foreign_object(*memory, "an object"), "layer_memory_total_mb", 1048576, p.weights.size(), false);
  return p;
}

HETPLAN_INLINE planning_graph metis_chain(std::span<const metis_profile> all, const metis_choice& choice) {
  if (!(choice.forward_share > 0 && choice.forward_share < 1))
    throw invalid_input("metis_chain: forward_share = " + to_text(choice.forward_share) + "; expected a number in (0, 1)");
  if (all.empty()) throw invalid_input("metis_chain: expected at least one profile, got none");
  const auto fail = [](const metis_profile& p, const std::string& what) { throw invalid_input(escaped(p.file) + ": " + what); };
  // By kind, ascending batch sizes; kinds in the order of their names.
  std::map<std::string, std::map<int, const metis_profile*>> by_kind;
  const metis_profile* sizes = nullptr;
  for (const metis_profile& p : all) {
    if (p.weights.size() != all[0].weights.size()) {
      fail(p, "expected " + std::to_string(all[0].weights.size()) + " layers as in " + escaped(all[0].file) + ", got " +
                  std::to_string(p.weights.size()));
    }
    if (p.tensor_parallel == 1 && (sizes == nullptr || sizes->tensor_parallel != 1)) sizes = &p;
    if (p.tensor_parallel != choice.tensor_parallel) continue;
    if (sizes == nullptr) sizes = &p;
    if (!by_kind[p.device_kind].emplace(p.batch, &p).second) {
      fail(p, "expected one file for " + io::in_quotes(p.device_kind) + ", degree " + std::to_string(p.tensor_parallel) + " and batch " +
                  std::to_string(p.batch) + ", got another one");
    }
  }
  if (by_kind.empty()) fail(all[0], "expected a profile of degree " + std::to_string(choice.tensor_parallel) + ", got none");
  const auto most =
      std::max_element(by_kind.begin(), by_kind.end(), [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  const std::size_t layers = all[0].weights.size();

  const auto output = [&](std::size_t l) {
    if (choice.output) return choice.output->value();
    for (const auto& [batch, p] : most->second) {
      if (!p->outputs.empty()) return p->outputs[l] / batch;
    }
    fail(*most->second.begin()->second, "expected activation_parameters_bytes, or the bytes of a layer's output (--boundary), got neither");
    return 0.0;
  };
  const auto kept = [&](std::size_t l) {
    double n = 0, b = 0, m = 0, bb = 0, bm = 0;
    for (const auto& [batch, p] : most->second) {
      if (p->memory.empty()) continue;
      n += 1;
      b += batch;
      m += p->memory[l];
      bb += static_cast<double>(batch) * batch;
      bm += batch * p->memory[l];
    }
    const double spread = n * bb - b * b;
    const double slope = spread > 0 ? (n * bm - b * m) / spread : 0;
    return slope > 0 ? slope : output(l);
  };
  planning_graph_builder builder(all[0].model);
  for (std::size_t l = 0; l < layers; ++l) {
    layer_spec s{.name = "layer" + std::to_string(l), .weight = bytes(sizes->weights[l]), .activation = bytes(kept(l))};
    for (const auto& [kind, batches] : by_kind) {
      layer_profile p{.device_kind = kind, .batch = {}, .forward_s = {}, .backward_s = {}};
      for (const auto& [batch, of] : batches) {
        p.batch.push_back(batch);
        p.forward_s.push_back(of->forward_backward_s[l] * choice.forward_share);
        p.backward_s.push_back(of->forward_backward_s[l] * (1 - choice.forward_share));
      }
      s.profiles.push_back(proportional_beyond(std::move(p)));
    }
    builder.add_layer(std::move(s));
    if (l > 0) builder.add_edge(layer_id(l - 1), layer_id(l), bytes(output(l - 1)));
  }
  return std::move(builder).build();
}

}  // namespace hetplan::exchange
