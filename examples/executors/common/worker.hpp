// SPDX-License-Identifier: BSL-1.0
#pragma once
/// One device's real execution of a plan: its tasks in order, tensors to and from other devices, reductions, the optimizer step.
///
/// An executor provides a transport (transport.hpp) for each device and runs
///
///     worker w(net, prog, device, settings, link);
///     train(w, link, iterations, records);   // on every device of the program, at the same time
///
/// and reads w.parameters(), w.overruns() and the records. All else is the same for threads and ranks.

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>

#include "transport.hpp"

namespace executors {

struct pace {
  int times = 1;    ///< repetitions of each task's work, all but the last without effect
  double wait = 1;  ///< duration of a task in units of its processor time; the device waits for the rest
};

/// Callback (layer, phase, seconds of processor time), called several times per task.
using layer_timer = std::function<void(std::size_t, hetplan::phase, double)>;

/// Settings of a training, equal on all devices.
struct training_settings {
  std::uint64_t seed = 1;
  double rate = 0.05;            ///< learning rate of plain stochastic gradient descent
  std::vector<pace> paces = {};  ///< [device]; empty: all are as fast as a core
  layer_timer timer = {};
};

/// Parameters of the tensors that a device holds, by layer (see neural_network::tensor_of); empty for the others.
using tensors = std::vector<Eigen::VectorXd>;

/// Returns tensors concatenated, as they cross the network.
[[nodiscard]] std::vector<double> pack(const tensors& from, const std::vector<std::size_t>& which);
void unpack(const std::vector<double>& all, const std::vector<std::size_t>& which, const neural_network& net, tensors& to);

/// Runs one device. A device that waits has its own clock, which adds up the durations of its tasks and arrivals: tasks end and messages
/// leave by that clock. If the operating system runs it late, it lags behind its clock until tasks with spare time let it catch up, so a
/// delay of a millisecond does not recur in every task. A lag at the end of an iteration counts, since the common clock times iterations.
///
/// Source  semantics, section 6. Deviations: a device with several stages takes part in rings after all its tasks; sums across stages cost
///         time at the other devices of these stages (program.hpp, handout).
template <transport Link>
class worker {
 public:
  /// Starts with the initial parameters of `settings.seed`.
  worker(const neural_network& net, const program& p, hetplan::device_id me, training_settings settings, Link& link)
      : net_(net), program_(p), me_(me), settings_(std::move(settings)), link_(link), activations_(net.layers.size()),
        parameters_(net.layers.size()) {
    if (me.index() < settings_.paces.size()) pace_ = settings_.paces[me.index()];
    for (std::size_t s = 0; s < p.stages.size(); ++s) {
      const auto& devices = p.stages[s].devices;
      if (std::find(devices.begin(), devices.end(), me) == devices.end()) continue;
      stages_.push_back(s);
      for (const std::size_t l : p.stages[s].layers) {
        if (!is_dropped(s, l)) activations_[l].resize(p.batch, net.layers[l].width());
        gradients_[{s, l}].resize(p.batch, net.layers[l].width());
        const std::size_t t = net.tensor_of(l);
        if (parameters_[t].size() == 0) parameters_[t] = net.first_parameters(t, settings_.seed);
        slopes_[{s, t}].setZero(parameters_[t].size());
        if (pace_.times > 1) wasted_[{s, t}] = slopes_[{s, t}];
        for (const std::size_t reader : readers_of(l)) gradients_[{reader, l}].resize(p.batch, net.layers[l].width());
      }
      for (const std::size_t l : p.stages[s].outside) {
        activations_[l].resize(p.batch, net.layers[l].width());
        gradients_[{s, l}].resize(p.batch, net.layers[l].width());
      }
    }
  }

