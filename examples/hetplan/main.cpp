// SPDX-License-Identifier: BSL-1.0
// hetplan: plans, simulates and compares from the command line; a thin program over the headers.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <hetplan/coarsen/merge_small.hpp>
#include <hetplan/io/job_json.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/recipes/baselines.hpp>
#include <hetplan/zoo/weight_formats.hpp>

#include "commands.hpp"
#include "named_models.hpp"
#include "outputs.hpp"
#include "search_options.hpp"

namespace {

class command_line {
 public:
  command_line() {
    app_.require_subcommand(1);
    app_.set_version_flag("--version", std::string(hetplan::version));
    app_.fallthrough();
    app_.add_flag("--json", common_.json, "print one JSON document on standard output");
    app_.add_flag("--quiet", common_.quiet, "no progress");
    app_.add_option("--tokens", common_.tokens, "tokens per sample of a built-in language model (512), of a prompt in generation")
        ->check(cli::whole_number<int>(1));
    app_.add_option("--input", common_.input, "input of a built-in vision model: channels,height,width")
        ->delimiter(',')
        ->expected(3)
        ->check(cli::whole_number<int>(1));
    app_.add_option("--dtype", common_.dtype, "precision of a built-in model")->check(CLI::IsMember({"fp32", "bf16"}));
    const std::vector<std::string> formats(hetplan::zoo::weight_format_names.begin(), hetplan::zoo::weight_format_names.end());
    app_.add_option("--weights", common_.weights, "format of a built-in language model's weights: " + hetplan::io::joined(formats))
        ->check(CLI::Validator([formats](const std::string& given) { return cli::fault_in_name(given, formats); }, ""));
    app_.add_option("--lora", common_.lora,
                    "only adapters of so many columns learn, on the products of a built-in or imported language model's attention and MLP")
        ->check(cli::whole_number<int>(1));
    const std::vector<std::string> fusions = cli::names_of(cli::known_fusions());
    app_.add_option("--fuse", common_.fuse, "fuse a model's operators as a backend does: " + hetplan::io::joined(fusions))
        ->check(CLI::Validator([fusions](const std::string& given) { return cli::fault_in_name(given, fusions); }, ""));

    CLI::App* plan = command("plan", "find plans for a model on a cluster", [this] { return cli::plan(common_, plan_); });
    model_and_cluster(plan, plan_.model, plan_.cluster);
    plan->add_option("job", plan_.job, "job file (training, batch 32; where operators are placed: one inference)")->type_name("JOB");
    plan->add_option("--planner", plan_.planner, "see `hetplan list planners`")->capture_default_str();
    plan->add_option("--phase", plan_.phase, "of dora alone: 1 the partitioner, 2 the network scheduler on an even split")
        ->check(CLI::Range(1, 2));
    plan->add_option("--objective", plan_.objective, "overrides the job's")
        ->check(CLI::IsMember({"latency", "ttft", "time_between_tokens", "throughput", "energy", "qoe"}));
    plan->add_flag("--split-tensors", plan_.split_tensors, "of dora: devices may share tensors, whatever the job says");
    const std::string schedules =
        "in training: " + hetplan::io::joined(hetplan::io::schedule_names()) + "; of several the best (overrides the job's)";
    plan->add_option("--schedule", plan_.schedules, schedules)->delimiter(',');
    plan->add_option("--top", plan_.top, "how many plans to keep")->check(CLI::Range(1, 1000))->capture_default_str();
    CLI::Option* largest =
        plan->add_option("--largest", plan_.largest, "batch or context: the largest that fits and keeps the job's limits")
            ->check(CLI::IsMember({"batch", "context"}));
    plan->add_option("--most", plan_.most, "of --largest: none above it, such as the model's longest context")
        ->needs(largest)
        ->check(cli::whole_number<int>(1));
    plan->add_option("--out", plan_.out, "write the best plan");
    plan->add_option("--svg", plan_.svg, "write a Gantt chart of the best plan");
    plan->add_option("--html", plan_.html, "write a report of the best plan (opens in a browser)");
    plan->add_option("--trace", plan_.trace, "write a trace of the best plan (opens in Perfetto)");
    cli::add_search_options(*plan, common_);

    CLI::App* simulate = command("simulate", "judge a plan file", [this] { return cli::simulate(common_, simulate_); });
    model_and_cluster(simulate, simulate_.model, simulate_.cluster);
    simulate->add_option("plan", simulate_.plan, "plan file")->required()->type_name("PLAN");
    simulate->add_option("--network", simulate_.network, "overrides the plan's")->check(CLI::IsMember([] {
      std::vector<std::string> names;
      for (const hetplan::sharing s : hetplan::all_sharings) names.emplace_back(to_string(s));
      return names;
    }()));
    simulate->add_option("--trace", simulate_.trace, "write a trace (opens in Perfetto)");
    simulate->add_option("--svg", simulate_.svg, "write a Gantt chart");

    CLI::App* exported = command("export", "a plan for those who run it", [this] { return cli::export_plan(common_, export_); });
    model_and_cluster(exported, export_.model, export_.cluster);
    exported->add_option("plan", export_.plan, "plan file")->required()->type_name("PLAN");
    exported
        ->add_option(
            "--to", export_.to,
            "tasks: every task and transfer, for an executor; a runtime: how it is to split the model; plan; placement: the device of "
            "each layer; dot: a picture of it for Graphviz")
        ->required()
        ->check(CLI::IsMember(
            {"tasks", "llama.cpp", "prima.cpp", "vllm", "torch", "distributed-llama", "exo", "plan", "placement", "dot", "onnx"}));
    exported->add_flag("--whole-blocks", export_.whole_blocks, "move cuts inside a block to an end of it");
    exported->add_option("--blocks", export_.blocks, "torch: where the module has its blocks (layers)")->type_name("NAME");
    exported->add_option("--source", export_.source, "onnx: the file that the model was imported from")->type_name("FILE");
    exported->add_option("--dim", export_.dimensions, "onnx: as it was imported")->delimiter(',');
    exported->add_option("--if", export_.conditions, "onnx: as it was imported")->delimiter(',');
    exported->add_option("--out", export_.out, "write it there (standard output)");

    CLI::App* replay = command("replay", "a plan for the devices that are left", [this] { return cli::replay(common_, replay_); });
    model_and_cluster(replay, replay_.model, replay_.cluster);
    replay->add_option("plan", replay_.plan, "the plan that runs")->required()->type_name("PLAN");
    replay->add_option("--lost", replay_.lost, "the devices that are gone, by comma")->required()->delimiter(',')->type_name("NAME");
    replay->add_option("--out", replay_.out, "write the plan");

    CLI::App* compare = command("compare", "every planner under the same simulator", [this] { return cli::compare(common_, compare_); });
    model_and_cluster(compare, compare_.model, compare_.cluster);
    compare->add_option("job", compare_.job, "job file (training, batch 32)")->type_name("JOB");
    compare->add_option("--planners", compare_.planners, "some of them, by comma")->delimiter(',');
    compare->add_option("--schedule", compare_.schedules, schedules)->delimiter(',');
    cli::add_search_options(*compare, common_);

    CLI::App* sweep = command("sweep", "one table of models, clusters, jobs and planners", [this] { return cli::sweep(common_, sweep_); });
    sweep->add_option("sweep", sweep_.sweep, "sweep file")->required()->type_name("SWEEP");
    sweep->add_option("--out", sweep_.out, "the table, one JSON object a line; an interrupted one is gone on with")
        ->required()
        ->type_name("TABLE");
    sweep->add_option("--csv", sweep_.csv, "write the table for spreadsheets too");
    cli::add_search_options(*sweep, common_);

    CLI::App* adapt =
        command("adapt", "a job over a timeline of changes, under several policies", [this] { return cli::adapt(common_, adapt_); });
    model_and_cluster(adapt, adapt_.model, adapt_.cluster);
    adapt->add_option("job", adapt_.job, "job file")->required()->type_name("JOB");
    adapt->add_option("timeline", adapt_.timeline, "timeline file")->required()->type_name("TIMELINE");
    adapt->add_option("--policies", adapt_.policies, "some of them, by comma; see `hetplan list policies`")->delimiter(',');
    adapt->add_option("--backups", adapt_.backups, "iterations between backups of training, 0 for none (10 if a device leaves)")
        ->check(cli::whole_number<long long>());
    adapt->add_option("--html", adapt_.html, "write a report (opens in a browser)");
    adapt->add_option("--svg", adapt_.svg, "write a chart");
    cli::add_search_options(*adapt, common_);

    CLI::App* serve = command("serve", "requests over time in an edge cloud", [this] { return cli::serve_requests(common_, serve_); });
    serve->add_option("cloud", serve_.cloud, "cloud file")->required()->type_name("CLOUD");
    serve->add_option("services", serve_.services, "services file")->required()->type_name("SERVICES");
    serve->add_option("requests", serve_.requests, "requests file, or a trace of Azure, BurstGPT or Mooncake")
        ->required()
        ->type_name("REQUESTS");
    serve->add_option("--deployment", serve_.deployment, "which services stand where (the system places them)")->type_name("FILE");
    serve->add_option("--system", serve_.system, "who places and handles, see `hetplan list systems`")->capture_default_str();
    serve->add_option("--expected", serve_.expected, "requests that the first placement knows (REQUESTS)")->type_name("FILE");
    serve->add_option("--cycle", serve_.cycle, "place anew so often, such as 60s (never)")->type_name("TIME");
    serve->add_option("--out", serve_.out, "write the deployment");
    serve->add_flag("--explain", serve_.explain, "say how each service is run, and why");
    serve->add_option("--size-for", serve_.size_for, "how many GPUs serve such a share of the requests, such as 99%")->type_name("SHARE");
    serve->add_option("--most-gpus", serve_.most_gpus, "of a server, for --size-for (64)")->check(CLI::Range(1, 1024));
    serve->add_option("--out-cloud", serve_.out_cloud, "write the cloud that --size-for found");
    serve->add_option("--trace-service", serve_.trace_service, "the service that a trace is for (the only one with tokens)")
        ->type_name("NAME");
    serve->add_option("--time-scale", serve_.time_scale, "multiply a trace's times (1)")->check(cli::positive_number());
    serve->add_option("--faults", serve_.faults, "what goes wrong")->type_name("FILE");
    serve->add_option("--seed", serve_.seed, "of the draws (" + std::to_string(cli::standard_seed) + ")")
        ->check(cli::whole_number<long long>());
    serve->add_option("--offloads", serve_.offloads, "how often a request may be passed on (5)")->check(CLI::Range(0, 63));
    serve->add_option("--records", serve_.records, "write what became of each request");
    serve->add_option("--html", serve_.html, "write a report (opens in a browser)");

    CLI::App* groups = command("groups", "devices that are near to each other, and those that compute alike",
                               [this] { return cli::groups(common_, groups_); });
    groups->add_option("cluster", groups_.cluster, "a file or a built-in name")->required()->type_name("CLUSTER");
    groups->add_option("--bytes", groups_.message, "what a boundary sends at once: its time is the distance of two devices")
        ->type_name("BYTES")
        ->capture_default_str();
    groups->add_option("--model", groups_.model, "time devices with this one's training (by their peak rates)")->type_name("MODEL");
    groups->add_option("--html", groups_.html, "write a report (opens in a browser)");

    CLI::App* fit = command("fit", "a cluster's numbers from measured speeds, and what they cannot tell",
                            [this] { return cli::fit_devices(common_, fit_); });
    fit->add_option("cluster", fit_.cluster, "a file or a built-in name")->required()->type_name("CLUSTER");
    fit->add_option("measured", fit_.measured, "CSV with a measured number in each row")->required()->type_name("MEASURED");
    fit->add_option("-o,--out", fit_.out, "write the fitted cluster");
    fit->add_option("--check", fit_.check, "predict the rows of another such file, which are not fitted")->type_name("OTHER");
    fit->add_option("--fit", fit_.parameters,
                    "what to fit, by comma: efficiency, memory_efficiency, cache_efficiency, half_rows, launch, overhead (these six), "
                    "send_overhead, latency, host:RESOURCE")
        ->delimiter(',')
        ->type_name("NAME");

    CLI::App* profile = command("profile", "measure this machine, a model's layers on it, and the link to another machine",
                                [this] { return cli::profile_machine(common_, profile_); });
    profile
        ->add_option("model", profile_.model,
                     "whose layers are timed, as products and moved bytes of their size: a file or a built-in name")
        ->type_name("MODEL");
    profile->add_option("--batches", profile_.batches, "samples at once, by comma (1,2,4,8)")
        ->delimiter(',')
        ->check(cli::whole_number<int>(1));
    profile->add_option("--device", profile_.device, "its name in the cluster (the host's)")->type_name("NAME");
    profile->add_option("--kind", profile_.kind, "its kind, by which a model has times (--device)")->type_name("KIND");
    profile->add_option("--cores", profile_.cores, "threads that compute (all cores)")->check(CLI::Range(1, 1024));
    profile->add_option("--limit", profile_.limit_s, "seconds that timing layers may take")
        ->check(cli::positive_number())
        ->capture_default_str();
    profile->add_option("--out-model", profile_.out_model, "write the model with its times");
    profile->add_option("--out-cluster", profile_.out_cluster, "write the machine, or both with the link between them");
    profile->add_option("--onto", profile_.onto, "add them to this cluster")->type_name("CLUSTER");
    CLI::Option* listen =
        profile->add_option("--listen", profile_.listen, "wait for the other machine there: PORT or HOST:PORT")->type_name("ADDRESS");
    profile->add_option("--connect", profile_.connect, "measure the link to one that listens: HOST:PORT")
        ->type_name("ADDRESS")
        ->excludes(listen);
    profile->add_option("--key", profile_.key, "what both ends know and others do not")->type_name("TEXT");
    profile->add_option("--timeout", profile_.timeout_s, "seconds to wait for the other end")
        ->check(cli::positive_number())
        ->capture_default_str();

    CLI::App* show = command("show", "a model or a cluster, every default spelled out", [this] { return cli::show(common_, show_); });
    show->add_option("what", show_.what, "model or cluster: a file or a built-in name")->required()->type_name("MODEL|CLUSTER");
    show->add_option("--dot", show_.dot, "write a Graphviz file");

    CLI::App* foreign =
        command("import", "a model from another project's file, as a model file", [this] { return cli::import_model(common_, import_); });
    foreign->require_subcommand(1);
    foreign->footer("PyTorch modules: export_torch.py, installed beside this program, writes a model file (export_torch.py --help).");
    CLI::App* pipedream = format(foreign, "pipedream", "a graph of PipeDream's profiler: a sample is a minibatch");
    measured_on(pipedream, "pipedream");
    pipedream->add_option("--input-time", import_.input_time, "of the nodes that wait for the data loader")
        ->check(CLI::IsMember({"zero", "as-measured"}))
        ->capture_default_str();
    CLI::App* piper = format(foreign, "piper", "an input of Piper: a sample is a microbatch");
    measured_on(piper, "piper");
    degree(piper);
    piper->add_option("--configuration", import_.configuration, "of every layer")->capture_default_str();
    piper->add_option("--time-unit", import_.time_unit, "of the file's times")->check(CLI::IsMember({"s", "ms"}))->capture_default_str();
    piper->add_option("--forward-share", import_.forward_share, "of a time that holds forward and backward (1/3)")
        ->check(CLI::Range(0.0, 1.0));
    piper->add_option("--cluster", import_.cluster, "write the file's devices");
    CLI::App* pipeedge = format(foreign, "pipeedge", "one of PipeEdge's models, FILE, for inference");
    pipeedge->add_option("--types", import_.types, "PipeEdge's device types: who measured the model")->required()->type_name("FILE");
    pipeedge->add_option("--model", import_.model, "its name in FILE")->required()->type_name("NAME");
    pipeedge->add_option("--cluster", import_.cluster, "write devices of those types");
    pipeedge->add_option("--devices", import_.devices, "how many, by comma: TYPE=NUMBER (one of each type that measured the model)")
        ->delimiter(',')
        ->needs("--cluster");
    CLI::App* sailor = format(foreign, "sailor", "a layer profile of Sailor, FILE, on a model");
    sailor->add_option("--device", import_.device, "the kind that was measured")->required()->type_name("KIND");
    degree(sailor);
    CLI::App* model = sailor->add_option_group("model")->require_option(1);
    CLI::Option* sizes = model->add_option("--sizes", import_.sizes, "layer sizes as Metis has them: a chain is made")->type_name("FILE");
    model->add_option("--onto", import_.onto, "the model that gets the times: a file or a built-in name")->type_name("MODEL");
    sailor->add_option("--microbatch", import_.microbatch, "samples that the sizes are of")
        ->needs(sizes)
        ->check(cli::whole_number<int>(1))
        ->capture_default_str();

    CLI::App* metis = format(foreign, "metis", "layer profiles of Metis: a FILE, or a folder of one model's");
    metis->add_option("--device", import_.device, "the kind that was measured, for a file whose name does not tell")->type_name("KIND");
    degree(metis);
    metis->add_option("--forward-share", import_.forward_share, "of a time that holds forward and backward (1/3)")
        ->check(CLI::Range(0.0, 1.0));
    metis->add_option("--boundary", import_.boundary, "bytes of a layer's output for a sample (the files')")->type_name("BYTES");
    CLI::App* galvatron = format(foreign, "galvatron", "a computation profile of Galvatron, FILE");
    measured_on(galvatron, "galvatron");
    galvatron->add_option("--memory", import_.memory, "the memory profile of the same model")->required()->type_name("FILE");
    galvatron->add_option("--layers", import_.layers, "how many of each type, by comma")
        ->required()
        ->delimiter(',')
        ->check(cli::whole_number<int>(0));
    galvatron->add_option("--sequence", import_.sequence, "length, of several in the file")->type_name("LENGTH");
    galvatron->add_option("--boundary", import_.boundary, "bytes from a layer to the next for a sample (the file's)")->type_name("BYTES");
    CLI::App* ncnn = format(foreign, "ncnn", "a network of ncnn (.param): an operator a layer");
    ncnn->add_option("--shape", import_.shapes, "sizes of inputs that have none, by comma: NAME=WIDTH, NAME=WIDTHxHEIGHTxCHANNELS")
        ->delimiter(',');
    ncnn->add_option("--tokens-per-sample", import_.tokens_per_sample, "a language model: rows of its inputs (1)")
        ->check(cli::whole_number<int>(1));

    for (const auto& [name, text] : {std::pair("moirai", "a sample graph of Moirai: operators with a time on each of its devices"),
                                     std::pair("dnn-partitioning", "a workload of dnn-partitioning: accelerators and CPUs")}) {
      CLI::App* table = format(foreign, name, text);
      table->add_option("--cluster", import_.cluster, "write the file's devices");
      table->add_option("--place", import_.place, "place the operators by the file's own times, as moirai does: which transfers take turns")
          ->check(CLI::IsMember({"none", "per_link", "one_port"}));
    }

    CLI::App* onnx = format(foreign, "onnx", "an ONNX model: an operator a layer");
    onnx->add_option("--dim", import_.dimensions, "sizes of dynamic axes, by comma: NAME=SIZE")->delimiter(',');
    onnx->add_option("--if", import_.conditions,
                     "the branch of operators If whose condition is no constant: then or else, or by comma for some of them NAME=then "
                     "(the one with more FLOP)")
        ->delimiter(',');
    onnx->add_option("--tokens-per-sample", import_.tokens_per_sample, "a language model: tokens of a sample, as the inputs are sized (1)")
        ->check(cli::whole_number<int>(1));

    for (const auto& [name, text] :
         {std::pair(
              "hf",
              "a config.json of Hugging Face, or a folder with one: llama, mistral, mixtral, qwen2, qwen3, gemma, phi, gpt2, bert, ..."),
          std::pair("gguf", "a GGUF file of llama.cpp, of which only the header is read; of a split model any part"),
          std::pair("safetensors",
                    "a safetensors file, or a folder with some, beside a config.json: layers have the bytes of their tensors")}) {
      CLI::App* described = format(foreign, name, text);
      described->add_flag("--fine", import_.fine, "a layer for each operator (one for each attention and MLP, embedding and head)");
      described->footer("Takes --tokens, --dtype, --weights (hf) and --lora, as built-in language models do: hetplan --help");
    }

    CLI::App* init = command("init", "write commented starter files", [this] { return cli::init(common_, folder_); });
    init->add_option("folder", folder_, "made if missing; files that exist are kept")->required()->type_name("DIR");

    CLI::App* list = command("list", "what is built in", [this] { return cli::list(common_, listed_); });
    list->add_option("what", listed_, "one kind only")
        ->check(CLI::IsMember(std::vector<std::string>(std::begin(cli::listed_kinds), std::end(cli::listed_kinds))));
    require_values(app_);
  }

