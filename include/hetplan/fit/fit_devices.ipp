// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/fit/fit_devices.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <optional>

#include <hetplan/core/error.hpp>
#include <hetplan/fit/bounded_least_squares.hpp>

namespace hetplan::fit {

HETPLAN_INLINE std::string parameter::name() const {
  std::string text(to_string(what));
  if (!format.empty()) text += " (" + format + ")";
  if (!owner.empty()) text += " of " + owner;
  return text;
}

namespace detail {

[[nodiscard]] constexpr bool is_share(parameter_kind k) {
  return k == parameter_kind::efficiency || k == parameter_kind::memory_efficiency || k == parameter_kind::cache_efficiency;
}
/// Is it a rate or a share of one? Times are linear in its reciprocal.
[[nodiscard]] constexpr bool is_rate(parameter_kind k) { return is_share(k) || k == parameter_kind::capacity; }
[[nodiscard]] constexpr bool is_of_format(parameter_kind k) {
  return k == parameter_kind::efficiency || k == parameter_kind::memory_efficiency;
}
[[nodiscard]] constexpr bool is_of_network(parameter_kind k) { return k == parameter_kind::capacity || k == parameter_kind::latency; }

/// Returns what is usual of an additive parameter, in rows or seconds: its unit.
[[nodiscard]] constexpr double unit_of(parameter_kind k) {
  return k == parameter_kind::half_rows ? 64 : k == parameter_kind::launch ? 5e-6 : 1e-4;
}
/// Is it a parameter that every device has some of, so that nothing speaks for the cluster's number but the rows?
[[nodiscard]] constexpr bool is_free(parameter_kind k) { return is_of_format(k) || k == parameter_kind::capacity; }

/// The network of a cluster with other capacities and latencies.
struct changed_network {
  const network& whole;
  std::vector<resource> capacities;
  std::optional<seconds> latency;

