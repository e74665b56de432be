// What a drawing refers to beside itself. Must not know how it is drawn.
#pragma once

#include <string>

namespace tandem {

// The first reference to another file or to the network that drawing would need, as it stands in the text; "" where all
// are to parts of the drawing ("#name") or hold their data ("data:"). Links of <a>, which are not drawn, do not count.
// A look at the text, which takes for a reference what may not be one; never the other way round, but for encodings
// other than UTF-8.
std::string external_reference(const std::string& svg);

}  // namespace tandem