  int run(int argc, char** argv) {
    try {
      cli::require_items(app_, argc, argv);
      app_.parse(argc, argv);
    } catch (const CLI::Success& help) {
      return app_.exit(help);
    } catch (const CLI::RequiredError& e) {
      std::fprintf(stderr, "hetplan: %s (see hetplan --help)\n", hetplan::escaped(what_is_required(e)).c_str());
      return 2;
    } catch (const CLI::ArgumentMismatch& e) {
      std::fprintf(stderr, "hetplan: %s (see hetplan --help)\n", hetplan::escaped(what_is_too_much(e)).c_str());
      return 2;
    } catch (const CLI::ParseError& e) {
      std::fprintf(stderr, "hetplan: %s (see hetplan --help)\n", hetplan::escaped(e.what()).c_str());
      return 2;
    }
    return status_();
  }

 private:
  CLI::App* command(const char* name, const char* text, std::function<int()> work) {
    CLI::App* c = app_.add_subcommand(name, text);
    c->footer("Options of all commands, such as --json: hetplan --help");
    c->fallthrough();
    c->callback([this, work = std::move(work)] { status_ = work; });
    return c;
  }
  static void model_and_cluster(CLI::App* c, std::string& model, std::string& cluster) {
    c->add_option("model", model, "a file or a built-in name")->required()->type_name("MODEL");
    c->add_option("cluster", cluster, "a file or a built-in name")->required()->type_name("CLUSTER");
  }

