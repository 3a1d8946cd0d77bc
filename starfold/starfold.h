// Starfold for C++ programs: compile, explain, run, and the two sides of a federation.
//
//   auto program = starfold::compile_program({"mean.fold", "input x : [*]\noutput m = mean[*](x)\n", {}});
//   auto report = starfold::run_local(program, {{"oslo", {{"x", oslo}}}, {"bergen", {{"x", bergen}}}}, {});
//   report.results.outputs["m"];
#pragma once

#include "starfold/base/error.h"              // RunError
#include "starfold/compile/compile.h"         // compile: text to typed IR and diagnostics
#include "starfold/diag/render.h"             // diagnostics as text and JSON
#include "starfold/federation/coordinator.h"  // Coordinator: the server's side, without I/O
#include "starfold/federation/local.h"        // run_local: a federation in one process
#include "starfold/federation/node.h"         // Node: the client's side, without I/O
#include "starfold/federation/program.h"      // compile_program: text to plan
#include "starfold/ops/standard.h"            // Signature: the operations, and how to add your own
#include "starfold/page/pages.h"              // pages: what a program would send, what a run gave
#include "starfold/plan/explain.h"            // what leaves each client, as text, JSON, graph
#include "starfold/plan/plan.h"               // Plan: rounds of encode, merge, decode
#include "starfold/runtime/reference.h"       // evaluate_reference: the definition
#include "starfold/study/options.h"           // make_study: a study from a file and options
#include "starfold/study/output/folder.h"     // write_results: the folder of a run
#include "starfold/study/output/results.h"    // a run as JSON
#include "starfold/study/output/trouble.h"    // what went wrong, as a value
#include "starfold/study/program.h"           // open_program: a file, or a ready-made program
#include "starfold/study/run.h"               // run_study: a study over its clients' files
#include "starfold/theory/factorization.h"    // factor, realize, compose: plans as factorizations
