// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/export_llama_cpp.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include <range/v3/view/transform.hpp>

#include <hetplan/io/json_document.hpp>
#include <hetplan/io/json_text.hpp>

namespace hetplan::exchange {

namespace detail {

/// A plan whose blocks are whole, and what lies apart from its block.
struct experts_apart {
  plan whole;
  std::vector<llama_cpp_override> overrides;  ///< by device, then kind
};

/// Takes layers of experts that lie apart from their block back to it. Nothing if none does, or if that does not explain the plan's cuts.
[[nodiscard]] HETPLAN_INLINE std::optional<experts_apart> find_experts_apart(const plan& p, const planning_graph& model) {
  const bool single = p.pipeline_count() == 1 && std::ranges::all_of(p.stages, [](const stage& s) {
                        return s.devices.size() == 1 && s.devices.front().tensor_parallel == 1 && s.is_plain() && !s.recomputes();
                      });
  if (!single || std::ranges::none_of(model.layers(), [](const layer& l) { return l.sequence.experts.has_value(); })) return std::nullopt;
  std::vector<device_id> on(model.size());
  for (const stage& s : p.stages) {
    for (const layer_id l : s.layers) on[l.index()] = s.devices.front().device;
  }
  const runtime_layers parts = find_runtime_layers(model);
  std::map<std::pair<device_id, std::string>, std::vector<std::size_t>> apart;
  for (std::size_t b = 0; b < parts.blocks.size(); ++b) {
    std::optional<device_id> home, away;
    bool whole_mlp = false;
    for (const layer_id l : parts.blocks[b]) {
      const layer& each = model[l];
      if (!each.sequence.experts && (each.weight.value() > 0 || each.kind == "attention") && !home) home = on[l.index()];
    }
    if (!home) continue;
    for (const layer_id l : parts.blocks[b]) {
      const layer& each = model[l];
      if (!each.sequence.experts || on[l.index()] == *home) continue;
      if (away && *away != on[l.index()]) return std::nullopt;
      away = on[l.index()];
      whole_mlp = whole_mlp || each.weight > each.sequence.experts->weight;
    }
    if (!away) continue;
    // All experts of the block go together, and what has no weights goes with its neighbours.
    for (const layer_id l : parts.blocks[b]) {
      const layer& each = model[l];
      const bool moves = each.sequence.experts.has_value() || each.weight == bytes{};
      if (each.sequence.experts ? on[l.index()] != *away : on[l.index()] != *home && !(moves && on[l.index()] == *away))
        return std::nullopt;
    }
    for (const layer_id l : parts.blocks[b]) on[l.index()] = *home;
    apart[{*away, whole_mlp ? "ffn_" : "ffn_(up|down|gate|gate_up)_(ch|)exps"}].push_back(b);
  }
  if (apart.empty()) return std::nullopt;
  experts_apart found{.whole = p, .overrides = {}};
  found.whole.stages.clear();
  found.whole.schedule = {};
  const auto give = [&](const std::vector<layer_id>& layers) {
    for (const layer_id l : layers) {
      if (found.whole.stages.empty() || found.whole.stages.back().devices.front().device != on[l.index()])
        found.whole.stages.push_back({.name = "s" + std::to_string(found.whole.stages.size()),
                                      .devices = {{.device = on[l.index()], .samples = p.microbatch_size}}});
      found.whole.stages.back().layers.push_back(l);
    }
  };
  give(parts.embedding);
  for (const auto& block : parts.blocks) give(block);
  give(parts.head);
  for (auto& [where, blocks] : apart) found.overrides.push_back({.device = where.first, .blocks = blocks, .tensors = where.second});
  return found;
}

/// Returns what the tensors of the head's layer are called in GGUF, as a regular expression.
[[nodiscard]] HETPLAN_INLINE std::string tensors_of_head(const layer& l) {
  return l.name.ends_with("norm") ? "^output_norm\\." : "^output\\.";
}

/// Joins a head with a stage of its own, on a device that has other layers, to the last block's stage. Returns its tensors, which stay.
[[nodiscard]] HETPLAN_INLINE std::vector<llama_cpp_override> join_head(plan& p, const planning_graph& model) {
  const runtime_layers parts = find_runtime_layers(model);
  if (parts.head.empty() || p.stages.size() < 3) return {};
  const auto stage_with = [&](layer_id l) {
    return std::ranges::find_if(p.stages, [&](const stage& s) { return std::ranges::find(s.layers, l) != s.layers.end(); });
  };
  const auto own = stage_with(parts.head.back()), block = stage_with(parts.blocks.back().back());
  const device_id device = own->devices.front().device;
  const auto of_head = [&](layer_id l) { return std::ranges::find(parts.head, l) != parts.head.end(); };
  const bool returns = own->devices.size() == 1 && std::ranges::all_of(own->layers, of_head) &&
                       std::ranges::any_of(p.stages, [&](const stage& s) { return &s != &*own && s.devices.front().device == device; });
  if (!returns || std::ranges::any_of(own->layers, [&](layer_id l) { return model[l].weight_group >= 0; })) return {};
  std::vector<llama_cpp_override> stay;
  for (const layer_id l : own->layers) {
    if (model[l].weight.value() > 0 && own->tier_of(l) == nullptr) stay.push_back({device, false, {}, tensors_of_head(model[l])});
    block->layers.push_back(l);
  }
  std::ranges::sort(block->layers);
  p.stages.erase(own);
  p.schedule = {};
  return stay;
}

/// Returns what the tensors of a block's layer are called in GGUF, as a regular expression; nothing for a layer of an unknown name.
[[nodiscard]] HETPLAN_INLINE std::optional<std::string> tensors_of(const layer& l) {
  const std::string part = l.name.substr(l.name.find_last_of('.') + 1);
  const bool shared = l.name.ends_with(".shared." + part);
  if (part.starts_with("attn_") || part.starts_with("ffn_")) return part + "\\.";
  if (shared && (part == "gate" || part == "up" || part == "down")) return "ffn_" + part + "_shexp\\.";
  if (l.sequence.experts && (part == "gate" || part == "up" || part == "down")) return "ffn_" + part + "_(ch|)exps\\.";
  static const std::map<std::string, std::string> known{{"attn", "(attn_|post_attention_)"},
                                                        {"mlp", "(ffn_|post_ffw_)"},
                                                        {"q", "attn_q(_norm|)\\."},
                                                        {"k", "attn_k(_norm|)\\."},
                                                        {"v", "attn_v\\."},
                                                        {"o", "attn_output\\."},
                                                        {"gate", "ffn_gate\\."},
                                                        {"up", "ffn_up\\."},
                                                        {"down", "ffn_down\\."},
                                                        {"fc1", "ffn_up\\."},
                                                        {"fc2", "ffn_down\\."},
                                                        {"router", "ffn_gate_inp\\."},
                                                        {"share", "ffn_gate_inp_shexp\\."},
                                                        {"norm1", "attn_norm\\."},
                                                        {"norm2", "ffn_norm\\."},
                                                        {"post1", "post_attention_norm\\."},
                                                        {"post2", "post_ffw_norm\\."}};
  const auto found = known.find(part);
  return found == known.end() ? std::nullopt : std::optional(found->second);
}

/// Returns the tensors that stages have in tiers.
[[nodiscard]] HETPLAN_INLINE std::vector<llama_cpp_override> find_offloaded(const plan& p, const planning_graph& model, device_id host) {
  const auto fail = [](const std::string& why) { refuse_export("llama.cpp", why); };
  if (std::ranges::all_of(p.stages, [](const stage& s) { return s.offload.empty(); })) return {};
  const runtime_layers parts = find_runtime_layers(model);
  std::map<std::pair<device_id, std::string>, std::vector<std::size_t>> found;
  std::vector<llama_cpp_override> of_head;
  for (const stage& s : p.stages) {
    const device_id device = s.devices.front().device;
    for (const offloaded_layer& o : s.offload) {
      if (o.tier != s.offload.front().tier)
        fail("it knows a processor's memory and no tiers of it; stage " + io::in_quotes(s.name) + " has weights in " +
             io::in_quotes(s.offload.front().tier) + " and " + io::in_quotes(o.tier));
    }
    const auto offloaded = [&](layer_id l) { return model[l].weight.value() > 0 && s.tier_of(l) != nullptr; };
    for (std::size_t b = 0; b < parts.blocks.size(); ++b) {
      std::vector<std::string> names;
      bool whole = true;  // all of the block's weights, wherever its layers are
      for (const layer_id l : parts.blocks[b]) {
        whole = whole && (model[l].weight.value() == 0 || offloaded(l));
        if (!offloaded(l)) continue;
        const auto name = tensors_of(model[l]);
        names.push_back(name.value_or(""));
      }
      if (names.empty()) continue;
      if (whole) names.assign(1, "");
      for (const layer_id l : parts.blocks[b]) {
        if (!whole && offloaded(l) && !tensors_of(model[l]))
          fail("it takes weights by their names in GGUF; layer " + io::in_quotes(model[l].name) + " in tier " +
               io::in_quotes(*s.tier_of(l)) + " is no block, attention, MLP or known product of one");
      }
      const auto all = [&](std::initializer_list<const char*> wanted) {
        return std::ranges::all_of(wanted, [&](const char* each) { return std::ranges::find(names, each) != names.end(); });
      };
      if (all({"attn_q(_norm|)\\.", "attn_k(_norm|)\\.", "attn_v\\."})) names.push_back("attn_qkv\\.");
      if (all({"ffn_gate_(ch|)exps\\.", "ffn_up_(ch|)exps\\."})) names.push_back("ffn_gate_up_(ch|)exps\\.");
      const std::string joined = io::joined(names, "|");
      found[{device, names.size() > 1 ? "(" + joined + ")" : joined}].push_back(b);
    }
    for (const layer_id l : parts.head) {
      if (!offloaded(l)) continue;
      const std::string_view name = model[l].name;
      const bool tied = model[l].weight_group >= 0 &&
                        std::ranges::any_of(parts.embedding, [&](layer_id e) { return model[e].weight_group == model[l].weight_group; });
      if (tied && device != host)
        fail("it has one tensor for embedding and head, which stays on the machine that runs the command; layer " + io::in_quotes(name) +
             " has it in tier " + io::in_quotes(*s.tier_of(l)) + " of another device");
      of_head.push_back({device, true, {}, tied ? "^token_embd\\." : tensors_of_head(model[l])});
    }
  }
  std::vector<llama_cpp_override> all;
  for (auto& [where, blocks] : found) all.push_back({where.first, true, blocks, where.second});
  all.insert(all.end(), of_head.begin(), of_head.end());
  return all;
}

}  // namespace detail

HETPLAN_INLINE llama_cpp_split split_for_llama_cpp(const plan& p, const planning_graph& model) {
  constexpr std::size_t most_devices = 15;
  detail::require_inference(p, "llama.cpp");
  const auto apart = detail::find_experts_apart(p, model);
  plan whole = apart ? apart->whole : p;
  const std::vector<llama_cpp_override> head = detail::join_head(whole, model);
  const std::vector<runtime_stage> stages = runtime_stages(whole, model, "llama.cpp");
  llama_cpp_split split;
  split.host = stages.front().device;
  for (const runtime_stage& s : stages) {
    const std::size_t layers = s.blocks() + (s.has_head ? 1 : 0);
    if (layers == 0) continue;
    split.devices.push_back(s.device);
    split.tensor_split.push_back(layers);
    split.gpu_layers += layers;
  }
  split.overrides = detail::find_offloaded(p, model, split.host);
  if (apart) split.overrides.insert(split.overrides.end(), apart->overrides.begin(), apart->overrides.end());
  split.overrides.insert(split.overrides.end(), head.begin(), head.end());
  const auto is_listed = [&](const std::vector<device_id>& all, device_id d) { return std::ranges::find(all, d) != all.end(); };
  for (llama_cpp_override& o : split.overrides) {
    if (o.device == split.host) {
      o.in_processor = o.in_processor || !is_listed(split.devices, o.device);
      continue;
    }
    if (!is_listed(split.devices, o.device)) split.devices.push_back(o.device);
    if (o.in_processor && !is_listed(split.processors, o.device)) split.processors.push_back(o.device);
  }
  // No layer: their cumulative share is that of the device before.
  split.tensor_split.resize(split.devices.size() + split.processors.size(), 0);
  if (split.tensor_split.size() > most_devices) {
    detail::refuse_export("llama.cpp", "its -ts takes " + std::to_string(most_devices) + " devices; the plan has " +
                                           std::to_string(split.tensor_split.size()));
  }
  return split;
}

HETPLAN_INLINE std::string llama_cpp_command(const plan& p, const planning_graph& model, const cluster& c) {
  const llama_cpp_split split = split_for_llama_cpp(p, model);
  for (const stage& s : p.stages) {
    const device& d = c[s.devices.front().device];
    if (s.offload.empty() || (!d.tiers.empty() && s.offload.front().tier == d.tiers.front().name)) continue;
    detail::refuse_export("llama.cpp", "what is not in a device's memory is in its processor's, the first of its tiers; stage " +
                                           io::in_quotes(s.name) + " has weights in tier " + io::in_quotes(s.offload.front().tier));
  }
  std::string servers, devices, processors, patterns, with_processor;
  std::size_t next = 0;  // devices are numbered server by server
  for (std::size_t k = 0; k < split.devices.size(); ++k) {
    const char* comma = k == 0 ? "" : ",";
    const std::string& address = detail::address_of(c[split.devices[k]], "llama.cpp");
    servers += comma + address + ":50052";
    devices += comma + ("RPC" + std::to_string(next++));
    if (std::ranges::find(split.processors, split.devices[k]) == split.processors.end()) continue;
    processors += ",RPC" + std::to_string(next++);
    with_processor += (with_processor.empty() ? "" : ", ") + address;
  }
  const auto number = [](std::size_t n) { return std::to_string(n); };
  const std::string shares = io::joined(split.tensor_split | ranges::views::transform(number), ",");
  for (const llama_cpp_override& o : split.overrides) {
    patterns += patterns.empty() ? "" : ",";
    if (!o.blocks.empty()) patterns += "blk\\.(" + io::joined(o.blocks | ranges::views::transform(number), "|") + ")\\.";
    patterns += o.tensors + "=";
    if (o.in_processor && o.device == split.host) patterns += "CPU";
    else patterns += (o.in_processor ? "RPC1[" : "RPC0[") + c[o.device].name + ":50052]";
  }
  constexpr long long standard_batch = 2048;  // -b, which -ub does not exceed
  const detail::generation_lengths n = detail::lengths_of(p, model);
  const bool several = n.sequences > 1;
  std::string length;
  if (n.sequence > 0) length = " -c " + std::to_string(n.sequence * n.sequences) + (several ? " -np " + std::to_string(n.sequences) : "");
  if (n.chunk > 0) length += (n.chunk > standard_batch ? " -b " + std::to_string(n.chunk) : "") + " -ub " + std::to_string(n.chunk);
  return "# rpc-server asks nobody who they are, and with --host 0.0.0.0 it listens on every network of the device: start it only where\n"
         "# nobody but you can reach it, or give it the address of that one network instead; never on the internet\n"
         "# on each device:  rpc-server --host 0.0.0.0 --port 50052\n" +
         (with_processor.empty()
              ? ""
              : "# on " + with_processor + " with --device GPU,CPU (GPU: its name there, as CUDA0): the processor holds weights, too\n") +
         "# on " + escaped(c[split.host].name) + ", which reads the tokens:\n" + (several ? "llama-server" : "llama-cli") +
         " -m MODEL.gguf --rpc " + shell_word(servers) + " --device " + devices + processors + " -ngl " + std::to_string(split.gpu_layers) +
         " -ts " + shares + (patterns.empty() ? "" : " -ot " + shell_word(patterns)) + length + "\n";
}

}  // namespace hetplan::exchange