  /// Rejects empty values, which are lost values of a script, never "not given".
  static void require_values(CLI::App& app) {
    for (CLI::Option* o : app.get_options()) {
      if (o->get_items_expected_max() == 0) continue;
      o->check(CLI::Validator([](const std::string& value) { return value.empty() ? "expected a value, got nothing" : ""; }, ""));
    }
    for (CLI::App* command : app.get_subcommands({})) require_values(*command);
  }
  /// Returns CLI11's message; for an unknown command, the names that are known.
  [[nodiscard]] std::string what_is_required(const CLI::RequiredError& e) const {
    const CLI::App* app = &app_;
    while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
    std::vector<std::string> known;
    for (const CLI::App* command : app->get_subcommands([](const CLI::App* c) { return !c->get_name().empty(); }))
      known.push_back(command->get_name());
    for (const std::string& given : app_.remaining(true)) {
      if (known.empty() || given.starts_with("-")) continue;
      return "expected one of " + hetplan::io::joined(known) + ", got " + hetplan::io::in_quotes(given) +
             hetplan::io::suggestion(given, known);
    }
    return e.what();
  }

  /// Returns CLI11's message; for an option given too often, the counts.
  [[nodiscard]] std::string what_is_too_much(const CLI::ArgumentMismatch& e) const {
    std::vector<const CLI::App*> apps{&app_};
    while (!apps.back()->get_subcommands().empty()) apps.push_back(apps.back()->get_subcommands().front());
    for (const CLI::App* app : apps) {
      for (const CLI::Option* o : app->get_options()) {
        const auto most = static_cast<std::size_t>(std::max(0, o->get_items_expected_max()));
        if (most == 0 || o->count() <= most) continue;
        return o->get_name() + (most == 1 ? ": expected one value" : ": expected " + std::to_string(most) + " values") + ", got " +
               std::to_string(o->count());
      }
    }
    return e.what();
  }

