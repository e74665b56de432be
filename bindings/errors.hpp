// The errors of this project as Python raises them, in whichever native module they come up.
#pragma once

namespace tandem {

// Of the module that is being made: ConfigError, DoesNotFit and DeviceError are those of tandem.errors, so that all
// native modules raise the same ones.
void translate_errors();

}  // namespace tandem
