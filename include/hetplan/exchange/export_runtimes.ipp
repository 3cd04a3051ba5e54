// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/export_runtimes.hpp>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>

#include <range/v3/view/drop.hpp>
#include <range/v3/view/transform.hpp>
#include <range/v3/view/zip.hpp>

#include <hetplan/core/error.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/io/json_text.hpp>
#include <hetplan/plan/stage_graph.hpp>

namespace hetplan::exchange {

namespace detail {

/// Blocks of a model, found by the numbers in its layers' names (see find_runtime_layers).
class block_finder {
 public:
  explicit block_finder(const planning_graph& model) : model_(model), numbers_(model.size()) {
    std::map<std::string, std::set<int>> stems, of_attention;
    for (const layer& l : model.layers()) {
      numbers_[l.id.index()] = numbers_in(l.name);
      for (const auto& [stem, number] : numbers_[l.id.index()]) {
        stems[stem].insert(number);
        if (l.kind == "attention") of_attention[stem].insert(number);
      }
    }
    std::size_t most = 0;
    for (const auto& [stem, found] : of_attention.empty() ? stems : of_attention) {
      if (found.size() <= most) continue;
      stem_ = stem;
      most = found.size();
    }
    if (most == 0) fail("no layer has the number of a block in its name, as \"l0.q\" and \"layers.0.q\" have");
    const auto& found = stems[stem_];
    count_ = found.size();
    int next = 0;
    for (const int n : found) {
      if (n != next++)
        fail("expected block " + io::in_quotes(stem_ + std::to_string(next - 1)) + ", got " + io::in_quotes(stem_ + std::to_string(n)));
    }
  }

  [[nodiscard]] std::size_t blocks() const { return count_; }
  [[nodiscard]] const std::string& stem() const { return stem_; }
  [[nodiscard]] std::optional<std::size_t> block_of(layer_id l) const {
    const auto& own = numbers_[l.index()];
    const auto it = own.find(stem_);
    if (it == own.end()) return std::nullopt;
    return static_cast<std::size_t>(it->second);
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw invalid_input("runtime_layers: model " + io::in_quotes(model_.name()) + ": " + what);
  }

 private:
  /// Returns the number at the end of each part of a name, by its stem: "a.l3.fc1" has 3 for "a.l" and 1 for "a.l3.fc".
  static std::map<std::string, int> numbers_in(const std::string& name) {
    std::map<std::string, int> all;
    constexpr std::size_t most_digits = 6;
    for (std::size_t end = 0; end <= name.size(); ++end) {
      if (end < name.size() && name[end] != '.') continue;
      std::size_t first = end;
      while (first > 0 && std::isdigit(static_cast<unsigned char>(name[first - 1])) != 0) --first;
      if (first < end && end - first <= most_digits) all.emplace(name.substr(0, first), std::stoi(name.substr(first, end - first)));
    }
    return all;
  }

