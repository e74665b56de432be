#include <string>

#include "core/base/errors.hpp"
#include "core/model/passes.hpp"
#include "runtime/body_table.hpp"

namespace tandem {

const BodyEntry& find_body(const Work& work) {
  if (work.pass != nullptr) return work.pass->given != nullptr ? imported_body(*work.pass) : pass_body(*work.pass);
  const std::string& name = work.body;
  for (const std::span<const BodyEntry> file : body_table())
    for (const BodyEntry& entry : file)
      if (entry.name == name) return entry;
  throw DeviceError("no body performs \"" + name + "\": this workload can be simulated, but not trained for real");
}

}  // namespace tandem
