// SPDX-License-Identifier: BSL-1.0
// expect: conversion from
#include <hetplan/core/quantity.hpp>

const hetplan::device_id d = hetplan::layer_id(0);