  const planning_graph& model_;
  std::vector<std::map<std::string, int>> numbers_;  ///< by layer: numbers by stem
  std::string stem_;
  std::size_t count_ = 0;
};

}  // namespace detail

HETPLAN_INLINE runtime_layers find_runtime_layers(const planning_graph& model) {
  const detail::block_finder find(model);
  const auto edges = model.edges();
  std::vector<char> after_block(model.size(), 0), before_block(model.size(), 0);  // by layer: true if it reads a block, if a block reads it
  for (const layer_edge& e : edges) {
    const auto from = find.block_of(e.from), to = find.block_of(e.to);
    if (from && to && *from > *to) {
      find.fail("layer " + io::in_quotes(model[e.from].name) + " feeds a block before its own, that of " + io::in_quotes(model[e.to].name));
    }
    if (from || after_block[e.from.index()] != 0) after_block[e.to.index()] = 1;
  }
  for (auto e = edges.rbegin(); e != edges.rend(); ++e) {
    if (find.block_of(e->to) || before_block[e->to.index()] != 0) before_block[e->from.index()] = 1;
  }
  runtime_layers found;
  found.blocks.resize(find.blocks());
  for (const layer& l : model.layers()) {
    if (const auto block = find.block_of(l.id)) {
      found.blocks[*block].push_back(l.id);
      continue;
    }
    const std::string name = "layer " + io::in_quotes(l.name);
    if (l.kind == "attention") find.fail(name + " is attention outside of the blocks " + io::in_quotes(find.stem() + "0") + " and so on");
    const bool reads = after_block[l.id.index()] != 0, is_read = before_block[l.id.index()] != 0;
    if (reads == is_read)
      find.fail(name + (reads ? " stands between blocks and has no number" : " has no number and no path from or to a block"));
    (reads ? found.head : found.embedding).push_back(l.id);
  }
  return found;
}

namespace detail {

HETPLAN_INLINE void refuse_export(std::string_view runtime, const std::string& why) {
  throw invalid_input("export to " + std::string(runtime) + ": " + why);
}

HETPLAN_INLINE stage_row stages_in_a_row(const plan& p, const planning_graph& model, std::string_view runtime) {
  const auto fail = [&](const std::string& why) { refuse_export(runtime, why); };
  if (p.pipeline_count() > 1) fail("it runs one pipeline; the plan has " + std::to_string(p.pipeline_count()));
  std::vector<device_id> taken;
  for (const stage& s : p.stages) {
    const std::string name = "stage " + io::in_quotes(s.name);
    if (const std::string more = beyond_plain(s); !more.empty()) fail("it knows stages of whole layers; " + name + " is " + more);
    if (s.devices.size() > 1) fail("it gives a stage one device; " + name + " has " + std::to_string(s.devices.size()));
    const assignment& a = s.devices.front();
    if (a.tensor_parallel > 1) {
      fail("it splits a model between blocks; " + name + " splits its layers " + std::to_string(a.tensor_parallel) + " ways");
    }
    if (std::find(taken.begin(), taken.end(), a.device) != taken.end()) {
      fail("it gives a device one range of blocks; that of " + name + " has another stage");
    }
    taken.push_back(a.device);
  }
  const stage_graph stages = make_stage_graph(p, model);
  stage_row row{stages.topological, std::vector<std::size_t>(model.size())};
  for (std::size_t k = 0; k < row.order.size(); ++k) {
    for (const layer_id l : p[row.order[k]].layers) row.place[l.index()] = k;
    if (k + 1 == row.order.size()) break;
    const auto& out = stages[row.order[k]].out;
    const stage_id next = row.order[k + 1];
    if (out.size() != 1 || stages.edges[out.front()].to != next) {
      fail("it runs a row of stages; stage " + io::in_quotes(p[row.order[k]].name) + " feeds others than " + io::in_quotes(p[next].name));
    }
  }
  return row;
}

}  // namespace detail

HETPLAN_INLINE std::vector<runtime_stage> runtime_stages(const plan& p, const planning_graph& model, std::string_view runtime) {
  const auto fail = [&](const std::string& why) { detail::refuse_export(runtime, why); };
  const detail::stage_row row = detail::stages_in_a_row(p, model, runtime);
  for (const stage& s : p.stages) {  // sharded optimizer state needs several devices, which are refused above
    if (s.recomputes()) fail("it keeps activations; stage " + io::in_quotes(s.name) + " recomputes them");
  }
  const runtime_layers parts = find_runtime_layers(model);
  const auto place_of = [&](const std::vector<layer_id>& part) {
    for (const auto& [a, b] : ranges::views::zip(part, part | ranges::views::drop(1))) {
      if (row.place[a.index()] == row.place[b.index()]) continue;
      fail("it cuts a model between blocks; the plan cuts between layers " + io::in_quotes(model[a].name) + " and " +
           io::in_quotes(model[b].name));
    }
    return row.place[part.front().index()];
  };
  std::vector<runtime_stage> stages;
  for (const stage_id s : row.order) stages.push_back({.stage = s, .device = p[s].devices.front().device});
  stages.back().has_head = true;
  if (!parts.embedding.empty() && place_of(parts.embedding) != 0) fail("it has the embedding before all blocks; the plan has not");
  if (!parts.head.empty() && place_of(parts.head) + 1 != stages.size()) fail("it has the head behind all blocks; the plan has not");
  std::size_t before = 0;
  for (std::size_t b = 0; b < parts.blocks.size(); ++b) {
    const std::size_t here = place_of(parts.blocks[b]);
    if (here < before)
      fail("it runs blocks in their order; the plan has block " + std::to_string(b) + " before block " + std::to_string(b - 1));
    before = here;
    runtime_stage& s = stages[here];
    if (s.end_block == 0) s.first_block = b;
    s.end_block = b + 1;
  }
  for (std::size_t k = 1; k < stages.size(); ++k) {  // a stage without blocks has the head alone
    if (stages[k].blocks() == 0) stages[k].first_block = stages[k].end_block = stages[k - 1].end_block;
  }
  return stages;
}

namespace detail {

HETPLAN_INLINE void require_inference(const plan& p, std::string_view runtime) {
  if (p.workload.mode == mode::training) refuse_export(runtime, "it runs inference; the plan is for training");
}

HETPLAN_INLINE void require_memory(const plan& p, std::string_view runtime, const char* why) {
  for (const stage& s : p.stages) {
    if (!s.offload.empty())
      refuse_export(
          runtime, std::string(why) + "; stage " + io::in_quotes(s.name) + " has weights in tier " + io::in_quotes(s.offload.front().tier));
  }
}

HETPLAN_INLINE const std::string& address_of(const device& d, std::string_view runtime) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); };
  bool fits = !d.name.empty() && plain(d.name.front());
  for (const char c : d.name) fits = fits && (plain(c) || c == '-' || c == '.' || c == '_');
  if (!fits) {
    refuse_export(
        runtime,
        "a device's name stands for its address: expected letters, digits, \"-\", \".\" and \"_\", a letter or a digit first; got " +
            io::in_quotes(d.name));
  }
  return d.name;
}