  [[nodiscard]] std::vector<resource> resources(std::span<const device>) const { return capacities; }
  [[nodiscard]] std::optional<route> find_route(std::span<const device>, device_id from, device_id to) const {
    const route* known = whole.find(from, to);
    if (known == nullptr) return std::nullopt;
    route r = *known;
    if (latency) r.latency = *latency;
    return r;
  }
};
static_assert(check_network_model<changed_network>());

/// Sets the share of a weight format. Where there was one number for all, it stays that of the other formats; 1, which nobody attains,
/// becomes the value.
HETPLAN_INLINE void set_share(attained_share& s, const std::string& format, double value) {
  if (format.empty()) {
    s = attained_share(value);
    return;
  }
  for (auto& [known, share] : s.by_format) {
    if (known != format) continue;
    share = value;
    return;
  }
  const bool was_number = s.by_format.empty();
  s.by_format.emplace_back(format, value);
  if (was_number && format != attained_share::other) s.by_format.emplace_back(attained_share::other, s.of_all < 1 ? s.of_all : value);
}

/// Returns the share from which a fit begins.
HETPLAN_INLINE double get_share(const attained_share& s, const std::string& format) {
  const double* known = s.find(format);
  return known != nullptr ? *known : 1;
}

HETPLAN_INLINE double value_in(const parameter& p, const device& d) {
  switch (p.what) {
    case parameter_kind::efficiency: return get_share(d.efficiency, p.format);
    case parameter_kind::memory_efficiency: return get_share(d.memory_efficiency, p.format);
    case parameter_kind::cache_efficiency: return d.cache_efficiency;
    case parameter_kind::half_rows: return d.half_rows;
    case parameter_kind::launch: return d.launch.value();
    case parameter_kind::overhead: return d.overhead.value();
    case parameter_kind::send_overhead: return d.send_overhead.value();
    case parameter_kind::capacity:
    case parameter_kind::latency: break;
  }
  return 0;
}

HETPLAN_INLINE void set_value(device& d, const parameter& p, double v) {
  switch (p.what) {
    case parameter_kind::efficiency: return set_share(d.efficiency, p.format, v);
    case parameter_kind::memory_efficiency: return set_share(d.memory_efficiency, p.format, v);
    case parameter_kind::cache_efficiency: d.cache_efficiency = v; return;
    case parameter_kind::half_rows: d.half_rows = v; return;
    case parameter_kind::launch: d.launch = seconds(v); return;
    case parameter_kind::overhead: d.overhead = seconds(v); return;
    case parameter_kind::send_overhead: d.send_overhead = seconds(v); return;
    case parameter_kind::capacity:
    case parameter_kind::latency: return;
  }
}

/// Returns the cluster with these values of these parameters.
///
/// @param chosen  indices into `all` and `values`.
HETPLAN_INLINE cluster with_values(const cluster& c, const std::vector<parameter>& all, const std::vector<std::size_t>& chosen,
                                   const std::vector<double>& values) {
  std::vector<device> devices(c.devices().begin(), c.devices().end());
  bool of_network = false;
  for (const std::size_t k : chosen) {
    of_network = of_network || is_of_network(all[k].what);
    for (device& d : devices) {
      if (d.kind == all[k].owner && !is_of_network(all[k].what)) set_value(d, all[k], values[k]);
    }
  }
  if (!of_network) return c.with_devices(std::move(devices));
  changed_network net{c.network(), {c.network().resources().begin(), c.network().resources().end()}, {}};
  for (const std::size_t k : chosen) {
    if (all[k].what == parameter_kind::latency) net.latency = seconds(values[k]);
    for (resource& r : net.capacities) {
      if (all[k].what == parameter_kind::capacity && r.name == all[k].owner) r.capacity = bytes_per_second(values[k]);
    }
  }
  return cluster(c.name(), std::move(devices), net);
}

/// A row with the part of the cluster that it needs, and the parameters on which it may depend.
struct fitted_row {
  measurement row;
  hetplan::cluster part;
  hetplan::plan plan = {};
  std::vector<std::size_t> parameters = {};
};

/// Parameters that rows join, and these rows. Coordinates are reciprocals of shares and capacities (these by what they were), and other
/// numbers in their unit: then times are almost linear in them, and steps find the bottom of long narrow valleys.
class fit_group {
 public:
  fit_group(std::vector<parameter>& all, std::vector<std::size_t> mine, std::vector<const fitted_row*> rows, const fit_options& options)
      : all_(all), mine_(std::move(mine)), rows_(std::move(rows)), options_(options), kept_(mine_.size(), 0) {
    for (const std::size_t k : mine_) {
      const parameter& p = all_[k];
      start_.push_back(coordinate(p, p.before));
      lower_.push_back(is_share(p.what) ? 1 : is_rate(p.what) ? 1e-9 : 0);
      upper_.push_back(is_share(p.what) ? 1e6 : is_rate(p.what) ? 1e9 : 1e12);
    }
  }

  void fit() {
    // The rows tell how well the model fits them, if there are more of them than parameters.
    set_pull(0);
    vector x = settled(start_);
    double sum = 0;
    for (const double r : residuals(x)) sum += r * r;
    const auto fitted = std::count(kept_.begin(), kept_.end(), 0);
    const auto rows = std::count_if(rows_.begin(), rows_.end(), [](const fitted_row* r) { return r->row.weight > 0; });
    set_pull(rows > fitted ? std::min(most_noise, std::sqrt(sum / static_cast<double>(rows - fitted))) : usual_noise);
    std::fill(kept_.begin(), kept_.end(), 0);
    x = settled(x);
    for (std::size_t j = 0; j < mine_.size(); ++j) {
      parameter& p = all_[mine_[j]];
      p.after = kept_[j] != 0 ? p.before : value(p, x[j]);
      if (kept_[j] != 0) continue;
      p.like.clear();
      p.verdict = is_share(p.what) && x[j] < 1 + 1e-9 ? verdict::at_limit : verdict::fitted;
    }
  }

 private:
  using vector = std::vector<double>;
  static constexpr double usual_noise = 0.03, most_noise = 0.1;  ///< relative, of a row

  /// Sets how strongly the cluster's numbers hold parameters that are not free, where rows are off by `noise`.
  void set_pull(double noise) {
    pull_.clear();
    for (std::size_t j = 0; j < mine_.size(); ++j) {
      const double usual = std::max(1.0, start_[j]);  // deviation: twice the time, or one unit
      pull_.push_back(is_held(all_[mine_[j]].what) ? std::max(1e-9, noise / usual) : 1e-9);
    }
  }
  [[nodiscard]] bool is_held(parameter_kind k) const {
    return !is_free(k) && std::find(options_.free.begin(), options_.free.end(), k) == options_.free.end();
  }

