// The body of every op whose pass is derived from a program (core/model/passes.hpp): walks its calls.
#pragma once

#include "core/model/passes.hpp"
#include "runtime/executors/body.hpp"

namespace tandem {

// Reads and writes are where Pass::operands says; a loss scale is the last read.
const BodyEntry& pass_body(const Pass& pass);

}  // namespace tandem