HETPLAN_INLINE generation_lengths lengths_of(const plan& p, const planning_graph& model) {
  const workload& w = p.workload;
  if (w.mode != mode::generation) return {};
  return {static_cast<long long>(w.context) + w.prompt_tokens(model.tokens_per_sample()) + w.all_tokens(), p.batch(),
          static_cast<long long>(w.prompt_chunk) * p.microbatch_size};
}

/// Throws invalid_input if the plan generates several sequences together.
HETPLAN_INLINE void require_one_sequence(const plan& p, std::string_view runtime) {
  if (p.workload.mode == mode::generation && p.batch() > 1)
    refuse_export(runtime, "it generates one sequence at a time; the plan has " + std::to_string(p.batch()));
}

HETPLAN_INLINE void require_blocks(const std::vector<runtime_stage>& stages, const plan& p, std::string_view runtime) {
  for (const runtime_stage& s : stages) {
    if (s.blocks() == 0) refuse_export(runtime, "it gives every device a block; stage " + io::in_quotes(p[s.stage].name) + " has none");
  }
}

}  // namespace detail

HETPLAN_INLINE plan with_whole_blocks(const plan& p, const planning_graph& model, std::string_view runtime) {
  const auto [order, place] = detail::stages_in_a_row(p, model, runtime);
  if (p.schedule.kind == schedule_kind::explicit_orders) {
    detail::refuse_export(runtime, "cuts cannot move under explicit orders, which name the stages");
  }
  const runtime_layers parts = find_runtime_layers(model);
  std::vector<std::vector<layer_id>> layers(order.size());
  const auto give = [&](const std::vector<layer_id>& part, std::size_t k) { layers[k].insert(layers[k].end(), part.begin(), part.end()); };
  give(parts.embedding, 0);
  for (const auto& block : parts.blocks) {
    std::vector<double> share(order.size(), 0);
    const bool counted = std::any_of(block.begin(), block.end(), [&](layer_id l) { return model[l].forward_flops.value() > 0; });
    for (const layer_id l : block) share[place[l.index()]] += counted ? model[l].forward_flops.value() : 1;
    give(block, static_cast<std::size_t>(std::max_element(share.begin(), share.end()) - share.begin()));
  }
  give(parts.head, order.size() - 1);
  std::vector<std::string> tier(model.size());
  for (const stage& s : p.stages) {
    for (const offloaded_layer& o : s.offload) tier[o.layer.index()] = o.tier;
  }
  plan whole = p;
  whole.stages.clear();
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (layers[k].empty()) continue;
    whole.stages.push_back(p[order[k]]);
    whole.stages.back().layers = layers[k];
    std::sort(whole.stages.back().layers.begin(), whole.stages.back().layers.end());
    whole.stages.back().offload.clear();
    for (const layer_id l : whole.stages.back().layers) {
      if (!tier[l.index()].empty()) whole.stages.back().offload.push_back({l, tier[l.index()]});
    }
  }
  if (whole.stages.size() != p.stages.size()) whole.schedule.warmup.clear();
  whole.schedule.transfers.clear();
  return whole;
}

