// Text in, syntax tree out.
#pragma once

#include "starfold/base/source.h"
#include "starfold/diag/diagnostic.h"
#include "starfold/syntax/ast.h"

namespace starfold {

// Limits that keep a hostile file from exhausting stack or time.
inline constexpr std::size_t max_source_bytes = 4 << 20;
inline constexpr int max_expression_depth = 500;

// Parses one file. Always returns what could be understood; mistakes are reported.
ast::File parse(const SourceMap& sources, std::uint32_t file, Diagnostics& diagnostics);

}  // namespace starfold