  [[nodiscard]] static double coordinate(const parameter& p, double v) {
    return is_share(p.what) ? 1 / v : is_rate(p.what) ? p.before / v : v / unit_of(p.what);
  }
  [[nodiscard]] static double value(const parameter& p, double x) {
    if (is_share(p.what)) return std::min(1.0, 1 / x);
    return is_rate(p.what) ? p.before / x : std::max(0.0, x) * unit_of(p.what);
  }

  /// Returns the weighted ln(predicted / measured) of a row.
  [[nodiscard]] double residual(const fitted_row& r, const vector& x) const {
    vector values(all_.size());
    for (std::size_t j = 0; j < mine_.size(); ++j) values[mine_[j]] = value(all_[mine_[j]], x[j]);
    const double predicted = predict(r.row, r.plan, with_values(r.part, all_, r.parameters, values));
    if (!(predicted > 0) || !std::isfinite(predicted)) {
      throw invalid_input(r.row.where + ": expected a row that takes time, got a prediction of " + to_text(predicted));
    }
    return std::sqrt(r.row.weight) * std::log(predicted / r.row.value);
  }
  [[nodiscard]] vector residuals(const vector& x) const {
    vector r;
    for (const fitted_row* row : rows_) r.push_back(residual(*row, x));
    return r;
  }
  [[nodiscard]] double objective(const vector& r, const vector& x) const {
    double sum = 0;
    for (const double each : r) sum += each * each;
    for (std::size_t j = 0; j < x.size(); ++j) sum += pull_[j] * pull_[j] * (x[j] - start_[j]) * (x[j] - start_[j]);
    return sum;
  }

  /// Returns derivatives of the residuals r at x, row by row, by differences to where times are longer; 0 for kept parameters.
  [[nodiscard]] vector jacobian(const vector& x, const vector& r) const {
    const std::size_t n = x.size();
    vector j_of(rows_.size() * n, 0);
    for (std::size_t j = 0; j < n; ++j) {
      if (kept_[j] != 0) continue;
      const double h = 1e-5 * std::max(1.0, std::abs(x[j]));
      vector after = x;
      after[j] += h;
      for (std::size_t i = 0; i < rows_.size(); ++i) {
        const auto& on = rows_[i]->parameters;
        if (std::find(on.begin(), on.end(), mine_[j]) == on.end()) continue;
        j_of[i * n + j] = (residual(*rows_[i], after) - r[i]) / (after[j] - x[j]);
      }
    }
    return j_of;
  }

  /// Returns the minimum of the parameters that the rows tell, and marks the others.
  [[nodiscard]] vector settled(vector x) {
    x = best_of_starts(x);
    while (keep_what_is_not_told(x)) {
      for (std::size_t j = 0; j < x.size(); ++j) {
        if (kept_[j] != 0) x[j] = start_[j];
      }
      descend(x);
    }
    return x;
  }

  /// Returns the minimum below the best of the ends of short descents from some points; ties: the first.
  [[nodiscard]] vector best_of_starts(const vector& first) const {
    struct point {
      double efficiency, memory_efficiency, capacity;  ///< capacity: of the cluster's
    };
    constexpr std::array<point, 5> others{{{0.9, 0.9, 0.1}, {0.5, 0.5, 0.01}, {0.2, 0.2, 1e-3}, {0.9, 0.2, 1}, {0.2, 0.9, 1}}};
    vector best;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t s = 0; s <= others.size(); ++s) {
      vector x = s == 0 ? first : start_;
      for (std::size_t j = 0; j < x.size() && s > 0; ++j) {
        const parameter& p = all_[mine_[j]];
        if (p.what == parameter_kind::efficiency) x[j] = coordinate(p, others[s - 1].efficiency);
        if (p.what == parameter_kind::memory_efficiency) x[j] = coordinate(p, others[s - 1].memory_efficiency);
        if (p.what == parameter_kind::capacity) x[j] = coordinate(p, others[s - 1].capacity * p.before);
      }
      const double reached = descend(x, 6);
      if (!best.empty() && reached >= least * (1 - 1e-6)) continue;
      least = reached;
      best = x;
    }
    descend(best);
    return best;
  }

