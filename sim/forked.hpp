// Questions answered in processes of their own, as many at a time as there are cores: what fails takes nothing with it.
// Must not know what is asked, nor flags or files.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace tandem {

// `answer(i)` for all i below `count`, each in a forked process that ends with this one. "" where the process died or
// could not be made. The answers do not depend on how many run at a time.
std::vector<std::string> answer_in_forks(std::size_t count, std::size_t at_a_time,
                                         const std::function<std::string(std::size_t)>& answer);

}  // namespace tandem
