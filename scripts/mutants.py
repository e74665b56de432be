#!/usr/bin/env python3
"""Plants bugs, one at a time, in a copy of the checkout, and expects tests to find each.

    mutants.py              all of them: an hour on two cores; those of LibTorch's part only where it is installed
    mutants.py NAME...      some
    mutants.py --check      only that every text of the table stands once where the table says

Prints for each bug whether tests found it ("killed") or not ("survived"), and ends with 1 where one survived, where a
planted bug does not compile, or where the tests fail without one. The copy and its build are build-mutants/.
"""
import argparse
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPY = ROOT / "build-mutants" / "tree"
TIMEOUT_S = 1200  # a bug may hang a test


@dataclass(frozen=True)
class Mutant:
    name: str
    file: str
    text: str  # stands once in the file
    bug: str  # takes its place
    target: str  # what holds the tests
    tests: str  # a regular expression of ctests, of which one must fail


SAVES, ORDER = r"^file_faults\.FaultsTest$", r"^file_faults\.OrderTest$"
# Where files move, only the second column changes.
MUTANTS = [
    Mutant("versions", "core/graph/graph.cpp",
           "value.version = tensor.versions++;", "value.version = tensor.versions;", "test_core", r"^core\.WorkloadGraph"),
    Mutant("readers", "core/graph/graph.cpp",
           "++value.readers;", "value.readers = 1;", "test_core", r"^core\.(EveryPolicy|WorkloadGraph)"),
    Mutant("roofline", "core/machine/cost_model.cpp",
           "+ std::max(flop_ns, byte_ns) + bare;", "+ std::min(flop_ns, byte_ns) + bare;", "test_core", r"^core\.CostModel$"),
    Mutant("pool_ends", "core/scheduler/pool.cpp",
           "offset = free_[span.last - 1].end() - bytes;", "offset = free_[span.last - 1].offset;", "test_core", r"^core\.Pool$"),
    Mutant("happens_before", "core/scheduler/happens_before.cpp",
           "stretch.readers.push_back(me);", "static_cast<void>(me);", "test_core", r"^core\.HappensBefore$"),
    Mutant("dependencies", "core/scheduler/decisions.cpp",
           "if (!issuable(op)) return Reply::NotReady;", "if (op.reads.size() > 99) return Reply::NotReady;", "test_core",
           r"^core\.(EveryPolicy|RandomPolicy|Scheduler)"),
    Mutant("lru", "core/scheduler/eviction_order.cpp",
           "if (q.oldest == id) q.oldest = n.newer;", "if (q.oldest == id) q.oldest = n.older;", "test_core",
           r"^core\.(EveryPolicy|RandomPolicy|Scheduler)"),
    Mutant("delayed_update", "core/policies/zero_offload.cpp",
           "if (delayed_ || program.empty()) return false;", "if (program.empty()) return false;", "test_sim", r"^sim\.ZeroOffload$"),
    Mutant("separation", "core/policies/cotrain/separation.cpp",
           "copied = std::max(copied, backward) + layers[l].gradient_copy_ns;",
           "copied = backward + layers[l].gradient_copy_ns;", "test_core", r"^core\.Separation$"),
    Mutant("least_separation", "core/policies/cotrain/separation.cpp",
           "while (low > 0 && longer(low - 1) <= longer(low)) --low;", "if (low > 0 && longer(low - 1) <= longer(low)) --low;",
           "test_core", r"^core\.ExactChoices$"),
    Mutant("cosine", "core/scenario/schedule.cpp",
           "(1 - std::cos(std::numbers::pi * progress)) / 2", "(1 + std::cos(std::numbers::pi * progress)) / 2", "test_core",
           r"^core\.Schedule$"),
    Mutant("exponent", "core/yaml/decimal.cpp",
           "value.exponent += is_negative ? -exponent : exponent;", "value.exponent += is_negative ? exponent : -exponent;", "test_core",
           r"^core\.Scenario(Decimal|Yaml|Load)$"),
    Mutant("norm_traffic", "core/model/primitives/layer_norm.cpp",
           "touched = direction == Direction::Forward ? 2 : 3;", "touched = direction == Direction::Forward ? 2 : 1;",
           "test_core", r"^core\.Primitives$"),
    Mutant("gradient_so_far", "core/model/derive_backward.cpp",
           "gradient_[place(in)] = given(input_gradient(i), in);", "gradient_[place(in)] = kNone;", "test_core",
           r"^core\.Derive$"),
    Mutant("gradient_copied_to_its_port", "core/model/derive_backward.cpp",
           "if (gradient == kNone && passes && !needs_copy(index, in, output_gradient)) {",
           "if (gradient == kNone && passes) {", "test_core", r"^core\.Derive$"),
    Mutant("checkpoint_chain", "core/transforms/recompute/checkpoint_chain.cpp",
           "return s.input_bytes + s.saved_bytes + std::max(forward, backward);",
           "return s.input_bytes + s.saved_bytes + std::min(forward, backward);", "test_core", r"^core\.CheckpointChain$"),
    Mutant("device_clock", "core/machine/device_clock.cpp",
           "other = kept * other + (1 - kept) * now_other;", "other = (1 - kept) * other + kept * now_other;", "test_sim",
           r"^sim\.DeviceClock$"),
    Mutant("bus", "sim/truth_model.cpp",
           "profile_->pcie_bytes_per_s < profile_->h2d.bytes_per_s + profile_->d2h.bytes_per_s;",
           "profile_->pcie_bytes_per_s < profile_->h2d.bytes_per_s;", "test_sim", r"^sim\.(ExactTimes|ClosedForms)$"),
    Mutant("collectives", "sim/simgrid_executor.cpp",
           "if (gathered.members.size() < rank(ref.rank).graph->group(pending.match.group).size()) return;",
           "if (gathered.members.empty()) return;", "test_sim",
           r"^sim\.(SimgridExecutor|Partition)$"),
    Mutant("adam_epsilon", "runtime/optimizer/rules/adam.hpp",
           "Number(step.v_root_correction)), Number(step.epsilon));", "Number(step.v_root_correction)), Number(0.0F));",
           "test_executors", r"^executors\..*Adam"),
    Mutant("page_sums", "runtime/executors/page_sums.cpp",
           "if (noted != 0 && noted != sum_of(memory + done)) return", "if (noted == 0 && noted != sum_of(memory + done)) return",
           "test_executors", r"^executors\.Disk"),
    Mutant("not_finite", "runtime/executors/not_finite.cpp",
           "if (check_gradient(numbers + first * size_of(type), type, block).finite) continue;", "if (block > 0) continue;",
           "test_runtime", r"^runtime\.NotFinite"),
    Mutant("watched_updates", "runtime/optimizer/update_loop.hpp",
           "if (!(watch == 0)) return false;", "if (watch > 0) return false;", "test_runtime", r"^runtime\.NotFinite"),
    Mutant("consistent", "core/scenario/consistent.cpp",
           "value > e.most * slack * scale", "value < 0", "test_core", r"^core\.UnitErrors"),
    Mutant("resumed_facts", "runtime/checkpoint/manifest.cpp",
           'facts.emplace_back("optimizer.epsilon", text_of(o.epsilon));', 'facts.emplace_back("optimizer.epsilon", "");',
           "test_checkpoint", r"^checkpoint\.CheckpointFiles"),
    Mutant("checksums", "runtime/checkpoint/manifest.cpp",
           "if (sum_of_file(path, file.bytes).checksum.text() != file.checksum)",
           "if (sum_of_file(path, file.bytes).checksum.text().size() != file.checksum.size())",
           "test_checkpoint", r"^checkpoint\."),
    Mutant("stage_sync", "runtime/checkpoint/shared_file.cpp",
           'if (uninterrupted([&] { return ::fsync(descriptor); }) != 0) fail_at("sync", path, errno);', "",
           "test_file_faults", ORDER),
    Mutant("stage_sync_error", "runtime/checkpoint/shared_file.cpp",
           'if (uninterrupted([&] { return ::fsync(descriptor); }) != 0) fail_at("sync", path, errno);', "::fsync(descriptor);",
           "test_file_faults", SAVES),
    Mutant("short_save", "runtime/checkpoint/saved_file.cpp", "    done += written;", "    done += std::max<std::int64_t>(written, count);",
           "test_file_faults", SAVES),
    Mutant("unwritten_save", "runtime/checkpoint/saved_file.cpp", 'if (written < 0) fail_at("write", path_, errno);', "if (written < 0) break;",
           "test_file_faults", SAVES),
    Mutant("folder_sync", "runtime/checkpoint/saved_file.cpp", "const int synced = uninterrupted([&] { return ::fsync(folder); });",
           "const int synced = 0;", "test_file_faults", ORDER),
    Mutant("manifest_folder_sync", "runtime/checkpoint/checkpoint_folder.cpp", "  sync_folder(partial);", "", "test_file_faults", ORDER),
    Mutant("committed_sync", "runtime/checkpoint/checkpoint_folder.cpp",
           "  sync_folder(options.directory);\n  delete_older(options, step);", "  delete_older(options, step);\n  sync_folder(options.directory);",
           "test_file_faults", ORDER),
    Mutant("renamed_checkpoint", "runtime/checkpoint/checkpoint_folder.cpp",
           'if (::rename(from.c_str(), to.c_str()) != 0) fail_at("rename", from, errno);', "static_cast<void>(::rename(from.c_str(), to.c_str()));",
           "test_file_faults", SAVES),
    Mutant("deleted_first", "runtime/checkpoint/checkpoint_folder.cpp", "    move(all[i].folder, doomed);\n    remove(doomed);",
           "    remove(all[i].folder);", "test_file_faults", SAVES),
    Mutant("unlisted", "runtime/checkpoint/checkpoint_folder.cpp",
           'if (failure != 0 && failure != ENOENT) fail_at("list", directory, failure);', "", "test_file_faults", SAVES),
    Mutant("new_folder_sync", "runtime/checkpoint/checkpoint_folder.cpp",
           "if (::access(parent.c_str(), R_OK) == 0) sync_folder(parent);", "", "test_file_faults", ORDER),
    Mutant("went_back", "runtime/checkpoint/checkpoint_folder.cpp", "if (set_aside_from(directory, step + 1)) sync_folder(directory);", "if (step < 0) set_aside_from(directory, step);",
           "test_file_faults", SAVES),
    Mutant("interrupted_calls", "core/base/system_calls.hpp", "if (const auto result = call(); result >= 0 || errno != EINTR) return result;",
           "if (const auto result = call(); true) return result;", "test_file_faults", SAVES),
    Mutant("interrupted_close", "core/base/system_calls.hpp", "return result == 0 || errno == EINTR;",
           "return result == 0;", "test_file_faults", SAVES),
    Mutant("short_read", "core/base/input_file.cpp", "    if (got == 0) return false;\n", "    if (got < count - done) return false;\n",
           "test_file_faults", SAVES),
    Mutant("unread", "core/base/input_file.cpp",
           '  if (got < 0) throw UnreadableFile(std::string("cannot be read: ") + std::strerror(errno));\n  return static_cast<std::size_t>(got);',
           "  return got < 0 ? 0 : static_cast<std::size_t>(got);", "test_file_faults", SAVES),
    Mutant("output_sync", "report/temporary_file.cpp",
           "const bool synced = uninterrupted([&] { return ::fsync(descriptor_); }) == 0 || errno == EINVAL;", "const bool synced = true;",
           "test_file_faults", ORDER),
    Mutant("output_folder_sync", "report/temporary_file.cpp", "const int synced = uninterrupted([&] { return ::fsync(folder); });",
           "const int synced = 0;", "test_file_faults", ORDER),
    Mutant("renamed_output", "report/temporary_file.cpp", "if (!synced || ::rename(name_.c_str(), path_.c_str()) != 0) {",
           "if (!synced || (::rename(name_.c_str(), path_.c_str()) != 0 && errno == EXDEV)) {", "test_file_faults", SAVES),
    Mutant("short_output", "cli/atomic_file.cpp", "    done += static_cast<std::size_t>(written);", "    done += buffer_.size();",
           "test_file_faults", SAVES),
    Mutant("unwritten_output", "cli/atomic_file.cpp", 'if (written < 0) fail("write", errno);', "if (written < 0) break;", "test_file_faults", SAVES),
    Mutant("had_no_name", "cli/atomic_file.cpp", 'temporary_ && !temporary_->has_name() ?', "temporary_ ?", "test_file_faults", SAVES),
    Mutant("unwritten_row", "report/table_file.cpp", "void TableFile::fail(int error) {", "void TableFile::fail(int error) {\n  if (last_ > 0) return;",
           "test_file_faults", SAVES),
    Mutant("rows_sync", "report/table_file.cpp", "const int synced = uninterrupted([&] { return ::fdatasync(descriptor_); });",
           "const int synced = 0;", "test_file_faults", ORDER),
    Mutant("lost_rows", "report/table_file.cpp", "in.exceptions(std::ios::badbit);", "", "test_file_faults", SAVES),
    Mutant("short_measurement", "cli/measurements.cpp", "done += static_cast<std::size_t>(std::max<ssize_t>(count, 0));",
           "done = line.size();", "test_file_faults", r"^file_faults\.Measurement"),
    Mutant("header_length", "runtime/checkpoint/safetensors.cpp",
           "if (length > kMostHeaderBytes || static_cast<std::int64_t>(length + kLengthBytes) > file_->bytes())",
           "if (length > kMostHeaderBytes)", "test_checkpoint", r"^checkpoint\.CheckpointFiles"),
    Mutant("sizes", "runtime/checkpoint/manifest.cpp", "bytes != file.bytes)", "bytes < 0)", "test_checkpoint", r"^checkpoint\.CheckpointFiles"),
    Mutant("manifest_checksum", "runtime/checkpoint/manifest.cpp",
           "if (checksum_of(json.dump(-1, ' ', false, Json::error_handler_t::replace)).text() != checksum)", "if (checksum.empty())",
           "test_file_faults", r"^file_faults\.DamageTest$"),
    Mutant("held_out_text", "runtime/token_batches.cpp",
           "held_out ? items_ - held_out_ : 0;", "held_out ? 0 : held_out_;", "test_runtime", r"^runtime\.DataTest$"),
    Mutant("warm_up", "calibration/statistics.cpp",
           "samples[length] > kWarmUpFactor * settled", "samples[length] < kWarmUpFactor * settled", "test_runtime",
           r"^runtime\.CalibrationStatistics$"),
    Mutant("peaks", "analysis/analysis.cpp",
           "host = sum[static_cast<std::size_t>(Tier::HostPinned)];", "host = sum[static_cast<std::size_t>(Tier::HostPageable)];",
           "test_analysis", r"^analysis\."),
    Mutant("resumed_table", "report/csv_log.cpp",
           "at >= 1 && at <= step)", "at >= 1 && at < step)", "test_report", r"^report\.CsvLogTest$"),
    Mutant("exit_codes", "cli/cli.cpp",
           "throw Leave{kBadInput};", "throw Leave{kDone};", "tandem_programs", r"^scripts\.cli_contract\.py$"),
]
NEEDS_LIBTORCH = "test_runtime"