  /// Moves x to a minimum by damped steps, each a bounded linear problem. Returns the objective, which no step makes worse.
  double descend(vector& x, int rounds = 60) const {
    const std::size_t n = x.size(), m = rows_.size();
    vector r = residuals(x);
    double now = objective(r, x), damping = 1e-3;
    int slow = 0;  // rounds without much progress
    for (int round = 0; round < rounds && damping < 1e9; ++round) {
      const vector jac = jacobian(x, r);
      bool better = false;
      while (!better && damping < 1e9) {
        vector a((m + 2 * n) * n, 0), b(m + 2 * n, 0), low(n), high(n);
        std::copy(jac.begin(), jac.end(), a.begin());
        for (std::size_t i = 0; i < m; ++i) b[i] = -r[i];
        for (std::size_t j = 0; j < n; ++j) {
          double norm = 0;
          for (std::size_t i = 0; i < m; ++i) norm += jac[i * n + j] * jac[i * n + j];
          a[(m + j) * n + j] = std::sqrt(damping * norm);
          a[(m + n + j) * n + j] = pull_[j];
          b[m + n + j] = pull_[j] * (start_[j] - x[j]);
          const bool stays = kept_[j] != 0;
          low[j] = stays ? 0 : lower_[j] - x[j];
          high[j] = stays ? 0 : upper_[j] - x[j];
        }
        const vector step = bounded_least_squares(a, b, low, high);
        vector next = x;
        double size = 0;
        for (std::size_t j = 0; j < n; ++j) {
          next[j] = std::clamp(x[j] + step[j], lower_[j], upper_[j]);
          size = std::max(size, std::abs(next[j] - x[j]) / std::max(1.0, std::abs(x[j])));
        }
        if (size < 1e-13) return now;
        const vector at_next = residuals(next);
        const double then = objective(at_next, next);
        if (then < now) {
          better = true;
          slow = now - then <= 1e-7 * now ? slow + 1 : 0;
          x = next;
          r = at_next;
          now = then;
          damping = damping < 1e-12 ? 0 : damping * 0.1;
          if (slow == 2) return now;
        } else {
          damping = std::max(damping, 1e-6) * 10;
        }
      }
    }
    return now;
  }

  /// Marks parameters that the rows do not tell at x. Returns true if there are new ones.
  bool keep_what_is_not_told(const vector& x) {
    const std::size_t n = x.size(), m = rows_.size();
    const vector jac = jacobian(x, residuals(x));
    std::vector<std::size_t> order(n), told;
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return all_[mine_[a]].what < all_[mine_[b]].what; });
    vector columns;
    bool found = false;
    for (const std::size_t j : order) {
      if (kept_[j] != 0) continue;
      parameter& p = all_[mine_[j]];
      vector effect(m);
      double most = 0;
      for (std::size_t i = 0; i < m; ++i) {
        effect[i] = jac[i * n + j];
        most = std::max(most, std::abs(effect[i]));
      }
      const double change = is_rate(p.what) ? x[j] : most > 0 ? std::max(x[j], 0.1 / most) : 0;
      for (double& e : effect) e *= change;
      p.influence = std::sqrt(std::inner_product(effect.begin(), effect.end(), effect.begin(), 0.0));
      vector shares;
      if (distinct_part(columns, effect, shares) >= options_.tolerance) {
        columns.insert(columns.end(), effect.begin(), effect.end());
        told.push_back(j);
        continue;
      }
      found = true;
      kept_[j] = 1;
      p.verdict = p.influence < options_.tolerance ? verdict::unused : verdict::inseparable;
      p.like.clear();
      const double largest =
          std::accumulate(shares.begin(), shares.end(), 0.0, [](double a, double b) { return std::max(a, std::abs(b)); });
      for (std::size_t k = 0; k < told.size() && p.verdict == verdict::inseparable; ++k) {
        if (std::abs(shares[k]) >= 0.1 * largest) p.like.push_back(mine_[told[k]]);
      }
    }
    return found;
  }

  std::vector<parameter>& all_;
  std::vector<std::size_t> mine_;
  std::vector<const fitted_row*> rows_;
  const fit_options& options_;
  std::vector<char> kept_;
  vector start_, lower_, upper_, pull_;
};

