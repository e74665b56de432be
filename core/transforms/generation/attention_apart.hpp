// Attention to pages as a module of its own, between what comes before it and after it: the CPU may take it. Must not
// know steps.
#pragma once

#include <vector>

#include "core/model/network.hpp"

namespace tandem {

// Of a module that attends: "NAME.before", "NAME.attention", "NAME.after"; and "NAME.context" first of all, of one that
// attends to what is made once. Others stay as they are.
Network with_attention_apart(const Network& network);

// Of such a network: by module, whether all its calls are made in the first step alone.
std::vector<bool> made_once(const Network& network);
// Such a module, or one that is not cut so far.
bool attends_to_pages(const Module& module);

}  // namespace tandem