def misplaced(mutant):
    """What is wrong with a row of the table, "" if nothing is."""
    path = ROOT / mutant.file
    if not path.exists():
        return f"{mutant.name}: there is no {mutant.file}: it moved, say where to in the table"
    count = path.read_text(encoding="utf-8").count(mutant.text)
    return "" if count == 1 else f"{mutant.name}: {mutant.file} has '{mutant.text}' {count} times, not once"


def copy_tree():
    """The checkout's files, changed ones too; those that are the same already keep their times, for the build."""
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True,
                           capture_output=True, text=True).stdout.split("\0")
    wanted = {name for name in names if name and (ROOT / name).is_file()}
    for name in wanted:
        target = COPY / name
        if not target.exists() or target.read_bytes() != (ROOT / name).read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target)
            shutil.copymode(ROOT / name, target)
    for path in [path for path in COPY.rglob("*") if path.is_file() and "build" not in path.relative_to(COPY).parts[:1]]:
        if not path.is_symlink() and str(path.relative_to(COPY)) not in wanted and ".cache" not in path.parts and ".venv" not in path.parts:
            path.unlink()
    for name in (".venv", ".cache"):
        if (ROOT / name).exists() and not (COPY / name).exists():
            (COPY / name).symlink_to((ROOT / name).resolve())