/// Returns the parameters of the kinds of device in the rows, and of the network.
HETPLAN_INLINE std::vector<parameter> parameters_of(const cluster& c, std::span<const measurement> rows, const fit_options& o,
                                                    std::vector<std::string>& notes) {
  const auto asked = [&](parameter_kind k) { return std::find(o.parameters.begin(), o.parameters.end(), k) != o.parameters.end(); };
  std::vector<parameter> all;
  std::vector<std::string> kinds;
  for (const device& d : c.devices()) {
    if (std::find(kinds.begin(), kinds.end(), d.kind) != kinds.end()) continue;
    std::vector<const measurement*> mine;
    for (const measurement& m : rows) {
      const auto is_mine = [&](device_id id) { return c[id].kind == d.kind; };
      if (std::any_of(m.devices.begin(), m.devices.end(), is_mine)) mine.push_back(&m);
    }
    if (mine.empty()) continue;
    kinds.push_back(d.kind);
    std::vector<std::string> formats;
    for (const measurement* m : mine) {
      const std::string& format = m->model->facts().weight_format;
      if (std::find(formats.begin(), formats.end(), format) == formats.end()) formats.push_back(format);
    }
    for (const auto& [name, k] : parameter_kinds) {
      if (!asked(k) || is_of_network(k)) continue;
      if (k == parameter_kind::half_rows && d.half_batch > 0) {
        notes.push_back("half_rows of " + d.kind + " is not fitted: the device has half_batch, and may have one of the two");
        continue;
      }
      if (!is_of_format(k)) {
        all.push_back({k, d.kind});
        all.back().before = value_in(all.back(), d);
        continue;
      }
      const attained_share& s = k == parameter_kind::efficiency ? d.efficiency : d.memory_efficiency;
      const bool by_format = formats.size() > 1 || !s.by_format.empty();
      for (const std::string& format : formats) {
        all.push_back({k, d.kind, format.empty() && by_format ? std::string(attained_share::other) : format});
        all.back().before = value_in(all.back(), d);
      }
    }
  }
  for (const parameter_kind k : o.free) {
    if (std::find(o.parameters.begin(), o.parameters.end(), k) == o.parameters.end())
      throw invalid_input("fit: free: expected one of the parameters that are fitted, got " + std::string(to_string(k)));
  }
  for (const std::string& name : o.resources) {
    const auto known = c.network().resources();
    const auto it = std::find_if(known.begin(), known.end(), [&](const resource& r) { return r.name == name; });
    if (it == known.end()) {
      std::string names;
      for (const resource& r : known) names += (names.empty() ? "" : ", ") + r.name;
      throw invalid_input("fit: expected a resource of cluster \"" + c.name() + "\" (" + (names.empty() ? "it has none" : names) +
                          "), got \"" + name + "\"");
    }
    all.push_back({parameter_kind::capacity, name});
    all.back().before = it->capacity.value();
  }
  if (asked(parameter_kind::latency)) {
    double least = std::numeric_limits<double>::infinity();
    for (const device& a : c.devices()) {
      for (const device& b : c.devices()) {
        if (const route* r = c.network().find(a.id, b.id)) least = std::min(least, r->latency.value());
      }
    }
    if (std::isfinite(least)) {
      all.push_back({parameter_kind::latency, ""});
      all.back().before = least;
    }
  }
  return all;
}

/// Returns a row on the part of the cluster with its devices alone.
HETPLAN_INLINE fitted_row row_on_its_part(const measurement& m, const cluster& c, const std::vector<parameter>& all) {
  std::vector<char> keep(c.size(), 0);
  for (const device_id d : m.devices) keep[d.index()] = 1;
  std::vector<bytes_per_second> capacities;
  for (const resource& r : c.network().resources()) capacities.push_back(r.capacity);
  cluster_part part = part_of(c, keep, capacities);
  fitted_row row{m, std::move(part.devices)};
  for (device_id& d : row.row.devices) d = part.renamed[d.index()];
  row.plan = plan_of(row.row, row.part);
  for (std::size_t k = 0; k < all.size(); ++k) {
    const auto owns = [&](const device& d) { return d.kind == all[k].owner; };
    const auto devices = row.part.devices();
    const std::string& named = m.model->facts().weight_format;
    const bool format = !is_of_format(all[k].what) || all[k].format == named || (named.empty() && all[k].format == attained_share::other);
    if (is_of_network(all[k].what) ? m.devices.size() > 1 : format && std::any_of(devices.begin(), devices.end(), owns))
      row.parameters.push_back(k);
  }
  return row;
}