  /// Runs all tasks and reductions of an iteration that begins at a time on the common clock. Slopes must be 0, as after step.
  void run_iteration(double begin_s) {
    begin_s_ = clock_s_ = begin_s;
    loss_ = 0;
    for (const task& t : program_.tasks[me_.index()]) run(t);
    totals_.assign(net_.layers.size(), {});
    for (std::size_t k = 0; k < program_.rings.size(); ++k) reduce(k);
    apportion();
  }
  /// Computes the next parameters, which take effect at commit, and resets the slopes to 0.
  void step() {
    next_ = parameters_;
    for (const auto& [where, slope] : slopes_) {
      if (totals_[where.second].size() == 0) next_[where.second] -= settings_.rate * slope;
    }
    for (std::size_t t = 0; t < next_.size(); ++t) {
      if (totals_[t].size() > 0) next_[t] -= settings_.rate * totals_[t];
    }
    for (auto* all : {&slopes_, &wasted_}) {
      for (auto& [where, slope] : *all) slope.setZero();
    }
  }
  /// Makes the next parameters and their copies effective.
  void commit() {
    parameters_ = next_;
    for (std::size_t t = 0; t < next_copies_.size(); ++t) {
      if (next_copies_[t].size() > 0) copies_[t] = next_copies_[t];
    }
  }
  /// Sends the next parameters (at the start, the initial ones) to the keepers of copies, and receives the copies that this device keeps.
  void back_up() {
    if (next_.empty()) next_ = parameters_;
    copies_.resize(parameters_.size());
    next_copies_.resize(parameters_.size());
    clock_s_ = begin_s_ = link_.now_s();
    for (const backup_copy& b : program_.backups) {
      if (program_.flows[b.flow].from == me_) link_.send({{b.flow, 0, pack(next_, b.tensors), clock_s_}});
    }
    for (const backup_copy& b : program_.backups) {
      if (program_.flows[b.flow].to == me_) unpack(arrive(b.flow, 0).data, b.tensors, net_, next_copies_);
    }
  }
  /// Resumes from parameters trained elsewhere, as far as this device holds them.
  void resume(const tensors& given) {
    for (std::size_t t = 0; t < given.size(); ++t) {
      if (parameters_[t].size() == 0) continue;
      HETPLAN_ASSERT(given[t].size() == parameters_[t].size());
      parameters_[t] = given[t];
    }
  }

  /// Returns the sum of the losses of this device's samples, divided by the batch.
  [[nodiscard]] double loss() const { return loss_; }
  [[nodiscard]] const tensors& parameters() const { return parameters_; }
  [[nodiscard]] const tensors& copies() const { return copies_; }  ///< copies kept for others, as of the last commit
  [[nodiscard]] int overruns() const { return overruns_; }         ///< tasks that lasted longer than the device's pace allows

 private:
  using key = std::pair<std::size_t, std::size_t>;
  struct layer_tapes {
    tape of_forward, of_backward;
    matrix output;  ///< if it is dropped (see is_dropped)
  };

  [[nodiscard]] std::vector<std::size_t> readers_of(std::size_t layer) const {
    std::vector<std::size_t> readers;
    for (std::size_t s = 0; s < program_.stages.size(); ++s) {
      const auto& outside = program_.stages[s].outside;
      if (std::binary_search(outside.begin(), outside.end(), layer)) readers.push_back(s);
    }
    return readers;
  }

  /// True for an output that lives with the layer's tapes: until the end of the forward, and from its repetition to that of the backward.
  /// What another stage reads stays: this device may have that stage, too.
  [[nodiscard]] bool is_dropped(std::size_t stage, std::size_t layer) const {
    return program_.stages[stage].recompute && readers_of(layer).empty();
  }

  void run(const task& t) {
    for (const std::size_t m : t.receives) receive(program_.messages[m]);
    const bool recomputes = program_.stages[t.stage.index()].recompute;
    const double begin_s = link_.now_s(), worked_before_s = thread_s();
    for (int left = pace_.times; left-- > 0;) {
      if (t.what == hetplan::phase::forward) forward(t, left == 0);
      if (t.what == hetplan::phase::backward_input && recomputes) forward(t, false);
      if (t.what == hetplan::phase::backward_input) input_gradients(t);
      if (t.what == hetplan::phase::backward_weight) weight_gradients(t, left == 0);
    }
    if (t.what == hetplan::phase::forward && recomputes) {
      for (const std::size_t l : program_.stages[t.stage.index()].layers) tapes_.erase({l, static_cast<std::size_t>(t.first)});
    }
    const double end_s = link_.now_s();
    if (pace_.wait > 1) {
      const double lasts_s = pace_.wait * (thread_s() - worked_before_s);
      clock_s_ += lasts_s;
      if (end_s - begin_s > lasts_s) ++overruns_;
      link_.wait_until(clock_s_);
    } else {
      clock_s_ = end_s;
    }
    for (const std::size_t m : t.sends) send(program_.messages[m]);
  }