  CLI::App* format(CLI::App* parent, const char* name, const char* text) {
    CLI::App* f = parent->add_subcommand(name, text);
    f->fallthrough();
    f->callback([this, name] { import_.format = name; });
    f->add_option("file", import_.file, "what to read")->required()->type_name("FILE");
    f->add_option("--out", import_.out, "write the model (standard output)");
    return f;
  }
  void measured_on(CLI::App* format, const char* otherwise) {
    format->add_option("--device", import_.device, std::string("the kind that was measured (") + otherwise + ")")->type_name("KIND");
    format->parse_complete_callback([this, otherwise] {
      if (import_.device.empty()) import_.device = otherwise;
    });
  }
  void degree(CLI::App* format) {
    format->add_option("--degree", import_.degree, "of tensor parallelism")->check(cli::whole_number<int>(1))->capture_default_str();
  }

  CLI::App app_{"Plans training and inference across devices that differ, and judges the plans.", "hetplan"};
  cli::common_options common_;
  cli::plan_options plan_;
  cli::simulate_options simulate_;
  cli::export_options export_;
  cli::replay_options replay_;
  cli::compare_options compare_;
  cli::adapt_options adapt_;
  cli::serve_options serve_;
  cli::sweep_options sweep_;
  cli::groups_options groups_;
  cli::fit_command_options fit_;
  cli::profile_command_options profile_;
  cli::show_options show_;
  cli::import_options import_;
  std::string folder_, listed_;
  std::function<int()> status_;
};

}  // namespace

int main(int argc, char** argv) {
  // Opens closed standard descriptors; otherwise a later file would take their place and receive the output.
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) == -1) static_cast<void>(open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY));
  }
  std::signal(SIGXFSZ, SIG_IGN);  // a file that exceeds its limit is an error like a full disk
  try {
    const int status = command_line().run(argc, argv);
    cli::flush_standard_output();
    return status;
  } catch (const std::exception& e) {  // bad input, misbehaving models, no memory, a full disk: one line each
    std::fprintf(stderr, "hetplan: %s\n", hetplan::escaped(e.what()).c_str());
    return 2;
  }
}
