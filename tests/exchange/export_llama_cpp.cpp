// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/exchange/export_llama_cpp.hpp>
#include <hetplan/exchange/export_runtimes.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/zoo/models.hpp>

#include "exchange/runtime_split.hpp"
#include "io/reading.hpp"

namespace test_export_llama_cpp {

using namespace hetplan;
using test::block_split;

namespace {

/// Returns the line of the command.
std::string command_line(const std::string& text) {
  for (const std::string& line : test::split_text(text, '\n')) {
    if (line.find(" -m MODEL.gguf") != std::string::npos) return line;
  }
  return {};
}

/// Returns the numbers of the cluster's devices that RPC0, RPC1, ... are; a processor's is -1 - its device's.
std::vector<int> numbered(const std::string& text) {
  std::string with_processor;  // d1, d2
  for (const std::string& line : test::split_text(text, '\n')) {
    if (const auto end = line.find(" with --device GPU,CPU"); end != std::string::npos) with_processor = line.substr(4, end - 4) + ",";
  }
  std::vector<int> all;
  for (const std::string& server : test::split_text(test::option(command_line(text), "--rpc"), ',')) {
    const std::string name = server.substr(0, server.find(':'));
    all.push_back(std::stoi(name.substr(1)));
    if (with_processor.find(name + ",") != std::string::npos) all.push_back(-1 - all.back());
  }
  return all;
}

/// Returns the owner of each block and, last, of the head by llama.cpp's rule; -1 is the host's processor. The rule, in float as
/// there: shares are accumulated and divided by their sum. Of the last `ngl` layers (n + 1 with the head), each goes to the first
/// device whose share exceeds the layer's position. Newer versions count the head to find the first of these layers (`counts_head`),
/// others do not; for all layers both must agree.
std::vector<int> owners_in_llama_cpp(const std::string& command, int n_layer, bool counts_head) {
  const std::string line = command_line(command);
  const std::vector<int> known = numbered(command);
  const std::vector<std::string> names = test::split_text(test::option(line, "--device"), ',');
  std::vector<int> devices;  // of the cluster, in the order of --device
  for (const std::string& name : names) {
    REQUIRE(name.substr(0, 3) == "RPC");
    devices.push_back(known.at(std::stoul(name.substr(3))));
  }
  std::vector<float> splits;
  for (const std::string& number : test::split_text(test::option(line, "-ts"), ',')) splits.push_back(std::stof(number));
  REQUIRE(splits.size() == devices.size());
  REQUIRE(splits.size() < 16);
  float sum = 0;
  for (float& s : splits) s = sum += s;
  for (float& s : splits) s /= sum;
  const int ngl = std::stoi(test::option(line, "-ngl"));
  const int first = std::max(n_layer + (counts_head ? 1 : 0) - ngl, 0), active = std::min(ngl, n_layer + 1);
  std::vector<int> owners;
  for (int layer = 0; layer <= n_layer; ++layer) {
    if (layer < first || layer - first >= active) {
      owners.push_back(-1);
      continue;
    }
    const auto at = std::upper_bound(splits.begin(), splits.end(), static_cast<float>(layer - first) / static_cast<float>(active));
    REQUIRE(at != splits.end());
    owners.push_back(devices[static_cast<std::size_t>(at - splits.begin())]);
  }
  return owners;
}

void check_owners(const block_split& s, const planning_graph& model, const cluster& devices) {
  const std::string command = exchange::llama_cpp_command(s.plan(), model, devices);
  for (const bool counts_head : {false, true}) {
    const auto found = owners_in_llama_cpp(command, s.total(), counts_head);
    if (found == s.owners()) continue;
    INFO(command);
    CHECK(found == s.owners());
  }
}

}  // namespace

TEST_CASE("the command line for llama.cpp, by hand") {
  const cluster devices = test::row_of_devices(3);
  // Layers 0 to 3 on d1; 4, 5 and the head on d0.
  const block_split two{{4, 2}};
  CHECK(exchange::llama_cpp_command(two.plan(), test::block_model(6), devices) ==
        "# rpc-server asks nobody who they are, and with --host 0.0.0.0 it listens on every network of the device: start it only where\n"
        "# nobody but you can reach it, or give it the address of that one network instead; never on the internet\n"
        "# on each device:  rpc-server --host 0.0.0.0 --port 50052\n"
        "# on d1, which reads the tokens:\n"
        "llama-cli -m MODEL.gguf --rpc d1:50052,d0:50052 --device RPC0,RPC1 -ngl 7 -ts 4,3\n");
  // The embedding alone makes the host, which is no server. The head alone counts as a layer.
  const exchange::llama_cpp_split alone = exchange::split_for_llama_cpp(block_split{{0, 6, 0}}.plan(), test::block_model(6));
  CHECK(alone.host == device_id(2));
  CHECK(alone.devices == std::vector{device_id(1), device_id(0)});
  CHECK(alone.tensor_split == std::vector<std::size_t>{6, 1});
  CHECK(alone.gpu_layers == 7);
}

TEST_CASE("llama.cpp gives every split of 28 blocks over up to four devices to the planned devices") {
  const planning_graph model = test::block_model(28);
  const cluster devices = test::row_of_devices(4);
  for (int stages = 1; stages <= 4; ++stages) {
    int splits = 0;
    test::for_all_splits(28, stages, [&](const block_split& s) {
      check_owners(s, model, devices);
      ++splits;
    });
    CHECK(splits == std::vector{1, 27, 351, 2925}[static_cast<std::size_t>(stages - 1)]);
  }
}

TEST_CASE("llama.cpp gives random splits to the planned devices, the head with blocks or alone") {
  test::for_random_splits(300, true,
                          [](const block_split& s) { check_owners(s, test::block_model(s.total()), test::row_of_devices(s.stages())); });
}

namespace {

/// A model at block level, or with the experts as layers of their own, whose embedding lies on `host`, blocks where `home` says, and the
/// experts of each block where `experts` says.
struct moe_case {
  bool fine = false;
  int host = 0, head = 0;
  std::vector<int> home = {}, experts = {};