HETPLAN_INLINE std::string shell_word(std::string_view text) {
  bool plain = !text.empty();
  for (const char c : text) {
    plain = plain && (std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("_-.,:/@+%").find(c) != std::string_view::npos);
  }
  if (plain) return std::string(text);
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

HETPLAN_INLINE std::vector<device_id> nodes_for_distributed_llama(const plan& p, const planning_graph& model) {
  const auto fail = [](const std::string& why) { detail::refuse_export("distributed-llama", why); };
  detail::require_inference(p, "distributed-llama");
  static_cast<void>(find_runtime_layers(model));
  if (p.stages.size() != 1) fail("all its nodes share every layer; the plan has " + std::to_string(p.stages.size()) + " stages");
  const stage& s = p.stages.front();
  const std::string name = "stage " + io::in_quotes(s.name);
  detail::require_memory(p, "distributed-llama", "its nodes hold all of their weights in memory");
  if (s.rows() > 1) fail("its nodes share tensors, not samples; " + name + " has " + std::to_string(s.rows()) + " rows");
  if (std::any_of(s.columns.begin(), s.columns.end(), [&](int weight) { return weight != s.columns.front(); }))
    fail("it gives every node the same part; the columns of " + name + " do not weigh the same");
  if (s.devices.front().tensor_parallel > 1) fail("a node is one device; that of " + name + " splits its layers");
  if (!s.cuts.empty()) fail("it knows no passes; " + name + " has cuts of its own");
  detail::require_one_sequence(p, "distributed-llama");
  constexpr int chunk = 32;
  if (p.workload.mode == mode::generation && p.workload.prompt_chunk > 0 && p.workload.prompt_chunk != chunk)
    fail("it passes prompts in chunks of " + std::to_string(chunk) + "; the plan's have " + std::to_string(p.workload.prompt_chunk));
  const std::size_t nodes = s.devices.size();
  if ((nodes & (nodes - 1)) != 0) fail("it runs on 1, 2, 4 ... 2^n nodes; the plan has " + std::to_string(nodes));
  for (const layer& l : model.layers()) {
    if (l.kind != "attention" || l.split_units == 0 || nodes <= static_cast<std::size_t>(l.split_units)) continue;
    fail("it has no more nodes than the model has key/value heads, " + std::to_string(l.split_units) + "; the plan has " +
         std::to_string(nodes));
  }
  std::vector<device_id> all;
  for (const assignment& a : s.devices) all.push_back(a.device);
  return all;
}

HETPLAN_INLINE std::string distributed_llama_commands(const plan& p, const planning_graph& model, const cluster& c) {
  const std::vector<device_id> nodes = nodes_for_distributed_llama(p, model);
  std::string text, workers;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const std::string& name = detail::address_of(c[nodes[n]], "distributed-llama");
    if (n == 0) continue;
    text += "# on " + name + ":\ndllama worker --port 9999 --nthreads CORES\n";
    workers += " " + shell_word(name + ":9999");
  }
  const long long tokens = detail::lengths_of(p, model).sequence;
  const std::string length = tokens > 0 ? " --max-seq-len " + std::to_string(tokens) : "";
  return text + "# on " + c[nodes.front()].name + ", which has the files:\ndllama chat --model MODEL.m --tokenizer TOKENIZER.t " +
         "--buffer-float-type q80 --nthreads CORES" + length + (workers.empty() ? "" : " --workers" + workers) + "\n";
}

