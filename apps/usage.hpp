// What `tandem --help` prints: the commands in a few words each. The manual page has them all in full.
#pragma once

namespace tandem {

inline constexpr const char* kUsage =
    "tandem: one scheduler, simulated and real, for training models larger than the device's memory\n"
    "\n"
    "  tandem plan --model NAME          will it train, how fast, and how: --machine NAME, --host-memory 64GB, "
    "--exact; or plan FILE\n"
    "  tandem simulate FILE              predict a scenario's run\n"
    "  tandem train FILE                 perform it: --device cpu|cuda, --nproc N, --resume DIR, --csv FILE, --adapt\n"
    "  tandem generate FILE              generate text: --prompts FILE, --device cpu|cuda, --tokens, --texts FILE\n"
    "  tandem compare FILE               both, predicted beside measured\n"
    "  tandem compare-policies FILE      simulate it with every policy: --policies A,B, --over KEY=V,W, --largest "
    "KEY=LOW..HIGH\n"
    "  tandem explain FILE|LOG           why its steps take as long as they do, and what would shorten them\n"
    "  tandem analyze FILE               what each module costs on the device and on the CPU, and which belong where\n"
    "  tandem sweep FILE                 simulate all combinations of keys that vary: table, lines, heat maps\n"
    "  tandem validate [FILES]           errors of the prediction over several scenarios; in two halves, on two "
    "machines:\n"
    "    --measure-only RESULTS          run them for real\n"
    "    --measured RESULTS              predict what RESULTS holds\n"
    "  tandem train-policy FILE          train the network of the policy `learned` in the simulator: --output FILE\n"
    "  tandem calibrate --output FILE    measure this machine and write its profile: --device cpu|cuda, --quick\n"
    "  tandem check FILE...              is a scenario or a profile right?\n"
    "  tandem replay LOG                 does the scheduler still answer a recorded run the same?\n"
    "  tandem import MODULE:FUNCTION     write a PyTorch module as a folder that trains: --output DIR, --split PATH, "
    "--dynamic batch\n"
    "  tandem monitor                    what GPUs, cores, memory and PCIe do: --interval S, --samples N, --json FILE\n"
    "  tandem list policies|transforms|workloads|models|optimizers|machines|products|scenarios\n"
    "  tandem schema                     the JSON Schema of scenarios, for editors\n"
    "  tandem completion bash|zsh|fish   a script for that shell, which then completes commands, flags and names\n"
    "  tandem man                        all commands and flags as a manual page: tandem man | man -l -\n"
    "\n"
    "Flags: --set path.to.key=value (repeatable), --json FILE|-, --trace FILE, --report FILE.html, --log FILE, --seed "
    "N, --quiet,\n"
    "--wide. `tandem COMMAND --help` tells more. Exit codes: 0 done, 2 bad input, 3 does not fit, 4 device or system\n"
    "failure, 130 interrupted.\n";

}  // namespace tandem
