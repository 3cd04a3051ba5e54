// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Definitions of files, and other projects' files without YAML and ONNX, for one source of a program.
/// Needs plan, schedules, planners, serving; nlohmann-json.

#ifndef HETPLAN_SEPARATE
#error "hetplan/define/files.hpp: compile every source of the program with -DHETPLAN_SEPARATE"
#endif

#include <hetplan/exchange/dnn_partitioning_json.ipp>
#include <hetplan/exchange/export_llama_cpp.ipp>
#include <hetplan/exchange/export_runtimes.ipp>
#include <hetplan/exchange/foreign_model.ipp>
#include <hetplan/exchange/galvatron_profile.ipp>
#include <hetplan/exchange/gguf.ipp>
#include <hetplan/exchange/hf_config.ipp>
#include <hetplan/exchange/metis_profile.ipp>
#include <hetplan/exchange/model_description.ipp>
#include <hetplan/exchange/moirai_json.ipp>
#include <hetplan/exchange/ncnn_operators.ipp>
#include <hetplan/exchange/ncnn_param.ipp>
#include <hetplan/exchange/pipedream_graph.ipp>
#include <hetplan/exchange/piper_json.ipp>
#include <hetplan/exchange/requests_file.ipp>
#include <hetplan/exchange/safetensors.ipp>
#include <hetplan/exchange/sailor_profile.ipp>
#include <hetplan/exchange/vidur_profile.ipp>
#include <hetplan/exchange/zeus_power.ipp>
#include <hetplan/io/cluster_json.ipp>
#include <hetplan/io/job_json.ipp>
#include <hetplan/io/json_document.ipp>
#include <hetplan/io/json_node.ipp>
#include <hetplan/io/json_text.ipp>
#include <hetplan/io/measured_csv.ipp>
#include <hetplan/io/model_json.ipp>
#include <hetplan/io/plan_json.ipp>
#include <hetplan/io/requests_csv.ipp>
#include <hetplan/io/results_json.ipp>
#include <hetplan/io/serving_json.ipp>
#include <hetplan/io/tasks_json.ipp>
#include <hetplan/io/timeline_json.ipp>
#include <hetplan/io/unused_fields.ipp>