def run(*command):
    """Exit code and output. nice: this is nothing that anyone waits for."""
    environment = {**os.environ, "CCACHE_BASEDIR": str(COPY)}
    try:
        done = subprocess.run(["nice", *map(str, command)], cwd=COPY, env=environment, capture_output=True, text=True,
                              errors="replace", timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return 124, "it took too long"
    return done.returncode, done.stdout + done.stderr


def has_libtorch():
    return any((ROOT / ".venv").glob("lib/python3*/site-packages/torch/lib/libtorch_cpu.so"))


def must(what, status, output):
    if status != 0:
        sys.exit(f"{what} failed:\n" + "\n".join(output.splitlines()[-30:]))


def build(*targets):
    return run("cmake", "--build", "build", "--parallel", os.environ.get("JOBS", str(os.cpu_count())), "--target", *targets)


def test(tests):
    return run("ctest", "--test-dir", "build", "--parallel", "2", "--no-tests=error", "--output-on-failure", "-R", tests)


def prepare(mutants):
    copy_tree()
    print(f"building {COPY.relative_to(ROOT)} without a bug", flush=True)
    must("configuring", *run("cmake", "--preset", "release", "-DTANDEM_WITH_BENCHMARKS=OFF", "-DTANDEM_WITH_CUDA=OFF",
                             f"-DTANDEM_WITH_RUNTIME={'ON' if any(m.target == NEEDS_LIBTORCH for m in mutants) else 'OFF'}"))
    must("the build without a bug", *build(*sorted({mutant.target for mutant in mutants})))
    must("a test without a bug", *test("|".join(sorted({mutant.tests for mutant in mutants}))))


def verdict(mutant):
    path = COPY / mutant.file
    sound = path.read_text(encoding="utf-8")
    path.write_text(sound.replace(mutant.text, mutant.bug), encoding="utf-8")
    try:
        status, output = build(mutant.target)
        if status != 0:
            return "does not build: " + next((line for line in output.splitlines() if "error" in line), output[-300:])
        return "survived" if test(mutant.tests)[0] == 0 else "killed"
    finally:
        path.write_text(sound, encoding="utf-8")


def chosen(names):
    unknown = set(names) - {mutant.name for mutant in MUTANTS}
    if unknown:
        sys.exit(f"no mutants {', '.join(sorted(unknown))}; there are {', '.join(mutant.name for mutant in MUTANTS)}")
    mutants = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    if has_libtorch():
        return mutants
    left_out = [mutant.name for mutant in mutants if mutant.target == NEEDS_LIBTORCH]
    if left_out:
        print(f"left out, without LibTorch: {', '.join(left_out)}")
    return [mutant for mutant in mutants if mutant.name not in left_out]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*", metavar="NAME")
    p.add_argument("--check", action="store_true", help="only the table")
    arguments = p.parse_args()
    wrong = [problem for problem in map(misplaced, MUTANTS) if problem]
    if wrong:
        sys.exit("\n".join(wrong))
    if arguments.check:
        print(f"{len(MUTANTS)} bugs can be planted")
        return
    mutants = chosen(arguments.names)
    prepare(mutants)
    found = {}
    for mutant in mutants:
        started = time.monotonic()
        found[mutant.name] = verdict(mutant)
        print(f"{found[mutant.name]:9} {time.monotonic() - started:5.0f} s  {mutant.name}: {mutant.file}", flush=True)
    missed = [name for name, what in found.items() if what != "killed"]
    print(f"{len(found) - len(missed)} of {len(found)} planted bugs were found{'' if not missed else ', but not: ' + ', '.join(missed)}")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
