// SPDX-License-Identifier: BSL-1.0
// Three plans in turn for an evening of work, one third on each owner's device, against the mixture of least energy.
#include <cstddef>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include <hetplan/mix/mixing_controller.hpp>

using namespace hetplan;

// [mixing_controller]
// All plans work equally long, whatever the goal; the running one goes first.
struct in_turn {
  mix::mixture operator()(const mix::plan_rates& rates, const mix::mixing_goal& goal) const {
    mix::mixture m;
    const std::size_t n = rates.plans.size();
    std::optional<std::size_t> before = goal.running;
    double pauses_s = 0;
    for (std::size_t p = before.value_or(0); m.parts.size() < n; before = p, p = (p + 1) % n) {
      const mix::switch_cost change = rates.cost(before, p);
      m.parts.push_back({.plan = p, .pause_s = change.pause_s});
      m.energy_J += change.energy_J + change.pause_s * rates.idle_W;
      pauses_s += change.pause_s;
    }
    for (mix::mixture_part& part : m.parts) {
      part.seconds = (goal.horizon_s - pauses_s) / static_cast<double>(n);
      m.progress += rates.plans[part.plan].rate * part.seconds;
      m.energy_J += rates.plans[part.plan].power_W * part.seconds;
    }
    return m;
  }
};
static_assert(mix::check_mixing_controller<in_turn>());
// [mixing_controller]

void print(const char* name, const mix::mixture& m) {
  std::printf("%-12s", name);
  for (const mix::mixture_part& part : m.parts) std::printf("%5.0f s of plan %zu,", part.seconds, part.plan);
  std::printf("%5.0f s idle: %.0f iterations, %.0f kJ\n", m.idle_s, m.progress, 1e-3 * m.energy_J);
}

int main() {
  // Iterations per second and watts on laptop, tablet and phone; a move of the model takes 20 s and 100 J.
  const mix::switch_cost move{20, 100};
  const mix::plan_rates rates{.plans = {{0.30, 95}, {0.12, 22}, {0.08, 16}},
                              .switches = {.between = std::vector(9, move), .start = std::vector(3, move)},
                              .idle_W = 11};
  const mix::mixing_goal evening{.horizon_s = 3600, .progress = 580};

  for (const auto& [name, controller] :
       {std::pair<const char*, mix::any_mixing_controller>{"least energy", mix::exact_mixing{}}, {"in turn", in_turn{}}}) {
    print(name, controller(rates, evening));
  }
}
