// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Definitions of ONNX files, for one source of a program.
/// Needs plan, files; libonnx, and -DONNX_ML=1 -DONNX_NAMESPACE=onnx.

#ifndef HETPLAN_SEPARATE
#error "hetplan/define/onnx.hpp: compile every source of the program with -DHETPLAN_SEPARATE"
#endif

#include <hetplan/exchange/onnx_checks.ipp>
#include <hetplan/exchange/onnx_file.ipp>
#include <hetplan/exchange/onnx_functions.ipp>
#include <hetplan/exchange/onnx_graph.ipp>
#include <hetplan/exchange/onnx_inference.ipp>
#include <hetplan/exchange/onnx_operators.ipp>
#include <hetplan/exchange/onnx_values.ipp>