HETPLAN_INLINE std::vector<exo_shard> shards_for_exo(const plan& p, const planning_graph& model) {
  detail::require_inference(p, "exo");
  const std::vector<runtime_stage> stages = runtime_stages(p, model, "exo");
  detail::require_memory(p, "exo", "its nodes hold all of their weights in memory");
  detail::require_blocks(stages, p, "exo");
  std::vector<exo_shard> shards;
  for (const runtime_stage& s : stages) shards.push_back({s.device, s.first_block, s.end_block});
  return shards;
}

HETPLAN_INLINE std::string exo_program(const plan& p, const planning_graph& model, const cluster& c) {
  const std::vector<exo_shard> shards = shards_for_exo(p, model);
  // A JSON string is one of Python's, too.
  const auto quoted = [&](const exo_shard& s) {
    const std::string text = io::json_text(c[s.device].name);
    return text.substr(0, text.find_last_of('"') + 1);
  };
  std::string nodes, layers;
  for (const exo_shard& s : shards) {
    nodes += "    " + quoted(s) + ": \"NODE_ID\",\n";
    layers += "    (" + quoted(s) + ", " + std::to_string(s.start_layer) + ", " + std::to_string(s.end_layer) + "),\n";
  }
  return R"(# Makes exo run the plan. By itself exo gives each node layers in proportion to its free memory.
# Every node also holds the embedding and the head, and computes the head.
import json
import os
import urllib.parse
import urllib.request

EXO = os.environ.get("EXO", "http://localhost:52415")
MODEL = "MODEL"  # as exo lists it
NODES = {  # ids of the plan's devices, as exo's /state lists them
)" + nodes +
         R"(}
LAYERS = [  # device, first layer, end; in the order of the pipeline
)" + layers +
         R"(]


def ask(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(EXO + path, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


wanted = [NODES[device] for device, first, end in LAYERS]
query = urllib.parse.urlencode({"model_id": MODEL, "node_ids": wanted}, doseq=True)
for preview in ask("/instance/previews?" + query)["previews"]:
    if preview.get("error") or preview["sharding"] != "Pipeline":
        continue
    (instance,) = preview["instance"].values()
    assigned = instance["shardAssignments"]
    shards = {}
    for node, runner in assigned["nodeToRunner"].items():
        (shards[node],) = assigned["runnerToShard"][runner].values()
    if sorted(shards, key=lambda node: shards[node]["deviceRank"]) != wanted:
        continue
    for device, first, end in LAYERS:
        shard = shards[NODES[device]]
        if shard["nLayers"] != LAYERS[-1][2]:
            raise SystemExit(f"the model has {shard['nLayers']} layers, the plan {LAYERS[-1][2]}")
        shard["startLayer"], shard["endLayer"] = first, end
    print(ask("/instance", {"instance": preview["instance"]}))
    break
else:
    raise SystemExit("exo offers no pipeline of these nodes in this order")
)";
}

HETPLAN_INLINE prima_cpp_split split_for_prima_cpp(const plan& p, const planning_graph& model) {
  constexpr std::size_t most_devices = 32;
  detail::require_inference(p, "prima.cpp");
  detail::require_one_sequence(p, "prima.cpp");
  std::vector<runtime_stage> stages = runtime_stages(p, model, "prima.cpp");
  detail::require_blocks(stages, p, "prima.cpp");
  detail::require_memory(p, "prima.cpp", "its ranks choose themselves what they map from files");
  if (stages.size() > most_devices) {
    detail::refuse_export("prima.cpp",
                          "it has windows for " + std::to_string(most_devices) + " devices; the plan has " + std::to_string(stages.size()));
  }
  std::rotate(stages.begin(), stages.end() - 1, stages.end());
  prima_cpp_split split;
  for (const runtime_stage& s : stages) {
    split.devices.push_back(s.device);
    split.layer_windows.push_back(s.blocks());
  }
  return split;
}

HETPLAN_INLINE std::string prima_cpp_commands(const plan& p, const planning_graph& model, const cluster& c) {
  const prima_cpp_split split = split_for_prima_cpp(p, model);
  const std::size_t world = split.devices.size();
  const auto name = [&](std::size_t rank) -> const std::string& { return detail::address_of(c[split.devices[rank % world]], "prima.cpp"); };
  std::string text;
  const auto number = [](std::size_t n) { return std::to_string(n); };
  const detail::generation_lengths n = detail::lengths_of(p, model);
  const std::string length =
      (n.sequence > 0 ? " -c " + std::to_string(n.sequence) : "") + (n.chunk > 0 ? " -ub " + std::to_string(n.chunk) : "");
  const std::string windows = io::joined(split.layer_windows | ranges::views::transform(number), ",");
  for (std::size_t rank = 0; rank < world; ++rank) {
    text += "# on " + name(rank) + ":\nllama-cli -m MODEL.gguf --world " + std::to_string(world) + " --rank " + std::to_string(rank) +
            " --master " + shell_word(name(0)) + " --next " + shell_word(name(rank + 1)) + (rank == 0 ? " -lw " + windows : "") + length +
            "\n";
  }
  return text;
}

HETPLAN_INLINE torch_split split_for_torch(const plan& p, const planning_graph& model) {
  const std::vector<runtime_stage> stages = runtime_stages(p, model, "torch");
  detail::require_memory(p, "torch", "a split says no place of weights");
  const std::size_t blocks = stages.back().end_block;
  torch_split split;
  std::vector<char> cut(blocks + 1, 0);  // true if a stage begins at this boundary: before each block, after the last
  for (const runtime_stage& s : stages) {
    split.devices.push_back(s.device);
    if (split.devices.size() > 1) cut[s.first_block] = 1;
  }
  std::size_t whole = blocks + 1;  // first boundary of the unbroken run of cuts at the end
  while (whole > 0 && cut[whole - 1] != 0) --whole;
  if (whole == 0) detail::refuse_export("torch", "a split point names a block; the plan has more cuts than blocks");
  for (std::size_t b = 0; b <= blocks; ++b) {
    if (cut[b] != 0) split.points.push_back(b < whole ? torch_split_point{b, false} : torch_split_point{b - 1, true});
  }
  return split;
}

HETPLAN_INLINE std::string torch_split_spec(const plan& p, const planning_graph& model, const cluster& c, std::string_view blocks) {
  const torch_split split = split_for_torch(p, model);
  const auto name = [&](device_id d) { return escaped(c[d].name); };
  const std::string stages = io::joined(split.devices | ranges::views::transform(name));
  std::string points;
  for (const torch_split_point& x : split.points) {
    const std::string module = io::json_text(std::string(blocks) + "." + std::to_string(x.block));
    points += "    " + module.substr(0, module.size() - 1) + ": SplitPoint." + (x.at_end ? "END" : "BEGINNING") + ",\n";
  }
  return "from torch.distributed.pipelining import SplitPoint\n\n# stages: " + stages + "\nsplit_spec = {\n" + points + "}\n";
}

HETPLAN_INLINE vllm_split split_for_vllm(const plan& p, const planning_graph& model) {
  const auto fail = [](const std::string& why) { detail::refuse_export("vLLM", why); };
  detail::require_inference(p, "vLLM");
  vllm_split split;
  plan row = p;  // of the first devices of its columns
  split.tensor_parallel = p.stages.empty() ? 1 : p.stages.front().column_count();
  for (stage& s : row.stages) {
    const std::string name = "stage " + io::in_quotes(s.name);
    if (s.column_count() != split.tensor_parallel)
      fail("all its ranks share tensors among as many devices; " + name + " has " + std::to_string(s.column_count()) + " columns, stage " +
           io::in_quotes(p.stages.front().name) + " has " + std::to_string(split.tensor_parallel));
    if (std::ranges::any_of(s.columns, [&](int weight) { return weight != s.columns.front(); }))
      fail("it gives every device of a rank the same part; the columns of " + name + " do not weigh the same");
    if (s.column_count() == 1) continue;
    if (s.rows() > 1) fail("its ranks share tensors, not samples; " + name + " has " + std::to_string(s.rows()) + " rows");
    if (!s.cuts.empty()) fail("it knows no passes; " + name + " has cuts of its own");
    s.devices.resize(1);
    s.columns.clear();
  }
  for (const layer& l : model.layers()) {
    const auto heads = static_cast<std::size_t>(std::max(l.split_units, 0)), n = split.tensor_parallel;
    if (l.kind == "attention" && heads > 0 && heads % n != 0 && n % heads != 0)
      fail("it divides key/value heads evenly or repeats them evenly; layer " + io::in_quotes(l.name) + " has " + std::to_string(heads) +
           ", the plan " + std::to_string(n) + " columns");
  }
  const std::vector<runtime_stage> stages = runtime_stages(row, model, "vLLM");
  detail::require_blocks(stages, row, "vLLM");
  detail::require_memory(p, "vLLM", "it offloads a number of bytes, the same on every device, and no layers");
  for (const runtime_stage& s : stages) {
    for (const assignment& a : p[s.stage].devices) {
      if (std::ranges::find(split.devices, a.device) != split.devices.end())
        fail("it gives a device one range of blocks; that of stage " + io::in_quotes(p[s.stage].name) + " has another stage");
      split.devices.push_back(a.device);
    }
    split.layer_partition.push_back(s.blocks());
  }
  return split;
}

HETPLAN_INLINE std::string vllm_command(const plan& p, const planning_graph& model, const cluster& c) {
  const vllm_split split = split_for_vllm(p, model);
  const auto name = [&](device_id d) { return escaped(c[d].name); };
  const auto number = [](std::size_t n) { return std::to_string(n); };
  const detail::generation_lengths n = detail::lengths_of(p, model);
  std::string ranks;
  for (std::size_t k = 0; k < split.devices.size(); ++k)
    ranks += (k == 0 ? "" : k % split.tensor_parallel == 0 ? ", " : " + ") + name(split.devices[k]);
  std::string text = "# on " + name(split.devices.front()) + "; pipeline ranks: " + ranks +
                     "\nVLLM_PP_LAYER_PARTITION=" + io::joined(split.layer_partition | ranges::views::transform(number), ",") +
                     " vllm serve MODEL --pipeline-parallel-size " + number(split.layer_partition.size());
  if (split.tensor_parallel > 1) text += " --tensor-parallel-size " + number(split.tensor_parallel);
  if (n.sequence > 0) text += " --max-model-len " + std::to_string(n.sequence) + " --max-num-seqs " + std::to_string(n.sequences);
  if (n.chunk > 0) text += " --max-num-batched-tokens " + std::to_string(std::max<long long>(n.chunk, n.sequences));
  return text + "\n";
}

}  // namespace hetplan::exchange