  [[nodiscard]] mutable_view activation_of(std::size_t layer, const task& t) {
    if (!is_dropped(t.stage.index(), layer)) return rows_of(activations_[layer], t.first, t.last);
    matrix& output = tapes_[{layer, static_cast<std::size_t>(t.first)}].output;
    output.resize(t.last - t.first, net_.layers[layer].width());  // nothing, once it is there
    return rows_of(output, 0, t.last - t.first);
  }
  [[nodiscard]] std::vector<view> inputs_of(std::size_t layer, const task& t) {
    std::vector<view> inputs;
    for (const std::size_t from : net_.layers[layer].inputs) inputs.push_back(read_only(activation_of(from, t)));
    return inputs;
  }
  [[nodiscard]] samples samples_of(const task& t) const { return {t.first, t.last, settings_.seed}; }

  template <class Work>
  void timed(std::size_t layer, hetplan::phase what, Work&& work) {
    if (!settings_.timer) return work();
    const double begin_s = thread_s();
    work();
    settings_.timer(layer, what, thread_s() - begin_s);
  }

  /// Repetitions before the last have the same or unused results.
  void forward(const task& t, bool is_last) {
    for (const std::size_t l : program_.stages[t.stage.index()].layers) {
      timed(l, t.what, [&] {
        const double* p = parameters_[net_.tensor_of(l)].data();
        tape& kept = tapes_[{l, static_cast<std::size_t>(t.first)}].of_forward;
        kept.clear();
        const mutable_view out = activation_of(l, t);
        std::visit([&](const auto& work) { work.forward(p, inputs_of(l, t), samples_of(t), out, kept); }, net_.layers[l].work);
        if (is_loss(l) && is_last) loss_ += out.sum() / static_cast<double>(program_.batch);
      });
    }
  }
  /// Adds up gradients from readers in this and other stages, each stage in its own rows; sums go on in the same way.
  void input_gradients(const task& t) {
    const stage_part& stage = program_.stages[t.stage.index()];
    for (const auto* list : {&stage.layers, &stage.outside}) {
      for (const std::size_t l : *list) timed(l, t.what, [&] { gradient_of(l, t).setZero(); });
    }
    for (auto l = stage.layers.rbegin(); l != stage.layers.rend(); ++l) timed(*l, t.what, [&] { input_gradients(*l, t); });
  }
  void input_gradients(std::size_t l, const task& t) {
    mutable_view gradient = gradient_of(l, t);
    if (is_loss(l)) gradient.setConstant(1 / static_cast<double>(program_.batch));
    for (const std::size_t reader : readers_of(l)) gradient += rows_of(gradients_.at({reader, l}), t.first, t.last);
    std::vector<mutable_view> of_inputs;
    for (const std::size_t from : net_.layers[l].inputs) of_inputs.push_back(gradient_of(from, t));
    layer_tapes& kept = tapes_.at({l, static_cast<std::size_t>(t.first)});
    kept.of_backward.clear();
    std::visit(
        [&](const auto& work) {
          work.input_gradients(parameters_[net_.tensor_of(l)].data(), inputs_of(l, t), samples_of(t), read_only(gradient), of_inputs,
                               kept.of_forward, kept.of_backward);
        },
        net_.layers[l].work);
  }
  /// Uses the remains of the input gradients; the rows of the batch are kept until the iteration ends.
  void weight_gradients(const task& t, bool is_last) {
    const std::size_t s = t.stage.index();
    const auto& layers = program_.stages[s].layers;
    for (auto l = layers.rbegin(); l != layers.rend(); ++l) {
      timed(*l, t.what, [&] {
        const auto kept = tapes_.find({*l, static_cast<std::size_t>(t.first)});
        double* slope = (is_last ? slopes_ : wasted_).at({s, net_.tensor_of(*l)}).data();
        std::visit(
            [&](const auto& work) {
              work.weight_gradients(inputs_of(*l, t), samples_of(t), read_only(gradient_of(*l, t)), slope, kept->second.of_forward,
                                    kept->second.of_backward);
            },
            net_.layers[*l].work);
        if (is_last) tapes_.erase(kept);
      });
    }
  }
  [[nodiscard]] mutable_view gradient_of(std::size_t layer, const task& t) {
    return rows_of(gradients_.at({t.stage.index(), layer}), t.first, t.last);
  }
  [[nodiscard]] static view read_only(const mutable_view& m) { return {m.data(), m.rows(), m.cols()}; }
  [[nodiscard]] bool is_loss(std::size_t layer) const {
    return std::none_of(net_.layers.begin(), net_.layers.end(),
                        [&](const network_layer& l) { return std::find(l.inputs.begin(), l.inputs.end(), layer) != l.inputs.end(); });
  }