  [[nodiscard]] std::vector<std::string> parts() const {
    return fine ? std::vector<std::string>{".norm1", ".attn", ".router", ".gate", ".act", ".down"}
                : std::vector<std::string>{".attn", ".mlp"};
  }
  [[nodiscard]] bool is_expert(const std::string& part) const {
    return part == ".mlp" || part == ".gate" || part == ".act" || part == ".down";
  }
  [[nodiscard]] planning_graph model() const {
    planning_graph_builder b("moe");
    std::size_t layers = 0;
    const auto add = [&](layer_spec l) {
      b.add_layer(std::move(l));
      if (layers > 0) b.add_edge(layer_id(layers - 1), layer_id(layers), 1_B);
      ++layers;
    };
    add({.name = "embed", .forward_flops = flops(1), .weight = 1_B});
    for (std::size_t i = 0; i < home.size(); ++i) {
      for (const std::string& part : parts()) {
        layer_spec l{.name = "l" + std::to_string(i) + part, .forward_flops = flops(1), .weight = 9_B};
        if (part == ".attn") l.kind = "attention";
        if (part == ".act") l.weight = 0_B;
        if (part == ".mlp") l.sequence.experts = expert_weights{8, 2, 8_B};
        if (part == ".gate" || part == ".down") l.sequence.experts = expert_weights{8, 2, 9_B};
        add(std::move(l));
      }
    }
    add({.name = "lm_head", .forward_flops = flops(1), .weight = 1_B});
    return std::move(b).build();
  }
  [[nodiscard]] hetplan::plan plan() const {
    hetplan::plan p{.model = "moe", .cluster = "row"};
    p.workload.mode = mode::inference;
    int next = 0;
    const auto give = [&](int device) {
      if (p.stages.empty() || p.stages.back().devices.front().device != device_id(device))
        p.stages.push_back({.name = "s" + std::to_string(p.stages.size()), .devices = {{.device = device_id(device)}}});
      p.stages.back().layers.push_back(layer_id(next++));
    };
    give(host);
    for (std::size_t i = 0; i < home.size(); ++i) {
      for (const std::string& part : parts()) give(is_expert(part) ? experts[i] : home[i]);
    }
    give(head);
    return p;
  }
};

/// Returns the devices of --device, numbered as `numbered`.
std::vector<int> owners_listed(const std::string& command) {
  std::vector<int> all;
  for (const std::string& name : test::split_text(test::option(command_line(command), "--device"), ','))
    all.push_back(numbered(command).at(std::stoul(name.substr(3))));
  return all;
}

/// Returns the device of a tensor by the rule of -ot: the first pattern that is found in its name; -1 - host for "CPU", and likewise for
/// another device's processor; nothing if none is found.
std::optional<int> overridden(const std::string& command, const std::string& tensor, int host) {
  const std::string line = command_line(command);
  if (line.find(" -ot ") == std::string::npos) return std::nullopt;
  std::string given = test::option(line, "-ot");
  REQUIRE(given.size() > 2);
  if (given.front() == '\'') given = given.substr(1, given.size() - 2);
  for (const std::string& each : test::split_text(given, ',')) {
    const auto at = each.find('=');
    if (!std::regex_search(tensor, std::regex(each.substr(0, at)))) continue;
    const std::string buffer = each.substr(at + 1);
    if (buffer == "CPU") return -1 - host;
    REQUIRE((buffer.starts_with("RPC0[d") || buffer.starts_with("RPC1[d")));
    const int device = std::stoi(buffer.substr(6));
    const std::vector<int> known = numbered(command), listed = owners_listed(command);
    const int wanted = buffer[3] == '0' ? device : -1 - device;
    CHECK(std::ranges::count(known, wanted) == 1);
    CHECK(std::ranges::count(listed, wanted) == 1);  // else it has no backend
    return wanted;
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("experts on the host, by hand") {
  const moe_case c{.host = 0, .head = 2, .home = {1, 1, 2, 2}, .experts = {1, 0, 0, 2}};
  const std::string command = exchange::llama_cpp_command(c.plan(), c.model(), test::row_of_devices(3));
  CHECK(test::split_text(command, '\n')[4] ==
        "llama-cli -m MODEL.gguf --rpc d1:50052,d2:50052 --device RPC0,RPC1 -ngl 5 -ts 2,3 -ot 'blk\\.(1|2)\\.ffn_=CPU'");
  // On a device that has no block of its own, and that is not the host: it is listed with a share of 0.
  const moe_case other{.fine = true, .host = 1, .head = 2, .home = {1, 1, 2, 2}, .experts = {1, 0, 0, 2}};
  CHECK(test::split_text(exchange::llama_cpp_command(other.plan(), other.model(), test::row_of_devices(3)), '\n')[4] ==
        "llama-cli -m MODEL.gguf --rpc d1:50052,d2:50052,d0:50052 --device RPC0,RPC1,RPC2 -ngl 5 -ts 2,3,0 -ot "
        "'blk\\.(1|2)\\.ffn_(up|down|gate|gate_up)_(ch|)exps=RPC0[d0:50052]'");
}

TEST_CASE("llama.cpp puts every tensor of 400 random plans with experts apart where the plan has it", "[unsanitized]") {
  int apart = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 400; ++seed) {
    INFO("seed " << seed);
    test::random_source random(seed);
    moe_case c;
    c.fine = random.chance(0.5);
    const int devices = random.integer(1, 5);
    const std::vector<int> split = random.split(random.integer(devices, 30), devices);
    for (int d = 0; d < devices; ++d) c.home.insert(c.home.end(), static_cast<std::size_t>(split[static_cast<std::size_t>(d)]), d);
    const bool own_host = random.chance(0.5);  // with nothing but the embedding, and experts
    c.host = own_host ? devices : 0;
    c.head = devices - 1;
    for (const int home : c.home) c.experts.push_back(random.chance(0.4) ? random.integer(0, devices + 1) : home);
    const planning_graph model = c.model();
    const std::string command = exchange::llama_cpp_command(c.plan(), model, test::row_of_devices(devices + 2));
    std::vector<int> owners = c.home;
    owners.push_back(c.head);
    for (const bool counts_head : {false, true})
      CHECK(owners_in_llama_cpp(command, static_cast<int>(c.home.size()), counts_head) == owners);
    for (std::size_t i = 0; i < c.home.size(); ++i) {
      const std::string block = "blk." + std::to_string(i) + ".";
      const auto device_of = [&](const std::string& tensor) {
        const int found = overridden(command, block + tensor + ".weight", c.host).value_or(c.home[i]);
        return found < 0 ? c.host : found;
      };
      for (const char* tensor : {"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"}) CHECK(device_of(tensor) == c.experts[i]);
      for (const char* tensor : {"attn_q", "attn_norm", "attn_output"}) CHECK(device_of(tensor) == c.home[i]);
      for (const char* tensor : {"ffn_gate_inp", "ffn_norm"}) CHECK(device_of(tensor) == (c.fine ? c.home[i] : c.experts[i]));
      apart += c.experts[i] == c.home[i] ? 0 : 1;
    }
    if (own_host) CHECK(command.find("on d" + std::to_string(c.host) + ", which reads the tokens") != std::string::npos);
  }
  CHECK(apart > 500);
}

namespace {

/// Layers of a block by name, each with its tensors in GGUF.
using block_layers = std::vector<std::pair<std::string, std::vector<std::string>>>;
const std::vector<block_layers> levels{
    {{"attn", {"attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "attn_q_norm", "post_attention_norm"}},
     {"mlp", {"ffn_norm", "ffn_gate", "ffn_up", "ffn_down", "post_ffw_norm"}}},
    {{"norm1", {"attn_norm"}},
     {"q", {"attn_q", "attn_q_norm"}},
     {"k", {"attn_k", "attn_k_norm"}},
     {"v", {"attn_v"}},
     {"o", {"attn_output"}},
     {"norm2", {"ffn_norm"}},
     {"gate", {"ffn_gate"}},
     {"up", {"ffn_up"}},
     {"down", {"ffn_down"}}},
    {{"attn", {"attn_norm", "attn_q", "attn_output"}},
     {"mlp", {"ffn_norm", "ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"}}},
    {{"attn_qkv", {"attn_qkv"}}, {"attn_output", {"attn_output"}}, {"ffn_up", {"ffn_up"}}, {"ffn_down", {"ffn_down"}}},
    {{"router", {"ffn_gate_inp"}},
     {"gate", {"ffn_gate_exps"}},
     {"up", {"ffn_up_exps"}},
     {"down", {"ffn_down_exps"}},
     {"shared.gate", {"ffn_gate_shexp"}},
     {"shared.up", {"ffn_up_shexp"}},
     {"shared.down", {"ffn_down_shexp"}}}};

planning_graph model_of_blocks(const block_layers& parts, std::size_t blocks, bool tied) {
  planning_graph_builder b("blocks");
  std::size_t layers = 0;
  const auto add = [&](layer_spec l) {
    b.add_layer(std::move(l));
    if (layers > 0) b.add_edge(layer_id(layers - 1), layer_id(layers), 1_B);
    ++layers;
  };
  const std::string group = tied ? "tokens" : "";
  add({.name = "embed", .forward_flops = flops(1), .weight = 8_B, .weight_group = group});
  for (std::size_t i = 0; i < blocks; ++i) {
    for (const auto& [name, tensors] : parts) {
      layer_spec l{.name = "l" + std::to_string(i) + "." + name, .forward_flops = flops(1), .weight = 8_B};
      if (tensors.back().ends_with("_exps")) l.sequence.experts = expert_weights{4, 1, name == "mlp" ? 6_B : 8_B};
      add(std::move(l));
    }
  }
  add({.name = "norm", .forward_flops = flops(1), .weight = 1_B});
  add({.name = "lm_head", .forward_flops = flops(1), .weight = 8_B, .weight_group = group});
  return std::move(b).build();
}

/// Returns devices with RAM and disk.
cluster row_with_tiers(int n) {
  const cluster plain = test::row_of_devices(n);
  std::vector<device> all(plain.devices().begin(), plain.devices().end());
  for (device& d : all) d.tiers = {{"ram", 1_GB, 1_GB_per_s}, {"disk", 1_GB, 1_GB_per_s}};
  return plain.with_devices(std::move(all));
}

}  // namespace

TEST_CASE("llama.cpp puts every tensor of 400 random plans with weights in RAM where the plan has it", "[unsanitized]") {
  int moved = 0, remote = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 400; ++seed) {
    INFO("seed " << seed);
    test::random_source random(seed);
    const block_layers& parts = random.pick(levels);
    const int devices = random.integer(1, 4);
    const std::vector<int> split = random.split(random.integer(devices, 12), devices);
    std::size_t blocks = 0;
    for (const int s : split) blocks += static_cast<std::size_t>(s);
    const bool tied = devices == 1 && random.chance(0.5);
    const planning_graph model = model_of_blocks(parts, blocks, tied);
    hetplan::plan p{.model = "blocks", .cluster = "row"};
    p.workload.mode = mode::inference;
    std::size_t next = 0;
    std::vector<int> home;
    for (int d = 0; d < devices; ++d) {
      const int blocks_here = split[static_cast<std::size_t>(d)];
      home.insert(home.end(), static_cast<std::size_t>(blocks_here), d);
      std::size_t end = next + (d == 0 ? 1 : 0) + static_cast<std::size_t>(blocks_here) * parts.size();
      if (d + 1 == devices) end = model.size();
      stage s{.name = "s" + std::to_string(d), .devices = {{.device = device_id(d)}}};
      const double often = random.pick(std::vector{0.0, 0.2, 0.6, 1.0});
      for (; next < end; ++next) {
        s.layers.emplace_back(next);
        if (random.chance(often)) s.offload.push_back({layer_id(next), "ram"});
      }
      p.stages.push_back(std::move(s));
    }
    if (tied) {  // one tensor
      std::vector<offloaded_layer>& mine = p.stages.front().offload;
      std::erase_if(mine, [&](const offloaded_layer& o) { return o.layer.index() == 0 || o.layer.index() + 1 == model.size(); });
      if (random.chance(0.5)) {
        mine.insert(mine.begin(), {layer_id(0), "ram"});
        mine.push_back({layer_id(model.size() - 1), "ram"});
      }
    }
    const std::string command = exchange::llama_cpp_command(p, model, row_with_tiers(devices));
    INFO(command);
    std::vector<int> owners = home;
    owners.push_back(devices - 1);
    for (const bool counts_head : {false, true}) CHECK(owners_in_llama_cpp(command, static_cast<int>(blocks), counts_head) == owners);
    const auto check = [&](std::size_t layer, const std::string& tensor, int device) {
      const bool offloaded = p.stages[static_cast<std::size_t>(device)].tier_of(layer_id(layer)) != nullptr;
      moved += offloaded ? 1 : 0;
      remote += offloaded && device > 0 ? 1 : 0;
      INFO(tensor);
      CHECK(overridden(command, tensor + ".weight", 0).value_or(device) == (offloaded ? -1 - device : device));
    };
    std::size_t layer = 1;
    for (std::size_t b = 0; b < blocks; ++b) {
      for (const auto& [name, tensors] : parts) {
        for (const std::string& t : tensors) check(layer, "blk." + std::to_string(b) + "." + t, home[b]);
        ++layer;
      }
    }
    check(layer, "output_norm", devices - 1);
    check(layer + 1, tied ? "token_embd" : "output", devices - 1);
  }
  CHECK(moved > 1000);
  CHECK(remote > 500);
}

TEST_CASE("weights in RAM in llama.cpp, by hand, and what it cannot place") {
  const planning_graph m = model_of_blocks(levels[0], 3, false);
  hetplan::plan p{.model = "blocks", .cluster = "row"};
  p.workload.mode = mode::inference;
  p.stages = {{.name = "s0", .layers = {layer_id(0), layer_id(1), layer_id(2)}, .devices = {{.device = device_id(0)}}},
              {.name = "s1", .layers = {}, .devices = {{.device = device_id(1)}}}};
  for (std::size_t l = 3; l < m.size(); ++l) p.stages[1].layers.emplace_back(l);
  p.stages[0].offload = {{layer_id(2), "ram"}};
  p.stages[1].offload = {{layer_id(3), "ram"}, {layer_id(4), "ram"}, {layer_id(6), "ram"}};
  const cluster c = row_with_tiers(2);
  const auto lines = test::split_text(exchange::llama_cpp_command(p, m, c), '\n');
  CHECK(lines[3] == "# on d1 with --device GPU,CPU (GPU: its name there, as CUDA0): the processor holds weights, too");
  CHECK(lines[5] ==
        "llama-cli -m MODEL.gguf --rpc d0:50052,d1:50052 --device RPC0,RPC1,RPC2 -ngl 4 -ts 1,3,0 -ot "
        "'blk\\.(0)\\.(ffn_|post_ffw_)=CPU,blk\\.(1)\\.=RPC1[d1:50052],blk\\.(2)\\.(ffn_|post_ffw_)=RPC1[d1:50052]'");
  const auto refusal = [&] { return test::message_of([&] { return exchange::llama_cpp_command(p, m, c); }); };
  p.stages[1].offload[2].tier = "disk";
  CHECK(refusal() ==
        "export to llama.cpp: it knows a processor's memory and no tiers of it; stage \"s1\" has weights in \"ram\" and \"disk\"");
  p.stages[1].offload = {{layer_id(6), "disk"}};
  CHECK(refusal() ==
        "export to llama.cpp: what is not in a device's memory is in its processor's, the first of its tiers; stage \"s1\" has weights in "
        "tier \"disk\"");
  const std::string why = "; stage \"s0\" has weights in tier \"ram\"";
  CHECK(test::message_of([&] { return exchange::exo_program(p, m, c); }) ==
        "export to exo: its nodes hold all of their weights in memory" + why);
  CHECK(test::message_of([&] { return exchange::prima_cpp_commands(p, m, c); }) ==
        "export to prima.cpp: its ranks choose themselves what they map from files" + why);
  CHECK(test::message_of([&] { return exchange::vllm_command(p, m, c); }) ==
        "export to vLLM: it offloads a number of bytes, the same on every device, and no layers" + why);
  CHECK(test::message_of([&] { return exchange::torch_split_spec(p, m, c, "layers"); }) ==
        "export to torch: a split says no place of weights" + why);
  const planning_graph odd = model_of_blocks({{"mixer", {"ssm"}}, {"mlp", {"ffn_up"}}}, 3, true);
  p.stages[1].offload = {{layer_id(3), "ram"}};
  CHECK(test::message_of([&] { return exchange::llama_cpp_command(p, odd, c); }) ==
        "export to llama.cpp: it takes weights by their names in GGUF; layer \"l1.mixer\" in tier \"ram\" is no block, attention, MLP or "
        "known "
        "product of one");
  p.stages[1].offload = {{layer_id(8), "ram"}};
  CHECK(test::message_of([&] { return exchange::llama_cpp_command(p, odd, c); }) ==
        "export to llama.cpp: it has one tensor for embedding and head, which stays on the machine that runs the command; layer "
        "\"lm_head\" has "
        "it in tier \"ram\" of another device");
}

TEST_CASE("experts of one block on several devices, or without their neighbours, are refused") {
  moe_case c{.fine = true, .host = 0, .head = 1, .home = {1, 1}, .experts = {0, 1}};
  hetplan::plan p = c.plan();
  // embed, norm1, attn, router | gate, act, down | ... : "down" of block 0 stays with the attention.
  const auto stage_with = [&](const std::string& name) {
    for (stage& s : p.stages) {
      for (const layer_id l : s.layers) {
        if (c.model()[l].name == name) return &s;
      }
    }
    return static_cast<stage*>(nullptr);
  };
  stage* moved = stage_with("l0.down");
  REQUIRE(moved != nullptr);
  const layer_id down = moved->layers.back();
  moved->layers.pop_back();
  stage* next = stage_with("l1.norm1");
  REQUIRE(next != nullptr);
  next->layers.insert(next->layers.begin(), down);
  CHECK(test::message_of([&] { return exchange::split_for_llama_cpp(p, c.model()); }) ==
        "export to llama.cpp: it gives a device one range of blocks; that of stage \"s2\" has another stage");
}

TEST_CASE("in generation the command has the length, the slots and the chunks of the job") {
  hetplan::plan p = block_split{{1, 1}}.plan(mode::generation);
  p.workload.prompt = 100;
  p.workload.tokens = 20;
  p.workload.context = 8;
  const auto last_line = [&] {
    return test::split_text(exchange::llama_cpp_command(p, test::block_model(2), test::row_of_devices(2)), '\n')[4];
  };
  CHECK(last_line() == "llama-cli -m MODEL.gguf --rpc d1:50052,d0:50052 --device RPC0,RPC1 -ngl 3 -ts 1,2 -c 128");
  p.microbatches = 4;
  p.workload.prompt_chunk = 32;
  CHECK(last_line() == "llama-server -m MODEL.gguf --rpc d1:50052,d0:50052 --device RPC0,RPC1 -ngl 3 -ts 1,2 -c 512 -np 4 -ub 32");
}

TEST_CASE("what llama.cpp cannot run is refused") {
  const auto refusal = [](const hetplan::plan& p, int blocks) {
    return test::message_of([&] { return exchange::split_for_llama_cpp(p, test::block_model(blocks)); });
  };
  CHECK(refusal(block_split{{2, 2}}.plan(mode::training), 4) == "export to llama.cpp: it runs inference; the plan is for training");
  CHECK(refusal(block_split{std::vector<int>(15, 1)}.plan(), 15) == "no error");
  CHECK(refusal(block_split{std::vector<int>(16, 1)}.plan(), 16) == "export to llama.cpp: its -ts takes 15 devices; the plan has 16");
}

TEST_CASE("a device's name that is no address is refused where a command line has it for one") {
  for (const std::string name : {"a b;'c\nd", "-rf d1", "-x", "a,b", "a:1", "\x1B[2J", ".", "k\u00FCche"}) {
    const cluster odd("odd",
                      {{.name = name, .memory = 1_GB, .compute = 1_TFLOP_per_s}, {.name = "e", .memory = 1_GB, .compute = 1_TFLOP_per_s}},
                      shared_medium{1_GB_per_s});
    const std::string why =
        "a device's name stands for its address: expected letters, digits, \"-\", \".\" and \"_\", a letter or a digit first; got ";
    CHECK(test::message_of([&] {
            return exchange::llama_cpp_command(block_split{{1, 1}}.plan(), test::block_model(2), odd);
          }) == "export to llama.cpp: " + why + io::in_quotes(name));
    CHECK(test::message_of([&] {
            return exchange::prima_cpp_commands(block_split{{1, 1}}.plan(), test::block_model(2), odd);
          }) == "export to prima.cpp: " + why + io::in_quotes(name));
  }
  CHECK(exchange::shell_word("") == "''");
  CHECK(exchange::shell_word("10.0.0.7:50052,home-1") == "10.0.0.7:50052,home-1");
}

TEST_CASE("a head on a device that has the first layers too goes there by its name") {
  const planning_graph m = zoo::model("llama3-8b", {.tokens = 1});
  plan p{.model = m.name(), .cluster = "row"};
  p.workload.mode = mode::generation;
  for (int s = 0; s < 3; ++s) p.stages.push_back({.name = "s" + std::to_string(s), .devices = {{.device = device_id(s == 1 ? 1 : 0)}}});
  const exchange::runtime_layers parts = exchange::find_runtime_layers(m);
  const auto give = [&](std::size_t to, const std::vector<layer_id>& all) {
    p.stages[to].layers.insert(p.stages[to].layers.end(), all.begin(), all.end());
  };
  give(0, parts.embedding);
  for (std::size_t b = 0; b < parts.blocks.size(); ++b) give(b < 20 ? 0 : 1, parts.blocks[b]);
  for (const layer_id l : parts.head) give(m[l].name == "lm_head" ? 2 : 1, {l});
  const exchange::llama_cpp_split split = exchange::split_for_llama_cpp(p, m);
  CHECK(split.devices == std::vector{device_id(0), device_id(1)});
  CHECK(split.tensor_split == std::vector<std::size_t>{20, 13});
  REQUIRE(split.overrides.size() == 1);
  CHECK(split.overrides[0].tensors == "^output\\.");
  const std::string command = exchange::llama_cpp_command(p, m, test::row_of_devices(2));
  CHECK(command.find("-ts 20,13 -ot '^output\\.=RPC0[d0:50052]'") != std::string::npos);
}

}  // namespace test_export_llama_cpp
