// A request from outside to save a checkpoint now and go on: SIGUSR1. Must not know what is saved.
#pragma once

namespace tandem {

// From now on the signal is a request. A program that never calls this is ended by it, as by default.
void claim_checkpoint_requests();
// Whether one came since the last call.
bool take_checkpoint_request();

}  // namespace tandem