  [[nodiscard]] mutable_view rows_of_message(const message& m, std::size_t layer) {
    return rows_of(m.backward ? gradients_.at({m.from.index(), layer}) : activations_[layer], m.first, m.last);
  }
  void send(const message& m) {
    std::vector<double> all;
    for (const std::size_t l : m.layers) {
      const mutable_view rows = rows_of_message(m, l);
      all.insert(all.end(), rows.data(), rows.data() + rows.size());
    }
    if (m.flows.size() == 1) return link_.send({{m.flows[0], 0, std::move(all), may_leave_s(m.flows[0])}});
    std::vector<parcel> chunks;
    for (std::size_t i = 0; i < m.flows.size(); ++i) {
      const auto at = [&](std::size_t chunk) { return all.begin() + static_cast<std::ptrdiff_t>(all.size() * chunk / m.flows.size()); };
      chunks.push_back({m.flows[i], 0, {at(i), at(i + 1)}, may_leave_s(m.flows[i])});
    }
    link_.send(std::move(chunks));
  }
  void receive(const message& m) {
    std::vector<double> all = arrive(m.flows[0], 0).data;
    for (std::size_t i = 1; i < m.flows.size(); ++i) {
      const parcel chunk = arrive(m.flows[i], 0);
      all.insert(all.end(), chunk.data.begin(), chunk.data.end());
    }
    const double* next = all.data();
    for (const std::size_t l : m.layers) {
      mutable_view rows = rows_of_message(m, l);
      rows = view(next, rows.rows(), rows.cols());
      next += rows.size();
    }
  }
  [[nodiscard]] double may_leave_s(std::size_t flow) const { return std::max(clock_s_, begin_s_ + program_.flows[flow].release_s); }
  parcel arrive(std::size_t flow, int part) {
    parcel x = link_.receive(flow, part);
    clock_s_ = std::max(clock_s_, x.at_s);
    return x;
  }

