// Carries out what another process asks for, each request in a process of its own: what it asks is arguments, what it
// gets is an exit code. Must not know what the program does.
#pragma once

#include <functional>

namespace tandem {

// `socket`: a line of JSON a request, a list of arguments; a line a reply, in the order of the requests. Nothing is
// written to standard output and standard error. `idle`: at the lowest priority. Returns when the other end is closed.
int serve(int socket, bool idle, const std::function<int(int, char**)>& body);

}  // namespace tandem
