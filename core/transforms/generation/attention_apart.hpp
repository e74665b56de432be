// Attention to pages as a module of its own, between what comes before it and after it: the CPU may take it. Must not
// know steps.
#pragma once

#include "core/model/network.hpp"

namespace tandem {

// Of a module that attends: "NAME.before", "NAME.attention", "NAME.after". Others stay as they are.
Network with_attention_apart(const Network& network);

// Such a module, or one that is not cut so far.
bool attends_to_pages(const Module& module);

}  // namespace tandem