/// Returns what profiles make of a row: their layers' times are measured, and no parameter changes them.
HETPLAN_INLINE std::string note_of_profiles(const measurement& m, const cluster& c) {
  for (const device_id d : m.devices) {
    const auto layers = m.model->layers();
    const auto profiled = std::count_if(layers.begin(), layers.end(), [&](const layer& l) { return l.profile_for(c[d].kind) != nullptr; });
    if (profiled == 0) continue;
    return m.where + ": " + std::to_string(profiled) + " of " + std::to_string(layers.size()) + " layers of model \"" + m.model->name() +
           "\" have a measured profile for " + c[d].kind + ", which fitting does not change";
  }
  return "";
}

HETPLAN_INLINE double rounded(double v, int digits) {
  if (digits <= 0) return v;
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, v, std::chars_format::general, digits).ptr;
  std::from_chars(text, end, v);
  return v;
}

}  // namespace detail

HETPLAN_INLINE fit_result fit_devices(const cluster& c, std::span<const measurement> rows, const fit_options& options) {
  if (rows.empty()) throw invalid_input("fit: expected at least one measurement, got none");
  for (const measurement& m : rows) check_measurement(m, c);
  std::vector<std::string> notes;
  std::vector<parameter> all = detail::parameters_of(c, rows, options, notes);
  std::vector<detail::fitted_row> parts;
  parts.reserve(rows.size());
  for (const measurement& m : rows) {
    parts.push_back(detail::row_on_its_part(m, c, all));
    if (std::string note = detail::note_of_profiles(m, c); !note.empty()) notes.push_back(std::move(note));
  }

  // Groups: parameters of one row are fitted together.
  std::vector<std::size_t> group(all.size());
  std::iota(group.begin(), group.end(), std::size_t{0});
  for (bool changed = true; changed;) {
    changed = false;
    for (const detail::fitted_row& r : parts) {
      std::size_t least = all.size();
      for (const std::size_t k : r.parameters) least = std::min(least, group[k]);
      for (const std::size_t k : r.parameters) {
        changed = changed || group[k] != least;
        group[k] = least;
      }
    }
  }
  for (std::size_t g = 0; g < all.size(); ++g) {
    std::vector<std::size_t> mine;
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (group[k] == g) mine.push_back(k);
    }
    std::vector<const detail::fitted_row*> own;
    for (const detail::fitted_row& r : parts) {
      if (!r.parameters.empty() && group[r.parameters.front()] == g) own.push_back(&r);
    }
    if (!mine.empty()) detail::fit_group(all, mine, own, options).fit();
  }

  std::vector<std::size_t> every(all.size());
  std::iota(every.begin(), every.end(), std::size_t{0});
  std::vector<double> values;
  for (parameter& p : all) {
    const bool kept = p.verdict == verdict::unused || p.verdict == verdict::inseparable;
    if (!kept) p.after = detail::rounded(p.after, options.digits);
    values.push_back(p.after);
  }
  cluster fitted = detail::with_values(c, all, every, values);
  std::vector<double> predicted;
  for (const measurement& m : rows) predicted.push_back(predict(m, fitted));
  return {std::move(fitted), std::move(all), std::move(predicted), std::move(notes)};
}

HETPLAN_INLINE std::vector<deviation> deviations(std::span<const measurement> rows, std::span<const double> predicted) {
  std::vector<deviation> found;
  for (const auto& [name, what] : measured_names) {
    std::vector<double> off;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].what == what) off.push_back(std::exp(std::abs(std::log(predicted[i] / rows[i].value))) - 1);
    }
    if (off.empty()) continue;
    std::sort(off.begin(), off.end());
    const std::size_t n = off.size();
    found.push_back({what, n, n % 2 == 1 ? off[n / 2] : (off[n / 2 - 1] + off[n / 2]) / 2, off.back()});
  }
  return found;
}

}  // namespace hetplan::fit
