// Reads a tokenizer.json of Hugging Face's tokenizers library. Must not know texts.
#pragma once

#include <string>

#include "core/base/json_shape.hpp"
#include "runtime/tokenizer/tokenizer.hpp"

namespace tandem {

// `text`: the whole file. Throws BadJson, "model.type: is 'Unigram'; allowed: BPE", for what is malformed and for every
// kind of tokenizer but byte-level BPE.
Tokenizer read_tokenizer(const std::string& text);

}  // namespace tandem
