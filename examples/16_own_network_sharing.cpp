// SPDX-License-Identifier: BSL-1.0
// A network sharing of one's own: Wi-Fi that loses more to collisions the more devices send at once. Plans are made for it.
#include <cstdio>
#include <set>
#include <span>
#include <utility>

#include <hetplan/hetplan.hpp>
#include <hetplan/simulate/prescribed.hpp>

using namespace hetplan;

// [network_sharing]
/// One medium, of which n senders get 1 / (1 + 0.3 (n - 1)) together; transfers get equal parts of that.
struct crowded_air {
  bytes_per_second capacity;
  transfers_under_way flows = {};  // the books: who has how much left, and who ends next

  void start(double now_s, std::uint32_t number, const tasks::transfer& t, std::span<const resource_use> route) {
    flows.start(now_s, number, t, route);
  }
  void update(double now_s, const rate_changed& changed) {
    std::set<device_id> senders;
    double parts = 0;
    for (const auto& f : flows) {
      senders.insert(f.transfer->from);
      parts += f.route.front().weight;
    }
    const double usable = capacity.value() / (1 + 0.3 * (static_cast<double>(senders.size()) - 1));
    for (const auto& f : flows) flows.set_rate(now_s, f.number, usable / parts, changed);
  }
  double next_end() const { return flows.next_end(); }
  void finish_until(double time_s, const transfer_finished& finished) { flows.finish_until(time_s, finished); }
};
static_assert(check_network_sharing<crowded_air>());
// [network_sharing]

int main() {
  planning_graph_builder layers("blocks");
  for (int i = 0; i < 8; ++i) {
    layers.add_layer({.name = "block" + std::to_string(i), .forward_flops = 60_GFLOP, .weight = 2_MB, .activation = 8_MB});
    if (i > 0) layers.add_edge(layer_id(i - 1), layer_id(i), 3_MB, 3_MB);
  }
  const planning_graph model = std::move(layers).build();
  std::vector<device> boards;
  for (int i = 0; i < 4; ++i) boards.push_back({.name = "board" + std::to_string(i), .memory = 4_GB, .compute = 4_TFLOP_per_s});
  const cluster home("home", std::move(boards), shared_medium{600_Mbit_per_s, 2_ms});

  const judge_models crowded{.sharing = crowded_air{600_Mbit_per_s}};
  const planning_problem wire{model, home, roofline{}, job{.batch = 16}}, air{model, home, roofline{}, job{.batch = 16}, crowded};
  for (const auto& [where, problem] : {std::pair("a wire", &wire), {"the air", &air}}) {
    const plan p = recipes::dora(*problem, minimize_latency{}).plans.front().plan;
    const seconds fair = judge(p, model, home, roofline{}).evaluation.latency;
    const seconds real = judge(p, model, home, roofline{}, crowded).evaluation.latency;
    std::printf("planned for %s: %s if the air were a wire, %s with collisions\n", where, readable(fair).c_str(), readable(real).c_str());
  }
}