  void reduce(std::size_t k) {
    const ring_sum& r = program_.rings[k];
    const auto& members = r.what.members;
    const auto me = std::find_if(members.begin(), members.end(), [&](const auto& m) { return m.device == me_; });
    if (me == members.end()) return;
    // In a ring across stages, a device represents all stages of which it is the first device.
    std::vector<std::size_t> mine;
    for (const hetplan::stage_id s : r.what.holders) {
      if (!r.what.is_across_stages() || program_.stages[s.index()].devices.front() == me_) mine.push_back(s.index());
    }
    std::vector<double>& all = sums_[k];
    all.clear();
    for (const std::size_t t : r.tensors) {
      const Eigen::VectorXd& first = slopes_.at({mine.front(), t});
      Eigen::Map<Eigen::VectorXd> sum(&*all.insert(all.end(), first.begin(), first.end()), first.size());
      for (std::size_t i = 1; i < mine.size(); ++i) sum += slopes_.at({mine[i], t});
    }
    all_reduce({all.data(), static_cast<long>(all.size())}, r, static_cast<std::size_t>(me - members.begin()));
    const double* next = all.data();
    for (const std::size_t t : r.tensors) {
      Eigen::VectorXd& to = r.what.is_across_stages() ? totals_[t] : slopes_.at({mine.front(), t});
      to = Eigen::Map<const Eigen::VectorXd>(next, net_.layers[t].parameters());
      next += to.size();
    }
  }
  /// Each of n members owns a part of the sum. n - 1 rounds reduce the parts around the ring, n - 1 rounds distribute them: the same bytes
  /// as the task graph's transfers between neighbours, whose latency the first round waits. n - 1 earlier rounds without numbers tell each
  /// member that all are done.
  void all_reduce(Eigen::Map<Eigen::VectorXd> sum, const ring_sum& r, std::size_t i) {
    const std::size_t n = r.flows.size();
    const auto part = [&](std::size_t c) {
      const auto at = [&](std::size_t x) { return sum.size() * static_cast<long>(x) / static_cast<long>(n); };
      return sum.segment(at(c % n), at(c % n + 1) - at(c % n));
    };
    for (int round = 1 - static_cast<int>(n); round < 0; ++round) {
      link_.send({{r.flows[i], round, {}, clock_s_}});
      arrive(r.flows[(i + n - 1) % n], round);
    }
    for (std::size_t round = 0; round < 2 * (n - 1); ++round) {
      const auto mine = part(i + 2 * n - round);
      link_.send({{r.flows[i], static_cast<int>(round), {mine.begin(), mine.end()}, may_leave_s(r.flows[i])}});
      const parcel x = arrive(r.flows[(i + n - 1) % n], static_cast<int>(round));
      auto theirs = part(i + 2 * n - round - 1);
      const Eigen::Map<const Eigen::VectorXd> given(x.data.data(), static_cast<long>(x.data.size()));
      if (round < n - 1) theirs += given;
      else theirs = given;
    }
  }
  void apportion() {
    for (const handout& h : program_.handouts) {
      const std::vector<std::size_t>& which = program_.rings[h.ring].tensors;
      if (program_.flows[h.flow].from == me_) link_.send({{h.flow, 0, pack(totals_, which), may_leave_s(h.flow)}});
      if (program_.flows[h.flow].to == me_) unpack(arrive(h.flow, 0).data, which, net_, totals_);
    }
  }

  const neural_network& net_;
  const program& program_;
  hetplan::device_id me_;
  training_settings settings_;
  pace pace_;
  Link& link_;
  std::vector<std::size_t> stages_;
  std::vector<matrix> activations_;        ///< [layer]: rows of the global batch, filled where this device has or gets them and keeps them
  std::map<key, matrix> gradients_;        ///< [stage that reads, layer]: gradient of the layer's output
  std::map<key, layer_tapes> tapes_;       ///< [layer, first sample]
  std::map<key, Eigen::VectorXd> slopes_;  ///< [stage, tensor]: gradient of the tensor in this iteration
  std::map<key, Eigen::VectorXd> wasted_;  ///< the same, from repeated work
  tensors parameters_, next_;              ///< effective now, and after the next commit
  tensors copies_, next_copies_;
  tensors totals_;
  std::map<std::size_t, std::vector<double>> sums_;  ///< [ring]: its concatenated numbers
  double begin_s_ = 0, clock_s_ = 0, loss_ = 0;
  int overruns_ = 0;
};

/// Time of an iteration, from the common start to the last end, and its loss.
struct iteration_record {
  double seconds = 0;
  double loss = 0;
};

/// Trains on this device until there are `iterations` records, at the same time as all devices of the program.
///
/// An iteration is committed when all devices have ended it and all copies have arrived; until then, all have the previous parameters.
///
/// @param records  committed iterations, the same on every device, appended to earlier ones. The step and the copies are not timed:
///                 iterations end with their last task or reduction.
/// @param begins   called at the beginning of each iteration: its number, and the time on the common clock.
/// Throws          timed_out, and exceptions of the transport.
/// Source          semantics, section 6; copies: Asteroid, section 3.4.
template <transport Link>
void train(worker<Link>& w, Link& link, int iterations, std::vector<iteration_record>& records,
           const std::function<void(int, double)>& begins = {}) {
  w.back_up();
  link.meet(0);
  w.commit();
  while (static_cast<int>(records.size()) < iterations) {
    const double begin_s = link.meet(0).at_s;
    if (begins) begins(static_cast<int>(records.size()), begin_s);
    w.run_iteration(begin_s);
    const meeting end = link.meet(w.loss());
    w.step();
    w.back_up();
    link.meet(0);
    w.commit();
    records.push_back({end.at_s - begin_s, end.sum});
  }
}

}  // namespace executors
