// Carries out what another process asks for, each request in a process of its own: what it asks is arguments, what it
// gets is an exit code, and what was written if it asks for that. Must not know what the program does.
#pragma once

#include <functional>

namespace tandem {

// `socket`: a line of JSON a request, a line a reply, in the order of the requests. A request is a list of arguments,
// whose reply is an exit code and whose standard output and standard error go nowhere; or {"arguments": [...]}, whose
// reply is {"exit_code":, "output":, "errors":}. `idle`: at the lowest priority. Returns when the other end is closed.
int serve(int socket, bool idle, const std::function<int(int, char**)>& body);

}  // namespace tandem
